"""Binary calibration maps that are linear on the log-odds scale: ``logit q = offset(s) + sum_j params_j x_j(s)``.

A map is a small description: its columns x_j(s), the coefficients of the identity, and bounds. Fits, predictions and
stored maps all read it, so that each definition stands once.

================ =======================================================================================
PlattScaling     columns 1, s (Platt 1999)
LogisticCal.     columns 1, logit p (Cox 1958); with a fixed slope: column 1, offset logit p
BetaCalibration  columns ln p, -ln(1 - p), 1 (Kull et al. 2017); "am": logit p, 1; "a": logit p;
                 "ab": ln 2p, -ln 2(1 - p), which puts the fixed point at p = 1/2
================ =======================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calstat._arrays.math import clip_probabilities
from calstat._typing import FloatArray

_LN2 = float(np.log(2.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearMap:
    """One kind of map with its options.

    `kind` and `options` rebuild it (`linear_map`); `names` (k,) name the coefficients; `scale` is what scores
    are: "probability", "logit" or "margin"; `eps` clips probabilities before logs; `identity` (k,) is the
    identity map, or None; `lower` (k,) are bounds, or None.
    """

    kind: str
    options: dict[str, Any] = field(default_factory=dict)
    names: tuple[str, ...]
    scale: str
    eps: float
    identity: FloatArray | None
    lower: FloatArray | None = None
    _make: Callable[[FloatArray, LinearMap], tuple[list[FloatArray], FloatArray | None]]

    def design(self, scores: FloatArray) -> tuple[list[FloatArray], FloatArray | None]:
        """Columns x_j (n,) and the offset (n,) or None."""
        return self._make(scores, self)

    def clipped(self, scores: FloatArray) -> int:
        """How many scores the bound `eps` changes."""
        return clip_probabilities(scores, self.eps)[1] if self.scale == "probability" else 0

    def linear_predictor(self, scores: FloatArray, params: FloatArray) -> FloatArray:
        """Log odds (n,) of the calibrated probability."""
        columns, offset = self.design(scores)
        eta = np.zeros(scores.size) if offset is None else offset.copy()
        for coefficient, column in zip(params, columns, strict=True):
            eta += coefficient * column
        return eta


def linear_map(kind: str, **options: Any) -> LinearMap:
    """The map of a kind, as named in the table above, with its options."""
    return _BUILDERS[kind](**options)


def _logs(p: FloatArray, eps: float) -> tuple[FloatArray, FloatArray]:
    """``ln p`` and ``ln(1 - p)`` after clipping."""
    clipped, _ = clip_probabilities(p, eps)
    return np.log(clipped), np.log1p(-clipped)


def _log_odds(scores: FloatArray, form: LinearMap) -> FloatArray:
    if form.scale != "probability":
        return scores
    log_p, log_1mp = _logs(scores, form.eps)
    log_p -= log_1mp
    return log_p


def _line(scores: FloatArray, form: LinearMap) -> tuple[list[FloatArray], FloatArray | None]:
    return [np.ones(scores.size), _log_odds(scores, form)], None


def _shift(scores: FloatArray, form: LinearMap) -> tuple[list[FloatArray], FloatArray | None]:
    return [np.ones(scores.size)], float(form.options["slope"]) * _log_odds(scores, form)


def _beta_columns(scores: FloatArray, form: LinearMap) -> tuple[list[FloatArray], FloatArray | None]:
    parameters = form.options["parameters"]
    log_p, log_1mp = _logs(scores, form.eps)
    if parameters in {"am", "a"}:
        log_p -= log_1mp
        return [log_p, np.ones(scores.size)] if parameters == "am" else [log_p], None
    np.negative(log_1mp, out=log_1mp)
    if parameters == "ab":
        log_p += _LN2
        log_1mp -= _LN2
        return [log_p, log_1mp], None
    return [log_p, log_1mp, np.ones(scores.size)], None


def _platt(*, scores: str = "margin", eps: float = 1e-15, target_correction: bool = True) -> LinearMap:
    known = scores != "margin" and not target_correction
    return LinearMap(
        kind="PlattScaling",
        options={"scores": scores, "eps": eps, "target_correction": target_correction},
        names=("intercept", "slope"),
        scale=scores,
        eps=eps,
        identity=np.array([0.0, 1.0]) if known else None,
        _make=_line,
    )


def _logistic(*, scores: str = "probability", eps: float = 1e-15, slope: float | None = None) -> LinearMap:
    options = {"scores": scores, "eps": eps, "slope": slope}
    if slope is None:
        names: tuple[str, ...] = ("intercept", "slope")
        identity = np.array([0.0, 1.0])
    else:
        names, identity = ("intercept",), np.zeros(1)
    return LinearMap(
        kind="LogisticCalibration",
        options=options,
        names=names,
        scale=scores,
        eps=eps,
        identity=identity if slope in {None, 1.0} else None,
        _make=_line if slope is None else _shift,
    )


_BETA = {
    "abm": (("a", "b", "c"), (1.0, 1.0, 0.0), (0.0, 0.0, -np.inf)),
    "ab": (("a", "b"), (1.0, 1.0), (0.0, 0.0)),
    "am": (("a", "c"), (1.0, 0.0), (0.0, -np.inf)),
    "a": (("a",), (1.0,), (0.0,)),
}


def _beta(*, parameters: str = "abm", monotone: bool = False, eps: float = 1e-15) -> LinearMap:
    names, identity, lower = _BETA[parameters]
    return LinearMap(
        kind="BetaCalibration",
        options={"parameters": parameters, "monotone": monotone, "eps": eps},
        names=names,
        scale="probability",
        eps=eps,
        identity=np.array(identity),
        lower=np.array(lower) if monotone else None,
        _make=_beta_columns,
    )


_BUILDERS: dict[str, Callable[..., LinearMap]] = {
    "PlattScaling": _platt,
    "LogisticCalibration": _logistic,
    "BetaCalibration": _beta,
}
BETA_PARAMETERS = tuple(_BETA)
