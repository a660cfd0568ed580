"""Whether the penalised softmax loss has a minimum, on plain arrays.

It has none if there is a direction that the penalty leaves free, along which no row loses likelihood and some row
gains (Albert and Anderson 1984, https://doi.org/10.1093/biomet/71.1.1). A linear programme looks for it.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from calstat._arrays.softmax import Design, FullDesign, QuadraticPenalty, evaluate, mean_squares, row_slices
from calstat._typing import FloatArray, IntArray

# Margins below this are rounding of the linear programme; a direction must win a hundred times as much.
_ROUNDING = 1e-8
# Free directions, and the rounds with so many more rows in each, beyond which the question is left open.
_LARGEST, _ROUNDS, _MORE_ROWS = 250, 50, 200


def is_separated(design: Design, penalty: QuadraticPenalty | None, null: FloatArray) -> bool | None:
    """Whether the logits can grow for ever; None where there are too many free directions to tell.

    `null` are directions of the free parameters along which nothing moves (n_free, d).
    """
    basis = _free_of_penalty(design, penalty)
    if basis.shape[1] > _LARGEST:
        return None
    basis = basis - null @ (null.T @ basis)
    # Each direction moves logits by about 1.
    theta = design.push(basis)
    size = np.sqrt((mean_squares(design)[:, :, None] * theta**2).sum(axis=(0, 1)))
    theta = theta[:, :, size > 0.0] / size[size > 0.0]
    return theta.shape[2] > 0 and _exists(design, theta)


def _free_of_penalty(design: Design, penalty: QuadraticPenalty | None) -> FloatArray:
    """Changes of the free parameters that cost no penalty (n_free, d)."""
    if penalty is None:
        return np.eye(design.n_free)
    # A column of which something is penalised is fixed against shifts by that; any other has its first entry fixed.
    fixed = penalty.weights > 0.0
    fixed[0] |= design.shifts & ~fixed.any(axis=0)
    entries = np.zeros((int((~fixed).sum()), *design.shape))
    entries[np.arange(len(entries)), *np.nonzero(~fixed)] = 1.0
    return np.array([design.free(entry) for entry in entries]).reshape(-1, design.n_free).T


def _exists(design: Design, theta: FloatArray) -> bool | None:
    """Whether some combination of the changes `theta` (K, q, d) helps some rows and harms none.

    Only some constraints are in the programme: those that its last solution violated are added until there are none.
    """
    # What a change does for all rows together, against all rivals: the slope where all probabilities are equal.
    aim = -np.einsum("kqd,kq->d", theta, evaluate(design, None, np.zeros(design.shape)).gradient)
    if not aim.any():
        return False
    aim /= np.abs(aim).max()
    direction, margins = np.sign(aim), np.zeros((0, aim.size))
    for _ in range(_ROUNDS):
        gain, more = _violated(design, theta, direction)
        if not len(more):
            return gain > 100.0 * _ROUNDING
        margins = np.vstack([margins, more])
        answer = linprog(-aim, A_ub=-margins, b_ub=np.zeros(len(margins)), bounds=(-1.0, 1.0), method="highs")
        if answer.x is None:
            return None
        if -answer.fun <= _ROUNDING:
            return False
        direction = answer.x
    return None


def _violated(design: Design, theta: FloatArray, direction: FloatArray) -> tuple[float, FloatArray]:
    """Largest gain of a row, and the margins (m, d) that get worst in the rows that lose most."""
    change = theta @ direction
    gain, worst, rivals = 0.0, [], []
    for rows in row_slices(design):
        eta = design.logits(change, rows)
        codes = design.codes[rows]
        margin = eta[codes, np.arange(codes.size)] - eta
        if design.weights is not None:
            margin[:, design.weights[rows] == 0.0] = 0.0
        gain = max(gain, float(margin.max()))
        worst.append(margin.min(axis=0))
        rivals.append(margin.argmin(axis=0))
    least, rival = np.concatenate(worst), np.concatenate(rivals)
    losing = np.argsort(least)[:_MORE_ROWS]
    losing = losing[least[losing] < -_ROUNDING]
    own, other = design.codes[losing], rival[losing]
    features = _features(design, own, losing), _features(design, other, losing)
    return gain, np.einsum("mq,mqd->md", features[0], theta[own]) - np.einsum("mq,mqd->md", features[1], theta[other])


def _features(design: Design, classes: IntArray, rows: IntArray) -> FloatArray:
    """Features (m, q) that belong to a class in a row."""
    if isinstance(design, FullDesign):
        return design.features[:, rows].T
    return np.column_stack([design.features[classes, rows], np.ones(rows.size)])
