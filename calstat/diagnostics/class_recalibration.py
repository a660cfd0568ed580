"""Score tests of the identity against softmax maps, for matrices of probabilities; none of them needs a fit."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import stats

from calstat._arrays import pseudo_labels
from calstat._arrays.softmax import FullDesign, probabilities_of
from calstat._arrays.softmax_inference import (
    information_at,
    score_excess,
    score_form,
    score_statistic,
    score_statistic_draws,
)
from calstat._arrays.softmax_maps import SoftmaxMap
from calstat._arrays.softmax_solver import null_directions
from calstat._input.validation import MulticlassSample
from calstat._results import CalibrationTest
from calstat.exceptions import InputError, NotEstimableWarning
from calstat.multiclass.results import EXCESS_LIMIT

KINDS = {"temperature": "TemperatureScaling", "vector": "VectorScaling", "dirichlet": "DirichletCalibration"}

_NULLS = {
    "temperature": "T = 1 in softmax(ln p / T)",
    "vector": "s = 1 and b = 0 for each class in softmax(s ln p + b)",
    "dirichlet": "W = I and b = 0 in softmax(W ln p + b)",
}
# Beyond so many classes the information of the full map is too large to invert; its blocks by class then serve.
_MANY_CLASSES = 20
# Singular values below this share of the largest are rounding, of float32 input too.
_RANK = 1e-6


def class_recalibration_test(
    sample: MulticlassSample,
    against: str,
    method: str | None,
    eps: float,
    n_resamples: int,
    rng: np.random.Generator,
) -> CalibrationTest:
    """Test the identity against a softmax map by its score statistic; chi-square or drawn law."""
    if method not in {None, "score", "pseudo_label"}:
        raise InputError(
            f"`method` must be 'score' or 'pseudo_label' for a matrix of probabilities, got {method!r}; "
            f"{KINDS[against]}(y, p).fit().test_identity({method!r}) gives that test."
        )
    keep = slice(None) if sample.weights is None else sample.weights > 0
    w = None if sample.weights is None else sample.weights[keep]
    form = SoftmaxMap(kind=KINDS[against], scores="probability", eps=eps)
    features, touched = form.features(sample.p[keep])
    design = form.design(features, sample.y[keep], w)
    K = len(sample.classes)
    p = probabilities_of(design, form.identity(K))
    large = isinstance(design, FullDesign) and K > _MANY_CLASSES
    info = None if large else information_at(design, None, p, null=null_directions(design, None, _RANK))
    matrix = score_form(design, None, p, info)
    statistic = score_statistic(design, p, matrix)
    notes = [f"{touched} of {features.size} probabilities were clipped at {eps:g}"] if touched else []
    result: dict[str, Any] = {
        "name": f"Recalibration by {KINDS[against]}",
        "null": _NULLS[against],
        "statistic": statistic,
        "nobs": sample.nobs,
    }
    if not np.isfinite(statistic) or (info is not None and info.rank == 0):
        reason = "the probabilities do not determine any coefficient of the map"
        warnings.warn(f"{result['name']}: {reason}.", NotEstimableWarning, stacklevel=3)
        return CalibrationTest(
            **(result | {"statistic": np.nan}), pvalue=np.nan, distribution="none", method="none", note=reason
        )
    details: dict[str, Any] = {}
    if info is not None:
        details = {"excess": score_excess(design, p, info), "df": info.rank}
        details["pvalue_chi2"] = float(stats.chi2.sf(statistic, info.rank))
    chosen = method or ("pseudo_label" if info is None or details["excess"] > EXCESS_LIMIT else "score")
    if chosen == "score":
        if info is None:
            raise InputError(f"method='score' is for at most {_MANY_CLASSES} classes here; use 'pseudo_label'.")
        return CalibrationTest(
            **result,
            pvalue=details["pvalue_chi2"],
            df=info.rank,
            distribution="chi2",
            method="score",
            details=details,
            note="; ".join(notes) or None,
        )
    draws = score_statistic_draws(design, p, matrix, n_resamples, rng)
    place = pseudo_labels.monte_carlo(statistic, draws)
    if info is not None:
        notes.append(f"the chi-square law with {info.rank} df would give p = {details['pvalue_chi2']:.3g}")
    return CalibrationTest(
        **result,
        pvalue=place.pvalue,
        distribution="pseudo-label",
        method="pseudo_label",
        details=details | {"expected": place.mean, "mc_error": place.error, "n_resamples": n_resamples},
        note="; ".join(notes) or None,
    )
