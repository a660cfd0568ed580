"""Errors of smoothed calibration curves: E-statistics and the smooth calibration error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import pandas as pd

from calstat._input.validation import BinarySample, check_choice, check_sample
from calstat._typing import Label, Scale
from calstat.metrics._common import read_event, top_score
from calstat.metrics._curves import Smoother, smooth_curve, smooth_error


def _read(
    y: Any,
    p: Any,
    smoother: Smoother,
    scale: Scale | None,
    freq_weights: Any,
    event: Label | None,
    classes: Sequence[Label] | None,
) -> BinarySample:
    check_choice("smoother", smoother, ("lowess", "logistic", "spline"))
    check_choice("scale", scale, (None, "probability", "logit"))
    return read_event(y, p, freq_weights, event, classes)


def calibration_curve(
    y: Any,
    p: Any,
    *,
    smoother: Smoother = "lowess",
    scale: Scale | None = None,
    freq_weights: Any = None,
    event: Label | None = None,
    classes: Sequence[Label] | None = None,
) -> pd.DataFrame:
    """
    Smoothed event rate as a function of the probability.

    Parameters
    ----------
    y : array_like of shape (n,)
        Binary outcomes.
    p : array_like of shape (n,), (n, 1) or (n, 2)
        Probabilities of the event.
    smoother : {"lowess", "logistic", "spline"}, default "lowess"
        "lowess": local lines with span 2/3 and no robustness iterations, as R's rms draws them. "logistic":
        logistic regression on `scale`. "spline": logistic regression on a natural cubic spline of `scale`, with
        knots at the 5, 27.5, 50, 72.5 and 95% quantiles; fewer than three distinct values make it a line.
    scale : {"probability", "logit"}, optional
        What the curve is a smooth function of. By default p for "lowess", logit p for the others.
    freq_weights : array_like of shape (n,), optional
        Weight k counts as k copies of the row. "lowess" needs whole numbers.
    event : label, optional
        The outcome that `p` is the probability of; needed for strings.
    classes : sequence of 2 labels, optional
        The class of each column of `p`; the second is the event.

    Returns
    -------
    DataFrame
        Columns ``p`` (distinct probabilities, increasing), ``calibrated`` and ``count``; its ``attrs`` name the
        smoother and the scale. Lowess may leave [0, 1]. One single p gives the event rate.

    Raises
    ------
    InputError
        If an argument is not as described; the message names it and the remedy.

    Warns
    -----
    SeparationWarning
        If a logistic curve has no finite optimum.

    See Also
    --------
    ici : The mean distance from the diagonal.
    reliability_table : Bins instead of a curve.

    References
    ----------
    Cleveland, W. S. (1979). Robust locally weighted regression and smoothing scatterplots. JASA 74.
    https://doi.org/10.1080/01621459.1979.10481038
    Harrell, F. E. (2015). Regression Modeling Strategies. 2nd ed. https://doi.org/10.1007/978-3-319-19425-7

    Examples
    --------
    >>> import calstat as cs
    >>> y, p = [0, 0, 1, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    >>> curve = cs.calibration_curve(y, p, smoother="logistic")
    >>> curve.round(2).head(3)
         p  calibrated  count
    0  0.1        0.07    1.0
    1  0.2        0.18    1.0
    2  0.3        0.31    1.0
    >>> curve.attrs["scale"]
    'logit'

    Where 0.1 was said, about 7% of the rows have the event.
    """
    sample = _read(y, p, smoother, scale, freq_weights, event, classes)
    curve = smooth_curve(sample, smoother, scale)
    frame = pd.DataFrame({"p": curve.p, "calibrated": curve.value, "count": curve.count})
    frame.attrs = {"smoother": curve.smoother, "scale": curve.scale}
    return frame


def ici(
    y: Any,
    p: Any,
    *,
    smoother: Smoother = "lowess",
    scale: Scale | None = None,
    freq_weights: Any = None,
    event: Label | None = None,
    classes: Sequence[Label] | None = None,
) -> float:
    """
    Integrated calibration index: mean absolute difference of the smoothed event rate and the probability.

    Parameters
    ----------
    y : array_like of shape (n,)
        Binary outcomes.
    p : array_like of shape (n,), (n, 1) or (n, 2)
        Probabilities of the event.
    smoother : {"lowess", "logistic", "spline"}, default "lowess"
        How the calibration curve is drawn; the value depends on it, see `calibration_curve`.
    scale : {"probability", "logit"}, optional
        What the curve is a smooth function of. By default p for "lowess", logit p for the others.
    freq_weights : array_like of shape (n,), optional
        Weight k counts as k copies of the row. "lowess" needs whole numbers.
    event : label, optional
        The outcome that `p` is the probability of; needed for strings.
    classes : sequence of 2 labels, optional
        The class of each column of `p`; the second is the event.

    Returns
    -------
    float
        Mean over rows of abs(curve(p) - p). With "lowess" it is the Eavg of R's rms.

    Raises
    ------
    InputError
        If an argument is not as described; the message names it and the remedy.

    Warns
    -----
    SeparationWarning
        If a logistic curve has no finite optimum.

    See Also
    --------
    e50, e90, emax : Quantiles of the same differences.

    Notes
    -----
    Packages differ by half in these numbers, since their smoothers differ: name the smoother with the number.
    `bootstrap` gives limits for all four with "lowess" of p.

    References
    ----------
    Austin, P. C. and Steyerberg, E. W. (2019). The Integrated Calibration Index (ICI) and related metrics for
    quantifying the calibration of logistic regression models. Statistics in Medicine 38.
    https://doi.org/10.1002/sim.8281

    Examples
    --------
    >>> import calstat as cs
    >>> y, p = [0, 0, 1, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    >>> round(cs.ici(y, p, smoother="logistic"), 3)
    0.064

    On average the probabilities are 6.4 percentage points away from the curve.
    """
    return smooth_curve(_read(y, p, smoother, scale, freq_weights, event, classes), smoother, scale).mean()


def e50(
    y: Any,
    p: Any,
    *,
    smoother: Smoother = "lowess",
    scale: Scale | None = None,
    freq_weights: Any = None,
    event: Label | None = None,
    classes: Sequence[Label] | None = None,
) -> float:
    """
    Median absolute difference of the smoothed event rate and the probability.

    Parameters
    ----------
    y : array_like of shape (n,)
        Binary outcomes.
    p : array_like of shape (n,), (n, 1) or (n, 2)
        Probabilities of the event.
    smoother : {"lowess", "logistic", "spline"}, default "lowess"
        How the calibration curve is drawn; the value depends on it, see `calibration_curve`.
    scale : {"probability", "logit"}, optional
        What the curve is a smooth function of. By default p for "lowess", logit p for the others.
    freq_weights : array_like of shape (n,), optional
        Weight k counts as k copies of the row. "lowess" needs whole numbers.
    event : label, optional
        The outcome that `p` is the probability of; needed for strings.
    classes : sequence of 2 labels, optional
        The class of each column of `p`; the second is the event.

    Returns
    -------
    float
        Median over rows of abs(curve(p) - p).

    Raises
    ------
    InputError
        If an argument is not as described; the message names it and the remedy.

    Warns
    -----
    SeparationWarning
        If a logistic curve has no finite optimum.

    See Also
    --------
    ici : The mean of the same differences, and what to mind.

    References
    ----------
    Austin, P. C. and Steyerberg, E. W. (2019). The Integrated Calibration Index (ICI) and related metrics for
    quantifying the calibration of logistic regression models. Statistics in Medicine 38.
    https://doi.org/10.1002/sim.8281

    Examples
    --------
    >>> import calstat as cs
    >>> y, p = [0, 0, 1, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    >>> round(cs.e50(y, p, smoother="logistic"), 3)
    0.064

    Half of the rows are closer to the curve than that.
    """
    sample = _read(y, p, smoother, scale, freq_weights, event, classes)
    return smooth_curve(sample, smoother, scale).quantile(0.5)


def e90(
    y: Any,
    p: Any,
    *,
    smoother: Smoother = "lowess",
    scale: Scale | None = None,
    freq_weights: Any = None,
    event: Label | None = None,
    classes: Sequence[Label] | None = None,
) -> float:
    """
    90% quantile of the absolute difference of the smoothed event rate and the probability.

    Parameters
    ----------
    y : array_like of shape (n,)
        Binary outcomes.
    p : array_like of shape (n,), (n, 1) or (n, 2)
        Probabilities of the event.
    smoother : {"lowess", "logistic", "spline"}, default "lowess"
        How the calibration curve is drawn; the value depends on it, see `calibration_curve`.
    scale : {"probability", "logit"}, optional
        What the curve is a smooth function of. By default p for "lowess", logit p for the others.
    freq_weights : array_like of shape (n,), optional
        Weight k counts as k copies of the row. "lowess" needs whole numbers.
    event : label, optional
        The outcome that `p` is the probability of; needed for strings.
    classes : sequence of 2 labels, optional
        The class of each column of `p`; the second is the event.

    Returns
    -------
    float
        90% quantile (type 7) over rows of abs(curve(p) - p).

    Raises
    ------
    InputError
        If an argument is not as described; the message names it and the remedy.

    Warns
    -----
    SeparationWarning
        If a logistic curve has no finite optimum.

    See Also
    --------
    ici : The mean of the same differences, and what to mind.

    References
    ----------
    Austin, P. C. and Steyerberg, E. W. (2019). The Integrated Calibration Index (ICI) and related metrics for
    quantifying the calibration of logistic regression models. Statistics in Medicine 38.
    https://doi.org/10.1002/sim.8281

    Examples
    --------
    >>> import calstat as cs
    >>> y, p = [0, 0, 1, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    >>> round(cs.e90(y, p, smoother="logistic"), 3)
    0.108

    Nine rows in ten are closer to the curve than that.
    """
    sample = _read(y, p, smoother, scale, freq_weights, event, classes)
    return smooth_curve(sample, smoother, scale).quantile(0.9)


def emax(
    y: Any,
    p: Any,
    *,
    smoother: Smoother = "lowess",
    scale: Scale | None = None,
    freq_weights: Any = None,
    event: Label | None = None,
    classes: Sequence[Label] | None = None,
) -> float:
    """
    Largest absolute difference of the smoothed event rate and the probability.

    Parameters
    ----------
    y : array_like of shape (n,)
        Binary outcomes.
    p : array_like of shape (n,), (n, 1) or (n, 2)
        Probabilities of the event.
    smoother : {"lowess", "logistic", "spline"}, default "lowess"
        How the calibration curve is drawn; the value depends on it, see `calibration_curve`.
    scale : {"probability", "logit"}, optional
        What the curve is a smooth function of. By default p for "lowess", logit p for the others.
    freq_weights : array_like of shape (n,), optional
        Weight k counts as k copies of the row. "lowess" needs whole numbers.
    event : label, optional
        The outcome that `p` is the probability of; needed for strings.
    classes : sequence of 2 labels, optional
        The class of each column of `p`; the second is the event.

    Returns
    -------
    float
        Largest abs(curve(p) - p) over the rows, not over all of [0, 1].

    Raises
    ------
    InputError
        If an argument is not as described; the message names it and the remedy.

    Warns
    -----
    SeparationWarning
        If a logistic curve has no finite optimum.

    See Also
    --------
    ici : The mean of the same differences, and what to mind.

    References
    ----------
    Austin, P. C. and Steyerberg, E. W. (2019). The Integrated Calibration Index (ICI) and related metrics for
    quantifying the calibration of logistic regression models. Statistics in Medicine 38.
    https://doi.org/10.1002/sim.8281

    Examples
    --------
    >>> import calstat as cs
    >>> y, p = [0, 0, 1, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    >>> round(cs.emax(y, p, smoother="logistic"), 3)
    0.113

    No row is farther from the curve than that.
    """
    sample = _read(y, p, smoother, scale, freq_weights, event, classes)
    return smooth_curve(sample, smoother, scale).quantile(1.0)


def smooth_ece(
    y: Any,
    p: Any,
    *,
    type: Literal["confidence"] | None = None,  # noqa: A002
    freq_weights: Any = None,
    event: Label | None = None,
    classes: Sequence[Label] | None = None,
) -> float:
    r"""
    Smooth calibration error: no bins, and a bandwidth that the error itself chooses.

    .. math:: \mathrm{smECE}_\sigma = \int_0^1 \Bigl\lvert \frac1n \sum_i (y_i - p_i) K_\sigma(t, p_i) \Bigr\rvert \,dt

    with the Gaussian kernel reflected at 0 and 1; the result is the σ at which the error equals σ.

    Parameters
    ----------
    y : array_like of shape (n,)
        Outcomes.
    p : array_like of shape (n,), (n, 1), (n, 2) or (n, K)
        Probabilities of the event, or one column for each class: then the top label's probability is compared
        with its being right. Two columns are read as binary, unless `type` is given.
    type : {"confidence"}, optional
        Asks for the top label with two columns; with more there is no other reading.
    freq_weights : array_like of shape (n,), optional
        Weight k counts as k copies of the row.
    event : label, optional
        The outcome that `p` is the probability of; needed for strings.
    classes : sequence of K labels, optional
        The class of each column of a matrix.

    Returns
    -------
    float
        Between 0 and 1. A small change of a probability changes it by little, which binned errors do not promise.

    Raises
    ------
    InputError
        If an argument is not as described; the message names it and the remedy.

    Notes
    -----
    Residuals are laid on a grid of 16,384 cells, on which the reflected kernel is a product in the cosine
    transform. That changes the value by less than 1e-6 unless it lies below 0.001. `bootstrap` gives limits.

    References
    ----------
    Błasiok, J. and Nakkiran, P. (2024). Smooth ECE: principled reliability diagrams via kernel smoothing. ICLR.
    https://arxiv.org/abs/2309.12236

    Examples
    --------
    >>> import calstat as cs
    >>> round(cs.smooth_ece([0, 0, 1, 1, 1], [0.25, 0.25, 0.55, 0.75, 0.75]), 3)
    0.198

    Moving the probabilities by about 0.2 on average would make this forecast calibrated.
    """
    check_choice("type", type, (None, "confidence"))
    sample = check_sample(y, p, type=type, freq_weights=freq_weights, event=event, classes=classes)
    return smooth_error(*top_score(sample), sample.weights)
