"""Reliability diagrams of data: computed with the metrics, drawn with the pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from scipy import special, stats
from scipy.optimize import isotonic_regression

from calstat import plots
from calstat._arrays.binning import Strategy, assign_bins, bin_edges, top_label
from calstat._arrays.pav import pav
from calstat._arrays.pseudo_labels import bin_counts, poisson_binomial
from calstat._arrays.softmax_maps import probability_regions
from calstat._input.validation import (
    BinarySample,
    MetricType,
    MulticlassSample,
    check_alpha,
    check_binary,
    check_choice,
    check_count,
    check_multiclass,
    check_rng,
    check_score_matrix,
)
from calstat._results import format_pvalue
from calstat._typing import ArrayLike, FloatArray, Label, RNGLike
from calstat.exceptions import InputError
from calstat.metrics import bootstrap, ece, pseudo_label_test, reliability_table
from calstat.metrics._common import Edges, read_sample, tables, views
from calstat.metrics._curves import smooth_curve
from calstat.multiclass.results import SoftmaxResults

Curve: TypeAlias = Literal["corp", "smooth"] | None
Band: TypeAlias = Literal["consistency"] | None
Limits: TypeAlias = Literal["wilson", "jeffreys"] | None

_MOST_PANELS = 20
_WORST = 11
_DRAWS = 500
# Ranks that keep a place of their own in the simulated band: the ends of a fit depend on few rows.
_OWN = 100
_GROUPS = 800
_CURVE_POINTS = 300
_SIMPLEX_STEPS = 8
_SIDE = 1e-3
_NICE = np.array([0.01, 0.02, 0.025, 0.05, 0.1, 0.2, 0.25, 0.5])


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a diagram is to show: the options of `reliability_diagram` once they are checked."""

    bins: Edges
    strategy: Strategy
    ci_method: Limits
    band: Band
    curve: Curve
    alpha: float
    n_resamples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityPanel:
    """The numbers that one reliability diagram shows; the arguments of `calstat.plots.reliability`.

    Arrays of shape (B,) for the bins, of other lengths for the curve, the bands and the histogram.
    """

    mean_p: FloatArray
    mean_y: FloatArray
    count: FloatArray
    interval: tuple[FloatArray, FloatArray] | None
    consistency: tuple[FloatArray, FloatArray, FloatArray] | None
    curve: tuple[FloatArray, FloatArray] | None
    curve_band: tuple[FloatArray, FloatArray, FloatArray] | None
    histogram: tuple[FloatArray, FloatArray]
    labels: dict[str, str]
    limits: tuple[float, float]
    title: str

    def draw(self, ax: Any = None, **texts: Any) -> Any:
        """Draw the diagram on `ax`, or on a new figure; `texts` are labels of the axes."""
        return plots.reliability(**self.arguments(), **texts, ax=ax)

    def arguments(self) -> dict[str, Any]:
        """Return the fields by name."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassPanels:
    """The diagrams of the classes that are shown, the names of all classes (K,), and their errors (K,)."""

    panels: tuple[ReliabilityPanel, ...]
    names: tuple[Label, ...]
    errors: FloatArray
    title: str

    def draw(self) -> Any:
        """Draw the panels on a new figure, with the errors by rank where some classes have no panel."""
        summary = None if len(self.panels) == len(self.names) else (self.names, self.errors)
        return plots.reliability_panels([panel.arguments() for panel in self.panels], summary=summary, title=self.title)


def reliability_diagram(
    y: ArrayLike,
    p: ArrayLike | Mapping[str, ArrayLike],
    *,
    bins: Edges = 10,
    strategy: Strategy = "equal_width",
    type: MetricType | None = None,  # noqa: A002  the name that every metric uses
    freq_weights: ArrayLike | None = None,
    event: Label | None = None,
    classes: Sequence[Label] | None = None,
    ci_method: Limits = "wilson",
    band: Band = "consistency",
    curve: Curve = "corp",
    alpha: float = 0.05,
    n_resamples: int = 999,
    rng: RNGLike = None,
    ax: Any = None,
) -> Any:
    r"""
    Reliability diagram: observed frequencies against predicted probabilities, with what is known of their errors.

    Parameters
    ----------
    y : array_like of shape (n,)
        Outcomes.
    p : array_like of shape (n,), (n, 1), (n, 2) or (n, K), or a mapping of names to such
        Probabilities of the event, or one column for each class. A mapping puts several forecasts of the same outcomes
        into one diagram: bins, intervals and the ECE of each, without bands and curves.
    bins : int or array_like of shape (B + 1,), default 10
        Number of bins, or their edges from 0 to 1. Empty bins are not drawn.
    strategy : {"equal_width", "equal_freq"}, default "equal_width"
        Edges j / bins, or quantiles of type 8.
    type : {"classwise", "confidence"}, optional
        Needed for a matrix. "classwise" gives a panel for each class, up to 20; with more classes, the 11 with the
        largest errors and the errors of all by rank. "confidence" compares the top label's probability with
        its being right.
    freq_weights : array_like of shape (n,), optional
        Weight k counts as k copies of the row. With weights that are not whole numbers there are no intervals, no band
        and no p-value: such weights do not tell how many rows there were.
    event : label, optional
        The outcome that `p` is the probability of; needed for strings.
    classes : sequence of K labels, optional
        The class of each column of a matrix.
    ci_method : {"wilson", "jeffreys", None}, default "wilson"
        Interval of each bin's frequency, as in `reliability_table`.
    band : {"consistency", None}, default "consistency"
        The grey band: where the isotonic curve would lie pointwise, with probability 1 - alpha, if the labels were
        draws from `p`; without that curve, where the frequency of each bin would.
    curve : {"corp", "smooth", None}, default "corp"
        "corp": the isotonic fit of the outcomes, which needs no bins. "smooth": logistic regression on a natural
        spline of logit p with five knots, as ``calibration_curve(smoother="spline")``, and its pointwise Wald band.
    alpha : float, default 0.05
        One minus the confidence level of intervals and band.
    n_resamples : int, default 999
        Draws for the interval and the p-value in the title.
    rng : None, int or numpy.random.Generator
        Source of randomness of the band, the interval and the p-value.
    ax : matplotlib Axes, optional
        Where to draw; a new figure is made when it is None. Panels by class make their own figure.

    Returns
    -------
    matplotlib.figure.Figure
        The axes end at a round number above the largest prediction if all are small, so that rare events
        can be seen.

    Raises
    ------
    InputError
        If an argument is not as described, `ax` is given for panels by class, or panels by class are asked for
        several forecasts.

    Notes
    -----
    The consistency band of the isotonic curve comes from 500 draws of labels; above 1000 rows, neighbouring rows are
    fitted together in 1000 groups, of one row each at either end. The band of the bins is that of their
    Poisson-binomial law.

    References
    ----------
    Dimitriadis, T., Gneiting, T. and Jordan, A. I. (2021). Stable reliability diagrams for probabilistic classifiers.
    PNAS 118(8). https://doi.org/10.1073/pnas.2016191118

    Bröcker, J. and Smith, L. A. (2007). Increasing the reliability of reliability diagrams. Weather and
    Forecasting 22. https://doi.org/10.1175/WAF993.1

    Examples
    --------
    >>> import calstat as cs
    >>> df = cs.datasets.load_heart_disease()
    >>> figure = cs.reliability_diagram(df["disease"], df["p_naive_bayes"], rng=1)
    >>> figure.axes[0].get_title(loc="left").splitlines()[0]
    'ECE 0.1...'

    Points below the diagonal at the right and above it at the left belong to predictions that are too extreme.
    """
    check_choice("ci_method", ci_method, ("wilson", "jeffreys", None))
    check_choice("band", band, ("consistency", None))
    check_choice("curve", curve, ("corp", "smooth", None))
    look = Look(
        bins=bins,
        strategy=strategy,
        ci_method=ci_method,
        band=band,
        curve=curve,
        alpha=check_alpha(alpha),
        n_resamples=check_count("n_resamples", n_resamples),
    )
    generator = check_rng(rng)
    if isinstance(p, Mapping):
        samples = {name: read_sample(y, q, type, freq_weights, event, classes) for name, q in p.items()}
        return _forecasts(samples, type, look, ax)
    sample = read_sample(y, p, type, freq_weights, event, classes)
    if isinstance(sample, MulticlassSample) and type == "classwise":
        if ax is not None:
            raise InputError("`ax` holds one diagram; `type`='classwise' has one for each class. Leave `ax` out.")
        reading = {"type": "classwise", "classes": range(len(sample.classes))}
        title = _title("Classwise ECE", sample.y, sample.p, sample.weights, look, generator, **reading)
        return class_panels(sample, look, generator, title).draw()
    ((outcome, score),) = views(sample, type)
    title = _title("ECE", outcome, score, sample.weights, look, generator, event=1.0)
    panel = binary_panel(outcome, score, sample.weights, look, generator, title)
    return panel.draw(ax, **_texts(type))


def _texts(type: MetricType | None) -> dict[str, str]:  # noqa: A002
    """Labels of the axes."""
    return {} if type is None else {"xlabel": "Confidence", "ylabel": "Accuracy"}


def _forecasts(
    samples: Mapping[str, BinarySample | MulticlassSample],
    type: MetricType | None,  # noqa: A002
    look: Look,
    ax: Any,
) -> Any:
    """Draw several forecasts in one diagram."""
    if type == "classwise":
        raise InputError("several forecasts fit into one diagram with `type`=None or 'confidence', not 'classwise'.")
    points, intervals, highest = {}, {}, 0.0
    for name, sample in samples.items():
        ((outcome, score),) = views(sample, type)
        table = bin_frame(outcome, score, sample.weights, look)
        (bins,) = tables(sample, type, look.bins, look.strategy)
        label = f"{name}: ECE {bins.error(1):.3f}"
        points[label] = (table["mean_p"].to_numpy(), table["mean_y"].to_numpy())
        intervals[label] = (table["ci_low"].to_numpy(), table["ci_high"].to_numpy())
        highest = max(highest, _upper_limit(score, points[label][1]))
    shown = None if look.ci_method is None else intervals
    return plots.reliability_overlay(points, intervals=shown, limits=(0.0, highest), ax=ax, **_texts(type))


def binary_panel(
    y: FloatArray,
    p: FloatArray,
    weights: FloatArray | None,
    look: Look,
    rng: np.random.Generator,
    title: str,
    upper: float | None = None,
) -> ReliabilityPanel:
    """Compute the diagram of outcomes (n,) of 0.0 and 1.0 and their probabilities (n,), on axes up to `upper`."""
    table = bin_frame(y, p, weights, look)
    mean_p, mean_y, count = (table[name].to_numpy() for name in ("mean_p", "mean_y", "count"))
    ends = (table["ci_low"].to_numpy(), table["ci_high"].to_numpy())
    limits = (0.0, _upper_limit(p, mean_y) if upper is None else upper)
    counts, edges = np.histogram(p, bins=50, range=limits, weights=weights)
    curve, curve_band = _curve(y, p, weights, look)
    level = f"{100 * (1 - look.alpha):g}%"
    labels = {
        "points": f"bins, {level} interval" if look.ci_method else "bins",
        "curve": "isotonic curve" if look.curve == "corp" else "smooth curve",
        "curve_band": f"its {level} band",
        "consistency": f"{level} range if calibrated",
    }
    return ReliabilityPanel(
        mean_p=mean_p,
        mean_y=mean_y,
        count=count,
        interval=None if look.ci_method is None else ends,
        consistency=_consistency(p, weights, look, rng),
        curve=curve,
        curve_band=curve_band,
        histogram=(edges, counts.astype(np.float64)),
        labels=labels,
        limits=limits,
        title=title,
    )


def bin_frame(y: FloatArray, p: FloatArray, weights: FloatArray | None, look: Look) -> pd.DataFrame:
    """Return the reliability table of outcomes (n,) of 0.0 and 1.0 and their probabilities (n,)."""
    return reliability_table(
        y,
        p,
        bins=look.bins,
        strategy=look.strategy,
        ci_method=look.ci_method or "wilson",
        alpha=look.alpha,
        freq_weights=weights,
        event=1.0,
    )


def _curve(
    y: FloatArray, p: FloatArray, weights: FloatArray | None, look: Look
) -> tuple[tuple[FloatArray, FloatArray] | None, tuple[FloatArray, FloatArray, FloatArray] | None]:
    """Return the curve through the data, and the band of a smooth one."""
    if look.curve is None:
        return None, None
    if look.curve == "corp":
        fit = pav(y, p, weights)
        return (fit.thresholds, fit.values), None
    smooth = smooth_curve(check_binary(y, p, freq_weights=weights, event=1.0), "spline", "logit")
    thinned = np.unique(np.linspace(0, smooth.p.size - 1, _CURVE_POINTS).astype(np.int64))
    place, value = smooth.p[thinned], smooth.value[thinned]
    if smooth.se is None or not whole(weights):
        return (place, value), None
    half = stats.norm.isf(look.alpha / 2) * smooth.se[thinned]
    log_odds = special.logit(value)
    return (place, value), (place, special.expit(log_odds - half), special.expit(log_odds + half))


def _upper_limit(p: FloatArray, mean_y: FloatArray) -> float:
    """Return a round number above all predictions and frequencies, 1 unless all are below one half."""
    highest = max(float(p.max()), float(np.nanmax(mean_y)))
    fitting = _NICE[highest <= _NICE]
    return float(fitting[0]) if fitting.size else 1.0


def _consistency(
    p: FloatArray, weights: FloatArray | None, look: Look, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """Return places and limits of the band in which the curve, or the bins, would lie under calibration."""
    if look.band is None or not whole(weights):
        return None
    rows = np.sort(p if weights is None else np.repeat(p, weights.astype(np.int64)))
    if look.curve != "corp":
        return _bin_band(rows, bin_edges(rows, look.bins, look.strategy), look.alpha)
    return _curve_band(rows, look.alpha, rng)


def _bin_band(p: FloatArray, edges: FloatArray, alpha: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return a step for each bin: the quantiles of its frequency when labels are draws from p (n,), sorted."""
    index = assign_bins(p, edges)
    limits = np.full((2, edges.size - 1), np.nan)
    for b in np.unique(index):
        rows = p[index == b]
        first, law = poisson_binomial(rows)
        places = np.searchsorted(np.cumsum(law), [alpha / 2, 1 - alpha / 2])
        limits[:, b] = (first + places) / rows.size
    steps = np.repeat(edges, 2)[1:-1]
    return steps, np.repeat(limits[0], 2), np.repeat(limits[1], 2)


