"""Metrics against stored numbers of other programs (see tests/reference/metrics/README.md)."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import special

from calstat._arrays.binning import equal_width_edges
from calstat.metrics import (
    accuracy,
    ace,
    brier_score,
    calibration_curve,
    classwise_ece,
    confidence_ece,
    e50,
    e90,
    ece,
    emax,
    ici,
    log_loss,
    mce,
    mmce,
    reliability_table,
    score_decomposition,
    smooth_ece,
    squared_ece,
)

REFERENCE = Path(__file__).parent / "reference/metrics"
INPUTS, MANUAL, INDEPENDENT, R, RELPLOT = (
    json.loads((REFERENCE / f"{name}.json").read_text())
    for name in ("inputs", "r_manual", "independent", "r_statistics", "relplot")
)
BINARY = ["b1_p", "b2_p", "b4_p", "b4_p_rf", "b4_p_nb"]
MULTICLASS = ["m1", "m3_vehicle", "m3_glass", "m4", "m5_sharp", "m6_k2"]
STATISTICS = ["pima_train", "syn_bin", "syn_ties", "syn_small"]
SAME_TERMS = 1e-12  # the same terms, added in another order


def data(name):
    return np.array(INPUTS[name]["y"]), np.array(INPUTS[name]["p"])


def close(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=SAME_TERMS)


def r_edges(bins):
    """Edges as R forms them: j * (1 / B)."""
    edges = np.arange(bins + 1) * (1 / bins)
    edges[-1] = 1.0
    return edges


def right_closed(bins):
    """Edges that make our left-closed bins the right-closed bins of `bins` equal widths."""
    edges = equal_width_edges(bins)
    edges[1:-1] = np.nextafter(edges[1:-1], 2)
    return edges


def exact_errors(y, p, bins):
    """ECE, MCE and ACE with the edges as fractions: row by row, without floating-point edges."""
    groups: dict[int, list[int]] = {}
    for i, value in enumerate(p):
        # The double j / B stands for the edge itself.
        j = int(Fraction(value) * bins)
        j += float(Fraction(min(j + 1, bins), bins)) <= value
        groups.setdefault(min(j, bins - 1), []).append(i)
    gaps = {j: abs(np.mean(y[rows]) - np.mean(p[rows])) for j, rows in groups.items()}
    return {
        "ece": sum(len(groups[j]) * gap for j, gap in gaps.items()) / p.size,
        "mce": max(gaps.values()),
        "ace": float(np.mean(list(gaps.values()))),
    }


@pytest.mark.parametrize("name", BINARY)
def test_binary_errors_of_the_r_manual(name):
    y, p = data(name)
    for row in MANUAL[name]["by_bins"]:
        exact = exact_errors(y, p, row["bins"])
        for metric in (ece, mce, ace):
            key = metric.__name__
            assert metric(y, p, bins=row["bins"]) == pytest.approx(exact[key], abs=SAME_TERMS)
            # With R's own edges, R's own number.
            assert metric(y, p, bins=r_edges(row["bins"])) == pytest.approx(row[key], abs=SAME_TERMS)


def moved_values(names, metrics):
    """Return the (set, number of bins, metric) that R's edges change."""
    return {
        (name, row["bins"], key)
        for name in names
        for row in MANUAL[name]["by_bins"]
        for key, metric in metrics.items()
        if abs(metric(*data(name), bins=row["bins"]) - row[key]) > SAME_TERMS
    }


def test_values_that_r_edges_move():
    binary = moved_values(BINARY, {"ece": ece, "mce": mce, "ace": ace})
    multiclass = moved_values(
        MULTICLASS,
        {
            f"{metric.__name__}_{t}": partial(metric, type=t)
            for metric in (ece, mce, ace)
            for t in ("classwise", "confidence")
        },
    )
    # Only sets with scores that are short decimals have rows on edges.
    assert {name for name, _, _ in binary | multiclass} == {"b2_p", "b4_p_rf", "m4"}
    assert (len(binary), len(multiclass)) == (17, 11)


