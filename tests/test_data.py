"""The door for tables and formulas."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

import calstat as cs
from calstat._data import read_arrays, read_formula, read_new
from calstat.exceptions import InputError, MissingDataError

FRAME = pd.DataFrame(
    {
        "y": [0, 1, 0, 1, 1, 0, 1, 0],
        "p": [0.1, 0.7, 0.3, 0.6, 0.9, 0.4, 0.35, 0.55],
        "risk score (%)": [10.0, 70.0, 30.0, 60.0, 90.0, 40.0, 35.0, 55.0],
        "outcome": ["no", "yes", "no", "yes", "yes", "no", "yes", "no"],
        "w": [1, 2, 1, 1, 0, 3, 1, 1],
        "ward": ["a", "a", "b", "b", "c", "c", "d", "d"],
    },
    index=list("abcdefgh"),
)


def _read(formula: str, data: object = FRAME, **options: object) -> object:
    return read_formula(formula, data, **{"freq_weights": None, "groups": None, "missing": None, **options})


def test_a_formula_gives_what_the_columns_give() -> None:
    by_formula = cs.LogisticCalibration.from_formula("y ~ p", FRAME).fit()
    by_arrays = cs.LogisticCalibration(FRAME["y"].to_numpy(), FRAME["p"].to_numpy()).fit()
    assert by_formula.params.tolist() == by_arrays.params.tolist()
    assert by_formula.outcome == "y"
    assert by_formula.fittedvalues.index.tolist() == list("abcdefgh")


def test_terms_are_computed_and_computed_again_for_new_rows() -> None:
    quoted = cs.LogisticCalibration.from_formula('y ~ I(Q("risk score (%)") / 100)', FRAME).fit()
    plain = cs.LogisticCalibration.from_formula("y ~ p", FRAME).fit()
    np.testing.assert_allclose(quoted.params, plain.params, rtol=1e-12)
    new = pd.DataFrame({"risk score (%)": [20.0, 80.0]}, index=["x", "z"])
    np.testing.assert_allclose(quoted.predict(new), plain.predict([0.2, 0.8]), rtol=1e-12)
    logits = cs.LogisticCalibration.from_formula("y ~ logit(p)", FRAME, scores="logit").fit()
    np.testing.assert_allclose(logits.params, plain.params, rtol=1e-12)


def test_columns_with_odd_names_are_quoted() -> None:
    frame = FRAME.rename(columns={"p": 'p "α" 🙂'})
    res = cs.LogisticCalibration.from_formula("y ~ Q('p \"α\" 🙂')", frame).fit()
    assert res.predict(frame).shape == (8,)
    assert 'p "α" 🙂' in str(res.summary())


def test_strings_in_the_outcome_keep_their_names() -> None:
    res = cs.LogisticCalibration.from_formula("outcome ~ p", FRAME, event="yes").fit()
    assert res.event == "yes"
    assert "'yes' (against 'no')" in str(res.summary())
    computed = cs.LogisticCalibration.from_formula("(outcome == 'yes') ~ p", FRAME).fit()
    assert computed.params.tolist() == res.params.tolist()


@pytest.mark.parametrize("missing_in", ["y", "p", "w", "ward"])
def test_rows_with_a_missing_value_are_dropped_together_and_counted(missing_in: str) -> None:
    frame = FRAME.astype({"y": "Int64", "p": "Float64", "w": "Int64", "ward": object}).copy()
    frame.loc["c", missing_in] = None
    model = cs.LogisticCalibration.from_formula("y ~ p", frame, freq_weights="w", groups="ward")
    res = model.fit(cov_type="cluster")
    kept = FRAME.drop(index="c")
    expected = cs.LogisticCalibration(kept["y"], kept["p"], freq_weights=kept["w"], groups=kept["ward"])
    reference = expected.fit(cov_type="cluster")
    assert model.n_dropped == 1
    np.testing.assert_allclose(res.params, reference.params, rtol=1e-12)
    np.testing.assert_allclose(res.bse, reference.bse, rtol=1e-10)
    assert "Rows dropped (missing)" in str(res.summary())
    if missing_in in {"y", "p"}:
        with pytest.raises(MissingDataError, match=r"\[2\]"):
            cs.LogisticCalibration.from_formula("y ~ p", frame, missing="raise")


def test_groups_given_to_fit_follow_the_dropped_rows() -> None:
    frame = FRAME.copy()
    frame.loc["c", "p"] = np.nan
    model = cs.LogisticCalibration.from_formula("y ~ p", frame)
    by_name = model.fit(cov_type="cluster", groups="ward")
    whole = model.fit(cov_type="cluster", groups=frame["ward"].to_numpy())
    shuffled = model.fit(cov_type="cluster", groups=frame["ward"].drop("c").iloc[::-1])
    assert by_name.bse.tolist() == whole.bse.tolist() == shuffled.bse.tolist()


def test_arrays_refuse_missing_values_unless_told_to_drop_them() -> None:
    y, p = [0, 1, 0, 1, 0, 1], [0.1, 0.7, np.nan, 0.6, 0.5, 0.4]
    with pytest.raises(MissingDataError, match=r"p\[2\]"):
        cs.LogisticCalibration(y, p)
    assert cs.LogisticCalibration(y, p, missing="drop").nobs == 5
    assert cs.LogisticCalibration(y, pd.DataFrame({"p": p})).nobs == 5
    with pytest.raises(MissingDataError, match="every one of the 2 rows"):
        cs.LogisticCalibration([0, 1], [np.nan, np.nan], missing="drop")


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("y ~ nothing", r"cannot be evaluated.*The columns are 'y', 'p'"),
        ("y ~ p +", r"cannot be evaluated"),
        ("y", r"must be a string such as 'y ~ p'"),
        ("y ~ 1", r"must name a score"),
        ("y + p ~ p", r"must name one outcome"),
        ("~ p", r"must name one outcome"),
        ("y ~ ward", r"must be numeric"),
        ("y ~ C(ward)", r"one column per term"),
        ("y ~ p + w", r"takes one score; got 2 \(p, w\)"),
        (7, r"must be a string"),
    ],
)
def test_formulas_that_cannot_be_used_are_refused(formula: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        cs.LogisticCalibration.from_formula(formula, FRAME)


def test_tables_and_columns_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="`data` must be a DataFrame or a dict"):
        _read("y ~ p", [1, 2])
    with pytest.raises(InputError, match=r"`freq_weights`='weight' is not a column"):
        _read("y ~ p", freq_weights="weight")
    with pytest.raises(InputError, match=r"one value per row of `data` \(8\), got 2"):
        _read("y ~ p", groups=[1, 2])
    with pytest.raises(InputError, match="two columns of the same name"):
        _read("y ~ p", pd.concat([FRAME, FRAME[["p"]]], axis=1))
    with pytest.raises(InputError, match="same number of rows"):
        read_arrays([0, 1], [0.1], freq_weights=None, groups=None, missing="drop")


def test_new_scores_keep_the_form_in_which_they_came() -> None:
    res = cs.LogisticCalibration.from_formula("y ~ p", FRAME).fit()
    new = pd.DataFrame({"other": ["u", "v", "w"], "p": [0.2, np.nan, 0.8]}, index=["r1", "r2", "r3"])
    predicted = res.predict(new)
    assert predicted.index.tolist() == ["r1", "r2", "r3"]
    assert np.isnan(predicted["r2"])
    assert predicted.notna().sum() == 2
    low, high = predicted["r1"], predicted["r3"]
    assert res.predict(0.2) == low
    assert res.predict([0.2, 0.8]).tolist() == [low, high]
    assert res.predict(np.array([[0.2], [0.8]])).shape == (2, 1)
    assert res.predict({"p": [0.2]}).tolist() == [low]
    assert res.predict(pd.Series([0.2], index=["k"])).index.tolist() == ["k"]
    assert res.predict(pd.DataFrame({"another name": [0.2]})).tolist() == [low]


def test_two_columns_in_give_two_columns_out() -> None:
    res = cs.LogisticCalibration.from_formula("outcome ~ p", FRAME, event="yes").fit()
    single = res.predict([0.2, 0.8])
    pair = res.predict(np.array([[0.8, 0.2], [0.2, 0.8]]))
    np.testing.assert_array_equal(pair, np.stack([1 - single, single], axis=1))
    frame = pd.DataFrame({"p_yes": [0.2, 0.8], "p_no": [0.8, 0.2]}, index=["r", "s"])
    out = res.predict(frame)
    assert out.columns.tolist() == ["p_yes", "p_no"]
    assert out.index.tolist() == ["r", "s"]
    np.testing.assert_array_equal(out["p_yes"], single)


@pytest.mark.parametrize(
    ("new", "error", "message"),
    [
        (
            pd.DataFrame({"a": [0.1], "b": [0.2], "c": [0.3]}),
            InputError,
            r"must have a column 'p'.*columns are 'a', 'b'",
        ),
        ([0.1, np.nan], MissingDataError, r"the first is row 1"),
        ([1.1], ValueError, r"must lie in \[0, 1\]"),
        ([], InputError, r"`new` is empty"),
        (["x"], InputError, r"must be numeric"),
        (np.ones((2, 3)) / 3, InputError, r"got shape \(2, 3\)"),
        ([[0.5, 0.6]], InputError, r"sum to 1"),
    ],
)
def test_new_scores_that_cannot_be_used_are_refused(new: object, error: type[Exception], message: str) -> None:
    res = cs.LogisticCalibration.from_formula("y ~ p", FRAME).fit()
    with pytest.raises(error, match=message):
        res.predict(new)


def test_a_matrix_of_scores_is_read_row_by_row() -> None:
    reader = read_arrays(
        [0, 1], pd.DataFrame({"a": [0.1, 0.2], "b": [0.9, 0.8]}), freq_weights=None, groups=None, missing=None
    ).reader
    assert read_new(pd.DataFrame({"b": [0.4], "a": [0.6]}), reader).values.tolist() == [[0.6, 0.4]]
    with pytest.raises(InputError, match="for a single row pass"):
        read_new([0.6, 0.4], reader)


def test_a_pickled_reader_of_computed_terms_asks_for_the_term() -> None:
    res = cs.LogisticCalibration.from_formula("y ~ I(p * 1.0)", FRAME).fit()
    copy = pickle.loads(pickle.dumps(res))
    with pytest.raises(InputError, match=r"must have a column 'I\(p \* 1.0\)'"):
        copy.predict(FRAME)
    assert copy.predict([0.2]) == res.predict([0.2])
