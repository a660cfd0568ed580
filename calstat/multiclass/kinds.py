"""Results of each kind of softmax map: what only it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import special
from statsmodels.iolib.summary import Summary

from calstat._arrays.covariance import normal_quantile, normal_two_sided, standard_errors
from calstat._arrays.softmax import probabilities_of, represent
from calstat._arrays.softmax_inference import CanonicalForm, canonical_form, profile_limits
from calstat._arrays.softmax_maps import reported
from calstat._arrays.softmax_selection import selected_gain, selected_gain_draws
from calstat._input.labels import event_place
from calstat._input.validation import check_alpha, check_eps
from calstat._results import CalibrationTest, format_count, format_number, make_summary, number_table
from calstat._typing import FloatArray, IntArray, Label
from calstat.exceptions import InputError, NotDefinedError
from calstat.multiclass.forms import CanonicalMap, GenerativeModel
from calstat.multiclass.multinomial import PenalizedMNLogit
from calstat.multiclass.parts import rows_table
from calstat.multiclass.results import SoftmaxResults
from calstat.penalties import Penalty
from calstat.plots import matrix_heatmap, penalty_path

# Coefficient tables: all rows up to this many classes, matrices up to the next, and above it only what stands out.
_ALL_ROWS, _MATRICES, _LARGEST = 5, 12, 15


class TemperatureScalingResults(SoftmaxResults, kind="TemperatureScaling"):
    """
    Results of `TemperatureScaling`: ``softmax(z / T)``.

    Beside what all softmax maps have:

    Attributes
    ----------
    temperature : float
        The temperature T: above 1 the scores were too sharp, below 1 not sharp enough.
    event, nonevent : label or None
        Of a binary outcome, the label whose probability is calibrated, and the other one; None for a matrix of scores.
    """

    @property
    def event(self) -> Label | None:
        """The label whose probability is calibrated, of a binary outcome."""
        return self.classes[1] if self._description.binary else None

    @property
    def nonevent(self) -> Label | None:
        """The other label of a binary outcome."""
        return self.classes[0] if self._description.binary else None

    @property
    def temperature(self) -> float:
        """The temperature T."""
        return float(self._estimates.params[0])

    def conf_int(self, alpha: float = 0.05, method: str | None = None) -> pd.DataFrame:
        """
        Confidence interval of the temperature.

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the confidence level.
        method : {"wald", "profile"}, optional
            The Wald interval is made on the scale of log T and carried over, so it is positive; the profile interval
            holds the temperatures that a likelihood-ratio test does not reject.

        Returns
        -------
        DataFrame, shape (1, 2)
            Columns "lower" and "upper".

        Raises
        ------
        NotDefinedError
            If profile limits are asked for with a robust covariance.
        """
        if method not in {None, "wald"}:
            return super().conf_int(alpha, method)
        half = normal_quantile(check_alpha(alpha)) * float(standard_errors(self._estimates.cov)[0]) / self.temperature
        limits = self.temperature * np.exp([[-half, half]])
        return pd.DataFrame(limits, index=list(self._estimates.names), columns=["lower", "upper"])

    def _profile(self, alpha: float) -> FloatArray:
        # T = 1 / beta falls as the slope beta rises, so the limits change places.
        design, _, info = self._information_at(self._map.theta, "A profile-likelihood interval")
        if self._map.lost.shape[1]:
            return np.full((1, 2), np.nan)
        low, high = profile_limits(design, None, self._map.theta, np.ones(1), alpha, info)
        slope = float(self._map.theta[0, 0])
        upper = 1.0 / (slope + low) if slope + low > 0.0 else np.inf
        return np.array([[1.0 / (slope + high), upper]])

    def coefficient_table(self, alpha: float = 0.05, method: str | None = None) -> pd.DataFrame:
        """
        The temperature with its inference, as printed in the summary.

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the confidence level of the interval.
        method : {"wald", "profile"}, optional
            Kind of interval, as in `conf_int`.

        Returns
        -------
        DataFrame, shape (1, 9)
            Columns as for other maps. z is that of log T, in units of its standard error: T = 1 is the identity. No
            temperature is 0, so there is no test of that.
        """
        table = super().coefficient_table(alpha, method)
        z = np.log(table["coef"]) * table["coef"] / table["se"]
        return table.assign(z=np.nan, pvalue=np.nan, z_identity=z, pvalue_identity=normal_two_sided(z.to_numpy()))

    def _title(self) -> str:
        return f"{self.kind}: calibration map" if self._description.binary else super()._title()

    def _outcome_information(self) -> list[tuple[str, str]]:
        if not self._description.binary:
            return super()._outcome_information()
        names = self._reader.names
        nonevents, events = self._description.counts
        scale = {"probability": "probabilities", "logit": "log odds"}[self._form.scores]
        entries = [
            ("Outcome", self.outcome),
            ("Event", f"{self.event!r} (against {self.nonevent!r})"),
            ("Score", f"{names[event_place(names, self.classes[1], self.classes[0])]} ({scale})"),
        ]
        if self.nobs > 0.0:
            entries.append(("Events", f"{format_count(float(events))} ({100 * events / (events + nonevents):.1f}%)"))
        return entries

    def _reading(self) -> list[str]:
        text = (
            "T = 1 is the identity map; T > 1 says that the scores were too sharp. z and the interval are made on "
            "the scale of log T."
        )
        return [text]


class VectorScalingResults(SoftmaxResults, kind="VectorScaling"):
    """
    Results of `VectorScaling`: ``softmax(s * z + b)``, slope by slope.

    Beside what all softmax maps have:

    Attributes
    ----------
    scales, bias : Series
        Slope and constant of each class. The constants sum to 0; with a reference class, which has neither slope nor
        constant, they are those of the other classes against it.
    """

    @property
    def scales(self) -> pd.Series:
        """Slope of each class."""
        return self._of_classes(self._map.theta[:, 0], "scale")

    @property
    def bias(self) -> pd.Series:
        """Constant of each class; they sum to 0, or are differences from the reference class."""
        b, reference = self._map.theta[:, 1], self._form.reference
        return self._of_classes(b - (b.mean() if reference is None else b[reference]), "bias")

    def _reading(self) -> list[str]:
        sums = "they sum to 0" if self._form.reference is None else "each is against the reference class"
        slope = "" if self._form.slopes == "fixed" else "s below 1 says that scores were too sharp; "
        text = f"{slope}b above 0 raises the probability of the class ({sums})."
        return [*super()._reading(), text]

    def _of_classes(self, values: FloatArray, name: str) -> pd.Series:
        shown = [k for k in range(self.n_classes) if k != self._form.reference]
        return pd.Series(values[shown], index=[self.classes[k] for k in shown], name=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class PenaltySelection:
    """
    How a penalty was chosen by cross-validation.

    Attributes
    ----------
    penalties : tuple
        The penalties that were compared.
    table : DataFrame
        A line for each penalty: its strengths `lam` and `mu`, `mean` held-out log-loss over all rows, its standard
        error `se` over rows, the mean of each fold, and whether it was `chosen`.
    chosen : L2, ODIR or None
        The penalty with the smallest mean.
    folds : ndarray (n,)
        Fold of each row of the fit.
    """

    penalties: tuple[Penalty | None, ...]
    table: pd.DataFrame
    chosen: Penalty | None
    folds: IntArray

    def summary(self) -> Summary:
        """
        Print the table.

        Returns
        -------
        statsmodels.iolib.summary.Summary
            One line for each penalty.
        """
        shown = self.table[["mean", "se"]]
        rows = [[format_number(m, 5), format_number(s, 5)] for m, s in shown.to_numpy()]
        rows = [[*row, "<- chosen" if c else ""] for row, c in zip(rows, self.table["chosen"], strict=True)]
        table = number_table(rows, ["held-out log-loss", "std err", ""], list(self.table.index), title="Penalties")
        return make_summary([table], [f"Cross-validation in {np.unique(self.folds).size} folds of rows."])

    def plot(self, ax: Axes | None = None) -> Figure:
        """
        Draw the held-out loss against the strength.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure is made when it is None.

        Returns
        -------
        matplotlib.figure.Figure
            One line for each `mu` of ODIR grids.
        """
        table = self.table.assign(mu=self.table["mu"].fillna(-1.0))
        mean = table.pivot_table(index="mu", columns="lam", values="mean", aggfunc="first")
        se = table.pivot_table(index="mu", columns="lam", values="se", aggfunc="first")
        names = [f"mu = {mu:g}" for mu in mean.index] if len(mean) > 1 else None
        chosen = float(self.table["lam"][self.table["chosen"]].iloc[0])
        return penalty_path(mean.columns.to_numpy(), mean.to_numpy(), se.to_numpy(), series=names, chosen=chosen, ax=ax)


class FullMapResults(SoftmaxResults):
    """
    Results of a full softmax map, ``softmax(W x + b)``.

    Beside what all softmax maps have:

    Attributes
    ----------
    weights : DataFrame
        W (K, K): row i, column j is the weight of the score of class j in the logit of class i.
    bias : Series
        b (K,).
    mnlogit : MultinomialResults
        statsmodels' results of the same fit.
    selection : PenaltySelection or None
        How the penalty was chosen, when `fit_cv` chose it.
    """

    selection: PenaltySelection | None = None

    @property
    def _default_draws(self) -> int:
        return 999 if self.selection is None else 199

    def _pseudo_label_test(self, n_resamples: int, rng: np.random.Generator) -> CalibrationTest:
        if self.selection is None:
            return super()._pseudo_label_test(n_resamples, rng)
        barred = [p for p in self.selection.penalties if p is not None and not p.frees_identity]
        if barred:
            raise NotDefinedError(
                f"{barred[0]} was among the penalties compared, and it does not leave the identity free."
            )
        data, K = self._data("The pseudo-label test"), self.n_classes
        grid = [None if p is None else p.quadratic(K) for p in self.selection.penalties]
        fold = self.selection.folds
        gain = selected_gain(self._form, data.features, data.codes, data.weights, grid, fold, rtol=data.rtol)
        p = probabilities_of(self._design("The pseudo-label test"), self._form.identity(K))
        draws = selected_gain_draws(
            self._form, data.features, p, data.weights, grid, fold, n_resamples, rng, rtol=data.rtol
        )
        name = "gain of the penalised log-likelihood, doubled, with the penalty chosen anew in each draw"
        return self._drawn_test(self.nobs * gain, self.nobs * draws, name, {})

    @property
    def weights(self) -> pd.DataFrame:
        """W (K, K): rows are the classes whose probability is made, columns the scores."""
        K, labels = self.n_classes, list(self.classes)
        return pd.DataFrame(self._estimates.params[: K * K].reshape(K, K).copy(), index=labels, columns=labels)

    @property
    def bias(self) -> pd.Series:
        """Constant b of each class (K,)."""
        return pd.Series(self._estimates.params[-self.n_classes :].copy(), index=list(self.classes), name="bias")

    @property
    def mnlogit(self) -> Any:
        """
        The statsmodels results object of the same fit.

        A `MultinomialResults` of a `PenalizedMNLogit`, whose parameters are contrasts with the first class.

        Raises
        ------
        NotDefinedError
            If a class does not occur: statsmodels knows observed classes only.
        """
        data = self._data("The multinomial logit")
        if (self._description.counts == 0).any():
            raise NotDefinedError("a class does not occur in the data, so that MNLogit would leave it out.")
        names = [str(name) for name in self._reader.names]
        exog = pd.DataFrame(data.features.T, columns=names if len(names) == self.n_classes else list(self.classes))
        exog["const"] = 1.0
        model = PenalizedMNLogit(data.codes, exog, penalty=self._quadratic(), freq_weights=data.weights)
        contrasts = self._map.theta[1:] - self._map.theta[0]
        return model.fit(start_params=contrasts.ravel(), skip_hessian=self._map.free_cov is None)

    # -- printing ------------------------------------------------------------------------------------

    def _coefficient_tables(self, alpha: float) -> list[Any]:
        K = self.n_classes
        table = self.coefficient_table(alpha)
        tables = [self._class_table()]
        if K <= _ALL_ROWS:
            tables.append(rows_table(table.iloc[self._shown_once()], alpha))
        else:
            if K <= _MATRICES:
                tables += self._matrix_tables()
            tables += self._standouts(table, alpha)
        return tables + self._identity_tables()

    def _reading(self) -> list[str]:
        notes = super()._reading()
        notes.append("W[i,j] is the weight of the score of class j in the logit of class i, b[i] its constant.")
        K = self.n_classes
        if K <= _ALL_ROWS and len(self._shown_once()) < K * (K + 1):
            other = "the two off-diagonal weights of a column are d and -d" if K == 3 else "the biases are b and -b"
            notes.append(f"Entries fixed by the normalisation are shown once or not at all: {other}.")
        identity = self._estimates.identity
        if identity is not None and not np.isin(identity.round(12), (0.0, 1.0)).all():
            notes.append(
                "The column 'identity' has the identity map in the equivalent form that the penalty likes best, as the "
                "coefficients are: one vector is taken off all rows of W, which changes no probability."
            )
        if K > _ALL_ROWS:
            notes.append("All coefficients are in coefficient_table(), weights and bias.")
        return notes

    def _shown_once(self) -> list[int]:
        """Rows of the coefficient table that do not repeat another one with the opposite sign, and are not fixed."""
        K = self.n_classes
        design = self._form.shape_only(K)
        norm = self._form.norm(K, self._quadratic())
        loadings = represent(design, norm, np.eye(design.n_free))[self._form.order(K)]
        kept: list[int] = []
        for i, row in enumerate(loadings):
            size = float(np.abs(row).max())
            repeats = any(np.abs(row + loadings[j]).max() <= 1e-9 * size for j in kept)
            if size > 1e-12 and not repeats:
                kept.append(i)
        return kept

    def _matrix_tables(self) -> list[Any]:
        labels = [str(c) for c in self.classes]
        tables = []
        for start in range(0, self.n_classes, 8):
            part = self.weights.iloc[:, start : start + 8]
            rows = [[format_number(v, 3) for v in row] for row in part.to_numpy()]
            title = "W: weight of the column's score in the logit of the row's class"
            tables.append(number_table(rows, labels[start : start + 8], labels, title=title))
        return tables

    def _standouts(self, table: pd.DataFrame, alpha: float) -> list[Any]:
        """The largest departures from the identity, off the diagonal, on it, and among the biases."""
        K = self.n_classes
        size = table["z_identity"].abs()
        if size.isna().all():
            size = (table["coef"] - table["identity"]).abs()
        place = np.arange(K * K)
        off = place[place // K != place % K]
        parts = {"off the diagonal of W": off, "on the diagonal of W": place[:: K + 1], "of b": K * K + np.arange(K)}
        tables = []
        for name, rows in parts.items():
            order = rows[np.argsort(-size.to_numpy()[rows], kind="stable")][:_LARGEST]
            title = f"Largest departures from the identity {name} ({len(order)} of {len(rows)})"
            tables.append(rows_table(table.iloc[order], alpha, title))
        return tables

    def plot(self, ax: Axes | None = None) -> Figure:
        """
        Draw W and b as a heat map; colours measure the departure from the identity map.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure is made when it is None.

        Returns
        -------
        matplotlib.figure.Figure
            Entries whose 95% interval excludes the identity's value carry a star.
        """
        K, labels = self.n_classes, list(self.classes)
        values = np.column_stack([self.weights.to_numpy(), self.bias.to_numpy()])
        identity = self._estimates.identity
        assert identity is not None  # full maps always have one
        gap = np.abs(self._estimates.params - identity) > normal_quantile(0.05) * standard_errors(self._estimates.cov)
        marks = np.where(_matrix(gap, K), "*", "")
        return matrix_heatmap(
            values,
            rows=labels,
            columns=[*labels, "b"],
            marks=marks,
            reference=_matrix(identity, K),
            label="departure from the identity",
            ax=ax,
        )


def _matrix(flat: Any, n_classes: int) -> Any:
    """Reported order (W rows, then b) as a matrix (K, K + 1)."""
    square = flat[: n_classes * n_classes].reshape(n_classes, n_classes)
    return np.column_stack([square, flat[n_classes * n_classes :]])


class MatrixScalingResults(FullMapResults, kind="MatrixScaling"):
    """Results of `MatrixScaling`: ``softmax(W z + b)`` on logits."""


class DirichletCalibrationResults(FullMapResults, kind="DirichletCalibration"):
    """
    Results of `DirichletCalibration`: ``softmax(W ln q + b)``.

    Beside what all full maps have: the canonical form, an equivalent generative model, and interpretation points.
    """

    def canonical(self, alpha: float = 0.05) -> CanonicalMap:
        r"""
        Canonical form of the map.

        .. math:: a_{ij} = w_{ij} - \min_k w_{kj}, \qquad c = \operatorname{softmax}(W \ln(1/K) + b)

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the confidence level.

        Returns
        -------
        CanonicalMap
            A and c with limits. Those of A are largest contrasts, ``max_k (w_ij - w_kj -+ z se)`` with z at level
            ``alpha / (K - 1)``, since the place of a column's minimum is not known; those of c are made for its centred
            logarithm.

        References
        ----------
        Kull et al. (2019). Beyond temperature scaling. https://doi.org/10.48550/arXiv.1910.12656
        """
        alpha = check_alpha(alpha)
        form = self._canonical_numbers(alpha)
        labels = list(self.classes)

        def frame(values: FloatArray) -> pd.DataFrame:
            return pd.DataFrame(values, index=labels, columns=labels)

        def series(values: FloatArray, name: str) -> pd.Series:
            return pd.Series(values, index=labels, name=name)

        return CanonicalMap(
            A=frame(form.A),
            A_se=frame(form.A_se),
            A_lower=frame(form.A_low),
            A_upper=frame(form.A_high),
            c=series(form.c, "c"),
            c_lower=series(form.c_low, "lower"),
            c_upper=series(form.c_high, "upper"),
            log_c=series(form.log_c, "log c"),
            log_c_se=series(form.log_c_se, "se"),
            alpha=alpha,
        )

    def _canonical_numbers(self, alpha: float) -> CanonicalForm:
        K = self.n_classes
        order = self._form.order(K)
        numbers = reported(self._form, self._map.theta, self._quadratic(), self._map.free_cov, self._map.lost)
        cov = np.empty((K * (K + 1), K * (K + 1)))
        cov[np.ix_(order, order)] = numbers.cov
        matrix = _matrix(numbers.params, K)
        return canonical_form(matrix[:, :-1], matrix[:, -1], cov.reshape(K, K + 1, K, K + 1), alpha)

    def generative(self, shift: float = 1.0) -> GenerativeModel:
        r"""
        Build a generative model that has this map as its posterior.

        Among cases of class j the prediction has the law Dirichlet(alpha_j) with ``alpha_ji = a_ji + shift``; the
        frequencies make up for the biases. Every positive `shift` gives such a model.

        Parameters
        ----------
        shift : float, default 1.0
            Added to the canonical A, positive.

        Returns
        -------
        GenerativeModel
            Parameters and class frequencies.

        Raises
        ------
        InputError
            If `shift` is not positive.
        """
        if not 0.0 < shift < np.inf:
            raise InputError(f"`shift` must be a positive number, got {shift!r}.")
        W = self.weights.to_numpy()
        alpha = W - W.min(axis=0) + shift
        log_prior = self.bias.to_numpy() + special.gammaln(alpha).sum(axis=1) - special.gammaln(alpha.sum(axis=1))
        labels = list(self.classes)
        return GenerativeModel(
            alpha=pd.DataFrame(alpha, index=labels, columns=labels),
            prior=pd.Series(special.softmax(log_prior), index=labels, name="prior"),
        )

    def interpretation_points(self, eps: float = 1e-3) -> pd.DataFrame:
        """
        Show where the map takes the uniform prediction, and the middles of the sides of the simplex.

        Parameters
        ----------
        eps : float, default 1e-3
            The small probability: side j is seen at q_j = eps, the others equal.

        Returns
        -------
        DataFrame, shape (K + 1, 2 K)
            Columns ("prediction", class) and ("calibrated", class); rows "uniform" and "no <class>".

        Raises
        ------
        InputError
            If `eps` does not lie between 0 and 1 / K.
        """
        K, labels = self.n_classes, list(self.classes)
        if not check_eps(eps) < 1.0 / K:
            raise InputError(f"`eps` must lie below 1 / K = {1 / K:.4g}, got {eps!r}.")
        points = np.full((K + 1, K), 1.0 / K)
        points[1:] = (1.0 - eps) / (K - 1)
        points[np.arange(1, K + 1), np.arange(K)] = eps
        scores = np.log(points) if self._form.scores == "logit" else points
        columns = pd.MultiIndex.from_product([["prediction", "calibrated"], labels])
        index = ["uniform", *(f"no {label}" for label in labels)]
        return pd.DataFrame(np.hstack([points, self._probabilities(scores)]), index=index, columns=columns)
