"""Choice of a penalty by cross-validation, on plain arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from calstat._arrays.softmax import FullDesign, QuadraticPenalty, evaluate
from calstat._arrays.softmax_inference import drawn_labels
from calstat._arrays.softmax_maps import MapFit, SoftmaxMap, fit_map
from calstat._arrays.softmax_solver import null_directions
from calstat._typing import FloatArray, IntArray

Candidates = Sequence[QuadraticPenalty | None]
_LARGEST_LOSS = -float(np.log(1e-15))


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossValidation:
    """Held-out losses of P penalties in F folds.

    `by_fold` (P, F) mean loss of each fold; `mean` (P,) over all rows, weights counted; `se` (P,) its standard error
    over rows; `best` the place of the smallest mean, the first of equal ones.
    """

    by_fold: FloatArray
    mean: FloatArray
    se: FloatArray
    best: int


def stratified_folds(codes: IntArray, n_folds: int, rng: np.random.Generator | None) -> IntArray:
    """Fold of each row (n,): 0, 1, 2, 0, 1, ... within each class, in row order or shuffled."""
    fold = np.empty(codes.size, dtype=np.int64)
    for k in np.unique(codes):
        rows = np.flatnonzero(codes == k)
        if rng is not None:
            rows = rng.permutation(rows)
        fold[rows] = np.arange(rows.size) % n_folds
    return fold


def cross_validate(
    form: SoftmaxMap,
    features: FloatArray,
    codes: IntArray,
    weights: FloatArray | None,
    penalties: Candidates,
    fold: IntArray,
    *,
    rtol: float,
    advance: Callable[[int], object] | None = None,
) -> CrossValidation:
    """Held-out loss of each penalty; from the strongest to the weakest, each fit starts at the one before."""
    folds = np.unique(fold)
    order = _path(penalties)
    w = np.ones(codes.size) if weights is None else weights
    losses = np.empty((len(penalties), codes.size))
    by_fold = np.empty((len(penalties), folds.size))
    for f, label in enumerate(folds):
        out = fold == label
        training = features[:, ~out], codes[~out], None if weights is None else weights[~out]
        start = None
        for i in order:
            null = _null(form, training, penalties[i], rtol)
            fit = fit_map(form, *training, penalties[i], start=start, null=null)
            start = fit.theta
            losses[i, out] = _losses(form, fit, features[:, out], codes[out])
            by_fold[i, f] = np.average(losses[i, out], weights=w[out])
            if advance is not None:
                advance(1)
    total = w.sum()
    mean = losses @ w / total
    se = np.sqrt(((losses - mean[:, None]) ** 2) @ w / total / max(total - 1.0, 1.0))
    return CrossValidation(by_fold=by_fold, mean=mean, se=se, best=int(mean.argmin()))


def _path(penalties: Candidates) -> IntArray:
    """Order of the fits (P,): by the strength on the weights, the strongest first, then by that on the intercepts.

    The weights are many and take long to find, so that their strength changes as seldom as can be.
    """
    strength = np.array(
        [[0.0, 0.0] if p is None else [p.weights[:, :-1].sum(), p.weights[:, -1].sum()] for p in penalties]
    )
    return np.lexsort(-strength.T[::-1])


def _null(
    form: SoftmaxMap,
    training: tuple[FloatArray, IntArray, FloatArray | None],
    penalty: QuadraticPenalty | None,
    rtol: float,
) -> FloatArray:
    design = form.design(*training)
    if penalty is not None and isinstance(design, FullDesign) and (penalty.weights > 0.0).all():
        return np.zeros((design.n_free, 0))
    return null_directions(design, penalty, rtol)


def _losses(form: SoftmaxMap, fit: MapFit, features: FloatArray, codes: IntArray) -> FloatArray:
    """Negative log-likelihood (m,) of held-out rows, probabilities not below 1e-15 as in the log-loss metric."""
    eta = form.design(features, codes, None).logits(fit.theta, slice(0, codes.size))
    eta -= eta.max(axis=0)
    losses = np.log(np.exp(eta).sum(axis=0)) - eta[codes, np.arange(codes.size)]
    return np.minimum(losses, _LARGEST_LOSS)


def selected_gain(
    form: SoftmaxMap,
    features: FloatArray,
    codes: IntArray,
    weights: FloatArray | None,
    penalties: Candidates,
    fold: IntArray,
    *,
    rtol: float,
) -> float:
    """Twice the gain of the objective over the identity map, mean scale, with the penalty chosen on these labels."""
    chosen = penalties[cross_validate(form, features, codes, weights, penalties, fold, rtol=rtol).best]
    fit = fit_map(form, features, codes, weights, chosen, rtol=rtol)
    design = form.design(features, codes, weights)
    return 2.0 * (evaluate(design, chosen, form.identity(len(features))).objective - fit.objective)


def selected_gain_draws(
    form: SoftmaxMap,
    features: FloatArray,
    probabilities: FloatArray,
    weights: FloatArray | None,
    penalties: Candidates,
    fold: IntArray,
    n_draws: int,
    rng: np.random.Generator,
    *,
    rtol: float,
) -> FloatArray:
    """Draws (n_draws,) of `selected_gain`, labels from the probabilities (K, n); copies of a row are drawn apart."""
    if weights is not None:
        copies = weights.astype(np.int64)
        features, probabilities = np.repeat(features, copies, axis=1), np.repeat(probabilities, copies, axis=1)
        fold = np.repeat(fold, copies)
    cumulative = probabilities.cumsum(axis=0)
    return np.array(
        [
            selected_gain(form, features, drawn_labels(cumulative, rng), None, penalties, fold, rtol=rtol)
            for _ in range(n_draws)
        ]
    )
