"""Results of the binary maps that are logistic regressions on functions of the score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import pandas as pd
import statsmodels.api as sm
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import special
from scipy.optimize import brentq

from calstat._arrays.covariance import WaldForm, chi2_sf, delta_variance
from calstat._arrays.linear_maps import LinearMap, linear_map
from calstat._arrays.logistic import LogisticFit, profile_interval, score_statistic
from calstat._binary_map import BinaryData, BinaryDescription, BinaryMap, observed
from calstat._data import ScoreReader
from calstat._input.validation import check_alpha
from calstat._results import Prediction, format_count, format_number, format_pvalue, number_table
from calstat._typing import FloatArray
from calstat.exceptions import NotDefinedError
from calstat.likelihood import Estimates, LikelihoodResults
from calstat.plots import calibration_map

_FEW = 50  # with fewer events or non-events Wald intervals of a logistic map are visibly too symmetric
_GRID = 201


class BinaryResults(BinaryMap, LikelihoodResults):
    """
    A binary calibration map fitted by logistic regression.

    Beside what all likelihood maps have:

    Attributes
    ----------
    event, nonevent : label
        The label whose probability is calibrated, and the other one.
    fittedvalues : ndarray or Series
        Calibrated probabilities of the rows of the fit.
    glm : GLMResults
        The statsmodels results object of the same fit.
    """

    def __init__(
        self,
        *,
        form: LinearMap,
        estimates: Estimates,
        description: BinaryDescription,
        reader: ScoreReader,
        outcome: str,
        data: BinaryData | None = None,
        fit: LogisticFit | None = None,
    ) -> None:
        self._form = form
        self._estimates = estimates
        self._description = description
        self._reader = reader
        self.outcome = outcome
        self._sample = data
        self._fit = fit

    # -- prediction ----------------------------------------------------------------------------------

    @property
    def _scale(self) -> str:
        return self._form.scale

    def _map(self, scores: FloatArray) -> FloatArray:
        return np.asarray(special.expit(self._form.linear_predictor(scores, self._estimates.params)))

    def get_prediction(self, new: Any = None) -> Prediction:
        """
        Calibrated probabilities with standard errors and intervals.

        Parameters
        ----------
        new : array_like, Series, DataFrame or dict of columns, optional
            Scores as in `predict`, one per row. Without it, the rows of the fit.

        Returns
        -------
        Prediction
            ``summary_frame(alpha)`` gives mean, mean_se, mean_ci_lower, mean_ci_upper; limits stay in [0, 1].
        """
        if new is None:
            data = self._data("A prediction of the rows of the fit")
            scores, index = data.scores, data.index
        else:
            given = self._read_new(new, two_columns=True)
            scores, _ = self._event_scores(given)
            index = given.index
        eta, se = np.full(scores.size, np.nan), np.full(scores.size, np.nan)
        present = ~np.isnan(scores)
        eta[present] = self._form.linear_predictor(scores[present], self._estimates.params)
        columns, _ = self._form.design(scores[present])
        se[present] = np.sqrt(delta_variance(np.stack(columns, axis=1), self._estimates.cov))
        return Prediction(predicted=special.expit(eta), linear_predictor=eta, se_linear=se, index=index)

    # -- inference -----------------------------------------------------------------------------------

    @property
    def default_interval(self) -> str:
        """Profile limits with fewer than 50 events or non-events and a model-based covariance, else Wald limits."""
        few = min(self._description.events, self._description.nonevents) < _FEW
        return "profile" if few and self.cov_type == "nonrobust" and not self._estimates.separated else "wald"

    def _profile(self, alpha: float) -> FloatArray:
        data = self._data("A profile-likelihood interval")
        assert self._fit is not None  # it comes and goes with the data
        columns, offset = self._form.design(data.scores)
        options = {"weights": data.weights, "offset": offset, "lower": self._form.lower}
        pairs = [
            profile_interval(columns, data.target, j, self._fit, alpha, **options) for j in range(len(self._form.names))
        ]
        return np.array(pairs)

    def _score_test(self) -> WaldForm:
        data = self._data("The score test")
        columns, offset = self._form.design(data.scores)
        identity = self._estimates.identity
        assert identity is not None  # asked before
        statistic, df = score_statistic(columns, data.target, identity, weights=data.weights, offset=offset)
        return WaldForm(statistic, df, chi2_sf(statistic, df))

    def _why_no_identity(self) -> str:
        return "this map has no identity to test against."

    @property
    def glm(self) -> Any:
        """
        The statsmodels results object of the same fit.

        A `GLMResults` of ``sm.GLM(..., family=Binomial())``, built at this optimum when asked for.

        Raises
        ------
        NotDefinedError
            Under Firth's penalty or an active bound, where the estimates are not the GLM's, and under separation.
        """
        data = self._data("The GLM")
        estimates = self._estimates
        if estimates.penalty is not None or estimates.at_bound.any() or estimates.separated:
            raise NotDefinedError(
                "the estimates are penalised, at a bound, or not finite, so they are not those of a GLM."
            )
        columns, offset = self._form.design(data.scores)
        exog = pd.DataFrame(dict(zip(self._form.names, columns, strict=True)), index=data.index)
        endog = pd.Series(data.target, index=data.index, name=self.outcome)
        model = sm.GLM(endog, exog, family=sm.families.Binomial(), offset=offset, freq_weights=data.weights)
        return model.fit(start_params=estimates.params, tol=1e-12)

    # -- printing ------------------------------------------------------------------------------------

    def _title(self) -> str:
        return f"{self.kind}: calibration map"

    def _information(self) -> list[tuple[str, str]]:
        first = self._outcome_information()
        if self._estimates.penalty is not None:
            first.append(("Penalty", self._estimates.penalty))
        return first + super()._information()

    def _coefficient_tables(self, alpha: float) -> list[Any]:
        tables = super()._coefficient_tables(alpha)
        if self._estimates.identity is not None:
            tests = [self.test_identity(m) for m in (("lr", "wald") if self.cov_type == "nonrobust" else ("wald",))]
            rows = [[format_number(t.statistic, 3), format_count(t.df or 0), format_pvalue(t.pvalue)] for t in tests]
            names = [{"lr": "Likelihood ratio", "wald": "Wald"}[t.method] for t in tests]
            tables.append(number_table(rows, ["chi2", "df", "p"], names, title="H0: " + tests[0].null))
        return tables

    def _notes(self, alpha: float) -> list[str]:
        d, form = self._description, self._form
        notes = super()._notes(alpha)
        if form.scale == "probability":
            notes.append(
                f"Probabilities were clipped to [{form.eps:g}, 1 - {form.eps:g}]; {d.clipped} values were touched."
            )
        if self._estimates.cov_type == "cluster":
            notes.append(f"{d.n_groups} clusters.")
        if self._estimates.penalty == "firth":
            notes.append("Firth's penalty (half the log determinant of the information) keeps the estimates finite.")
        return notes + list(d.notes)

    def plot(self, alpha: float = 0.05, ax: Axes | None = None) -> Figure:
        """
        Draw the calibration map with its pointwise band.

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the confidence level of the band.
        ax : matplotlib Axes, optional
            Where to draw; a new figure is made when it is None.

        Returns
        -------
        matplotlib.figure.Figure
            Map and band over the scores, with observed frequencies in ten bins when the data are at hand.
        """
        check_alpha(alpha)
        probability = self._form.scale == "probability"
        data = self._sample
        if probability:
            low, high = 0.0, 1.0
        elif data is None:
            raise self._needs_data("A picture over margins or log odds")
        else:
            low, high = float(data.scores.min()), float(data.scores.max())
        grid = np.linspace(low, high, _GRID)
        frame = self.get_prediction(grid).summary_frame(alpha)
        points, histogram = (None, None) if data is None else observed(data, low, high)
        return calibration_map(
            grid,
            frame["mean"],
            band=(frame["mean_ci_lower"], frame["mean_ci_upper"]),
            points=points,
            histogram=histogram,
            identity=probability,
            label=self.kind,
            band_label=f"{100 * (1 - alpha):g}% band",
            xlabel=str(self._reader.names[0]),
            ylabel=f"Calibrated probability of {self.event!r}",
            ax=ax,
        )

    # -- storage -------------------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        if self.default_interval == "profile" and self._sample is not None:
            self.conf_int()  # so that the summary of the loaded map shows the same limits
        d = self._description
        return {
            "options": self._form.options,
            "estimates": self._estimates.to_state(),
            "description": {name: getattr(d, name) for name in d.__slots__},
            "outcome": self.outcome,
            "limits": {str(alpha): limits for alpha, limits in self._limits.items()},
        }

    @classmethod
    def _from_state(cls, state: Mapping[str, Any]) -> Self:
        results = cls(
            form=linear_map(cls.kind, **state["options"]),
            estimates=Estimates.from_state(state["estimates"]),
            description=BinaryDescription(**{**state["description"], "notes": tuple(state["description"]["notes"])}),
            reader=ScoreReader(names=()),
            outcome=state["outcome"],
        )
        results._limits.update({float(a): np.asarray(v, dtype=np.float64) for a, v in state["limits"].items()})
        return results


class PlattScalingResults(BinaryResults, kind="PlattScaling"):
    """
    Results of `PlattScaling`: ``expit(intercept + slope * score)``.

    With corrected targets the log-likelihood is that of the targets, AIC and BIC are NaN, and standard errors
    are conditional on the targets.
    """

    @property
    def _corrected(self) -> bool:
        return bool(self._form.options["target_correction"])

    @property
    def deviance(self) -> float:
        """Twice the log-likelihood lost against a fit that meets every target, as in a GLM."""
        if not self._corrected:
            return super().deviance
        counts = np.array([self._description.events, self._description.nonevents])
        targets = (counts + 1.0) / (counts + 2.0)  # the second is 1 less the non-events' target
        return 2.0 * (-float(counts @ (special.entr(targets) + special.entr(1.0 - targets))) - self.llf)

    @property
    def aic(self) -> float:
        """Akaike's criterion; NaN with corrected targets, whose likelihood is not that of the data."""
        return np.nan if self._corrected else super().aic

    @property
    def bic(self) -> float:
        """Bayesian (Schwarz) criterion; NaN with corrected targets, whose likelihood is not that of the data."""
        return np.nan if self._corrected else super().bic

    def _why_no_identity(self) -> str:
        if self._corrected:
            return (
                "targets were corrected (target_correction=True), which moves the fit of a calibrated model away from "
                "the identity map; refit with target_correction=False."
            )
        return (
            "a margin has no identity map. If the scores are log odds or probabilities, say so with scores='logit' or "
            "scores='probability'."
        )

    def _notes(self, alpha: float) -> list[str]:
        notes = super()._notes(alpha)
        if self._form.scale == "probability":
            notes.append("The score of the map is the log odds of the probabilities.")
        if self._corrected:
            notes.append(
                "Targets are Platt's (n1 + 1)/(n1 + 2) and 1/(n0 + 2). Standard errors are conditional on them; AIC "
                "and BIC are NaN, since the likelihood is that of the targets, not of the data."
            )
        if self._estimates.identity is None:
            notes.append(f"The identity map is not tested: {self._why_no_identity()}")
        return notes


