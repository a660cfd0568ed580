"""What a user does with the multiclass maps: input, prediction, printing, storage, warnings."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from scipy import special

import calstat as cs
from calstat.exceptions import (
    DataWarning,
    InputError,
    MissingDataError,
    NotDefinedError,
    NotEstimableError,
    ProbabilityError,
    RankWarning,
    SeparationWarning,
)

FOLDER = Path(__file__).parent / "reference" / "multiclass"
CASES = json.loads((FOLDER / "cases.json").read_text())
SPECIES = ("setosa", "versicolor", "virginica")
FORMULA = "species ~ p_setosa + p_versicolor + p_virginica"


def flat(summary: Any) -> str:
    """Text without line breaks."""
    return " ".join(str(summary).split())


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    p = rng.dirichlet([1.5, 1.5, 1.5], size=400)
    q = special.softmax(np.log(p) @ np.array([[0.7, 0.1, 0.0], [0.0, 0.8, 0.1], [0.0, 0.1, 0.9]]).T, axis=1)
    y = (q.cumsum(axis=1)[:, :-1] < rng.random((400, 1))).sum(axis=1)
    table = pd.DataFrame(p, columns=[f"p_{s}" for s in SPECIES], index=pd.RangeIndex(1000, 1400))
    return table.assign(species=np.array(SPECIES)[y], code=y, w=rng.integers(0, 3, 400), g=np.arange(400) // 8)


def columns(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[[f"p_{s}" for s in SPECIES]]


MODELS: list[Any] = [
    lambda y, p, **k: cs.TemperatureScaling(y, p, scores="probability", **k),
    lambda y, p, **k: cs.VectorScaling(y, p, scores="probability", **k),
    lambda y, p, **k: cs.VectorScaling(y, p, scores="probability", slopes="common", **k),
    lambda y, p, **k: cs.MatrixScaling(y, p, scores="probability", penalty=cs.L2(1e-3, center="identity"), **k),
    cs.DirichletCalibration,
    lambda y, p, **k: cs.DirichletCalibration(y, p, penalty=cs.ODIR(0.1), **k),
]
IDS = ["temperature", "vector", "common", "matrix-l2", "dirichlet", "dirichlet-odir"]
each_model = pytest.mark.parametrize("make", MODELS, ids=IDS)


@each_model
def test_arrays_frames_and_labels_give_one_fit(make: Any, frame: pd.DataFrame) -> None:
    y, p = frame["species"], columns(frame)
    res = make(y, p).fit()
    assert res.classes == SPECIES
    for other in (
        make(frame["code"].to_numpy(), p.to_numpy()),
        make(y, p[reversed(p.columns)]),  # columns are matched to classes by name
        make(pd.Categorical(y, categories=SPECIES), p.to_numpy()),
        make(y.sample(frac=1, random_state=1), p),  # Series are aligned by their index
        make(y.to_numpy(), p.rename(columns=lambda c: c.removeprefix("p_"))),
    ):
        found = other.fit()
        assert np.isclose(found.llf, res.llf, rtol=1e-12)
        reordered = found.predict(p.iloc[:3]) if list(found._reader.names) == list(p.columns) else None
        if reordered is not None:
            np.testing.assert_allclose(reordered, res.predict(p.iloc[:3]), atol=1e-10)


def test_formula_drops_and_counts_missing_rows(frame: pd.DataFrame) -> None:
    holes = frame.copy()
    holes.loc[1003, "p_setosa"] = np.nan
    holes.loc[1007, "species"] = None
    res = cs.DirichletCalibration.from_formula(FORMULA, holes, freq_weights="w", groups="g").fit(cov_type="cluster")
    clean = holes.drop(index=[1003, 1007])
    same = cs.DirichletCalibration(clean["species"], columns(clean), freq_weights=clean["w"], groups=clean["g"]).fit(
        cov_type="cluster"
    )
    np.testing.assert_allclose(res.params, same.params, atol=1e-12)
    np.testing.assert_allclose(res.cov_params(), same.cov_params(), atol=1e-14)
    assert "Rows dropped (missing)" in str(res.summary())
    predicted = res.predict(holes)
    assert predicted.index.equals(holes.index)
    assert predicted.loc[1003].isna().all()
    assert predicted.drop(index=1003).notna().all(axis=None)
    with pytest.raises(MissingDataError):
        cs.DirichletCalibration.from_formula(FORMULA, holes, missing="raise")


@each_model
def test_predictions_have_the_shape_of_what_is_given(make: Any, frame: pd.DataFrame) -> None:
    p = columns(frame)
    res = make(frame["species"], p).fit()
    given = res.predict(p.iloc[:5])
    assert isinstance(given, pd.DataFrame)
    assert given.index.equals(p.index[:5])
    assert list(given.columns) == list(p.columns)
    np.testing.assert_allclose(res.predict(p.to_numpy()[:5]), given, atol=1e-15)
    np.testing.assert_allclose(given.sum(axis=1), 1.0, atol=1e-12)
    wide = res.predict(frame.iloc[:5])
    assert list(wide.columns) == list(SPECIES)
    np.testing.assert_allclose(res.fittedvalues.iloc[:5], given, atol=1e-15)
    holes = p.iloc[:5].copy()
    holes.iloc[2, 1] = np.nan
    assert res.predict(holes).isna().all(axis=1).tolist() == [False, False, True, False, False]
    table = res.get_prediction(p.iloc[:5]).summary_frame(alpha=0.1)
    assert table.index.names == ["row", "class"]
    np.testing.assert_allclose(table["mean"].to_numpy().reshape(5, 3), given, atol=1e-15)
    assert (table["mean_ci_lower"] < table["mean"]).all()
    assert (table["mean"] < table["mean_ci_upper"]).all()
    assert table["mean_ci_upper"].max() <= 1.0


def test_a_binary_temperature_answers_in_the_shape_of_the_question() -> None:
    case = CASES["TMP-007"]
    y, p = np.array(case["data"]["y"]), np.array(case["data"]["p"])
    res = cs.TemperatureScaling(y, p, scores="probability").fit()
    assert np.isclose(res.temperature, case["values"]["temperature"], rtol=1e-6)
    np.testing.assert_allclose(res.predict(p), case["values"]["fitted"], rtol=1e-6)
    assert res.predict(p).shape == (8,)
    assert res.predict(p[:, None]).shape == (8, 1)
    both = res.predict(np.column_stack([1 - p, p]))
    np.testing.assert_allclose(both, np.column_stack([1 - res.predict(p), res.predict(p)]), atol=1e-15)
    assert isinstance(res.predict(pd.Series(p, index=list("abcdefgh"))), pd.Series)
    assert len(res.get_prediction(p).summary_frame()) == 8
    pair = cs.TemperatureScaling(y, np.column_stack([1 - p, p]), scores="probability").fit()
    assert np.isclose(pair.temperature, res.temperature, rtol=1e-9)
    assert pair.predict(np.column_stack([1 - p, p])).shape == (8, 2)
    words = cs.TemperatureScaling(np.where(y == 1, "ill", "well"), p, scores="probability", event="ill").fit()
    assert words.classes == ("well", "ill")
    assert words.temperature == res.temperature
    table = pd.DataFrame({"y": y, "p": p})
    assert cs.TemperatureScaling.from_formula("y ~ p", table, scores="probability").fit().llf == res.llf


def test_temperature_on_a_public_case() -> None:
    case = CASES["TMP-001"]
    y, z = case["data"]["y"], np.array(case["data"]["logits"])
    res = cs.TemperatureScaling(y, z).fit()
    assert np.isclose(res.temperature, case["values"]["temperature"], rtol=1e-6)
    assert np.isclose(-res.llf_identity / 12, case["values"]["nll_before"], rtol=1e-6)
    assert np.isclose(-res.llf / 12, case["values"]["nll_after"], rtol=1e-6)
    np.testing.assert_allclose(res.predict(z), case["values"]["fitted"], rtol=1e-6)
    shifted = cs.TemperatureScaling(y, z + np.arange(12)[:, None]).fit()
    probabilities = cs.TemperatureScaling(y, special.softmax(z, axis=1), scores="probability").fit()
    assert np.isclose(shifted.temperature, res.temperature, rtol=1e-12)
    assert np.isclose(probabilities.temperature, res.temperature, rtol=1e-9)
    again = cs.TemperatureScaling(y, res.predict(z), scores="probability").fit()
    assert np.isclose(again.temperature, 1.0, rtol=1e-9)


def test_vector_scaling_and_dirichlet_on_public_cases() -> None:
    case = CASES["MAT-002"]
    res = cs.VectorScaling(case["data"]["y"], case["data"]["logits"]).fit()
    np.testing.assert_allclose(res.scales, case["values"]["weights"], rtol=1e-4)
    b = res.bias.to_numpy()
    np.testing.assert_allclose(b[1:] - b[0], case["values"]["bias_differences"], atol=1e-4)
    case = CASES["DIR-001"]
    res = cs.DirichletCalibration(case["data"]["y"], case["data"]["P"]).fit()
    np.testing.assert_allclose(res.predict(case["data"]["P"]), case["values"]["fitted"], atol=1e-5)
    case = CASES["DIR-003"]
    zeros = cs.DirichletCalibration(case["data"]["y"], case["data"]["P"], penalty=cs.ODIR(0.01)).fit()
    predicted = zeros.predict(case["data"]["P"])
    assert np.isfinite(predicted).all()
    np.testing.assert_allclose(predicted.sum(axis=1), 1.0, atol=1e-12)
    given = np.array(case["data"]["P"])
    touched = int(((given < 1e-12) | (given > 1 - 1e-12)).sum())
    assert f"{touched} were touched" in flat(zeros.summary())


@each_model
def test_weights_are_copies_and_inputs_stay_as_they_are(make: Any, frame: pd.DataFrame) -> None:
    y, p, w = frame["code"].to_numpy(), columns(frame).to_numpy(), frame["w"].to_numpy()
    for array in (y, p, w):
        array.setflags(write=False)
    before = p.copy()
    res = make(y, p, freq_weights=w).fit()
    same = make(np.repeat(y, w), np.repeat(p, w, axis=0)).fit()
    np.testing.assert_array_equal(p, before)
    np.testing.assert_allclose(res.params, same.params, atol=1e-9)
    np.testing.assert_allclose(res.cov_params(), same.cov_params(), atol=1e-10)
    assert res.nobs == w.sum()
    for name in ("llf", "aic", "bic", "llf_null", "llf_identity"):
        assert np.isclose(getattr(res, name), getattr(same, name), rtol=1e-12), name
    half = np.where(np.arange(len(y)) < 200, 0.5, 1.0)
    with pytest.raises(InputError, match="whole numbers"):
        make(y, p, freq_weights=half)


@each_model
def test_stored_copied_and_pickled_maps_are_the_same(make: Any, frame: pd.DataFrame, tmp_path: Path) -> None:
    p = columns(frame)
    res = make(frame["species"], p).fit()
    res.save(tmp_path / "map.json")
    for other in (cs.load(tmp_path / "map.json"), pickle.loads(pickle.dumps(res)), copy.deepcopy(res)):
        assert str(other.summary()) == str(res.summary())
        np.testing.assert_array_equal(other.predict(p), res.predict(p))
        np.testing.assert_allclose(other.cov_params(), res.cov_params(), rtol=1e-12)
        np.testing.assert_allclose(
            other.get_prediction(p.iloc[:4]).summary_frame(), res.get_prediction(p.iloc[:4]).summary_frame()
        )
    with pytest.raises(NotEstimableError, match="needs the data"):
        _ = cs.load(tmp_path / "map.json").fittedvalues


@each_model
def test_fit_leaves_the_model_alone(make: Any, frame: pd.DataFrame) -> None:
    model = make(frame["species"], columns(frame))
    first = model.fit()
    robust = model.fit(cov_type="HC0")
    assert first is not robust
    np.testing.assert_array_equal(model.fit().bse, first.bse)
    assert "Date" not in str(first.summary())


@pytest.mark.parametrize("K", [3, 10, 30])
def test_summaries_stay_readable(K: int) -> None:
    rng = np.random.default_rng(K)
    p = rng.dirichlet(np.full(K, 0.8), size=1500)
    y = (p.cumsum(axis=1)[:, :-1] < rng.random((1500, 1))).sum(axis=1)
    text = str(cs.DirichletCalibration(y, p, penalty=cs.ODIR(1.0)).fit().summary())
    lines = text.splitlines()
    assert len(lines) < 120
    assert max(len(line) for line in lines) <= 110
    if K > 5:
        assert "Largest departures from the identity off the diagonal of W (15 of" in text
    assert ("W: weight of the column's score" in text) == (K == 10)
    html = cs.VectorScaling(y, p, scores="probability").fit().summary().as_html()
    assert "<table" in html


def test_summary_without_a_covariance() -> None:
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.full(45, 0.8), size=600)
    y = np.concatenate([np.arange(45), rng.integers(0, 45, 555)])
    res = cs.DirichletCalibration(y, p, penalty=cs.ODIR(10.0)).fit()
    assert res.bse.isna().all()
    assert np.isnan(res.edf)
    assert np.isnan(res.aic)
    text = str(res.summary())
    assert "fit(cov=True)" in text
    assert len(text.splitlines()) < 100
    again = cs.from_json(res.to_json())
    np.testing.assert_array_equal(again.predict(p), res.predict(p))
    assert 0.0 < res.test_identity(n_resamples=19, rng=1).pvalue <= 1.0


def test_huge_maps_are_refused_with_the_memory_they_would_need() -> None:
    p = np.full((1000, 1000), 1e-3)
    with pytest.raises(NotEstimableError, match=r"1000 classes has 1001000 coefficients and needs about 24 GB"):
        cs.DirichletCalibration(np.arange(1000), p, penalty=cs.ODIR(1.0)).fit()


def test_separation_is_told_once_with_its_cure(frame: pd.DataFrame) -> None:
    z = np.repeat(np.eye(3) * 4.0, 5, axis=0) + np.random.default_rng(4).normal(size=(15, 3)) * 0.1
    y = np.repeat([0, 1, 2], 5)
    for model in (cs.TemperatureScaling(y, z), cs.VectorScaling(y, z), cs.MatrixScaling(y, z)):
        with pytest.warns(SeparationWarning, match="no finite maximum") as told:
            res = model.fit()
        assert len(told) == 1
        assert told[0].filename == __file__
        assert not res.converged
        assert res.bse.isna().any()
        assert np.isfinite(res.predict(z)).all()
        assert "no finite maximum" in flat(res.summary())
        assert np.isnan(res.test_identity("wald").pvalue)
        assert 0 < res.test_identity("pseudo_label", rng=1, n_resamples=99).pvalue <= 1
    # ODIR leaves the diagonal free, which these scores separate too; L2 is the cure.
    assert cs.MatrixScaling(y, z, penalty=cs.L2(0.1)).fit().bse.notna().all()


def test_collinear_logits_lose_the_directions_that_they_do_not_determine() -> None:
    rng = np.random.default_rng(5)
    z = rng.normal(size=(500, 4)).astype(np.float32)
    z -= z.mean(axis=1, keepdims=True)  # a constant sum, up to single precision
    y = np.array([rng.choice(4, p=special.softmax(row)) for row in z.astype(float)])
    with pytest.warns(RankWarning, match="3 direction") as told:
        res = cs.MatrixScaling(y, z).fit()
    assert len(told) == 1
    assert res.df_model == 4 * 3  # K (K - 1)
    assert res.converged
    assert res.bse.iloc[:16].isna().all()
    assert res.bse.iloc[16:].notna().all()
    assert res.estimable.to_list() == [False] * 16 + [True] * 4
    assert np.isfinite(res.get_prediction(z[:5]).summary_frame()).all(axis=None)
    assert res.test_identity("lr").df == 12
    assert res.test_identity("wald").df == 12
    assert "not determined" in str(res.summary())
    dropped = z.copy()
    dropped[:, 0] = 0.0
    with pytest.warns(RankWarning):
        constant = cs.MatrixScaling(y, dropped).fit()
    assert constant.df_model == 12
    assert cs.MatrixScaling(y, z, penalty=cs.L2(0.01)).fit().bse.notna().all()


def test_an_unseen_class() -> None:
    rng = np.random.default_rng(6)
    p = rng.dirichlet(np.ones(3), size=60)
    y = rng.integers(0, 2, 60)
    with pytest.raises(NotEstimableError, match="class 2 does not occur"):
        cs.VectorScaling(y, p, scores="probability").fit()
    with pytest.warns(DataWarning, match="class 2 does not occur"):
        res = cs.DirichletCalibration(y, p, penalty=cs.L2(0.1)).fit()
    assert np.isfinite(res.params).all()
    with pytest.raises(NotDefinedError, match="does not occur"):
        _ = res.mnlogit


def test_errors_name_argument_and_remedy(frame: pd.DataFrame) -> None:
    y, p = frame["code"].to_numpy(), columns(frame).to_numpy()
    with pytest.raises(InputError, match="one score per class"):
        cs.VectorScaling(y, p[:, 0])
    with pytest.raises(ProbabilityError, match="rows of `p` must sum to 1"):
        cs.DirichletCalibration(y, p * 0.9)
    with pytest.raises(InputError, match="`penalty` must be None"):
        cs.DirichletCalibration(y, p, penalty=0.1)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="`lam` must be a finite number"):
        cs.ODIR(-1.0)
    with pytest.raises(InputError, match="for fits without a penalty"):
        cs.DirichletCalibration(y, p, penalty=cs.ODIR(1.0)).fit(cov_type="nonrobust")
    with pytest.raises(InputError, match="is for penalised fits"):
        cs.DirichletCalibration(y, p).fit(cov_type="bayes")
    with pytest.raises(InputError, match="`groups` must name"):
        cs.DirichletCalibration(y, p).fit(cov_type="cluster")
    with pytest.raises(InputError, match="`folds`=500"):
        cs.DirichletCalibration(y, p).fit_cv(folds=500)
    with pytest.raises(InputError, match="`penalties` must be one of"):
        cs.DirichletCalibration(y, p).fit_cv("ridge")
    with pytest.raises(InputError, match="`eps` must lie below"):
        cs.DirichletCalibration(y, p).fit().interpretation_points(0.4)
    res = cs.DirichletCalibration(y, p).fit()
    with pytest.raises(InputError, match="must be a matrix with 3 columns"):
        res.predict(p[0])
    with pytest.raises(InputError, match="`event` goes with one score"):
        cs.TemperatureScaling(y, p, scores="probability", event=1)


def test_forms_of_the_dirichlet_map(frame: pd.DataFrame) -> None:
    p = columns(frame)
    res = cs.DirichletCalibration(frame["species"], p).fit()
    form = res.canonical()
    assert (form.A.min() == 0.0).all()
    np.testing.assert_allclose(form.c, res.predict(np.full((1, 3), 1 / 3))[0], atol=1e-12)
    assert (form.A_lower <= form.A).all(axis=None)
    assert (form.A_upper >= form.A).all(axis=None)
    assert len(form.to_frame()) == 15
    assert "Canonical form" in str(form.summary())
    model = res.generative()
    again = cs.DirichletCalibration.from_generative(model.alpha, model.prior, classes=SPECIES)
    np.testing.assert_allclose(again.predict(p.to_numpy()), res.predict(p), atol=1e-12)
    np.testing.assert_allclose(again.canonical().A, form.A, atol=1e-12)
    assert "built from a generative model" in str(again.summary())
    other = res.generative(shift=0.5)
    same = cs.DirichletCalibration.from_generative(other.alpha, other.prior)
    np.testing.assert_allclose(same.predict(p.to_numpy()), res.predict(p), atol=1e-12)
    points = res.interpretation_points(0.01)
    np.testing.assert_allclose(points["calibrated"].loc["uniform"], form.c, atol=1e-12)
    np.testing.assert_allclose(points["prediction"].sum(axis=1), 1.0)
    assert list(points.index) == ["uniform", *(f"no {s}" for s in SPECIES)]


def test_a_generative_model_is_recovered() -> None:
    """Bayes' rule by hand: the map is the posterior of Dirichlet laws within classes."""
    alpha, prior = np.array([[5.0, 2.0, 1.0], [1.0, 4.0, 2.0], [2.0, 1.0, 6.0]]), np.array([0.5, 0.3, 0.2])
    res = cs.DirichletCalibration.from_generative(alpha, prior)
    q = np.random.default_rng(7).dirichlet(np.ones(3), size=20)
    log_beta = special.gammaln(alpha).sum(axis=1) - special.gammaln(alpha.sum(axis=1))
    joint = prior * np.exp((np.log(q)[:, None, :] * (alpha - 1.0)).sum(axis=2) - log_beta)
    np.testing.assert_allclose(res.predict(q), joint / joint.sum(axis=1, keepdims=True), rtol=1e-12)


