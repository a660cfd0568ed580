"""Results of softmax maps: prediction, inference against the identity map, forms of the full maps."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd

from calstat._arrays.covariance import WaldForm, chi2_sf, lr_form, wald_form
from calstat._arrays.pseudo_labels import monte_carlo
from calstat._arrays.softmax import Design, QuadraticPenalty, probabilities_of, represent
from calstat._arrays.softmax_inference import (
    Information,
    information_at,
    profile_limits,
    score_excess,
    score_form,
    score_statistic,
    score_statistic_draws,
)
from calstat._arrays.softmax_maps import FULL, SoftmaxMap, predict_log_odds
from calstat._arrays.softmax_solver import null_directions
from calstat._data import NewScores, ScoreReader
from calstat._input.labels import match_names
from calstat._input.validation import (
    check_choice,
    check_count,
    check_probabilities,
    check_rng,
    check_score_matrix,
)
from calstat._results import CalibrationTest, Prediction, format_count, format_number, format_pvalue, number_table
from calstat._typing import FloatArray, Label, RNGLike
from calstat.exceptions import MissingDataError, NotDefinedError
from calstat.likelihood import Estimates, LikelihoodResults
from calstat.multiclass.parts import (
    COV_NAMES,
    MapState,
    MulticlassData,
    MulticlassDescription,
    estimates_of,
    rows_table,
)
from calstat.penalties import Penalty, penalty_from_state, penalty_to_state

# The tests of the identity have a chi-square law while the variance of the score statistic exceeds the chi-square's by
# less than this share, and there are so many rows for each parameter; see the table of sizes in the documentation.
EXCESS_LIMIT, ROWS_PER_PARAMETER = 0.05, 30
# More classes than this: the information of a full map costs too much to look at for a test.
LARGE = 20
_SHOWN = 12
_REBUILT = ("names", "params", "cov", "identity")
_DRAWN = "the labels are independent draws from the probabilities of the scores themselves"


class SoftmaxResults(LikelihoodResults):
    """
    A softmax calibration map.

    Beside what all likelihood maps have:

    Attributes
    ----------
    classes : tuple
        Class labels, in the order of the columns.
    fittedvalues : ndarray, Series or DataFrame
        Calibrated probabilities of the rows of the fit.
    edf : float
        Effective number of parameters, the trace of ``(J + P)^- J``.
    """

    def __init__(
        self,
        *,
        form: SoftmaxMap,
        state: MapState,
        estimates: Estimates,
        description: MulticlassDescription,
        reader: ScoreReader,
        outcome: str,
        data: MulticlassData | None = None,
    ) -> None:
        self._form = form
        self._map = state
        self._estimates = estimates
        self._description = description
        self._reader = reader
        self.outcome = outcome
        self._sample = data

    @property
    def classes(self) -> tuple[Label, ...]:
        """Class labels, in the order of the columns."""
        return self._description.classes

    @property
    def edf(self) -> float:
        """Effective number of parameters."""
        return self._estimates.df_model

    @property
    def gradient(self) -> float:
        """Largest entry of the gradient of the mean objective at the estimates."""
        return self._estimates.gradient

    @property
    def estimable(self) -> pd.Series:
        """Whether the data determine each coefficient, so that it has a standard error."""
        return self.bse.notna().rename("estimable")

    @property
    def rank(self) -> int:
        """Number of free parameters that the data (and the penalty) determine."""
        return self._map.rank

    @property
    def n_classes(self) -> int:
        """Number of classes K."""
        return len(self._description.classes)

    # -- prediction ----------------------------------------------------------------------------------

    def predict(self, new: Any = None) -> Any:
        """
        Calibrated class probabilities.

        Parameters
        ----------
        new : array_like, DataFrame or dict of columns, optional
            Scores (n, K) on the scale of the fit, columns in the order of `classes`; of a table the columns of the
            fit are taken by name. The map of a binary outcome takes (n,) or (n, 1), the event's score, or (n, 2), the
            event's in the second column or under its label. Without it, the rows of the fit.

        Returns
        -------
        ndarray, Series or DataFrame
            In the shape and with the index of `new`; rows with a missing score stay NaN. Two columns give two columns,
            in the same order.

        Raises
        ------
        InputError
            If the table lacks a column, or the shape does not fit.
        ProbabilityError
            If probabilities were fitted and a row is not one of probabilities.
        """
        if new is None:
            return self.fittedvalues
        given = self._read_new(new, two_columns=self._description.binary)
        scores, present = self._checked(given)
        p = np.full((len(given.values), self.n_classes), np.nan)
        p[present] = self._probabilities(scores)
        return self._restore(given, p)

    def _read_new(self, new: Any, *, two_columns: bool = False) -> NewScores:
        names = self._reader.names
        # A fit to bare arrays knows the classes only: names that speak of them are read as a fit would read them.
        if isinstance(new, pd.DataFrame) and names == self.classes and new.shape[1] == len(names):
            new = new.set_axis(match_names(list(new.columns), list(names)) or list(names), axis=1)
        return super()._read_new(new, two_columns=two_columns)

    def _restore(self, given: NewScores, p: FloatArray) -> Any:
        if not self._description.binary:
            return given.restore(p, self.outcome, columns=self.classes)
        if given.values.shape[1] == 1:
            return given.restore(p[:, 1], self.outcome)
        pair = p if given.event_column(self.classes[1], self.classes[0]) == 1 else p[:, ::-1]
        return given.restore(pair, self.outcome, columns=given.columns)

    def _probabilities(self, scores: FloatArray) -> FloatArray:
        features, _ = self._form.features(scores)
        design = self._form.design(features, np.zeros(len(scores), dtype=np.int64), None)
        return np.ascontiguousarray(probabilities_of(design, self._map.theta).T)

    def _checked(self, given: NewScores) -> tuple[FloatArray, np.ndarray]:
        """Scores of the rows that have them all, (m, K) or (m,), checked, and which rows these are (n,)."""
        present = given.present()
        values = given.values[present]
        if values.size and self._form.scores == "logit" and not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(given.values).all(axis=1) & present)[0])
            raise MissingDataError(f"`new` must hold finite scores; row {row} does not.")
        if self._form.scores == "probability" and values.size:
            if values.shape[1] == 1:
                values = check_probabilities(values, "new")
            else:
                values = check_score_matrix(values, "probability", "new")
        if not self._description.binary:
            return values, present
        if values.shape[1] == 1:
            return values[:, 0], present
        column = given.event_column(self.classes[1], self.classes[0])
        own, other = values[:, column], values[:, 1 - column]
        return own - other if self._form.scores == "logit" else own, present

    @property
    def fittedvalues(self) -> Any:
        """Calibrated probabilities of the rows of the fit, with their index."""
        data = self._data("Fitted values")
        p = self._probabilities(data.scores)
        if data.scores.ndim == 1:
            return p[:, 1] if data.index is None else pd.Series(p[:, 1], index=data.index, name=self.outcome)
        return p if data.index is None else pd.DataFrame(p, index=data.index, columns=list(self.classes))

    def get_prediction(self, new: Any = None) -> Prediction:
        """
        Calibrated probabilities with standard errors and intervals.

        Parameters
        ----------
        new : array_like, DataFrame or dict of columns, optional
            Scores as in `predict`. Without it, the rows of the fit.

        Returns
        -------
        Prediction
            ``summary_frame(alpha)`` has one line for each row and class (index: row, class), or one for each row of a
            binary score: mean, mean_se, mean_ci_lower, mean_ci_upper. Limits are made on the log-odds scale of the
            class, so they stay in [0, 1].
        """
        if new is None:
            data = self._data("A prediction of the rows of the fit")
            scores, n, index = data.scores, len(data.scores), data.index
            present, one = np.ones(n, dtype=bool), scores.ndim == 1
        else:
            given = self._read_new(new, two_columns=self._description.binary)
            scores, present = self._checked(given)
            n, index, one = len(given.values), given.index, given.values.shape[1] == 1
        p, odds, se = (np.full((n, self.n_classes), np.nan) for _ in range(3))
        features, _ = self._form.features(scores)
        found = predict_log_odds(self._form, self._map.theta, features, self._map.free_cov, self._map.lost)
        p[present], odds[present], se[present] = found.probabilities, found.log_odds, found.se
        if one:
            return Prediction(predicted=p[:, 1], linear_predictor=odds[:, 1], se_linear=se[:, 1], index=index)
        rows = pd.RangeIndex(n) if index is None else index
        pairs = pd.MultiIndex.from_product([range(n), list(self.classes)], names=["row", "class"])
        if not isinstance(rows, pd.MultiIndex):
            repeated = rows.repeat(self.n_classes)
            pairs = pd.MultiIndex.from_arrays([repeated, list(self.classes) * n], names=[rows.name or "row", "class"])
        return Prediction(predicted=p.ravel(), linear_predictor=odds.ravel(), se_linear=se.ravel(), index=pairs)

    # -- inference -----------------------------------------------------------------------------------

    def _data(self, what: str) -> MulticlassData:
        if self._sample is None:
            raise self._needs_data(what)
        return self._sample

    def _design(self, what: str) -> Design:
        data = self._data(what)
        return self._form.design(data.features, data.codes, data.weights)

    @property
    def fitted_rows(self) -> MulticlassData:
        """Arrays of the fit: features, class codes and weights of its rows."""
        return self._data("The comparison of maps")

    @property
    def form(self) -> SoftmaxMap:
        """Kind and options of the map."""
        return self._form

    @property
    def theta(self) -> FloatArray:
        """Coefficients (K, q) of the class logits, up to a vector added to each row."""
        return self._map.theta

    @property
    def free_cov(self) -> FloatArray | None:
        """Covariance of the free parameters, None if the fit made none."""
        return self._map.free_cov

    @property
    def penalty(self) -> Penalty | None:
        """Penalty of the fit."""
        return self._map.penalty

    def _quadratic(self) -> QuadraticPenalty | None:
        return None if self._map.penalty is None else self._map.penalty.quadratic(self.n_classes)

    def _information_at(self, theta: FloatArray, what: str) -> tuple[Design, FloatArray, Information]:
        """Design, probabilities (K, n) and information at any parameters, with the penalty of the fit."""
        design, penalty = self._design(what), self._quadratic()
        p = probabilities_of(design, theta)
        separated = self._estimates.separated and theta is self._map.theta
        null = null_directions(design, penalty, self._data(what).rtol)
        return design, p, information_at(design, penalty, p, null=null, separated=separated)

    _profiled = ("nonrobust", "bayes")

    def _profile(self, alpha: float) -> FloatArray:
        if self._map.free_cov is None:
            raise NotDefinedError("profile limits need the covariance of the fit; refit with fit(cov=True).")
        design, _, info = self._information_at(self._map.theta, "A profile-likelihood interval")
        loadings = self._loadings(design)
        limits = np.full((len(loadings), 2), np.nan)
        for i, (value, loading) in enumerate(zip(self._estimates.params, loadings, strict=True)):
            if np.isfinite(self._estimates.cov[i, i]):
                changes = profile_limits(design, self._quadratic(), self._map.theta, loading, alpha, info)
                limits[i] = value + np.array(changes)
        return limits

    def _loadings(self, design: Design) -> FloatArray:
        """Reported parameters as linear forms of the free ones (k, f)."""
        norm = self._form.norm(self.n_classes, self._quadratic())
        return represent(design, norm, np.eye(design.n_free))[self._form.order(self.n_classes)]

    def test_identity(
        self, method: str | None = None, *, n_resamples: int | None = None, rng: RNGLike = None
    ) -> CalibrationTest:
        """
        Test of the identity map, the map of a calibrated model.

        Parameters
        ----------
        method : {"lr", "wald", "score", "pseudo_label"}, optional
            Likelihood-ratio, Wald and score test have a chi-square reference, which holds for smooth probabilities and
            enough rows. "pseudo_label" compares the score statistic with its law under labels that are drawn from the
            probabilities themselves: it holds for all data. The default is "wald" with a robust covariance; else "lr"
            where there are 30 observations or more for each parameter and the variance of the score statistic is within
            5% of the chi-square's, and "pseudo_label" where not, and for every penalised fit.
        n_resamples : int, optional
            Number of draws of "pseudo_label": 999, or 199 where the penalty was chosen on these rows, since the choice
            is then redone in each draw and the statistic is twice the gain of the penalised log-likelihood.
        rng : None, int or Generator
            Source of the draws.

        Returns
        -------
        CalibrationTest
            With as many degrees of freedom as the data determine. ``details["excess"]`` is the excess variance of the
            score statistic over the chi-square's, relative to the latter.

        Raises
        ------
        NotDefinedError
            If the penalty draws a calibrated model away from the identity, or the method does not go with the fit.
        """
        if method is not None:
            check_choice("method", method, ("lr", "wald", "score", "pseudo_label"))
        count = check_count("n_resamples", self._default_draws if n_resamples is None else n_resamples)
        generator = check_rng(rng)
        penalty = self._map.penalty
        if penalty is not None and not penalty.frees_identity:
            raise NotDefinedError(self._why_no_identity())
        if method is None:
            method = "wald" if self._robust else ("pseudo_label" if self._chi_square_fails else "lr")
        if penalty is not None and method != "pseudo_label":
            raise NotDefinedError(
                f"a penalised fit has no chi-square reference for the {method} test; use method='pseudo_label'."
            )
        if method == "pseudo_label":
            return self._pseudo_label_test(count, generator)
        if method != "wald" and self._robust:
            raise NotDefinedError(
                f"the {method} test goes with cov_type='nonrobust', not {self.cov_type!r}; use method='wald'."
            )
        if method == "wald":
            form = wald_form(*self._wald_parts())
        elif method == "lr":
            e = self._estimates
            form = lr_form(e.llf, e.llf_identity, self._map.rank)
        else:
            form = self._score_test()
        note = None
        if np.isnan(form[0]):
            note = "A coefficient is not estimable; the likelihood-ratio and pseudo-label tests hold."
        return self._test(f"Test of the identity map, {self.kind}", self._null_in_words(), method, form, note)

    def _null_in_words(self) -> str:
        whose = "each class" if self._form.reference is None else "each class but the reference"
        words = {"TemperatureScaling": "T = 1", "VectorScaling": f"s = 1 and b = 0 for {whose}"}
        return f"the scores are calibrated: {words.get(self.kind, 'W = I, b = 0')}"

    @property
    def _default_draws(self) -> int:
        return 999

    def _wald_parts(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Free parameters that are determined, their covariance, and the identity as hypotheses about them."""
        if self._map.free_cov is None:
            raise NotDefinedError("the Wald test needs the covariance of the fit; refit with fit(cov=True).")
        change = self._map.theta - self._form.identity(self.n_classes)
        free = self._form.shape_only(self.n_classes).free(change)
        if self._estimates.separated:
            free = np.full(free.size, np.nan)
        return free, self._map.free_cov, np.eye(free.size), np.zeros(free.size)

    @property
    def _robust(self) -> bool:
        return self.cov_type in {"HC0", "HC1", "cluster"}

    @cached_property
    def _chi_square_fails(self) -> bool:
        """Whether labels have to be drawn: for penalised fits, many classes, and heavy tails of the score statistic."""
        if self._map.penalty is not None or (self.n_classes > LARGE and self._form.kind in FULL):
            return True
        return self.nobs < ROWS_PER_PARAMETER * self._map.rank or self._excess() > EXCESS_LIMIT

    def _excess(self) -> float:
        identity = self._form.identity(self.n_classes)
        return score_excess(*self._information_at(identity, "The test of the identity"))

    def _score_test(self) -> WaldForm:
        identity = self._form.identity(self.n_classes)
        design, p, info = self._information_at(identity, "The score test")
        statistic = score_statistic(design, p, info.inverse)
        return WaldForm(statistic, info.rank, chi2_sf(statistic, info.rank))

    def _pseudo_label_test(self, n_resamples: int, rng: np.random.Generator) -> CalibrationTest:
        identity, what = self._form.identity(self.n_classes), "The pseudo-label test"
        details: dict[str, float] = {}
        if self.n_classes > LARGE and self._form.kind in FULL:
            design, info = self._design(what), None
            p = probabilities_of(design, identity)
        else:
            design, p, info = self._information_at(identity, what)
            details["excess"] = score_excess(design, p, info)
        form = score_form(design, self._quadratic(), p, info)
        statistic = score_statistic(design, p, form)
        draws = score_statistic_draws(design, p, form, n_resamples, rng)
        name = "score statistic" if self._map.penalty is None else "penalised score statistic"
        return self._drawn_test(statistic, draws, name, details)

    def _drawn_test(self, statistic: float, draws: FloatArray, name: str, details: dict[str, float]) -> CalibrationTest:
        """The result of a comparison with labels drawn from the probabilities."""
        found = monte_carlo(statistic, draws)
        details |= {"expected": found.mean, "monte_carlo_error": found.error, "n_resamples": float(draws.size)}
        return CalibrationTest(
            name=f"Test of the identity map, {self.kind}",
            null=_DRAWN,
            statistic=statistic,
            pvalue=found.pvalue,
            distribution="pseudo-label",
            method="pseudo_label",
            nobs=self.nobs,
            details=details,
            note=f"The statistic is the {name}; its mean over {draws.size} draws is {found.mean:.4g}.",
        )

    def _why_no_identity(self) -> str:
        return (
            f"{self._map.penalty} draws the map of a calibrated model away from the identity, which would be rejected "
            "for ever larger samples; use ODIR or L2(..., center='identity')."
        )

    # -- printing ------------------------------------------------------------------------------------

    def _title(self) -> str:
        return f"{self.kind}: calibration map of {self.n_classes} classes"

    def _outcome_information(self) -> list[tuple[str, str]]:
        """The outcome, its classes and the scores, as pairs of name and value."""
        scales = {"probability": "probabilities", "logit": "logits"}
        entries = [
            ("Outcome", self.outcome),
            ("Classes", str(self.n_classes)),
            ("Scores", f"{scales[self._form.scores]}{', row means off' if self._form.center else ''}"),
        ]
        if self._form.reference is not None:
            entries.append(("Reference class", str(self.classes[self._form.reference])))
        return entries

    def _information(self) -> list[tuple[str, str]]:
        entries = self._outcome_information()
        if self._description.n_dropped:
            entries.append(("Rows dropped (missing)", str(self._description.n_dropped)))
        if self._map.penalty is not None:
            entries.append(("Penalty", str(self._map.penalty)))
        # A map that was built from a generative model has no data, and so no fit statistics.
        statistics = super()._information() if self.nobs > 0.0 else []
        if self._map.penalty is not None:
            statistics = [("Effective parameters" if n == "Free parameters" else n, text) for n, text in statistics]
        return entries + statistics

    def _coefficient_tables(self, alpha: float) -> list[Any]:
        table = rows_table(self.coefficient_table(alpha), alpha)
        first = [] if self._description.binary else [self._class_table()]
        return [*first, table, *self._identity_tables()]

    def _class_table(self) -> Any:
        """Which column holds which class, and how often each occurs."""
        d = self._description
        shown = list(range(self.n_classes))
        if self.n_classes > _SHOWN:
            shown = [*range(_SHOWN // 2), *range(self.n_classes - _SHOWN // 2, self.n_classes)]
        columns = self._reader.names if len(self._reader.names) == self.n_classes else d.classes
        rows = [[str(columns[k]), format_count(float(d.counts[k]))] for k in shown]
        title = "Classes" if len(shown) == self.n_classes else f"Classes ({len(shown)} of {self.n_classes} shown)"
        return number_table(rows, ["column", "observations"], [str(d.classes[k]) for k in shown], title=title)

    def _identity_tables(self) -> list[Any]:
        """The tests of the identity that need no draws."""
        if self._map.penalty is not None or self.nobs == 0.0:
            return []
        methods = ["wald"] if self._robust else ["lr", "wald"]
        if self._map.free_cov is None:
            methods.remove("wald")
        tests = [self.test_identity(m) for m in methods]
        if not tests:
            return []
        rows = [[format_number(t.statistic, 3), format_count(t.df or 0), format_pvalue(t.pvalue)] for t in tests]
        names = [{"lr": "Likelihood ratio", "wald": "Wald"}[t.method] for t in tests]
        return [number_table(rows, ["chi2", "df", "p"], names, title="H0: " + tests[0].null)]

    def _notes(self, alpha: float) -> list[str]:
        del alpha
        e, d = self._estimates, self._description
        notes: list[str] = []
        if self._map.free_cov is not None:
            name = COV_NAMES[e.cov_type] + (f", {d.n_groups} clusters" if e.cov_type == "cluster" else "")
            notes.append(f"Covariance: {name}. Intervals: {self.default_interval}.")
            notes += self._reading()
        elif self.nobs > 0.0:
            memory = 8e-9 * self._form.shape_only(self.n_classes).n_free ** 2
            cost = f", which takes {memory:.1f} GB, and four times that while it works" if memory >= 0.1 else ""
            lost = "standard errors" if self._map.penalty is None else "standard errors, AIC or BIC"
            notes.append(f"No covariance was made, so there are no {lost}: refit with fit(cov=True){cost}.")
        if e.separated:
            notes.append(
                "The scores separate classes: the likelihood has no finite maximum, the coefficients shown are those "
                "of the last step, and what is not determined has no standard error."
            )
        elif not e.converged:
            notes.append(f"The optimum was not reached; the largest gradient is {e.gradient:.2g}.")
        if self._form.scores == "probability":
            notes.append(
                f"Probabilities were clipped at {self._form.eps:g} before logarithms; {d.clipped} were touched."
            )
        return [*notes, *self._test_notes(), *self._map.notes, *d.notes]

    def _reading(self) -> list[str]:
        """How to read the coefficient table."""
        text = (
            "z and its p-value test the value that the coefficient has in the identity map, the map of a calibrated "
            "model; coefficient_table() has those of coefficient = 0 too."
        )
        return [text]

    def _test_notes(self) -> list[str]:
        if self._map.penalty is not None and not self._map.penalty.frees_identity:
            return [f"The identity map is not tested: {self._why_no_identity()}"]
        if self._robust or self.nobs == 0.0 or not self._chi_square_fails:
            return []
        reason = "The chi-square law is a poor reference for these data (sharp probabilities, many classes or few rows)"
        if self._map.penalty is not None:
            reason = "Under a penalty the gain of log-likelihood over the identity map has no chi-square law"
        return [f"{reason}: test_identity() draws labels from the probabilities instead."]

    # -- storage -------------------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        estimates = {k: v for k, v in self._estimates.to_state().items() if k not in _REBUILT}
        d = self._description
        return {
            "options": self._form.options(),
            "theta": self._map.theta,
            "free_cov": self._map.free_cov,
            "lost": self._map.lost,
            "penalty": penalty_to_state(self._map.penalty),
            "rank": self._map.rank,
            "map_notes": self._map.notes,
            "estimates": estimates,
            "description": {name: getattr(d, name) for name in d.__slots__},
            "outcome": self.outcome,
            "limits": {str(alpha): limits for alpha, limits in self._limits.items()},
            "chi_square_fails": self.nobs > 0.0 and self._chi_square_fails,
        }

    @classmethod
    def _from_state(cls, state: Mapping[str, Any]) -> Self:
        form = SoftmaxMap(**state["options"])
        description = dict(state["description"])
        for name in ("classes", "notes"):
            description[name] = tuple(description[name])
        description["counts"] = np.asarray(description["counts"], dtype=np.float64)
        theta = np.asarray(state["theta"], dtype=np.float64)
        n_free = form.shape_only(len(theta)).n_free
        free_cov = None if state["free_cov"] is None else np.asarray(state["free_cov"], dtype=np.float64)
        fitted = MapState(
            theta=theta,
            free_cov=free_cov,
            lost=np.asarray(state["lost"], dtype=np.float64).reshape(n_free, -1),
            penalty=penalty_from_state(state["penalty"]),
            rank=int(state["rank"]),
            notes=tuple(state["map_notes"]),
        )
        results = cls(
            form=form,
            state=fitted,
            estimates=estimates_of(form, fitted, description["classes"], state["estimates"]),
            description=MulticlassDescription(**description),
            reader=ScoreReader(names=()),
            outcome=state["outcome"],
        )
        results._chi_square_fails = bool(state["chi_square_fails"])
        results._limits.update({float(a): np.asarray(v, dtype=np.float64) for a, v in state["limits"].items()})
        return results
