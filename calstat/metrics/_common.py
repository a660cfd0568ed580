"""Reading arguments that all metrics share, and turning a sample into tables of bins."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from calstat._arrays.binning import BinTable, Strategy, bin_edges, bin_table, classwise_tables, top_label
from calstat._input.labels import show
from calstat._input.validation import (
    BinarySample,
    MetricType,
    MulticlassSample,
    check_choice,
    check_multiclass,
    check_sample,
)
from calstat._typing import ArrayLike, FloatArray, Label
from calstat.exceptions import DataWarning, InputError

Average: TypeAlias = Literal["mean", "sum"]
Sample: TypeAlias = BinarySample | MulticlassSample
Edges: TypeAlias = int | ArrayLike
"""What `bins` may be: a number of bins, or their edges."""

_TYPES = (None, "classwise", "confidence")


def read_sample(
    y: Any,
    p: Any,
    type: MetricType | None,  # noqa: A002  the public name of the argument
    freq_weights: Any,
    event: Label | None,
    classes: Sequence[Label] | None,
    *,
    integer_weights: bool = False,
) -> Sample:
    """Check (y, p) for a metric that has two readings of a matrix; `type` says which."""
    check_choice("type", type, _TYPES)
    sample = check_sample(
        y,
        p,
        type=type,
        freq_weights=freq_weights,
        event=event,
        classes=classes,
        integer_weights=integer_weights,
    )
    if isinstance(sample, MulticlassSample) and type is None:
        raise InputError(
            "`type` must be said for a matrix of probabilities: 'classwise' compares each column with its class, "
            "'confidence' compares the top label's probability with being right."
        )
    return sample


def read_matrix(y: Any, p: Any, freq_weights: Any, classes: Sequence[Label] | None) -> MulticlassSample:
    """Check (y, p) for a metric of matrices."""
    return check_multiclass(y, p, freq_weights=freq_weights, classes=classes)


def read_event(y: Any, p: Any, freq_weights: Any, event: Label | None, classes: Sequence[Label] | None) -> BinarySample:
    """Check (y, p) for a metric of one event's probability."""
    sample = check_sample(y, p, freq_weights=freq_weights, event=event, classes=classes)
    if isinstance(sample, BinarySample):
        return sample
    raise InputError(
        f"`p` must be the probability of one event here; it has {sample.p.shape[1]} columns. Pass one class at a time: "
        "`y == label` and its column."
    )


def top_score(sample: Sample) -> tuple[np.ndarray, FloatArray]:
    """Return what is predicted (n,), 0 or 1, and its probability (n,): of a matrix, the top label."""
    if isinstance(sample, BinarySample):
        return sample.y, sample.p
    top = top_label(sample.y, sample.p)
    return top.hit, top.confidence


def views(sample: Sample, type: MetricType | None) -> list[tuple[FloatArray, FloatArray]]:  # noqa: A002
    """Return the pairs (outcome, probability) that a sample is read as: one, or one for each class."""
    if isinstance(sample, BinarySample):
        return [(sample.y, sample.p)]
    if type == "confidence":
        top = top_label(sample.y, sample.p)
        return [(top.hit.astype(float), top.confidence)]
    return [((sample.y == k).astype(float), sample.p[:, k]) for k in range(len(sample.classes))]


def tables(
    sample: Sample,
    type: MetricType | None,  # noqa: A002
    bins: Edges,
    strategy: Strategy,
) -> tuple[BinTable, ...]:
    """Return the tables of bins that a sample is read as: one, or one for each class."""
    w = sample.weights
    if isinstance(sample, MulticlassSample) and type == "classwise":
        # Quantiles differ from column to column; all other edges do not depend on the data.
        if strategy == "equal_freq" and np.ndim(bins) == 0:
            return classwise_tables(
                sample.y, sample.p, [bin_edges(column, bins, strategy, w) for column in sample.p.T], w
            )
        return classwise_tables(sample.y, sample.p, bin_edges(sample.p[:, 0], bins, strategy, w), w)
    ((outcome, score),) = views(sample, type)
    return (bin_table(outcome, score, bin_edges(score, bins, strategy, w), w),)


def averaged(values: Sequence[float], type: MetricType | None, average: Average) -> float:  # noqa: A002
    """Return the mean or the sum over classes, or the one value of a metric without classes."""
    check_choice("average", average, ("mean", "sum"))
    if average == "sum" and type != "classwise":
        raise InputError("`average`='sum' is for `type`='classwise': there is only one value to average here.")
    return float(np.sum(values) if average == "sum" else np.mean(values))


def warn_absent(sample: Sample, type: MetricType | None, stacklevel: int = 3) -> None:  # noqa: A002
    """Say which classes do not occur, where their columns take part in the result."""
    if not isinstance(sample, MulticlassSample) or type != "classwise":
        return
    absent = [k for k, count in zip(sample.classes, sample.class_counts, strict=True) if count == 0]
    if absent:
        warnings.warn(
            f"{len(absent)} of {len(sample.classes)} classes do not occur in `y`: {show(absent)}. Their columns count, "
            "compared with outcomes that are all 0; drop the columns and renormalise the rows if that is not meant.",
            DataWarning,
            stacklevel=stacklevel,
        )
