"""The pseudo-label test: a metric of predictions, placed among its values for labels that are drawn from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from calstat._arrays import pseudo_labels, resampling, statistics
from calstat._arrays.binning import Strategy
from calstat._inference_results import PseudoLabelTest
from calstat._input.validation import BinarySample, check_count, check_rng
from calstat._progress import Advance, progress_bar
from calstat._typing import ArrayLike, FloatArray, Label, RNGLike
from calstat.exceptions import InputError
from calstat.metrics import _plans
from calstat.metrics._common import Edges, Sample, top_score
from calstat.metrics._kernel import BANDWIDTH, pair_sum_draws
from calstat.metrics.errors import ece, squared_ece
from calstat.metrics.kernel import mmce

# From here on the counts of cells of classes may come from their own laws, tied by a normal copula ...
_MANY_ROWS = 10_000
# ... if that is cheaper: measured in labels drawn, a row costs 3 for each class and 1/30 for each pair of them.
_CLASS_COST, _PAIR_COST = 3.0, 1 / 30


@dataclass(frozen=True, slots=True, kw_only=True)
class _Law:
    """An observed statistic, its draws (B,), and for classes the same by class: (K,) and (B, K)."""

    observed: float
    draws: FloatArray
    by_class: tuple[FloatArray, FloatArray] | None = None


def pseudo_label_test(
    y: ArrayLike,
    p: ArrayLike,
    statistic: str | Callable[..., Any] | None = None,
    *,
    bins: Edges | None = None,
    strategy: Strategy | None = None,
    n_resamples: int = 10_000,
    stop_after: int | None = None,
    freq_weights: ArrayLike | None = None,
    event: Label | None = None,
    classes: Sequence[Label] | None = None,
    groups: ArrayLike | None = None,
    max_bytes: int = 1 << 30,
    rng: RNGLike = None,
    progress: bool | None = None,
    **options: Any,
) -> PseudoLabelTest:
    r"""
    Test calibration by drawing the labels from the predicted probabilities.

    Under the null hypothesis the labels are independent draws from p. The statistic is computed for labels that are
    drawn so, with p, bins and top labels held fixed, and the observed value is placed among those: no
    asymptotic law is needed, and the mean of the draws shows how large an error to expect of calibrated predictions.

    Parameters
    ----------
    y : array_like of shape (n,)
        Outcomes.
    p : array_like of shape (n,), (n, 1), (n, 2) or (n, K)
        Probabilities of the event, or one column for each class.
    statistic : str or callable, optional
        "ece", "mce", "ace", "squared_ece", "confidence_ece", "classwise_ece", "mmce", "smooth_ece", "ici", "e50",
        "e90", "emax", "brier_score", "log_loss", "accuracy", or any ``f(y, p)`` that returns one number and is
        large for bad predictions. By default "ece" for one event, "classwise_ece" for a matrix.
    bins : int or array_like of shape (B + 1,), optional
        Bins of binned errors, as in `ece`: 10 by default; the other names have none. A callable must have an argument
        of this name to get it.
    strategy : {"equal_width", "equal_freq"}, optional
        How they are cut, "equal_width" by default.
    n_resamples : int, default 10000
        Number of draws; with `stop_after`, the most that are made.
    stop_after : int, optional
        Stop at this many draws with a statistic as large as the observed one (Besag and Clifford). The p-value is then
        their share of the draws made, and as valid as that of all: clearly calibrated predictions need few draws.
        It saves time where draws are made in turn, as for a callable; 10 to 20 is a usual number. For upper-tailed
        statistics only, and without `by_class`, since it watches one statistic.
    freq_weights : array_like of shape (n,), optional
        Whole numbers: a row of weight k counts as k rows, which get labels of their own.
    event : label, optional
        The outcome that `p` is the probability of; needed for strings.
    classes : sequence of K labels, optional
        The class of each column of a matrix.
    groups : array_like, optional
        Refused: labels of one cluster are not independent draws. Use ``recalibration_test(groups=...)``.
    max_bytes : int, default 2**30
        Bound on the memory for draws.
    rng : None, int or numpy.random.Generator
        Source of randomness.
    progress : bool, optional
        Show the draws done on standard error, by tqdm, once they have taken two seconds. The default does so on a
        terminal where tqdm is installed.
    **options
        Further options of the statistic, as ``bandwidth=0.1`` for "mmce" or ``norm=2`` for "ece".

    Returns
    -------
    PseudoLabelTest
        statistic, pvalue, expected, mc_error, draws, by_class (classwise errors: a p-value for each class, and
        Holm's), ``plot()``. The p-value is (r + 1)/(B + 1), with r draws at least as large, and never 0; for scores,
        which under-confident predictions make smaller than expected, it is two-sided. If draws were stopped at the
        h-th of l that is as large, it is h / l.

    Raises
    ------
    InputError
        For a bad argument.

    Notes
    -----
    Valid where p was not fitted on these rows. For binned errors of an event or of the top label the counts of each
    bin are drawn from their exact Poisson-binomial law; for other statistics of a matrix only those rows are drawn
    whose label is not the most probable class. Above 10,000 rows the counts for all classes come from these laws
    too, tied together by normal draws with their exact correlation: the p-value of each class has the exact law, that
    of all classes together an approximation whose error was too small to be seen in 2000 draws.

    References
    ----------
    Vaicenavicius, J. et al. (2019). Evaluating model calibration in classification. AISTATS.
    https://arxiv.org/abs/1902.06977
    Bröcker, J., Smith, L. A. (2007). Increasing the reliability of reliability diagrams. Weather and Forecasting 22.
    https://doi.org/10.1175/WAF993.1
    Besag, J., Clifford, P. (1991). Sequential Monte Carlo p-values. Biometrika 78.
    https://doi.org/10.1093/biomet/78.2.301

    Examples
    --------
    >>> import numpy as np
    >>> import calstat as cs
    >>> p = np.linspace(0.01, 0.99, 500)
    >>> y = np.random.default_rng(1).random(500) < p
    >>> test = cs.pseudo_label_test(y, p, rng=1)
    >>> test.pvalue > 0.05, 0.02 < test.expected < 0.06
    (True, True)

    An error as large as this one is what calibrated predictions give with 500 rows.
    """
    if groups is not None:
        raise InputError(
            "`groups` cannot be used here: labels of one cluster are not independent draws from p. "
            "recalibration_test(groups=...) takes clusters into account."
        )
    n_resamples = check_count("n_resamples", n_resamples)
    name, function, options = _resolve(statistic, p, options)
    two_sided = function in _plans.LINEAR
    limit = None if stop_after is None else check_count("stop_after", stop_after)
    if limit is not None and two_sided:
        raise InputError(f"`stop_after` is for upper-tailed statistics; {name} is tested on both sides.")
    options |= _binning(name, function, bins, strategy)
    given = _plans.read(function, y, p, options, freq_weights=freq_weights, event=event, classes=classes)
    sample = _expanded(given)
    if function in _plans.BINNED or function in _plans.LINEAR:
        with _plans.quiet():
            # Laws of sums do not call the function, which checks its options.
            _plans.evaluate_on(function, sample, None, options)
    generator = check_rng(rng)
    with progress_bar(n_resamples, f"draws of {name}", progress) as advance:
        law = _law(function, sample, options, n_resamples, limit, max_bytes, generator, advance)
    undefined = int(np.isnan(law.draws).sum())
    draws = pseudo_labels.collected([law.draws[~np.isnan(law.draws)]], law.observed, limit)
    if not draws.size:
        raise InputError(f"`statistic` must return a number for drawn labels; {name} returned NaN for all of them.")
    place = pseudo_labels.monte_carlo(law.observed, draws, two_sided=two_sided, stop_after=limit)
    return PseudoLabelTest(
        name="Pseudo-label test",
        null="labels are independent draws from p, which was not fitted on these rows",
        statistic=law.observed,
        pvalue=place.pvalue,
        distribution="pseudo-label",
        method=name,
        nobs=given.nobs,
        details={"statistic": name, "n_resamples": draws.size, "two_sided": two_sided},
        note=_note(two_sided, stop_note(limit, draws.size, n_resamples), undefined),
        draws=draws,
        expected=place.mean,
        mc_error=place.error,
        by_class=None if law.by_class is None or limit is not None else _class_table(sample, *law.by_class),
    )


def _note(two_sided: bool, stop: str | None, undefined: int) -> str | None:
    lost = f"{undefined} draws without a value were left out" if undefined else None
    return "; ".join(part for part in ("two-sided" if two_sided else None, stop, lost) if part) or None


def stop_note(limit: int | None, made: int, most: int) -> str | None:
    """Say where draws were to stop and how many were made, if there was a limit."""
    return None if limit is None else f"at most {most} draws, to be stopped at {limit} as large; {made} were made"


def _resolve(statistic: Any, p: Any, options: dict[str, Any]) -> tuple[str, _plans.Metric, dict[str, Any]]:
    """Return the name, the function and the options of the statistic."""
    if statistic is None:
        several = np.ndim(p) == 2 and np.shape(p)[1] > 2 and "type" not in options
        statistic = _plans.CLASSWISE if several else ece
    function, known = _plans.resolve(statistic, options, "statistic")
    classwise = "type" in known and "type" not in options
    return _plans.CLASSWISE if classwise else _plans.name_of(function, known), function, known


def _binning(name: str, function: _plans.Metric, bins: Edges | None, strategy: Strategy | None) -> dict[str, Any]:
    """Options for bins: defaults for binned errors, and what was asked for where the statistic takes it."""
    asked = {key: value for key, value in (("bins", bins), ("strategy", strategy)) if value is not None}
    if function in _plans.BINNED:
        return {"bins": 10, "strategy": "equal_width", **asked}
    if function in _plans.METRICS.values():
        return {}
    for key in asked:
        if not _plans.takes(function, key):
            raise InputError(f"`{key}` was given, but {name} has no argument of this name. Leave it out.")
    return asked


def _expanded(sample: Sample) -> Sample:
    """Turn weights into repeated rows."""
    if sample.weights is None:
        return sample
    rows = np.repeat(np.arange(sample.y.size), sample.weights.astype(np.int64))
    return _plans.with_labels(sample, sample.y[rows], rows)


def _class_table(sample: Sample, observed: FloatArray, draws: FloatArray) -> pd.DataFrame:
    places = [pseudo_labels.monte_carlo(o, d) for o, d in zip(observed.tolist(), draws.T, strict=True)]
    pvalues = np.array([q.pvalue for q in places])
    columns = {
        "statistic": observed,
        "expected": [q.mean for q in places],
        "pvalue": pvalues,
        "pvalue_holm": statistics.holm(pvalues),
    }
    labels = () if isinstance(sample, BinarySample) else sample.classes
    return pd.DataFrame(columns, index=pd.Index(labels, name="class"))


def _law(
    function: _plans.Metric,
    sample: Sample,
    options: dict[str, Any],
    n_resamples: int,
    stop_after: int | None,
    max_bytes: int,
    rng: np.random.Generator,
    advance: Advance,
) -> _Law:
    """Draw the null law of a statistic in the cheapest exact way.

    Draws that are made in turn, or in blocks, end when `stop_after` of them are as large as the observed value.
    """
    if function in _plans.BINNED and not options.get("debias", False):
        return _binned_law(function, sample, options, n_resamples, stop_after, max_bytes, rng, advance)
    if function in _plans.LINEAR:
        matrix = _matrix(sample)
        labels = [np.full(sample.y.size, k) for k in range(matrix.shape[1])]
        rows = [_plans.row_values(function, _plans.with_labels(sample, label), options) for label in labels]
        values = np.stack(rows, axis=1)
        draws = pseudo_labels.linear_draws(matrix, values[:, :, None], n_resamples, rng, max_bytes)
        observed = values[np.arange(sample.y.size), sample.y.astype(np.int64)].mean()
        return _Law(observed=float(observed), draws=draws[:, 0] / sample.y.size)
    observed = _plans.evaluate_on(function, sample, None, options)
    if function is mmce:
        draws = _kernel_draws(sample, options.get("bandwidth", BANDWIDTH), n_resamples, max_bytes, rng)
        return _Law(observed=observed, draws=draws)

    def one_by_one() -> Iterator[FloatArray]:
        for drawn in _drawn_labels(sample, n_resamples, max_bytes, rng):
            with _plans.quiet():
                value = _plans.evaluate_on(function, _plans.with_labels(sample, drawn), None, options)
            advance(1)
            yield np.array([value])

    return _Law(observed=observed, draws=pseudo_labels.collected(one_by_one(), observed, stop_after))


def _matrix(sample: Sample) -> FloatArray:
    """Return the probabilities as a matrix with a column for each label."""
    return np.stack([1 - sample.p, sample.p], axis=1) if isinstance(sample, BinarySample) else sample.p


def _binned_law(
    function: _plans.Metric,
    sample: Sample,
    options: dict[str, Any],
    n_resamples: int,
    stop_after: int | None,
    max_bytes: int,
    rng: np.random.Generator,
    advance: Advance,
) -> _Law:
    c = _plans.cells(function, sample, options)
    flat = c.index.ravel()
    count = np.bincount(flat, minlength=c.size).astype(np.float64)
    difference = np.bincount(flat, weights=(c.outcome - c.score).ravel(), minlength=c.size).astype(np.float64)
    expected = np.bincount(flat, weights=c.score.ravel(), minlength=c.size)
    power = 2 if function is squared_ece else 1

    def errors(difference: FloatArray) -> FloatArray:
        return resampling.class_errors(count, difference, c.group, c.norm) ** power

    observed = errors(difference)
    overall = float(resampling.combined(observed, c.combine))
    if c.index.shape[1] == 1:
        counts = pseudo_labels.bin_counts(c.score[:, 0], flat, c.size, n_resamples, rng)
        return _Law(observed=overall, draws=resampling.combined(errors(counts - expected), c.combine))
    by_class = []

    def together() -> Iterator[FloatArray]:
        for block in _count_blocks(sample.p, c, n_resamples, max_bytes, rng):
            by_class.append(errors(block - expected))
            advance(len(block))
            yield resampling.combined(by_class[-1], c.combine)

    draws = pseudo_labels.collected(together(), overall, stop_after)
    return _Law(observed=overall, draws=draws, by_class=(observed, np.concatenate(by_class)))


def _count_blocks(
    P: FloatArray, c: _plans.Cells, n_resamples: int, max_bytes: int, rng: np.random.Generator
) -> Iterator[FloatArray]:
    """Yield blocks (m, C) of the counts of the cells when labels are draws from the rows of P (n, K).

    For many rows each count is drawn from its own exact law, and their dependence is that of normal draws with the
    exact correlation of the counts, which costs the same for any number of draws.
    """
    n, K = P.shape
    drawn = n_resamples * float((1 - P.max(axis=1)).sum())
    if n < _MANY_ROWS or drawn < n * K * (_CLASS_COST + K * _PAIR_COST) or n_resamples * c.size * 32 > max_bytes:
        yield from pseudo_labels.cell_counts(P, c.index, c.size, n_resamples, rng, max_bytes)
        return
    uniform = resampling.uniform_draws(c.size, _plans.correlation(c, np.ones(n)), n_resamples, rng)
    yield pseudo_labels.count_quantiles(c.score.ravel(), c.index.ravel(), uniform.T)


def _kernel_draws(
    sample: Sample, bandwidth: float, n_resamples: int, max_bytes: int, rng: np.random.Generator
) -> FloatArray:
    """Draw MMCE: the scores are sorted once, and only residuals change."""
    r = np.sort(top_score(sample)[1])
    cross, square = pair_sum_draws(r, bandwidth, n_resamples, rng, min(max_bytes, 1 << 24))
    return np.sqrt(np.maximum(cross + square, 0.0)) / r.size


def _drawn_labels(sample: Sample, n_resamples: int, max_bytes: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield one vector of labels (n,) for each draw."""
    if isinstance(sample, BinarySample):
        for block in pseudo_labels.label_blocks(sample.p, n_resamples, rng, max_bytes):
            yield from block
        return
    top = sample.p.argmax(axis=1)
    for part in pseudo_labels.departures(sample.p, n_resamples, rng, max_bytes):
        order = np.argsort(part.draw, kind="stable")
        ends = np.searchsorted(part.draw[order], np.arange(part.stop - part.start + 1))
        for a, b in pairwise(ends):
            labels = top.copy()
            labels[part.row[order[a:b]]] = part.label[order[a:b]]
            yield labels
