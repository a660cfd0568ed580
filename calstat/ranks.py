"""Comparison of several methods over many data sets by their ranks."""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import special, stats
from statsmodels.iolib.summary import Summary

from calstat import plots
from calstat._arrays.covariance import chi2_sf
from calstat._arrays.statistics import holm
from calstat._input.validation import as_float, check_alpha, check_choice, check_count
from calstat._results import CalibrationTest, format_number, format_pvalue, make_summary, number_table
from calstat._typing import FloatArray
from calstat.exceptions import InputError, MissingDataError, NotEstimableWarning

PostHoc = Literal["nemenyi", "bonferroni-dunn"]
_POST_HOC = ("nemenyi", "bonferroni-dunn")
# The exact law of a rank sum takes about n**3 additions: a hundredth of a second here, and beyond it the normal law
# is close.
_EXACT_TASKS = 200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankTable:
    """
    Ranks of methods over data sets (tasks), and what follows from them.

    Attributes
    ----------
    scores : DataFrame, shape (N, k)
        The scores: a row for each task, a column for each method.
    ranks : DataFrame, shape (N, k)
        Rank of each method in each task: 1 is best, ties share the mean of their ranks.
    mean_ranks : Series, shape (k,)
        Mean of the ranks over tasks, in the order of the columns.
    lower_is_better : bool
        Whether the smallest score has rank 1.
    dropped : tuple
        Labels of the tasks that were left out because a score was missing.
    """

    scores: pd.DataFrame
    ranks: pd.DataFrame
    mean_ranks: pd.Series
    lower_is_better: bool
    dropped: tuple[Hashable, ...]

    def friedman_test(self, method: Literal["f", "chi2"] = "f") -> CalibrationTest:
        """
        Test that all methods rank alike; see `calstat.friedman_test`.

        Parameters
        ----------
        method : {"f", "chi2"}, default "f"
            Iman and Davenport's F, or Friedman's chi-square.

        Returns
        -------
        CalibrationTest
            Statistic and p-value.
        """
        return _told(_friedman_test(self.ranks.to_numpy(), method))

    def pairwise_wilcoxon(self, control: Hashable | None = None) -> pd.DataFrame:
        """
        Signed-rank tests of pairs of methods; see `calstat.pairwise_wilcoxon`.

        Parameters
        ----------
        control : label, optional
            Compare this method with every other one, in place of all pairs.

        Returns
        -------
        DataFrame
            A row for each pair.
        """
        return pairwise_wilcoxon(self.scores, control=control)

    def critical_difference(self, alpha: float = 0.05, test: PostHoc = "nemenyi") -> float:
        """
        Least difference of mean ranks that is significant; see `calstat.critical_difference`.

        Parameters
        ----------
        alpha : float, default 0.05
            Level, held for all comparisons together.
        test : {"nemenyi", "bonferroni-dunn"}, default "nemenyi"
            All pairs, or all methods with one control.

        Returns
        -------
        float
            The difference.
        """
        tasks, methods = self.ranks.shape
        return critical_difference(methods, tasks, alpha, test)

    def summary(self, alpha: float = 0.05) -> Summary:
        """
        Print methods from the best mean rank to the worst, with the Friedman test and the critical difference.

        Parameters
        ----------
        alpha : float, default 0.05
            Level of the critical difference.

        Returns
        -------
        statsmodels.iolib.summary.Summary
            One line for each method; `first` counts the tasks in which no method has a better score.
        """
        order = np.argsort(self.mean_ranks.to_numpy(), kind="stable")
        means = self.mean_ranks.to_numpy()[order]
        first = self.ranks.eq(self.ranks.min(axis=1), axis=0).sum().to_numpy()[order]
        rows = [
            [format_number(mean, 3), format_number(mean - means[0], 3), str(wins)]
            for mean, wins in zip(means, first, strict=True)
        ]
        test = _friedman_test(self.ranks.to_numpy(), "chi2")
        f = f"Iman and Davenport's F = {format_number(test.details['f'], 3)}, p {_said(test.details['f_pvalue'])}"
        notes = [
            f"{len(self.ranks)} tasks; rank 1 is the {'lowest' if self.lower_is_better else 'highest'} score.",
            f"Friedman's test: {test.reference} = {format_number(test.statistic, 3)}, p {_said(test.pvalue)}; {f}.",
            f"Nemenyi's critical difference at alpha = {alpha:g}: {self.critical_difference(alpha):.3f}.",
            "Methods whose mean ranks differ by less than it cannot be told apart on these tasks.",
        ]
        if self.dropped:
            notes.append(f"Left out for missing scores: {len(self.dropped)} tasks, the first is {self.dropped[0]!r}.")
        headers = ["mean rank", "behind best", "first"]
        return make_summary(
            [number_table(rows, headers, [str(m) for m in self.mean_ranks.index[order]], title="Mean ranks")], notes
        )

    def __str__(self) -> str:
        """The summary as text."""
        return str(self.summary())

    __repr__ = __str__

    def plot(self, alpha: float = 0.05, *, title: str | None = None, ax: Any = None) -> Any:
        """
        Draw the mean ranks and join methods that Nemenyi's test does not tell apart.

        Parameters
        ----------
        alpha : float, default 0.05
            Level of the critical difference.
        title : str, optional
            Title.
        ax : matplotlib Axes, optional
            Where to draw; a new figure is made when it is None.

        Returns
        -------
        matplotlib.figure.Figure
            The critical-difference diagram.
        """
        names = [str(m) for m in self.mean_ranks.index]
        return plots.critical_difference(
            self.mean_ranks.to_numpy(), names, self.critical_difference(alpha), title=title, ax=ax
        )


