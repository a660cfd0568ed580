"""Reading outcome labels: which label is the event, which column belongs to which class.

Nothing is guessed: what is not settled by the rules in the docstrings here is an error that names the
labels and the argument that would settle it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from calstat._typing import FloatArray, IntArray, Label
from calstat.exceptions import InputError, LabelError, MissingDataError

_SHOWN = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryLabels:
    """A binary outcome: `y` (n,) of 0.0 and 1.0, the labels behind them, and remarks for the reader."""

    y: FloatArray
    event: Label
    nonevent: Label
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassLabels:
    """A multiclass outcome: `codes` (n,) into `classes`, which are in the order of the columns."""

    codes: IntArray
    classes: tuple[Label, ...]
    notes: tuple[str, ...]


def show(labels: Sequence[Label]) -> str:
    """Labels for a message: quoted as Python would, shortened when there are many."""
    plain = [x.item() if isinstance(x, np.generic) else x for x in labels]
    text = ", ".join(repr(x) for x in plain[:_SHOWN])
    return text if len(plain) <= _SHOWN else f"{text}, ... ({len(plain)} in all)"


def as_label_vector(y: Any, name: str = "y") -> pd.Categorical | np.ndarray:
    """Return labels as a Categorical or a 1-D array without missing values.

    The array is boolean, integer, floating point or object (strings and the like).
    """
    if isinstance(y, pd.DataFrame):
        if y.shape[1] != 1:
            raise InputError(f"`{name}` must be one column of labels, got a DataFrame with {y.shape[1]} columns.")
        y = y.iloc[:, 0]
    if isinstance(y, pd.Series | pd.Index):
        y = y.array
    if isinstance(y, pd.Categorical):
        _refuse_missing(np.asarray(y.codes) < 0, name)
        return y
    if isinstance(y, pd.api.extensions.ExtensionArray):
        missing = np.asarray(pd.isna(y))
        _refuse_missing(missing, name)
        y = np.asarray(y.astype(object)) if pd.api.types.is_string_dtype(y.dtype) else y.to_numpy()
    if not isinstance(y, np.ndarray):
        y = _array_of_sequence(y, name)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise InputError(
            f"`{name}` must be a vector of labels, got an array of shape {y.shape}. For one-hot rows pass "
            f"`{name}.argmax(axis=1)`."
        )
    return _plain_labels(y, name)


def _array_of_sequence(y: Any, name: str) -> np.ndarray:
    """Lists and tuples, with mixed types kept apart (NumPy would turn [1, 'a'] into strings)."""
    if isinstance(y, str | bytes) or not hasattr(y, "__len__"):
        raise InputError(f"`{name}` must be a vector of labels, got {type(y).__name__}.")
    array = np.asarray(y)
    if array.dtype.kind in "US" and not all(isinstance(v, str | bytes) for v in y):
        array = np.empty(len(y), dtype=object)
        array[:] = y
    return array


def _plain_labels(y: np.ndarray, name: str) -> np.ndarray:
    """Settle the dtype of a label vector and refuse missing values."""
    if y.dtype.kind in "biu":
        return y
    if y.dtype.kind == "f":
        bad = ~np.isfinite(y)
        if bad.any():
            _refuse_missing(bad, name, float(y[np.flatnonzero(bad)[0]]))
        return y
    if y.dtype.kind in "US":
        return y.astype(object)
    if y.dtype.kind != "O":
        raise InputError(f"`{name}` must hold labels (numbers, bools, strings), got dtype {y.dtype}.")
    _refuse_missing(np.asarray(pd.isna(y)), name)
    kinds = {type(v) for v in y}
    if kinds <= {bool, np.bool_}:
        return y.astype(bool)
    if all(issubclass(k, int | float | np.integer | np.floating) and k is not bool for k in kinds):
        return _plain_labels(y.astype(np.float64), name)
    return y


def _refuse_missing(missing: np.ndarray, name: str, value: Any = "missing") -> None:
    if missing.any():
        rows = np.flatnonzero(missing)
        raise MissingDataError(
            f"`{name}` must not hold missing or infinite values; {rows.size} of {missing.size} are, the first is "
            f"{name}[{rows[0]}] ({value}). Drop these rows first; models drop them with missing='drop'."
        )


def _distinct(y: np.ndarray) -> list[Label]:
    """Distinct labels, sorted where they can be."""
    if y.dtype.kind in "iu" and y.min() >= 0 and y.max() <= y.size:
        return list(np.flatnonzero(np.bincount(y)))  # a tenth of the time of sorting a million labels
    if y.dtype.kind != "O":
        return list(np.unique(y))
    values = set(y.tolist())
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=lambda v: (type(v).__name__, str(v)))


def read_binary(y: Any, event: Label | None = None, name: str = "y") -> BinaryLabels:
    """Read a binary outcome.

    With `event`, rows equal to it are 1. Without: bool, {0, 1}, {-1, 1}, {1, 2} (with a remark), or a
    Categorical with two used levels, the later one being the event.
    """
    labels = as_label_vector(y, name)
    if len(labels) == 0:
        raise InputError(f"`{name}` is empty.")
    if isinstance(labels, pd.Categorical):
        return _binary_from_categorical(labels, event, name)
    if event is None and labels.dtype.kind in "biuf":
        return _binary_from_numbers(labels, name)
    distinct = _distinct(labels)
    if len(distinct) > 2:
        raise LabelError(
            f"`{name}` must hold two labels for a binary outcome, got {len(distinct)}: {show(distinct)}. With more "
            "than two classes pass a matrix of probabilities, one column per class."
        )
    if event is None:
        raise LabelError(
            f"`{name}` holds the labels {show(distinct)}: which of them is the event is not clear. "
            f"Pass event=, for example event={distinct[-1]!r}."
        )
    return _binary_from_event(labels, distinct, event, name)


def _binary_from_event(
    labels: np.ndarray, distinct: list[Label], event: Label, name: str, known: Sequence[Label] | None = None
) -> BinaryLabels:
    if not np.isscalar(event) and not isinstance(event, pd.Timestamp | pd.Interval):
        raise LabelError(f"`event` must be one label of `{name}`, got {event!r}.")
    candidates = distinct if known is None else list(known)
    matched = [v for v in candidates if v == event and isinstance(v, str) == isinstance(event, str)]
    numeric_binary = all(not isinstance(v, str) and v in {0, 1} for v in candidates)
    if not matched and not (numeric_binary and event in {0, 1}):
        raise LabelError(f"`event` is {event!r}, but the labels in `{name}` are {show(candidates)}.")
    others = [v for v in distinct if v != event]
    if len(others) > 1:
        raise LabelError(
            f"`{name}` must hold two labels for a binary outcome, got {len(distinct)}: {show(distinct)}. To set one "
            "class against the rest pass `y == label`."
        )
    nonevent = others[0] if others else next((v for v in candidates if v != event), f"not {event!s}")
    return BinaryLabels(y=(labels == event).astype(np.float64), event=_item(event), nonevent=_item(nonevent), notes=())


def _binary_from_categorical(labels: pd.Categorical, event: Label | None, name: str) -> BinaryLabels:
    categories = list(labels.categories)
    used = [categories[i] for i in np.unique(labels.codes)]
    if event is None:
        pair = used if len(used) == 2 else categories
        if len(pair) != 2:
            raise LabelError(
                f"`{name}` must have two used levels for a binary outcome, got {len(used)} of {len(categories)}: "
                f"{show(used)}. Pass event= to name the event."
            )
        event = pair[1]
    values = np.asarray(labels.categories, dtype=object)[labels.codes]
    return _binary_from_event(values, used, event, name, known=categories)


def _binary_from_numbers(labels: np.ndarray, name: str) -> BinaryLabels:
    if labels.dtype.kind == "b":
        return BinaryLabels(y=labels.astype(np.float64), event=True, nonevent=False, notes=())
    low, high = labels.min(), labels.max()
    values = np.asarray(labels, dtype=np.float64)
    if low >= 0 and high <= 1 and bool(np.all((values == 0.0) | (values == 1.0))):
        return BinaryLabels(y=values.copy() if values is labels else values, event=1, nonevent=0, notes=())
    for first, second in ((-1, 1), (1, 2)):
        if low == first and high in {first, second} and bool(np.all((values == first) | (values == second))):
            note = (f"`{name}` is coded 1 and 2; 2 was taken as the event",) if first == 1 else ()
            return BinaryLabels(y=(values == second).astype(np.float64), event=second, nonevent=first, notes=note)
    odd = np.flatnonzero((values != 0.0) & (values != 1.0))
    raise LabelError(
        f"`{name}` must hold 0 and 1 (or -1 and 1, 1 and 2, bools, or two labels with event=); {odd.size} of "
        f"{values.size} values are neither 0 nor 1, the first is {name}[{odd[0]}] = {values[odd[0]]:g}. "
        "Are the arguments swapped? The order is (y, p)."
    )


def _item(label: Label) -> Label:
    return label.item() if isinstance(label, np.generic) else label


def read_classes(
    y: Any,
    n_columns: int,
    *,
    columns: Sequence[Any] | None = None,
    classes: Sequence[Label] | None = None,
    name: str = "y",
) -> ClassLabels:
    """Read a multiclass outcome and settle which column belongs to which class.

    In this order: `classes` (labels in the order of the columns); column names, or what is left of them
    after a common prefix or suffix; the levels of a Categorical; integer labels that include 0 and stay
    below the number of columns; as many distinct labels as columns, sorted. Anything else is an error.
    """
    labels = as_label_vector(y, name)
    if len(labels) == 0:
        raise InputError(f"`{name}` is empty.")
    if isinstance(labels, pd.Categorical):
        values = np.asarray(labels.categories, dtype=object)[labels.codes]
        used = [labels.categories[i] for i in np.unique(labels.codes)]
    else:
        values, used = labels, _distinct(labels)
    if columns is not None and len(set(columns)) < len(columns):
        raise InputError(f"`p` has two columns of the same name; the columns are {show(list(columns))}. Rename one.")
    notes: tuple[str, ...] = ()
    if classes is not None:
        order = _given_classes(classes, used, n_columns, name)
    else:
        named = match_names(columns, used) if columns is not None else None
        if named is not None:
            order = named
        else:
            order = _positional_classes(labels, used, n_columns, name, columns)
            if columns is not None and not all(isinstance(c, int | np.integer) for c in columns):
                pairs = [f"{c}={k}" for c, k in zip(columns, order, strict=True)]
                notes = ("column names are not the class labels; matched by position: " + ", ".join(pairs[:_SHOWN]),)
    return ClassLabels(codes=_encode(values, order), classes=tuple(_item(k) for k in order), notes=notes)


def _given_classes(classes: Sequence[Label], used: list[Label], n_columns: int, name: str) -> list[Label]:
    order = list(classes)
    if len(order) != n_columns or len(set(order)) != len(order):
        raise LabelError(
            f"`classes` must name each of the {n_columns} columns once, in their order; got {len(order)} labels: "
            f"{show(order)}."
        )
    lost = [k for k in used if k not in order]
    if lost:
        raise LabelError(f"`{name}` holds labels without a column: {show(lost)}. `classes` are {show(order)}.")
    return order


def event_place(columns: Sequence[Any], event: Label, nonevent: Label) -> int:
    """Place of the event among one or two columns: where the names say, else the second; 0 of a single one."""
    if len(columns) == 1:
        return 0
    order, _ = _read_names(columns, [nonevent, event])
    return 1 if order is None else order.index(event)


def match_names(columns: Sequence[Any], used: list[Label]) -> list[Label] | None:
    """Classes read off the column names, or None where the names say nothing about the labels."""
    order, partly = _read_names(columns, used)
    if order is None and partly and not _is_range(columns):
        lost = sorted({_text(k) for k in used} - set(partly))
        raise LabelError(
            f"column names {show(list(columns))} match some labels ({show(partly)}) but not {show(lost)}. "
            "Rename the columns or pass classes= with the labels in the order of the columns."
        )
    return order


def _read_names(columns: Sequence[Any], used: list[Label]) -> tuple[list[Label] | None, list[str]]:
    """Classes by column, and the labels that some names match where not all labels are found.

    Names are compared as they are written, then without regard to case, then with 0 and 1 for False and True.
    """
    spellings: list[tuple[dict[str, Label], Callable[[str], str]]] = [({_text(k): k for k in used}, str)]
    spellings.append(({_text(k).casefold(): k for k in used}, str.casefold))
    if set(used) <= {0, 1}:
        spellings.append(({str(bool(k)).casefold(): k for k in used}, str.casefold))
        spellings.append(({str(int(k)): k for k in used}, str))
    partly: list[str] = []
    for by_text, fold in spellings:
        if len(by_text) == len(used):
            order, some = _match_texts([str(c) for c in columns], by_text, fold, used)
            if order is not None:
                return order, []
            partly = partly or some
    return None, partly


def _match_texts(
    names: list[str], by_text: dict[str, Label], fold: Callable[[str], str], used: list[Label]
) -> tuple[list[Label] | None, list[str]]:
    """Match what is left of the names without a common beginning and end."""
    shortest = min(len(s) for s in names)
    head = next((i for i in range(shortest) if len({s[i] for s in names}) > 1), shortest)
    tail = next((i for i in range(shortest) if len({s[-1 - i] for s in names}) > 1), shortest)
    numeric = all(isinstance(k, int | np.integer) and not isinstance(k, bool) for k in used)
    partly: list[str] = []
    for total in range(head + tail + 1):
        for cut in range(min(head, total), max(0, total - tail) - 1, -1):
            left = [s[cut : len(s) - (total - cut)] for s in names]
            keys = [fold(s) for s in left]
            if len(set(keys)) < len(keys):
                continue
            found = by_text.keys() & set(keys)
            if len(found) == len(by_text):
                others = (int(s) if numeric and s.lstrip("-").isdigit() else s for s in left)
                return [by_text.get(key, other) for key, other in zip(keys, others, strict=True)], []
            if len(found) > len(partly):
                partly = sorted(found)
    return None, partly


def _is_range(columns: Sequence[Any]) -> bool:
    """Whether columns are numbered one after the other, so that their numbers may say nothing."""
    whole = all(isinstance(c, int | np.integer) and not isinstance(c, bool) for c in columns)
    return whole and list(columns) == list(range(int(columns[0]), int(columns[0]) + len(columns)))


def _text(label: Label) -> str:
    return str(int(label)) if isinstance(label, float | np.floating) and float(label).is_integer() else str(label)


def _positional_classes(
    labels: pd.Categorical | np.ndarray,
    used: list[Label],
    n_columns: int,
    name: str,
    columns: Sequence[Any] | None,
) -> list[Label]:
    if isinstance(labels, pd.Categorical):
        levels = list(labels.categories)
        for order in (levels, used):
            if len(order) == n_columns:
                return order
        raise LabelError(
            f"`{name}` has {len(levels)} levels ({len(used)} used), but there are {n_columns} columns. Pass classes= "
            "with the labels in the order of the columns."
        )
    whole = labels.dtype.kind in "biu" or (labels.dtype.kind == "f" and all(float(k).is_integer() for k in used))
    if whole and used[0] == 0 and used[-1] < n_columns:
        return list(range(n_columns))
    if len(used) == n_columns:
        return [int(k) for k in used] if whole else used
    extra = "" if columns is None else f" The columns are {show(list(columns))}."
    raise LabelError(
        f"`{name}` holds {len(used)} distinct labels ({show(used)}) for {n_columns} columns of probabilities: which "
        f"column belongs to which label is not clear. Pass classes= with the labels in the order of the columns.{extra}"
    )


def _encode(values: np.ndarray, order: list[Label]) -> IntArray:
    if values.dtype.kind in "biuf" and order == list(range(len(order))):
        return values.astype(np.int64)
    position = {k: i for i, k in enumerate(order)}
    distinct, inverse = np.unique(values, return_inverse=True) if values.dtype.kind != "O" else _factorize(values)
    table = np.array([position[_item(k)] for k in distinct], dtype=np.int64)
    return table[inverse]


def _factorize(values: np.ndarray) -> tuple[np.ndarray, IntArray]:
    """Distinct values and codes of an object vector, in order of appearance."""
    codes, distinct = pd.factorize(values)
    return np.asarray(distinct, dtype=object), codes.astype(np.int64)
