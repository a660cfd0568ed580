"""Calibration maps for a binary outcome: Platt scaling, logistic recalibration and beta calibration."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Generic, Literal, TypeVar

import numpy as np

from calstat._arrays.binomial import Penalty
from calstat._arrays.covariance import sandwich
from calstat._arrays.linear_maps import BETA_PARAMETERS, LinearMap, linear_map
from calstat._arrays.logistic import LogisticFit, fit_logistic, loglikelihood, score_rows
from calstat._binary_map import BinaryData, BinaryDescription, event_counts, read_rows
from calstat._data import ModelData, read_arrays
from calstat._input.validation import check_choice, check_eps, check_groups
from calstat._typing import FloatArray, IntArray, Label, Scale
from calstat.base import CalibrationModel
from calstat.binary.results import (
    BetaCalibrationResults,
    BinaryResults,
    LogisticCalibrationResults,
    PlattScalingResults,
)
from calstat.exceptions import (
    BoundaryWarning,
    ConvergenceWarning,
    InputError,
    NotDefinedError,
    NotEstimableError,
    RankWarning,
    SeparationWarning,
)
from calstat.likelihood import COV_TYPES, Estimates

R = TypeVar("R", bound=BinaryResults)


class _BinaryModel(CalibrationModel, Generic[R]):
    """What Platt scaling, logistic and beta calibration share: reading the data, and the fit."""

    _results: ClassVar[type[Any]]  # R, which a class variable cannot name
    _form: LinearMap

    def _read(self, data: ModelData, form: LinearMap, event: Label | None, penalty: Penalty) -> None:
        check_choice("penalty", penalty, (None, "firth"))
        sample = read_rows(form.kind, data, form.scale, event)
        self._data = data
        self._form = form
        self._penalty = penalty
        self._sample = sample
        self._groups = None if data.groups is None else check_groups(data.groups, sample.y.size)
        self.nobs = sample.nobs

    @property
    def event(self) -> Label:
        """The label whose probability is calibrated."""
        return self._sample.event

    @property
    def endog(self) -> FloatArray:
        """Targets (n,): 1 for the event, 0 otherwise, or Platt's corrected ones."""
        return self._target().copy()

    @property
    def exog(self) -> FloatArray:
        """Columns of the linear predictor (n, k), in the order of `exog_names`."""
        return np.stack(self._form.design(self._sample.p)[0], axis=1)

    @property
    def exog_names(self) -> list[str]:
        """Names of the coefficients."""
        return list(self._form.names)

    def _target(self) -> FloatArray:
        return self._sample.y

    def _counts(self) -> tuple[float, float]:
        """Number of events and of non-events, weights counted."""
        return event_counts(self._sample.y, self._sample.weights)

    def fit(
        self,
        cov_type: Literal["nonrobust", "HC0", "HC1", "cluster"] = "nonrobust",
        groups: Any = None,
    ) -> R:
        """
        Fit the map by maximum likelihood.

        Parameters
        ----------
        cov_type : {"nonrobust", "HC0", "HC1", "cluster"}, default "nonrobust"
            Covariance of the estimates: inverse information; sandwich; sandwich times n/(n - k); sandwich of
            cluster sums times G/(G - 1) (n - 1)/(n - k). n is the sum of the weights, as weights are copies.
        groups : array_like or str, optional
            Clusters for ``cov_type="cluster"``: one label per row (of the original data or of the rows kept), or
            with `from_formula` the name of a column. Overrides the `groups` of the constructor.

        Returns
        -------
        BinaryResults
            A new results object.

        Raises
        ------
        InputError
            If clusters are needed and not given, or given and not needed.

        Warns
        -----
        SeparationWarning, RankWarning, BoundaryWarning, ConvergenceWarning
            Once, when the estimates are not an ordinary optimum.
        """
        check_choice("cov_type", cov_type, COV_TYPES)
        codes = self._clusters(cov_type, groups)
        results, fit = self._fit_map(self._form, cov_type, codes)
        self._warn(fit)
        return results

    def _fit_map(self, form: LinearMap, cov_type: Any, codes: IntArray | None) -> tuple[R, LogisticFit]:
        """Fit one kind of map to the data of the model, without warnings."""
        sample, target = self._sample, self._target()
        columns, offset = form.design(sample.p)
        fit = fit_logistic(
            columns, target, weights=sample.weights, offset=offset, lower=form.lower, penalty=self._penalty
        )
        cov = fit.covariance
        if cov_type != "nonrobust":
            scores = score_rows(columns, target, fit.params, offset=offset)
            cov = sandwich(scores, cov, cov_type, weights=sample.weights, groups=codes)
        events, nonevents = self._counts()
        results = self._results(
            form=form,
            estimates=self._estimates(form, fit, cov, cov_type),
            description=BinaryDescription(
                event=sample.event,
                nonevent=sample.nonevent,
                events=events,
                nonevents=nonevents,
                clipped=form.clipped(sample.p),
                n_dropped=self.n_dropped,
                n_groups=0 if codes is None else int(np.unique(codes).size),
                formula=self.formula,
                notes=(*sample.notes, *_doubts(form, sample.p)),
            ),
            reader=self._data.reader,
            outcome=self.outcome,
            data=BinaryData(scores=sample.p, target=target, weights=sample.weights, index=sample.index),
            fit=fit,
        )
        return results, fit

    def _clusters(self, cov_type: str, groups: Any) -> IntArray | None:
        codes = self._groups
        if groups is not None:
            if cov_type != "cluster":
                raise InputError(f"`groups` goes with cov_type='cluster', not {cov_type!r}.")
            codes = check_groups(self._data.follow(groups), self._sample.y.size)
        if cov_type != "cluster":
            return None
        if codes is None:
            raise InputError("`groups` must name the cluster of each row for cov_type='cluster'.")
        return codes

    def _estimates(self, form: LinearMap, fit: LogisticFit, cov: FloatArray, cov_type: str) -> Estimates:
        weights, target = self._sample.weights, self._target()
        columns, offset = form.design(self._sample.p)
        at_identity = objective_identity = np.nan
        if form.identity is not None:
            at_identity = objective_identity = loglikelihood(
                columns, target, form.identity, weights=weights, offset=offset
            )
            if self._penalty is not None:
                objective_identity = fit_logistic(
                    columns, target, weights=weights, offset=offset, fixed=form.identity, penalty="firth"
                ).penalized_llf
        mean = float(target.mean() if weights is None else target @ weights / weights.sum())
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = np.array([mean, 1.0 - mean]) * np.log([mean, 1.0 - mean])
        return Estimates(
            names=form.names,
            params=fit.params,
            cov=cov,
            cov_type=cov_type,
            identity=form.identity,
            llf=fit.llf,
            llf_identity=at_identity,
            llf_null=self.nobs * float(np.nansum(parts)),
            objective=fit.penalized_llf,
            objective_identity=objective_identity,
            df_model=float(fit.rank),
            nobs=self.nobs,
            converged=fit.converged,
            separated=fit.separated,
            n_iter=fit.n_iter,
            gradient=fit.gradient,
            at_bound=fit.at_bound,
            penalty=self._penalty,
        )

    def _warn(self, fit: LogisticFit) -> None:
        """One warning, of the gravest thing that makes the estimates less than an ordinary optimum."""
        kind = self._form.kind
        if fit.separated:
            events, nonevents = self._counts()
            if min(events, nonevents) == 0.0:
                only = self._sample.event if events else self._sample.nonevent
                cause = f"every outcome is {only!r}"
            else:
                cause = "the scores separate events from non-events, completely or but for ties"
            message = (
                f"{kind}: {cause}, so the likelihood has no finite maximum; coefficients are those of the last step "
                "and standard errors are NaN. Refit with penalty='firth'."
            )
            warnings.warn(message, SeparationWarning, stacklevel=3)
        elif fit.rank < len(self._form.names):
            message = (
                f"{kind}: the scores take too few distinct values to determine {len(self._form.names)} coefficients "
                f"(rank {fit.rank}); standard errors of what is not determined are NaN. Predictions at the observed "
                "scores are right. Fit a map with fewer coefficients."
            )
            warnings.warn(message, RankWarning, stacklevel=3)
        elif not fit.converged:
            message = f"{kind}: the optimiser stopped at gradient {fit.gradient:.2g}; do not rely on the estimates."
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
        elif fit.at_bound.any():
            held = ", ".join(name for name, b in zip(self._form.names, fit.at_bound, strict=True) if b)
            message = (
                f"{kind}: {held} lies at its bound 0 (monotone=True), and has no standard error; the data ask for a "
                "decreasing map. Check the direction of the scores."
            )
            warnings.warn(message, BoundaryWarning, stacklevel=3)