def test_pictures_and_the_table_of_a_choice(frame: pd.DataFrame) -> None:
    res = cs.DirichletCalibration.from_formula(FORMULA, frame).fit_cv("odir", progress=False)
    assert len(res.selection.table) == 36
    assert res.selection.table["chosen"].sum() == 1
    assert res.selection.table["mean"].idxmin() == str(res.selection.chosen)
    assert "<- chosen" in str(res.selection.summary())
    for figure in (res.plot(), res.selection.plot()):
        assert len(figure.axes) >= 1
        plt.close(figure)
    ridge = cs.DirichletCalibration.from_formula(FORMULA, frame).fit_cv(
        "l2", folds=5, shuffle=True, rng=1, progress=False
    )
    assert np.unique(ridge.selection.folds).size == 5
    plt.close(ridge.selection.plot())
    again = cs.DirichletCalibration.from_formula(FORMULA, frame).fit_cv(
        "l2", folds=5, shuffle=True, rng=1, progress=False
    )
    pd.testing.assert_frame_equal(again.selection.table, ridge.selection.table)


def test_the_test_of_a_chosen_penalty_redoes_the_choice(frame: pd.DataFrame) -> None:
    grid = [cs.ODIR(0.1), cs.ODIR(10.0)]
    res = cs.DirichletCalibration.from_formula(FORMULA, frame).fit_cv(grid, progress=False)
    text = " ".join(str(res.summary()).split())
    assert "The penalty was chosen among 2 by cross-validation in 3 folds of these rows" in text
    assert str(cs.from_json(res.to_json()).summary()) == str(res.summary())
    test = res.test_identity(n_resamples=19, rng=1)
    assert test.distribution == "pseudo-label"
    assert test.pvalue == 0.05  # no draw comes near: these scores are far from calibrated
    assert "chosen anew" in test.note
    barred = cs.DirichletCalibration.from_formula(FORMULA, frame).fit_cv([cs.L2(0.1)], progress=False)
    with pytest.raises(NotDefinedError, match="away from the identity"):
        barred.test_identity()