def rank_table(scores: Any, *, lower_is_better: bool = True, missing: Literal["raise", "drop"] = "raise") -> RankTable:
    r"""
    Rank methods within each data set (task), and average the ranks.

    Parameters
    ----------
    scores : DataFrame or array_like, shape (N, k)
        A score for each task (row) and method (column): a log-loss, an error, an accuracy. Infinite scores have
        ranks like any others.
    lower_is_better : bool, default True
        Whether the smallest score is the best one, as for losses and errors.
    missing : {"raise", "drop"}, default "raise"
        Refuse missing scores, or leave out the tasks that have one. A method that fails on hard tasks is then judged
        on the others only.

    Returns
    -------
    RankTable
        `ranks`, `mean_ranks`, `friedman_test()`, `critical_difference()`, `pairwise_wilcoxon()`, `plot()`; prints.

    Raises
    ------
    MissingDataError
        If a score is missing; the message names its task and method.
    InputError
        If the scores are not numbers, two methods have one name, or there are fewer than two tasks or methods.

    See Also
    --------
    friedman_test : Whether the methods differ at all.
    pairwise_wilcoxon : Which two differ.

    Notes
    -----
    Equal scores share the mean of the ranks that they take up; only exactly equal ones do, so round scores to what is
    meaningful first. All inference takes tasks to be independent. Rows that share a data set, such as several
    classifiers on each, are not: they make differences look surer than they are, and averages over each data set,
    ``scores.groupby(level="dataset").mean()``, are the careful choice. Ranks within a part of the tasks are
    ``table.ranks.groupby(level="classifier").mean()``.

    References
    ----------
    .. [1] Demšar, J. (2006). Statistical comparisons of classifiers over multiple data sets. Journal of Machine
       Learning Research 7, 1-30. https://www.jmlr.org/papers/v7/demsar06a.html

    Examples
    --------
    >>> import calstat as cs
    >>> import pandas as pd
    >>> losses = pd.DataFrame({"beta": [0.31, 0.52, 0.44, 0.60], "temperature": [0.33, 0.52, 0.47, 0.71]})
    >>> cs.rank_table(losses).mean_ranks
    beta           1.125
    temperature    1.875
    dtype: float64

    The map "beta" has the lower loss on three of the four data sets, and an equal one on the other.
    """
    check_choice("lower_is_better", lower_is_better, (True, False))
    check_choice("missing", missing, ("raise", "drop"))
    frame, dropped = _read(scores, drop=missing == "drop")
    values = frame.to_numpy()
    ranks = pd.DataFrame(
        stats.rankdata(values if lower_is_better else -values, axis=1), index=frame.index, columns=frame.columns
    )
    return RankTable(
        scores=frame, ranks=ranks, mean_ranks=ranks.mean(), lower_is_better=lower_is_better, dropped=dropped
    )