def _doubts(form: LinearMap, scores: FloatArray) -> tuple[str, ...]:
    """Remarks on scores that may not be what they were said to be."""
    if form.scale == "margin" and scores.min() >= 0.0 and scores.max() <= 1.0:
        remark = (
            "All scores lie in [0, 1] and were taken as margins; if they are probabilities, scores='probability' "
            "takes their log odds and makes the identity map testable."
        )
        return (remark,)
    return ()


class PlattScaling(_BinaryModel[PlattScalingResults]):
    r"""
    Platt scaling: a logistic curve from a score of any scale to a probability.

    .. math:: q = \operatorname{expit}(\alpha + \beta s)

    Parameters
    ----------
    y : array_like, shape (n,)
        Outcome: 0/1, -1/1, bools, a Categorical with two used levels, or any two labels with `event`.
    p : array_like, shape (n,) or (n, 1)
        Scores: margins, log odds, or probabilities, as `scores` says.
    scores : {"margin", "logit", "probability"}, default "margin"
        What the scores are. Margins have no scale of their own, so the identity map is not defined for them.
        Of probabilities the log odds are taken.
    target_correction : bool, default True
        Fit to Platt's targets :math:`(n_1+1)/(n_1+2)` and :math:`1/(n_0+2)` in place of 1 and 0, with the
        weighted counts of events :math:`n_1` and non-events :math:`n_0`. They keep the fit finite under separation.
    eps : float, default 1e-15
        Probabilities are clipped to ``[eps, 1 - eps]`` before the logit.
    event : label, optional
        The label whose probability is calibrated.
    freq_weights : array_like of whole numbers, shape (n,), optional
        Copies of each row; weight 0 is absence.
    groups : array_like, shape (n,), optional
        Clusters for ``fit(cov_type="cluster")``.
    penalty : {None, "firth"}, default None
        Firth's penalty for small or separated samples (then `target_correction` must be False).
    missing : {"raise", "drop"}, optional
        What to do with missing values; the default drops rows of a DataFrame and refuses them in arrays.

    Raises
    ------
    NotEstimableError
        If one of the two classes does not occur.
    InputError
        If an argument cannot be used; the message says which, where, and what to do.

    See Also
    --------
    LogisticCalibration : The same curve on log odds, tested against the identity map.

    Notes
    -----
    Tied scores need no care. Standard errors are conditional on corrected targets, and AIC and BIC are then NaN.

    References
    ----------
    Platt, J. (1999). Probabilistic outputs for support vector machines and comparisons to regularized likelihood
    methods. Advances in Large Margin Classifiers, 61-74.
    Lin, H.-T., Lin, C.-J. and Weng, R. C. (2007). A note on Platt's probabilistic outputs for support vector
    machines. Machine Learning 68. https://doi.org/10.1007/s10994-007-5018-6

    Examples
    --------
    >>> import calstat as cs
    >>> res = cs.PlattScaling([0, 0, 1, 0, 1, 1], [-2.1, -1.0, -0.3, 0.4, 0.9, 1.7]).fit()
    >>> res.params.round(3).to_dict()
    {'intercept': 0.036, 'slope': 0.725}

    The slope is the gain in log odds of the event per unit of the score.
    """

    _results = PlattScalingResults

    def __init__(
        self,
        y: Any,
        p: Any,
        *,
        scores: Literal["margin", "logit", "probability"] = "margin",
        target_correction: bool = True,
        eps: float = 1e-15,
        event: Label | None = None,
        freq_weights: Any = None,
        groups: Any = None,
        penalty: Literal["firth"] | None = None,
        missing: Literal["raise", "drop"] | None = None,
    ) -> None:
        data = read_arrays(y, p, freq_weights=freq_weights, groups=groups, missing=missing)
        self._setup(data, scores=scores, target_correction=target_correction, eps=eps, event=event, penalty=penalty)

    def _setup(  # type: ignore[override]  # the options of this model
        self,
        data: ModelData,
        *,
        scores: str = "margin",
        target_correction: bool = True,
        eps: float = 1e-15,
        event: Label | None = None,
        penalty: Penalty = None,
    ) -> None:
        check_choice("scores", scores, ("margin", "logit", "probability"))
        check_choice("target_correction", target_correction, (True, False))
        if penalty is not None and target_correction:
            raise NotDefinedError(
                "penalty='firth' and target_correction=True are two cures for one problem; choose one of them."
            )
        form = linear_map("PlattScaling", scores=scores, eps=check_eps(eps), target_correction=target_correction)
        self._read(data, form, event, penalty)
        events, nonevents = self._counts()
        if min(events, nonevents) == 0.0:
            only = self._sample.event if events else self._sample.nonevent
            raise NotEstimableError(f"PlattScaling needs both classes; every outcome is {only!r}.")

    def _target(self) -> FloatArray:
        if not self._form.options["target_correction"]:
            return self._sample.y
        events, nonevents = self._counts()
        return np.where(self._sample.y == 1.0, (events + 1.0) / (events + 2.0), 1.0 / (nonevents + 2.0))


