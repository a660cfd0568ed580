"""What every calibrator shares: building from arrays or a formula, prediction, and storage as JSON."""

from __future__ import annotations

import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from calstat._data import ModelData, NewScores, ScoreReader, read_formula, read_new
from calstat._files import whole_file
from calstat._results import format_count
from calstat.exceptions import InputError, NotEstimableError

_FORMAT = "calstat-map"
_FORMAT_VERSION = 1


class CalibrationModel(ABC):
    """
    A calibration model: an outcome, the scores given to it, and the kind of map to fit.

    Models are immutable: `fit` returns a new results object and changes nothing here.

    Attributes
    ----------
    nobs : float
        Number of observations in the fit, weights counted.
    outcome : str
        Name of the outcome.
    formula : str or None
        The formula, when built from one.
    n_dropped : int
        Rows dropped for missing values.
    """

    _data: ModelData
    nobs: float

    @classmethod
    def from_formula(
        cls,
        formula: str,
        data: Any,
        *,
        freq_weights: Any = None,
        groups: Any = None,
        missing: str = "drop",
        **options: Any,
    ) -> Self:
        """
        Build the model from a formula and a table.

        Parameters
        ----------
        formula : str
            ``"outcome ~ score"``, with one score per class for multiclass maps. Names with spaces are quoted
            as ``Q("my score")``; ``logit``, ``inv_logit`` and ``np`` can be called.
        data : DataFrame or dict of columns
            The table.
        freq_weights : str or array_like, optional
            Frequency weights, or the name of their column.
        groups : str or array_like, optional
            Clusters for a cluster-robust covariance, or the name of their column.
        missing : {"drop", "raise"}, default "drop"
            What to do with rows that miss an outcome, score, weight or group. Dropped rows are counted in the
            summary.
        **options
            Options of the model, as in its constructor.

        Returns
        -------
        CalibrationModel
            The model, ready to `fit`.

        Raises
        ------
        InputError
            If the formula cannot be evaluated on the table, or names more or fewer scores than the map needs.
        MissingDataError
            If values are missing and `missing` is "raise".
        """
        rows = read_formula(formula, data, freq_weights=freq_weights, groups=groups, missing=missing)
        return build_model(cls, rows, **options)

    @abstractmethod
    def _setup(self, data: ModelData, **options: Any) -> None:
        """Check the data and the options of this kind of map."""

    @abstractmethod
    def fit(self) -> CalibrationResults:
        """
        Fit the map.

        Returns
        -------
        CalibrationResults
            A new results object.
        """

    @property
    def outcome(self) -> str:
        """Name of the outcome."""
        return self._data.outcome

    @property
    def formula(self) -> str | None:
        """The formula, when built from one."""
        return self._data.formula

    @property
    def n_dropped(self) -> int:
        """Rows dropped for missing values."""
        return self._data.n_dropped

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.outcome}, {format_count(self.nobs)} observations>"


