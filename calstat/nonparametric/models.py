"""Calibration maps without coefficients: isotonic calibration and histogram binning."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from calstat._arrays.binning import Strategy, bin_edges, bin_table
from calstat._arrays.pav import pav, smooth_blocks
from calstat._binary_map import BinaryData, BinaryDescription, event_counts, read_rows
from calstat._data import ModelData, read_arrays
from calstat._input.validation import check_choice
from calstat._typing import ArrayLike, FloatArray, Label
from calstat.base import CalibrationModel
from calstat.exceptions import InputError, NotEstimableError
from calstat.nonparametric.isotonic_results import IsotonicCalibrationResults
from calstat.nonparametric.results import HistogramBinningResults


class _NonparametricModel(CalibrationModel):
    """What isotonic calibration and histogram binning share: reading the data."""

    def _read(self, data: ModelData, scale: str, event: Label | None, smoothing: float) -> None:
        kind = type(self).__name__
        number = isinstance(smoothing, int | float | np.number) and not isinstance(smoothing, bool)
        if not number or not 0.0 <= smoothing < np.inf:
            raise InputError(f"`smoothing` must be a number of pseudo-rows, at least 0, got {smoothing!r}.")
        if data.groups is not None:
            raise InputError(f"{kind} takes no `groups`: it has no cluster-robust intervals. Leave them out.")
        self._data = data
        self._smoothing = float(smoothing)
        self._sample = read_rows(kind, data, scale, event)
        self._counts = event_counts(self._sample.y, self._sample.weights)
        self.nobs = self._sample.nobs
        if min(self._counts) == 0.0:
            only = self._sample.event if self._counts[0] else self._sample.nonevent
            raise NotEstimableError(f"{kind} needs both classes; every outcome is {only!r}.")

    @property
    def event(self) -> Label:
        """The label whose probability is calibrated."""
        return self._sample.event

    def _shared(self, brier_identity: float) -> dict[str, Any]:
        """What the results hold beside the map itself."""
        sample = self._sample
        return {
            "brier_identity": brier_identity,
            "description": BinaryDescription(
                event=sample.event,
                nonevent=sample.nonevent,
                events=self._counts[0],
                nonevents=self._counts[1],
                clipped=0,
                n_dropped=self.n_dropped,
                n_groups=0,
                formula=self.formula,
                notes=sample.notes,
            ),
            "reader": self._data.reader,
            "outcome": self.outcome,
            "data": BinaryData(scores=sample.p, target=sample.y, weights=sample.weights, index=sample.index),
        }

    def _brier(self) -> float:
        """Mean squared difference of the scores as they are."""
        difference = self._sample.y - self._sample.p
        w = self._sample.weights
        difference *= difference
        return float((difference.sum() if w is None else difference @ w) / self.nobs)


class IsotonicCalibration(_NonparametricModel):
    r"""
    Isotonic calibration: the non-decreasing map that is nearest to the outcomes.

    .. math:: \min_{q_1 \le \dots \le q_M} \sum_i w_i (y_i - q_{m(i)})^2

    over the distinct scores :math:`m = 1, \dots, M`, by pooling adjacent violators. The map is constant on a block
    of pooled scores, linear between blocks, and constant beyond the ends.

    Parameters
    ----------
    y : array_like, shape (n,)
        Outcome: 0/1, -1/1, bools, a Categorical with two used levels, or any two labels with `event`.
    p : array_like, shape (n,), (n, 1) or (n, 2)
        Probabilities of the event, or log odds (any finite score), as `scores` says.
    scores : {"probability", "logit"}, default "probability"
        What the scores are. The blocks do not depend on it; the straight lines between them do.
    smoothing : float, default 0
        Events, and as many non-events, that are added to each block before its rate is taken; blocks whose order that
        breaks are pooled again. With 1 the rates are (events + 1)/(n + 2): no fitted value is exactly 0
        or 1, so that no outcome costs an infinite log-loss.
    event : label, optional
        The label whose probability is calibrated.
    freq_weights : array_like of whole numbers, shape (n,), optional
        Copies of each row; weight 0 is absence.
    groups : None
        There for the sake of a common form: this map has no cluster-robust intervals.
    missing : {"raise", "drop"}, optional
        What to do with missing values; the default drops rows of a DataFrame and refuses them in arrays.

    Raises
    ------
    NotEstimableError
        If one of the two classes does not occur.
    InputError
        If an argument cannot be used; the message says which, where, and what to do.

    See Also
    --------
    HistogramBinning : Event rates in bins that do not depend on the outcomes.

    Notes
    -----
    Equal scores are one point, whatever the order of their rows, and get one probability. Scores that point the wrong
    way give the event rate everywhere: the map never decreases. Fitted values of exactly 0 and 1 at the ends
    are usual in small samples; the results count them (`n_zero`, `n_one`).

    References
    ----------
    Zadrozny, B. and Elkan, C. (2002). Transforming classifier scores into accurate multiclass probability estimates.
    KDD 2002. https://doi.org/10.1145/775047.775151
    Ayer, M. et al. (1955). An empirical distribution function for sampling with incomplete information. Annals of
    Mathematical Statistics 26. https://doi.org/10.1214/aoms/1177728423
    Meyer, M. and Woodroofe, M. (2000). On the degrees of freedom in shape-restricted regression. Annals of Statistics
    28. https://doi.org/10.1214/aos/1015956708

    Examples
    --------
    >>> import calstat as cs
    >>> res = cs.IsotonicCalibration([1, 0, 0, 1, 0, 1], [0.1, 0.1, 0.2, 0.3, 0.3, 0.7]).fit()
    >>> res.predict([0.1, 0.25, 0.5, 0.9]).round(3)
    array([0.333, 0.417, 0.75 , 1.   ])

    One event in three rows up to a score of 0.2 gives 0.333; 0.25 lies halfway to the block at 0.3.
    """

    def __init__(
        self,
        y: Any,
        p: Any,
        *,
        scores: Literal["probability", "logit"] = "probability",
        smoothing: float = 0.0,
        event: Label | None = None,
        freq_weights: Any = None,
        groups: None = None,
        missing: Literal["raise", "drop"] | None = None,
    ) -> None:
        data = read_arrays(y, p, freq_weights=freq_weights, groups=groups, missing=missing)
        self._setup(data, scores=scores, smoothing=smoothing, event=event)

    def _setup(  # type: ignore[override]  # the options of this model
        self, data: ModelData, *, scores: str = "probability", smoothing: float = 0.0, event: Label | None = None
    ) -> None:
        check_choice("scores", scores, ("probability", "logit"))
        self._scores = scores
        self._read(data, scores, event, smoothing)

    def fit(self) -> IsotonicCalibrationResults:
        """
        Fit the map by pooling adjacent violators.

        Returns
        -------
        IsotonicCalibrationResults
            A new results object.
        """
        sample = self._sample
        fit = pav(sample.y, sample.p, sample.weights)
        events = np.rint(fit.value * fit.count)  # whole numbers, but for the rounding of the means
        if self._smoothing:
            fit, events = smooth_blocks(fit, events, self._smoothing)
        return IsotonicCalibrationResults(
            lower=fit.lower,
            upper=fit.upper,
            value=fit.value,
            count=fit.count,
            events=events,
            options={"scores": self._scores, "smoothing": self._smoothing},
            **self._shared(self._brier() if self._scores == "probability" else np.nan),
        )


class HistogramBinning(_NonparametricModel):
    r"""
    Histogram binning: the event rate of the bin that a score falls in.

    Parameters
    ----------
    y : array_like, shape (n,)
        Outcome: 0/1, -1/1, bools, a Categorical with two used levels, or any two labels with `event`.
    p : array_like, shape (n,), (n, 1) or (n, 2)
        Probabilities of the event.
    bins : int or array_like of shape (B + 1,), default 10
        Number of bins, or their edges from 0 to 1. Bins are closed on the left, the last one on both sides.
    strategy : {"equal_width", "equal_freq"}, default "equal_width"
        Edges j / bins, or quantiles of type 8 with the ends set to 0 and 1. Quantiles that coincide are one edge, as
        tied scores are never split; the results report the bins that were realised.
    smoothing : float, default 0
        Events, and as many non-events, that are added to each bin: with 1 the values are (events + 1)/(n + 2), never
        exactly 0 or 1.
    event : label, optional
        The label whose probability is calibrated.
    freq_weights : array_like of whole numbers, shape (n,), optional
        Copies of each row; weight 0 is absence.
    groups : None
        There for the sake of a common form: this map has no cluster-robust intervals.
    missing : {"raise", "drop"}, optional
        What to do with missing values; the default drops rows of a DataFrame and refuses them in arrays.

    Raises
    ------
    NotEstimableError
        If one of the two classes does not occur.
    InputError
        If an argument cannot be used; the message says which, where, and what to do.

    See Also
    --------
    IsotonicCalibration : A non-decreasing map whose blocks are found from the data.

    Notes
    -----
    An empty bin takes the value of the nearest bin that is not empty, the lower one of two as near. The
    values need not rise with the score.

    References
    ----------
    Zadrozny, B. and Elkan, C. (2001). Obtaining calibrated probability estimates from decision trees and naive
    Bayesian classifiers. ICML 2001, 609-616.
    Hyndman, R. J. and Fan, Y. (1996). Sample quantiles in statistical packages. The American Statistician 50.
    https://doi.org/10.1080/00031305.1996.10473566

    Examples
    --------
    >>> import calstat as cs
    >>> res = cs.HistogramBinning([0, 1, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.7, 0.9], bins=2).fit()
    >>> res.table()[["count", "rate", "se"]]
         count  rate        se
    bin
    0      4.0  0.25  0.216506
    1      2.0  1.00  0.000000

    A score below one half now means a chance of 0.25, give or take two standard errors.
    """

    def __init__(
        self,
        y: Any,
        p: Any,
        *,
        bins: int | ArrayLike = 10,
        strategy: Strategy = "equal_width",
        smoothing: float = 0.0,
        event: Label | None = None,
        freq_weights: Any = None,
        groups: None = None,
        missing: Literal["raise", "drop"] | None = None,
    ) -> None:
        data = read_arrays(y, p, freq_weights=freq_weights, groups=groups, missing=missing)
        self._setup(data, bins=bins, strategy=strategy, smoothing=smoothing, event=event)

    def _setup(  # type: ignore[override]  # the options of this model
        self,
        data: ModelData,
        *,
        bins: int | ArrayLike = 10,
        strategy: Strategy = "equal_width",
        smoothing: float = 0.0,
        event: Label | None = None,
    ) -> None:
        self._read(data, "probability", event, smoothing)
        self._edges: FloatArray = bin_edges(self._sample.p, bins, strategy, self._sample.weights)
        given = np.ndim(bins) > 0
        self._options = {"bins": None if given else bins, "strategy": "given edges" if given else strategy}

    def fit(self) -> HistogramBinningResults:
        """
        Fit the map: one event rate for each bin.

        Returns
        -------
        HistogramBinningResults
            A new results object.
        """
        sample = self._sample
        table = bin_table(sample.y, sample.p, self._edges, sample.weights)
        return HistogramBinningResults(
            edges=table.edges,
            count=table.count,
            events=table.sum_y,
            sum_p=table.sum_p,
            options={**self._options, "smoothing": self._smoothing},
            **self._shared(self._brier()),
        )