class LogisticCalibrationResults(BinaryResults, kind="LogisticCalibration"):
    """
    Results of `LogisticCalibration`: ``expit(intercept + slope * logit p)``.

    Beside what all binary maps have:

    Attributes
    ----------
    in_the_large : LogisticCalibrationResults
        The fit with the slope fixed at 1, whose only coefficient is calibration in the large.
    """

    _large: LogisticCalibrationResults

    def attach_in_the_large(self, large: LogisticCalibrationResults) -> None:
        """
        Keep the fit with the slope fixed at 1 beside this one; called once, by the model.

        Parameters
        ----------
        large : LogisticCalibrationResults
            The fit with the slope fixed at 1.
        """
        self._large = large

    @property
    def in_the_large(self) -> LogisticCalibrationResults:
        """The fit with the slope fixed at 1, whose only coefficient is calibration in the large."""
        return self if self._form.options["slope"] is not None else self._large

    def recalibration_table(self, alpha: float = 0.05, method: str | None = None) -> pd.DataFrame:
        """
        Both intercepts and the slope, by name.

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the confidence level of the intervals.
        method : {"wald", "profile"}, optional
            Kind of interval, as in `conf_int`.

        Returns
        -------
        DataFrame
            Rows "calibration in the large (slope fixed at 1)", "intercept (joint with slope)" and "slope"; the
            columns of `coefficient_table`. A calibrated model has 0, 0 and 1.
        """
        large = self.in_the_large.coefficient_table(alpha, method)
        large.index = ["calibration in the large (slope fixed at 1)"]
        if self is self.in_the_large:
            return large
        own = self.coefficient_table(alpha, method)
        own.index = ["intercept (joint with slope)", "slope"]
        return pd.concat([large, own])

    def _why_no_identity(self) -> str:
        return "the slope is fixed at a value other than 1, so that the map cannot be the identity."

    def _coefficient_tables(self, alpha: float) -> list[Any]:
        tables = super()._coefficient_tables(alpha)
        if self is not self.in_the_large:
            table = self.recalibration_table(alpha)
            table.index = ["in the large", "intercept", "slope"]
            tables[0] = self._print_coefficients(table, alpha)
        return tables

    def _notes(self, alpha: float) -> list[str]:
        notes = super()._notes(alpha)
        if self is not self.in_the_large:
            notes.insert(
                0,
                "'in the large' is the intercept when the slope is fixed at 1 (calibration in the large); 'intercept' "
                "is fitted jointly with the slope. They differ, and software reports one or the other.",
            )
        return notes

    def _state(self) -> dict[str, Any]:
        state = super()._state()
        if self is not self.in_the_large:
            state["in_the_large"] = self.in_the_large._state()
        return state

    @classmethod
    def _from_state(cls, state: Mapping[str, Any]) -> Self:
        results = super()._from_state(state)
        if "in_the_large" in state:
            results.attach_in_the_large(cls._from_state(state["in_the_large"]))
        return results


