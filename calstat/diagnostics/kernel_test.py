"""Kernel tests of calibration: estimators of the squared kernel calibration error (SKCE)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import numpy as np
from scipy import stats

from calstat._arrays import pseudo_labels, statistics
from calstat._input.validation import check_choice, check_count, check_fraction, check_rng, check_sample
from calstat._results import CalibrationTest
from calstat._typing import ArrayLike, FloatArray, Label, RNGLike
from calstat.diagnostics.cumulative import drawn_test
from calstat.exceptions import InputError
from calstat.metrics._common import top_score
from calstat.metrics._kernel import decaying_sums, pair_sum_draws

Estimator: TypeAlias = Literal["unbiased", "linear", "block"]
_BLOCK_BYTES = 1 << 24
_NULL = "E[y | p] = p, by the squared kernel calibration error"


def kernel_test(
    y: ArrayLike,
    p: ArrayLike,
    *,
    estimator: Estimator = "unbiased",
    bandwidth: float = 0.2,
    method: Literal["pseudo_label", "wild", "asymptotic"] = "pseudo_label",
    type: Literal["confidence"] | None = None,  # noqa: A002  the public name of the argument
    freq_weights: ArrayLike | None = None,
    event: Label | None = None,
    classes: Sequence[Label] | None = None,
    n_resamples: int = 999,
    rng: RNGLike = None,
) -> CalibrationTest:
    r"""
    Test of the squared kernel calibration error with the Laplace kernel.

    .. math:: h_{ij} = e_i e_j \exp(-|r_i - r_j| / \text{bandwidth}), \quad e = y - r

    whose mean over pairs is 0 under calibration, and positive when residuals of neighbours share their sign.

    Parameters
    ----------
    y : array_like of shape (n,)
        Outcomes.
    p : array_like of shape (n,), (n, 1), (n, 2) or (n, K)
        Probabilities of the event; of a matrix with K > 2 the top label's probability against its being right.
    estimator : {"unbiased", "linear", "block"}
        Mean of h over all pairs i ≠ j; over the disjoint pairs (1, 2), (3, 4), ... in the order of the rows; or over
        the pairs within blocks of about sqrt(n) consecutive rows. The last two depend on the order of the rows.
    bandwidth : float, default 0.2
        On the scale of the probabilities.
    method : {"pseudo_label", "wild", "asymptotic"}
        Law of the statistic when labels are drawn from p; when residuals get random signs (its size is off for rare
        events); or, for the linear and the block estimator, the normal law of the mean of their independent terms.
    type : {"confidence"}, optional
        Asks for the top label with two columns.
    freq_weights : array_like of shape (n,), optional
        Whole numbers: a row of weight k counts as k rows, which stand next to each other.
    event : label, optional
        The outcome that `p` is the probability of; needed for strings.
    classes : sequence of K labels, optional
        The class of each column of a matrix.
    n_resamples : int, default 999
        Draws.
    rng : None, int or numpy.random.Generator
        Source of randomness.

    Returns
    -------
    CalibrationTest
        Upper-tailed. `details` of the asymptotic form hold the z statistic and the number of terms.

    Raises
    ------
    InputError
        For a bad argument, fewer than two rows (four for the linear and the block estimator), or
        ``method="asymptotic"`` with the unbiased estimator, whose law under calibration is not normal.

    Notes
    -----
    The unbiased estimator costs O(n log n) in all. Above about 8000 rows its draws of labels from p are made for some
    2000 cells of neighbours (a 200th of a bandwidth wide at most) with binomial counts, and cost the same for any n;
    the standard deviation of the law changes by less than 1e-5 of itself. The observed value is exact.

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
    check_choice("type", type, (None, "confidence"))
    width = check_fraction("bandwidth", bandwidth, high=np.inf)
    n_resamples, generator = check_count("n_resamples", n_resamples), check_rng(rng)
    sample = check_sample(
        y, p, type=type, freq_weights=freq_weights, event=event, classes=classes, integer_weights=True
    )
    outcome, r = top_score(sample)
    copies = statistics.counts(r.size, sample.weights).astype(np.int64)
    r, labels = np.repeat(r, copies), np.repeat(outcome.astype(np.float64), copies)
    _check_rows(estimator, method, r.size)
    if estimator == "unbiased":
        order = np.argsort(r, kind="stable")
        r, labels = r[order], labels[order]
    terms = _TERMS[estimator](r, width)
    residual = labels - r
    observed = terms(residual)
    name = f"SKCE ({estimator})"
    if method == "asymptotic":
        return _asymptotic(name, observed, sample.nobs)
    if method == "wild":
        signs = pseudo_labels.label_blocks(np.full(r.size, 0.5), n_resamples, generator, _BLOCK_BYTES)
        draws = np.concatenate([terms((2 * s - 1) * residual).mean(axis=-1) for s in signs])
        place = pseudo_labels.monte_carlo(float(observed.mean()), draws)
        return CalibrationTest(
            name=name,
            null=_NULL,
            statistic=float(observed.mean()),
            pvalue=place.pvalue,
            distribution="wild bootstrap",
            method=method,
            nobs=sample.nobs,
            details={"mc_error": place.error, "n_resamples": n_resamples},
        )
    if estimator == "unbiased":
        draws = pair_sum_draws(r, width, n_resamples, generator, _BLOCK_BYTES)[0] / (r.size * (r.size - 1.0))
    else:
        blocks = pseudo_labels.label_blocks(r, n_resamples, generator, _BLOCK_BYTES)
        draws = np.concatenate([terms(block - r).mean(axis=-1) for block in blocks])
    return drawn_test(name, _NULL, float(observed.mean()), draws, nobs=sample.nobs)