class LogisticCalibration(_BinaryModel[LogisticCalibrationResults]):
    r"""
    Logistic recalibration (Cox): intercept and slope on the log odds of the predicted probability.

    .. math:: q = \operatorname{expit}(\alpha + \beta \operatorname{logit} p)

    A calibrated model has intercept 0 and slope 1. A slope below 1 says that predictions are too extreme, above 1
    that they are not extreme enough. Two intercepts exist, and the results give both by name: *calibration in the
    large*, with the slope fixed at 1, and the intercept fitted jointly with the slope.

    Parameters
    ----------
    y : array_like, shape (n,)
        Outcome: 0/1, -1/1, bools, a Categorical with two used levels, or any two labels with `event`.
    p : array_like, shape (n,), (n, 1) or (n, 2)
        Predicted probabilities, or log odds if `scores` says so. Of two columns the second is the event's, or
        the one under its label.
    scores : {"probability", "logit"}, default "probability"
        The scale of `p`.
    slope : {None, 1}, default None
        None fits the slope; 1 fixes it, which leaves the smallest recalibration: a shift of the log odds.
    eps : float, default 1e-15
        Probabilities are clipped to ``[eps, 1 - eps]`` before the logit; the summary counts the values touched. A
        single p of 0 or 1 with the contrary outcome has leverage that depends on this bound.
    event : label, optional
        The label whose probability is calibrated.
    freq_weights : array_like of whole numbers, shape (n,), optional
        Copies of each row; weight 0 is absence.
    groups : array_like, shape (n,), optional
        Clusters for ``fit(cov_type="cluster")``.
    penalty : {None, "firth"}, default None
        Firth's penalty for small or separated samples.
    missing : {"raise", "drop"}, optional
        What to do with missing values; the default drops rows of a DataFrame and refuses them in arrays.

    Raises
    ------
    InputError
        If an argument cannot be used; the message says which, where, and what to do.

    See Also
    --------
    BetaCalibration : A map with different slopes near 0 and near 1.

    References
    ----------
    Cox, D. R. (1958). Two further applications of a model for binary regression. Biometrika 45.
    https://doi.org/10.1093/biomet/45.3-4.562
    Van Calster, B. et al. (2016). A calibration hierarchy for risk models was defined. Journal of Clinical
    Epidemiology 74. https://doi.org/10.1016/j.jclinepi.2015.12.005

    Examples
    --------
    >>> import calstat as cs
    >>> p = [0.02, 0.11, 0.23, 0.42, 0.58, 0.71, 0.86, 0.97]
    >>> res = cs.LogisticCalibration([0, 1, 0, 1, 0, 1, 0, 1], p).fit()
    >>> res.recalibration_table()["coef"].round(3).tolist()
    [0.088, 0.034, 0.283]

    The slope of 0.283 says that log odds should be shrunk to 0.283 of their size, were it certain; its interval
    says how far it is not.
    """

    _results = LogisticCalibrationResults

    def __init__(
        self,
        y: Any,
        p: Any,
        *,
        scores: Scale = "probability",
        slope: float | None = None,
        eps: float = 1e-15,
        event: Label | None = None,
        freq_weights: Any = None,
        groups: Any = None,
        penalty: Literal["firth"] | None = None,
        missing: Literal["raise", "drop"] | None = None,
    ) -> None:
        data = read_arrays(y, p, freq_weights=freq_weights, groups=groups, missing=missing)
        self._setup(data, scores=scores, slope=slope, eps=eps, event=event, penalty=penalty)

    def _setup(  # type: ignore[override]  # the options of this model
        self,
        data: ModelData,
        *,
        scores: str = "probability",
        slope: float | None = None,
        eps: float = 1e-15,
        event: Label | None = None,
        penalty: Penalty = None,
    ) -> None:
        check_choice("scores", scores, ("probability", "logit"))
        if slope is not None and (isinstance(slope, bool) or slope != 1):
            raise InputError(f"`slope` must be None (fitted) or 1 (fixed), got {slope!r}.")
        fixed = None if slope is None else 1.0
        self._read(
            data, linear_map("LogisticCalibration", scores=scores, eps=check_eps(eps), slope=fixed), event, penalty
        )

    def _fit_map(
        self, form: LinearMap, cov_type: Any, codes: IntArray | None
    ) -> tuple[LogisticCalibrationResults, LogisticFit]:
        results, fit = super()._fit_map(form, cov_type, codes)
        if form.options["slope"] is None:
            shift = linear_map(form.kind, **{**form.options, "slope": 1.0})
            results.attach_in_the_large(super()._fit_map(shift, cov_type, codes)[0])
        return results, fit


