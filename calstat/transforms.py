"""The log odds and their inverse, for users."""

from __future__ import annotations

import numpy as np
from scipy import special

from calstat._input.validation import as_float, check_eps, check_probabilities, refuse_not_finite
from calstat._typing import ArrayLike, FloatArray
from calstat.exceptions import InputError

_MACHINE_EPS = float(np.finfo(np.float64).eps)


def logit(p: ArrayLike, eps: float = _MACHINE_EPS) -> FloatArray:
    r"""
    Log odds of probabilities.

    .. math:: \operatorname{logit}(p) = \ln\frac{p}{1-p}

    Parameters
    ----------
    p : array_like
        Probabilities in [0, 1], of any shape.
    eps : float, default 2.220446049250313e-16
        Probabilities are clipped to ``[eps, 1 - eps]`` first, so that 0 and 1 give finite values: -36.04 and
        36.04 by default.

    Returns
    -------
    ndarray
        Log odds, of the shape of `p`.

    Raises
    ------
    ProbabilityError
        If a value lies outside [0, 1].
    MissingDataError
        If a value is missing or infinite.
    InputError
        If `p` is empty or not numeric, or `eps` is not between 0 and 0.5.

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
    eps = check_eps(eps)
    values = check_probabilities(as_float(p, "p"))
    return np.asarray(special.logit(np.clip(values, eps, 1.0 - eps)))


def inv_logit(x: ArrayLike) -> FloatArray:
    r"""
    Probability of log odds, the inverse of `logit`.

    .. math:: \operatorname{expit}(x) = \frac{1}{1+e^{-x}}

    Parameters
    ----------
    x : array_like
        Finite log odds of any size and shape.

    Returns
    -------
    ndarray
        Probabilities in [0, 1], of the shape of `x`.

    Raises
    ------
    MissingDataError
        If a value is missing or infinite.
    InputError
        If `x` is empty or not numeric.

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
    values = as_float(x, "x")
    if values.size == 0:
        raise InputError("`x` is empty.")
    refuse_not_finite(values, "x")
    return np.asarray(special.expit(values))


__all__ = ["inv_logit", "logit"]
