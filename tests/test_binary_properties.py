"""Properties that every binary map has, whatever the data: relabelling, repetition, order, index, purity."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit

from calstat.binary import BetaCalibration, LogisticCalibration, PlattScaling
from calstat.exceptions import CalstatWarning
from calstat.multiclass import TemperatureScaling
from calstat.multiclass.kinds import TemperatureScalingResults

SAME = 1e-9  # two fits of the same likelihood in other coordinates: rounding times conditioning

MAPS = {
    "platt": lambda y, p, **kw: PlattScaling(y, p, scores="probability", **kw),
    "platt, plain": lambda y, p, **kw: PlattScaling(y, p, scores="probability", target_correction=False, **kw),
    "logistic": LogisticCalibration,
    "logistic, slope 1": lambda y, p, **kw: LogisticCalibration(y, p, slope=1, **kw),
    "logistic, firth": lambda y, p, **kw: LogisticCalibration(y, p, penalty="firth", **kw),
    "beta abm": BetaCalibration,
    "beta ab": lambda y, p, **kw: BetaCalibration(y, p, parameters="ab", **kw),
    "beta am": lambda y, p, **kw: BetaCalibration(y, p, parameters="am", **kw),
    "beta a": lambda y, p, **kw: BetaCalibration(y, p, parameters="a", **kw),
    "beta, monotone": lambda y, p, **kw: BetaCalibration(y, p, monotone=True, **kw),
    "beta, firth": lambda y, p, **kw: BetaCalibration(y, p, penalty="firth", **kw),
    "temperature": lambda y, p, **kw: TemperatureScaling(y, p, scores="probability", **kw),
}
EVERY = pytest.mark.parametrize("name", MAPS)


@st.composite
def samples(draw, least=20, most=60):
    """Outcomes drawn from a distorted p, with ties and both classes."""
    n = draw(st.integers(least, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    score = rng.normal(draw(st.floats(-1, 1)), draw(st.floats(0.5, 2.5)), n)
    y = (rng.random(n) < expit(draw(st.floats(-1, 1)) + draw(st.floats(0.2, 1.5)) * score)).astype(int)
    y[:2] = 0, 1
    p = expit(score)
    return y, np.round(p, 2).clip(0.01, 0.99) if draw(st.booleans()) else p


def fit(name, y, p, cov_type="nonrobust", **kw):
    """The fit and the names of its warnings; separated samples occur and are as welcome as others."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        res = MAPS[name](y, p, **kw).fit(cov_type=cov_type)
    assert all(issubclass(w.category, CalstatWarning) for w in seen)
    assert len(seen) <= 1
    return res, [w.category.__name__ for w in seen]


def labels(res):
    """Non-event and event."""
    return tuple(res.classes) if isinstance(res, TemperatureScalingResults) else (res.nonevent, res.event)


def agree(got, want):
    got, want = np.asarray(got, float), np.asarray(want, float)
    assert got == pytest.approx(want, rel=SAME, abs=SAME, nan_ok=True)


def agree_fits(one, two):
    """Equal in all that is estimated; a separated fit has no estimate, but the same supremum."""
    (a, warned), (b, warned_too) = one, two
    assert warned == warned_too
    assert a.llf == pytest.approx(b.llf, rel=SAME, abs=1e-8)
    if "SeparationWarning" not in warned:
        agree(a.params, b.params)
        agree(a.cov_params(), b.cov_params())


# -- relabelling -------------------------------------------------------------------------------------------------


@given(samples())
@settings(max_examples=30, deadline=None)
def test_relabelling_swaps_a_and_b_and_negates_c(data):
    y, p = data
    (res, warned), (turned, warned_too) = fit("beta abm", y, p), fit("beta abm", 1 - y, 1 - p)
    assert warned == warned_too
    if warned:
        return
    agree(turned.params[["a", "b", "c"]], res.params[["b", "a", "c"]] * [1, 1, -1])
    agree(turned.bse[["a", "b", "c"]], res.bse[["b", "a", "c"]])
    agree(turned.test_identity("lr").statistic, res.test_identity("lr").statistic)
    agree(turned.test_identity("score").statistic, res.test_identity("score").statistic)
    agree(turned.predict(1 - p), 1 - res.predict(p))
    low, high = res.conf_int(method="profile").loc["c"]
    agree(turned.conf_int(method="profile").loc["c"], [-high, -low])


@EVERY
@given(data=samples())
@settings(max_examples=4, deadline=None)
def test_relabelling_mirrors_every_prediction(name, data):
    y, p = data
    (res, warned), (turned, _) = fit(name, y, p), fit(name, 1 - y, 1 - p)
    assert turned.llf == pytest.approx(res.llf, rel=SAME, abs=1e-8)
    if "SeparationWarning" not in warned:
        agree(turned.predict(1 - p), 1 - res.predict(p))


@EVERY
@given(data=samples())
@settings(max_examples=3, deadline=None)
def test_the_other_event_mirrors_the_map(name, data):
    y, p = data
    words = np.where(y == 1, "sick", "well").astype(object)
    res, warned = fit(name, words, p, event="sick")
    plain, _ = fit(name, y, p)
    agree_fits((res, warned), (plain, warned))
    assert labels(res) == ("well", "sick")
    other, _ = fit(name, words, 1 - p, event="well")
    if "SeparationWarning" not in warned:
        agree(other.predict(1 - p), 1 - res.predict(p))


# -- weights and order -------------------------------------------------------------------------------------------