def _check_rows(estimator: str, method: str, n: int) -> None:
    if method == "asymptotic" and estimator == "unbiased":
        raise InputError(
            "method='asymptotic' is for estimator='linear' and 'block'; the unbiased estimator has no normal law under "
            "calibration. Use method='pseudo_label'."
        )
    least = 2 if estimator == "unbiased" else 4
    if n < least:
        raise InputError(f"`y` must have at least {least} rows for estimator={estimator!r}; {n} was given.")


def _asymptotic(name: str, terms: FloatArray, nobs: float) -> CalibrationTest:
    """Upper-tailed normal test of the mean of independent terms; NaN where they do not vary."""
    spread = float(terms.std(ddof=1))
    z = float(np.sqrt(terms.size) * terms.mean() / spread) if spread > 0 else np.nan
    return CalibrationTest(
        name=name,
        null=_NULL,
        statistic=float(terms.mean()),
        pvalue=float(stats.norm.sf(z)),
        distribution="upper normal",
        method="asymptotic",
        nobs=nobs,
        details={"z": z, "n_terms": terms.size},
        note=None if spread > 0 else "all terms are equal, so that their mean has no standard error",
    )


def _unbiased(r: FloatArray, width: float) -> Callable[[FloatArray], FloatArray]:
    """Mean over all pairs, as one term, for residuals (..., n) in the order of sorted r."""
    n = r.size

    def terms(e: FloatArray) -> FloatArray:
        return 2 * np.sum(e * decaying_sums(r, e, width), axis=-1, keepdims=True) / (n * (n - 1))

    return terms


def _linear(r: FloatArray, width: float) -> Callable[[FloatArray], FloatArray]:
    """One term for each disjoint pair of consecutive rows."""
    last = r.size // 2 * 2
    kernel = np.exp(-np.abs(r[0:last:2] - r[1:last:2]) / width)
    return lambda e: e[..., 0:last:2] * e[..., 1:last:2] * kernel


def _block(r: FloatArray, width: float) -> Callable[[FloatArray], FloatArray]:
    """One term, the mean over its pairs, for each block of about sqrt(n) consecutive rows."""
    size = max(2, int(np.sqrt(r.size)))
    blocks = r.size // size
    parts = r[: blocks * size].reshape(blocks, size)
    kernel = np.exp(-np.abs(parts[:, :, None] - parts[:, None, :]) / width)
    kernel[:, np.arange(size), np.arange(size)] = 0.0

    def terms(e: FloatArray) -> FloatArray:
        cut = e[..., : blocks * size].reshape(*e.shape[:-1], blocks, size)
        smoothed = np.matmul(cut[..., None, :], kernel)[..., 0, :]
        return (cut * smoothed).sum(axis=-1) / (size * (size - 1))

    return terms


_TERMS: dict[str, Callable[[FloatArray, float], Callable[[FloatArray], FloatArray]]] = {
    "unbiased": _unbiased,
    "linear": _linear,
    "block": _block,
}
