"""Binary maps: what the results say, refuse, warn of and store. Numbers are proved in the reference tests."""

from __future__ import annotations

import copy
import json
import pickle
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import special

import calstat as cs
from calstat.exceptions import (
    BoundaryWarning,
    InputError,
    NotDefinedError,
    NotEstimableError,
    RankWarning,
    SeparationWarning,
)

SNAPSHOTS = Path(__file__).parent / "snapshots"


@pytest.fixture(scope="module")
def sample() -> pd.DataFrame:
    """A map of intercept -0.3 and slope 0.7 on the log odds, n = 400."""
    rng = np.random.default_rng(20240229)
    p = special.expit(rng.normal(-0.4, 1.6, size=400))
    y = (rng.random(400) < special.expit(-0.3 + 0.7 * special.logit(p))).astype(int)
    return pd.DataFrame({"y": y, "p": p, "s": special.logit(p), "g": np.arange(400) // 10})


MAPS = [
    (cs.PlattScaling, "s", {}),
    (cs.PlattScaling, "p", {"scores": "probability", "target_correction": False}),
    (cs.LogisticCalibration, "p", {}),
    (cs.LogisticCalibration, "s", {"scores": "logit", "slope": 1}),
    (cs.BetaCalibration, "p", {"parameters": "abm"}),
    (cs.BetaCalibration, "p", {"parameters": "ab"}),
    (cs.BetaCalibration, "p", {"parameters": "am", "monotone": True}),
    (cs.BetaCalibration, "p", {"parameters": "a"}),
]
IDS = [f"{m.__name__}-{'-'.join(map(str, o.values())) or 'default'}" for m, _, o in MAPS]


@pytest.mark.parametrize(("model", "score", "options"), MAPS, ids=IDS)
@pytest.mark.parametrize("cov_type", ["nonrobust", "HC0", "HC1", "cluster"])
def test_a_stored_map_is_the_fitted_one(
    sample: pd.DataFrame, model: type, score: str, options: dict[str, object], cov_type: str
) -> None:
    res = model.from_formula(f"y ~ {score}", sample, groups="g", **options).fit(cov_type)
    same = cs.from_json(res.to_json())
    assert type(same) is type(res)
    assert str(same.summary()) == str(res.summary())
    assert same.params.tolist() == res.params.tolist()
    assert same.predict(sample).tolist() == res.predict(sample).tolist()
    frame = res.get_prediction(sample).summary_frame(0.1)
    pd.testing.assert_frame_equal(same.get_prediction(sample).summary_frame(0.1), frame)
    assert frame.to_numpy()[:, 2:].min() >= 0.0
    assert frame.to_numpy()[:, 2:].max() <= 1.0
    for other in (pickle.loads(pickle.dumps(res)), copy.deepcopy(res)):
        assert str(other.summary()) == str(res.summary())
        assert other.predict([0.3]).tolist() == res.predict([0.3]).tolist()


def test_the_interval_of_a_prediction_is_the_delta_method_on_the_log_odds(sample: pd.DataFrame) -> None:
    res = cs.LogisticCalibration(sample["y"], sample["p"]).fit()
    row = res.get_prediction([0.3]).summary_frame().iloc[0]
    x = np.array([1.0, special.logit(0.3)])
    eta, se = x @ res.params.to_numpy(), np.sqrt(x @ res.cov_params().to_numpy() @ x)
    assert row["mean"] == pytest.approx(special.expit(eta), rel=1e-14)
    assert row["mean_ci_lower"] == pytest.approx(special.expit(eta - 1.959963984540054 * se), rel=1e-12)
    assert row["mean_ci_upper"] == pytest.approx(special.expit(eta + 1.959963984540054 * se), rel=1e-12)


def test_the_glm_behind_a_map_is_the_same_fit(sample: pd.DataFrame) -> None:
    res = cs.BetaCalibration.from_formula("y ~ p", sample).fit()
    np.testing.assert_allclose(res.glm.params, res.params, rtol=1e-10)
    np.testing.assert_allclose(res.glm.bse, res.bse, rtol=1e-8)
    assert res.glm.llf == pytest.approx(res.llf, abs=1e-9)
    assert res.glm.params.index.tolist() == ["a", "b", "c"]


def test_three_tests_of_the_identity_agree_with_each_other_and_with_wald_test(sample: pd.DataFrame) -> None:
    res = cs.BetaCalibration.from_formula("y ~ p", sample).fit()
    lr, wald, score = (res.test_identity(m) for m in ("lr", "wald", "score"))
    by_name = res.wald_test("a = 1, b = 1, c = 0")
    by_dict = res.wald_test({"a": 1, "b": 1, "c": 0})
    by_matrix = res.wald_test((np.eye(3), [1.0, 1.0, 0.0]))
    assert wald.statistic == pytest.approx(by_name.statistic, rel=1e-12)
    assert by_name.statistic == by_dict.statistic == by_matrix.statistic
    assert lr.statistic == pytest.approx(2 * (res.llf - res.llf_identity), rel=1e-12)
    assert lr.df == wald.df == score.df == 3
    assert 0.5 < wald.statistic / lr.statistic < 2.0
    assert 0.5 < score.statistic / lr.statistic < 2.0
    slope = res.wald_test("a = b")
    assert slope.df == 1


def test_hypotheses_that_cannot_be_read_are_refused(sample: pd.DataFrame) -> None:
    res = cs.BetaCalibration.from_formula("y ~ p", sample).fit()
    with pytest.raises(InputError, match=r"`constraints` 'd = 1' cannot be read.*a, b, c"):
        res.wald_test("d = 1")
    with pytest.raises(InputError, match="names 'd'"):
        res.wald_test({"d": 1})
    with pytest.raises(InputError, match=r"one column per coefficient \(3\)"):
        res.wald_test(np.eye(2))


def test_the_identity_is_tested_only_where_there_is_one(sample: pd.DataFrame) -> None:
    with pytest.raises(NotDefinedError, match="targets were corrected"):
        cs.PlattScaling(sample["y"], sample["s"], scores="logit").fit().test_identity()
    with pytest.raises(NotDefinedError, match="a margin has no identity map"):
        cs.PlattScaling(sample["y"], sample["s"], target_correction=False).fit().test_identity()
    plain = cs.PlattScaling(sample["y"], sample["s"], scores="logit", target_correction=False).fit()
    cox = cs.LogisticCalibration(sample["y"], sample["p"]).fit()
    assert plain.test_identity().statistic == pytest.approx(cox.test_identity().statistic, rel=1e-9)


def test_corrected_targets_leave_no_information_criteria(sample: pd.DataFrame) -> None:
    res = cs.PlattScaling(sample["y"], sample["s"]).fit()
    assert np.isnan(res.aic)
    assert np.isnan(res.bic)
    assert "conditional on" in str(res.summary())


def test_robust_covariances_have_no_likelihood_to_profile(sample: pd.DataFrame) -> None:
    res = cs.LogisticCalibration(sample["y"], sample["p"]).fit("HC0")
    with pytest.raises(NotDefinedError, match="use method='wald'"):
        res.conf_int(method="profile")
    with pytest.raises(NotDefinedError, match="use method='wald'"):
        res.test_identity("lr")
    assert res.test_identity().method == "wald"


def test_few_events_bring_profile_intervals(sample: pd.DataFrame) -> None:
    few = sample.iloc[:60]
    small = cs.LogisticCalibration(few["y"], few["p"]).fit()
    assert small.default_interval == "profile"
    pd.testing.assert_frame_equal(small.conf_int(), small.conf_int(method="profile"))
    assert cs.LogisticCalibration(sample["y"], sample["p"]).fit().default_interval == "wald"
    loaded = cs.from_json(small.to_json())
    pd.testing.assert_frame_equal(loaded.conf_int(), small.conf_int())
    with pytest.raises(NotEstimableError, match="needs the data of the fit"):
        loaded.conf_int(alpha=0.2)


def test_alpha_is_honoured_and_printed(sample: pd.DataFrame) -> None:
    res = cs.LogisticCalibration(sample["y"], sample["p"]).fit()
    wide, narrow = res.conf_int(0.01), res.conf_int(0.1)
    half = (wide["upper"] - wide["lower"]) / (narrow["upper"] - narrow["lower"])
    np.testing.assert_allclose(half, 2.5758293035489004 / 1.6448536269514722, rtol=1e-12)
    assert "[0.05" in str(res.summary(alpha=0.1))
    assert "0.95]" in str(res.summary(alpha=0.1))


def test_both_intercepts_are_given_by_name(sample: pd.DataFrame) -> None:
    res = cs.LogisticCalibration(sample["y"], sample["p"]).fit()
    table = res.recalibration_table()
    alone = cs.LogisticCalibration(sample["y"], sample["p"], slope=1).fit()
    assert table["coef"].tolist() == [alone.params["intercept"], *res.params]
    assert table["se"].tolist() == [alone.bse["intercept"], *res.bse]
    assert table.index[0] == "calibration in the large (slope fixed at 1)"
    assert alone.in_the_large is alone
    assert alone.params.index.tolist() == ["intercept"]
    total = special.expit(special.logit(sample["p"]) + alone.params["intercept"]).sum()
    assert total == pytest.approx(sample["y"].sum(), rel=1e-12)  # the score equation of a shift


def test_separation_is_told_once_with_its_cure() -> None:
    y, p = [0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9]
    with pytest.warns(SeparationWarning, match=r"separate events from non-events.*penalty='firth'") as caught:
        res = cs.BetaCalibration(y, p).fit()
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert not res.converged
    assert res.bse.isna().all()
    assert np.isfinite(res.params).all()
    assert np.isfinite(res.predict(p)).all()
    with pytest.raises(NotDefinedError):
        _ = res.glm
    firth = cs.LogisticCalibration(y, p, penalty="firth").fit()
    assert firth.converged
    assert np.isfinite(firth.bse).all()


@pytest.mark.parametrize("cov_type", ["HC0", "HC1", "cluster"])
def test_separated_outcomes_have_no_robust_standard_errors_either(cov_type) -> None:
    groups = {"groups": [0, 1, 2, 3]} if cov_type == "cluster" else {}
    with pytest.warns(SeparationWarning):
        res = cs.LogisticCalibration([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9], **groups).fit(cov_type=cov_type)
    assert res.bse.isna().all()
    assert np.isfinite(res.params).all()


def test_a_single_class_is_told() -> None:
    with pytest.warns(SeparationWarning, match="every outcome is 1"):
        cs.LogisticCalibration([1, 1, 1], [0.1, 0.5, 0.9]).fit()
    with pytest.raises(NotEstimableError, match="needs both classes; every outcome is 0"):
        cs.PlattScaling([0, 0], [0.1, 0.5])


def test_a_constant_score_leaves_a_rate_and_no_slope() -> None:
    with pytest.warns(RankWarning, match=r"rank 1") as caught:
        res = cs.LogisticCalibration([0, 1, 1, 0, 1], [0.4] * 5).fit()
    assert len(caught) == 1
    assert res.predict([0.4])[0] == pytest.approx(0.6, rel=1e-12)
    assert res.bse.isna().all()
    assert res.df_model == 1


def test_a_bound_is_told_and_has_no_standard_error() -> None:
    p = np.linspace(0.05, 0.95, 40)
    y = (np.arange(40) % 3 == 0).astype(int)
    y[:14] = 1
    with pytest.warns(BoundaryWarning, match=r"a, b lies at its bound 0|lies at its bound 0"):
        res = cs.BetaCalibration(y, p, monotone=True).fit()
    assert (res.params[["a", "b"]] >= 0).all()
    assert res.params.eq(0).any()
    assert res.bse[res.params.eq(0)].isna().all()
    assert (np.diff(res.predict(p)) >= -1e-15).all()
    assert "at its bound" in str(res.summary())


def test_m_is_the_score_that_the_map_sends_to_one_half(sample: pd.DataFrame) -> None:
    for parameters in ("abm", "am"):
        res = cs.BetaCalibration(sample["y"], sample["p"], parameters=parameters).fit()
        assert res.predict(res.m) == pytest.approx(0.5, abs=1e-12)
    for parameters in ("ab", "a"):
        res = cs.BetaCalibration(sample["y"], sample["p"], parameters=parameters).fit()
        assert res.m == pytest.approx(0.5, abs=1e-12)


def test_clipping_is_counted_and_printed() -> None:
    y = [0, 1, 0, 1, 1, 0, 1, 0]
    p = [0.0, 1.0, 0.3, 0.6, 0.9, 0.4, 0.35, 0.55]
    res = cs.LogisticCalibration(y, p, eps=1e-6).fit()
    assert "[1e-06, 1 - 1e-06]; 2 values were touched" in " ".join(str(res.summary()).split())


def test_options_that_do_not_go_together_are_refused(sample: pd.DataFrame) -> None:
    y, p = sample["y"], sample["p"]
    with pytest.raises(InputError, match="`slope` must be None"):
        cs.LogisticCalibration(y, p, slope=0.5)
    with pytest.raises(InputError, match="`parameters` must be one of"):
        cs.BetaCalibration(y, p, parameters="amb")  # type: ignore[arg-type]  # the point of the test
    with pytest.raises(NotDefinedError, match="choose one"):
        cs.PlattScaling(y, p, penalty="firth")
    with pytest.raises(NotDefinedError, match="cannot be combined"):
        cs.BetaCalibration(y, p, monotone=True, penalty="firth")
    with pytest.raises(InputError, match="goes with cov_type='cluster'"):
        cs.LogisticCalibration(y, p).fit(groups=sample["g"])
    with pytest.raises(InputError, match="must name the cluster of each row"):
        cs.LogisticCalibration(y, p).fit("cluster")
    with pytest.raises(InputError, match="at least 2 clusters"):
        cs.LogisticCalibration(y, p, groups=np.zeros(400)).fit("cluster")
    with pytest.raises(InputError, match="`cov_type` must be one of"):
        cs.LogisticCalibration(y, p).fit("HC3")  # type: ignore[arg-type]  # the point of the test


def test_fits_leave_the_model_and_the_input_alone(sample: pd.DataFrame) -> None:
    y, p = sample["y"].to_numpy(), sample["p"].to_numpy().copy()
    p[:3] = [0.0, 1.0, 0.5]
    y.flags.writeable = p.flags.writeable = False
    model = cs.BetaCalibration(y, p)
    first, second = model.fit(), model.fit("HC1")
    assert first.params.tolist() == second.params.tolist()
    assert first.cov_type == "nonrobust"
    params, cov, limits = first.params, first.cov_params(), first.conf_int(method="profile")
    params.iloc[0] = cov.iloc[0, 0] = limits.iloc[0, 0] = 99.0
    assert first.params.tolist() == second.params.tolist()
    assert first.cov_params().iloc[0, 0] != 99.0
    assert first.conf_int(method="profile").iloc[0, 0] != 99.0


def test_a_fit_is_quiet(sample: pd.DataFrame) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        res = cs.BetaCalibration(sample["y"], sample["p"]).fit()
        str(res.summary())
        res.plot()


@pytest.mark.parametrize(
    ("name", "model", "options"),
    [
        ("platt", cs.PlattScaling, {"scores": "margin"}),
        ("logistic", cs.LogisticCalibration, {}),
        ("beta", cs.BetaCalibration, {}),
        ("beta_a_firth", cs.BetaCalibration, {"parameters": "a", "penalty": "firth"}),
    ],
)
def test_summaries_read_as_they_did(sample: pd.DataFrame, name: str, model: type, options: dict[str, object]) -> None:
    text = str(model.from_formula("y ~ p", sample, **options).fit().summary()) + "\n"
    assert text == (SNAPSHOTS / f"summary_{name}.txt").read_text(encoding="utf-8")


def test_summaries_have_three_forms(sample: pd.DataFrame) -> None:
    summary = cs.LogisticCalibration(sample["y"], sample["p"]).fit().summary()
    assert summary.as_html().count("<table") == 3
    assert summary.as_latex().count(r"\begin{tabular}") == 3
    assert max(map(len, summary.as_text().splitlines())) <= 100


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[1]", "not a stored calibration map"),
        ('{"format": "calstat-map", "version": 99}', "version 99"),
        ('{"format": "calstat-map", "version": 1, "kind": "BetaCalibration"}', "lacks 'reader'"),
        ('{"format": "calstat-map", "version": 1, "kind": "Nope", "reader": {}, "state": {}}', "unknown kind 'Nope'"),
        ('{"format": "calstat-map", "version": 1, "kind": "BetaCalibration", "reader": {}, "state": {}}', "damaged"),
    ],
)
def test_text_that_is_no_stored_map_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        cs.from_json(text)


def test_files_are_written_whole_or_not_at_all(tmp_path: Path, sample: pd.DataFrame) -> None:
    res = cs.LogisticCalibration(sample["y"], sample["p"]).fit()
    res.save(tmp_path / "map.json")
    assert json.loads((tmp_path / "map.json").read_text(encoding="utf-8"))["kind"] == "LogisticCalibration"
    assert [f.name for f in tmp_path.iterdir()] == ["map.json"]
    assert cs.load(tmp_path / "map.json").predict(0.3) == res.predict(0.3)
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not a text file"):
        cs.load(tmp_path / "binary.json")
    with pytest.raises(InputError, match="holds a LogisticCalibration map"):
        type(cs.BetaCalibration(sample["y"], sample["p"]).fit()).from_json(res.to_json())


def test_labels_that_json_cannot_say_are_refused() -> None:
    y = pd.Series(pd.Categorical([pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-02")] * 4))
    res = cs.LogisticCalibration(y, np.array([0.3, 0.4, 0.6, 0.7, 0.2, 0.5, 0.45, 0.35])).fit()
    with pytest.raises(InputError, match="cannot be stored"):
        res.to_json()