def friedman_test(scores: Any, *, method: Literal["f", "chi2"] = "f") -> CalibrationTest:
    r"""
    Test that several methods rank alike over data sets (tasks).

    With N tasks, k methods, mean ranks :math:`\bar R_j` and :math:`t_g` the sizes of the groups of ties,

    .. math::
        \chi^2 = \frac{12 N}{c\,k(k+1)} \sum_j \Bigl(\bar R_j - \frac{k+1}{2}\Bigr)^2, \quad
        c = 1 - \frac{\sum_g (t_g^3 - t_g)}{N (k^3 - k)}, \quad
        F = \frac{(N-1)\chi^2}{N(k-1) - \chi^2}

    Parameters
    ----------
    scores : DataFrame or array_like, shape (N, k)
        A score for each task (row) and method (column). It does not matter whether low or high is good.
    method : {"f", "chi2"}, default "f"
        Iman and Davenport's F with k − 1 and (k − 1)(N − 1) degrees of freedom [2]_, or Friedman's chi-square with
        k − 1, which rejects too rarely when there are few tasks.

    Returns
    -------
    CalibrationTest
        `details` holds chi2 and f with their p-values (chi2_pvalue, f_pvalue), df_denominator, and ties_factor, the c
        above: chi2 times c is the statistic without the correction for ties. If all tasks rank the methods in the same
        way F is infinite, and its p-value 0 is a limit. If all methods are tied in every task both are NaN.

    Raises
    ------
    MissingDataError
        If a score is missing; the message names its task and method.
    InputError
        If the scores are not numbers, two methods have one name, or there are fewer than two tasks or methods.

    Warns
    -----
    NotEstimableWarning
        If all methods are tied in every task.

    Notes
    -----
    Share of rejections at 5% when no method is better, in simulations of 20,000 sets of ranks: with 3 to 9 methods F
    4.6-6.0% from 6 tasks on and up to 6.7% with 4 or 5; chi-square 3.7-5.1% and 2.8-6.7%. With two methods both are
    coarse, 2-13%, as ranks then hold only signs: use `pairwise_wilcoxon`.

    References
    ----------
    .. [1] Demšar, J. (2006). Statistical comparisons of classifiers over multiple data sets. Journal of Machine
       Learning Research 7, 1-30. https://www.jmlr.org/papers/v7/demsar06a.html
    .. [2] Iman, R. L. and Davenport, J. M. (1980). Approximations of the critical region of the Friedman statistic.
       Communications in Statistics 9, 571-595. https://doi.org/10.1080/03610928008827904

    Examples
    --------
    >>> import calstat as cs
    >>> losses = [[0.31, 0.33, 0.40], [0.52, 0.55, 0.51], [0.44, 0.47, 0.58], [0.60, 0.71, 0.75], [0.2, 0.3, 0.4]]
    >>> statistic, pvalue = cs.friedman_test(losses)
    >>> round(statistic, 3), round(pvalue, 3)
    (4.333, 0.053)

    A small p-value says that ranks so uneven would be rare if no method were better than another.
    """
    frame, _ = _read(scores)
    return _told(_friedman_test(stats.rankdata(frame.to_numpy(), axis=1), method))


def critical_difference(n_methods: int, n_tasks: int, alpha: float = 0.05, test: PostHoc = "nemenyi") -> float:
    r"""
    Least difference of two mean ranks that is significant.

    .. math:: \mathrm{CD} = q_\alpha \sqrt{\frac{k(k+1)}{6N}}

    Parameters
    ----------
    n_methods : int
        Number of methods k, at least 2.
    n_tasks : int
        Number of data sets N.
    alpha : float, default 0.05
        Level, held for all comparisons together.
    test : {"nemenyi", "bonferroni-dunn"}, default "nemenyi"
        Nemenyi's test compares all pairs: q is the upper quantile of the range of k normal variables, divided by
        √2. Bonferroni and Dunn's compares one control with the k − 1 others: q is the normal quantile of
        1 − α/(2(k − 1)).

    Returns
    -------
    float
        The critical difference, in ranks.

    Raises
    ------
    InputError
        If a number is out of its range, or the test is not known.

    Notes
    -----
    Ties, which make mean ranks less variable, are not taken into account, so that with many of them the difference is
    larger than it need be.

    References
    ----------
    .. [1] Demšar, J. (2006). Statistical comparisons of classifiers over multiple data sets. Journal of Machine
       Learning Research 7, 1-30. https://www.jmlr.org/papers/v7/demsar06a.html

    Examples
    --------
    >>> import calstat as cs
    >>> round(cs.critical_difference(9, 231), 3)
    0.79

    Among nine methods on 231 data sets, two whose mean ranks differ by less than 0.79 cannot be told apart.
    """
    k = check_count("n_methods", n_methods, minimum=2)
    n = check_count("n_tasks", n_tasks)
    level = check_alpha(alpha)
    check_choice("test", test, _POST_HOC)
    if test == "nemenyi":
        quantile = float(stats.studentized_range.isf(level, k, np.inf)) / np.sqrt(2.0)
    else:
        quantile = float(-special.ndtri(level / (2.0 * (k - 1.0))))
    return float(quantile * np.sqrt(k * (k + 1.0) / (6.0 * n)))


