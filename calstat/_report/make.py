"""The front of the report: arguments are checked, and the binary or the multiclass report is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calstat._arrays.binning import Strategy
from calstat._input.validation import BinarySample, align, check_alpha, check_count, check_sample
from calstat._report.binary import binary_report
from calstat._report.models import compare
from calstat._report.multiclass import multiclass_report
from calstat._report.options import Options
from calstat._report.result import CalibrationReport
from calstat._typing import ArrayLike, Label
from calstat.diagnostics import CalibrationByGroup, calibration_by
from calstat.exceptions import InputError
from calstat.metrics._common import Edges
from calstat.reliability import Look


def report(
    y: ArrayLike,
    p: ArrayLike,
    *,
    bins: Edges = 10,
    strategy: Strategy = "equal_width",
    freq_weights: ArrayLike | None = None,
    event: Label | None = None,
    classes: Sequence[Label] | None = None,
    alpha: float = 0.05,
    n_resamples: int = 999,
    rng: int = 0,
    models: Mapping[str, ArrayLike] | None = None,
    by: ArrayLike | None = None,
    title: str = "Calibration report",
) -> CalibrationReport:
    """
    Report on the calibration of predictions: description, scores, errors, tests, bins and diagrams.

    Parameters
    ----------
    y : array_like of shape (n,)
        Outcomes.
    p : array_like of shape (n,), (n, 1), (n, 2) or (n, K)
        Predicted probabilities of the event, or one column for each class, from a model that was not fitted on these
        rows. Two columns are read as binary.
    bins : int or array_like of shape (B + 1,), default 10
        Number of bins of the binned errors, or their edges from 0 to 1.
    strategy : {"equal_width", "equal_freq"}, default "equal_width"
        Edges j / bins, or quantiles of type 8.
    freq_weights : array_like of shape (n,), optional
        Whole numbers: weight k counts as k copies of the row.
    event : label, optional
        The outcome that `p` is the probability of; needed for strings.
    classes : sequence of K labels, optional
        The class of each column of a matrix.
    alpha : float, default 0.05
        One minus the confidence level of all intervals.
    n_resamples : int, default 999
        Draws for intervals and p-values that are simulated.
    rng : int, default 0
        Seed: the same data give the same report.
    models : mapping of str to array_like, optional
        Further predictions of the same rows, such as those of a rival or of `p` after calibration, to be set beside
        it. For a binary outcome.
    by : array_like of shape (n,), optional
        Subgroup of each row, such as sex or hospital, for a binary outcome: the calibration of each, and the test
        that one recalibration map serves all.
    title : str
        Title of the report.

    Returns
    -------
    CalibrationReport
        It prints; ``summary()``, ``to_frame()``, ``plot()`` and ``to_html(path)`` give its forms.

    Raises
    ------
    InputError
        If an argument is not as described; the message names it and the remedy.

    Examples
    --------
    >>> import calstat as cs
    >>> df = cs.datasets.load_heart_disease()
    >>> result = cs.report(df["disease"], df["p_naive_bayes"])
    >>> print(result.findings[1])
    The predictions are too extreme, on the logit scale: slope 0.321, 95% interval 0.250 to 0.391; 1 if calibrated.

    Read the sentences first, then the intervals of the table they are made of.
    """
    look = Look(
        bins=bins,
        strategy=strategy,
        ci_method="wilson",
        band="consistency",
        curve="corp",
        alpha=check_alpha(alpha),
        n_resamples=check_count("n_resamples", n_resamples, minimum=2),
    )
    options = Options(
        look=look,
        seed=check_count("rng", rng, minimum=0),
        title=title,
        outcome=_name(y, "y"),
        predictions=_name(p, "p"),
    )
    others = {f"models[{name!r}]": values for name, values in (models or {}).items()}
    _, (y, p, freq_weights, by, *aligned) = align(y=y, p=p, freq_weights=freq_weights, by=by, **others)
    models = dict(zip(models or {}, aligned, strict=True))
    sample = check_sample(y, p, freq_weights=freq_weights, event=event, classes=classes, integer_weights=True)
    if isinstance(sample, BinarySample):
        beside = None
        if models:
            named = _named(options.predictions, p, models)
            beside = compare(y, named, freq_weights=freq_weights, event=event, options=options)
        return binary_report(sample, options, beside, _groups(y, p, by, freq_weights, event, options))
    if models or by is not None:
        name = "models" if models else "by"
        raise InputError(f"`{name}` is for a binary outcome; for several classes, report on each part by itself.")
    return multiclass_report(sample, options)


def _groups(
    y: Any, p: Any, by: Any, freq_weights: Any, event: Label | None, options: Options
) -> CalibrationByGroup | None:
    """Assess each subgroup, if there are any."""
    if by is None:
        return None
    look = options.look
    return calibration_by(
        y,
        p,
        by,
        bins=look.bins,
        strategy=look.strategy,
        alpha=options.alpha,
        freq_weights=freq_weights,
        event=event,
        rng=options.seed,
    )


def _name(values: Any, default: str) -> str:
    """Name of a Series, or what the argument is called."""
    name = getattr(values, "name", None)
    return default if name is None else str(name)


def _named(name: str, p: ArrayLike, models: Mapping[str, ArrayLike]) -> dict[str, ArrayLike]:
    """Put the report's own predictions before the others."""
    if name in models:
        raise InputError(f"`models` must have other names than {name!r}, the name of the predictions in `p`.")
    return {name: p, **models}


__all__ = ["report"]
