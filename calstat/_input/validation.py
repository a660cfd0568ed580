"""Checks that stand between what a user passes and the arrays that functions compute with.

Each check returns clean float64 arrays, or raises an error that names the argument, the row, the value and
the remedy. Inputs are never changed; a view is returned where nothing has to be converted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd

from calstat._input.labels import as_label_vector, event_place, match_names, read_binary, read_classes, show
from calstat._typing import FloatArray, IntArray, Label, RNGLike, Scale
from calstat.exceptions import InputError, LabelError, MissingDataError, ProbabilityError

# One float32 ulp above 1 is 1.0000001, and a float32 softmax row misses 1 by a few of them.
ROUNDING = 1e-6
_LARGEST_PERCENTAGE = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BinarySample:
    """A binary outcome with the probabilities (or logits) of its event.

    `y` (n,) of 0.0 and 1.0, `p` (n,) float64, `weights` (n,) or None when each row counts once, the two
    labels, the index of the first pandas argument, and remarks for the reader.
    """

    y: FloatArray
    p: FloatArray
    weights: FloatArray | None
    event: Label
    nonevent: Label
    index: pd.Index | None
    notes: tuple[str, ...]

    @property
    def nobs(self) -> float:
        """Number of observations: rows, or the sum of the weights."""
        return float(self.y.size) if self.weights is None else float(self.weights.sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class MulticlassSample:
    """A multiclass outcome with one probability (or logit) per class.

    `y` (n,) class codes, `p` (n, K) float64, `weights` (n,) or None, `classes` the K labels in the order of
    the columns, the index of the first pandas argument, and remarks for the reader.
    """

    y: IntArray
    p: FloatArray
    weights: FloatArray | None
    classes: tuple[Label, ...]
    index: pd.Index | None
    notes: tuple[str, ...]

    @property
    def nobs(self) -> float:
        """Number of observations: rows, or the sum of the weights."""
        return float(self.y.size) if self.weights is None else float(self.weights.sum())

    @property
    def class_counts(self) -> FloatArray:
        """Observations per class (K,), weights counted."""
        return np.bincount(self.y, weights=self.weights, minlength=len(self.classes)).astype(np.float64)


S = TypeVar("S", bound=BinarySample | MulticlassSample)


def check_binary(
    y: Any,
    p: Any,
    *,
    freq_weights: Any = None,
    event: Label | None = None,
    scores: Scale = "probability",
    integer_weights: bool = False,
) -> BinarySample:
    """Check a binary outcome and its probabilities: see `BinarySample` for what comes back.

    `p` is (n,), (n, 1) or (n, 2); of two columns the second is the event's, or the one whose name is `event`.
    """
    index, (y, p, freq_weights) = align(y=y, p=p, freq_weights=freq_weights)
    _refuse_swapped(y, p)
    column, event = _event_column(y, p, event, scores)
    values = check_scores(column, scores)
    labels = read_binary(y, event)
    _check_lengths(y=labels.y, p=values)
    weights = check_weights(freq_weights, values.size, integer=integer_weights)
    return BinarySample(
        y=labels.y,
        p=values,
        weights=weights,
        event=labels.event,
        nonevent=labels.nonevent,
        index=index,
        notes=labels.notes,
    )


def check_multiclass(
    y: Any,
    p: Any,
    *,
    freq_weights: Any = None,
    classes: Sequence[Label] | None = None,
    scores: Scale = "probability",
    integer_weights: bool = False,
) -> MulticlassSample:
    """Check a multiclass outcome and its matrix of probabilities or logits, one column per class."""
    index, (y, p, freq_weights) = align(y=y, p=p, freq_weights=freq_weights)
    columns = list(p.columns) if isinstance(p, pd.DataFrame) else None
    matrix = check_score_matrix(p, scores)
    labels = read_classes(y, matrix.shape[1], columns=columns, classes=classes)
    _check_lengths(y=labels.codes, p=matrix)
    weights = check_weights(freq_weights, matrix.shape[0], integer=integer_weights)
    return MulticlassSample(
        y=labels.codes, p=matrix, weights=weights, classes=labels.classes, index=index, notes=labels.notes
    )


def check_sample(
    y: Any,
    p: Any,
    *,
    type: str | None = None,  # noqa: A002  the public name of the argument
    freq_weights: Any = None,
    event: Label | None = None,
    classes: Sequence[Label] | None = None,
    integer_weights: bool = False,
) -> BinarySample | MulticlassSample:
    """Check (y, p) and tell by the shape of `p` whether it is binary or multiclass.

    (n,), (n, 1) and (n, 2) are binary, unless `type` asks for the multiclass reading of two columns.
    """
    shape = np.shape(p)
    if len(shape) == 1 or (len(shape) == 2 and (shape[1] == 1 or (shape[1] == 2 and type is None))):
        if type is not None:
            raise InputError(
                f"`type`={type!r} is for matrices with one column per class; `p` has shape {shape}. Leave `type` out "
                "to compare the event's probability with the event."
            )
        if classes is not None and len(classes) != 2:
            raise InputError(
                f"`classes` names {len(classes)} classes, but `p` of shape {shape} is about one event. Leave it out, "
                "or pass a matrix with one column per class."
            )
        if classes is not None:
            p = _named_pair(p, list(classes))
            event = classes[1] if event is None else event
        return check_binary(y, p, freq_weights=freq_weights, event=event, integer_weights=integer_weights)
    if event is not None:
        raise InputError(
            f"`event` is for a binary outcome; `p` has shape {shape}. Pass `classes` to name the columns of a matrix."
        )
    return check_multiclass(y, p, freq_weights=freq_weights, classes=classes, integer_weights=integer_weights)


def align(**arguments: Any) -> tuple[pd.Index | None, list[Any]]:
    """Bring pandas arguments to the index of the first of them; everything else is positional.

    Indexes that are equal are taken as they are, duplicates included. Indexes that hold the same labels,
    each once, in another order are aligned by label. Anything else is an error: pairing by position would
    silently pair the wrong rows.
    """
    first_name, index = "", None
    for name, value in arguments.items():
        if isinstance(value, pd.Series | pd.DataFrame):
            if index is None:
                first_name, index = name, value.index
            elif not value.index.equals(index):
                arguments[name] = _reindexed(value, index, name, first_name)
    return index, list(arguments.values())


def _reindexed(value: Any, index: pd.Index, name: str, first_name: str) -> Any:
    if not (index.is_unique and value.index.is_unique):
        raise InputError(
            f"`{first_name}` and `{name}` have different indexes with repeated labels, so that rows cannot be paired. "
            "Reset the index of both, or pass arrays."
        )
    lost = index.difference(value.index)
    if len(index) != len(value.index) or len(lost):
        what = f"{show(list(lost[:3]))} is only in `{first_name}`" if len(lost) else f"`{name}` has more rows"
        raise InputError(
            f"`{first_name}` ({len(index)} rows) and `{name}` ({len(value.index)} rows) have different index labels: "
            f"{what}. Align them first, or pass arrays to pair rows by position."
        )
    return value.reindex(index)


def as_float(values: Any, name: str) -> FloatArray:
    """Numeric array-like as float64, of any shape; strings, bools, sparse and complex input are refused."""
    if hasattr(values, "toarray") and hasattr(values, "nnz"):
        raise InputError(f"`{name}` is a sparse matrix; pass a dense array, for example `{name}.toarray()`.")
    if isinstance(values, pd.DataFrame):
        odd = [c for c, t in zip(values.columns, values.dtypes, strict=True) if not _is_number(t)]
        if odd:
            raise InputError(f"`{name}` must be numeric; column {odd[0]!r} is {values.dtypes[odd[0]]}.")
        return values.to_numpy(dtype=np.float64, na_value=np.nan)
    if isinstance(values, pd.Series | pd.Index):
        values = values.array
    if isinstance(values, pd.api.extensions.ExtensionArray):
        plain_objects = pd.api.types.is_object_dtype(values.dtype) and not isinstance(values, pd.Categorical)
        if not (_is_number(values.dtype) or plain_objects):
            raise InputError(f"`{name}` must be numeric, got dtype {values.dtype}.")
        if not plain_objects:
            return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
        values = values.to_numpy()
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"`{name}` must be a rectangular numeric array: {error}.") from error
    if array.dtype.kind == "O":
        array = _object_to_float(array, name)
    if array.dtype.kind not in "iuf":
        raise InputError(f"`{name}` must be numeric, got {_kind_name(array)}.")
    return array.astype(np.float64, copy=False)


def _is_number(dtype: Any) -> bool:
    return pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)


def _object_to_float(array: np.ndarray, name: str) -> np.ndarray:
    flat = array.ravel()
    for i, v in enumerate(flat):
        if v is not None and v is not pd.NA and (isinstance(v, str | bytes | bool | np.bool_) or np.iterable(v)):
            raise InputError(f"`{name}` must be numeric; {name}[{i}] is {v!r}.")
    return np.array([np.nan if pd.isna(v) else float(v) for v in flat], dtype=np.float64).reshape(array.shape)


def _kind_name(array: np.ndarray) -> str:
    names = {"b": "bools (True/False)", "U": "strings", "S": "bytes", "c": "complex numbers", "M": "dates"}
    return names.get(array.dtype.kind, f"dtype {array.dtype}")


def refuse_not_finite(values: FloatArray, name: str) -> None:
    """Refuse NaN and infinities, naming the first."""
    # A sum is finite unless a value is not (or the sum overflows): one pass without a temporary.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return
    bad = ~np.isfinite(values)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        place = ", ".join(str(i) for i in where)
        raise MissingDataError(
            f"`{name}` must not hold missing or infinite values; {int(bad.sum())} of {values.size} are, the first is "
            f"{name}[{place}] = {values[where]}. Drop these rows first; models drop them with missing='drop'."
        )


def check_probabilities(values: FloatArray, name: str = "p") -> FloatArray:
    """Refuse what is not in [0, 1]; rounding errors within 1e-6 of the ends are set to the ends."""
    if values.size == 0:
        raise InputError(f"`{name}` is empty.")
    refuse_not_finite(values, name)
    low, high = values.min(), values.max()
    if low >= 0.0 and high <= 1.0:
        return values
    outside = (values < -ROUNDING) | (values > 1.0 + ROUNDING)
    if outside.any():
        where = tuple(int(i) for i in np.argwhere(outside)[0])
        place = ", ".join(str(i) for i in where)
        hint = "Were percentages passed?" if low >= 0.0 and high <= _LARGEST_PERCENTAGE else "Were logits passed?"
        raise ProbabilityError(
            f"`{name}` must lie in [0, 1]; {int(outside.sum())} of {values.size} values do not, the first is "
            f"{name}[{place}] = {values[where]:.6g}. {hint}"
        )
    return np.clip(values, 0.0, 1.0)


def check_scores(values: Any, scores: Scale, name: str = "p") -> FloatArray:
    """Check a vector (n,) or column (n, 1) of probabilities or logits."""
    check_choice("scores", scores, ("probability", "logit"))
    array = as_float(values, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(f"`{name}` must be a vector, got an array of shape {array.shape}.")
    if scores == "probability":
        return check_probabilities(array, name)
    if array.size == 0:
        raise InputError(f"`{name}` is empty.")
    refuse_not_finite(array, name)
    return array


def check_score_matrix(values: Any, scores: Scale, name: str = "p") -> FloatArray:
    """Check a matrix (n, K), K >= 2, of probabilities whose rows sum to 1, or of logits."""
    check_choice("scores", scores, ("probability", "logit"))
    matrix = as_float(values, name)
    if matrix.ndim != 2 or matrix.shape[1] < 2:
        raise InputError(
            f"`{name}` must be a matrix with one column per class (two or more), got an array of shape {matrix.shape}."
        )
    if matrix.shape[0] == 0:
        raise InputError(f"`{name}` is empty.")
    if scores == "logit":
        refuse_not_finite(matrix, name)
        return matrix
    if _are_distributions(matrix):
        return matrix
    matrix = check_probabilities(matrix, name)
    sums = matrix @ np.ones(matrix.shape[1])
    if np.abs(sums - 1.0).max() > ROUNDING:
        off = np.abs(sums - 1.0) > ROUNDING
        row = int(np.flatnonzero(off)[0])
        raise ProbabilityError(
            f"rows of `{name}` must sum to 1 within {ROUNDING:g}; {int(off.sum())} of {sums.size} do not, the first is "
            f"row {row} with sum {sums[row]:.8g}. Is a class missing, or were scores passed that need a softmax? "
            f"If the sums are only rounded, divide by them: `{name} / {name}.sum(axis=1, keepdims=True)`."
        )
    return matrix


def _are_distributions(matrix: FloatArray) -> bool:
    """Tell whether all is well, in one pass over the memory: blocks of 2^16 doubles stay in the processor's cache."""
    ones = np.ones(matrix.shape[1])
    rows = max(1, 65536 // matrix.shape[1])
    for start in range(0, matrix.shape[0], rows):
        block = matrix[start : start + rows]
        # A NaN fails every one of these comparisons.
        if not (block.min() >= 0.0 and block.max() <= 1.0 and np.abs(block @ ones - 1.0).max() <= ROUNDING):
            return False
    return True


def check_weights(weights: Any, n: int, *, integer: bool = False, name: str = "freq_weights") -> FloatArray | None:
    """Check frequency weights (n,): finite, not negative, not all zero; whole numbers for inference."""
    if weights is None:
        return None
    if isinstance(weights, str):
        raise InputError(f"`{name}`={weights!r} names a column, but no table was passed; use from_formula(data=...).")
    array = as_float(weights, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.shape != (n,):
        raise InputError(f"`{name}` must have one value per row, shape ({n},), got shape {array.shape}.")
    refuse_not_finite(array, name)
    if array.min() < 0.0:
        row = int(np.flatnonzero(array < 0.0)[0])
        raise InputError(f"`{name}` must not be negative; the first that is, is {name}[{row}] = {array[row]:g}.")
    if array.max() == 0.0:
        raise InputError(f"`{name}` are all 0: no row is left.")
    if integer:
        part = np.flatnonzero(array != np.floor(array))
        if part.size:
            raise InputError(
                f"`{name}` must be whole numbers here, since a weight counts copies of a row; {name}[{part[0]}] = "
                f"{array[part[0]]:g}. Standard errors and tests for other weights (sampling, importance) would need "
                "a design that is not given; metrics take such weights."
            )
    return array


def check_groups(groups: Any, n: int, name: str = "groups") -> IntArray:
    """Check cluster labels (n,) of any type without missing values; return codes 0, 1, ... of shape (n,)."""
    return pd.factorize(np.asarray(_group_labels(groups, n, name)))[0].astype(np.int64)


def group_levels(groups: Any, n: int, name: str = "groups") -> tuple[IntArray, list[Any]]:
    """Codes (n,) of labels and the label of each code: in the order of a Categorical, or sorted if they can be."""
    labels = _group_labels(groups, n, name)
    if isinstance(labels, pd.Categorical):
        return np.asarray(labels.codes, dtype=np.int64), list(labels.categories)
    codes, found = pd.factorize(labels)
    try:
        order = sorted(range(len(found)), key=found.tolist().__getitem__)
    except TypeError:  # labels of several types
        order = sorted(range(len(found)), key=lambda k: str(found[k]))
    return np.argsort(order)[codes], [found[k] for k in order]


def _group_labels(groups: Any, n: int, name: str) -> pd.Categorical | np.ndarray:
    if isinstance(groups, str):
        raise InputError(f"`{name}`={groups!r} names a column, but no table was passed; use from_formula(data=...).")
    if pd.api.types.is_datetime64_any_dtype(groups):
        groups = pd.Series(groups).astype(object)
    labels = as_label_vector(groups, name)
    if len(labels) != n:
        raise InputError(f"`{name}` must have one label per row ({n}), got {len(labels)}.")
    return labels


def check_clusters(groups: Any, weights: FloatArray | None, n: int) -> IntArray | None:
    """Codes of the clusters of the rows with positive weight, two at least; None where there are no clusters."""
    if groups is None:
        return None
    codes = check_groups(groups, n)
    if weights is not None:
        codes = codes[weights > 0]
    codes = np.unique(codes, return_inverse=True)[1]
    if codes.max() == 0:
        raise InputError("`groups` must name at least two clusters; one was given. Leave it out for independent rows.")
    return codes.astype(np.int64)


def _check_lengths(**arrays: np.ndarray) -> None:
    (first, a), *rest = arrays.items()
    for name, b in rest:
        if len(a) != len(b):
            raise InputError(f"`{first}` and `{name}` must have the same length, got {len(a)} and {len(b)} rows.")


def _refuse_swapped(y: Any, p: Any) -> None:
    """Spot (p, y) given for (y, p): the first argument holds fractions, the second only 0 and 1."""
    if isinstance(y, pd.Categorical) or (isinstance(y, pd.Series) and isinstance(y.dtype, pd.CategoricalDtype)):
        return
    first, second = np.asarray(y), np.asarray(p)
    if first.dtype.kind != "f" or second.dtype.kind not in "bif" or first.ndim != 1 or second.ndim != 1:
        return
    with np.errstate(invalid="ignore"):
        fractions = bool(((first > 0.0) & (first < 1.0)).any()) and first.min() >= 0.0 and first.max() <= 1.0
        if fractions and bool(((second == 0) | (second == 1)).all()):
            raise LabelError(
                "`y` holds probabilities and `p` holds only 0 and 1: are the arguments swapped? The order is (y, p), "
                "the outcome first."
            )


def _event_column(y: Any, p: Any, event: Label | None, scores: Scale) -> tuple[Any, Label | None]:
    """Pick the event's column of a two-column `p`, and the event where column names settle it."""
    shape = np.shape(p)
    if len(shape) != 2 or shape[1] == 1:
        return p, event
    if shape[1] != 2:
        raise InputError(f"`p` must be a vector, or have one or two columns, for a binary outcome; got shape {shape}.")
    matrix = check_score_matrix(p, scores)
    second = 1
    if isinstance(p, pd.DataFrame):
        columns = list(p.columns)
        classes = read_classes(y, 2, columns=columns).classes
        if event is None and any(isinstance(k, str) for k in classes):
            event = classes[1]
        labels = read_binary(y, event)
        second = event_place(columns, labels.event, labels.nonevent)
    if scores == "logit":
        return matrix[:, second] - matrix[:, 1 - second], event
    return matrix[:, second], event


def _named_pair(p: Any, classes: list[Label]) -> Any:
    """Give two columns the names of `classes`, unless their own names say otherwise."""
    if not isinstance(p, pd.DataFrame) or p.shape[1] != len(classes):
        return p
    named = match_names(list(p.columns), classes)
    if named is not None and named != classes:
        raise LabelError(
            f"`classes` are {show(classes)}, but the columns of `p` are named {show(list(p.columns))}. Leave `classes` "
            "out, or name them in the order of the columns."
        )
    return p.set_axis(classes, axis=1)


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> None:
    """Refuse a value that is not one of `choices`."""
    if not any(value is c or (type(value) is type(c) and value == c) for c in choices):
        listed = ", ".join(repr(c) for c in choices)
        raise InputError(f"`{name}` must be one of {listed}; got {value!r}.")


def check_count(name: str, value: Any, minimum: int = 1, maximum: int | None = None) -> int:
    """Check a whole number within bounds and return it as int."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_)
    if not whole or value < minimum or (maximum is not None and value > maximum):
        upper = "" if maximum is None else f" and at most {maximum}"
        raise InputError(f"`{name}` must be a whole number of at least {minimum}{upper}, got {value!r}.")
    return int(value)


def check_fraction(name: str, value: Any, *, low: float = 0.0, high: float = 1.0) -> float:
    """Check a number strictly between two bounds and return it as float."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise InputError(f"`{name}` must be a number, got {value!r}.")
    if not low < value < high:
        raise InputError(f"`{name}` must lie strictly between {low:g} and {high:g}, got {value!r}.")
    return float(value)


def check_alpha(alpha: Any) -> float:
    """Check one minus the confidence level: strictly between 0 and 1."""
    return check_fraction("alpha", alpha)


def check_eps(eps: Any) -> float:
    """Check a clipping bound: strictly between 0 and one half, so that logs are finite."""
    return check_fraction("eps", eps, high=0.5)


def check_rng(rng: RNGLike) -> np.random.Generator:
    """Return a Generator: a new one from None or a seed, or the given one, which then advances."""
    whole = isinstance(rng, int | np.integer) and not isinstance(rng, bool)
    if rng is None or isinstance(rng, np.random.Generator) or (whole and rng >= 0):
        return np.random.default_rng(rng)
    raise InputError(f"`rng` must be None, a seed of at least 0, or a numpy.random.Generator; got {rng!r}.")


def positive_weight_rows(sample: S) -> S:
    """Take out the rows of weight 0, which count as absent."""
    if sample.weights is None or sample.weights.min() > 0.0:
        return sample
    keep = sample.weights > 0.0
    kept: dict[str, Any] = {name: getattr(sample, name)[keep] for name in ("y", "p", "weights")}
    return replace(sample, index=None if sample.index is None else sample.index[keep], **kept)


MetricType = Literal["classwise", "confidence"]