class BetaCalibration(_BinaryModel[BetaCalibrationResults]):
    r"""
    Beta calibration: the map of two beta distributions, with shapes that a logistic curve lacks.

    .. math:: q = \operatorname{expit}(a \ln p - b \ln(1 - p) + c)

    A calibrated model has a = 1, b = 1, c = 0. a and b are the slopes of the log odds near 0 and near 1.

    Parameters
    ----------
    y : array_like, shape (n,)
        Outcome: 0/1, -1/1, bools, a Categorical with two used levels, or any two labels with `event`.
    p : array_like, shape (n,), (n, 1) or (n, 2)
        Predicted probabilities. Of two columns the second is the event's, or the one under its label.
    parameters : {"abm", "ab", "am", "a"}, default "abm"
        "abm": a, b and c free. "am": a = b, a logistic recalibration. "ab": the map keeps 1/2 in place,
        c = (a - b) ln 2. "a": a = b and c = 0, a temperature.
    monotone : bool, default False
        Keep a and b at 0 or above, as Kull et al. do; the constrained optimum is found exactly, and a
        coefficient at 0 is reported as at its bound, without a standard error.
    eps : float, default 1e-15
        Probabilities are clipped to ``[eps, 1 - eps]`` before logs; the summary counts the values touched. A
        single p of 0 or 1 with the contrary outcome has leverage that depends on this bound.
    event : label, optional
        The label whose probability is calibrated.
    freq_weights : array_like of whole numbers, shape (n,), optional
        Copies of each row; weight 0 is absence.
    groups : array_like, shape (n,), optional
        Clusters for ``fit(cov_type="cluster")``.
    penalty : {None, "firth"}, default None
        Firth's penalty for small or separated samples.
    missing : {"raise", "drop"}, optional
        What to do with missing values; the default drops rows of a DataFrame and refuses them in arrays.

    Raises
    ------
    InputError
        If an argument cannot be used; the message says which, where, and what to do.

    See Also
    --------
    LogisticCalibration : One slope and an intercept.

    References
    ----------
    Kull, M., Silva Filho, T. and Flach, P. (2017). Beyond sigmoids: how to obtain well-calibrated probabilities
    from binary classifiers with beta calibration. Electronic Journal of Statistics 11.
    https://doi.org/10.1214/17-EJS1338SI

    Examples
    --------
    >>> import calstat as cs
    >>> p = [0.02, 0.11, 0.23, 0.42, 0.58, 0.71, 0.86, 0.97]
    >>> res = cs.BetaCalibration([0, 1, 0, 1, 0, 1, 0, 1], p).fit()
    >>> round(res.test_identity().pvalue, 2)
    0.44

    The p-value is the share of calibrated models that would look at least as far from the identity map, so 0.44
    is no evidence against calibration.
    """

    _results = BetaCalibrationResults

    def __init__(
        self,
        y: Any,
        p: Any,
        *,
        parameters: Literal["abm", "ab", "am", "a"] = "abm",
        monotone: bool = False,
        eps: float = 1e-15,
        event: Label | None = None,
        freq_weights: Any = None,
        groups: Any = None,
        penalty: Literal["firth"] | None = None,
        missing: Literal["raise", "drop"] | None = None,
    ) -> None:
        data = read_arrays(y, p, freq_weights=freq_weights, groups=groups, missing=missing)
        self._setup(data, parameters=parameters, monotone=monotone, eps=eps, event=event, penalty=penalty)

    def _setup(  # type: ignore[override]  # the options of this model
        self,
        data: ModelData,
        *,
        parameters: str = "abm",
        monotone: bool = False,
        eps: float = 1e-15,
        event: Label | None = None,
        penalty: Penalty = None,
    ) -> None:
        check_choice("parameters", parameters, BETA_PARAMETERS)
        check_choice("monotone", monotone, (True, False))
        if monotone and penalty is not None:
            raise NotDefinedError("monotone=True and penalty='firth' cannot be combined; choose one of them.")
        form = linear_map("BetaCalibration", parameters=parameters, monotone=monotone, eps=check_eps(eps))
        self._read(data, form, event, penalty)


__all__ = ["BetaCalibration", "LogisticCalibration", "PlattScaling"]