def pairwise_wilcoxon(scores: Any, *, control: Hashable | None = None) -> pd.DataFrame:
    """
    Wilcoxon's signed-rank test for pairs of methods over data sets (tasks), with Holm's correction.

    Parameters
    ----------
    scores : DataFrame or array_like, shape (N, k)
        A score for each task (row) and method (column).
    control : label, optional
        Compare this method with every other one, in place of all pairs.

    Returns
    -------
    DataFrame
        A row for each pair (first, second), with the columns

        - median_difference: the median over tasks of first minus second;
        - n_zero: tasks without a difference;
        - r_plus, r_minus: sums of the ranks of absolute differences where the first score is larger, and where it is
          smaller; the ranks of zeros are shared equally;
        - statistic: the smaller of the two sums;
        - pvalue: two-sided. With up to 200 tasks from the exact law of the sum, given ties and zeros; from the
          normal law, without correction for continuity, with more;
        - pvalue_holm: the same, adjusted for the number of pairs.

    Raises
    ------
    MissingDataError
        If a score is missing; the message names its task and method.
    InputError
        If the scores are not numbers, two methods have one name, the control is none of them, or there are fewer than
        two tasks or methods.

    Notes
    -----
    The test takes differences to be symmetric about zero under the null hypothesis, and compares them across tasks:
    a task whose scores differ more counts for more. Where scores of tasks are not on one scale, use ranks alone
    (`friedman_test` and `critical_difference`). In contrast to those, the verdict on two methods does not depend on
    the other ones, but for the correction.

    References
    ----------
    .. [1] Demšar, J. (2006). Statistical comparisons of classifiers over multiple data sets. Journal of Machine
       Learning Research 7, 1-30. https://www.jmlr.org/papers/v7/demsar06a.html
    .. [2] Holm, S. (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of
       Statistics 6, 65-70. https://www.jstor.org/stable/4615733

    Examples
    --------
    >>> import calstat as cs
    >>> import pandas as pd
    >>> losses = pd.DataFrame({"a": [0.31, 0.52, 0.44, 0.60, 0.2], "b": [0.33, 0.56, 0.47, 0.71, 0.3]})
    >>> cs.pairwise_wilcoxon(losses)[["median_difference", "statistic", "pvalue"]]
                  median_difference  statistic  pvalue
    first second
    a     b                   -0.04        0.0  0.0625

    "a" has the lower loss everywhere; with five data sets no p-value can be smaller than this one.
    """
    frame, _ = _read(scores)
    names = list(frame.columns)
    if control is None:
        pairs = list(combinations(names, 2))
    elif control in names:
        pairs = [(control, other) for other in names if other != control]
    else:
        raise InputError(f"`control` must be one of the methods {names}, got {control!r}.")
    rows = [_signed_ranks(frame[a].to_numpy(), frame[b].to_numpy()) for a, b in pairs]
    columns = ["median_difference", "n_zero", "r_plus", "r_minus", "statistic", "pvalue"]
    table = pd.DataFrame(
        [[*row] for row in rows], columns=columns, index=pd.MultiIndex.from_tuples(pairs, names=["first", "second"])
    ).astype({"n_zero": int})
    table["pvalue_holm"] = holm(table["pvalue"].to_numpy(dtype=np.float64))
    return table


def _read(scores: Any, *, drop: bool = False) -> tuple[pd.DataFrame, tuple[Hashable, ...]]:
    """Scores as a float frame without missing cells, and the tasks that were dropped."""
    source = scores if isinstance(scores, pd.DataFrame) else None
    values = as_float(scores, "scores")
    if values.ndim != 2:
        raise InputError(f"`scores` must have a row for each task and a column for each method, got {values.ndim}-D.")
    frame = pd.DataFrame(
        values,
        index=None if source is None else source.index,
        columns=None if source is None else source.columns,
    )
    if frame.columns.has_duplicates:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise InputError(f"`scores` has more than one column named {twice!r}; give each method its own name.")
    dropped: tuple[Hashable, ...] = ()
    gaps = frame.isna().to_numpy()
    if gaps.any():
        task, method = (int(i) for i in np.argwhere(gaps)[0])
        if not drop:
            raise MissingDataError(
                f"`scores` must have every method in every task; {int(gaps.sum())} of {gaps.size} cells are missing, "
                f"the first is task {frame.index[task]!r}, method {frame.columns[method]!r}. Fill them, or leave their "
                "tasks out with rank_table(scores, missing='drop')."
            )
        whole = ~gaps.any(axis=1)
        dropped = tuple(frame.index[np.flatnonzero(~whole)])
        frame = frame.iloc[np.flatnonzero(whole)]
    tasks, methods = frame.shape
    if tasks < 2 or methods < 2:
        raise InputError(f"`scores` must hold at least 2 tasks and 2 methods, got {tasks} tasks and {methods} methods.")
    return frame, dropped


