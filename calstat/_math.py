"""Elementary functions of probabilities: logit, its inverse, softmax, and clipping with a stated bound."""

from __future__ import annotations

import numpy as np
from scipy import special

from calstat._typing import ArrayLike, FloatArray
from calstat.exceptions import InputError

MACHINE_EPS = float(np.finfo(np.float64).eps)


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


def logit(p: ArrayLike, eps: float = MACHINE_EPS) -> FloatArray:
    r"""
    Log odds of probabilities.

    .. math:: \operatorname{logit}(p) = \ln\frac{p}{1-p}

    Parameters
    ----------
    p : array_like
        Probabilities in [0, 1], of any shape. NaN stays NaN.
    eps : float, default 2.220446049250313e-16
        Probabilities are clipped to ``[eps, 1 - eps]`` first, so that 0 and 1 give finite values
        (-36.04 and 36.04 by default). ``eps=0`` gives the exact limits, -inf and inf.

    Returns
    -------
    ndarray
        Log odds, of the shape of `p`.

    Raises
    ------
    InputError
        If a value lies outside [0, 1] or `eps` outside [0, 0.5).

    See Also
    --------
    inv_logit : The inverse.

    Examples
    --------
    >>> import calstat as cs
    >>> cs.logit([0.5, 0.9, 1.0]).round(4)
    array([ 0.    ,  2.1972, 36.0437])

    A log odds of 0 is an even chance; each unit multiplies the odds by 2.718.
    """
    if not 0.0 <= eps < 0.5:
        raise InputError(f"`eps` must lie in [0, 0.5), got {eps!r}.")
    values = np.asarray(p, dtype=np.float64)
    outside = (values < 0.0) | (values > 1.0)
    if outside.any():
        first = int(np.flatnonzero(outside)[0])
        raise InputError(
            f"`p` must lie in [0, 1]; {int(outside.sum())} of {values.size} values do not, the first is "
            f"p[{first}] = {values.ravel()[first]:g}. Were log odds or percentages passed?"
        )
    return np.asarray(special.logit(np.clip(values, eps, 1.0 - eps)))


def inv_logit(x: ArrayLike) -> FloatArray:
    r"""
    Probability of log odds, the inverse of `logit`.

    .. math:: \operatorname{expit}(x) = \frac{1}{1+e^{-x}}

    Parameters
    ----------
    x : array_like
        Log odds of any size and shape; infinities give exactly 0 and 1, NaN stays NaN.

    Returns
    -------
    ndarray
        Probabilities in [0, 1], of the shape of `x`.

    See Also
    --------
    logit : The inverse.

    Examples
    --------
    >>> import calstat as cs
    >>> cs.inv_logit([-800.0, 0.0, 2.0]).round(4)
    array([0.    , 0.5   , 0.8808])

    The number is the chance whose odds are ``exp(x)`` to one.
    """
    return np.asarray(special.expit(np.asarray(x, dtype=np.float64)))
