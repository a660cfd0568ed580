"""Bins: edges, assignment and mergeable sums. The only binning of the package.

Every bin is closed on the left and open on the right; the last one is closed on both sides. Sums are float64.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from calstat._typing import ArrayLike, BoolArray, FloatArray, IntArray
from calstat.exceptions import InputError

Strategy: TypeAlias = Literal["equal_width", "equal_freq"]
Norm: TypeAlias = Literal[1, 2, "max", "mean"]

# Work arrays of 2^14 doubles (128 KB) stay in the second-level cache, which makes the passes cheap.
_BLOCK = 1 << 14
# More bins than this are a slip, and tables of 1e10 bins would exhaust the memory.
_MAX_BINS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BinTable:
    """Sums over the bins of one score.

    Attributes
    ----------
    edges : (B + 1,) array
        Increasing, from 0 to 1.
    count, sum_p, sum_y : (B,) arrays
        Sum of the weights (rows, without weights), of ``w * p`` and of ``w * y`` in each bin.
    """

    edges: FloatArray
    count: FloatArray
    sum_p: FloatArray
    sum_y: FloatArray

    def __add__(self, other: BinTable) -> BinTable:
        """Merge the sums of two parts of a sample that were binned on the same edges."""
        if not np.array_equal(self.edges, other.edges):
            raise InputError("only tables on the same edges can be added")
        return BinTable(
            edges=self.edges,
            count=self.count + other.count,
            sum_p=self.sum_p + other.sum_p,
            sum_y=self.sum_y + other.sum_y,
        )

    @property
    def mean_p(self) -> FloatArray:
        """Mean score by bin, NaN where a bin is empty."""
        return _ratio(self.sum_p, self.count)

    @property
    def mean_y(self) -> FloatArray:
        """Event rate by bin, NaN where a bin is empty."""
        return _ratio(self.sum_y, self.count)

    @property
    def gap(self) -> FloatArray:
        """Event rate minus mean score by bin, NaN where a bin is empty."""
        return _ratio(self.sum_y - self.sum_p, self.count)

    def error(self, norm: Norm) -> float:
        """Return the binned calibration error in one norm (see `binned_error`)."""
        return float(binned_error(self.count, self.sum_y - self.sum_p, norm))


@dataclass(frozen=True, slots=True, kw_only=True)
class TopLabel:
    """Top label of each row: its column `label` (n,), probability `confidence` (n,) and `hit` (n,)."""

    label: IntArray
    confidence: FloatArray
    hit: BoolArray


def _ratio(numerator: FloatArray, count: FloatArray) -> FloatArray:
    result = np.full(numerator.shape, np.nan)
    np.divide(numerator, count, out=result, where=count > 0)
    return result


def binned_error(count: FloatArray, difference: FloatArray, norm: Norm) -> FloatArray:
    """Return the calibration error of tables of bins, along the last axis.

    `count` and `difference` (sum of ``w * y`` minus sum of ``w * p``) are (..., B). With gaps
    g = difference / count, norm 1 is Σ count |g| / N, norm 2 is sqrt(Σ count g² / N), "max" the largest |g|
    and "mean" the plain mean of |g|, both over bins that are not empty.
    """
    total = count.sum(axis=-1)
    if norm == 1:
        return np.asarray(np.abs(difference).sum(axis=-1) / total)
    filled = count > 0
    gap = np.divide(np.abs(difference), count, out=np.zeros(difference.shape), where=filled)
    if norm == 2:
        return np.asarray(np.sqrt((count * gap**2).sum(axis=-1) / total))
    if norm == "max":
        return np.asarray(gap.max(axis=-1))
    return np.asarray(gap.sum(axis=-1) / filled.sum(axis=-1))


def equal_width_edges(bins: int) -> FloatArray:
    """Return the edges j / bins, each the double nearest to the fraction."""
    return np.arange(bins + 1) / bins


def equal_freq_edges(p: FloatArray, bins: int, weights: FloatArray | None = None) -> FloatArray:
    """Return quantiles of type 8 (Hyndman & Fan 1996) with the ends set to 0 and 1 and duplicates dropped.

    Integer weights give the quantiles of the repeated rows. Other weights have no count of rows of their own:
    they are scaled to sum to the number of rows with a positive weight.
    """
    if weights is None:
        ordered = np.sort(p)
        cumulated = None
        total = float(p.size)
    else:
        kept = weights > 0
        order = np.argsort(p[kept], kind="stable")
        ordered, w = p[kept][order], weights[kept][order]
        if np.any(w != np.round(w)):
            w = w * (w.size / w.sum())
        cumulated = np.cumsum(w)
        total = float(np.round(cumulated[-1]))
    # The position (total + 1/3) j / bins + 1/3 in whole numbers: rounding would push a row on an edge out of its bin.
    rank, rest = np.divmod((3 * int(total) + 1) * np.arange(1, bins) + bins, 3 * bins)
    share = rest / (3 * bins)
    low, high = (_order_statistic(ordered, cumulated, np.clip(r, 1, total)) for r in (rank, rank + 1))
    inner = np.where((share == 0) | (low == high), low, (1 - share) * low + share * high)
    return np.unique(np.concatenate(([0.0], inner, [1.0])))


def _order_statistic(ordered: FloatArray, cumulated: FloatArray | None, rank: FloatArray) -> FloatArray:
    """Return the values of rank 1, 2, ... in the sample with repetitions."""
    if cumulated is None:
        return ordered[rank.astype(np.intp) - 1]
    # 1e-9 takes up the rounding of cumulated non-integer weights.
    place = np.searchsorted(cumulated, rank - 1e-9, side="left")
    return ordered[np.minimum(place, ordered.size - 1)]


def bin_edges(
    p: FloatArray,
    bins: int | ArrayLike,
    strategy: Strategy = "equal_width",
    weights: FloatArray | None = None,
) -> FloatArray:
    """Return the edges that `bins` asks for: a number of bins, or the edges themselves."""
    if np.ndim(bins) > 0:
        return check_edges(bins)
    if not isinstance(bins, int | np.integer) or isinstance(bins, bool) or not 1 <= bins <= _MAX_BINS:
        raise InputError(
            f"`bins` must be a whole number from 1 to {_MAX_BINS}, or an array of edges; {bins!r} was given."
        )
    if strategy == "equal_width":
        return equal_width_edges(int(bins))
    if strategy == "equal_freq":
        return equal_freq_edges(p, int(bins), weights)
    raise InputError(f"`strategy` must be 'equal_width' or 'equal_freq'; {strategy!r} was given.")


def check_edges(edges: ArrayLike) -> FloatArray:
    """Return explicit edges as an array, or raise: they increase from 0 to 1."""
    try:
        values = np.asarray(edges, dtype=float)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim != 1 or values.size < 2 or not np.all(np.diff(values) > 0) or values[0] != 0 or values[-1] != 1:
        raise InputError(
            "`bins`, given as edges, must be a strictly increasing one-dimensional array from 0 to 1; "
            f"{edges!r} was given."
        )
    return values


def is_equal_width(edges: FloatArray) -> bool:
    """Tell whether the edges are those of `equal_width_edges`."""
    return np.array_equal(edges, equal_width_edges(edges.size - 1))


def assign_bins(p: FloatArray, edges: FloatArray) -> IntArray:
    """Return the bin (0, ..., B - 1) of every score (n,)."""
    last = edges.size - 2
    if not is_equal_width(edges):
        return np.minimum(np.searchsorted(edges, p, side="right") - 1, last)
    index = np.empty(p.shape, dtype=np.int64)
    for start, cells, _ in _cell_blocks(p[:, None], last + 1):
        np.minimum(cells, last, out=index[start : start + cells.size])
    return index


def _cell_blocks(P: FloatArray, bins: int) -> Iterator[tuple[int, IntArray, FloatArray]]:
    """Yield (first row, cells (m * K,), scores (m * K,)) for blocks of rows of equal-width bins.

    The cell of score p in column k is ``k * (bins + 1) + bin``, with a cell of its own for p = 1. The product
    p * bins is rounded, so it is raised by more than the rounding error: its floor is then right or one too
    large, and one comparison with the exact edge mends it.
    """
    n, K = P.shape
    offset = np.arange(K) * float(bins + 1) + K * (bins + 1) * 2.0**-50
    lower = np.tile(equal_width_edges(bins), K)
    rows = max(1, _BLOCK // K)
    scaled = np.empty((min(rows, n), K))
    cells = np.empty(scaled.size, dtype=np.int64)
    for start in range(0, n, rows):
        block = np.ascontiguousarray(P[start : start + rows])
        t = scaled[: block.shape[0]]
        np.multiply(block, bins, out=t)
        t += offset
        cell = cells[: block.size]
        cell[:] = t.ravel()
        flat = block.ravel()
        cell -= flat < lower.take(cell)
        yield start, cell, flat


def bin_table(y: ArrayLike, p: FloatArray, edges: FloatArray, weights: FloatArray | None = None) -> BinTable:
    """Return the sums of outcomes (n,) and scores (n,) over the bins of `edges`."""
    outcome = np.asarray(y)
    if not is_equal_width(edges):
        return _table_of_index(assign_bins(p, edges), outcome, p, edges, weights)
    bins = edges.size - 1
    sums = np.zeros((3, bins + 1))
    for start, cell, block in _cell_blocks(p[:, None], bins):
        part = slice(start, start + cell.size)
        w = None if weights is None else weights[part]
        sums[0] += np.bincount(cell, w, bins + 1)
        sums[1] += np.bincount(cell, block if w is None else w * block, bins + 1)
        sums[2] += np.bincount(cell, outcome[part] if w is None else w * outcome[part], bins + 1)
    return _folded(edges, sums)


def _table_of_index(
    index: IntArray, y: np.ndarray, p: FloatArray, edges: FloatArray, weights: FloatArray | None
) -> BinTable:
    bins = edges.size - 1
    w = weights
    return BinTable(
        edges=edges,
        count=np.bincount(index, w, bins).astype(float),
        sum_p=np.bincount(index, p if w is None else w * p, bins).astype(float),
        sum_y=np.bincount(index, y if w is None else w * y, bins).astype(float),
    )


def _folded(edges: FloatArray, sums: FloatArray) -> BinTable:
    """Return the table of (3, B + 1) sums, whose last cell (p = 1) belongs to the last bin."""
    sums[:, -2] += sums[:, -1]
    return BinTable(edges=edges, count=sums[0, :-1], sum_p=sums[1, :-1], sum_y=sums[2, :-1])


def classwise_tables(
    codes: IntArray,
    P: FloatArray,
    edges: FloatArray | Sequence[FloatArray],
    weights: FloatArray | None = None,
) -> tuple[BinTable, ...]:
    """Return one table per column of P (n, K), of the class's probability against its indicator.

    `codes` (n,) are column numbers; `edges` serve all columns, or are a sequence with one array for each.
    """
    K = P.shape[1]
    if isinstance(edges, np.ndarray):
        if is_equal_width(edges):
            return _equal_width_classwise(codes, P, edges, weights)
        edges = [edges] * K
    return tuple(bin_table(codes == k, P[:, k], edges[k], weights) for k in range(K))


def _equal_width_classwise(
    codes: IntArray, P: FloatArray, edges: FloatArray, weights: FloatArray | None
) -> tuple[BinTable, ...]:
    K, stride = P.shape[1], edges.size
    size = K * stride
    sums = np.zeros((3, size))
    for start, cell, block in _cell_blocks(P, stride - 1):
        m = cell.size // K
        own = cell[np.arange(m) * K + codes[start : start + m]]
        if weights is None:
            sums[0] += np.bincount(cell, None, size)
            sums[1] += np.bincount(cell, block, size)
            sums[2] += np.bincount(own, None, size)
        else:
            w = weights[start : start + m]
            repeated = np.repeat(w, K)
            sums[0] += np.bincount(cell, repeated, size)
            sums[1] += np.bincount(cell, repeated * block, size)
            sums[2] += np.bincount(own, w, size)
    by_class = sums.reshape(3, K, stride)
    return tuple(_folded(edges, by_class[:, k].copy()) for k in range(K))


def top_label(codes: IntArray, P: FloatArray) -> TopLabel:
    """Return the most probable column of each row of P (n, K), its probability, and whether it is the label.

    Ties go to the first column.
    """
    n, K = P.shape
    label = np.empty(n, dtype=np.int64)
    confidence = np.empty(n)
    rows = max(1, 2 * _BLOCK // K)
    for start in range(0, n, rows):
        # One contiguous row per class: whole columns compare several times as fast as argmax along a short axis.
        columns = np.ascontiguousarray(P[start : start + rows].T)
        best = confidence[start : start + rows]
        best[:] = columns[0]
        arg = np.zeros(best.size, dtype=np.int32)
        for k in range(1, K):
            # The last column that beats all before it is the first maximum; without branches this is quick.
            np.maximum(arg, (columns[k] > best) * np.int32(k), out=arg)
            np.maximum(best, columns[k], out=best)
        label[start : start + rows] = arg
    return TopLabel(label=label, confidence=confidence, hit=label == codes)