def _curve_band(p: FloatArray, alpha: float, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return pointwise quantiles of the isotonic fit when labels are draws from p (n,), sorted."""
    n = p.size
    ranks = np.arange(n)
    if n > _GROUPS + 2 * _OWN:
        ranks = np.unique(
            np.concatenate((ranks[:_OWN], ranks[-_OWN:], np.linspace(_OWN, n - _OWN, _GROUPS).astype(np.int64)))
        )
    # A group starts at the first row of its score, so that ties stay together.
    starts = np.unique(np.searchsorted(p, p[ranks], side="left"))
    count = np.diff(starts, append=n).astype(np.float64)
    index = np.repeat(np.arange(starts.size), count.astype(np.int64))
    draws = bin_counts(p, index, starts.size, _DRAWS, rng) / count
    fits = np.stack([isotonic_regression(draw, weights=count).x for draw in draws])
    low, high = np.quantile(fits, [alpha / 2, 1 - alpha / 2], axis=0)
    return np.add.reduceat(p, starts) / count, low, high


def _title(
    name: str,
    y: Any,
    p: FloatArray,
    weights: FloatArray | None,
    look: Look,
    rng: np.random.Generator,
    **reading: Any,
) -> str:
    """Write the calibration error with its interval and the p-value of its pseudo-label test."""
    options: dict[str, Any] = {"bins": look.bins, "strategy": look.strategy, "freq_weights": weights} | reading
    if not whole(weights):
        return f"{name} {ece(y, p, **options):.3f}"
    drawn: dict[str, Any] = {"n_resamples": look.n_resamples, "rng": rng}
    result = bootstrap(ece, y, p, **drawn, **options)
    test = pseudo_label_test(y, p, statistic="ece", **drawn, **options)
    return error_title(name, result.estimate, result.conf_int(look.alpha), test.pvalue, look.alpha)


def error_title(name: str, estimate: float, limits: Sequence[float], pvalue: float, alpha: float) -> str:
    """Write an error, its interval where there is one, and its p-value as the title of a diagram."""
    low, high = limits
    known = bool(np.isfinite([low, high]).all())
    interval = f" ({100 * (1 - alpha):g}% interval {low:.3f} to {high:.3f})" if known else ""
    p = format_pvalue(pvalue)
    return f"{name} {estimate:.3f}{interval}\np {p if p.startswith('<') else f'= {p}'} (H0: calibrated)"


def class_panels(sample: MulticlassSample, look: Look, rng: np.random.Generator, title: str) -> ClassPanels:
    """Compute a diagram for each class, or for those with the largest errors."""
    names = sample.classes
    errors = np.array([table.error(1) for table in tables(sample, "classwise", look.bins, look.strategy)])
    shown = np.arange(errors.size) if errors.size <= _MOST_PANELS else np.argsort(-errors, kind="stable")[:_WORST]
    pairs = views(sample, "classwise")
    panels = tuple(
        binary_panel(*pairs[int(k)], sample.weights, look, rng, f"{names[k]}: ECE {errors[k]:.3f}", upper=1.0)
        for k in shown
    )
    if shown.size < errors.size:
        title += f"; the {_WORST} classes of {errors.size} with the largest ECE"
    return ClassPanels(panels=panels, names=names, errors=errors, title=title)


def simplex_diagram(result: Any, p: ArrayLike | None = None, *, alpha: float = 0.05, ax: Any = None) -> Any:
    """
    Draw what a fitted map of three classes does to probabilities, as arrows on the simplex.

    Parameters
    ----------
    result : results of a fit
        A map of three classes whose scores are probabilities, with `classes` and `predict`.
    p : array_like of shape (n, 3), optional
        Predictions, shown as a density behind the arrows: the map is an extrapolation where there are none.
    alpha : float, default 0.05
        One minus the level of the shaded regions.
    ax : matplotlib Axes, optional
        Where to draw; a new figure is made when it is None.

    Returns
    -------
    matplotlib.figure.Figure
        Arrows from a grid of predictions to their calibrated values. The orange lines start at the interpretation
        points, the uniform prediction and those with probability 0.001 of one class and equal ones of the others, and
        end where the map takes them. The shaded regions around these ends are joint confidence regions, from the
        covariance of the fit, of a softmax map that has one.

    Raises
    ------
    InputError
        If the map does not have three classes.

    References
    ----------
    Kull, M. et al. (2019). Beyond temperature scaling: obtaining well-calibrated multi-class probabilities with
    Dirichlet calibration. NeurIPS. https://arxiv.org/abs/1910.12656

    Examples
    --------
    >>> import calstat as cs
    >>> df = cs.datasets.load_vehicle()
    >>> cars = df[df["vehicle"].isin(["opel", "saab", "van"])]
    >>> P = cars[["p_opel", "p_saab", "p_van"]]
    >>> P = P.div(P.sum(axis=1), axis=0)
    >>> fit = cs.DirichletCalibration(cars["vehicle"], P, penalty=cs.ODIR(1e-2)).fit()
    >>> figure = cs.simplex_diagram(fit, P)
    >>> len(figure.axes)
    1

    Arrows away from the corners: these predictions were too sure of themselves.
    """
    classes = tuple(getattr(result, "classes", ()))
    if len(classes) != 3:
        raise InputError(f"`result` must be a fitted map of three classes; it has {len(classes)}: {list(classes)[:5]}.")
    steps = np.arange(_SIMPLEX_STEPS + 1)
    rows = np.array([(i, j, _SIMPLEX_STEPS - i - j) for i in steps for j in steps if i + j <= _SIMPLEX_STEPS])
    grid = (rows + 0.2) / (_SIMPLEX_STEPS + 0.6)
    points = np.vstack((np.full(3, 1 / 3), np.where(np.eye(3) == 1, _SIDE, (1 - _SIDE) / 2)))
    predictions = None if p is None else check_score_matrix(p, "probability")
    if predictions is not None and predictions.shape[1] != 3:
        raise InputError(f"`p` must have three columns, got shape {predictions.shape}.")
    regions = None
    if isinstance(result, SoftmaxResults) and result.free_cov is not None and result.converged:
        features, _ = result.form.features(points)
        regions = probability_regions(result.form, result.theta, features, result.free_cov, check_alpha(alpha))
    return plots.simplex_map(
        grid,
        np.asarray(result.predict(grid)),
        classes=classes,
        predictions=predictions,
        interpretation=(points, np.asarray(result.predict(points))),
        regions=regions,
        ax=ax,
    )


def confusion_diagram(
    y: ArrayLike,
    before: ArrayLike,
    after: ArrayLike,
    *,
    freq_weights: ArrayLike | None = None,
    classes: Sequence[Label] | None = None,
    ax: Any = None,
) -> Any:
    """
    Draw how calibration changed the confusion matrix: observed class against most probable class.

    Parameters
    ----------
    y : array_like of shape (n,)
        Outcomes.
    before, after : array_like of shape (n, K)
        Probabilities before and after calibration, one column for each class, in the same order. Ties go to the first
        column.
    freq_weights : array_like of shape (n,), optional
        Weight k counts as k copies of the row.
    classes : sequence of K labels, optional
        The class of each column, where names do not settle it.
    ax : matplotlib Axes, optional
        Where to draw; a new figure is made when it is None.

    Returns
    -------
    matplotlib.figure.Figure
        Counts after calibration with their change; colours show the change.

    Raises
    ------
    InputError
        If the matrices do not agree in shape and classes, or cannot be read.

    Examples
    --------
    >>> import calstat as cs
    >>> df = cs.datasets.load_vehicle()
    >>> P = df.filter(like="p_")
    >>> res = cs.VectorScaling(df["vehicle"], P, scores="probability").fit()
    >>> figure = cs.confusion_diagram(df["vehicle"], P, res.predict(P))

    Orange on the diagonal and blue off it mean more right answers after calibration; a temperature changes none.
    """
    samples = [check_multiclass(y, p, freq_weights=freq_weights, classes=classes) for p in (before, after)]
    if samples[0].classes != samples[1].classes:
        raise InputError(
            f"`before` and `after` must have the same classes in the same order; they have {samples[0].classes} and "
            f"{samples[1].classes}."
        )
    K = len(samples[0].classes)
    matrices = [
        np.bincount(s.y * K + top_label(s.y, s.p).label, weights=s.weights, minlength=K * K).reshape(K, K)
        for s in samples
    ]
    return plots.confusion_change(*matrices, classes=samples[0].classes, ax=ax)


def whole(weights: FloatArray | None) -> bool:
    """Tell whether weights count copies of rows."""
    return weights is None or bool(np.all(weights == np.floor(weights)))


__all__ = ["confusion_diagram", "reliability_diagram", "simplex_diagram"]
