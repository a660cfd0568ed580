"""Results of maps that are fitted by maximum likelihood: coefficients with inference, tests, fit statistics.

Binary and multiclass maps share all of this. Parameters are flat and named, so that one covariance matrix,
one Wald test and one coefficient table serve every map.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import patsy
from statsmodels.iolib.summary import Summary

from calstat._arrays.covariance import (
    WaldForm,
    lr_form,
    normal_quantile,
    normal_two_sided,
    standard_errors,
    wald_form,
)
from calstat._input.validation import as_float, check_alpha, check_choice
from calstat._results import (
    CalibrationTest,
    format_count,
    format_number,
    format_pvalue,
    info_table,
    make_summary,
    number_table,
)
from calstat._typing import BoolArray, FloatArray
from calstat.base import CalibrationResults
from calstat.exceptions import InputError, NotDefinedError

COV_TYPES = ("nonrobust", "HC0", "HC1", "cluster")
_COV_NAMES = {
    "nonrobust": "model-based (inverse information)",
    "HC0": "robust sandwich (HC0)",
    "HC1": "robust sandwich with n/(n - k) (HC1)",
    "cluster": "cluster-robust sandwich",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """
    The numbers of a fit that inference needs, without the data.

    `names` (k,); `params` (k,); `cov` (k, k), NaN in rows of what is not estimable; `identity` (k,) the
    parameters of the identity map, or None where the map has none; `llf`, `llf_identity` and `llf_null`
    log-likelihoods of the fit, of the identity map and of a constant probability (under a penalty `objective`
    and `objective_identity` hold the penalised ones); `df_model` free or effective parameters; `nobs` sum of
    weights; `at_bound` (k,).
    """

    names: tuple[str, ...]
    params: FloatArray
    cov: FloatArray
    cov_type: str
    identity: FloatArray | None
    llf: float
    llf_identity: float
    llf_null: float
    objective: float
    objective_identity: float
    df_model: float
    nobs: float
    converged: bool
    separated: bool
    n_iter: int
    gradient: float
    at_bound: BoolArray
    penalty: str | None

    def to_state(self) -> dict[str, Any]:
        """Fields by name, for storage."""
        return {field: getattr(self, field) for field in self.__slots__}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Estimates:
        """Build from what `to_state` gave, after JSON."""
        values = {field: state[field] for field in cls.__slots__}
        for field in ("params", "cov", "identity"):
            if values[field] is not None:
                values[field] = np.asarray(values[field], dtype=np.float64)
        k = len(values["names"])
        values |= {"names": tuple(values["names"]), "at_bound": np.asarray(values["at_bound"], dtype=bool)}
        values["cov"] = values["cov"].reshape(k, k)
        return cls(**values)


class LikelihoodResults(CalibrationResults):
    """
    A map fitted by maximum likelihood.

    Attributes
    ----------
    params, bse, tvalues, pvalues : Series
        Estimates, standard errors, z statistics and two-sided p-values of H0: coefficient = 0.
    identity : Series or None
        The coefficients of the identity map, which is the map of a calibrated model: the null hypothesis of
        interest.
    llf, llf_identity, llf_null : float
        Log-likelihood of the fit, of the identity map, and of one constant probability.
    aic, bic, deviance : float
        Fit statistics.
    nobs, df_model, df_resid : float
        Observations, free parameters and the difference.
    converged : bool
        Whether the optimum was reached.
    """

    _estimates: Estimates
    # Kinds of covariance that come from the likelihood that profile limits belong to.
    _profiled: ClassVar[tuple[str, ...]] = ("nonrobust",)

    # -- estimates -----------------------------------------------------------------------------------

    @property
    def params(self) -> pd.Series:
        """Estimated coefficients."""
        return self._labelled(self._estimates.params, "params")

    @property
    def bse(self) -> pd.Series:
        """Standard errors; NaN where a coefficient is not estimable or lies at a bound."""
        return self._labelled(standard_errors(self._estimates.cov), "bse")

    @property
    def tvalues(self) -> pd.Series:
        """Coefficients over their standard errors: z statistics of H0: coefficient = 0."""
        return (self.params / self.bse).rename("tvalues")

    @property
    def pvalues(self) -> pd.Series:
        """Two-sided normal p-values of H0: coefficient = 0."""
        return self._labelled(normal_two_sided(self.tvalues.to_numpy()), "pvalues")

    @property
    def identity(self) -> pd.Series | None:
        """Coefficients of the identity map, or None where the map cannot be the identity."""
        identity = self._estimates.identity
        return None if identity is None else self._labelled(identity, "identity")

    def _labelled(self, values: FloatArray, name: str) -> pd.Series:
        return pd.Series(np.array(values), index=list(self._estimates.names), name=name)

    def cov_params(self) -> pd.DataFrame:
        """
        Covariance matrix of the estimates.

        Returns
        -------
        DataFrame, shape (k, k)
            Of the kind asked for by ``fit(cov_type=...)``; NaN for what is not estimable.
        """
        names = list(self._estimates.names)
        return pd.DataFrame(self._estimates.cov.copy(), index=names, columns=names)

    # -- fit statistics ------------------------------------------------------------------------------

    @property
    def nobs(self) -> float:  # type: ignore[override]  # an attribute in the base class, derived here
        """Number of observations, weights counted."""
        return self._estimates.nobs

    @property
    def llf(self) -> float:
        """Log-likelihood at the estimates, without any penalty."""
        return self._estimates.llf

    @property
    def llf_identity(self) -> float:
        """Log-likelihood of the scores taken as they are; NaN where the map cannot be the identity."""
        return self._estimates.llf_identity

    @property
    def llf_null(self) -> float:
        """Log-likelihood of one constant probability."""
        return self._estimates.llf_null

    @property
    def deviance(self) -> float:
        """Minus twice the log-likelihood."""
        return -2.0 * self._estimates.llf

    @property
    def df_model(self) -> float:
        """Number of free parameters; the effective number under a penalty."""
        return self._estimates.df_model

    @property
    def df_resid(self) -> float:
        """Observations less free parameters."""
        return self._estimates.nobs - self._estimates.df_model

    @property
    def aic(self) -> float:
        """Akaike's criterion, ``-2 llf + 2 df_model``."""
        return -2.0 * self.llf + 2.0 * self.df_model

    @property
    def bic(self) -> float:
        """Bayesian (Schwarz) criterion, ``-2 llf + log(nobs) df_model``."""
        return -2.0 * self.llf + float(np.log(self.nobs)) * self.df_model

    @property
    def converged(self) -> bool:
        """Whether the optimum was reached."""
        return self._estimates.converged

    @property
    def cov_type(self) -> str:
        """Kind of covariance: "nonrobust", "HC0", "HC1", "cluster", ..."""
        return self._estimates.cov_type

    # -- intervals and tests -------------------------------------------------------------------------

    @property
    def default_interval(self) -> str:
        """Kind of interval that `conf_int` gives unless told otherwise."""
        return "wald"

    @cached_property
    def _limits(self) -> dict[float, FloatArray]:
        """Profile limits computed so far, by alpha."""
        return {}

    def conf_int(self, alpha: float = 0.05, method: str | None = None) -> pd.DataFrame:
        """
        Confidence intervals of the coefficients.

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the confidence level.
        method : {"wald", "profile"}, optional
            Wald intervals are estimate ± z standard errors. Profile-likelihood intervals hold the values that
            a likelihood-ratio test does not reject; they are not symmetric, need the data and take longer.
            Under a penalty the penalised likelihood is profiled: as with Wald limits from the inverse of information
            plus penalty, the penalty counts as prior knowledge, and coverage holds on average over coefficients, as
            far as the penalty suits the data. The default is `default_interval`.

        Returns
        -------
        DataFrame, shape (k, 2)
            Columns "lower" and "upper".

        Raises
        ------
        NotDefinedError
            If profile limits are asked for with a robust or frequentist covariance, which has no likelihood to profile.
        """
        alpha = check_alpha(alpha)
        method = self.default_interval if method is None else method
        check_choice("method", method, ("wald", "profile"))
        if method == "wald":
            z, se = normal_quantile(alpha), standard_errors(self._estimates.cov)
            limits = np.column_stack([self._estimates.params - z * se, self._estimates.params + z * se])
        else:
            if self.cov_type not in self._profiled:
                known = " or ".join(repr(kind) for kind in self._profiled)
                raise NotDefinedError(
                    f"profile-likelihood limits go with cov_type={known}, not {self.cov_type!r}; use method='wald'."
                )
            if alpha not in self._limits:
                self._limits[alpha] = self._profile(alpha)
            limits = self._limits[alpha]
        return pd.DataFrame(limits.copy(), index=list(self._estimates.names), columns=["lower", "upper"])

    @abstractmethod
    def _profile(self, alpha: float) -> FloatArray:
        """Profile-likelihood limits (k, 2)."""

    def wald_test(self, constraints: Any) -> CalibrationTest:
        """
        Wald test of linear hypotheses about the coefficients.

        Parameters
        ----------
        constraints : str, dict, or (R, q)
            ``"a = 1, b = 1, c = 0"`` in the names of the coefficients, ``{"a": 1, "b": 1}``, or a matrix R
            (m, k) and values q (m,) for ``R params = q``.

        Returns
        -------
        CalibrationTest
            Chi-square statistic with as many degrees of freedom as there are independent hypotheses.

        Raises
        ------
        InputError
            If a name is unknown or the hypotheses are not linear.
        """
        R, q, words = self._constraint(constraints)
        form = wald_form(self._estimates.params, self._estimates.cov, R, q)
        note = None
        if np.isnan(form[0]):
            note = "The hypothesis involves a coefficient that is not estimable, or that lies at its bound."
        return self._test("Wald test of linear hypotheses", words, "wald", form, note)

    def _constraint(self, constraints: Any) -> tuple[FloatArray, FloatArray, str]:
        names = list(self._estimates.names)
        if isinstance(constraints, Mapping):
            lost = [name for name in constraints if name not in names]
            if lost:
                raise InputError(f"`constraints` names {lost[0]!r}; the coefficients are {', '.join(names[:8])}.")
            R = np.zeros((len(constraints), len(names)))
            R[np.arange(len(constraints)), [names.index(name) for name in constraints]] = 1.0
            values = as_float(list(constraints.values()), "constraints")
            return R, values, ", ".join(f"{name} = {value:g}" for name, value in constraints.items())
        if isinstance(constraints, str):
            try:
                form = patsy.DesignInfo(names).linear_constraint(constraints)
            except (patsy.PatsyError, ValueError) as error:
                reason = str(error).strip().splitlines()[0]
                known = ", ".join(names[:8])
                raise InputError(
                    f"`constraints` {constraints!r} cannot be read: {reason}. The coefficients are {known}."
                ) from error
            return np.asarray(form.coefs), np.asarray(form.constants)[:, 0], constraints
        R, q = constraints if isinstance(constraints, tuple) else (constraints, 0.0)
        R = np.atleast_2d(as_float(R, "R"))
        if R.shape[1] != len(names):
            raise InputError(f"`R` must have one column per coefficient ({len(names)}), got shape {R.shape}.")
        q = np.broadcast_to(as_float(q, "q"), (R.shape[0],))
        return R, q, "R params = q"

    def test_identity(self, method: str | None = None) -> CalibrationTest:
        """
        Test of the identity map, the map of a calibrated model.

        Parameters
        ----------
        method : {"lr", "wald", "score"}, optional
            Likelihood-ratio, Wald or score test. The default is "lr", and "wald" with a robust covariance.

        Returns
        -------
        CalibrationTest
            With as many degrees of freedom as the map has free coefficients.

        Raises
        ------
        NotDefinedError
            If the map cannot be the identity, or the method does not go with the covariance.
        """
        method = method or ("lr" if self.cov_type == "nonrobust" else "wald")
        check_choice("method", method, ("lr", "wald", "score"))
        estimates = self._estimates
        if estimates.identity is None:
            raise NotDefinedError(self._why_no_identity())
        if method == "wald":
            R = np.eye(len(estimates.names))
            form = wald_form(estimates.params, estimates.cov, R, estimates.identity)
        elif self.cov_type != "nonrobust":
            raise NotDefinedError(
                f"the {method} test goes with cov_type='nonrobust', not {self.cov_type!r}; use method='wald'."
            )
        elif method == "lr":
            form = lr_form(estimates.objective, estimates.objective_identity, round(estimates.df_model))
        else:
            form = self._score_test()
        note = None
        if np.isnan(form[0]):
            note = "A coefficient is not estimable, or lies at its bound; the likelihood-ratio and score tests hold."
        return self._test(f"Test of the identity map, {self.kind}", self._null_in_words(), method, form, note)

    def _null_in_words(self) -> str:
        e = self._estimates
        pairs = zip(e.names, [] if e.identity is None else e.identity, strict=True)
        return "the scores are calibrated: " + ", ".join(f"{name} = {value:g}" for name, value in pairs)

    @abstractmethod
    def _score_test(self) -> WaldForm:
        """Score statistic of the identity map, its degrees of freedom and p-value."""

    @abstractmethod
    def _why_no_identity(self) -> str:
        """Say why the identity cannot be tested."""

    def _test(self, name: str, null: str, method: str, form: WaldForm, note: str | None = None) -> CalibrationTest:
        statistic, df, pvalue = form
        return CalibrationTest(
            name=name,
            null=null,
            statistic=float(statistic),
            pvalue=float(pvalue),
            df=float(df),
            distribution="chi2",
            method=method,
            nobs=self.nobs,
            note=note,
        )

    # -- printing ------------------------------------------------------------------------------------

    def coefficient_table(self, alpha: float = 0.05, method: str | None = None) -> pd.DataFrame:
        """
        The coefficients with their inference, as printed in the summary.

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the confidence level of the intervals.
        method : {"wald", "profile"}, optional
            Kind of interval, as in `conf_int`.

        Returns
        -------
        DataFrame, shape (k, 9)
            Columns coef, se, z, pvalue (of H0: coefficient = 0), lower, upper, and identity, z_identity,
            pvalue_identity (of H0: coefficient = its value in the identity map; NaN where there is none).
        """
        estimates = self._estimates
        limits = self.conf_int(alpha, method)
        identity = np.full(len(estimates.names), np.nan) if estimates.identity is None else estimates.identity
        z_identity = (estimates.params - identity) / standard_errors(estimates.cov)
        return pd.DataFrame(
            {
                "coef": self.params,
                "se": self.bse,
                "z": self.tvalues,
                "pvalue": self.pvalues,
                "lower": limits["lower"],
                "upper": limits["upper"],
                "identity": identity,
                "z_identity": z_identity,
                "pvalue_identity": normal_two_sided(z_identity),
            }
        )

    def summary(self, alpha: float = 0.05) -> Summary:
        """
        Tables that describe the fit.

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the confidence level of the intervals.

        Returns
        -------
        statsmodels.iolib.summary.Summary
            Fit statistics, coefficients tested against 0 and against the identity map, tests of the identity
            map, notes. ``as_html()`` and ``as_latex()`` give the other forms.
        """
        alpha = check_alpha(alpha)
        tables = [info_table(self._title(), self._information()), *self._coefficient_tables(alpha)]
        return make_summary(tables, self._notes(alpha))

    @abstractmethod
    def _title(self) -> str:
        """Heading of the summary."""

    def _information(self) -> list[tuple[str, str]]:
        """Fit statistics as pairs of name and value."""
        e = self._estimates
        entries = [
            ("Observations", format_count(e.nobs)),
            ("Free parameters", format_count(round(e.df_model, 2))),
            ("Covariance", e.cov_type),
            ("Converged", "yes" if e.converged else "no"),
            ("Log-likelihood", format_number(e.llf, 3)),
            ("LL, identity map", format_number(e.llf_identity, 3)),
            ("LL, constant", format_number(e.llf_null, 3)),
            ("AIC", format_number(self.aic, 2)),
            ("BIC", format_number(self.bic, 2)),
        ]
        return [entry for entry in entries if entry[1] != "nan"]

    def _coefficient_tables(self, alpha: float) -> list[Any]:
        return [self._print_coefficients(self.coefficient_table(alpha), alpha)]

    def _print_coefficients(self, table: pd.DataFrame, alpha: float) -> Any:
        """A frame with the columns of `coefficient_table` as a table of text."""
        headers = ["coef", "std err", f"[{alpha / 2:.4g}", f"{1 - alpha / 2:.4g}]", "z (0)", "P>|z|"]
        with_identity = self._estimates.identity is not None
        if with_identity:
            headers += ["identity", "z (id)", "P>|z|"]
        rows = []
        for coef, se, z, p, low, high, identity, z_identity, p_identity in table.to_numpy():
            cells = [format_number(v) for v in (coef, se, low, high)] + [format_number(z, 2), format_pvalue(p)]
            if with_identity:
                cells += [f"{identity:g}", format_number(z_identity, 2), format_pvalue(p_identity)]
            rows.append(cells)
        return number_table(rows, headers, list(table.index))

    def _notes(self, alpha: float) -> list[str]:
        """Remarks under the tables."""
        del alpha
        e = self._estimates
        notes = [
            f"Covariance: {_COV_NAMES.get(e.cov_type, e.cov_type)}. Intervals: {self.default_interval}.",
        ]
        if e.identity is not None:
            notes.append(
                "z (0) tests coefficient = 0 (the scores carry nothing); z (id) tests the value that the coefficient "
                "has in the identity map, the map of a calibrated model."
            )
        if e.separated:
            notes.append(
                "The scores separate the classes: the likelihood has no finite maximum, and the coefficients shown are "
                "the last iterate. Refit with penalty='firth'."
            )
        elif not e.converged:
            notes.append(f"The optimum was not reached; the gradient is {e.gradient:.2g}.")
        for name, held in zip(e.names, e.at_bound, strict=True):
            if held:
                notes.append(f"{name} lies at its bound, so it has no standard error; the others are given it.")
        return notes
