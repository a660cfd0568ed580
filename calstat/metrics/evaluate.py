"""All metrics in one table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from calstat._arrays.binning import BinTable, Strategy
from calstat._input.validation import BinarySample, MetricType, check_rng, check_sample
from calstat._typing import Label, RNGLike
from calstat.metrics._common import Edges, Sample, tables, top_score, warn_absent
from calstat.metrics._curves import smooth_curve, smooth_error
from calstat.metrics._kernel import BANDWIDTH, kernel_error
from calstat.metrics._scores import LOG_EPS, brier_rows, corp_decomposition, hits, log_rows
from calstat.metrics.errors import ace, ece, mce
from calstat.metrics.inference import bootstrap
from calstat.metrics.kernel import mmce
from calstat.metrics.scores import accuracy, brier_score, log_loss
from calstat.metrics.smooth import e50, e90, emax, ici, smooth_ece


def evaluate(
    y: Any,
    p: Any,
    *,
    bins: Edges = 10,
    strategy: Strategy = "equal_width",
    ci: bool = False,
    alpha: float = 0.05,
    n_resamples: int = 999,
    freq_weights: Any = None,
    event: Label | None = None,
    classes: Sequence[Label] | None = None,
    rng: RNGLike = None,
) -> pd.DataFrame:
    """
    All metrics of one set of predictions, as a table.

    Parameters
    ----------
    y : array_like of shape (n,)
        Outcomes.
    p : array_like of shape (n,), (n, 1), (n, 2) or (n, K)
        Probabilities of the event, or one column for each class. Two columns are read as binary.
    bins : int or array_like of shape (B + 1,), default 10
        Number of bins of the binned errors, or their edges from 0 to 1.
    strategy : {"equal_width", "equal_freq"}, default "equal_width"
        Edges j / bins, or quantiles of type 8.
    ci : bool, default False
        Add intervals: those that `bootstrap` gives by default. Weights must then be whole numbers.
    alpha : float, default 0.05
        One minus the confidence level.
    n_resamples : int, default 999
        Resamples for the intervals of scores.
    freq_weights : array_like of shape (n,), optional
        Weight k counts as k copies of the row.
    event : label, optional
        The outcome that `p` is the probability of; needed for strings.
    classes : sequence of K labels, optional
        The class of each column of a matrix.
    rng : None, int or numpy.random.Generator
        Source of randomness for the intervals.

    Returns
    -------
    DataFrame
        Column ``value``, and with `ci` ``ci_low``, ``ci_high`` and ``ci_method``, missing for metrics without an
        interval that is known to cover. Indexed by metric, each by the name of its function and, for a matrix, its
        reading or scaling, as in ``ece[classwise]``; ``rms_ce`` is ``ece(norm=2)``. MCB, DSC and UNC are
        the parts of the Brier score that `score_decomposition` gives. All options but `bins` and `strategy` have
        their defaults. Scores come first, since a calibrated forecast can still be useless.

    Raises
    ------
    InputError
        If an argument is not as described; the message names it and the remedy.

    Warns
    -----
    DataWarning
        If a class does not occur in `y`.

    Examples
    --------
    >>> import calstat as cs
    >>> y, p = [0, 0, 1, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    >>> cs.evaluate(y, p, bins=5).loc[["brier_score", "log_loss", "ece"]].round(3)
                 value
    metric
    brier_score  0.180
    log_loss     0.529
    ece          0.150

    With eight rows an error of 0.15 is no more than chance would give: test before believing it.
    """
    sample = check_sample(y, p, freq_weights=freq_weights, event=event, classes=classes)
    values = _scores(sample)
    if isinstance(sample, BinarySample):
        values |= _binned(sample, None, bins, strategy, "")
        values |= _unbinned(sample)
        values |= _curve(sample)
    else:
        warn_absent(sample, "classwise")
        values |= _binned(sample, "confidence", bins, strategy, "[confidence]")
        values |= _binned(sample, "classwise", bins, strategy, "[classwise]")
        values |= _unbinned(sample)
    frame = pd.DataFrame({"value": pd.Series(values, dtype=float).rename_axis("metric")})
    if not ci:
        return frame
    generator = check_rng(rng)
    limits = [_interval(name, sample, bins, strategy, alpha, n_resamples, generator) for name in frame.index]
    columns = ["ci_low", "ci_high", "ci_method"]
    return frame.join(
        pd.DataFrame(limits, index=frame.index, columns=columns).astype({"ci_low": float, "ci_high": float})
    )


_FUNCTIONS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "brier_score": (brier_score, {}),
    "brier_score[classes]": (brier_score, {"average": "classes"}),
    "log_loss": (log_loss, {}),
    "accuracy": (accuracy, {}),
    **{f.__name__: (f, {}) for f in (mmce, smooth_ece, ici, e50, e90, emax)},
    **{
        f"{name}{suffix}": (function, {**options, **({"type": suffix[1:-1]} if suffix else {})})
        for name, function, options in (
            ("ece", ece, {}),
            ("rms_ce", ece, {"norm": 2}),
            ("ace", ace, {}),
            ("mce", mce, {}),
        )
        for suffix in ("", "[confidence]", "[classwise]")
    },
}
"""Metrics that have an interval, with their options."""


def _interval(
    name: str, sample: Sample, bins: Edges, strategy: Strategy, alpha: float, n_resamples: int, rng: np.random.Generator
) -> tuple[float, float, str | None]:
    """Limits of one metric and how they were made."""
    if name not in _FUNCTIONS:
        return float("nan"), float("nan"), None
    function, options = _FUNCTIONS[name]
    binned = function in {ece, ace, mce}
    if binned:
        options = {**options, "bins": bins, "strategy": strategy}
    if not isinstance(sample, BinarySample):
        options = {**options, "classes": range(len(sample.classes))}
    # The limits of errors come from sums over bins or from smoothers: they need no resamples.
    result = bootstrap(
        function,
        sample.y,
        sample.p,
        n_resamples=n_resamples if function in {brier_score, log_loss, accuracy} else 2,
        freq_weights=sample.weights,
        rng=rng,
        **options,
    )
    return *result.conf_int(alpha), result.ci_method


def _scores(sample: Sample) -> dict[str, float]:
    def mean(rows: np.ndarray) -> float:
        return float(np.average(rows, weights=sample.weights))

    values = {"brier_score": mean(brier_rows(sample))}
    if not isinstance(sample, BinarySample):
        values["brier_score[classes]"] = mean(brier_rows(sample, "classes"))
    values["log_loss"] = mean(log_rows(sample, LOG_EPS))
    values["accuracy"] = mean(hits(sample))
    if isinstance(sample, BinarySample):
        parts = corp_decomposition(sample, "brier", LOG_EPS)
        values |= {"MCB": parts.miscalibration, "DSC": parts.discrimination, "UNC": parts.uncertainty}
    return values


def _binned(
    sample: Sample,
    type: MetricType | None,  # noqa: A002  as in the public functions
    bins: Edges,
    strategy: Strategy,
    suffix: str,
) -> dict[str, float]:
    binned: tuple[BinTable, ...] = tables(sample, type, bins, strategy)
    return {
        f"ece{suffix}": float(np.mean([t.error(1) for t in binned])),
        f"rms_ce{suffix}": float(np.mean([t.error(2) for t in binned])),
        f"ace{suffix}": float(np.mean([t.error("mean") for t in binned])),
        f"mce{suffix}": max(t.error("max") for t in binned),
    }


def _unbinned(sample: Sample) -> dict[str, float]:
    outcome, score = top_score(sample)
    return {
        "mmce": kernel_error(outcome, score, BANDWIDTH, sample.weights),
        "smooth_ece": smooth_error(outcome, score, sample.weights),
    }


def _curve(sample: BinarySample) -> dict[str, float]:
    whole = sample.weights is None or bool(np.all(sample.weights == np.round(sample.weights)))
    # Lowess counts neighbours, so weights that are no counts leave its statistics undefined.
    if not whole:
        return dict.fromkeys(("ici", "e50", "e90", "emax"), float("nan"))
    curve = smooth_curve(sample, "lowess", None)
    return {
        "ici": curve.mean(),
        "e50": curve.quantile(0.5),
        "e90": curve.quantile(0.9),
        "emax": curve.quantile(1.0),
    }
