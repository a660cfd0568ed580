"""Tests without bins that read residuals in the order of p: KS, Kuiper, and CORP miscalibration."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from calstat._arrays import pseudo_labels, statistics
from calstat._arrays.pav import explained_square, pool_ties, sorted_pairs
from calstat._inference_results import PseudoLabelTest
from calstat._input.validation import check_binary, check_choice, check_count, check_rng, positive_weight_rows
from calstat._results import CalibrationTest
from calstat._typing import ArrayLike, FloatArray, IntArray, Label, RNGLike
from calstat.exceptions import NotEstimableWarning
from calstat.metrics.pseudo_labels import stop_note

# The path is too coarse for Brownian motion, and size at 5% falls below 4%, where the variance of the number of events
# is less than 200, or rows of equal p have more of it than a row of p = 1/2 has of 200.
_COARSE = 200.0
_STEP = 0.25 / _COARSE
# Draws for more rows are made for as many cells of neighbours, at the ends of which the path is read: the standard
# deviation of the path within a cell is 2% of the whole.
_CELLS = 2048
_BLOCK_BYTES = 1 << 26


@dataclass(frozen=True, slots=True, kw_only=True)
class _Path:
    """Rows sorted by p (n,), the last row of each tie, and the standard deviation of the number of events."""

    y: FloatArray
    p: FloatArray
    ends: IntArray
    scale: float
    nobs: float


def ks(
    y: ArrayLike,
    p: ArrayLike,
    *,
    method: Literal["asymptotic", "pseudo_label"] | None = None,
    freq_weights: ArrayLike | None = None,
    event: Label | None = None,
    n_resamples: int = 9999,
    rng: RNGLike = None,
) -> CalibrationTest:
    r"""
    Kolmogorov-Smirnov test of calibration on cumulated residuals.

    .. math:: \max_k \Bigl|\sum_{i \le k} (y_i - p_i)\Bigr| \Big/ \sqrt{\textstyle\sum_i p_i (1 - p_i)}

    over rows sorted by p. Under calibration the sums are Brownian motion in the cumulated variance.

    Parameters
    ----------
    y : array_like of shape (n,)
        Outcome.
    p : array_like of shape (n,)
        Predicted probability of the event.
    method : {"asymptotic", "pseudo_label"}, optional
        Law of the supremum of Brownian motion, or the law when labels are drawn from p. By default the second where
        the number of events has a variance below 200 or many rows share a p, since the path is too coarse there.
    freq_weights : array_like of shape (n,), optional
        Whole numbers: a row of weight k counts as k rows.
    event : label, optional
        The label of the event where it is not clear from the labels.
    n_resamples : int, default 9999
        Draws for "pseudo_label".
    rng : None, int or numpy.random.Generator
        Source of randomness for "pseudo_label".

    Returns
    -------
    CalibrationTest
        Rows of equal p are summed before the path is read, so that their order does not matter. NaN, with one
        `NotEstimableWarning`, where every p is 0 or 1.

    Raises
    ------
    InputError
        For a bad argument.

    References
    ----------
    Arrieta-Ibarra, I., Gujral, P., Tannen, J., Tygert, M., Xu, C. (2022). Metrics of calibration for probabilistic
    predictions. JMLR 23. https://jmlr.org/papers/v23/22-0658.html

    Examples
    --------
    >>> import numpy as np
    >>> import calstat as cs
    >>> p = np.linspace(0.01, 0.99, 2000)
    >>> y = np.random.default_rng(1).random(2000) < p
    >>> cs.ks(y, p).pvalue > 0.05
    True

    Nowhere along p do residuals of one sign pile up more than chance makes them.
    """
    check_choice("method", method, (None, "asymptotic", "pseudo_label"))
    path = _path(y, p, freq_weights, event)
    return _cumulative_test("Kolmogorov-Smirnov", path, method, check_count("n_resamples", n_resamples), check_rng(rng))


def kuiper(
    y: ArrayLike,
    p: ArrayLike,
    *,
    method: Literal["asymptotic", "pseudo_label"] | None = None,
    freq_weights: ArrayLike | None = None,
    event: Label | None = None,
    n_resamples: int = 9999,
    rng: RNGLike = None,
) -> CalibrationTest:
    r"""
    Kuiper test of calibration on cumulated residuals: the range of their path.

    .. math:: \Bigl(\max_k S_k - \min_k S_k\Bigr) \Big/ \sqrt{\textstyle\sum_i p_i (1 - p_i)}, \quad
        S_k = \sum_{i \le k} (y_i - p_i)

    with rows sorted by p and S_0 = 0. It sees a stretch of residuals of one sign wherever it lies.

    Parameters
    ----------
    y : array_like of shape (n,)
        Outcome.
    p : array_like of shape (n,)
        Predicted probability of the event.
    method : {"asymptotic", "pseudo_label"}, optional
        Law of the range of Brownian motion, or the law when labels are drawn from p. By default the second where
        the number of events has a variance below 200 or many rows share a p.
    freq_weights : array_like of shape (n,), optional
        Whole numbers: a row of weight k counts as k rows.
    event : label, optional
        The label of the event where it is not clear from the labels.
    n_resamples : int, default 9999
        Draws for "pseudo_label".
    rng : None, int or numpy.random.Generator
        Source of randomness for "pseudo_label".

    Returns
    -------
    CalibrationTest
        As for `ks`.

    Raises
    ------
    InputError
        For a bad argument.

    References
    ----------
    Feller, W. (1951). The asymptotic distribution of the range of sums of independent random variables. Annals of
    Mathematical Statistics 22. https://doi.org/10.1214/aoms/1177729589
    Tygert, M. (2021). Cumulative differences between subpopulations versus full populations. Journal of Big Data 8.
    https://doi.org/10.1186/s40537-021-00540-8

    Examples
    --------
    >>> import numpy as np
    >>> import calstat as cs
    >>> p = np.linspace(0.01, 0.99, 2000)
    >>> y = np.random.default_rng(1).random(2000) < p**1.5
    >>> cs.kuiper(y, p).pvalue < 0.001
    True

    Residuals of one sign pile up: the predictions are refuted.
    """
    check_choice("method", method, (None, "asymptotic", "pseudo_label"))
    path = _path(y, p, freq_weights, event)
    return _cumulative_test("Kuiper", path, method, check_count("n_resamples", n_resamples), check_rng(rng))


def _path(y: ArrayLike, p: ArrayLike, freq_weights: ArrayLike | None, event: Label | None) -> _Path:
    sample = positive_weight_rows(check_binary(y, p, freq_weights=freq_weights, event=event, integer_weights=True))
    rows, scores = sample.y, sample.p
    if sample.weights is not None:
        copies = sample.weights.astype(np.int64)
        rows, scores = np.repeat(rows, copies), np.repeat(scores, copies)
    scores, outcome = sorted_pairs(rows, scores)
    return _Path(
        y=outcome,
        p=scores,
        ends=np.flatnonzero(np.append(scores[1:] != scores[:-1], True)),
        scale=float(np.sqrt((scores * (1 - scores)).sum())),
        nobs=sample.nobs,
    )


def _cumulative_test(
    name: str, path: _Path, method: str | None, n_resamples: int, rng: np.random.Generator
) -> CalibrationTest:
    def statistic(labels: FloatArray, p: FloatArray, ends: IntArray) -> FloatArray:
        high, low = statistics.cumulative_range(labels, p, ends)
        return (high - low if name == "Kuiper" else np.maximum(high, -low)) / path.scale

    null = "E[y | p] = p, by the path of cumulated residuals"
    if path.scale == 0:
        reason = "every p is 0 or 1, so that labels drawn from p do not vary"
        warnings.warn(f"{name}: {reason}.", NotEstimableWarning, stacklevel=3)
        return CalibrationTest(
            name=name, null=null, statistic=np.nan, pvalue=np.nan, distribution="none", method="none",
            nobs=path.nobs, note=reason,
        )  # fmt: skip
    observed = float(statistic(path.y, path.p, path.ends))
    law = statistics.brownian_range_sf if name == "Kuiper" else statistics.brownian_supremum_sf
    asymptotic = law(observed)
    chosen = method or ("pseudo_label" if _coarse(path) else "asymptotic")
    if chosen == "asymptotic":
        return CalibrationTest(
            name=name, null=null, statistic=observed, pvalue=asymptotic, distribution="Brownian motion",
            method=chosen, nobs=path.nobs,
        )  # fmt: skip
    draws = np.concatenate([statistic(*block) for block in _drawn_paths(path, n_resamples, rng)])
    note = f"labels were drawn from p; the law of Brownian motion would give p = {asymptotic:.3g}"
    return drawn_test(name, null, observed, draws, nobs=path.nobs, details={"pvalue_asymptotic": asymptotic}, note=note)


def _variances(path: _Path) -> FloatArray:
    """Variance of the number of events of each run of equal p."""
    return np.diff(np.cumsum(path.p * (1 - path.p))[path.ends], prepend=0.0)


def _coarse(path: _Path) -> bool:
    return path.scale**2 < _COARSE or float(_variances(path).max()) > _STEP * path.scale**2


def _drawn_paths(
    path: _Path, n_resamples: int, rng: np.random.Generator
) -> Iterator[tuple[FloatArray, FloatArray, IntArray]]:
    """Yield blocks of labels drawn from p, one row a draw, with what is expected of them and where to read the path.

    Labels of rows, or numbers of events of runs of equal p, or of cells of several runs that are alike.
    """
    runs, n = path.ends.size, path.p.size
    if n <= _CELLS and 2 * runs > n:
        for block in pseudo_labels.label_blocks(path.p, n_resamples, rng, _BLOCK_BYTES):
            yield block, path.p, path.ends
        return
    ends = path.ends
    if runs > _CELLS:
        variance = _variances(path)
        cell = np.floor(_CELLS * (np.cumsum(variance) - variance / 2) / path.scale**2)
        ends = ends[np.append(cell[1:] != cell[:-1], True)]
    count = np.diff(ends, prepend=-1)
    expected = np.diff(np.cumsum(path.p)[ends], prepend=0.0)
    rate = np.clip(expected / count, 0.0, 1.0)
    rows = max(1, _BLOCK_BYTES // (24 * count.size))
    for start in range(0, n_resamples, rows):
        size = (min(rows, n_resamples - start), count.size)
        yield rng.binomial(count, rate, size=size).astype(np.float64), expected, np.arange(count.size)


def drawn_test(
    name: str,
    null: str,
    observed: float,
    draws: FloatArray,
    *,
    nobs: float,
    details: dict[str, float] | None = None,
    note: str | None = None,
    stop_after: int | None = None,
) -> PseudoLabelTest:
    """Return the upper-tailed test of a statistic against its draws for labels from p, stopped at `stop_after`."""
    place = pseudo_labels.monte_carlo(observed, draws, stop_after=stop_after)
    return PseudoLabelTest(
        name=name,
        null=null,
        statistic=observed,
        pvalue=place.pvalue,
        distribution="pseudo-label",
        method="pseudo_label",
        nobs=nobs,
        details={"statistic": name, "n_resamples": draws.size, **(details or {})},
        note=note,
        draws=draws,
        expected=place.mean,
        mc_error=place.error,
    )


def corp_test(
    y: ArrayLike,
    p: ArrayLike,
    *,
    freq_weights: ArrayLike | None = None,
    event: Label | None = None,
    n_resamples: int = 999,
    stop_after: int | None = None,
    rng: RNGLike = None,
) -> PseudoLabelTest:
    r"""
    Test of the CORP miscalibration: what isotonic recalibration would gain.

    The statistic is MCB, the Brier score of p less that of its isotonic recalibration; its law is that of labels
    drawn from p.

    Parameters
    ----------
    y : array_like of shape (n,)
        Outcome.
    p : array_like of shape (n,)
        Predicted probability of the event.
    freq_weights : array_like of shape (n,), optional
        Whole numbers: a row of weight k counts as k rows.
    event : label, optional
        The label of the event where it is not clear from the labels.
    n_resamples : int, default 999
        Draws, each with an isotonic fit; with `stop_after`, the most that are made.
    stop_after : int, optional
        Stop at this many draws as large as the observed value, as in `pseudo_label_test`.
    rng : None, int or numpy.random.Generator
        Source of randomness.

    Returns
    -------
    PseudoLabelTest
        MCB, its mean under calibration (`expected`: it is never 0), and p = (r + 1)/(B + 1), or h / l where the h-th
        of l draws as large stopped them.

    Raises
    ------
    InputError
        For a bad argument.

    Notes
    -----
    Isotonic recalibration cannot see a map that is wrong by being decreasing; apart from that no form is assumed.

    References
    ----------
    Dimitriadis, T., Gneiting, T., Jordan, A. I. (2021). Stable reliability diagrams for probabilistic classifiers.
    PNAS 118. https://doi.org/10.1073/pnas.2016191118

    Examples
    --------
    >>> import numpy as np
    >>> import calstat as cs
    >>> p = np.linspace(0.01, 0.99, 500)
    >>> y = np.random.default_rng(1).random(500) < p
    >>> test = cs.corp_test(y, p, rng=1)
    >>> test.pvalue > 0.05, test.expected > 0
    (True, True)

    Part of the Brier score looks like miscalibration even here; no more of it than chance makes.
    """
    n_resamples, generator = check_count("n_resamples", n_resamples), check_rng(rng)
    limit = None if stop_after is None else check_count("stop_after", stop_after)
    sample = positive_weight_rows(check_binary(y, p, freq_weights=freq_weights, event=event, integer_weights=True))
    score, events, count = pool_ties(sample.y, sample.p, sample.weights)

    n = float(count.sum())
    square = float(count @ score**2)

    def miscalibration(total: FloatArray) -> float:
        # Both Brier scores have the same mean square of the outcomes, which drops out of the difference.
        return (square - 2 * float(total @ score) + explained_square(total, count)) / n

    def labels() -> FloatArray:
        if whole is None:
            return (generator.random(score.size) < score).astype(np.float64)
        return generator.binomial(whole, score).astype(np.float64)

    whole = count.astype(np.int64) if count.max() > 1 else None
    observed = miscalibration(events)
    drawn = (np.array([miscalibration(labels())]) for _ in range(n_resamples))
    draws = pseudo_labels.collected(drawn, observed, limit)
    null = "labels are independent draws from p; no isotonic map improves on p"
    note = stop_note(limit, draws.size, n_resamples)
    return drawn_test("CORP miscalibration", null, observed, draws, nobs=sample.nobs, note=note, stop_after=limit)
