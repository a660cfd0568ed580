"""Properties that every test of calibration keeps: order of rows, coding of the outcome, which outcome is the event."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calstat as cs

TESTS = {
    "in_the_large": lambda y, p, **o: cs.recalibration_test(y, p, against="in_the_large", method="lr", **o),
    "temperature": lambda y, p, **o: cs.recalibration_test(y, p, against="temperature", method="lr", **o),
    "logistic": lambda y, p, **o: cs.recalibration_test(y, p, method="wald", **o),
    "beta": lambda y, p, **o: cs.recalibration_test(y, p, against="beta", method="score", **o),
    "spiegelhalter": cs.spiegelhalter,
    "hosmer_lemeshow": lambda y, p, **o: cs.hosmer_lemeshow(y, p, method="chi2", groups=6, **o),
    "ks": lambda y, p, **o: cs.ks(y, p, method="asymptotic", **o),
    "kuiper": lambda y, p, **o: cs.kuiper(y, p, method="asymptotic", **o),
    "skce": lambda y, p, **o: cs.kernel_test(y, p, n_resamples=1, rng=1, **o),
    "corp": lambda y, p, **o: cs.corp_test(y, p, n_resamples=1, rng=1, **o),
}


def sample(seed, n=90):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.98, n)
    return (rng.random(n) < p).astype(int), p


@pytest.mark.parametrize("name", TESTS)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_order_of_rows_is_void(name, seed):
    y, p = sample(seed)
    order = np.random.default_rng(seed + 1).permutation(y.size)
    one, other = TESTS[name](y, p), TESTS[name](y[order], p[order])
    assert other.statistic == pytest.approx(one.statistic, rel=1e-7, abs=1e-10)


@pytest.mark.parametrize("name", TESTS)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_event_and_nonevent_may_change_places(name, seed):
    y, p = sample(seed)
    one, other = TESTS[name](y, p), TESTS[name](1 - y, 1 - p)
    if name == "hosmer_lemeshow":
        # distinct p: quantiles of 1 - p are those of p mirrored, and the groups with them
        assert other.statistic == pytest.approx(one.statistic, rel=1e-7)
    elif name == "ks":
        # the path is read from the other end: its largest distance from 0 changes, its range does not
        assert cs.kuiper(1 - y, 1 - p, method="asymptotic").statistic >= other.statistic
    else:
        assert other.statistic == pytest.approx(one.statistic, rel=1e-6, abs=1e-10)


@pytest.mark.parametrize("name", TESTS)
def test_coding_and_containers_are_void(name):
    y, p = sample(3)
    plain = TESTS[name](y, p)
    index = pd.Index(np.arange(90) * 2)
    for labels, scores, options in [
        (2 * y - 1, p, {}),
        (y == 1, p.astype(np.float64).tolist(), {}),
        (pd.Series(np.where(y == 1, "yes", "no"), index=index), pd.Series(p, index=index)[::-1], {"event": "yes"}),
        (pd.Categorical.from_codes(y, ["no", "yes"]), p[:, None], {}),
        (y, np.stack([1 - p, p], axis=1), {}),
    ]:
        assert TESTS[name](labels, scores, **options).statistic == pytest.approx(plain.statistic, rel=1e-9)


@pytest.mark.parametrize("name", TESTS)
def test_inputs_are_left_alone(name):
    y, p = sample(4)
    w = np.arange(90) % 3
    before = (y.copy(), p.copy(), w.copy())
    for array in (y, p, w):
        array.flags.writeable = False
    TESTS[name](y, p, freq_weights=w)
    for array, copy in zip((y, p, w), before, strict=True):
        np.testing.assert_array_equal(array, copy)