@pytest.mark.parametrize("name", BINARY)
def test_binary_tables_of_the_r_manual(name):
    y, p = data(name)
    table = reliability_table(y, p, bins=r_edges(10))
    expected = MANUAL[name]["table10"]
    assert table["count"].tolist() == expected["n"]
    for ours, theirs in (("mean_p", "confidence"), ("mean_y", "accuracy")):
        close(table[ours], np.array(expected[theirs], dtype=float))
    for diagram in MANUAL[name]["reliability"]:
        bins = diagram["bins"]
        filled = reliability_table(y, p, bins=r_edges(bins)).query("count > 0")
        assert (filled.index + 1).tolist() == diagram["data"]["bin"]
        close(filled["mean_y"], diagram["data"]["accuracy"])
        assert diagram["subtitle"] == f"ECE = {ece(y, p, bins=r_edges(bins)):.4f}"


@pytest.mark.parametrize("name", MULTICLASS)
def test_multiclass_errors_of_the_r_manual(name):
    y, P = data(name)
    norms = {"ece": 1, "mce": "max", "ace": "mean"}
    for row in MANUAL[name]["by_bins"]:
        edges = r_edges(row["bins"])
        columns = [exact_errors(y == k + 1, P[:, k], row["bins"]) for k in range(P.shape[1])]
        top = exact_errors(P.argmax(axis=1) == y - 1, P.max(axis=1), row["bins"])
        for metric in (ece, mce, ace):
            key = metric.__name__
            for type_ in ("classwise", "confidence"):
                value = metric(y, P, bins=edges, type=type_)
                assert value == pytest.approx(row[f"{key}_{type_}"], abs=SAME_TERMS)
            close(classwise_ece(y, P, bins=edges, norm=norms[key]), row[f"{key}_per_class"])
            # By definition, without R's edges.
            per_class = [column[key] for column in columns]
            close(classwise_ece(y, P, bins=row["bins"], norm=norms[key]), per_class)
            assert metric(y, P, bins=row["bins"], type="confidence") == pytest.approx(top[key], abs=SAME_TERMS)
        assert confidence_ece(y, P, bins=edges) == pytest.approx(row["ece_confidence"], abs=SAME_TERMS)


@pytest.mark.parametrize("name", MULTICLASS)
def test_multiclass_tables_of_the_r_manual(name):
    y, P = data(name)
    for type_ in ("classwise", "confidence"):
        filled = reliability_table(y, P, type=type_, bins=r_edges(10)).query("count > 0")
        expected = MANUAL[name][f"reliability_{type_}_10"]
        assert (filled.index.get_level_values("bin") + 1).tolist() == expected["bin"]
        assert filled["count"].tolist() == expected["n"]
        close(filled["mean_p"], expected["confidence"])
        close(filled["mean_y"], expected["accuracy"])


@pytest.mark.parametrize("name", BINARY + MULTICLASS)
def test_mmce_of_the_r_manual(name):
    y, p = data(name)
    type_ = "confidence" if name == "m6_k2" else None
    assert mmce(y, p, type=type_) == pytest.approx(MANUAL[name]["mmce_default"], abs=SAME_TERMS)
    for row in MANUAL[name]["mmce"]:
        value = mmce(y, p, bandwidth=row["bandwidth"], type=type_)
        assert value == pytest.approx(row["value"], abs=SAME_TERMS)


def test_two_columns_are_the_event_unless_type_says_otherwise():
    (y, P), (y0, p) = data("m6_k2"), data("b1_p")
    assert np.array_equal(y - 1, y0)
    assert mmce(y, P) == pytest.approx(MANUAL["b1_p"]["mmce_default"], abs=SAME_TERMS)
    assert ece(y, P) == pytest.approx(ece(y0, p), abs=SAME_TERMS)


def square_key(bins):
    return f"equal_width_{bins}"


