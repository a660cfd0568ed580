"""Several tests at once, calibration by groups, and the comparison of two forecasts on the same rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import stats
from scipy.special import logit
from statsmodels.iolib.summary import Summary

from calstat._arrays import statistics
from calstat._arrays.binning import Strategy, assign_bins, bin_edges
from calstat._arrays.logistic import fit_logistic
from calstat._arrays.math import clip_probabilities
from calstat._input.validation import (
    BinarySample,
    align,
    check_alpha,
    check_binary,
    check_choice,
    check_clusters,
    check_count,
    check_eps,
    check_rng,
    check_sample,
    group_levels,
    positive_weight_rows,
)
from calstat._results import CalibrationTest, format_count, format_number, format_pvalue, make_summary, number_table
from calstat._typing import ArrayLike, FloatArray, IntArray, Label, RNGLike
from calstat.diagnostics.cumulative import corp_test, ks, kuiper
from calstat.diagnostics.goodness import hosmer_lemeshow, spiegelhalter
from calstat.diagnostics.kernel_test import kernel_test
from calstat.diagnostics.recalibration import Against, recalibration_test
from calstat.diagnostics.validation_indexes import val_prob
from calstat.exceptions import InputError
from calstat.metrics import ece
from calstat.metrics._common import Sample, top_score
from calstat.metrics._scores import LOG_EPS, brier_rows, log_rows
from calstat.metrics.inference import bootstrap
from calstat.metrics.pseudo_labels import pseudo_label_test

_SEES = {
    "Calibration in the large": "only whether events are as frequent as predicted over all rows",
    "Logistic recalibration": "a shift and a slope of the log odds; not waves along p",
    "Beta recalibration": "a shift, and slopes of the log odds that differ near 0 and near 1",
    "Recalibration by TemperatureScaling": "probabilities that are too extreme or too timid as a whole",
    "Recalibration by VectorScaling": "a slope and a shift of each class",
    "Recalibration by DirichletCalibration": "any linear map of the log probabilities: also a class taken for another",
    "Spiegelhalter": "too extreme or too timid predictions; blind at p = 1/2, and errors can cancel",
    "Hosmer-Lemeshow": "gaps of groups of p; depends on the grouping, blind within groups",
    "Kolmogorov-Smirnov": "residuals of one sign that pile up from p = 0; no bins",
    "Kuiper": "residuals of one sign that pile up anywhere; no bins",
    "SKCE (unbiased)": "residuals of one sign among neighbours of p, at the scale of the kernel",
    "SKCE, all classes (unbiased)": "residuals that agree among neighbours of p, in all classes together",
    "SKCE, all classes (block)": "residuals that agree among neighbours of p within blocks of rows, in all classes",
    "CORP miscalibration": "what an isotonic map would gain; blind to a decreasing relation",
    "Pseudo-label test (ece)": "gaps of bins of p, against those of calibrated predictions",
    "Pseudo-label test (confidence_ece)": "gaps of the top label's probability; blind to the other classes",
    "Pseudo-label test (classwise_ece)": "gaps of every class's probability, on average over classes",
}
# Above this many rows all pairs of them take a minute; a mean over blocks has enough to average then.
_ALL_PAIRS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class CalibrationTests:
    """
    Several tests of one set of predictions.

    Attributes
    ----------
    tests : tuple of CalibrationTest
        The tests, in the order of the table.

    Examples
    --------
    >>> import numpy as np
    >>> import calstat as cs
    >>> p = np.linspace(0.01, 0.99, 300)
    >>> battery = cs.calibration_tests(np.random.default_rng(1).random(300) < p, p, n_resamples=99, rng=1)
    >>> len(battery.tests)
    10

    The Holm column allows for the number of tests: the smallest of ten p-values is no surprise at 0.05.
    """

    tests: tuple[CalibrationTest, ...]

    def __iter__(self) -> Iterator[CalibrationTest]:
        """Go through the tests."""
        return iter(self.tests)

    def to_frame(self) -> pd.DataFrame:
        """
        Return the tests as a data frame, a row each.

        Returns
        -------
        pandas.DataFrame
            The columns of `CalibrationTest.to_frame`, pvalue_holm, and what the test can see, indexed by name.
        """
        frame = pd.concat([t.to_frame() for t in self.tests], ignore_index=True)
        frame["name"] = [_title(t) for t in self.tests]
        frame["pvalue_holm"] = statistics.holm(frame["pvalue"].to_numpy(dtype=np.float64))
        frame["sees"] = [_SEES[name] for name in frame["name"]]
        return frame.set_index("name")

    def summary(self) -> Summary:
        """
        Return the tests as a table with text, HTML and LaTeX forms.

        Returns
        -------
        statsmodels.iolib.summary.Summary
        """
        frame = self.to_frame()
        rows = [
            [
                t.method,
                format_number(t.statistic),
                "" if t.df is None else format_count(t.df),
                format_pvalue(t.pvalue),
                format_pvalue(holm),
            ]
            for t, holm in zip(self.tests, frame["pvalue_holm"], strict=True)
        ]
        headers = ["method", "statistic", "df", "p", "p (Holm)"]
        table = number_table(rows, headers, list(frame.index), title="Tests of calibration")
        notes = ["Every null hypothesis says that p is calibrated and was not fitted on these rows."]
        return make_summary([table], notes + [f"{name} sees {sees}." for name, sees in frame["sees"].items()])

    def __str__(self) -> str:
        """Return the table as text."""
        return self.summary().as_text()

    __repr__ = __str__


def _title(test: CalibrationTest) -> str:
    return f"{test.name} ({test.method})" if test.name == "Pseudo-label test" else test.name


def calibration_tests(
    y: ArrayLike,
    p: ArrayLike,
    *,
    freq_weights: ArrayLike | None = None,
    event: Label | None = None,
    classes: Sequence[Label] | None = None,
    n_resamples: int = 999,
    stop_after: int | None = None,
    rng: RNGLike = None,
) -> CalibrationTests:
    """
    Run the tests of calibration, each by its default method, with p-values adjusted for their number.

    Parameters
    ----------
    y : array_like of shape (n,)
        Outcomes.
    p : array_like of shape (n,), (n, 1), (n, 2) or (n, K)
        Probabilities of the event, or one column for each class.
    freq_weights : array_like of shape (n,), optional
        Whole numbers: a row of weight k counts as k rows.
    event : label, optional
        The outcome that `p` is the probability of; needed for strings.
    classes : sequence of K labels, optional
        The class of each column of a matrix.
    n_resamples : int, default 999
        Draws of the tests whose law is drawn.
    stop_after : int, optional
        Stop the draws of the kernel, CORP and ECE tests at this many as large as the observed value, as in
        `pseudo_label_test`: with many `n_resamples`, small p-values are known well and large ones cost little.
    rng : None, int or numpy.random.Generator
        Source of randomness.

    Returns
    -------
    CalibrationTests
        Binary: calibration in the large, logistic and beta recalibration, Spiegelhalter, Hosmer-Lemeshow,
        Kolmogorov-Smirnov, Kuiper, the kernel test, CORP and the pseudo-label ECE. Matrix: recalibration by
        temperature, vector and Dirichlet maps, Hosmer-Lemeshow, the kernel test of all classes (above 10,000 rows its
        block estimator with the normal law, which depends on the order of the rows) and the pseudo-label tests of the
        confidence and the classwise ECE. No answer depends on the order of the classes.

    Raises
    ------
    InputError
        For a bad argument.

    Examples
    --------
    >>> import numpy as np
    >>> import calstat as cs
    >>> p = np.linspace(0.01, 0.99, 500)
    >>> y = np.random.default_rng(1).random(500) < p**2
    >>> frame = cs.calibration_tests(y, p, rng=1).to_frame()
    >>> int((frame["pvalue_holm"] < 0.05).sum())
    9

    Nine of ten refute these predictions, even after the adjustment. Spiegelhalter's test does not: the errors below
    and above 1/2 cancel there.
    """
    n = check_count("n_resamples", n_resamples)
    generator = check_rng(rng)
    sample = check_sample(y, p, freq_weights=freq_weights, event=event, classes=classes, integer_weights=True)
    w = sample.weights
    draw: dict[str, Any] = {"freq_weights": w, "n_resamples": n, "rng": generator}
    stop: dict[str, Any] = {**draw, "stop_after": stop_after}
    outcome, score = sample.y, sample.p
    if not isinstance(sample, BinarySample):
        draw["classes"] = stop["classes"] = range(len(sample.classes))
        maps: tuple[Against, ...] = ("temperature", "vector", "dirichlet")
        pairs: dict[str, Any] = {}
        if sample.nobs > _ALL_PAIRS:
            pairs = {"estimator": "block", "method": "asymptotic"}
        return CalibrationTests(
            tests=(
                *(recalibration_test(outcome, score, against=against, **draw) for against in maps),
                hosmer_lemeshow(outcome, score, **draw),
                kernel_test(outcome, score, **stop, **pairs),
                pseudo_label_test(outcome, score, "confidence_ece", **stop),
                pseudo_label_test(outcome, score, "classwise_ece", **stop),
            )
        )
    return CalibrationTests(
        tests=(
            recalibration_test(outcome, score, against="in_the_large", **draw),
            recalibration_test(outcome, score, against="logistic", **draw),
            recalibration_test(outcome, score, against="beta", **draw),
            spiegelhalter(outcome, score, freq_weights=w),
            hosmer_lemeshow(outcome, score, **draw),
            ks(outcome, score, **draw),
            kuiper(outcome, score, **draw),
            kernel_test(outcome, score, **stop),
            corp_test(outcome, score, **stop),
            pseudo_label_test(outcome, score, "ece", **stop),
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class CalibrationByGroup:
    """
    Calibration of each group, and the test that one recalibration map serves all.

    Attributes
    ----------
    table : pandas.DataFrame
        A row for each group: nobs, events, O/E, intercept (slope 1), slope and ece, each with ci_low and ci_high.
    test : CalibrationTest
        Likelihood ratio test of one logistic recalibration map for all groups against one for each.

    Examples
    --------
    >>> import numpy as np
    >>> import calstat as cs
    >>> rng = np.random.default_rng(1)
    >>> p, site = rng.random(600), rng.choice(["A", "B"], 600)
    >>> y = rng.random(600) < np.where(site == "A", p, p**2)
    >>> result = cs.calibration_by(y, p, site, rng=1)
    >>> result.test.pvalue < 0.001
    True

    One map for both sites does not do: site B needs its own.
    """

    table: pd.DataFrame
    test: CalibrationTest

    def __str__(self) -> str:
        """Return the table and the test as text."""
        return f"{self.table.round(4).to_string()}\n\n{self.test}"

    __repr__ = __str__


def calibration_by(
    y: ArrayLike,
    p: ArrayLike,
    groups: ArrayLike,
    *,
    bins: int | ArrayLike = 10,
    strategy: Strategy = "equal_width",
    alpha: float = 0.05,
    freq_weights: ArrayLike | None = None,
    event: Label | None = None,
    eps: float = 1e-15,
    rng: RNGLike = None,
) -> CalibrationByGroup:
    """
    Assess binary predictions within groups, and test whether the groups differ.

    Parameters
    ----------
    y : array_like of shape (n,)
        Outcome.
    p : array_like of shape (n,)
        Predicted probability of the event.
    groups : array_like of shape (n,)
        Group of each row, two at least.
    bins : int or array_like, default 10
        Bins of the calibration error.
    strategy : {"equal_width", "equal_freq"}, default "equal_width"
        How they are cut, within each group.
    alpha : float, default 0.05
        One minus the confidence level.
    freq_weights : array_like of shape (n,), optional
        Whole numbers: a row of weight k counts as k rows.
    event : label, optional
        The label of the event where it is not clear from the labels.
    eps : float, default 1e-15
        p is clipped to [eps, 1 - eps] before logits.
    rng : None, int or numpy.random.Generator
        Source of randomness of the limits of the calibration error.

    Returns
    -------
    CalibrationByGroup
        `table` and `test`. A group whose scores separate the outcomes, or with one outcome only, has NaN where it
        determines nothing; the likelihood ratio is NaN then as well, and its note names the groups.

    Raises
    ------
    InputError
        For a bad argument, or a single group.

    Notes
    -----
    The test is about differences between groups: groups that are all wrong in the same way do not differ. Limits
    are those of each group alone, not adjusted for their number.

    References
    ----------
    Van Calster, B. et al. (2016). A calibration hierarchy for risk models was defined. Journal of Clinical Epidemiology
    74. https://doi.org/10.1016/j.jclinepi.2015.12.005

    Examples
    --------
    >>> import numpy as np
    >>> import calstat as cs
    >>> rng = np.random.default_rng(1)
    >>> p, site = rng.random(600), rng.choice(["A", "B"], 600)
    >>> result = cs.calibration_by(rng.random(600) < p, p, site, rng=1)
    >>> list(result.table.index), result.test.pvalue > 0.05
    (['A', 'B'], True)

    Nothing here says that the predictions fit one site better than the other.
    """
    level, generator = check_alpha(alpha), check_rng(rng)
    _, (y, p, freq_weights, groups) = align(y=y, p=p, freq_weights=freq_weights, groups=groups)
    given = check_binary(y, p, freq_weights=freq_weights, event=event, integer_weights=True)
    codes, labels = group_levels(groups, given.y.size)
    sample = positive_weight_rows(given)
    if given.weights is not None:
        codes = codes[given.weights > 0]
    order = np.unique(codes).tolist()
    if len(order) == 1:
        raise InputError("`groups` must name at least two groups; one was given.")
    rows, parts = [], []
    for k in order:
        inside = codes == k
        w = None if sample.weights is None else sample.weights[inside]
        parts.append((sample.y[inside], sample.p[inside], w))
        rows.append(_group_row(*parts[-1], {"bins": bins, "strategy": strategy}, level, check_eps(eps), generator))
    table = pd.DataFrame(rows, index=pd.Index([labels[k] for k in order], name="group", tupleize_cols=False))
    return CalibrationByGroup(table=table, test=_one_map_for_all(sample, codes, order, labels, check_eps(eps)))


def _group_row(
    y: FloatArray,
    p: FloatArray,
    w: FloatArray | None,
    cut: dict[str, Any],
    alpha: float,
    eps: float,
    rng: np.random.Generator,
) -> dict[str, float]:
    indexes = val_prob(y, p, alpha=alpha, freq_weights=w, eps=eps)
    copies = statistics.counts(y.size, w)
    row = {"nobs": float(copies.sum()), "events": float(copies @ y)}
    for name in ("O/E", "Intercept (slope 1)", "Slope"):
        estimate, low, high = (float(indexes[column][name]) for column in ("estimate", "ci_low", "ci_high"))
        row |= {name: estimate, f"{name} low": low, f"{name} high": high}
    error = bootstrap(ece, y, p, **cut, freq_weights=w, n_resamples=2, rng=int(rng.integers(2**31)))
    low, high = error.conf_int(alpha)
    return {**row, "ece": error.estimate, "ece low": low, "ece high": high}


def _one_map_for_all(
    sample: BinarySample, codes: IntArray, order: Sequence[int], labels: Any, eps: float
) -> CalibrationTest:
    """Likelihood ratio of one logistic map for all rows against one for each group."""
    scores = logit(clip_probabilities(sample.p, eps)[0])
    w = sample.weights

    def fit(rows: Any) -> Any:
        x = scores[rows]
        return fit_logistic([np.ones_like(x), x], sample.y[rows], weights=None if w is None else w[rows])

    together = fit(slice(None))
    apart = [fit(codes == k) for k in order]
    lost = [str(labels[k]) for k, f in zip(order, apart, strict=True) if f.separated]
    statistic = 2 * (sum(f.llf for f in apart) - together.llf) if not lost else np.nan
    df = sum(f.rank for f in apart) - together.rank
    note = f"no finite map for {', '.join(lost)}: the scores separate the outcomes there" if lost else None
    return CalibrationTest(
        name="One map for all groups",
        null="one logistic recalibration map serves all groups",
        statistic=float(statistic),
        pvalue=float(stats.chi2.sf(statistic, df)),
        df=df,
        distribution="chi2",
        method="lr",
        nobs=sample.nobs,
        note=note,
    )


def compare_forecasts(
    y: ArrayLike,
    p1: ArrayLike,
    p2: ArrayLike,
    *,
    score: Literal["brier", "log", "squared_ece"] = "brier",
    bins: int | ArrayLike = 10,
    alpha: float = 0.05,
    groups: ArrayLike | None = None,
    freq_weights: ArrayLike | None = None,
    event: Label | None = None,
    classes: Sequence[Label] | None = None,
    eps: float = LOG_EPS,
) -> CalibrationTest:
    r"""
    Compare two forecasts of the same rows by a proper score or by their calibration errors.

    .. math:: z = \bar d / \operatorname{se}(\bar d), \quad d_i = S(y_i, p_{1i}) - S(y_i, p_{2i})

    Parameters
    ----------
    y : array_like of shape (n,)
        Outcomes.
    p1, p2 : array_like of shape (n,) or (n, K)
        The two forecasts: probabilities of the event, or one column for each class.
    score : {"brier", "log", "squared_ece"}
        Brier score, log loss, or the squared calibration error in bins without its bias (of the top label, for a
        matrix).
    bins : int or array_like of shape (B + 1,), default 10
        Bins of equal width, or their edges, for ``score="squared_ece"``.
    alpha : float, default 0.05
        One minus the confidence level of the interval in `details`.
    groups : array_like of shape (n,), optional
        Clusters of rows that are not independent: the standard error is then that of sums over clusters. Not for
        ``score="squared_ece"``.
    freq_weights : array_like of shape (n,), optional
        Whole numbers: a row of weight k counts as k rows.
    event : label, optional
        The outcome that the forecasts are probabilities of; needed for strings.
    classes : sequence of K labels, optional
        The class of each column of a matrix.
    eps : float, default 1e-15
        For ``score="log"``: probabilities are clipped to [eps, 1 - eps].

    Returns
    -------
    CalibrationTest
        z with its two-sided normal p-value; `details`: difference (negative: the first is better), se, ci_low, ci_high,
        score1, score2. NaN where the two scores differ by the same amount in all rows.

    Raises
    ------
    InputError
        For a bad argument.

    Notes
    -----
    Calibration errors are compared by U-statistics, ``squared_ece(debias="u")``, whose difference has no bias. Its
    interval held the truth in 95 to 100% of simulated samples of 100 to 5000 rows, for calibrated forecasts and others.
    A paired bootstrap of the difference in ECE held it in 4 to 100%: two biases cancel only if they are alike. A
    smaller calibration error is not a better forecast: the event rate for everyone has none.

    References
    ----------
    Diebold, F. X., Mariano, R. S. (1995). Comparing predictive accuracy. Journal of Business and Economic Statistics
    13. https://doi.org/10.1080/07350015.1995.10524599
    Sun, Y., Chaudhari, P., Barnett, I. J., Dobriban, E. (2024). A confidence interval for the l2 expected calibration
    error. https://arxiv.org/abs/2408.08998

    Examples
    --------
    >>> import numpy as np
    >>> import calstat as cs
    >>> p = np.linspace(0.01, 0.99, 500)
    >>> y = np.random.default_rng(1).random(500) < p
    >>> test = cs.compare_forecasts(y, p, np.full(500, 0.5))
    >>> test.details["difference"] < 0, test.pvalue < 0.001
    (True, True)

    The first forecast has the lower score, by more than chance would give.
    """
    check_choice("score", score, tuple(_COMPARED))
    level, bound = check_alpha(alpha), check_eps(eps)
    options: dict[str, Any] = {
        "freq_weights": freq_weights,
        "event": event,
        "classes": classes,
        "integer_weights": True,
    }
    _, (y, p1, p2, options["freq_weights"], groups) = align(y=y, p1=p1, p2=p2, freq_weights=freq_weights, groups=groups)
    given = [check_sample(y, p, **options) for p in (p1, p2)]
    if given[0].p.shape != given[1].p.shape:
        raise InputError(
            "`p1` and `p2` must be forecasts of the same classes for the same rows; they have shapes "
            f"{np.shape(p1)} and {np.shape(p2)}."
        )
    codes = check_clusters(groups, given[0].weights, given[0].y.size)
    first, second = (positive_weight_rows(s) for s in given)
    if score != "squared_ece":
        rows = [brier_rows(s) if score == "brier" else log_rows(s, bound) for s in (first, second)]
        means, se = _paired_means(rows[0], rows[1], first.weights, codes)
    elif groups is not None:
        raise InputError(
            "`groups` goes with a proper score: the error of score='squared_ece' takes rows as independent."
        )
    else:
        means, se = _paired_errors(first, second, bins)
    difference = means[0] - means[1]
    z = difference / se if se > 0 else np.nan
    half = float(stats.norm.isf(level / 2)) * se
    low, high = difference - half, difference + half
    found = (
        f"difference {difference:.3g}, {100 * (1 - level):g}% interval {low:.3g} to {high:.3g}; below 0 p1 is better"
    )
    name, null, method, constant = _COMPARED[score]
    return CalibrationTest(
        name=f"Difference in {name}",
        null=null,
        statistic=float(z),
        pvalue=float(2 * stats.norm.sf(abs(z))),
        distribution="normal",
        method=method,
        nobs=first.nobs,
        details={
            "difference": difference,
            "se": se,
            "ci_low": low,
            "ci_high": high,
            "score1": means[0],
            "score2": means[1],
        },
        note=found if se > 0 else constant,
    )


_SCORES = ("both forecasts have the same expected score", "paired differences")
_CONSTANT = "the difference is the same in all rows, so that it has no standard error"
_COMPARED = {
    "brier": ("Brier score", *_SCORES, _CONSTANT),
    "log": ("log loss", *_SCORES, _CONSTANT),
    "squared_ece": (
        "squared ECE",
        "both forecasts have the same squared calibration error on these bins",
        "U-statistics",
        "no bin holds two rows that vary, so that the difference has no standard error",
    ),
}


def _paired_means(
    rows1: FloatArray, rows2: FloatArray, weights: FloatArray | None, codes: IntArray | None
) -> tuple[tuple[float, float], float]:
    """Return the two mean scores and the standard error of their difference."""
    w = statistics.counts(rows1.size, weights)
    d = rows1 - rows2
    mean, se = statistics.mean_and_error(d, weights)
    if codes is not None:
        sums = np.bincount(codes, weights=w * (d - mean))
        se = float(np.sqrt(sums @ sums * sums.size / (sums.size - 1)) / w.sum())
    return (float(w @ rows1 / w.sum()), float(w @ rows2 / w.sum())), se


def _paired_errors(first: Sample, second: Sample, bins: int | ArrayLike) -> tuple[tuple[float, float], float]:
    """Return the two squared calibration errors without bias and the standard error of their difference."""
    (y1, r1), (y2, r2) = (top_score(s) for s in (first, second))
    index = (assign_bins(r1, bin_edges(r1, bins)), assign_bins(r2, bin_edges(r2, bins)))
    both = statistics.paired_squared_errors((y1, y2), (r1, r2), index, first.weights)
    return (both.first, both.second), both.se
