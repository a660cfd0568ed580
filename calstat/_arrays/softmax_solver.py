"""Minimisers of the penalised softmax loss.

`minimize` takes exact Newton steps while the Hessian of the free parameters is small, and beyond that truncated Newton
steps: conjugate gradients on products with the Hessian, preconditioned by its diagonal blocks, one per class. Where
scores are so far off that a step overshoots by thousands, a ridge damps it (Levenberg and Marquardt).

Separation. If the logits can grow for ever along a direction that costs no penalty, an exact Newton step moves the
logits of some row by more than 1 relative to each other, wherever it starts. So a short step proves that there is a
minimum; where the gradient vanishes while steps stay long, a linear programme decides (`softmax_separation`).
`fit_temperature` solves the convex one-dimensional problem in the inverse temperature.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy import linalg

from calstat._arrays.softmax import (
    Design,
    Evaluation,
    FullDesign,
    QuadraticPenalty,
    VectorDesign,
    evaluate,
    hessian_product,
    mean_squares,
    penalty_hessian,
    room,
    row_slices,
    vector_product,
)
from calstat._arrays.softmax_separation import is_separated
from calstat._typing import BoolArray, FloatArray, IntArray

GRADIENT_TOLERANCE = 1e-8
# Half the squared Newton decrement estimates how far the objective is above its infimum.
_GAP_TOLERANCE = 1e-13
# At an interior optimum the last Newton step moves no logit; on separated data each step still adds about 1.
_STILL, _MOVING = 1e-5, 0.3
# Exact steps cost n f^2 operations, products n K q: products win beyond a few dozen free parameters.
_EXACT_LIMIT = 40
# Not on badly conditioned scores, such as logarithms of many zeros: when a step takes too many products, or the way too
# many steps (a dozen is usual), exact steps take over, as long as the Hessian fits into 200 MB (70 classes).
_TOO_MANY_PRODUCTS, _TOO_MANY_STEPS, _RESCUE_LIMIT = 100, 30, 5000
# A step that twelve halvings do not mend is damped by a ridge, thirty times larger each time, until steps succeed.
# In these units, the features' mean squares, the Hessian of the loss is of order 1 at most.
_HALVINGS, _FIRST_DAMPING, _MORE, _LESS, _MOST_DAMPING = 12, 1e-14, 30.0, 0.1, 1e3
# A Newton step along which the objective's slope is still this share of what it was is doubled. At the minimum of a
# quadratic that share is 0, in an exponential tail 1 / e.
_STEEP, _FARTHEST = 0.5, 2.0**30
# Where rounding ends the search, it has come to the optimum if this or less was left to gain.
_CLOSE = 1e-9
# Temperature: numbers per temporary, the most steps, and the fewest rows in a tenth that is worth a first look.
_TEMPERATURE_CHUNK, _TEMPERATURE_STEPS, _HEAD = 2**15, 200, 500


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftmaxFit:
    """Minimiser of the penalised loss.

    `theta` (K, q) with the evaluation there; `gradient_norm` largest absolute entry of the objective's gradient, mean
    scale; `gap` half the squared Newton decrement, an estimate of the distance of the objective to its infimum;
    `separated` when the logits still grow without bound; `n_products` Hessian products (0 for exact steps).
    """

    theta: FloatArray
    evaluation: Evaluation
    gradient_norm: float
    gap: float
    n_iter: int
    n_products: int
    converged: bool
    separated: bool


def null_directions(design: Design, penalty: QuadraticPenalty | None, rtol: float) -> FloatArray:
    """Orthonormal changes of the free parameters that change neither a probability nor the penalty (n_free, d).

    Features whose singular values, after scaling each to unit length, lie below `rtol` of the largest are collinear.
    """
    if not isinstance(design, FullDesign):
        return _vector_null_directions(design, rtol)
    x = design.features if design.weights is None else design.features * np.sqrt(design.weights)
    norms = np.linalg.norm(x, axis=1)
    scaled = x / np.where(norms > 0.0, norms, 1.0)[:, None]
    _, values, vectors = np.linalg.svd(np.linalg.qr(scaled.T, mode="r"), full_matrices=True)
    rank = int((values > rtol * values[0]).sum())
    if rank == x.shape[0]:
        return np.zeros((design.n_free, 0))
    collinear, _ = np.linalg.qr(vectors[rank:].T / np.where(norms > 0.0, norms, 1.0)[:, None])
    candidates = np.kron(np.eye(design.n_classes - 1), collinear)
    if penalty is None:
        return candidates
    cost = candidates.T @ penalty_hessian(design, penalty) @ candidates
    values, vectors = np.linalg.eigh(cost)
    return candidates @ vectors[:, values <= 1e-12 * max(values[-1], 0.0)]


def _vector_null_directions(design: VectorDesign, rtol: float) -> FloatArray:
    """The same for vector scaling: the slope of a constant score, or all slopes where all scores are one line."""
    none = np.zeros((design.n_free, 0))
    if not design.n_slopes or not design.constants:
        return none
    w = np.ones(design.codes.size) if design.weights is None else design.weights
    mean = design.features @ w / w.sum()
    raw, spread, along = (np.zeros(design.n_classes) for _ in range(3))
    for rows in row_slices(design):
        z = design.features[:, rows] - mean[:, None]
        raw += np.einsum("kn,kn,n->k", design.features[:, rows], design.features[:, rows], w[rows])
        spread += np.einsum("kn,kn,n->k", z, z, w[rows])
        along += z @ (z[0] * w[rows])
    constant = spread <= rtol**2 * raw
    tied = design.slopes == "common"
    if tied or not constant.any():
        # Each score as a multiple of the first, and what is left when that is taken off.
        size = np.ones(design.n_classes) if tied else np.sign(along) / np.sqrt(spread)
        left = size**2 * spread + size[0] ** 2 * spread[0] - 2.0 * size * size[0] * along
        if (left > max(rtol**2, 1e-14) * max(float(spread[0] * size[0] ** 2), np.finfo(np.float64).tiny)).any():
            return none
        changes = np.stack([size, -size * mean], axis=1)[None]
    else:
        changes = np.stack([np.eye(design.n_classes), -np.diag(mean)], axis=2)[constant]
    return np.linalg.qr(np.stack([design.free(change) for change in changes], axis=1))[0]


def minimize(
    design: Design,
    penalty: QuadraticPenalty | None,
    start: FloatArray,
    *,
    null: FloatArray | None = None,
    tol: float = GRADIENT_TOLERANCE,
    max_iter: int = 500,
    exact: bool | None = None,
) -> SoftmaxFit:
    """Minimise the penalised loss from `start` (K, q); `null` are directions along which nothing moves."""
    null = np.zeros((design.n_free, 0)) if null is None else null
    if exact is None:
        tied = isinstance(design, VectorDesign) and design.slopes != "class"
        exact = tied or design.n_free <= _EXACT_LIMIT
    search = _Search(design, penalty, null, start, tol, exact)
    n_iter = 0
    while n_iter < max_iter and not search.ended:
        search.advance()
        n_iter += 1
    search.conclude()
    return SoftmaxFit(
        theta=search.theta,
        evaluation=search.state,
        gradient_norm=search.norm,
        gap=search.gap,
        n_iter=n_iter,
        n_products=search.n_products,
        converged=search.converged,
        separated=search.separated,
    )


class _Search:
    """Where a search is, how it makes its steps and how much it damps them."""

    def __init__(
        self,
        design: Design,
        penalty: QuadraticPenalty | None,
        null: FloatArray,
        start: FloatArray,
        tol: float,
        exact: bool,
    ) -> None:
        self._design, self._penalty, self._null, self._tol = design, penalty, null, tol
        # One array holds the probabilities of every point visited, so that memory stays that of one array more.
        self._buffer = room(design)
        self.theta, self.state = start, evaluate(design, penalty, start, self._buffer)
        self.norm = self._first = _norm(design, self.state)
        self.gap = self._move = np.inf
        self.n_products, self._count, self._damping = 0, 0, 0.0
        self.ended = self.converged = self.separated = False
        self._bounded: bool | None = None
        self._rescue = not exact and design.n_free <= _RESCUE_LIMIT
        self._steps: _ExactSteps | _ProductSteps = (_ExactSteps if exact else _ProductSteps)(design, penalty, null)

    def advance(self) -> None:
        """Make one step, or find that there is none to make."""
        step = self._step()
        self.gap = -0.5 * float((self.state.slope * step).sum())
        if not self._damping and self._settled(step):
            self.ended = True
            return
        moved = _line_search(self._design, self._penalty, self.theta, self.state, step, 2.0 * self.gap, self._buffer)
        if moved is None:
            self._yield()
            return
        self.theta, self.state, size = moved
        self.norm = _norm(self._design, self.state)
        if size >= 1.0:
            self._damping = _LESS * self._damping if self._damping > _FIRST_DAMPING else 0.0

    def _step(self) -> FloatArray:
        self._count += 1
        step = self._steps(self.state, self.norm / self._first, self._damping)
        self.n_products += self._steps.spent
        hard = self._steps.broken or self._steps.spent > min(self._design.n_free // 2, _TOO_MANY_PRODUCTS)
        if self._rescue and (hard or self._count > _TOO_MANY_STEPS):
            self._exact()
            step = self._steps(self.state, self.norm / self._first, self._damping)
        return step

    def _exact(self) -> None:
        self._steps, self._rescue = _ExactSteps(self._design, self._penalty, self._null), False

    def _settled(self, step: FloatArray) -> bool:
        """Whether this last step is too small to matter, or the logits are found to grow for ever."""
        if self.norm > self._tol and (self.gap > _GAP_TOLERANCE or isinstance(self._steps, _ProductSteps)):
            return False
        self._move = _largest_move(self._design, step)
        if self._move > _STILL and self.gap > _GAP_TOLERANCE:
            return False
        if self._move > _MOVING:
            self.separated = self._unbounded()
            return self.separated
        self.converged = True
        self.theta, self.state = _polish(self._design, self._penalty, self.theta, self.state, step, self._buffer)
        self.norm = _norm(self._design, self.state)
        return True

    def _unbounded(self) -> bool:
        """Whether the objective falls for ever; where that cannot be worked out, long steps say that it does."""
        if self._bounded is None:
            self._bounded = is_separated(self._design, self._penalty, self._null) is False
        return not self._bounded

    def _yield(self) -> None:
        """Take back a step that led nowhere; then make exact ones, or shorter ones, or end where rounding rules."""
        self.state = evaluate(self._design, self._penalty, self.theta, self._buffer)
        if self.norm <= self._tol and not self._damping and self.gap <= _CLOSE:
            self.ended = True
        elif self._rescue:
            self._exact()
        else:
            self._damping = max(_MORE * self._damping, _FIRST_DAMPING)
            self.ended = self._damping > _MOST_DAMPING

    def conclude(self) -> None:
        """Say what can be said of a search that has not come to rest: whether rounding ended it near the optimum."""
        if self.converged or self.separated:
            return
        self.converged = self.norm <= self._tol and self.gap <= _CLOSE and self._move <= _MOVING
        self.separated = not self.converged and is_separated(self._design, self._penalty, self._null) is True


def _norm(design: Design, state: Evaluation) -> float:
    """Largest absolute derivative: of each entry of a full map, of the free parameters of vector scaling."""
    slope = state.slope if isinstance(design, FullDesign) else design.pull(state.slope)
    return float(np.abs(slope).max())


def _polish(
    design: Design,
    penalty: QuadraticPenalty | None,
    theta: FloatArray,
    state: Evaluation,
    step: FloatArray,
    buffer: FloatArray,
) -> tuple[FloatArray, Evaluation]:
    """Take the Newton step that was computed for the test: it makes the parameters exact to rounding."""
    new = evaluate(design, penalty, theta + step, buffer)
    if _norm(design, new) <= _norm(design, state):
        return theta + step, new
    return theta, evaluate(design, penalty, theta, buffer)


def _largest_move(design: Design, step: FloatArray) -> float:
    """Largest change of a logit relative to the others of its row, over rows that count."""
    largest = 0.0
    for rows in row_slices(design):
        move = np.ptp(design.logits(step, rows), axis=0)
        if design.weights is not None:
            move = move[design.weights[rows] > 0.0]
        largest = max(largest, float(move.max(initial=0.0)))
    return largest


def _line_search(
    design: Design,
    penalty: QuadraticPenalty | None,
    theta: FloatArray,
    state: Evaluation,
    step: FloatArray,
    decrement: float,
    buffer: FloatArray,
) -> tuple[FloatArray, Evaluation, float] | None:
    """New point, the evaluation there and the multiple of the step; None when nothing is gained, or too little.

    The step is halved until the objective falls as it should, or doubled while it falls on. The probabilities of
    `state` are overwritten by those of the points tried.
    """
    size = 1.0
    noise = 4.0 * np.finfo(np.float64).eps * abs(state.objective)
    for _ in range(_HALVINGS):
        trial = theta + size * step
        new = evaluate(design, penalty, trial, buffer)
        if new.objective <= state.objective - 1e-4 * size * decrement + noise:
            break
        size *= 0.5
    else:
        return None
    if decrement < noise and _norm(design, new) >= _norm(design, state):
        return None
    while size >= 1.0 and float((new.slope * step).sum()) < -_STEEP * decrement and size < _FARTHEST:
        # Far from the optimum the loss may be nearly linear along a step: it goes on as long as it pays.
        further = evaluate(design, penalty, theta + 2.0 * size * step, buffer)
        if not further.objective < new.objective:
            return trial, evaluate(design, penalty, trial, buffer), size
        size *= 2.0
        trial, new = theta + size * step, further
    return trial, new, size


class _ExactSteps:
    """Newton steps from the full Hessian in the free parameters; `spent` Hessian products, which are none here.

    Damping adds a multiple of the features' mean squares to the diagonal.
    """

    spent, broken = 0, False

    def __init__(self, design: Design, penalty: QuadraticPenalty | None, null: FloatArray) -> None:
        self._design = design
        self._fixed = penalty_hessian(design, penalty)
        self._null = null

    def __call__(self, state: Evaluation, relative_norm: float, damping: float) -> FloatArray:  # noqa: ARG002  exact
        # Scores that hardly differ are nearly a multiple of the constant: they are taken off their mean first.
        shift = self._middle(state.probabilities)
        design = (
            self._design if shift is None else replace(self._design, features=self._design.features - shift[:, None])
        )
        hessian = design.information(state.probabilities)
        hessian += self._fixed
        if self._null.shape[1]:
            hessian += float(np.trace(hessian)) / len(hessian) * (self._null @ self._null.T)
        if damping:
            hessian[np.diag_indices_from(hessian)] += damping * design.pull(mean_squares(design))
        slope = state.slope
        if shift is not None:
            slope = np.column_stack([slope[:, 0] - shift * slope[:, 1], slope[:, 1]])
        gradient = design.pull(slope)
        gradient = gradient - self._null @ (self._null.T @ gradient)
        free = -solve_scaled(hessian, gradient)
        step = design.push(free - self._null @ (self._null.T @ free))
        if shift is not None:
            step[:, 1] -= shift * step[:, 0]
        return step

    def _middle(self, probabilities: FloatArray) -> FloatArray | None:
        """Means (K,) of the scores over the rows that decide about each class; None where no slope has a constant."""
        design = self._design
        if self._null.shape[1] or not isinstance(design, VectorDesign) or not (design.constants and design.n_slopes):
            return None
        blocks = design.blocks(probabilities)
        return np.where(
            blocks[:, 1, 1] > 0.0, blocks[:, 0, 1] / np.where(blocks[:, 1, 1] > 0.0, blocks[:, 1, 1], 1.0), 0.0
        )


def solve_scaled(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Solve with a positive semi-definite matrix, scaled to a unit diagonal; a ridge is added when it is singular."""
    diagonal = np.diag(matrix).copy()
    diagonal[diagonal <= 1e-40 * diagonal.max()] = 1.0
    scale = 1.0 / np.sqrt(diagonal)
    # No entry can be larger than 1, but by rounding of nearly vanished ones.
    scaled = np.clip(matrix * scale[:, None] * scale, -1.0, 1.0)
    ridge = 0.0
    while True:
        try:
            factor = linalg.cho_factor(scaled + ridge * np.eye(len(scaled)) if ridge else scaled, check_finite=False)
        except linalg.LinAlgError:
            ridge = max(10.0 * ridge, 1e-15 * len(scaled))
        else:
            scaled_right = (right.T * scale).T
            return (linalg.cho_solve(factor, scaled_right, check_finite=False).T * scale).T


