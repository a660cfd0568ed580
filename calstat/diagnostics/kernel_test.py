"""Kernel tests of calibration: estimators of the squared kernel calibration error (SKCE)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Literal, TypeAlias

import numpy as np
from scipy import stats

from calstat._arrays import kernel_pairs, pseudo_labels, statistics
from calstat._input.validation import (
    MulticlassSample,
    check_choice,
    check_count,
    check_fraction,
    check_rng,
    check_sample,
)
from calstat._results import CalibrationTest
from calstat._typing import ArrayLike, FloatArray, Label, RNGLike
from calstat.diagnostics.cumulative import drawn_test
from calstat.exceptions import InputError
from calstat.metrics._common import Sample, top_score
from calstat.metrics._kernel import decaying_sums, pair_sum_draws
from calstat.metrics.pseudo_labels import stop_note

Estimator: TypeAlias = Literal["unbiased", "linear", "block"]
_ERROR = "by the squared kernel calibration error"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """What is tested: rows with their chances, points in the kernel and residuals, weights written out as rows.

    Attributes
    ----------
    chance : ndarray of shape (n,) or (n, K)
        Probability of the event, or of each class.
    points, residuals : ndarray of shape (n, d)
        As in `kernel_pairs`; d is 1 or K.
    what : str
        What the name of the test says of the reading of a matrix.
    null : str
        Null hypothesis.
    """

    chance: FloatArray
    points: FloatArray
    residuals: FloatArray
    what: str
    null: str


def kernel_test(
    y: ArrayLike,
    p: ArrayLike,
    *,
    estimator: Estimator = "unbiased",
    bandwidth: float = 0.2,
    method: Literal["pseudo_label", "wild", "asymptotic"] = "pseudo_label",
    type: Literal["canonical", "confidence"] | None = None,  # noqa: A002  the public name of the argument
    freq_weights: ArrayLike | None = None,
    event: Label | None = None,
    classes: Sequence[Label] | None = None,
    n_resamples: int = 999,
    stop_after: int | None = None,
    max_bytes: int = 1 << 30,
    rng: RNGLike = None,
) -> CalibrationTest:
    r"""
    Test of the squared kernel calibration error with the Laplace kernel.

    .. math:: h_{ij} = e_i \cdot e_j \exp(-d(p_i, p_j) / \text{bandwidth}), \quad e = y - p

    whose mean over pairs is 0 under calibration, and positive when residuals of neighbours agree. For one event e is
    a number and d the distance of two probabilities; for K classes y is the one-hot label, e a vector, and d the total
    variation distance, half the sum of the absolute differences.

    Parameters
    ----------
    y : array_like of shape (n,)
        Outcomes.
    p : array_like of shape (n,), (n, 1), (n, 2) or (n, K)
        Probabilities of the event, or one column for each class.
    estimator : {"unbiased", "linear", "block"}
        Mean of h over all pairs i ≠ j; over the disjoint pairs (1, 2), (3, 4), ... in the order of the rows; or over
        the pairs within blocks of about sqrt(n) consecutive rows. The last two depend on the order of the rows.
    bandwidth : float, default 0.2
        On the scale of the probabilities.
    method : {"pseudo_label", "wild", "asymptotic"}
        Law of the statistic when labels are drawn from p; when residuals get random signs (its size is off for rare
        events); or, for the linear and the block estimator, the normal law of the mean of their independent terms.
    type : {"canonical", "confidence"}, optional
        How a matrix is read: all classes together, the default for K > 2, or the top label's probability against its
        being right. Two columns are binary without it.
    freq_weights : array_like of shape (n,), optional
        Whole numbers: a row of weight k counts as k rows, which stand next to each other.
    event : label, optional
        The outcome that `p` is the probability of; needed for strings.
    classes : sequence of K labels, optional
        The class of each column of a matrix.
    n_resamples : int, default 999
        Draws; with `stop_after`, the most that are made.
    stop_after : int, optional
        Stop at this many draws as large as the observed value, as in `pseudo_label_test`. It saves time with the
        unbiased estimator of all classes.
    max_bytes : int, default 2**30
        Bound on the kernel between all rows, 8 n² bytes, that the unbiased estimator needs for all classes: the default
        admits 11,585 rows.
    rng : None, int or numpy.random.Generator
        Source of randomness.

    Returns
    -------
    CalibrationTest
        Upper-tailed. `details` of the asymptotic form hold the z statistic and the number of terms.

    Raises
    ------
    InputError
        For a bad argument, fewer than two rows (four for the linear and the block estimator), more rows than
        `max_bytes` admits, or ``method="asymptotic"`` with the unbiased estimator, whose law under calibration is not
        normal.

    Notes
    -----
    For one event, and the top label, the unbiased estimator costs O(n log n) in all. Above about 8000 rows its draws of
    labels from p are made for some 2000 cells of neighbours (a 200th of a bandwidth wide at most) with binomial counts,
    and cost the same for any n; the standard deviation of the law changes by less than 1e-5 of itself. The observed
    value is exact. For all classes a draw costs O(n² K), or O(m²) where only m rows, a small share, draw another
    label than their most probable one.

    With two columns the canonical value is twice that of the event. All classes together see what the top label cannot:
    a shift of one class or, where classes are few, less probable ones taken for each other. Probabilities that are too
    extreme as a whole are the top label's case, the more so the more classes there are. The bandwidth is fixed at what
    suits one event: the median distance between rows, which is often taken, finds the shift of a class a little more
    often, and errors that change over the simplex less often.

    References
    ----------
    Widmann, D., Lindsten, F., Zachariah, D. (2019). Calibration tests in multi-class classification. NeurIPS.
    https://arxiv.org/abs/1910.11385

    Examples
    --------
    >>> import numpy as np
    >>> import calstat as cs
    >>> p = np.linspace(0.01, 0.99, 500)
    >>> y = np.random.default_rng(1).random(500) < p**2
    >>> cs.kernel_test(y, p, rng=1).pvalue
    0.001

    None of 999 sets of labels drawn from p has residuals as alike among neighbours as these.
    """
    check_choice("estimator", estimator, ("unbiased", "linear", "block"))
    check_choice("method", method, ("pseudo_label", "wild", "asymptotic"))
    check_choice("type", type, (None, "canonical", "confidence"))
    width = check_fraction("bandwidth", bandwidth, high=np.inf)
    n_resamples, generator = check_count("n_resamples", n_resamples), check_rng(rng)
    sample = check_sample(
        y, p, type=type, freq_weights=freq_weights, event=event, classes=classes, integer_weights=True
    )
    rows = _rows(sample, type)
    _check_rows(estimator, method, rows, check_count("max_bytes", max_bytes))
    name = f"SKCE{rows.what} ({estimator})"
    limit = None if stop_after is None else check_count("stop_after", stop_after)
    terms, draws = _values(rows, estimator, method, width, n_resamples, limit, generator)
    observed = float(terms.mean())
    if draws is None:
        return _asymptotic(name, rows.null, terms, sample.nobs)
    draws = pseudo_labels.collected([draws], observed, limit)
    note = stop_note(limit, draws.size, n_resamples)
    if method == "pseudo_label":
        return drawn_test(name, rows.null, observed, draws, nobs=sample.nobs, note=note, stop_after=limit)
    place = pseudo_labels.monte_carlo(observed, draws, stop_after=limit)
    return CalibrationTest(
        name=name,
        null=rows.null,
        statistic=observed,
        pvalue=place.pvalue,
        distribution="wild bootstrap",
        method=method,
        nobs=sample.nobs,
        details={"mc_error": place.error, "n_resamples": draws.size},
        note=note,
    )


def _rows(sample: Sample, type: str | None) -> _Rows:  # noqa: A002  the public name of the argument
    """Read the sample as one event or as all classes, and write its weights out as rows."""
    order = np.repeat(np.arange(sample.y.size), statistics.counts(sample.y.size, sample.weights).astype(np.int64))
    if isinstance(sample, MulticlassSample) and type != "confidence":
        P = sample.p[order]
        return _Rows(
            chance=P,
            points=P / 2,
            residuals=kernel_pairs.class_residuals(P, sample.y[order][None])[0],
            what=", all classes",
            null=f"P(y = k | p) = p_k for every class k, {_ERROR}",
        )
    outcome, r = top_score(sample)
    r = r[order]
    top = isinstance(sample, MulticlassSample)
    return _Rows(
        chance=r,
        points=r[:, None],
        residuals=(outcome[order] - r)[:, None],
        what=", top label" if top else "",
        null=f"the top label is right as often as its p says, {_ERROR}" if top else f"E[y | p] = p, {_ERROR}",
    )


def _check_rows(estimator: str, method: str, rows: _Rows, max_bytes: int) -> None:
    if method == "asymptotic" and estimator == "unbiased":
        raise InputError(
            "method='asymptotic' is for estimator='linear' and 'block'; the unbiased estimator has no normal law under "
            "calibration. Use method='pseudo_label'."
        )
    n = rows.chance.shape[0]
    least = 2 if estimator == "unbiased" else 4
    if n < least:
        raise InputError(f"`y` must have at least {least} rows for estimator={estimator!r}; {n} was given.")
    if estimator == "unbiased" and rows.chance.ndim == 2 and 8 * n**2 > max_bytes:
        raise InputError(
            f"The kernel between all pairs of {n} rows takes {8 * n**2 / 2**30:.1f} GiB, more than `max_bytes` admits. "
            "Raise `max_bytes`, or use estimator='block' or type='confidence', which need little memory."
        )


def _values(
    rows: _Rows,
    estimator: Estimator,
    method: str,
    width: float,
    n_resamples: int,
    stop_after: int | None,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray | None]:
    """Return the terms (T,) that the statistic is the mean of, and its draws (B,) unless the law is normal."""
    n, chance, points, residuals = rows.chance.shape[0], rows.chance, rows.points, rows.residuals
    if estimator == "unbiased":
        if chance.ndim == 1:
            return _sorted_values(chance, residuals[:, 0], method, width, n_resamples, rng)
        # The pairs of the rows that depart from their most probable class lie close together in the kernel then.
        order = np.argsort(chance.max(axis=1), kind="stable")
        chance, points, residuals = chance[order], points[order], residuals[order]
    draws: kernel_pairs.Draws | None = None
    if method == "wild":
        draws = kernel_pairs.sign_draws(residuals, n_resamples, rng)
    elif method == "pseudo_label":
        make = kernel_pairs.event_draws if chance.ndim == 1 else kernel_pairs.class_draws
        draws = make(chance, n_resamples, rng)
    size = {"unbiased": n, "linear": 2, "block": max(2, isqrt(n))}[estimator]
    return kernel_pairs.block_terms(points, residuals, size, width, draws, stop_after)


def _sorted_values(
    r: FloatArray, residual: FloatArray, method: str, width: float, n_resamples: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return the mean over all pairs, as one term, and its draws (B,), for one event in O(n log n)."""
    order = np.argsort(r, kind="stable")
    r, residual = r[order], residual[order]
    pairs = r.size * (r.size - 1.0)

    def mean(e: FloatArray) -> FloatArray:
        return 2 * np.sum(e * decaying_sums(r, e, width), axis=-1) / pairs

    if method == "wild":
        signs = pseudo_labels.label_blocks(np.full(r.size, 0.5), n_resamples, rng, kernel_pairs.WORK_BYTES)
        draws = np.concatenate([mean((2 * heads - 1) * residual) for heads in signs])
    else:
        draws = pair_sum_draws(r, width, n_resamples, rng, kernel_pairs.WORK_BYTES)[0] / pairs
    return np.atleast_1d(mean(residual)), draws


def _asymptotic(name: str, null: str, terms: FloatArray, nobs: float) -> CalibrationTest:
    """Upper-tailed normal test of the mean of independent terms; NaN where they do not vary."""
    spread = float(terms.std(ddof=1))
    z = float(np.sqrt(terms.size) * terms.mean() / spread) if spread > 0 else np.nan
    return CalibrationTest(
        name=name,
        null=null,
        statistic=float(terms.mean()),
        pvalue=float(stats.norm.sf(z)),
        distribution="upper normal",
        method="asymptotic",
        nobs=nobs,
        details={"z": z, "n_terms": terms.size},
        note=None if spread > 0 else "all terms are equal, so that their mean has no standard error",
    )