@EVERY
@pytest.mark.parametrize("cov_type", ["nonrobust", "HC0", "HC1", "cluster"])
@given(data=samples(), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=4, deadline=None)
def test_weights_are_repetition(name, cov_type, data, seed):
    y, p = data
    rng = np.random.default_rng(seed)
    w = rng.integers(0, 4, y.size)
    w[:2] = 1, 2  # both classes occur
    groups = np.arange(y.size) // 3
    rows = np.repeat(np.arange(y.size), w)
    first = {"groups": groups} if cov_type == "cluster" else {}
    second = {"groups": groups[rows]} if cov_type == "cluster" else {}
    weighted = fit(name, y, p, cov_type, freq_weights=w, **first)
    repeated = fit(name, y[rows], p[rows], cov_type, **second)
    agree_fits(weighted, repeated)
    assert weighted[0].nobs == repeated[0].nobs == w.sum()


@EVERY
@given(data=samples(), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=3, deadline=None)
def test_rows_may_come_in_any_order(name, data, seed):
    y, p = data
    order = np.random.default_rng(seed).permutation(y.size)
    agree_fits(fit(name, y, p), fit(name, y[order], p[order]))


# -- labels and scales -------------------------------------------------------------------------------------------


@EVERY
@given(data=samples())
@settings(max_examples=3, deadline=None)
def test_every_spelling_of_the_labels_gives_the_same_fit(name, data):
    y, p = data
    plain = fit(name, y, p)
    spellings = [
        y.astype(bool),
        2 * y - 1,
        y.astype(float),
        y.tolist(),
        pd.Series(y, dtype="Int64"),
        pd.Series(y.astype(bool), dtype="boolean"),
        pd.Categorical.from_codes(y, ["no", "yes"]),
        pd.Categorical.from_codes(1 - y, ["yes", "no"], ordered=True).reorder_categories(["no", "yes"]),
        pd.Categorical.from_codes(y, ["no", "yes", "unused"]),
    ]
    for spelling in spellings:
        agree_fits(plain, fit(name, spelling, p))
    # the last level is the event: in the other class order the other outcome is
    turned, warned = fit(name, pd.Categorical.from_codes(1 - y, ["yes", "no"]), 1 - p)
    assert labels(turned) == ("yes", "no")
    if "SeparationWarning" not in warned:
        agree(turned.predict(1 - p), 1 - plain[0].predict(p))


@given(samples())
@settings(max_examples=4, deadline=None)
def test_probabilities_and_their_log_odds_are_one_score(data):
    y, p = data
    for first, second in (
        (LogisticCalibration(y, p), LogisticCalibration(y, logit(p), scores="logit")),
        (TemperatureScaling(y, p, scores="probability"), TemperatureScaling(y, logit(p), scores="logit")),
        (PlattScaling(y, p, scores="probability"), PlattScaling(y, logit(p))),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalstatWarning)
            one, two = first.fit(), second.fit()
        assert one.llf == pytest.approx(two.llf, rel=SAME, abs=1e-8)
        if one.converged:
            agree(one.params, two.params)


# -- index and purity --------------------------------------------------------------------------------------------


@EVERY
@given(data=samples())
@settings(max_examples=3, deadline=None)
def test_index_in_is_index_out(name, data):
    y, p = data
    index = pd.Index([f"row {i}" for i in range(y.size)][::-1], name="patient")
    frame = pd.DataFrame({"y": y, "p": p}, index=index)
    res, _ = fit(name, frame["y"], frame["p"])
    assert res.fittedvalues.index.equals(index)
    out = res.predict(frame["p"].iloc[::2])
    assert out.index.equals(index[::2])
    agree(out, res.predict(p[::2]))
    assert isinstance(res.predict(p), np.ndarray)
    part = res.get_prediction(frame["p"].iloc[:3]).summary_frame()
    assert part.index.equals(index[:3])
    numbers = part.to_numpy()
    assert np.all(np.isnan(numbers[:, 2:]) | ((numbers[:, 2:] >= 0) & (numbers[:, 2:] <= 1)))
    shuffled = frame["p"].sample(frac=1, random_state=3)
    agree_fits(fit(name, frame["y"], shuffled), fit(name, y, p))  # two Series meet by label


@EVERY
@given(data=samples())
@settings(max_examples=3, deadline=None)
def test_inputs_and_the_global_generator_are_left_alone(name, data):
    y, p = data
    w = np.arange(y.size) % 3 + 1
    copies = y.copy(), p.copy(), w.copy()
    state = np.random.get_state()[1].copy()  # noqa: NPY002  the legacy state is what must not move
    for array in (y, p, w):
        array.flags.writeable = False
    res, _ = fit(name, y, p, freq_weights=w)
    res.summary()
    res.predict(p)
    res.get_prediction(p).summary_frame()
    assert np.array_equal(state, np.random.get_state()[1])  # noqa: NPY002
    for now, then in zip((y, p, w), copies, strict=True):
        assert np.array_equal(now, then)


@EVERY
@given(data=samples())
@settings(max_examples=3, deadline=None)
def test_fit_twice_is_two_equal_objects(name, data):
    y, p = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalstatWarning)
        model = MAPS[name](y, p)
        first, second = model.fit(), model.fit()
    assert first is not second
    assert np.array_equal(first.params, second.params)
    params, cov = first.params, first.cov_params()  # copies: what is done to them stays outside
    params.iloc[0] = cov.iloc[0, 0] = 99.0
    assert np.array_equal(first.params, second.params)
    assert np.array_equal(first.cov_params(), second.cov_params(), equal_nan=True)


@EVERY
@given(data=samples(), width=st.sampled_from([np.float32, np.float64]))
@settings(max_examples=3, deadline=None)
def test_float32_gives_the_answer_of_its_float64_values(name, data, width):
    y, p = data
    narrow = p.astype(width)
    agree_fits(fit(name, y, narrow), fit(name, y, narrow.astype(np.float64)))
