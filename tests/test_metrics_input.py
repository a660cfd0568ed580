"""What metrics refuse: at least what R's probcal refuses, except where this is accepted on purpose."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from calstat.exceptions import CalstatError
from calstat.metrics import ace, ece, mce, mmce

CASES = json.loads((Path(__file__).parent / "reference/metrics/error_behaviour.json").read_text())
METRICS = {"ece": ece, "mce": mce, "ace": ace}

y, p = np.array([0, 1, 0, 1, 1, 0]), np.array([0.1, 0.8, 0.3, 0.6, 0.9, 0.4])
P = np.random.default_rng(0).dirichlet(np.ones(3), 20)
k = np.arange(20) % 3 + 1  # codes 1, 2, 3 as R has them


def with_value(array, value, place=0):
    changed = array.astype(float)
    changed.flat[place] = value
    return changed


def shifted(amount):
    changed = P.copy()
    changed[0, 0] += amount
    return changed


# Every call of the reference that is refused there and here, with what the message must name.
REFUSED = {
    "p NA": (y, [None, *p[1:]], {}, "`p`"),
    "p NaN": (y, with_value(p, np.nan), {}, "`p`"),
    "p Inf": (y, with_value(p, np.inf), {}, "`p`"),
    "p -0.1": (y, with_value(p, -0.1), {}, "`p`"),
    "p 1.1": (y, with_value(p, 1.1), {}, "`p`"),
    "p empty": ([], [], {}, "`[py]` is empty"),
    "p character": (y, p.astype(str), {}, "`p` must be numeric"),
    "p logical": (y, p > 0.5, {}, "`p` must be numeric"),
    "length mismatch": (y, p[:5], {}, "`y` and `p`"),
    "y NA": ([None, *y[1:].tolist()], p, {}, "`y`"),
    "y =2": (with_value(y, 2), p, {}, "`y`"),
    "y 0.5": (with_value(y, 0.5), p, {}, "`y`"),
    "y character": (y.astype(str), p, {}, "`y`.*event"),
    "bins 0": (y, p, {"bins": 0}, "`bins`"),
    "bins -1": (y, p, {"bins": -1}, "`bins`"),
    "bins 2.5": (y, p, {"bins": 2.5}, "`bins`"),
    "bins NA": (y, p, {"bins": np.nan}, "`bins`"),
    "bins Inf": (y, p, {"bins": np.inf}, "`bins`"),
    "bins c(5,10)": (y, p, {"bins": [5, 10]}, "`bins`"),
    "bins '10'": (y, p, {"bins": "10"}, "`bins`"),
    "bins TRUE": (y, p, {"bins": True}, "`bins`"),
    "bins 1e10": (y, p, {"bins": 10**10}, "`bins`"),
    "bins NULL": (y, p, {"bins": None}, "`bins`"),
    "matrix type='bogus'": (k, P, {"type": "bogus"}, "`type`"),
    "matrix rows not summing": (k, shifted(0.1) * 0.9, {"type": "classwise"}, "rows of `p` must sum to 1"),
    "matrix row off 2e-6": (k, shifted(2e-6), {"type": "classwise"}, "rows of `p` must sum to 1"),
    "matrix NA": (k, with_value(P, np.nan), {"type": "classwise"}, "`p`"),
    "matrix Inf": (k, with_value(P, np.inf), {"type": "classwise"}, "`p`"),
    "matrix negative": (k, with_value(P, -0.2), {"type": "classwise"}, "`p`"),
    "matrix 0 rows": ([], P[:0], {"type": "classwise"}, "`p` is empty"),
    "matrix y shorter": (k[:15], P, {"type": "classwise"}, "`y` and `p`"),
    "matrix y shorter (confidence)": (k[:15], P, {"type": "confidence"}, "`y` and `p`"),
    "matrix y shorter recyclable? (10 of 20)": (k[:10], P, {"type": "classwise"}, "`y` and `p`"),
    "matrix y code 4 of K=3": (np.append(k[:-1], 4), P, {"type": "classwise"}, "`y` holds 4 distinct labels"),
    "matrix y 1.5": (with_value(k, 1.5), P, {"type": "classwise"}, "`y`"),
    "matrix y NA": (with_value(k, np.nan), P, {"type": "classwise"}, "`y`"),
    "matrix y lacks last class (ints)": (np.minimum(k, 2), P, {"type": "classwise"}, "classes="),
    "matrix y factor with 2 levels": (pd.Categorical(np.minimum(k, 2)), P, {"type": "classwise"}, "classes="),
}

# Refused by R, accepted here on purpose: the call, and the call that it must equal.
PLAIN = (y, p, {})
ACCEPTED = {
    "p 1+1e-12": ((y, with_value(p, 1 + 1e-12), {}), (y, with_value(p, 1.0), {})),
    "p list": ((y, p.tolist(), {}), PLAIN),
    "p data.frame": ((y, pd.DataFrame({"p": p}), {}), PLAIN),
    "y -1/1": ((2 * y - 1, p, {}), PLAIN),
    "y factor 0/1": ((pd.Categorical(y), p, {}), PLAIN),
    "matrix 1 col": ((y, p[:, None], {}), PLAIN),
    "matrix n x 1 p, binary y": ((y, p[:, None], {}), PLAIN),
    "matrix y 0-based": ((k - 1, P, {"type": "classwise"}), (k, P, {"type": "classwise"})),
    "matrix y character": ((np.array([*"xabc"])[k], P, {"type": "classwise"}), (k, P, {"type": "classwise"})),
    "matrix y logical K=2": ((y == 1, np.column_stack([1 - p, p]), {}), PLAIN),
    "matrix y 0/1 K=2": ((y, np.column_stack([1 - p, p]), {}), PLAIN),
    "tibble/data.frame of probs": (
        (k, pd.DataFrame(P, columns=["p1", "p2", "p3"]), {"type": "classwise"}),
        (k, P, {"type": "classwise"}),
    ),
}

# Accepted by R, refused here: a missing outcome, a class that cannot be told, and an argument without meaning.
STRICTER = {
    "y logical NA": (pd.array([True, None, False, True, True, False]), p, {}, "`y`"),
    "binary type='bogus'": (y, p, {"type": "bogus"}, "`type`"),
    "matrix y lacks middle class (ints)": (np.where(k == 2, 1, k), P, {"type": "confidence"}, "classes="),
}


@pytest.mark.parametrize("name", METRICS)
def test_every_call_of_the_reference_is_dealt_with(name):
    refused = {case for case, status, *_ in CASES[name] if status == "error"}
    accepted = {case for case, status, *_ in CASES[name] if status == "ok"}
    assert refused == set(REFUSED) | set(ACCEPTED)
    assert set(STRICTER) < accepted


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
@pytest.mark.parametrize("case", [*REFUSED, *STRICTER])
def test_refused(metric, case):
    outcome, probability, options, message = {**REFUSED, **STRICTER}[case]
    with pytest.raises(CalstatError, match=message):
        metric(outcome, probability, **options)


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
@pytest.mark.parametrize("case", ACCEPTED)
def test_accepted_on_purpose(metric, case):
    (outcome, probability, options), (y0, p0, options0) = ACCEPTED[case]
    assert metric(outcome, probability, **options) == pytest.approx(metric(y0, p0, **options0), abs=1e-12)


@pytest.mark.parametrize("bandwidth", [0, -1, np.nan, np.inf, [0.1, 0.2], "0.2"])
def test_bandwidths_that_are_none(bandwidth):
    with pytest.raises(CalstatError, match="`bandwidth`"):
        mmce(y, p, bandwidth=bandwidth)


@pytest.mark.parametrize(
    ("outcome", "probability", "message"),
    [
        (y, with_value(p, np.nan), "`p`"),
        (y, with_value(p, 1.1), "`p`"),
        (with_value(y, 2), p, "`y`"),
        (y[:5], p, "`y` and `p`"),
        (k, shifted(0.1) * 0.9, "rows of `p` must sum to 1"),
        (k[:15], P, "`y` and `p`"),
        (pd.array([True, None, False, True, True, False]), p, "`y`"),
    ],
)
def test_mmce_refuses_what_r_refuses_and_a_missing_outcome(outcome, probability, message):
    with pytest.raises(CalstatError, match=message):
        mmce(outcome, probability)


def test_mmce_accepts_any_positive_bandwidth():
    assert mmce(y, p, bandwidth=1e-320) == pytest.approx(np.sqrt(np.sum((y - p) ** 2)) / 6)


def test_swapped_arguments_and_percentages_are_recognised():
    with pytest.raises(CalstatError, match="swapped"):
        ece(p, y)
    with pytest.raises(CalstatError, match="percentages"):
        ece(y, 100 * p)