def test_the_canonical_form_prints_what_can_be_read() -> None:
    rng = np.random.default_rng(8)
    p = rng.dirichlet(np.full(7, 0.8), size=3000)
    y = (p.cumsum(axis=1)[:, :-1] < rng.random((3000, 1))).sum(axis=1)
    form = cs.DirichletCalibration(y, p).fit().canonical()
    text, table = str(form), form.to_frame()
    assert "Largest entries of A off the diagonal (15 of 42)" in text
    assert "nan" not in text
    assert len(table) == 49 + 7 + 7
    # The standard errors belong to log c, and its limits to them; c has limits of its own.
    assert table.loc[[f"c[{k}]" for k in range(7)], "se"].isna().all()
    log_c = table.loc[[f"log c[{k}]" for k in range(7)]]
    np.testing.assert_allclose(log_c["upper"] - log_c["coef"], 1.959963984540054 * form.log_c_se, rtol=1e-12)
    np.testing.assert_allclose(log_c["coef"], np.log(form.c) - np.log(form.c).mean(), atol=1e-12)


def test_a_summary_without_a_covariance_says_how_to_get_one(frame: pd.DataFrame) -> None:
    model = cs.DirichletCalibration.from_formula(FORMULA, frame, penalty=cs.L2(0.1))
    text = " ".join(str(model.fit(cov=False).summary()).split())
    assert "there are no standard errors, AIC or BIC: refit with fit(cov=True)." in text
    assert "equivalent form that the penalty likes best" in " ".join(str(model.fit().summary()).split())
    assert "GB" not in text