class CalibrationResults(ABC):
    """
    A fitted calibration map: prediction, printing and storage.

    Attributes
    ----------
    nobs : float
        Number of observations in the fit, weights counted.
    outcome : str
        Name of the outcome.
    """

    kind: ClassVar[str]
    _kinds: ClassVar[dict[str, type[CalibrationResults]]] = {}
    _reader: ScoreReader
    outcome: str
    nobs: float

    def __init_subclass__(cls, *, kind: str | None = None, **options: Any) -> None:
        """Register a class of results under the name that its JSON carries."""
        super().__init_subclass__(**options)
        if kind is not None:
            cls.kind = kind
            CalibrationResults._kinds[kind] = cls

    @property
    def score_names(self) -> tuple[str, ...]:
        """Names of the scores: the columns that `predict` takes from a table."""
        return tuple(str(name) for name in self._reader.names)

    # -- prediction ----------------------------------------------------------------------------------

    @abstractmethod
    def predict(self, new: Any = None) -> Any:
        """
        Calibrated probabilities.

        Parameters
        ----------
        new : array_like, Series, DataFrame or dict of columns, optional
            Scores on the scale that the map was fitted on. Of a table, the columns of the fit are taken by
            name. Without it, the rows of the fit.

        Returns
        -------
        ndarray, Series or DataFrame
            In the shape and with the index of `new`; rows with a missing score stay NaN.
        """

    def _read_new(self, new: Any, *, two_columns: bool = False) -> NewScores:
        return read_new(new, self._reader, two_columns=two_columns)

    def _needs_data(self, what: str) -> NotEstimableError:
        return NotEstimableError(
            f"{what} needs the data of the fit, which a map loaded from JSON does not hold; refit it."
        )

    # -- printing ------------------------------------------------------------------------------------

    @abstractmethod
    def summary(self) -> Any:
        """
        Tables that describe the fit.

        Returns
        -------
        statsmodels.iolib.summary.Summary
            Prints as text; ``as_html()`` and ``as_latex()`` give the other forms.
        """

    def __repr__(self) -> str:
        return f"<{self.kind} fitted to {self.outcome}, {format_count(self.nobs)} observations>"

    # -- storage -------------------------------------------------------------------------------------

    @abstractmethod
    def _state(self) -> dict[str, Any]:
        """What `to_json` stores: the map and all that its summary prints, without the data."""

    @classmethod
    @abstractmethod
    def _from_state(cls, state: Mapping[str, Any]) -> Self:
        """Build results from what `_state` gave."""

    def to_json(self) -> str:
        """
        Store the fitted map as JSON text.

        The data of the fit are not stored: the loaded map predicts, prints and tests linear hypotheses as
        before; what needs the data (a score test, new profile limits) asks for a new fit. Loading runs no
        code. Terms of a formula that compute something, such as ``np.log(p)``, are stored as names: new
        tables then need a column of that very name.

        Returns
        -------
        str
            JSON.

        See Also
        --------
        save : Write the JSON to a file.
        """
        return json.dumps(map_content(self), ensure_ascii=False, allow_nan=False, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """
        Load a map from JSON text made by `to_json`.

        Parameters
        ----------
        text : str
            JSON.

        Returns
        -------
        CalibrationResults
            The map, of the class that it was stored from.

        Raises
        ------
        InputError
            If the text is not such JSON, or holds another kind of map than the class it is called on.
        """
        results = read_content(_read_json(text))
        if not isinstance(results, cls):
            raise InputError(
                f"the JSON holds a {results.kind} map, not one that {cls.__name__} can load; use calstat.from_json."
            )
        return results

    def save(self, path: str | os.PathLike[str]) -> None:
        """
        Write the fitted map to a JSON file; an existing file is replaced only once the new one is complete.

        Parameters
        ----------
        path : str or path
            Name of the file.
        """
        text = self.to_json()
        with whole_file(path) as file:
            file.write_text(text, encoding="utf-8")


M = TypeVar("M", bound=CalibrationModel)


def build_model(kind: type[M], data: ModelData, **options: Any) -> M:
    """Build a model of one kind from rows that have been read already."""
    model = kind.__new__(kind)
    model._setup(data, **options)
    return model


def map_content(results: CalibrationResults) -> dict[str, Any]:
    """What the JSON of a fitted map holds; maps that are made of others store theirs in it."""
    reader = results._reader
    return {
        "format": _FORMAT,
        "version": _FORMAT_VERSION,
        "kind": results.kind,
        "reader": {"names": [_plain(name) for name in reader.names], "plain": reader.plain},
        "state": _encode(results._state()),
    }


def read_content(content: Mapping[str, Any]) -> CalibrationResults:
    """Build the map that `map_content` described."""
    kind = content["kind"]
    target = CalibrationResults._kinds.get(kind)
    if target is None:
        known = ", ".join(sorted(CalibrationResults._kinds))
        raise InputError(f"the JSON holds a map of the unknown kind {kind!r}; known are {known}.")
    try:
        results = target._from_state(_decode(content["state"]))
        names = content["reader"]["names"]
        results._reader = ScoreReader(names=tuple(names), plain=bool(content["reader"]["plain"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"the JSON of this {kind} map is damaged or incomplete ({error}).") from error
    return results


def from_json(text: str) -> CalibrationResults:
    """
    Load a calibration map of any kind from JSON text.

    Parameters
    ----------
    text : str
        JSON made by the `to_json` method of a results object. Loading runs no code.

    Returns
    -------
    CalibrationResults
        The map, of the class that it was stored from.

    Raises
    ------
    InputError
        If the text is not such JSON.

    Examples
    --------
    >>> import calstat as cs
    >>> res = cs.LogisticCalibration([0, 1, 0, 1, 1, 0], [0.1, 0.3, 0.4, 0.6, 0.8, 0.7]).fit()
    >>> same = cs.from_json(res.to_json())
    >>> bool(same.predict(0.5) == res.predict(0.5))
    True

    The loaded map gives the same probabilities to the last digit.
    """
    return CalibrationResults.from_json(text)


def load(path: str | os.PathLike[str]) -> CalibrationResults:
    """
    Load a calibration map of any kind from a JSON file.

    Parameters
    ----------
    path : str or path
        File written by the `save` method of a results object. Loading runs no code.

    Returns
    -------
    CalibrationResults
        The map, of the class that it was stored from.

    Raises
    ------
    InputError
        If the file does not hold such JSON.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import pathlib
    >>> import tempfile
    >>> import calstat as cs
    >>> res = cs.LogisticCalibration([0, 1, 0, 1, 1, 0], [0.1, 0.3, 0.4, 0.6, 0.8, 0.7]).fit()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     res.save(pathlib.Path(folder) / "map.json")
    ...     print(cs.load(pathlib.Path(folder) / "map.json"))
    <LogisticCalibration fitted to y, 6 observations>

    The loaded map is used as the fitted one.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{str(path)!r} is not a text file, so not a stored calibration map.") from error
    return from_json(text)


def _read_json(text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (TypeError, ValueError) as error:
        raise InputError(f"the text is not JSON, so not a stored calibration map ({error}).") from error
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise InputError(f'the JSON is not a stored calibration map: it lacks "format": "{_FORMAT}".')
    if content.get("version") != _FORMAT_VERSION:
        raise InputError(
            f"the map is stored in version {content.get('version')!r} of the format; version {_FORMAT_VERSION} is read."
        )
    for key in ("kind", "reader", "state"):
        if key not in content:
            raise InputError(f"the JSON of the calibration map is incomplete: it lacks {key!r}.")
    return content


def _encode(value: Any) -> Any:
    """JSON form of numbers, arrays, labels and containers; what JSON cannot say in numbers becomes {"float": ...}."""
    value = _plain(value)
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, np.ndarray):
        return [_encode(v) for v in value.tolist()]
    if isinstance(value, Mapping):
        return {str(k): _encode(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_encode(v) for v in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise InputError(
        f"a value of type {type(value).__name__} ({value!r}) cannot be stored; use labels that are strings or numbers."
    )


def _decode(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"float"}:
            return float(value["float"])
        return {k: _decode(v) for k, v in value.items()}
    return [_decode(v) for v in value] if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    """NumPy scalars as Python's."""
    return value.item() if isinstance(value, np.generic) else value
