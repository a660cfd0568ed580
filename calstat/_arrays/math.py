"""Elementary functions of probabilities: softmax, and clipping with a stated bound."""

from __future__ import annotations

import numpy as np

from calstat._typing import FloatArray


def clip_probabilities(p: FloatArray, eps: float) -> tuple[FloatArray, int]:
    """Return `p` clipped to ``[eps, 1 - eps]`` and how many values that changed.

    The input itself is returned, not a copy, when nothing has to change.
    """
    if p.size == 0:
        return p, 0
    upper = 1.0 - eps
    if p.min() >= eps and p.max() <= upper:
        return p, 0
    touched = int(np.count_nonzero((p < eps) | (p > upper)))
    return np.clip(p, eps, upper), touched


def softmax(z: FloatArray) -> FloatArray:
    """Softmax over the last axis, safe for logits of any size."""
    e = z - z.max(axis=-1, keepdims=True)
    np.exp(e, out=e)
    e /= e.sum(axis=-1, keepdims=True)
    return e


def log_softmax(z: FloatArray) -> FloatArray:
    """Logarithm of `softmax` over the last axis, without underflow."""
    shifted = z - z.max(axis=-1, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return shifted
