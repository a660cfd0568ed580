"""The calibration belt against givitiR's numbers, quadrature, simulation and its own definition."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, interpolate, optimize, special, stats

from calstat.diagnostics.belt import calibration_belt, null_quantile, null_sf
from calstat.exceptions import InputError, NotEstimableWarning

FOLDER = Path(__file__).parent / "reference"
GIVITIR = json.loads((FOLDER / "belt" / "givitir.json").read_text())
INPUTS = json.loads((FOLDER / "binary" / "inputs.json").read_text())
SETS = ["pima_train", "syn_bin", "syn_ties"]


def sample(name):
    return np.array(INPUTS[name]["y"]), np.array(INPUTS[name]["p"])


@pytest.mark.parametrize("df", ["external", "internal"])
@pytest.mark.parametrize("name", SETS)
def test_degree_statistic_and_belt_equal_givitir(name, df):
    y, p = sample(name)
    belt = calibration_belt(y, p, df=df)
    expected = GIVITIR[name][df]
    assert belt.degree == expected["m"]
    np.testing.assert_allclose(belt.test.statistic, expected["statistic"], rtol=1e-7)
    np.testing.assert_allclose(belt.test.pvalue, expected["p"], rtol=1e-8, atol=1e-15)
    np.testing.assert_allclose(belt.params, expected["coef"], atol=1e-7)
    edges = GIVITIR[name][f"{df}_belt"]
    for level, short in ((0.8, "80"), (0.95, "95")):
        for ours, theirs in (("low", "lower"), ("high", "upper")):
            grid, band = special.logit(belt.bands.index), special.logit(belt.bands[f"{ours}_{level}"])
            at = special.expit(interpolate.make_interp_spline(grid, band)(special.logit(edges["p"])))
            np.testing.assert_allclose(at, edges[theirs + short], atol=1e-3)


@pytest.mark.parametrize("threshold", [0.8, 0.9])
@pytest.mark.parametrize("df", ["external", "internal"])
@pytest.mark.parametrize("name", SETS)
def test_other_thresholds(name, df, threshold):
    belt = calibration_belt(*sample(name), df=df, threshold=threshold, levels=(0.9,))
    expected = GIVITIR[name][f"{df}_thres{threshold}"]
    assert belt.degree == expected["m"]
    np.testing.assert_allclose(belt.test.pvalue, expected["p"], rtol=1e-8, atol=1e-15)


class TestNullLaw:
    @pytest.mark.parametrize("key", sorted(GIVITIR["null_cdf"]))
    def test_equals_givitir(self, key):
        kind, degree, value = key.split("_")
        first = 1 if kind == "external" else 2
        ours = 1 - null_sf(float(value), 3 - first, int(degree) - first, 0.95)
        np.testing.assert_allclose(ours, GIVITIR["null_cdf"][key], atol=2e-6)

    @pytest.mark.parametrize("t", [5.0, 12.0, 20.0, 60.0])
    @pytest.mark.parametrize("df", [1, 2])
    def test_one_step_equals_adaptive_quadrature(self, df, t):
        least = stats.chi2.isf(0.05, 1)

        def density(z):
            return stats.chi2.sf(t - z, df) * stats.chi2.pdf(z, 1) / 0.05

        value, _ = integrate.quad(density, least, t, epsabs=0, epsrel=1e-12, limit=500)
        np.testing.assert_allclose(null_sf(t, df, 1, 0.95), value + stats.chi2.sf(t, 1) / 0.05, rtol=1e-9)

    @pytest.mark.parametrize("steps", [1, 2, 3])
    def test_equals_simulation(self, steps):
        rng = np.random.default_rng(5)
        draws = rng.chisquare(2, 400_000)
        for _ in range(steps):
            draws = draws + stats.chi2.isf(0.05 * rng.random(draws.size), 1)
        for t in np.quantile(draws, [0.2, 0.8, 0.99]):
            share = float(np.mean(draws > t))
            # Five standard errors of a share in 400,000 draws.
            assert abs(null_sf(t, 2, steps, 0.95) - share) < 5 * np.sqrt(share * (1 - share) / draws.size)

    @pytest.mark.parametrize("steps", [0, 1, 2, 3])
    @pytest.mark.parametrize("tail", [0.5, 0.05, 1e-6])
    def test_quantile_inverts_the_tail(self, steps, tail):
        np.testing.assert_allclose(null_sf(null_quantile(tail, 2, steps, 0.95), 2, steps, 0.95), tail, rtol=1e-7)

    def test_below_the_least_value_the_tail_is_one(self):
        assert null_sf(0.0, 2, 2, 0.95) == 1.0


def test_edges_are_the_extremes_over_the_likelihood_region():
    y, p = sample("pima_train")
    belt = calibration_belt(y, p, levels=(0.95,))
    assert belt.degree == 2
    logits = special.logit(p)
    columns = np.column_stack((np.ones_like(p), logits, logits**2))

    def fall(b):
        def loglik(coefficients):
            eta = columns @ coefficients
            return np.sum(y * eta - np.logaddexp(0, eta))

        return 2 * (loglik(belt.params) - loglik(b))

    limit = null_quantile(0.05, 2, 1, 0.95)
    for place in (5, 25, 44):
        at = belt.bands.index[place]
        row = special.logit(at) ** np.arange(3)
        for sign, column in ((1, "low_0.95"), (-1, "high_0.95")):
            found = optimize.minimize(
                lambda b, sign=sign, row=row: sign * (row @ b),
                belt.params,
                constraints={"type": "ineq", "fun": lambda b: limit - fall(b)},
                method="SLSQP",
                options={"ftol": 1e-12, "maxiter": 500},
            )
            # SLSQP meets its constraint to about 1e-6.
            np.testing.assert_allclose(special.expit(row @ found.x), belt.bands[column].iloc[place], atol=1e-5)


def test_belt_and_test_agree_about_the_diagonal():
    rng = np.random.default_rng(3)
    for slope in (1.0, 0.8, 0.5):
        p = rng.beta(1.0, 1.5, 300)
        y = rng.random(300) < special.expit(slope * special.logit(p))
        belt = calibration_belt(y, p, levels=(0.95,))
        if belt.departures().shape[0]:
            assert belt.test.pvalue < 0.05
        if belt.test.pvalue > 0.05:
            assert belt.departures().empty


def test_departures_name_side_and_stretch():
    y, p = sample("syn_bin")
    belt = calibration_belt(y, p, df="external")
    table = belt.departures().set_index(["level", "side"])
    over, under = (GIVITIR["syn_bin"]["external_belt"][key] for key in ("over95", "under95"))
    # Our grid has steps of at most 0.04.
    assert abs(table.loc[(0.95, "above"), "upper"] - over[1]) < 0.04
    assert abs(table.loc[(0.95, "below"), "lower"] - under[0]) < 0.04
    assert "95% belt above the diagonal" in str(belt)
    assert list(belt.bands.columns) == ["low_0.8", "high_0.8", "low_0.95", "high_0.95"]


def test_weights_are_repetitions():
    y, p = sample("syn_bin")
    y, p = y[:200], p[:200]
    w = np.arange(200) % 4
    weighted = calibration_belt(y, p, freq_weights=w, levels=(0.9,))
    repeated = calibration_belt(np.repeat(y, w), np.repeat(p, w), levels=(0.9,))
    np.testing.assert_allclose(weighted.bands, repeated.bands, rtol=1e-6)
    np.testing.assert_allclose(weighted.test.pvalue, repeated.test.pvalue, rtol=1e-8)


def test_quadratic_region_of_many_rows_is_the_exact_one():
    rng = np.random.default_rng(8)
    p = rng.beta(1.0, 2.0, 20_001)
    y = (rng.random(p.size) < p).astype(float)
    many = calibration_belt(y, p, levels=(0.95,))
    # One row less is on the other side of the switch.
    exact = calibration_belt(y[1:], p[1:], levels=(0.95,))
    np.testing.assert_allclose(
        many.bands.to_numpy(), np.array([np.interp(many.bands.index, exact.bands.index, exact.bands[c])
        for c in exact.bands]).T, atol=2e-3
    )  # fmt: skip


@pytest.mark.parametrize(
    ("y", "p"), [([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9]), ([0, 1, 0, 1], [0.3] * 4)], ids=["separated", "constant"]
)
def test_without_a_finite_fit_the_reason_is_told(y, p):
    with pytest.warns(NotEstimableWarning, match="no finite fit"):
        belt = calibration_belt(y, p)
    assert np.isnan(belt.test.pvalue)
    assert belt.bands.isna().all().all()
    assert belt.departures().empty
    assert "no finite fit" in str(belt)


@pytest.mark.parametrize(
    ("options", "name"),
    [({"levels": ()}, "levels"), ({"levels": (1.5,)}, "levels"), ({"max_degree": 5}, "max_degree"),
     ({"df": "both"}, "df"), ({"df": "internal", "max_degree": 1}, "max_degree"), ({"threshold": 0}, "threshold")],
)  # fmt: skip
def test_bad_arguments_are_named(options, name):
    with pytest.raises(InputError, match=f"`{name}`"):
        calibration_belt([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4], **options)


def test_plot_draws_the_bands():
    y, p = sample("pima_train")
    belt = calibration_belt(y, p)
    ax = belt.plot().axes[0]
    assert [shape.get_label() for shape in ax.collections] == ["95% belt", "80% belt"]
    assert sum(patch.get_height() for patch in ax.child_axes[0].patches) == y.size
    assert ax.get_title(loc="left").startswith("Calibration belt of degree 2")
