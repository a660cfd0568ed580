"""What all softmax models share: reading the data, the fit, its covariance, its warnings."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Generic, Literal, TypeVar

import numpy as np
import pandas as pd

from calstat._arrays.softmax import Design, QuadraticPenalty, losses
from calstat._arrays.softmax_inference import free_covariance, information_at
from calstat._arrays.softmax_maps import FULL, MapFit, SoftmaxMap, fit_map
from calstat._data import ModelData, ScoreReader
from calstat._input.labels import show
from calstat._input.validation import check_binary, check_choice, check_groups, check_multiclass
from calstat._typing import FloatArray, IntArray, Label
from calstat.base import CalibrationModel
from calstat.exceptions import (
    BoundaryWarning,
    CalstatWarning,
    ConvergenceWarning,
    DataWarning,
    InputError,
    NotEstimableError,
    RankWarning,
    SeparationWarning,
)
from calstat.multiclass.parts import COV_NAMES, MapState, MulticlassData, MulticlassDescription, estimates_of
from calstat.multiclass.results import SoftmaxResults
from calstat.penalties import Penalty

R = TypeVar("R", bound=SoftmaxResults)
# Collinear to rounding, on the scale of singular values, by the precision in which the scores were given.
_COLLINEAR = {"float64": 1e-10, "float32": 1e-6, "float16": 1e-3}
# Free parameters up to which a covariance is made unasked: full maps of 40 classes.
_COV_LIMIT = 1640
_MEMORY_LIMIT = 8e9
# What is left to gain, by the optimiser's estimate, where it is rounding that ends it.
_FLAT = 1e-12


class SoftmaxModel(CalibrationModel, Generic[R]):
    """
    A model of a softmax calibration map: what all of them share.

    Attributes
    ----------
    classes : tuple
        Class labels, in the order of the columns.
    """

    _results: ClassVar[type[Any]]  # R, which a class variable cannot name
    _penalty: Penalty | None = None
    _how_chosen: str | None = None
    _form: SoftmaxMap

    def _read(
        self,
        data: ModelData,
        form: SoftmaxMap,
        event: Label | None,
        classes: Sequence[Label] | None,
        reference: Label | None = None,
    ) -> None:
        scores = data.scores
        n_columns = 1 if np.ndim(scores) == 1 else np.shape(scores)[1]
        # Two columns are two classes, unless one of them is called the event.
        self._binary = n_columns == 1 or (n_columns == 2 and event is not None)
        if self._binary and form.kind != "TemperatureScaling":
            raise InputError(
                f"{form.kind} needs one score per class, two or more columns; got one. For one score use "
                "LogisticCalibration, BetaCalibration or PlattScaling."
            )
        self._data, self._form = data, form
        self._rtol = _COLLINEAR[_precision(scores)]
        if self._binary:
            scores = scores.iloc[:, 0] if isinstance(scores, pd.DataFrame) and n_columns == 1 else scores
            pair = check_binary(
                data.y, scores, freq_weights=data.weights, event=event, scores=form.scores, integer_weights=True
            )
            self._codes: IntArray = pair.y.astype(np.int64)
            self._classes: tuple[Label, ...] = (pair.nonevent, pair.event)
            sample: Any = pair
        else:
            if event is not None:
                raise InputError(
                    f"`event` goes with one score, or two columns; `p` has {n_columns}. Name the columns of a matrix "
                    "with `classes`."
                )
            sample = check_multiclass(
                data.y, scores, freq_weights=data.weights, classes=classes, scores=form.scores, integer_weights=True
            )
            self._codes, self._classes = sample.y, sample.classes
        self._scores: FloatArray = sample.p
        if reference is not None:
            self._form = replace(form, reference=self._place(reference))
        self._weights: FloatArray | None = sample.weights
        self._index, self._notes = sample.index, sample.notes
        self._groups = None if data.groups is None else check_groups(data.groups, self._codes.size)
        self.nobs = sample.nobs

    def _place(self, reference: Label) -> int:
        if reference not in self._classes:
            raise InputError(f"`reference` must be one of the classes {show(self._classes)}, got {reference!r}.")
        return self._classes.index(reference)

    @property
    def classes(self) -> tuple[Label, ...]:
        """Class labels, in the order of the columns."""
        return self._classes

    @property
    def _counts(self) -> FloatArray:
        counts = np.bincount(self._codes, weights=self._weights, minlength=len(self._classes))
        return counts.astype(np.float64)

    def fit(
        self,
        cov_type: Literal["nonrobust", "bayes", "frequentist", "HC0", "HC1", "cluster"] | None = None,
        groups: Any = None,
        cov: bool | None = None,
    ) -> R:
        """
        Fit the map by (penalised) maximum likelihood.

        Parameters
        ----------
        cov_type : str, optional
            Covariance of the estimates, with J the information and P the penalty's second derivatives. Without a
            penalty "nonrobust" (the default), the inverse of J. With one "bayes" (the default), the inverse of J + P,
            whose intervals cover on average over the coefficients, or "frequentist", that inverse around J. "HC0",
            "HC1" and "cluster" are sandwiches.
        groups : array_like or str, optional
            Clusters for ``cov_type="cluster"``: one label per row, or with `from_formula` the name of a column.
            Overrides the `groups` of the constructor.
        cov : bool, optional
            Whether to make a covariance. The default makes it for up to 40 classes of a full map. At 100 classes it
            takes 0.8 GB, 3.5 GB while it is made, and a minute or two at 5,000 rows. Without it standard errors, edf
            and AIC are NaN.

        Returns
        -------
        SoftmaxResults
            A new results object.

        Raises
        ------
        NotEstimableError
            If a class does not occur and no penalty keeps its coefficients finite, or the map is too large.
        InputError
            If `cov_type` does not go with the penalty, or clusters are needed and not given.

        Warns
        -----
        SeparationWarning, RankWarning, BoundaryWarning, ConvergenceWarning, DataWarning
            Once, when the estimates are not an ordinary optimum.
        """
        results, fit = self._fitted(cov_type, groups, cov)
        self._warn(results, fit, stacklevel=3)
        return results

    def _fitted(self, cov_type: str | None, groups: Any, cov: bool | None) -> tuple[R, MapFit]:
        kind = self._cov_type(cov_type)
        codes = self._clusters(kind, groups)
        self._refuse()
        features, clipped = self._form.features(self._scores)
        penalty = self._quadratic()
        fit = fit_map(self._form, features, self._codes, self._weights, penalty, rtol=self._rtol)
        design = self._form.design(features, self._codes, self._weights)
        state, edf = self._inference(design, fit, kind, codes, cov)
        results = self._results(
            form=self._form,
            state=state,
            estimates=estimates_of(self._form, state, self._classes, self._statistics(design, fit, kind, edf)),
            description=MulticlassDescription(
                classes=self._classes,
                counts=self._counts,
                binary=self._binary,
                clipped=clipped,
                n_dropped=self.n_dropped,
                n_groups=0 if codes is None else int(np.unique(codes).size),
                formula=self.formula,
                notes=self._notes,
            ),
            reader=self._reader(),
            outcome=self.outcome,
            data=MulticlassData(
                scores=self._scores,
                features=features,
                codes=self._codes,
                weights=self._weights,
                index=self._index,
                rtol=self._rtol,
            ),
        )
        return results, fit

    def _reader(self) -> ScoreReader:
        """How scores are found in new data: of bare arrays, columns carry the names of the classes."""
        given = self._data.reader
        return given if self._binary or len(given.names) == len(self._classes) else ScoreReader(names=self._classes)

    def _inference(
        self, design: Design, fit: MapFit, kind: str, groups: IntArray | None, cov: bool | None
    ) -> tuple[MapState, float]:
        """The map with its covariance, and the effective number of parameters."""
        penalty = self._quadratic()
        rank = design.n_free - fit.null.shape[1]
        lost, free_cov, edf = fit.null, None, float(rank) if penalty is None else np.nan
        fixed = fit.null.shape[1] == design.n_free
        if (design.n_free <= _COV_LIMIT if cov is None else cov) and not fixed:
            info = information_at(design, penalty, fit.probabilities, null=fit.null, separated=fit.separated)
            free_cov = free_covariance(design, penalty, fit.theta, fit.probabilities, info, kind, groups)
            lost, rank = info.lost, info.rank
            edf = info.edf if penalty is not None else float(rank)
        elif fixed:
            free_cov = np.zeros((design.n_free, design.n_free))
        state = MapState(
            theta=fit.theta, free_cov=free_cov, lost=lost, penalty=self._penalty, rank=rank, notes=self._map_notes(fit)
        )
        return state, edf

    def _map_notes(self, fit: MapFit) -> tuple[str, ...]:
        notes = [] if self._how_chosen is None else [self._how_chosen]
        if fit.bound is not None:
            notes.append(f"T lies at the {fit.bound} end of [0.001, 1000], so it has no standard error.")
        elif count := self._undetermined(fit):
            cause = "some scores are linear functions of others (the sum of a row's logits is often constant)"
            if self._form.kind == "VectorScaling":
                cause = "the scores of a class are constant, or those of all classes are one and the same up to scale"
            notes.append(
                f"{count} direction(s) of the coefficients are not determined: {cause}. They were left where the "
                "identity map has them."
            )
        return tuple(notes)

    def _undetermined(self, fit: MapFit) -> int:
        """Directions that the data leave open, but for the slope that a reference class does not have."""
        absent = self._form.reference is not None and self._form.slopes == "class"
        return fit.null.shape[1] - int(absent)

    def _statistics(self, design: Design, fit: MapFit, kind: str, edf: float) -> dict[str, Any]:
        penalty, n = self._quadratic(), self.nobs
        loss, objective = losses(design, penalty, self._form.identity(len(self._classes)))
        counts = self._counts
        seen = counts[counts > 0.0]
        names = self._form.names(self._classes)
        return {
            "cov_type": kind,
            "llf": -n * fit.loss,
            "llf_identity": -n * loss,
            "llf_null": float((seen * np.log(seen / n)).sum()),
            "objective": -n * fit.objective,
            "objective_identity": -n * objective,
            "df_model": edf,
            "nobs": n,
            "converged": fit.converged,
            "separated": fit.separated,
            "n_iter": fit.n_iter,
            "gradient": fit.gradient_norm,
            "at_bound": np.full(len(names), fit.bound is not None),
            "penalty": None if self._penalty is None else str(self._penalty),
        }

    def _quadratic(self) -> QuadraticPenalty | None:
        return None if self._penalty is None else self._penalty.quadratic(len(self._classes))

    def _cov_type(self, cov_type: str | None) -> str:
        penalised = self._penalty is not None
        if cov_type is None:
            return "bayes" if penalised else "nonrobust"
        check_choice("cov_type", cov_type, tuple(COV_NAMES))
        if penalised and cov_type == "nonrobust":
            raise InputError("`cov_type`='nonrobust' is for fits without a penalty; use 'bayes' or 'frequentist'.")
        if not penalised and cov_type in {"bayes", "frequentist"}:
            raise InputError(f"`cov_type`={cov_type!r} is for penalised fits; use 'nonrobust'.")
        return cov_type

    def _clusters(self, cov_type: str, groups: Any) -> IntArray | None:
        codes = self._groups
        if groups is not None:
            if cov_type != "cluster":
                raise InputError(f"`groups` goes with cov_type='cluster', not {cov_type!r}.")
            codes = check_groups(self._data.follow(groups), self._codes.size)
        if cov_type != "cluster":
            return None
        if codes is None:
            raise InputError("`groups` must name the cluster of each row for cov_type='cluster'.")
        return codes

    def _refuse(self) -> None:
        """Refuse what has no answer: an unseen class without a penalty, or a map beyond memory."""
        K = len(self._classes)
        need = 24.0 * K * (K + 1) ** 2
        if self._form.kind in FULL and need > _MEMORY_LIMIT:
            raise NotEstimableError(
                f"{self._form.kind} with {K} classes has {K * (K + 1)} coefficients and needs about "
                f"{need / 1e9:.0f} GB to fit; use TemperatureScaling or VectorScaling."
            )
        unseen = [c for c, count in zip(self._classes, self._counts, strict=True) if count == 0.0]
        if unseen and self._penalty is None and self._form.kind != "TemperatureScaling":
            raise NotEstimableError(
                f"class {unseen[0]!r} does not occur in the outcome ({len(unseen)} of {K} classes), so that its "
                "coefficients run to infinity; use a penalty (MatrixScaling, DirichletCalibration) or "
                "TemperatureScaling, or drop its column."
            )

    def _warn(self, results: SoftmaxResults, fit: MapFit, stacklevel: int) -> None:
        """One warning, of the gravest thing that makes the estimates less than an ordinary optimum."""
        found = self._fault(results, fit)
        if found is not None:
            warnings.warn(f"{self._form.kind}: {found[1]}", found[0], stacklevel=stacklevel)

    def _fault(self, results: SoftmaxResults, fit: MapFit) -> tuple[type[CalstatWarning], str] | None:
        unseen = [c for c, count in zip(self._classes, self._counts, strict=True) if count == 0.0]
        if fit.separated:
            cure = "Use a penalty."
            if self._form.kind == "TemperatureScaling":
                cure = "Fit it to rows that the scores do not all get right."
            elif self._penalty is not None:
                cure = (
                    "The penalty is too weak, or leaves free what grows, as ODIR leaves the diagonal: use a stronger "
                    "one, L2, or a larger `eps`."
                )
            return SeparationWarning, (
                "the scores separate classes, so the likelihood has no finite maximum; coefficients are those of the "
                f"last step, and what is not determined has no standard error. {cure}"
            )
        if fit.bound is not None:
            return BoundaryWarning, (
                f"T lies at the {fit.bound} end of [0.001, 1000] and has no standard error. Check the scale of the "
                "scores, and that larger scores mean more likely classes."
            )
        if not fit.converged:
            if fit.gap <= _FLAT:
                return ConvergenceWarning, (
                    "the objective is so flat that rounding hides its minimum, which may be far in the coefficients "
                    f"although only {fit.gap:.1g} is left to gain for each observation. Use a stronger penalty, "
                    "or a larger `eps`."
                )
            return ConvergenceWarning, (
                f"the optimiser stopped at gradient {fit.gradient_norm:.2g}. Its own estimate of what is left to gain, "
                f"{fit.gap:.1g} for each observation, is good only near the optimum, which may be far. Use a stronger "
                "penalty, or a larger `eps`."
            )
        if count := self._undetermined(fit):
            cure = "Use a penalty, or a smaller map." if self._form.kind in FULL else "Use a smaller map."
            return RankWarning, (
                f"{count} direction(s) of the coefficients are not determined by the scores (rank {results.rank}); "
                f"what depends on them has no standard error. Predictions are right. {cure}"
            )
        if len(unseen) == len(self._classes) - 1:
            only = next(c for c in self._classes if c not in unseen)
            return DataWarning, f"every outcome is {only!r}; a map fitted to one class says nothing about the others."
        if unseen and self._penalty is not None:
            return DataWarning, f"class {unseen[0]!r} does not occur; only the penalty keeps its coefficients finite."
        return None


def _precision(scores: Any) -> str:
    """Least precise float type among the scores."""
    dtypes = [str(t) for t in scores.dtypes] if isinstance(scores, pd.DataFrame) else [str(np.asarray(scores).dtype)]
    for name in ("float16", "float32"):
        if any(t.lower() == name for t in dtypes):
            return name
    return "float64"
