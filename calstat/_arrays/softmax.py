r"""The softmax likelihood behind every multiclass map: loss, gradient, Hessian, products with the Hessian.

Class k of K has the logit :math:`\eta_k = \theta_k^\top f_k`, with q features :math:`f_k` per row. Full maps use the
same features for each class (the scores and a constant), vector scaling uses class k's own score and a constant.
`theta` is always (K, q). Arrays over rows are stored (K, n) or (q, n), class or feature first, since sums and maxima
over classes are then sums of long contiguous vectors. All rows are visited in chunks that fit the cache.

Adding the same vector to each row of `theta` changes no probability (for vector scaling: to the constants only). A
quadratic penalty is minimised over these shifts, which makes it a function of contrasts between classes.
Loss, penalty and gradient are on the mean scale: sums over rows, weights counted, divided by the sum of weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from calstat._typing import BoolArray, FloatArray, IntArray

# Numbers per temporary: 2**17 doubles are one megabyte, which stays in the cache of one core.
_CHUNK = 2**17
# A row whose variance is a smaller share than this of the largest is left out of a preconditioner.
_COUNTS = 1e-8


@dataclass(frozen=True, slots=True, kw_only=True)
class QuadraticPenalty:
    """Penalty ``sum(weights * (theta - center)**2)``, minimised over the shifts; both arrays (K, q)."""

    weights: FloatArray
    center: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class FullDesign:
    """Rows of a full map: the same features for each class.

    `features` (q, n), the last a constant where there is an intercept; `codes` (n,); `weights` (n,) or None.
    """

    features: FloatArray
    codes: IntArray
    weights: FloatArray | None
    n_classes: int

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of `theta`."""
        return self.n_classes, self.features.shape[0]

    @property
    def shifts(self) -> BoolArray:
        """Which columns of `theta` may be shifted without changing a probability (q,)."""
        return np.ones(self.shape[1], dtype=np.bool_)

    @property
    def n_free(self) -> int:
        """Number of contrasts, (K - 1) q."""
        return (self.n_classes - 1) * self.shape[1]

    @property
    def chunk(self) -> int:
        """Rows visited at once."""
        return max(256, _CHUNK // self.n_free)

    def logits(self, theta: FloatArray, rows: slice) -> FloatArray:
        """Logits (K, rows)."""
        return theta @ self.features[:, rows]

    def adjoint(self, residuals: FloatArray, rows: slice) -> FloatArray:
        """Transpose of `logits`: (K, rows) to (K, q)."""
        return residuals @ self.features[:, rows].T

    def pull(self, gradient: FloatArray) -> FloatArray:
        """Gradient (K, q) in the contrasts with class 0, one after another for each class (n_free,)."""
        return gradient[1:].ravel()

    def free(self, change: FloatArray) -> FloatArray:
        """Contrasts (n_free,) of a change of `theta` (K, q): the inverse of `push`."""
        return (change[1:] - change[0]).ravel()

    def push(self, free: FloatArray) -> FloatArray:
        """Contrasts (n_free,) or (n_free, m) as changes of `theta`, (K, q) or (K, q, m), with class 0 at 0."""
        theta = np.zeros((*self.shape, *free.shape[1:]))
        theta[1:] = free.reshape(self.n_classes - 1, self.shape[1], *free.shape[1:])
        return theta

    def reduce(self, hessian: FloatArray) -> FloatArray:
        """Second derivatives (K q, K q) in the contrasts (n_free, n_free)."""
        q = self.shape[1]
        return hessian[q:, q:]

    def information(self, probabilities: FloatArray) -> FloatArray:
        """Second derivatives of the mean loss in the contrasts (n_free, n_free)."""
        q = self.shape[1]
        hessian = np.zeros((self.n_free, self.n_free))
        blocks = np.zeros((self.n_classes - 1, q, q))
        for rows in row_slices(self):
            x = self.features[:, rows]
            if self.weights is not None:
                x = x * np.sqrt(self.weights[rows])
            z = (probabilities[1:, None, rows] * x).reshape(self.n_free, -1)
            hessian -= z @ z.T
            blocks += (z @ x.T).reshape(blocks.shape)
        for k, block in enumerate(blocks):
            here = slice(k * q, (k + 1) * q)
            hessian[here, here] += block
        return hessian / total_weight(self)

    def blocks(self, probabilities: FloatArray) -> FloatArray:
        """Diagonal blocks of the second derivatives (K, q, q), but for rows that hardly count: for preconditioning."""
        out = np.empty((self.n_classes, self.shape[1], self.shape[1]))
        x = np.ascontiguousarray(self.features.T)
        for k, p in enumerate(probabilities):
            variance = p * (1.0 - p)
            if self.weights is not None:
                variance *= self.weights
            rows = np.flatnonzero(variance > _COUNTS * variance.max())
            z = x[rows]
            z *= np.sqrt(variance[rows])[:, None]
            out[k] = z.T @ z
        return out / total_weight(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorDesign:
    """Rows of vector scaling: class k has its own score and a constant, ``theta[:, 0]`` and ``theta[:, 1]``.

    `features` (K, n) scores; `codes` (n,); `weights` (n,) or None; `slopes` one per "class", a "common" one for all,
    or "fixed" at their start. Without `constants` those stay where they start: a common slope alone is temperature
    scaling, and the slope is 1 / T.
    """

    features: FloatArray
    codes: IntArray
    weights: FloatArray | None
    slopes: str = "class"
    constants: bool = True

    @property
    def n_classes(self) -> int:
        """Number of classes K."""
        return self.features.shape[0]

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of `theta`."""
        return self.n_classes, 2

    @property
    def shifts(self) -> BoolArray:
        """Which columns of `theta` may be shifted without changing a probability (2,)."""
        return np.array([False, True])

    @property
    def n_free(self) -> int:
        """Number of free parameters: the slopes, and K - 1 contrasts of the constants."""
        return self.n_slopes + (self.n_classes - 1 if self.constants else 0)

    @property
    def n_slopes(self) -> int:
        """Number of free slopes."""
        return {"class": self.n_classes, "common": 1, "fixed": 0}[self.slopes]

    @property
    def chunk(self) -> int:
        """Rows visited at once: fewer where those of many classes lie side by side in memory."""
        if self.features.flags.f_contiguous and not self.features.flags.c_contiguous:
            return max(32, _CHUNK // 2 // self.n_classes)
        return max(256, _CHUNK // self.n_classes)

    def logits(self, theta: FloatArray, rows: slice) -> FloatArray:
        """Logits (K, rows)."""
        z = theta[:, :1] * self.features[:, rows]
        z += theta[:, 1:]
        return z

    def adjoint(self, residuals: FloatArray, rows: slice) -> FloatArray:
        """Transpose of `logits`: (K, rows) to (K, 2)."""
        slopes = np.einsum("kn,kn->k", residuals, self.features[:, rows])
        return np.stack([slopes, residuals.sum(axis=1)], axis=1)

    def pull(self, gradient: FloatArray) -> FloatArray:
        """Gradient (K, 2) in the free parameters: slopes, then constants of classes 1, 2, ... (n_free,)."""
        slopes = {"class": gradient[:, 0], "common": gradient[:, 0].sum(keepdims=True), "fixed": gradient[:0, 0]}
        return np.concatenate([slopes[self.slopes], gradient[1:, 1] if self.constants else gradient[:0, 1]])

    def free(self, change: FloatArray) -> FloatArray:
        """Free parameters (n_free,) of a change of `theta` (K, 2): the inverse of `push`."""
        slopes = change[: self.n_slopes, 0]
        return np.concatenate([slopes, change[1:, 1] - change[0, 1] if self.constants else change[:0, 1]])

    def push(self, free: FloatArray) -> FloatArray:
        """Free parameters (n_free,) or (n_free, m) as changes of `theta`, (K, 2) or (K, 2, m)."""
        theta = np.zeros((*self.shape, *free.shape[1:]))
        if self.n_slopes:
            theta[:, 0] = free[: self.n_slopes]
        if self.constants:
            theta[1:, 1] = free[self.n_slopes :]
        return theta

    def reduce(self, hessian: FloatArray) -> FloatArray:
        """Second derivatives (2 K, 2 K) in the free parameters (n_free, n_free)."""
        basis = self.push(np.eye(self.n_free)).reshape(-1, self.n_free)
        return basis.T @ hessian @ basis

    def information(self, probabilities: FloatArray) -> FloatArray:
        """Second derivatives of the mean loss in the free parameters (n_free, n_free)."""
        if self.n_free == 1 and self.slopes == "common":
            return self._slope_information(probabilities)
        K = self.n_classes
        hessian = np.zeros((2 * K, 2 * K))
        for rows in row_slices(self):
            z = np.stack([self.features[:, rows], np.ones_like(self.features[:, rows])], axis=1)
            if self.weights is not None:
                z *= np.sqrt(self.weights[rows])
            pz = (probabilities[:, None, rows] * z).reshape(2 * K, -1)
            hessian -= pz @ pz.T
        blocks = self.weighted_blocks(probabilities) * total_weight(self)
        for k in range(K):
            hessian[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] += blocks[k]
        return self.reduce(hessian) / total_weight(self)

    def _slope_information(self, probabilities: FloatArray) -> FloatArray:
        """Mean variance of the scores (1, 1): all there is for a common slope alone."""
        total = 0.0
        for rows in row_slices(self):
            z, p = self.features[:, rows], probabilities[:, rows]
            deviation = z - np.einsum("kn,kn->n", p, z)
            variance = np.einsum("kn,kn,kn->n", p, deviation, deviation)
            total += float(variance.sum() if self.weights is None else variance @ self.weights[rows])
        return np.array([[total / total_weight(self)]])

    def weighted_blocks(self, factors: FloatArray, *, variances: bool = False) -> FloatArray:
        """Mean over rows of ``v[k] * f f'`` (K, 2, 2), with v the factors (K, n), or ``v (1 - v)`` of them."""
        out = np.zeros((self.n_classes, 2, 2))
        for rows in row_slices(self):
            z, v = self.features[:, rows], factors[:, rows]
            if variances:
                v = v * (1.0 - v)
            if self.weights is not None:
                v = v * self.weights[rows]
            vz = v * z
            out[:, 0, 0] += np.einsum("kn,kn->k", vz, z)
            out[:, 0, 1] += vz.sum(axis=1)
            out[:, 1, 1] += v.sum(axis=1)
        out[:, 1, 0] = out[:, 0, 1]
        return out / total_weight(self)

    def blocks(self, probabilities: FloatArray) -> FloatArray:
        """Diagonal blocks of the second derivatives (K, 2, 2): for preconditioning."""
        return self.weighted_blocks(probabilities, variances=True)


Design: TypeAlias = FullDesign | VectorDesign


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The likelihood at one `theta`.

    `loss` mean negative log-likelihood, `gradient` (K, q) of it, `probabilities` (K, n), and `objective` and
    `slope` (K, q): loss and gradient with the penalty added.
    """

    loss: float
    gradient: FloatArray
    probabilities: FloatArray
    objective: float
    slope: FloatArray


def row_slices(design: Design) -> Iterator[slice]:
    """Consecutive chunks of rows."""
    n, step = design.codes.size, design.chunk
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def total_weight(design: Design) -> float:
    """Number of observations: rows, or the sum of weights."""
    return float(design.codes.size if design.weights is None else design.weights.sum())


def mean_squares(design: Design) -> FloatArray:
    """Mean squares (K, q) of the features that the entries of `theta` multiply, weights counted."""
    if design.weights is None:
        squares = np.einsum("qn,qn->q", design.features, design.features) / total_weight(design)
    else:
        squares = np.einsum("qn,qn,n->q", design.features, design.features, design.weights) / total_weight(design)
    if isinstance(design, FullDesign):
        return np.tile(squares, (design.n_classes, 1))
    return np.column_stack([squares, np.ones_like(squares)])


def room(design: Design) -> FloatArray:
    """Array (K, n) for probabilities, in memory as the scores of vector scaling are, which it is multiplied with."""
    if isinstance(design, FullDesign):
        return np.empty((design.n_classes, design.codes.size))
    return np.empty_like(design.features)


def probabilities_of(design: Design, theta: FloatArray) -> FloatArray:
    """Class probabilities (K, n)."""
    out = room(design)
    for rows in row_slices(design):
        e = design.logits(theta, rows)
        e -= e.max(axis=0)
        np.exp(e, out=e)
        np.divide(e, e.sum(axis=0), out=out[:, rows])
    return out


def evaluate(
    design: Design, penalty: QuadraticPenalty | None, theta: FloatArray, out: FloatArray | None = None
) -> Evaluation:
    """Loss, gradient and probabilities in one pass over the rows; the probabilities go to `out` (K, n) if given."""
    loss, gradient = 0.0, np.zeros(design.shape)
    p = room(design) if out is None else out
    for rows in row_slices(design):
        eta = design.logits(theta, rows)
        eta -= eta.max(axis=0)
        codes = design.codes[rows]
        own = (codes, np.arange(codes.size))
        nll = -eta[own]
        np.exp(eta, out=eta)
        sums = eta.sum(axis=0)
        nll += np.log(sums)
        eta *= 1.0 / sums
        p[:, rows] = eta
        eta[own] -= 1.0
        if design.weights is None:
            loss += float(nll.sum())
        else:
            loss += float(nll @ design.weights[rows])
            eta *= design.weights[rows]
        gradient += design.adjoint(eta, rows)
    total = total_weight(design)
    loss, gradient = loss / total, gradient / total
    return Evaluation(
        loss=loss,
        gradient=gradient,
        probabilities=p,
        objective=loss + penalty_value(design, penalty, theta),
        slope=gradient + penalty_gradient(design, penalty, theta),
    )


def losses(design: Design, penalty: QuadraticPenalty | None, theta: FloatArray) -> tuple[float, float]:
    """Mean loss without and with the penalty; no probabilities are kept."""
    loss = 0.0
    for rows in row_slices(design):
        eta = design.logits(theta, rows)
        eta -= eta.max(axis=0)
        codes = design.codes[rows]
        nll = -eta[codes, np.arange(codes.size)]
        np.exp(eta, out=eta)
        nll += np.log(eta.sum(axis=0))
        loss += float(nll.sum() if design.weights is None else nll @ design.weights[rows])
    loss /= total_weight(design)
    return loss, loss + penalty_value(design, penalty, theta)


def vector_product(design: VectorDesign, probabilities: FloatArray, means: FloatArray, v: FloatArray) -> FloatArray:
    """Hessian product of vector scaling, (K, 2) to (K, 2), in half the passes over the rows of `hessian_product`.

    The Hessian is block-diagonal but for the rows' means of a change: the blocks `means` (K, 2, 2), those of
    ``weighted_blocks(probabilities)``, are made once for many products.
    """
    slopes, constants = np.ascontiguousarray(v.T)
    out = np.zeros(design.shape)
    for rows in row_slices(design):
        p = probabilities[:, rows]
        pz = p * design.features[:, rows]
        mean = slopes @ pz
        mean += constants @ p
        if design.weights is not None:
            mean *= design.weights[rows]
        out[:, 0] += pz @ mean
        out[:, 1] += p @ mean
    return np.asarray(np.einsum("kij,kj->ki", means, v) - out / total_weight(design))


def hessian_product(
    design: Design, penalty: QuadraticPenalty | None, probabilities: FloatArray, v: FloatArray
) -> FloatArray:
    """Second derivative of the objective times a change of `theta`, (K, q) to (K, q)."""
    out = np.zeros(design.shape)
    for rows in row_slices(design):
        p = probabilities[:, rows]
        a = design.logits(v, rows)
        a -= np.einsum("kn,kn->n", p, a)
        a *= p
        if design.weights is not None:
            a *= design.weights[rows]
        out += design.adjoint(a, rows)
    out /= total_weight(design)
    if penalty is not None:
        out += 2.0 * penalty.weights * (v - _shift(design, penalty, v))
    return out


def _shift(design: Design, penalty: QuadraticPenalty, deviation: FloatArray) -> FloatArray:
    """Penalty-weighted column means (q,): the shift whose removal costs least; 0 where none is free or needed."""
    totals = penalty.weights.sum(axis=0)
    means = (penalty.weights * deviation).sum(axis=0)
    use = design.shifts & (totals > 0.0)
    return np.where(use, means / np.where(use, totals, 1.0), 0.0)


def penalty_value(design: Design, penalty: QuadraticPenalty | None, theta: FloatArray) -> float:
    """Penalty at the best of all shifts of `theta`."""
    if penalty is None:
        return 0.0
    deviation = theta - penalty.center
    # Far steps on badly scaled scores overflow: the line search takes back what is not finite.
    with np.errstate(over="ignore", invalid="ignore"):
        return float((penalty.weights * (deviation - _shift(design, penalty, deviation)) ** 2).sum())


def penalty_gradient(design: Design, penalty: QuadraticPenalty | None, theta: FloatArray) -> FloatArray:
    """Gradient (K, q) of the penalty."""
    if penalty is None:
        return np.zeros(design.shape)
    deviation = theta - penalty.center
    return 2.0 * penalty.weights * (deviation - _shift(design, penalty, deviation))


def penalty_hessian(design: Design, penalty: QuadraticPenalty | None) -> FloatArray:
    """Second derivatives of the penalty in the free parameters (n_free, n_free), mean scale."""
    if penalty is None:
        return np.zeros((design.n_free, design.n_free))
    K, q = design.shape
    lam = penalty.weights
    full = np.zeros((K, q, K, q))
    totals = lam.sum(axis=0)
    for j in range(q):
        block = np.diag(lam[:, j])
        if design.shifts[j] and totals[j] > 0.0:
            block -= np.outer(lam[:, j], lam[:, j]) / totals[j]
        full[:, j, :, j] = 2.0 * block
    return design.reduce(full.reshape(K * q, K * q))


def representative(design: Design, penalty: QuadraticPenalty, theta: FloatArray) -> FloatArray:
    """The one among all shifts of `theta` whose penalty is least (K, q)."""
    return theta - _shift(design, penalty, theta - penalty.center)


def represent(design: Design, penalty: QuadraticPenalty, free: FloatArray) -> FloatArray:
    """Changes of the representative for changes of the free parameters, (n_free, m) to (K q, m)."""
    change = design.push(free)
    totals = penalty.weights.sum(axis=0)
    use = design.shifts & (totals > 0.0)
    means = np.einsum("kj,kjm->jm", penalty.weights / np.where(use, totals, 1.0), change)
    change -= np.where(use[:, None], means, 0.0)
    return change.reshape(change.shape[0] * change.shape[1], free.shape[1])


def row_scores(design: Design, probabilities: FloatArray) -> FloatArray:
    """Gradient of each row's log-likelihood in the free parameters (n, n_free); weights are not applied."""
    residuals = -probabilities
    residuals[design.codes, np.arange(design.codes.size)] += 1.0
    if isinstance(design, FullDesign):
        scores = residuals[1:, None, :] * design.features
        return scores.reshape(design.n_free, -1).T
    by_class = residuals * design.features
    slopes = {"class": by_class, "common": by_class.sum(axis=0, keepdims=True), "fixed": by_class[:0]}
    return np.concatenate([slopes[design.slopes], residuals[1:] if design.constants else residuals[:0]]).T
