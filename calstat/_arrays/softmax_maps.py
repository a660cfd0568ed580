"""What tells one softmax map from another, on plain arrays: its features, its free parameters, its reported ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from calstat._arrays.math import clip_probabilities, log_softmax
from calstat._arrays.softmax import (
    Design,
    FullDesign,
    QuadraticPenalty,
    VectorDesign,
    losses,
    probabilities_of,
    represent,
    representative,
)
from calstat._arrays.softmax_inference import logit_covariances, logit_standard_errors, not_estimable
from calstat._arrays.softmax_solver import fit_temperature, minimize, null_directions
from calstat._typing import FloatArray, IntArray, Label, Scale

FULL = ("MatrixScaling", "DirichletCalibration")
# With so many classes, vector scaling reads the scores row by row, as they came: turning them takes longer than a pass.
_MANY = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftmaxMap:
    """A kind of map with the options that fix its features.

    `kind` the name of its model; `scores` the scale of the input; `eps` the clip of probabilities; `center` whether
    row means are taken off the logits; `slopes` of vector scaling, and the place of its `reference` class, whose logit
    is taken off the others: its own is then 0, so that it has no slope.
    """

    kind: str
    scores: Scale
    eps: float
    center: bool = False
    slopes: str = "class"
    reference: int | None = None

    def options(self) -> dict[str, Any]:
        """Fields by name, for storage."""
        return {field: getattr(self, field) for field in self.__slots__}

    def features(self, scores: FloatArray) -> tuple[FloatArray, int]:
        """Features (K, n), class first, of scores (n, K), or (n,) for binary ones, and how many values were clipped.

        A binary score stands for the logits 0 and its own log odds.
        """
        if scores.ndim == 1:
            return self._binary_features(scores)
        touched = 0
        if self.scores == "probability":
            p, touched = clip_probabilities(scores, self.eps)
            z = np.log(p)
        elif self.kind == "DirichletCalibration":
            z = log_softmax(scores)
            low = np.log(self.eps)
            touched = int((z < low).sum())
            z = np.maximum(z, low) if touched else z
        else:
            z = scores
        if self.center:
            z = z - z.mean(axis=1, keepdims=True)
        if self.reference is not None:
            z = z - z[:, [self.reference]]
        if self.kind == "VectorScaling" and z.shape[1] >= _MANY:
            return z.T.copy(order="F"), touched
        return np.ascontiguousarray(z.T), touched

    def _binary_features(self, scores: FloatArray) -> tuple[FloatArray, int]:
        touched = 0
        if self.scores == "probability":
            p, touched = clip_probabilities(scores, self.eps)
            scores = np.log(p) - np.log1p(-p)
        return np.stack([np.zeros_like(scores), scores]), touched

    def design(self, features: FloatArray, codes: IntArray, weights: FloatArray | None) -> Design:
        """Rows of a fit."""
        if self.kind == "TemperatureScaling":
            return VectorDesign(features=features, codes=codes, weights=weights, slopes="common", constants=False)
        if self.kind == "VectorScaling":
            return VectorDesign(features=features, codes=codes, weights=weights, slopes=self.slopes)
        with_constant = np.vstack([features, np.ones(features.shape[1])])
        return FullDesign(features=with_constant, codes=codes, weights=weights, n_classes=len(features))

    def shape_only(self, n_classes: int) -> Design:
        """Design without rows: enough to carry parameters from one form to another."""
        return self.design(np.empty((n_classes, 0)), np.empty(0, dtype=np.int64), None)

    def identity(self, n_classes: int) -> FloatArray:
        """Parameters of the identity map (K, q)."""
        if self.kind not in FULL:
            return np.column_stack([np.ones(n_classes), np.zeros(n_classes)])
        return np.eye(n_classes, n_classes + 1)

    def norm(self, n_classes: int, penalty: QuadraticPenalty | None) -> QuadraticPenalty:
        """The penalty whose least value picks the reported one among equivalent maps.

        A fit without a penalty takes ODIR's: off-diagonal column means and the mean bias are 0. A column that the
        penalty of the fit leaves free is centred in the same way.
        """
        if self.kind not in FULL:
            weights = np.column_stack([np.zeros(n_classes), np.ones(n_classes)])
            if self.reference is not None:
                weights[:, 1] = np.arange(n_classes) == self.reference
        else:
            weights = 1.0 - np.eye(n_classes, n_classes + 1)
        center = np.zeros_like(weights)
        if penalty is not None:
            used = penalty.weights.sum(axis=0) > 0.0
            weights[:, used], center[:, used] = penalty.weights[:, used], penalty.center[:, used]
        return QuadraticPenalty(weights=weights, center=center)

    def names(self, classes: tuple[Label, ...]) -> tuple[str, ...]:
        """Names of the reported parameters."""
        if self.kind == "TemperatureScaling":
            return ("T",)
        if self.kind == "VectorScaling":
            own = [c for k, c in enumerate(classes) if k != self.reference]
            slopes = {"class": [f"s[{c}]" for c in own], "common": ["s"], "fixed": []}[self.slopes]
            return (*slopes, *(f"b[{c}]" for c in own))
        weights = [f"W[{i},{j}]" for i in classes for j in classes]
        return (*weights, *(f"b[{i}]" for i in classes))

    def order(self, n_classes: int) -> IntArray:
        """Places of the reported parameters in the flattened ``theta`` (K q,)."""
        q = 2 if self.kind == "VectorScaling" else n_classes + 1
        places = np.arange(n_classes * q).reshape(n_classes, q)
        if self.reference is not None:
            places = np.delete(places, self.reference, axis=0)
        slopes = places[:, :-1].ravel()
        if self.kind == "VectorScaling":
            slopes = {"class": slopes, "common": slopes[:1], "fixed": slopes[:0]}[self.slopes]
        return np.concatenate([slopes, places[:, -1]]).astype(np.int64)


def widen(smaller: SoftmaxMap, larger: SoftmaxMap, theta: FloatArray) -> FloatArray:
    """Parameters (K, q) of a smaller map as those of a larger one that contains it."""
    if larger.kind not in FULL or smaller.kind in FULL:
        return theta
    wide = np.zeros((len(theta), len(theta) + 1))
    np.fill_diagonal(wide, theta[:, 0])
    wide[:, -1] = theta[:, 1]
    return wide


def embedding(smaller: SoftmaxMap, larger: SoftmaxMap, n_classes: int) -> FloatArray:
    """Free parameters of a larger map (f, g), as linear functions of those of a smaller one."""
    a, b = smaller.shape_only(n_classes), larger.shape_only(n_classes)
    return np.column_stack([b.free(widen(smaller, larger, a.push(unit))) for unit in np.eye(a.n_free)])


@dataclass(frozen=True, slots=True, kw_only=True)
class MapFit:
    """A fitted map: the minimiser, what the data leave open, and how the search ended.

    `theta` (K, q); `probabilities` (K, n); `loss` and `objective` mean negative log-likelihood without and with the
    penalty; `null` directions of the free parameters without information (f, d); `bound` "lower", "upper" or None.
    """

    theta: FloatArray
    probabilities: FloatArray
    loss: float
    objective: float
    gradient_norm: float
    gap: float
    n_iter: int
    converged: bool
    separated: bool
    null: FloatArray
    bound: str | None


def fit_map(
    form: SoftmaxMap,
    features: FloatArray,
    codes: IntArray,
    weights: FloatArray | None,
    penalty: QuadraticPenalty | None = None,
    *,
    start: FloatArray | None = None,
    null: FloatArray | None = None,
    rtol: float = 1e-10,
) -> MapFit:
    """Fit a map to features (K, n) and codes (n,), from `start` (K, q) or the identity."""
    design = form.design(features, codes, weights)
    if form.kind == "TemperatureScaling":
        return _temperature(form, design, features, codes, weights)
    null = null_directions(design, penalty, rtol) if null is None else null
    if start is None:
        start = _start(design, penalty, form.identity(len(features)), null)
    found = minimize(design, penalty, start, null=null)
    return MapFit(
        theta=found.theta,
        probabilities=found.evaluation.probabilities,
        loss=found.evaluation.loss,
        objective=found.evaluation.objective,
        gradient_norm=found.gradient_norm,
        gap=found.gap,
        n_iter=found.n_iter,
        converged=found.converged,
        separated=found.separated,
        null=null,
        bound=None,
    )


def _start(design: Design, penalty: QuadraticPenalty | None, identity: FloatArray, null: FloatArray) -> FloatArray:
    """The identity map, or constant probabilities where these fit better: far-off logits leave no slope to follow."""
    counts = np.bincount(design.codes, weights=design.weights, minlength=design.n_classes)
    constant = np.zeros_like(identity)
    constant[:, -1] = np.log((counts + 0.5) / (counts.sum() + 0.5 * counts.size))
    if isinstance(design, VectorDesign) and design.slopes == "fixed":
        centre = design.features.mean(axis=1)
        constant = np.column_stack([identity[:, 0], constant[:, 1] - centre])
    # What is not determined stays where the identity has it.
    constant = constant + design.push(null @ (null.T @ design.free(identity - constant)))
    gain = losses(design, penalty, constant)[1] - losses(design, penalty, identity)[1]
    return constant if gain < 0.0 else identity


def _temperature(
    form: SoftmaxMap, design: Design, features: FloatArray, codes: IntArray, weights: FloatArray | None
) -> MapFit:
    found = fit_temperature(features, codes, weights)
    theta = form.identity(len(features))
    theta[:, 0] = found.inverse
    free = found.bound is None and not found.flat
    return MapFit(
        theta=theta,
        probabilities=probabilities_of(design, theta),
        loss=found.loss,
        objective=found.loss,
        gradient_norm=abs(found.slope),
        gap=0.0,
        n_iter=found.n_iter,
        converged=not found.separated,
        separated=found.separated,
        null=np.zeros((1, 0)) if free else np.ones((1, 1)),
        bound=found.bound,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """Reported parameters (k,), their identity values (k,) and covariance (k, k)."""

    params: FloatArray
    identity: FloatArray
    cov: FloatArray


def reported(
    form: SoftmaxMap,
    theta: FloatArray,
    penalty: QuadraticPenalty | None,
    free_cov: FloatArray | None,
    lost: FloatArray,
) -> Reported:
    """Carry a fit over to its reported representative; the covariance is NaN where it is not known."""
    K = len(theta)
    if form.kind == "TemperatureScaling":
        T = 1.0 / theta[:1, 0]
        known = free_cov is not None and lost.shape[1] == 0
        variance = T**4 * free_cov[0] if known and free_cov is not None else np.array([np.nan])
        return Reported(params=T, identity=np.ones(1), cov=variance[:, None])
    design, norm, order = form.shape_only(K), form.norm(K, penalty), form.order(K)
    if free_cov is None:
        # One NaN seen k x k times: no memory is spent on a covariance that was not asked for.
        cov = np.broadcast_to(np.nan, (order.size, order.size))
    else:
        half = represent(design, norm, free_cov)[order]
        cov = represent(design, norm, half.T)[order]
        cov = 0.5 * (cov + cov.T)
        # An entry that alone carries the norm of its column is fixed by it (K = 2 under ODIR).
        alone = (norm.weights > 0.0) & ((norm.weights > 0.0).sum(axis=0) == 1) & design.shifts
        unknown = not_estimable(represent(design, norm, lost)[order]) | alone.ravel()[order]
        cov[unknown, :] = np.nan
        cov[:, unknown] = np.nan
    return Reported(
        params=representative(design, norm, theta).ravel()[order],
        identity=representative(design, norm, form.identity(K)).ravel()[order],
        cov=cov,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOdds:
    """Predicted probabilities (n, K), their log odds and the standard errors of these."""

    probabilities: FloatArray
    log_odds: FloatArray
    se: FloatArray


def log_odds_of(eta: FloatArray) -> FloatArray:
    """Log odds (n, K) of each class against all others, from logits (n, K): no loss where a probability nears 1."""
    K = eta.shape[1]
    others = np.empty_like(eta)
    for k in range(K):
        rest = np.delete(eta, k, axis=1)
        top = rest.max(axis=1)
        others[:, k] = top + np.log(np.exp(rest - top[:, None]).sum(axis=1))
    return eta - others


def predict_log_odds(
    form: SoftmaxMap, theta: FloatArray, features: FloatArray, free_cov: FloatArray | None, lost: FloatArray
) -> LogOdds:
    """Predictions with standard errors (NaN without a covariance, and where a lost direction moves a logit)."""
    n = features.shape[1]
    design = form.design(features, np.zeros(n, dtype=np.int64), None)
    eta = design.logits(theta, slice(0, n)).T
    p = np.exp(log_softmax(eta))
    se = np.full(p.shape, np.nan)
    if free_cov is not None:
        for rows, spread in logit_covariances(design, free_cov):
            se[rows] = logit_standard_errors(p[rows], spread)
        for direction in design.push(lost).transpose(2, 0, 1):
            moved = np.ptp(design.logits(direction, slice(0, n)), axis=0)
            se[moved > 1e-6 * max(float(np.abs(features).max(initial=1.0)), 1.0)] = np.nan
    return LogOdds(probabilities=p, log_odds=log_odds_of(eta), se=se)


def probability_regions(
    form: SoftmaxMap, theta: FloatArray, features: FloatArray, free_cov: FloatArray, alpha: float, size: int = 120
) -> FloatArray:
    """Outlines (n, size, 3) of joint confidence regions of predictions for three classes: ellipses in log ratios."""
    n = features.shape[1]
    design = form.design(features, np.zeros(n, dtype=np.int64), None)
    contrasts = np.array([[1.0, 0.0, -1.0], [0.0, 1.0, -1.0]])
    centre = design.logits(theta, slice(0, n)).T @ contrasts.T
    spread = np.concatenate([cov for _, cov in logit_covariances(design, free_cov)])
    values, vectors = np.linalg.eigh(contrasts @ spread @ contrasts.T)
    half = vectors * np.sqrt(np.maximum(values, 0.0) * special.chdtri(2, alpha))[:, None, :]
    angle = np.linspace(0.0, 2.0 * np.pi, size)
    ratios = centre[:, None, :] + np.stack([np.cos(angle), np.sin(angle)], axis=1) @ half.transpose(0, 2, 1)
    return np.asarray(special.softmax(np.dstack([ratios, np.zeros((n, size))]), axis=2))