@pytest.mark.parametrize("name", ["b1_p", "b2_p", "b4_p", "b4_p_rf"])
def test_independent_binary_numbers(name):
    y, p = data(name)
    expected = INDEPENDENT[name]
    for bins in (10, 15, 30):
        row = expected["squared_ece"][square_key(bins)]
        edges = r_edges(bins)
        plain, corrected = (squared_ece(y, p, bins=edges, debias=d) for d in (False, "kumar"))
        assert plain == pytest.approx(row["plugin_sq"], abs=SAME_TERMS)
        assert ece(y, p, bins=edges, norm=2) == pytest.approx(row["plugin_rms"], abs=SAME_TERMS)
        assert corrected == pytest.approx(row["debiased_sq_singletons_zero"], abs=SAME_TERMS)
        root = ece(y, p, bins=edges, norm=2, debias="kumar")
        assert root == pytest.approx(np.sqrt(max(corrected, 0)), abs=SAME_TERMS)
    assert brier_score(y, p) == pytest.approx(expected["brier"], abs=SAME_TERMS)
    assert log_loss(y, p) == pytest.approx(expected["log_loss"], rel=SAME_TERMS)
    for key, h in (("bandwidth_0.2", 0.2), ("bandwidth_median", expected["median_bandwidth"])):
        assert mmce(y, p, bandwidth=h) ** 2 == pytest.approx(expected["skce_biased"][key], abs=SAME_TERMS)


@pytest.mark.parametrize("name", ["m1", "m3_vehicle", "m3_glass", "m4", "m6_k2"])
def test_independent_multiclass_numbers(name):
    y, P = data(name)
    expected = INDEPENDENT[name]
    for bins in (10, 15, 30):
        row = expected["squared_ece_confidence"][square_key(bins)]
        for debias, key in ((False, "plugin_sq"), ("kumar", "debiased_sq_singletons_zero")):
            value = squared_ece(y, P, type="confidence", bins=r_edges(bins), debias=debias)
            assert value == pytest.approx(row[key], abs=SAME_TERMS)
    for debias, key in ((False, "plugin_sq"), ("kumar", "debiased_sq_singletons_zero")):
        per_class = [row[key] for row in expected["squared_ece_classwise"]]
        value = squared_ece(y, P, type="classwise", bins=r_edges(10), debias=debias, average="sum")
        assert value == pytest.approx(sum(per_class), abs=SAME_TERMS)
    assert brier_score(y, P, average="rows") == pytest.approx(expected["brier"], abs=SAME_TERMS)
    assert log_loss(y, P) == pytest.approx(expected["log_loss"], rel=SAME_TERMS)
    assert mmce(y, P, type="confidence") ** 2 == pytest.approx(expected["skce_biased"]["bandwidth_0.2"], abs=SAME_TERMS)


@pytest.mark.parametrize("name", STATISTICS)
def test_corp_decomposition_of_reliabilitydiag(name):
    expected = R[name]["reliabilitydiag"]
    for score, part in (("brier", expected), ("log", expected["logscore"])):
        ours = score_decomposition(*data(name), score=score)
        assert ours["score"] == pytest.approx(part["mean_score"], rel=SAME_TERMS)
        close(ours[["MCB", "DSC", "UNC"]], [part[k] for k in ("MCB", "DSC", "UNC")])
        assert ours["remainder"] == 0


@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize("bins", [5, 10])
def test_murphy_decomposition_of_specsverification(name, bins):
    y, p = data(name)
    expected = R[name]["SpecsVerification"][f"BrierDecomp_bins{bins}"]
    ours = score_decomposition(y, p, method="bins", bins=right_closed(bins))
    close(ours[["MCB", "DSC", "UNC"]], [expected[k] for k in ("REL", "RES", "UNC")])
    if not np.isin(p, equal_width_edges(bins)).any():
        # No score on an edge: it does not matter on which side bins are closed.
        left = score_decomposition(y, p, method="bins", bins=bins)
        close(left, ours)


