"""The door for tables and formulas: rows that go into a fit, and how scores are found in new data.

A formula ``y ~ p`` names the outcome and the scores; it has no intercept and makes no dummies, since each map
adds the terms that it needs. Rows with a missing outcome, score, weight or group are dropped together,
and counted.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import patsy

from calstat._input.labels import event_place
from calstat._input.validation import align, as_float, check_choice
from calstat._typing import FloatArray, Label
from calstat.exceptions import InputError, MissingDataError
from calstat.transforms import inv_logit, logit

_QUOTED = re.compile(r"""^Q\((["'])(.*)\1\)$""", re.DOTALL)


def _reader(names: tuple[Any, ...], plain: bool) -> ScoreReader:
    return ScoreReader(names=names, plain=plain)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreReader:
    """How the scores of a model are found in new data.

    `names` are the columns, or the terms of the formula. `plain` says that each name is a column as it
    stands; otherwise `design` (patsy's DesignInfo) computes the terms.
    """

    names: tuple[Any, ...]
    plain: bool = True
    design: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without patsy's design, which cannot be pickled: terms that are computed travel as names."""
        return _reader, (self.names, self.plain)

    def from_frame(self, data: Any) -> FloatArray:
        """Scores (n, m) from a table; missing values are NaN."""
        frame = as_frame(data)
        if self.design is not None:
            terms = patsy.build_design_matrices([self.design], _PlainColumns(frame), NA_action=_keep_missing())
            return np.asarray(terms[0], dtype=np.float64)
        lost = [name for name in self.names if name not in frame.columns]
        if lost:
            raise InputError(
                f"the table must have a column {lost[0]!r}, a score that the map was fitted on.{_columns_hint(frame)}"
            )
        # Not by [names], which takes columns named True and False for a mask of rows.
        picked = frame.take([i for name in self.names for i, c in enumerate(frame.columns) if c == name], axis=1)
        if picked.shape[1] != len(self.names):
            raise InputError(f"the table has two columns of the same name among {_listed(self.names)}.")
        return as_float(picked, "data")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelData:
    """Rows of a fit as the user gave them, after dropping, not yet checked.

    `y` labels, `scores` a vector or matrix (a frame keeps its column names), `weights` and `groups` or None;
    `kept` (N,) marks the rows of the original data that stayed, with the index `original`, or is None when all did.
    """

    y: Any
    scores: Any
    weights: Any
    groups: Any
    index: pd.Index | None
    kept: np.ndarray | None
    outcome: str
    reader: ScoreReader
    formula: str | None
    frame: pd.DataFrame | None
    original: pd.Index | None = None

    @property
    def n_dropped(self) -> int:
        """Number of rows dropped for missing values."""
        return 0 if self.kept is None else int((~self.kept).sum())

    def rows(self, chosen: np.ndarray) -> ModelData:
        """The data of the rows that `chosen` (n,) marks, as if no others had been given."""
        return replace(
            self,
            y=_take(self.y, chosen),
            scores=_take(self.scores, chosen),
            weights=_take(self.weights, chosen),
            groups=_take(self.groups, chosen),
            index=None if self.index is None else self.index[chosen],
            kept=None,
            frame=None,
            original=None,
        )

    def follow(self, groups: Any) -> Any:
        """Groups given at a later time, by name or with the length of the original or the kept rows."""
        if isinstance(groups, str):
            if self.frame is None or groups not in self.frame.columns:
                raise InputError(
                    f"`groups`={groups!r} is not a column; pass an array, or with from_formula the name of a column."
                )
            groups = self.frame[groups]
        if isinstance(groups, pd.DataFrame) and groups.shape[1] == 1:
            groups = groups.iloc[:, 0]
        if isinstance(groups, pd.Series) and self.index is not None and len(groups) == len(self.index):
            return _aligned(groups, self.index)
        if self.kept is not None and len(groups) == self.kept.size:
            if isinstance(groups, pd.Series) and self.original is not None:
                groups = _aligned(groups, self.original)
            return _take(groups, self.kept)
        return groups


def _aligned(groups: pd.Series, index: pd.Index) -> Any:
    return align(y=pd.Series(np.zeros(len(index)), index=index), groups=groups)[1][1]


def read_arrays(y: Any, scores: Any, *, freq_weights: Any, groups: Any, missing: str | None) -> ModelData:
    """Data of a fit from arrays, Series or a DataFrame of scores.

    `missing=None` means "drop" when the scores are a DataFrame, and "raise" otherwise.
    """
    if missing is not None:
        check_choice("missing", missing, ("drop", "raise"))
    index, (y, scores, weights, groups) = align(y=y, scores=scores, freq_weights=freq_weights, groups=groups)
    named = isinstance(scores, pd.DataFrame)
    drop = missing == "drop" or (missing is None and named)
    if named:
        names = tuple(scores.columns)
        if len(set(names)) < len(names):
            raise InputError(f"`scores` has two columns of the same name; the columns are {_listed(names)}.")
    else:
        names = (_name_of(scores, "score"),)
    outcome = str(_name_of(y, "y"))
    return _drop_missing(
        ModelData(
            y=y,
            scores=scores,
            weights=weights,
            groups=groups,
            index=index,
            kept=None,
            outcome=outcome,
            reader=ScoreReader(names=names),
            formula=None,
            frame=None,
        ),
        drop=drop,
    )


def read_formula(formula: str, data: Any, *, freq_weights: Any, groups: Any, missing: str | None) -> ModelData:
    """Data of a fit from a formula and a table; weights and groups may be names of columns."""
    missing = "drop" if missing is None else missing
    check_choice("missing", missing, ("drop", "raise"))
    frame = as_frame(data)
    if not isinstance(formula, str) or formula.count("~") != 1:
        raise InputError(f"`formula` must be a string such as 'y ~ p', got {formula!r}.")
    try:
        terms = patsy.ModelDesc.from_formula(formula)
        outcome, y = _outcome(terms, frame, formula)
        reader, scores = _scores(terms, frame, formula)
    except patsy.PatsyError as error:
        raise InputError(
            f"`formula` {formula!r} cannot be evaluated: {_first_line(error)}{_columns_hint(frame)}"
        ) from error
    data = ModelData(
        y=y,
        scores=pd.DataFrame(scores, columns=list(reader.names), index=frame.index),
        weights=_column("freq_weights", freq_weights, frame),
        groups=_column("groups", groups, frame),
        index=frame.index,
        kept=None,
        outcome=outcome,
        reader=reader,
        formula=formula,
        frame=frame,
    )
    return _drop_missing(data, drop=missing == "drop")


def as_frame(data: Any) -> pd.DataFrame:
    """A table as a DataFrame; dicts of columns are taken too."""
    if isinstance(data, pd.DataFrame):
        return data
    if isinstance(data, Mapping):
        return pd.DataFrame(data)
    raise InputError(f"`data` must be a DataFrame or a dict of columns, got {type(data).__name__}.")


class _PlainColumns(Mapping[str, Any]):
    """Columns of a frame for patsy, nullable dtypes turned into float or object ones that it understands."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    def __getitem__(self, key: str) -> Any:
        column = self._frame[key]
        dtype = column.dtype
        if isinstance(dtype, pd.api.extensions.ExtensionDtype) and not isinstance(dtype, pd.CategoricalDtype):
            if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype):
                return pd.Series(column.to_numpy(dtype=np.float64, na_value=np.nan), index=column.index)
            return column.astype(object)
        return column

    def __iter__(self) -> Iterator[str]:
        return iter(self._frame.columns)

    def __len__(self) -> int:
        return len(self._frame.columns)

    def __contains__(self, key: object) -> bool:
        return key in self._frame.columns


def _keep_missing() -> Any:
    return patsy.NAAction(NA_types=[])


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(".") + "."


def _name_of(values: Any, default: str) -> Any:
    name = getattr(values, "name", None)
    return default if name is None else name


def _listed(names: Sequence[Any]) -> str:
    return ", ".join(repr(c) for c in names[:8]) + (", ..." if len(names) > 8 else "")


def _columns_hint(frame: pd.DataFrame) -> str:
    return f" The columns are {_listed(list(frame.columns))}."


def _bare(name: str) -> str:
    """The name of a column out of patsy's quoting Q("...")."""
    quoted = _QUOTED.match(name)
    return quoted.group(2) if quoted else name


def _outcome(terms: Any, frame: pd.DataFrame, formula: str) -> tuple[str, Any]:
    """Name and values of the left-hand side, labels as they are."""
    factors = [f for t in terms.lhs_termlist for f in t.factors]
    if len(factors) != 1:
        raise InputError(f"`formula` must name one outcome on the left of '~', got {formula!r}.")
    name = _bare(factors[0].name())
    if name in frame.columns:
        return name, frame[name]
    values = _evaluate(factors[0], frame)
    outcome = values if isinstance(values, pd.Series) else pd.Series(np.asarray(values), index=frame.index)
    # A comparison makes False of a missing value, whose row is to be dropped.
    missing = frame[_columns_of(factors[0].code, frame)].isna().any(axis=1)
    return name, outcome.astype(object).mask(missing) if missing.any() else outcome


def _columns_of(code: str, frame: pd.DataFrame) -> list[Any]:
    """Columns that an expression reads, by their name or by Q("name")."""
    names: set[Any] = set()
    for node in ast.walk(ast.parse(code, mode="eval")):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Q":
            names.update(a.value for a in node.args if isinstance(a, ast.Constant))
    return [column for column in frame.columns if column in names]


def _namespace() -> Any:
    """What a formula may call besides patsy's own functions: numpy as np, logit and inv_logit."""
    functions = {"logit": _on_present(logit), "inv_logit": _on_present(inv_logit)}
    return patsy.EvalEnvironment([{}, {"np": np, **functions}])


def _on_present(function: Callable[[FloatArray], FloatArray]) -> Callable[[Any], FloatArray]:
    """A function of numbers that leaves missing ones missing, as their rows are dropped later."""

    def applied(values: Any) -> FloatArray:
        numbers = as_float(values, "a term of the formula")
        present = ~np.isnan(numbers)
        result = np.full(numbers.shape, np.nan)
        if present.any():
            result[present] = function(numbers[present])
        return result

    return applied


def _evaluate(factor: Any, frame: pd.DataFrame) -> Any:
    columns = _PlainColumns(frame)
    state: dict[str, Any] = {}
    env = _namespace()
    for which in range(factor.memorize_passes_needed(state, env)):
        factor.memorize_chunk(state, which, columns)
        factor.memorize_finish(state, which)
    return factor.eval(state, columns)


def _scores(terms: Any, frame: pd.DataFrame, formula: str) -> tuple[ScoreReader, FloatArray]:
    """Terms of the right-hand side as a matrix, one numeric column per term."""
    score_terms = [t for t in terms.rhs_termlist if t.factors]
    if not score_terms:
        raise InputError(f"`formula` must name a score on the right of '~', got {formula!r}.")
    names = tuple(":".join(_bare(f.name()) for f in t.factors) for t in score_terms)
    if all(len(t.factors) == 1 and name in frame.columns for t, name in zip(score_terms, names, strict=True)):
        reader = ScoreReader(names=names)
        return reader, reader.from_frame(frame)
    design = patsy.dmatrix(
        patsy.ModelDesc([], score_terms), _PlainColumns(frame), eval_env=_namespace(), NA_action=_keep_missing()
    )
    if design.shape[1] != len(score_terms):
        raise InputError(
            f"`formula` {formula!r} must have numeric scores, one column per term; it makes {design.shape[1]} columns "
            f"({', '.join(design.design_info.column_names[:6])}) of {len(score_terms)} terms."
        )
    return ScoreReader(names=names, plain=False, design=design.design_info), np.asarray(design, dtype=np.float64)


def _column(argument: str, value: Any, frame: pd.DataFrame) -> Any:
    """A column of the table by name, or values brought to the table's index."""
    if isinstance(value, str):
        if value not in frame.columns:
            raise InputError(f"`{argument}`={value!r} is not a column of `data`.{_columns_hint(frame)}")
        return frame[value]
    if isinstance(value, pd.DataFrame) and value.shape[1] == 1:
        value = value.iloc[:, 0]
    if isinstance(value, pd.Series):
        return align(data=frame, **{argument: value})[1][1]
    if value is not None and len(value) != len(frame):
        raise InputError(f"`{argument}` must have one value per row of `data` ({len(frame)}), got {len(value)}.")
    return value


def _drop_missing(data: ModelData, *, drop: bool) -> ModelData:
    """Drop rows with a missing value in any part together, or leave them to be refused by the checks."""
    if not drop:
        return data
    parts = {"y": data.y, "scores": data.scores, "freq_weights": data.weights, "groups": data.groups}
    lengths = {name: len(v) for name, v in parts.items() if v is not None}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"`{name}` {n}" for name, n in lengths.items())
        raise InputError(f"`y`, scores, weights and groups must have the same number of rows; got {listed}.")
    gone = np.zeros(lengths["y"], dtype=bool)
    for part in parts.values():
        if part is not None:
            missing = np.asarray(
                pd.isna(part if hasattr(part, "dtype") or isinstance(part, pd.DataFrame) else list(part))
            )
            gone |= missing.any(axis=1) if missing.ndim == 2 else missing
    if not gone.any():
        return data
    if gone.all():
        raise MissingDataError(f"every one of the {gone.size} rows has a missing outcome, score, weight or group.")
    kept = ~gone
    return replace(data.rows(kept), kept=kept, frame=data.frame, original=data.index)


def _take(values: Any, kept: np.ndarray) -> Any:
    if values is None:
        return None
    if isinstance(values, pd.Series | pd.DataFrame | pd.Categorical):
        return values[kept]
    array = np.asarray(values)
    if array.dtype.kind in "US":
        array = np.array(list(values), dtype=object)
    return array[kept]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewScores:
    """Scores to predict from: `values` (n, m) with NaN where missing, and how the answer is to look.

    `given_columns` are the columns of the input when it held nothing but scores in columns; `columns` the names of
    the columns of `values`, when they came from a table.
    """

    values: FloatArray
    index: pd.Index | None
    ndim: int
    given_columns: pd.Index | None
    columns: tuple[Any, ...] | None = None

    def event_column(self, event: Label, nonevent: Label) -> int:
        """Which of two columns is the event's: the one that carries its name, else the second."""
        return 1 if self.columns is None else event_place(self.columns, event, nonevent)

    def present(self) -> np.ndarray:
        """Rows (n,) in which no score is missing."""
        return np.asarray(~np.isnan(self.values).any(axis=1))

    def restore(self, predicted: FloatArray, name: str, columns: Sequence[Any] | None = None) -> Any:
        """Give predictions (n,) or (n, K) the shape and the index of the input."""
        if predicted.ndim == 2:
            if self.index is None:
                return predicted
            if self.given_columns is not None and len(self.given_columns) == predicted.shape[1]:
                return pd.DataFrame(predicted, index=self.index, columns=self.given_columns)
            return pd.DataFrame(predicted, index=self.index, columns=None if columns is None else list(columns))
        if self.index is not None:
            return pd.Series(predicted, index=self.index, name=name)
        if self.ndim == 0:
            return predicted[0]
        return predicted[:, None] if self.ndim == 2 else predicted


def read_new(new: Any, reader: ScoreReader, *, two_columns: bool = False) -> NewScores:
    """Read scores for prediction: a table by column names, anything else by position.

    `two_columns` is for a binary outcome, and accepts (n,), (n, 1) and (n, 2): the event's score, or both.
    """
    m = len(reader.names)
    if isinstance(new, Mapping):
        new = pd.DataFrame(new)
    if isinstance(new, pd.DataFrame):
        # A computed score is not what stands in any column, whatever the number of columns.
        named = not reader.plain or all(name in new.columns for name in reader.names)
        bare = list(new.columns) == list(reader.names)
        if named or not (new.shape[1] == m == 1 or (two_columns and new.shape[1] == 2)):
            values, only_scores, columns = reader.from_frame(new), bare, tuple(reader.names)
        else:
            values, only_scores, columns = as_float(new, "new"), True, tuple(new.columns)
        return NewScores(
            values=values,
            index=new.index,
            ndim=2,
            given_columns=new.columns if only_scores and values.shape[1] > 1 else None,
            columns=columns,
        )
    values = as_float(new, "new")
    ndim = values.ndim
    if ndim == 0 or (ndim == 1 and (m == 1 or two_columns)):
        values = values.reshape(-1, 1)
    elif ndim == 1 and values.size == m:
        raise InputError(f"`new` must be a matrix with {m} columns; for a single row pass [[...]].")
    if values.ndim != 2 or values.shape[1] not in ({1, 2} if two_columns else {m}):
        raise InputError(
            f"`new` must have {m} column(s) of scores ({_listed(reader.names)}), got shape {values.shape}."
        )
    if values.shape[0] == 0:
        raise InputError("`new` is empty.")
    index = new.index if isinstance(new, pd.Series) else None
    missing = np.flatnonzero(np.isnan(values).any(axis=1))
    if index is None and missing.size:
        raise MissingDataError(
            f"`new` must not hold missing values; {missing.size} of {len(values)} rows do, the first is row "
            f"{missing[0]}. "
            "In a Series or DataFrame such rows are kept and predicted as NaN."
        )
    return NewScores(values=values, index=index, ndim=ndim, given_columns=None)