def _centred(design: Design, null: FloatArray) -> FloatArray:
    """Orthonormal directions of `theta` (K, q, d), class means 0 where shifts are free, for directions of the free."""
    directions = design.push(null)
    directions -= np.where(design.shifts[:, None], directions.mean(axis=0), 0.0)
    if null.shape[1] == 0:
        return directions
    basis, _ = np.linalg.qr(directions.reshape(-1, null.shape[1]))
    return np.asarray(basis.reshape(directions.shape))


class _ProductSteps:
    """Truncated Newton steps: conjugate gradients preconditioned by one block per class.

    The last step has `spent` Hessian products; it is `broken` if rounding stopped it.
    """

    def __init__(self, design: Design, penalty: QuadraticPenalty | None, null: FloatArray) -> None:
        self._design = design
        self._penalty = penalty
        self._null = _centred(design, null)
        self._inverse: FloatArray | None = None
        # Building the blocks costs about q / 4 products; they are rebuilt when stale ones cost more than that.
        self._patience = max(10, design.shape[1] // 4)
        self.spent, self.broken = 0, False
        self._damping = 0.0
        self._ridge: FloatArray | None = None

    def __call__(self, state: Evaluation, relative_norm: float, damping: float) -> FloatArray:
        if damping != self._damping:
            self._damping = damping
            self._ridge = damping * mean_squares(self._design) if damping else None
            self._inverse = None
        if self._inverse is None or self.spent > self._patience:
            self._inverse = self._preconditioner(state.probabilities)
        return self._solve(state, min(0.3, relative_norm**0.5))

    def _preconditioner(self, probabilities: FloatArray) -> FloatArray:
        blocks = self._design.blocks(probabilities)
        q = self._design.shape[1]
        where = np.arange(q)
        if self._penalty is not None:
            blocks[:, where, where] += 2.0 * self._penalty.weights
        if self._ridge is not None:
            blocks[:, where, where] += self._ridge
        diagonal = blocks[:, where, where]
        floor = 1e-6 * diagonal.mean() + 1e-300
        scale = 1.0 / np.sqrt(np.maximum(diagonal, floor))
        blocks *= scale[:, :, None] * scale[:, None, :]
        blocks[:, where, where] += 1e-6
        return np.linalg.inv(blocks) * scale[:, :, None] * scale[:, None, :]

    def _project(self, v: FloatArray) -> FloatArray:
        if not self._null.shape[2]:
            return v
        return v - self._null @ np.einsum("kqd,kq->d", self._null, v)

    def _products(self, probabilities: FloatArray) -> Callable[[FloatArray], FloatArray]:
        design, ridge, undamped = self._design, self._ridge, self._undamped(probabilities)
        if ridge is None:
            return undamped
        return lambda v: undamped(v) + ridge * (v - np.where(design.shifts, v.mean(axis=0), 0.0))

    def _undamped(self, probabilities: FloatArray) -> Callable[[FloatArray], FloatArray]:
        design, penalty = self._design, self._penalty
        if penalty is None and isinstance(design, VectorDesign):
            return partial(vector_product, design, probabilities, design.weighted_blocks(probabilities))
        return partial(hessian_product, design, penalty, probabilities)

    def _solve(self, state: Evaluation, forcing: float) -> FloatArray:
        assert self._inverse is not None
        residual = -self._project(state.slope)
        step = np.zeros_like(residual)
        z = self._project(np.matmul(self._inverse, residual[:, :, None])[:, :, 0])
        direction, rz = z, float((residual * z).sum())
        target = forcing**2 * rz
        product_of = self._products(state.probabilities)
        self.spent = 0
        for _ in range(20 * self._patience):
            product = self._project(product_of(direction))
            self.spent += 1
            curvature = float((direction * product).sum())
            if curvature <= 0.0:  # the Hessian has no negative one: it is lost in rounding
                self.broken = True
                break
            size = rz / curvature
            step = step + size * direction
            residual = residual - size * product
            z = self._project(np.matmul(self._inverse, residual[:, :, None])[:, :, 0])
            previous, rz = rz, float((residual * z).sum())
            if rz <= target:
                break
            direction = z + (rz / previous) * direction
        return step if step.any() else z


@dataclass(frozen=True, slots=True, kw_only=True)
class TemperatureFit:
    """Minimiser of the mean loss over the inverse temperature.

    `inverse` in [1 / upper, 1 / lower]; `loss`, `slope` and `curvature` mean loss and its derivatives in the inverse
    temperature; `bound` "lower", "upper" (of the temperature) or None; `separated` when every row's own logit is the
    largest, so that the loss falls for ever as T goes to 0; `flat` when the logits of each row are equal.
    """

    inverse: float
    loss: float
    slope: float
    curvature: float
    n_iter: int
    bound: str | None
    separated: bool
    flat: bool


def fit_temperature(
    logits: FloatArray,
    codes: IntArray,
    weights: FloatArray | None,
    *,
    lower: float = 1e-3,
    upper: float = 1e3,
) -> TemperatureFit:
    """Minimise the mean loss of ``logits / T`` over T in [lower, upper]; `logits` (K, n), `codes` (n,)."""
    sample = _Temperature(logits, codes, weights)
    low, high = 1.0 / upper, 1.0 / lower
    if sample.flat:
        return sample.at(1.0, 0)
    if sample.separated:
        return sample.at(high, 0, bound="lower")
    start, steps = 1.0, 0
    if (head := codes.size // 10) >= _HEAD:
        start, steps = sample.root(1.0, low, high, stop=head)
    inverse, n_iter = sample.root(start, low, high)
    bound = {low: "upper", high: "lower"}.get(inverse)
    return sample.at(inverse, steps + n_iter, bound=bound)


class _Temperature:
    """Loss and derivatives in the inverse temperature, over logits that are taken off their row's largest."""

    def __init__(self, logits: FloatArray, codes: IntArray, weights: FloatArray | None) -> None:
        if weights is not None and not weights.all():
            keep: BoolArray = weights > 0.0
            logits, codes, weights = logits[:, keep], codes[keep], weights[keep]
        self._logits, self._weights = logits, weights
        self._top = logits.max(axis=0)
        self._own = logits[codes, np.arange(codes.size)] - self._top
        self.flat = bool((self._top == logits.min(axis=0)).all())
        self.separated = not self.flat and bool((self._own >= 0.0).all())

    def derivatives(self, inverse: float, stop: int | None = None) -> tuple[float, float, float]:
        """Mean loss, slope and curvature in the inverse temperature, of the first `stop` rows if given."""
        n = self._own.size if stop is None else stop
        step = max(256, _TEMPERATURE_CHUNK // len(self._logits))
        sums, total = np.zeros(3), float(n)
        if self._weights is not None:
            total = float(self._weights[:n].sum())
        for begin in range(0, n, step):
            rows = slice(begin, min(begin + step, n))
            z, own = self._logits[:, rows] - self._top[rows], self._own[rows]
            e = inverse * z
            np.exp(e, out=e)
            norm = e.sum(axis=0)
            e *= z
            mean = e.sum(axis=0) / norm
            variance = np.einsum("kn,kn->n", e, z) / norm - mean**2
            parts = np.stack([np.log(norm) - inverse * own, mean - own, np.maximum(variance, 0.0)])
            sums += parts.sum(axis=1) if self._weights is None else parts @ self._weights[rows]
        loss, slope, curvature = sums / total
        return float(loss), float(slope), float(curvature)

    def root(self, start: float, low: float, high: float, stop: int | None = None) -> tuple[float, int]:
        """Zero of the increasing slope, or the end of [low, high] beyond which it lies.

        Newton steps inside a bracket that shrinks; the ends are looked at only when a step leaves the bracket.
        """
        inverse, below, above = start, low, high
        settled = {low: False, high: False}
        for n_iter in range(1, _TEMPERATURE_STEPS):
            _, slope, curvature = self.derivatives(inverse, stop)
            below, above = (inverse, above) if slope < 0.0 else (below, inverse)
            new = inverse - slope / curvature if curvature > 0.0 else (high if slope < 0.0 else low)
            # The error of a Newton step is of the order of its square; the first rows only give a start. A step of
            # rounding size ends the search even where it leaves the bracket, whose other end may be far away.
            if abs(new - inverse) <= (1e-8 if stop is None else 1e-2) * inverse:
                return min(max(new, low), high), n_iter
            if not below < new < above:
                end = above if new >= above else below
                if settled.get(end) is False:
                    settled[end] = True
                    outward = self.derivatives(end, stop)[1]
                    if (outward <= 0.0) if end == high else (outward >= 0.0):
                        return end, n_iter
                new = float(np.sqrt(below * above))
            inverse = new
        return inverse, n_iter

    def at(self, inverse: float, n_iter: int, bound: str | None = None) -> TemperatureFit:
        """Collect the fit at one inverse temperature."""
        loss, slope, curvature = self.derivatives(inverse)
        return TemperatureFit(
            inverse=inverse,
            loss=loss,
            slope=slope,
            curvature=curvature,
            n_iter=n_iter,
            bound=bound,
            separated=self.separated,
            flat=self.flat,
        )
