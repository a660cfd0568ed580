"""What every map from one score to the probability of one event shares: reading rows, prediction, its data."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from calstat._arrays.binning import bin_edges, bin_table
from calstat._data import ModelData, NewScores
from calstat._input.labels import event_place
from calstat._input.validation import ROUNDING, BinarySample, check_binary, check_probabilities
from calstat._results import format_count
from calstat._typing import FloatArray, Label
from calstat.base import CalibrationResults
from calstat.exceptions import InputError, MissingDataError


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryDescription:
    """What is known of the data of a fit: labels, counts, and how rows were read."""

    event: Label
    nonevent: Label
    events: float
    nonevents: float
    clipped: int
    n_dropped: int
    n_groups: int
    formula: str | None
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryData:
    """Arrays of a fit: `scores` (n,), `target` (n,) in [0, 1], `weights` (n,) or None, the rows' index."""

    scores: FloatArray
    target: FloatArray
    weights: FloatArray | None
    index: pd.Index | None


def read_rows(kind: str, data: ModelData, scale: str, event: Label | None) -> BinarySample:
    """Check the rows of a binary map, which takes one score, or both probabilities in two columns."""
    names = data.reader.names
    two_columns = data.formula is None and len(names) == 2
    if len(names) != 1 and not two_columns:
        raise InputError(
            f"{kind} takes one score; got {len(names)} ({', '.join(map(str, names[:6]))}). For one score per "
            "class use a multiclass map."
        )
    return check_binary(
        data.y,
        data.scores.iloc[:, 0] if data.formula is not None else data.scores,
        freq_weights=data.weights,
        event=event,
        scores="probability" if scale == "probability" else "logit",
        integer_weights=True,
    )


def event_counts(target: FloatArray, weights: FloatArray | None) -> tuple[float, float]:
    """Number of events and of non-events, weights counted."""
    events = float(target.sum() if weights is None else target @ weights)
    return events, float(target.size if weights is None else weights.sum()) - events


def observed(
    data: BinaryData, low: float, high: float
) -> tuple[tuple[FloatArray, FloatArray] | None, tuple[FloatArray, FloatArray] | None]:
    """Event rates (mean scores, rates) in ten bins, and a histogram (edges, counts), of scores in [low, high]."""
    if high <= low:
        return None, None
    unit = (data.scores - low) / (high - low)
    table = bin_table(data.target, unit, bin_edges(unit, 10, "equal_freq", data.weights), data.weights)
    shape = bin_table(data.target, unit, bin_edges(unit, 30), data.weights)
    width = high - low
    return (low + width * table.mean_p, table.mean_y), (low + width * shape.edges, shape.count)


class BinaryMap(CalibrationResults):
    """
    A fitted map from one score to the probability of one event.

    Attributes
    ----------
    event, nonevent : label
        The label whose probability is calibrated, and the other one.
    fittedvalues : ndarray or Series
        Calibrated probabilities of the rows of the fit.
    """

    _description: BinaryDescription
    _sample: BinaryData | None

    @property
    @abstractmethod
    def _scale(self) -> str:
        """What scores are: "probability", "logit" or "margin"."""

    @abstractmethod
    def _map(self, scores: FloatArray) -> FloatArray:
        """Calibrated probabilities (n,) of checked scores (n,)."""

    @abstractmethod
    def get_prediction(self, new: Any = None) -> Any:
        """
        Calibrated probabilities with intervals.

        Parameters
        ----------
        new : array_like, Series, DataFrame or dict of columns, optional
            Scores as in `predict`, one per row. Without it, the rows of the fit.

        Returns
        -------
        object
            `predicted` (n,) holds the probabilities; ``summary_frame(alpha)`` gives their intervals.
        """

    @property
    def event(self) -> Label:
        """The label whose probability is calibrated."""
        return self._description.event

    @property
    def nonevent(self) -> Label:
        """The other label."""
        return self._description.nonevent

    def predict(self, new: Any = None) -> Any:
        """
        Calibrated probabilities of the event.

        Parameters
        ----------
        new : array_like, Series, DataFrame or dict of columns, optional
            Scores on the scale of the fit: (n,), (n, 1), or (n, 2) with both probabilities, the event's in the
            second column or under its label. Of a larger table, the column of the fit is taken by name. Without
            it, the rows of the fit.

        Returns
        -------
        float, ndarray, Series or DataFrame
            In the shape and with the index of `new`; rows with a missing score stay NaN. Two columns give two
            columns, in the same order.

        Raises
        ------
        InputError
            If the table lacks the column, or the shape does not fit.
        ProbabilityError
            If probabilities were fitted and a value lies outside [0, 1].
        """
        if new is None:
            return self.fittedvalues
        given = self._read_new(new, two_columns=True)
        scores, column = self._event_scores(given)
        q = np.full(scores.size, np.nan)
        present = ~np.isnan(scores)
        q[present] = self._map(scores[present])
        if column is None:
            return given.restore(q, self.outcome)
        pair = np.stack([1.0 - q, q] if column == 1 else [q, 1.0 - q], axis=1)
        return given.restore(pair, self.outcome, columns=given.columns)

    def _event_scores(self, given: NewScores) -> tuple[FloatArray, int | None]:
        """Scores (n,) of the event, checked, and the column they stood in when two were given."""
        values, column = given.values, None
        if values.shape[1] == 2:
            column = given.event_column(self.event, self.nonevent)
            scores = values[:, column]
            if self._scale == "logit":
                scores = scores - values[:, 1 - column]
            else:
                sums = values.sum(axis=1)
                off = np.abs(sums - 1.0) > ROUNDING
                if off.any():
                    row = int(np.flatnonzero(off)[0])
                    raise InputError(f"rows of `new` must sum to 1 within 1e-06; the first that does not is row {row}.")
        else:
            scores = values[:, 0]
        present = ~np.isnan(scores)
        if self._scale == "probability":
            if present.any():
                scores = scores.copy()
                scores[present] = check_probabilities(scores[present], "new")
        elif np.isinf(scores).any():
            row = int(np.flatnonzero(np.isinf(scores))[0])
            raise MissingDataError(f"`new` must hold finite scores; row {row} is {scores[row]}.")
        return scores, column

    @property
    def fittedvalues(self) -> Any:
        """Calibrated probabilities of the rows of the fit, with their index."""
        data = self._data("Fitted values")
        q = self._map(data.scores)
        return q if data.index is None else pd.Series(q, index=data.index, name=self.outcome)

    def _outcome_information(self) -> list[tuple[str, str]]:
        """The outcome, its event and the score, as pairs of name and value."""
        d, names = self._description, self._reader.names
        scale = {"probability": "probabilities", "logit": "log odds", "margin": "margins"}[self._scale]
        entries = [
            ("Outcome", self.outcome),
            ("Event", f"{d.event!r} (against {d.nonevent!r})"),
            ("Score", f"{names[event_place(names, d.event, d.nonevent)]} ({scale})"),
            ("Events", f"{format_count(d.events)} ({100 * d.events / (d.events + d.nonevents):.1f}%)"),
        ]
        return [*entries, ("Rows dropped (missing)", str(d.n_dropped))] if d.n_dropped else entries

    def _data(self, what: str) -> BinaryData:
        if self._sample is None:
            raise self._needs_data(what)
        return self._sample