def _said(pvalue: float) -> str:
    text = format_pvalue(pvalue)
    return text if text.startswith("<") else f"= {text}"


def _told(test: CalibrationTest) -> CalibrationTest:
    """The test, with a warning to the caller's caller if it is NaN."""
    if np.isnan(test.statistic):
        warnings.warn(f"Friedman's test is NaN. {test.note}", NotEstimableWarning, stacklevel=3)
    return test


def _friedman_test(ranks: FloatArray, method: Literal["f", "chi2"]) -> CalibrationTest:
    """Friedman's test of ranks (N, k)."""
    check_choice("method", method, ("f", "chi2"))
    tasks, methods = ranks.shape
    df, df_denominator = methods - 1.0, (methods - 1.0) * (tasks - 1.0)
    values, factor = _friedman(ranks)
    pvalues = {"chi2": chi2_sf(values["chi2"], df), "f": float(special.fdtrc(df, df_denominator, values["f"]))}
    note = None
    if np.isnan(values["chi2"]):
        note = "All methods have the same score in every task: there is nothing to rank."
    elif np.isinf(values["f"]):
        note = "All tasks rank the methods in the same way: F is infinite, and its p-value 0 is a limit."
    return CalibrationTest(
        name="Friedman's test of ranks",
        null="in each task every order of the methods is equally likely",
        statistic=values[method],
        pvalue=pvalues[method],
        df=df,
        distribution="chi2" if method == "chi2" else f"F({df:.0f}, {df_denominator:.0f})",
        method="chi2" if method == "chi2" else "Iman and Davenport's F",
        nobs=float(tasks),
        details={
            "chi2": values["chi2"],
            "chi2_pvalue": pvalues["chi2"],
            "f": values["f"],
            "f_pvalue": pvalues["f"],
            "df_denominator": df_denominator,
            "ties_factor": factor,
        },
        note=note,
    )


def _friedman(ranks: FloatArray) -> tuple[dict[str, float], float]:
    """Chi-square, corrected for ties, and F of ranks (N, k); and the factor of the correction."""
    tasks, methods = ranks.shape
    centre = (methods + 1.0) / 2.0
    between = tasks * float(((ranks.mean(axis=0) - centre) ** 2).sum())
    total = float(((ranks - centre) ** 2).sum())  # N (k^3 - k) / 12 without ties
    if total == 0.0:
        return {"chi2": float("nan"), "f": float("nan")}, 0.0
    share = between / total
    f = np.inf if share > 1.0 - 1e-12 else (tasks - 1.0) * share / (1.0 - share)
    return {"chi2": tasks * (methods - 1.0) * share, "f": f}, 12.0 * total / (tasks * (methods**3 - methods))


def _signed_ranks(first: FloatArray, second: FloatArray) -> tuple[float, int, float, float, float, float]:
    """Median difference, number of zeros, both rank sums, the smaller one, and its two-sided p-value."""
    equal = first == second  # two infinite scores are equal; their difference would be NaN
    difference = np.zeros(first.size)
    np.subtract(first, second, out=difference, where=~equal)
    ranks = stats.rankdata(np.abs(difference))
    plus, minus, zero = (float(ranks[s].sum()) for s in (difference > 0.0, difference < 0.0, equal))
    smaller = min(plus, minus)
    moving = ranks[~equal]
    if moving.size <= _EXACT_TASKS:
        pvalue = _exact_pvalue(moving, smaller)
    else:
        z = (smaller - moving.sum() / 2.0) / np.sqrt((moving**2).sum() / 4.0)
        pvalue = min(1.0, 2.0 * float(special.ndtr(z)))
    shared = zero / 2.0
    with np.errstate(invalid="ignore"):
        median = float(np.median(difference))  # NaN between -inf and inf
    return median, int(equal.sum()), plus + shared, minus + shared, smaller + shared, pvalue


def _exact_pvalue(ranks: FloatArray, smaller: float) -> float:
    """Twice the chance that the ranks with positive signs sum to at most `smaller`, every sign being a fair coin."""
    steps = np.rint(2.0 * ranks).astype(np.int64)  # shared ranks are whole or half
    law = np.zeros(int(steps.sum()) + 1)
    law[0] = 1.0
    for step in steps:
        law *= 0.5
        law[step:] += law[:-step]
    return min(1.0, 2.0 * float(law[: round(2.0 * smaller) + 1].sum()))


__all__ = ["RankTable", "critical_difference", "friedman_test", "pairwise_wilcoxon", "rank_table"]