SNAPSHOTS = Path(__file__).parent / "snapshots"


def printed(frame: pd.DataFrame) -> dict[str, str]:
    temperature = cs.TemperatureScaling.from_formula(FORMULA, frame, scores="probability", eps=1e-12).fit()
    vector = cs.VectorScaling.from_formula(FORMULA, frame, scores="probability", eps=1e-12).fit()
    full = cs.DirichletCalibration.from_formula(FORMULA, frame).fit()
    penalised = cs.MatrixScaling.from_formula(FORMULA, frame, scores="probability", penalty=cs.ODIR(0.1)).fit()
    rng = np.random.default_rng(8)
    p = rng.dirichlet(np.full(10, 0.8), size=1500)
    ten = cs.DirichletCalibration((p.cumsum(axis=1)[:, :-1] < rng.random((1500, 1))).sum(axis=1), p).fit()
    return {
        "temperature": str(temperature.summary()),
        "vector": str(vector.summary()),
        "dirichlet": str(full.summary()),
        "matrix_odir": str(penalised.summary()),
        "dirichlet_ten_classes": str(ten.summary()),
        "canonical": str(full.canonical().summary()),
        "comparison": str(cs.compare_models([temperature, vector, full])),
        "identity_test": str(full.test_identity()),
    }


def test_what_is_printed(frame: pd.DataFrame) -> None:
    """Text of summaries as stored; a change of a file is read in review."""
    for name, text in printed(frame).items():
        stored = (SNAPSHOTS / f"summary_softmax_{name}.txt").read_text(encoding="utf-8")
        assert text.rstrip() == stored.rstrip(), name


def test_the_canonical_form_is_drawn_with_its_marks() -> None:
    df = cs.datasets.load_vehicle()
    form = cs.DirichletCalibration(df["vehicle"], df.filter(like="p_")).fit().canonical()
    figure = form.plot()
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert len(texts) >= form.A.size + form.c.size
    diagonal_excludes_one = form.A_upper.to_numpy().diagonal() < 1.0
    assert sum("*" in text for text in texts) >= diagonal_excludes_one.sum() > 0