class BetaCalibrationResults(BinaryResults, kind="BetaCalibration"):
    """
    Results of `BetaCalibration`: ``expit(a ln p - b ln(1 - p) + c)``.

    Beside what all binary maps have:

    Attributes
    ----------
    m : float
        The score that the map sends to 1/2.
    """

    @property
    def m(self) -> float:
        """The score that the map sends to 1/2, from ``c = b ln(1 - m) - a ln m``; NaN where there is none."""
        a, b, c = self._abc()
        if min(a, b) < 0.0 or max(a, b) == 0.0:
            return np.nan  # not monotone: there may be none, or two

        def log_odds(t: float) -> float:
            return float(a * special.log_expit(t) - b * special.log_expit(-t) + c)

        low, high = -1.0, 1.0
        while log_odds(low) > 0.0 and low > -1e6:
            low *= 2.0
        while log_odds(high) < 0.0 and high < 1e6:
            high *= 2.0
        if log_odds(low) > 0.0 or log_odds(high) < 0.0:
            return np.nan
        return float(special.expit(brentq(log_odds, low, high, xtol=1e-14)))

    def _abc(self) -> tuple[float, float, float]:
        values = dict(zip(self._estimates.names, self._estimates.params.tolist(), strict=True))
        a = values["a"]
        b = values.get("b", a)
        free_m = self._form.options["parameters"] in {"abm", "am"}
        return a, b, values["c"] if free_m else (a - b) * float(np.log(2.0))
