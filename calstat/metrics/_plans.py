"""What inference has to know about each metric: how it reads a sample, and which sums its law depends on."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from calstat._arrays import resampling
from calstat._arrays.binning import BinTable, Norm, assign_bins
from calstat._arrays.smooth_intervals import Smoothed
from calstat._input.validation import BinarySample, MetricType, MulticlassSample, check_multiclass, check_sample
from calstat._typing import FloatArray, IntArray, Label
from calstat.exceptions import CalstatWarning, InputError
from calstat.metrics._common import Sample, read_sample, tables, top_score, views
from calstat.metrics._curves import curve_cells, kernel_cells
from calstat.metrics._kernel import BANDWIDTH, pair_form
from calstat.metrics._scores import LOG_EPS, brier_rows, hits, log_rows
from calstat.metrics.errors import ace, classwise_ece, confidence_ece, ece, mce, squared_ece
from calstat.metrics.kernel import mmce
from calstat.metrics.scores import accuracy, brier_score, log_loss
from calstat.metrics.smooth import e50, e90, emax, ici, smooth_ece

Metric = Callable[..., Any]

BINNED: dict[Metric, Norm | None] = {ece: None, ace: "mean", mce: "max", confidence_ece: None, squared_ece: 2}
"""Binned errors and their norm; None where the `norm` option says it."""
LINEAR: tuple[Metric, ...] = (brier_score, log_loss, accuracy)
"""Means over rows."""
CURVE: dict[Metric, float | None] = {ici: None, e50: 0.5, e90: 0.9, emax: 1.0}
"""Errors of a smoothed curve: the quantile of the distances from the diagonal, None for their mean."""
UNBINNED: tuple[Metric, ...] = (mmce, smooth_ece, *CURVE)
"""Errors without bins; they are bounded by 0, and no bootstrap interval covers near 0."""
CLASSWISE = "classwise_ece"
METRICS: dict[str, Metric] = {f.__name__: f for f in (*BINNED, *LINEAR, *UNBINNED)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Cells of the bins of a sample: the bins of the event, or of each class one after the other.

    Attributes
    ----------
    size : int
        Number of cells C.
    index : ndarray of shape (n, V)
        Cell of each row in each of the V views: one view for binary data, K for classes.
    outcome, score : ndarray of shape (n, V)
        What is predicted, 0 or 1, and its probability.
    group : ndarray of shape (C,)
        View of each cell.
    norm : {1, 2, "max", "mean"}
        How the gaps of one view are summed up.
    combine : {"mean", "sum", "max"}
        How the views are.
    """

    size: int
    index: IntArray
    outcome: FloatArray
    score: FloatArray
    group: IntArray
    norm: Norm
    combine: str


def resolve(
    metric: Metric | str, options: Mapping[str, Any], argument: str = "metric"
) -> tuple[Metric, dict[str, Any]]:
    """Return the function of a metric that is given by name or as a callable, and its options.

    The classwise error is a table; its mean over the classes is `ece` with a type.
    """
    if metric == CLASSWISE or metric is classwise_ece:
        if options.get("type", "classwise") != "classwise":
            raise InputError(f"`type`={options['type']!r} contradicts {argument}={CLASSWISE!r}; use {argument}='ece'.")
        return ece, {**options, "type": "classwise"}
    if callable(metric):
        return metric, dict(options)
    if isinstance(metric, str) and metric in METRICS:
        return METRICS[metric], dict(options)
    known = ", ".join(map(repr, (*METRICS, CLASSWISE)))
    raise InputError(f"`{argument}` must be a callable or one of {known}; got {metric!r}.")


