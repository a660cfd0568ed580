"""Means over pairs of rows of residuals under a Laplace kernel: the squared kernel calibration error (SKCE).

A row has a point (d,) and a residual (d,): of one event the probability and label less probability (d = 1), of
classes half the probabilities and one-hot label less probabilities (d = K). Points are compared by the sum of absolute
differences, which for classes is the total variation distance. Every estimator is a mean over blocks of
consecutive rows: blocks of two are the linear one, one block of all rows is the unbiased one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
from scipy.spatial.distance import cdist

from calstat._arrays import pseudo_labels
from calstat._typing import FloatArray, IntArray

# Bound on the work arrays of one step, which should stay in the cache.
WORK_BYTES = 1 << 24
# A gathered element of the kernel costs as much as some 150 multiplications of a matrix product.
_GATHER = 150

Draws: TypeAlias = Callable[[slice, FloatArray], Iterator[FloatArray]]
"""From a run of rows and their kernel (b, s, s) to the sums of the means of these blocks: parts (m,) of m draws."""


def block_terms(
    points: FloatArray,
    residuals: FloatArray,
    size: int,
    bandwidth: float,
    draws: Draws | None = None,
    stop_after: int | None = None,
) -> tuple[FloatArray, FloatArray | None]:
    """Return the mean over pairs i ≠ j of each block (T,) of `size` rows, and its mean over blocks for draws (B,).

    `points` and `residuals` are (n, d). Rows that do not fill a block are left out. The kernel is made once for
    each run of blocks and serves both the observed residuals and the draws. The draws of a single block end when
    `stop_after` of them are as large as the observed value.
    """
    blocks = points.shape[0] // size
    run = max(1, WORK_BYTES // (8 * size**2))
    terms, drawn = [], []
    for first in range(0, blocks, run):
        rows = slice(first * size, min(first + run, blocks) * size)
        kernel = laplace_blocks(points[rows], size, bandwidth)
        terms.append(block_means(kernel, residuals[None, rows])[0])
        if draws is not None:
            limit = stop_after if blocks == 1 else None
            drawn.append(pseudo_labels.collected(draws(rows, kernel), float(terms[0][0]), limit))
    return np.concatenate(terms), None if draws is None else np.sum(drawn, axis=0) / blocks


def laplace_blocks(points: FloatArray, size: int, bandwidth: float) -> FloatArray:
    """Return the kernel (b, s, s) between the rows of each block of `size`; 0 between a row and itself."""
    blocks, d = points.shape[0] // size, points.shape[1]
    parts = points.reshape(blocks, size, d)
    kernel = np.zeros((blocks, size, size))
    if blocks > d:
        for column in np.moveaxis(parts, 2, 0):
            kernel += np.abs(column[:, :, None] - column[:, None, :])
    else:
        for part, out in zip(parts, kernel, strict=True):
            cdist(part, part, "cityblock", out=out)
    # A distance over a bandwidth near the smallest double overflows to infinity: the kernel is 0 there.
    with np.errstate(over="ignore"):
        kernel /= -bandwidth
    np.exp(kernel, out=kernel)
    kernel[:, np.arange(size), np.arange(size)] = 0.0
    return kernel


def block_means(kernel: FloatArray, residuals: FloatArray) -> FloatArray:
    """Return the mean over pairs of each block (m, b) of residuals (m, b s, d), given the kernel (b, s, s)."""
    m, _, d = residuals.shape
    blocks, size, _ = kernel.shape
    # The draws stand side by side, so that one product with the kernel of a block serves all of them.
    wide = residuals.reshape(m, blocks, size, d).transpose(1, 2, 0, 3).reshape(blocks, size, m * d)
    sums = np.einsum("bsj,bsj->bj", wide, kernel @ wide)
    return sums.reshape(blocks, m, d).sum(axis=2).T / (size * (size - 1.0))


def class_residuals(P: FloatArray, labels: IntArray) -> FloatArray:
    """Return one-hot labels less probabilities (m, n, K), for labels (m, n) and P (n, K)."""
    residuals = np.repeat(-P[None], labels.shape[0], axis=0)
    residuals[np.arange(labels.shape[0])[:, None], np.arange(P.shape[0]), labels] += 1.0
    return residuals


def event_draws(r: FloatArray, n_resamples: int, rng: np.random.Generator) -> Draws:
    """Labels of one event drawn from r (n,)."""

    def draws(rows: slice, kernel: FloatArray) -> Iterator[FloatArray]:
        for labels in pseudo_labels.label_blocks(r[rows], n_resamples, rng, WORK_BYTES):
            yield block_means(kernel, (labels - r[rows])[..., None]).sum(axis=1)

    return draws


def sign_draws(residuals: FloatArray, n_resamples: int, rng: np.random.Generator) -> Draws:
    """Residuals (n, d) with random signs, one for each row."""
    n, d = residuals.shape
    coin = np.full(n, 0.5)

    def draws(rows: slice, kernel: FloatArray) -> Iterator[FloatArray]:
        for heads in pseudo_labels.label_blocks(coin[rows], n_resamples, rng, max(1, WORK_BYTES // d)):
            yield block_means(kernel, (2 * heads - 1)[..., None] * residuals[rows]).sum(axis=1)

    return draws


def class_draws(P: FloatArray, n_resamples: int, rng: np.random.Generator) -> Draws:
    """Labels of K classes drawn from P (n, K)."""

    def draws(rows: slice, kernel: FloatArray) -> Iterator[FloatArray]:
        part = P[rows]
        n, K = part.shape
        leaving = float((1 - part.max(axis=1)).sum())
        if kernel.shape[0] == 1 and _GATHER * leaving**2 < K * n**2:
            for total in _departing_sums(part, kernel[0], n_resamples, rng):
                yield np.array([total / (n * (n - 1.0))])
            return
        for labels in _class_labels(part, n_resamples, rng):
            yield block_means(kernel, class_residuals(part, labels)).sum(axis=1)

    return draws


def _class_labels(P: FloatArray, n_resamples: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """Yield labels (m, n) drawn from the rows of P (n, K)."""
    n, K = P.shape
    below = np.cumsum(P, axis=1)[:, :-1]
    step = max(1, WORK_BYTES // (24 * n * K))
    for start in range(0, n_resamples, step):
        u = rng.random((min(step, n_resamples - start), n, 1))
        yield (u >= below).sum(axis=2)


def _departing_sums(P: FloatArray, kernel: FloatArray, n_resamples: int, rng: np.random.Generator) -> Iterator[float]:
    """Draw the sum over pairs of all rows, from the rows alone whose label is not the most probable class.

    With E for the residuals of the most probable labels and D for the change that a draw makes to them, the sum is
    E'kE + 2 D'kE + D'kD, where D has few rows that are not 0.
    """
    top = P.argmax(axis=1)
    home = class_residuals(P, top[None])[0]
    smooth = kernel @ home
    base = float(np.einsum("ij,ij->", home, smooth))
    for part in pseudo_labels.departures(P, n_resamples, rng, WORK_BYTES):
        order = np.argsort(part.draw, kind="stable")
        ends = np.searchsorted(part.draw[order], np.arange(1, part.stop - part.start))
        for chosen in np.split(order, ends):
            row, label = part.row[chosen], part.label[chosen]
            change = np.zeros((row.size, P.shape[1]))
            each = np.arange(row.size)
            change[each, label] = 1.0
            change[each, top[row]] = -1.0
            moved = kernel[np.ix_(row, row)] @ change + 2 * smooth[row]
            yield base + float(np.einsum("ij,ij->", change, moved))
