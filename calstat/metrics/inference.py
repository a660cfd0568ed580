"""Bootstrap intervals and pseudo-label tests of metrics."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from calstat._arrays import resampling
from calstat._arrays.smooth_intervals import Smoothed
from calstat._inference_results import INTERVALS, BootstrapResult, Interval
from calstat._input.validation import (
    BinarySample,
    align,
    check_choice,
    check_clusters,
    check_count,
    check_rng,
    positive_weight_rows,
)
from calstat._progress import Advance, progress_bar
from calstat._typing import ArrayLike, FloatArray, IntArray, Label, RNGLike
from calstat.exceptions import InputError, NotEstimableWarning
from calstat.metrics import _plans
from calstat.metrics._common import Sample
from calstat.metrics.errors import squared_ece
from calstat.metrics.kernel import mmce
from calstat.metrics.smooth import ici, smooth_ece

_FEW = 2  # an outcome of fewer values than this has no variance
_SQUARED = 2  # norm of the errors that pairs of rows estimate without bias
_OF_ERRORS = {
    "inversion": "binned errors without `rebin`, `ici` with lowess of p and `smooth_ece`",
    "ustatistic": "`mmce` and binned errors of norm 2 of an event or of the top label, without `rebin`",
    "band": "`ici`, `e50`, `e90` and `emax` with lowess of p",
}
_SMALL = 2000  # up to this many rows drawing rows is cheap, and exact for cells of a few rows too


def bootstrap(
    metric: _plans.Metric | str,
    y: ArrayLike,
    p: ArrayLike,
    *,
    n_resamples: int = 999,
    ci_method: Interval | None = None,
    groups: ArrayLike | None = None,
    rebin: bool = False,
    freq_weights: ArrayLike | None = None,
    event: Label | None = None,
    classes: Sequence[Label] | None = None,
    max_bytes: int = 1 << 30,
    rng: RNGLike = None,
    progress: bool | None = None,
    **metric_options: Any,
) -> BootstrapResult:
    r"""
    Bootstrap a metric, with the interval that holds its level for that metric.

    Rows are drawn with replacement, never within the classes of the outcome (that would freeze the event rate). Bin
    edges stay those of the whole sample.

    Parameters
    ----------
    metric : callable or str
        A metric of calstat, or its name ("classwise_ece" is ``ece`` with ``type="classwise"``), or any ``f(y, p)``
        that returns one number. A callable that has a `freq_weights` argument gets the counts of the resample there,
        others the repeated rows. It sees y as 0 and 1, or as column numbers for a matrix, of which a resample need not
        hold all: give ``classes=range(K)`` to functions of calstat that it calls.
    y : array_like of shape (n,)
        Outcomes.
    p : array_like of shape (n,), (n, 1), (n, 2) or (n, K)
        Probabilities, as `metric` takes them.
    n_resamples : int, default 999
        Number of resamples.
    ci_method : {"inversion", "ustatistic", "band", "percentile", "basic", "normal", "bca"}, optional
        The interval that `conf_int` gives. The default is "inversion" for binned errors, the ICI and the smooth ECE,
        "ustatistic" for the MMCE, "band" for E50, E90 and Emax, and "bca" for scores and callables. For errors
        of clusters, and for curves by another smoother than lowess of p, no interval is known to cover: it is none, and
        the limits are NaN. "ustatistic" is also for binned errors of norm 2 of an event or of the top label, "band"
        for the ICI.
    groups : array_like of shape (n,), optional
        Clusters, of which whole ones are drawn.
    rebin : bool, default False
        Recompute the edges in each resample (they change with ``strategy="equal_freq"`` only). There is no inversion.
    freq_weights : array_like of shape (n,), optional
        Whole numbers: a row of weight k counts as k rows, and as many are drawn as the weights sum to.
    event : label, optional
        The outcome that `p` is the probability of; needed for strings.
    classes : sequence of K labels, optional
        The class of each column of a matrix.
    max_bytes : int, default 2**30
        Bound on the memory for draws.
    rng : None, int or numpy.random.Generator
        Source of randomness.
    progress : bool, optional
        Show the resamples done on standard error, by tqdm, once they have taken two seconds. The default does so on a
        terminal where tqdm is installed.
    **metric_options
        Options of the metric, as ``bins=15`` or ``type="classwise"``.

    Returns
    -------
    BootstrapResult
        estimate, bias, debiased, bse, distribution, ``conf_int(alpha, method)`` without new draws, ``plot()``.

    Raises
    ------
    InputError
        For a bad argument.

    Warns
    -----
    NotEstimableWarning
        If the outcome is the same in all rows, so that the sample does not say how much a score varies.

    Notes
    -----
    *Binned errors.* Their plug-in value is biased upwards, and the percentile interval cannot hold the truth when
    predictions are calibrated. The interval inverts a test: gaps of the bins are moved along a path from none to the
    largest, events are drawn as binomial at each point (for classes with the correlation of the cells), and a point
    is kept while the observed error is in neither tail. Noise adds most to an error that a few bins have to
    themselves, least to one spread as the noise is. Hence two paths: soft thresholds, max(abs(d) + t, 0) of the
    observed gaps d, for the lower limit, and for the upper one multiples of v abs(d) + (1 - v) s, with standard
    errors s and the share v of the squared gaps that is not noise. The target is the error on these bins, a lower
    bound of the error without bins. [0, 0] means that the error is smaller than that of most calibrated samples.

    For the largest gap the limits come from Clopper-Pearson intervals of the bins: of all at once, with Sidak's
    correction, for the lower limit; one by one for the upper, since only the bin with the largest gap has to be held.
    They are wide where a bin holds few rows, and say nothing about bins that hold none.

    For norm 2 "ustatistic" gives normal limits around the unbiased estimate of the squared error (``debias="u"`` of
    `squared_ece`), whose variance allows for calibration too. It covers as well as the inversion, with limits up to
    half as far apart again for rare events, and needs no draws.

    *Errors without bins.* For the MMCE "ustatistic" inverts a normal test of its square, a U-statistic: kept are the
    values from which the unbiased estimate is at most z standard errors away, the standard error being that at the
    value in question. The estimate printed beside them includes the pairs of a row with itself, which are noise, and
    may lie above the limits. The ICI and the smooth ECE are sums of absolute values of what is linear in the outcomes;
    their test is inverted along paths of curves: towards 0 all gaps shrink, away from it the curve, or the diagonal,
    moves up or down as a whole. E50, E90 and Emax take their limits from a band that holds the whole curve with the
    stated probability, so that away from calibration they cover more often than they have to. What the limits of
    ICI, E50, E90 and Emax enclose is the error of the true rates smoothed like the outcomes: of what the smoother hides
    they say nothing.

    Above 2000 rows, the draws of scores, and of errors of an event or the top label, use that rows of similar value,
    or of one bin and outcome, are alike: their number is multinomial, the sum of their values normal with the exact
    mean and variance.

    References
    ----------
    Efron, B. (1987). Better bootstrap confidence intervals. JASA 82. https://doi.org/10.1080/01621459.1987.10478410
    Kumar, A., Liang, P., Ma, T. (2019). Verified uncertainty calibration. NeurIPS. https://arxiv.org/abs/1909.10155
    Sun, Y., Chaudhari, P., Barnett, I. J., Dobriban, E. (2024). A confidence interval for the l2 expected calibration
    error. https://arxiv.org/abs/2408.08998

    Examples
    --------
    >>> import numpy as np
    >>> import calstat as cs
    >>> p = np.linspace(0.01, 0.99, 500)
    >>> y = np.random.default_rng(1).random(500) < p
    >>> result = cs.bootstrap(cs.ece, y, p, bins=10, rng=1)
    >>> low, high = result.conf_int()
    >>> low, high < 0.06
    (0.0, True)

    The interval starts at 0: this sample does not contradict calibrated predictions.
    """
    function, metric_options = _plans.resolve(metric, metric_options)
    n_resamples = check_count("n_resamples", n_resamples, 2)
    check_choice("ci_method", ci_method, (None, *INTERVALS))
    _, (y, p, freq_weights, groups) = align(y=y, p=p, freq_weights=freq_weights, groups=groups)
    sample = _plans.read(function, y, p, metric_options, freq_weights=freq_weights, event=event, classes=classes)
    codes = check_clusters(groups, sample.weights, sample.y.size)
    if codes is not None:
        sample = positive_weight_rows(sample)
    generator = check_rng(rng)
    seed = int(generator.integers(2**62))
    with _plans.quiet():
        estimate = _plans.evaluate_on(function, sample, None, metric_options)
    cells = _plans.cells(function, sample, metric_options) if function in _plans.BINNED and not rebin else None
    plain = cells is not None and not metric_options.get("debias", False)
    with progress_bar(n_resamples, f"resamples of {_plans.name_of(function, metric_options)}", progress) as advance:
        draws, lost = _draw(
            function,
            sample,
            cells if plain else None,
            metric_options,
            codes,
            n_resamples,
            max_bytes,
            generator,
            advance,
        )
    power = 2.0 if function is squared_ece else 1.0
    smoothed = _plans.smoothed_sample(function, sample, metric_options) if codes is None else None
    offered = _offered(function, cells if codes is None else None, smoothed)
    if ci_method in _OF_ERRORS and ci_method not in offered:
        raise InputError(f"ci_method={ci_method!r} is for {_OF_ERRORS[ci_method]}, of independent rows.")
    method, notes = _default_method(function, sample, ci_method, offered, rebin=rebin, clusters=codes is not None)
    if lost:
        notes.append(f"{lost} of {n_resamples} resamples hold one outcome only")
    undefined = int(np.isnan(draws).sum())
    if undefined:
        notes.append(f"{undefined} of {n_resamples} resamples have no value and are left out")
    return BootstrapResult(
        metric=_plans.name_of(function, metric_options),
        estimate=estimate,
        distribution=draws**power if plain else draws,
        ci_method=method,
        nobs=sample.nobs,
        target=_target(function, rebin=rebin),
        acceleration=_acceleration(function, sample, codes, metric_options) if method == "bca" else None,
        binned=_plans.binned_sample(cells, sample.weights) if cells is not None and codes is None else None,
        smoothed=smoothed,
        power=power,
        seed=seed,
        notes=tuple(notes),
    )


def _target(metric: _plans.Metric, *, rebin: bool) -> str:
    if metric in _plans.BINNED:
        edges = "on bins of this kind" if rebin else "on these bin edges"
        return f"the error {edges}, a lower bound of the error without bins"
    if metric in _plans.CURVE:
        return "the distance of the true rates, smoothed like the outcomes, from the diagonal"
    if metric is mmce:
        return "the error over pairs of different rows; the estimate also has each row with itself, which adds to it"
    return "the metric in the population that the rows are drawn from"


def _offered(metric: _plans.Metric, cells: _plans.Cells | None, smoothed: Smoothed | None) -> tuple[Interval, ...]:
    """Return the intervals for errors that this one has, the best first."""
    if cells is not None:
        pairs = cells.norm == _SQUARED and cells.index.shape[1] == 1
        return ("inversion", "ustatistic") if pairs else ("inversion",)
    if smoothed is None:
        return ()
    if metric is mmce:
        return ("ustatistic",)
    if metric is smooth_ece:
        return ("inversion",)
    return ("inversion", "band") if metric is ici else ("band",)


def _default_method(
    metric: _plans.Metric,
    sample: Sample,
    asked: Interval | None,
    offered: tuple[Interval, ...],
    *,
    rebin: bool,
    clusters: bool,
) -> tuple[Interval | None, list[str]]:
    """Choose the interval that is known to cover, and say why where there is none."""
    if asked is not None or offered:
        return asked or offered[0], []
    if metric in _plans.BINNED or metric in _plans.UNBINNED:
        why = "of clusters" if clusters else "with edges that move" if rebin else "of a curve that is not lowess of p"
        other = "" if clusters else ", pseudo_label_test a p-value"
        reason = (
            f"no interval for an error {why} is known to cover near 0; conf_int(method=...) gives the others{other}"
        )
        return None, [reason]
    if np.unique(sample.y).size < _FEW:
        reason = "the outcome is the same in all rows, so that the sample does not say how much the score varies"
        warnings.warn(f"No interval: {reason}.", NotEstimableWarning, stacklevel=3)
        return None, [reason]
    return "bca", []


def _draw(
    metric: _plans.Metric,
    sample: Sample,
    cells: _plans.Cells | None,
    options: Mapping[str, Any],
    codes: IntArray | None,
    n_resamples: int,
    max_bytes: int,
    rng: np.random.Generator,
    advance: Advance,
) -> tuple[FloatArray, int]:
    """Values (B,) on the resamples, and how many of them hold one outcome only."""
    independent = codes is None and sample.weights is None
    if cells is not None and cells.index.shape[1] == 1 and independent and sample.y.size > _SMALL:
        return _cell_draws(cells, n_resamples, rng)
    matrices = _plans.incidence(cells) if cells is not None else None
    linear = _plans.row_values(metric, sample, options) if metric in _plans.LINEAR else None
    if linear is not None and independent and sample.y.size > _SMALL:
        return resampling.mean_draws(linear, sample.y, n_resamples, rng)
    present = _outcome_matrix(sample)
    values, lost = [], 0
    for counts in resampling.count_blocks(
        sample.y.size, n_resamples, rng, weights=sample.weights, groups=codes, max_bytes=max_bytes
    ):
        lost += int(np.count_nonzero((counts @ present > 0).sum(axis=1) < _FEW))
        if cells is not None and matrices is not None:
            count, difference = (np.asarray((m @ counts.T).T) for m in matrices)
            values.append(_errors(cells, count, difference))
            advance(len(counts))
        elif linear is not None:
            values.append(counts @ linear / counts.sum(axis=1))
            advance(len(counts))
        else:
            values.append(np.empty(len(counts)))
            for b, c in enumerate(counts):
                with _plans.quiet():
                    values[-1][b] = _plans.evaluate_on(metric, sample, c, options)
                advance(1)
    return np.concatenate(values), lost


def _outcome_matrix(sample: Sample) -> sparse.csr_array:
    """Indicators (n, classes) of what happened."""
    labels = sample.y.astype(np.int64)
    size = 2 if isinstance(sample, BinarySample) else len(sample.classes)
    return sparse.csr_array((np.ones(labels.size), (np.arange(labels.size), labels)), shape=(labels.size, size))


def _cell_draws(cells: _plans.Cells, n_resamples: int, rng: np.random.Generator) -> tuple[FloatArray, int]:
    """Draw a binned error from the cells of bin by outcome."""
    hit = cells.outcome[:, 0]
    count, difference = resampling.cell_sum_draws(
        cells.index[:, 0] * 2 + hit.astype(np.int64), hit - cells.score[:, 0], 2 * cells.size, n_resamples, rng
    )
    lost = int(np.count_nonzero((count[:, ::2].sum(axis=1) == 0) | (count[:, 1::2].sum(axis=1) == 0)))
    return _errors(cells, count[:, ::2] + count[:, 1::2], difference[:, ::2] + difference[:, 1::2]), lost


def _errors(cells: _plans.Cells, count: FloatArray, difference: FloatArray) -> FloatArray:
    """Binned errors (B,) of sums over cells (B, C)."""
    return resampling.combined(resampling.class_errors(count, difference, cells.group, cells.norm), cells.combine)


def _acceleration(metric: _plans.Metric, sample: Sample, codes: IntArray | None, options: Mapping[str, Any]) -> float:
    """Acceleration constant of BCa, in closed form for means of independent rows."""
    if metric in _plans.LINEAR and codes is None:
        values = _plans.row_values(metric, sample, options)
        w = np.ones(values.size) if sample.weights is None else sample.weights
        d = values - w @ values / w.sum()
        spread = float(w @ d**2)
        return float(w @ d**3) / (6 * spread**1.5) if spread > 0 else 0.0
    with _plans.quiet():
        return resampling.acceleration(
            np.array(
                [
                    _plans.evaluate_on(metric, sample, counts, options)
                    for counts in resampling.jackknife_counts(sample.y.size, sample.weights, codes)
                ]
            )
        )