@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize("bins", [5, 10, 15])
def test_ece_of_calibratr(name, bins):
    y, p = data(name)
    expected = R[name]["CalibratR"]
    value = ece(y, p, bins=right_closed(bins))
    assert value == pytest.approx(expected[f"ECE_equal_width_{bins}"], abs=SAME_TERMS)
    if np.unique(p).size == p.size:
        # Its groups of ranks, the first n mod k one larger, are bins between neighbouring scores.
        ordered = np.sort(p)
        size = np.full(bins, p.size // bins) + (np.arange(bins) < p.size % bins)
        cut = np.cumsum(size)[:-1]
        edges = np.concatenate([[0], (ordered[cut - 1] + ordered[cut]) / 2, [1]])
        assert ece(y, p, bins=edges) == pytest.approx(expected[f"ECE_equal_frequency_{bins}"], abs=SAME_TERMS)


def test_splitting_ties_would_give_another_value():
    y, p = data("syn_ties")
    split = R["syn_ties"]["CalibratR"]["ECE_equal_frequency_10"]
    assert abs(ece(y, p, bins=10, strategy="equal_freq") - split) > 1e-4


@pytest.mark.parametrize("name", ["pima_train", "syn_bin", "syn_ties", "syn_small"])
def test_probcal_on_other_sets(name):
    y, p = data(name)
    expected = R[name]["probcal"]
    if not expected:
        assert name == "pima_train"
        return
    for bins in (5, 10, 15):
        for metric in (ece, mce, ace):
            value = metric(y, p, bins=r_edges(bins))
            assert value == pytest.approx(expected[f"bins{bins}"][metric.__name__], abs=SAME_TERMS)
    assert mmce(y, p) == pytest.approx(expected["mmce_bw0.2"], abs=SAME_TERMS)


def test_probcal_on_three_classes():
    y, P = data("syn_tri")
    expected = R["syn_tri"]["probcal"]
    for bins in (10, 15):
        for key, value in expected[f"bins{bins}"].items():
            name, type_ = key.split("_")
            metric = {"ece": ece, "mce": mce, "ace": ace}[name]
            assert metric(y, P, bins=bins, type=type_) == pytest.approx(value, abs=SAME_TERMS)
    assert mmce(y, P) == pytest.approx(expected["mmce_confidence_bw0.2"], abs=SAME_TERMS)


@pytest.mark.parametrize("name", ["pima_train", "syn_bin", "syn_ties"])
def test_e_statistics_of_rms(name):
    y, p = data(name)
    expected = R[name]["rms"]
    # Two lowess programs: 6.7e-10 was the largest difference seen.
    assert ici(y, p) == pytest.approx(expected["Eavg"], abs=1e-8)
    assert e90(y, p) == pytest.approx(expected["E90"], abs=1e-8)
    assert emax(y, p) == pytest.approx(expected["Emax"], abs=1e-8)
    curve = calibration_curve(y, p)
    ours = np.interp(expected["lowess"]["x"], curve["p"], curve["calibrated"])
    np.testing.assert_allclose(ours, expected["lowess"]["y"], rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", ["pima_train", "syn_bin", "syn_ties"])
@pytest.mark.parametrize(
    ("key", "options"),
    [
        ("none_logit", {"smoother": "logistic"}),
        ("rcs_nk5_logit", {"smoother": "spline"}),
        ("lowess_logit", {"scale": "logit"}),
        ("lowess_identity", {}),
    ],
)
def test_e_statistics_of_pmcalibration(name, key, options):
    expected = R[name]["pmcalibration"][key]
    for metric, label in ((ici, "Eavg"), (e50, "E50"), (e90, "E90"), (emax, "Emax")):
        assert metric(*data(name), **options) == pytest.approx(expected[label], abs=1e-8)


@pytest.mark.parametrize("name", ["pima_train", "syn_bin", "syn_ties"])
def test_spline_of_p_is_a_restricted_cubic_spline(name):
    y, p = data(name)
    expected = R[name]["rcs5"]
    curve = calibration_curve(y, p, smoother="spline", scale="probability")
    nearest = np.searchsorted(curve["p"], expected["x"]).clip(1, len(curve) - 2)
    # R evaluates between our observed p; the curve is smooth, so parabolas through three neighbours do.
    for x, value, i in zip(expected["x"], expected["fit"], nearest, strict=True):
        near = curve.iloc[i - 1 : i + 2]
        z = np.log(near["calibrated"] / (1 - near["calibrated"]))
        center, scale = near["p"].mean(), np.ptp(near["p"])
        parabola = np.polyfit((near["p"] - center) / scale, z, 2)
        interpolated = special.expit(np.polyval(parabola, (x - center) / scale))
        assert interpolated == pytest.approx(value, abs=2e-4)


@pytest.mark.parametrize("name", RELPLOT)
def test_smooth_ece_of_relplot(name):
    # relplot halves its bandwidth search ten times (1e-3) and integrates on about 200 points (3e-4 at most there).
    assert smooth_ece(*data(name)) == pytest.approx(RELPLOT[name]["smECE"], abs=1e-3)


def test_accuracy_counts_hits():
    y, P = data("m1")
    assert accuracy(y, P) == np.mean(P.argmax(axis=1) == y - 1)