@contextmanager
def quiet() -> Iterator[None]:
    """Keep our own warnings of single evaluations down: a thousand resamples would repeat one remark."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalstatWarning)
        yield


def name_of(metric: Metric, options: Mapping[str, Any]) -> str:
    """Return the name of a metric with its reading of a matrix, as in ``ece[classwise]``."""
    name = getattr(metric, "__name__", type(metric).__name__)
    reading = options.get("type") or options.get("average")
    return f"{name}[{reading}]" if reading else name


def read(
    metric: Metric,
    y: Any,
    p: Any,
    options: Mapping[str, Any],
    *,
    freq_weights: Any,
    event: Label | None,
    classes: Sequence[Label] | None,
) -> Sample:
    """Check (y, p) as the metric reads it; weights must be whole numbers."""
    if metric is confidence_ece or options.get("average") in {"rows", "classes"}:
        if event is not None:
            raise InputError("`event` is for a binary outcome; pass `classes` to name the columns of a matrix.")
        return check_multiclass(y, p, freq_weights=freq_weights, classes=classes, integer_weights=True)
    type = options.get("type")  # noqa: A001  the public name of the option
    if metric in BINNED:
        return read_sample(y, p, type, freq_weights, event, classes, integer_weights=True)
    return check_sample(y, p, type=type, freq_weights=freq_weights, event=event, classes=classes, integer_weights=True)


def evaluate_on(metric: Metric, sample: Sample, counts: FloatArray | None, options: Mapping[str, Any]) -> float:
    """Return the value of a metric on the rows of a sample, each taken `counts` times (by default its weight)."""
    w = sample.weights if counts is None else counts
    keywords = dict(options)
    if metric in METRICS.values() and isinstance(sample, MulticlassSample):
        keywords["classes"] = range(len(sample.classes))
    if w is None:
        value = metric(sample.y, sample.p, **keywords)
    elif takes(metric, "freq_weights"):
        value = metric(sample.y, sample.p, freq_weights=w, **keywords)
    else:
        rows = np.repeat(np.arange(sample.y.size), w.astype(np.int64))
        value = metric(sample.y[rows], sample.p[rows], **keywords)
    if np.ndim(value) != 0 or not isinstance(value, int | float | np.number | np.bool_ | np.ndarray):
        raise InputError(
            f"`metric` must return one number; {name_of(metric, options)} returned {type(value).__name__} of shape "
            f"{np.shape(value)}. Wrap it in a function that picks one, for example `lambda y, p: metric(y, p)[0]`."
        )
    return float(value)


def takes(metric: Metric, name: str) -> bool:
    """Whether a metric has a parameter of this name; what it does with ``**options`` is not known."""
    try:
        return name in inspect.signature(metric).parameters
    except (TypeError, ValueError):
        return False


def row_values(metric: Metric, sample: Sample, options: Mapping[str, Any]) -> FloatArray:
    """Return the values (n,) of which a linear metric is the mean."""
    if metric is brier_score:
        return brier_rows(sample, options.get("average"))
    if metric is log_loss:
        return log_rows(sample, options.get("eps", LOG_EPS))
    return hits(sample).astype(np.float64)


def cells(metric: Metric, sample: Sample, options: Mapping[str, Any]) -> Cells:
    """Assign the rows of a sample to the bins of a binned metric, whose edges are those of this sample."""
    reading: MetricType | None = "confidence" if metric is confidence_ece else options.get("type")
    parts: tuple[BinTable, ...] = tables(
        sample, reading, options.get("bins", 10), options.get("strategy", "equal_width")
    )
    sizes = np.array([t.count.size for t in parts])
    first = np.cumsum(sizes) - sizes
    pairs = views(sample, reading)
    norm = BINNED[metric] or options.get("norm", 1)
    combine = "max" if metric is mce else options.get("average", "mean")
    return Cells(
        size=int(sizes.sum()),
        index=np.stack(
            [start + assign_bins(score, t.edges) for start, t, (_, score) in zip(first, parts, pairs, strict=True)],
            axis=1,
        ),
        outcome=np.stack([outcome for outcome, _ in pairs], axis=1),
        score=np.stack([score for _, score in pairs], axis=1),
        group=np.repeat(np.arange(sizes.size), sizes),
        norm=norm,
        combine=combine,
    )


def binned_sample(c: Cells, weights: FloatArray | None) -> resampling.BinnedSample:
    """Return the sums that the law of a binned error depends on, empty cells left out."""
    w = np.ones(c.index.shape[0]) if weights is None else weights
    wide = np.broadcast_to(w[:, None], c.index.shape)

    def sums(values: FloatArray) -> FloatArray:
        total = np.bincount(c.index.ravel(), weights=(wide * values).ravel(), minlength=c.size)
        return total.astype(np.float64)

    count = sums(np.ones(c.index.shape))
    used = count > 0
    return resampling.BinnedSample(
        count=count[used],
        mean_p=(sums(c.score)[used] / count[used]).clip(0, 1),
        events=sums(c.outcome)[used],
        square=sums((c.outcome - c.score) ** 2)[used],
        variance=sums(c.score * (1 - c.score))[used],
        correlation=correlation(c, w)[np.ix_(used, used)] if c.index.shape[1] > 1 else None,
        group=c.group[used],
        norm=c.norm,
        combine=c.combine,
    )


def smoothed_sample(metric: Metric, sample: Sample, options: Mapping[str, Any]) -> Smoothed | None:
    """Return what the law of an error without bins depends on; None for smoothers that are not linear in the outcomes.

    Lowess of p alone leaves the diagonal where it is; of other scales it does not.
    """
    if metric is mmce:
        return pair_form(*top_score(sample), options.get("bandwidth", BANDWIDTH), sample.weights)
    if metric is smooth_ece:
        return kernel_cells(*top_score(sample), sample.weights)
    lines = options.get("smoother", "lowess") == "lowess" and options.get("scale") in {None, "probability"}
    if metric in CURVE and isinstance(sample, BinarySample) and lines:
        return curve_cells(sample, CURVE[metric])
    return None


def correlation(c: Cells, w: FloatArray) -> FloatArray:
    """Correlation (C, C) of the event counts of the cells when labels are draws from the probabilities.

    Row i is one draw over its K cells, so that its counts have covariance diag(p_i) - p_i p_i'.
    """
    n, views_count = c.index.shape
    rows = np.repeat(np.arange(n), views_count)
    incidence = sparse.csr_array((c.score.ravel(), (rows, c.index.ravel())), shape=(n, c.size))
    scaled = sparse.diags_array(w) @ incidence
    covariance = np.diag(np.asarray(scaled.sum(axis=0))) - (incidence.T @ scaled).toarray()
    sd = np.sqrt(np.clip(np.diag(covariance), 0, None))
    safe = np.where(sd > 0, sd, 1.0)
    correlation = covariance / np.outer(safe, safe)
    np.fill_diagonal(correlation, 1.0)
    return correlation


def incidence(c: Cells) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Matrices (C, n) that take counts of rows to counts of cells, and to sums of outcome less score."""
    n, views_count = c.index.shape
    columns = np.repeat(np.arange(n), views_count)
    where = (c.index.ravel(), columns)
    residual = (c.outcome - c.score).ravel()
    return (
        sparse.csr_array((np.ones(residual.size), where), shape=(c.size, n)),
        sparse.csr_array((residual, where), shape=(c.size, n)),
    )


def with_labels(sample: Sample, y: np.ndarray, rows: IntArray | None = None) -> Sample:
    """Return the sample with other labels, and, where given, with these rows instead of weights."""
    p = sample.p if rows is None else sample.p[rows]
    if isinstance(sample, BinarySample):
        return replace(sample, y=y.astype(np.float64), p=p, weights=None, index=None)
    return replace(sample, y=y.astype(np.int64), p=p, weights=None, index=None)
