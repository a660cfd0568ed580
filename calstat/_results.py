"""Result objects that every floor above prints: the calibration test, and the parts of a summary.

Tables are statsmodels' `SimpleTable` collected in its `Summary`, so that text, HTML and LaTeX come from one object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from textwrap import wrap
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from scipy import special
from statsmodels.iolib.summary import Summary
from statsmodels.iolib.table import SimpleTable
from statsmodels.iolib.tableformatting import fmt_2cols, fmt_params

from calstat._arrays.covariance import normal_quantile
from calstat._input.validation import check_alpha
from calstat._typing import FloatArray

TEXT_WIDTH = 88
_NUMBERS = {**fmt_params, "colwidths": 8}


def format_number(value: float, digits: int = 4) -> str:
    """A number with `digits` significant decimals; very large and very small ones in exponent form."""
    if value is None or np.isnan(value):
        return "nan"
    if np.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value != 0 and (abs(value) < 10.0 ** (-digits) or abs(value) >= 1e6):
        return f"{value:.{max(digits - 1, 1)}g}"
    return f"{value:.{digits}f}"


def format_pvalue(pvalue: float) -> str:
    """A p-value for print: three decimals, '<0.001' below that, 'nan' where there is none."""
    if np.isnan(pvalue):
        return "nan"
    return "<0.001" if pvalue < 0.001 else f"{pvalue:.3f}"


def format_count(value: float) -> str:
    """A count without decimals where it is whole."""
    return f"{value:.0f}" if float(value).is_integer() else f"{value:g}"


def info_table(title: str, entries: Sequence[tuple[str, str]]) -> SimpleTable:
    """A block of 'name: value' pairs in two columns, filled down the left one first."""
    half = (len(entries) + 1) // 2
    columns = []
    for part in (entries[:half], entries[half:]):
        padded = [*part, *[("", "")] * (half - len(part))]
        stubs = [f"{name}:" if name else "" for name, _ in padded]
        columns.append(SimpleTable([[value] for _, value in padded], stubs=stubs, title=title, txt_fmt=fmt_2cols))
    columns[0].extend_right(columns[1])
    return columns[0]


def number_table(
    rows: Sequence[Sequence[str]], headers: Sequence[str], stubs: Sequence[str], title: str | None = None
) -> SimpleTable:
    """A table of formatted cells with a header and a name for each row."""
    return SimpleTable([list(r) for r in rows], headers=list(headers), stubs=list(stubs), title=title, txt_fmt=_NUMBERS)


_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "²": r"\textsuperscript{2}",
    "…": r"\ldots{}",
}


def latex_escape(text: str) -> str:
    """Escape what LaTeX would read as a command."""
    return "".join(_LATEX.get(letter, letter) for letter in text)


class JoinedSummary(Summary):  # type: ignore[misc]  # statsmodels has no types
    """statsmodels' Summary, but for LaTeX: one tabular for each table, as tables differ in their columns."""

    def as_latex(self, label: str = "") -> str:  # noqa: ARG002  part of the signature that is overridden
        """Tables as LaTeX tabulars, and the notes below them."""
        parts = [table.as_latex_tabular() for table in self.tables]
        if self.extra_txt is not None:
            parts.append(latex_escape(self.extra_txt).replace("\n", " \\newline\n "))
        return "\n\n".join(parts)


def make_summary(tables: Sequence[SimpleTable], notes: Sequence[str] = ()) -> Summary:
    """Collect tables and numbered notes in a Summary with as_text, as_html and as_latex."""
    summary = JoinedSummary()
    summary.tables = list(tables)
    if notes:
        lines = []
        for i, note in enumerate(notes, start=1):
            lines += wrap(f"[{i}] {note}", width=TEXT_WIDTH, subsequent_indent="    ")
        summary.add_extra_txt(["Notes:", *lines])
    return summary


def _made(kind: type[CalibrationTest], arguments: Mapping[str, Any]) -> CalibrationTest:
    return kind(**arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationTest:
    """
    A test with its null hypothesis in words, its statistic and its p-value.

    It unpacks to ``(statistic, pvalue)``.

    Attributes
    ----------
    name : str
        What the test is called.
    null : str
        The null hypothesis in words.
    statistic : float
        The test statistic; NaN where it cannot be computed (then `note` says why).
    pvalue : float
        The p-value, at full precision.
    df : float or None
        Degrees of freedom of a chi-square reference.
    distribution : str
        Reference law: "chi2", "normal", "pseudo-label" or the name of another simulated law.
    method : str
        How the statistic is made: "lr", "wald", "score", "chi2", ...
    nobs : float
        Number of observations, weights counted.
    details : mapping
        Further numbers by name, for instance the parts of the statistic.
    note : str or None
        A remark that the reader has to know.

    Examples
    --------
    >>> import calstat as cs
    >>> test = cs.spiegelhalter([0, 0, 1, 1], [0.2, 0.4, 0.6, 0.9])
    >>> statistic, pvalue = test
    >>> round(pvalue, 3)
    0.326

    A small p-value says that data like these would be rare if the null hypothesis held; a large one says only
    that these data do not contradict it.
    """

    name: str
    null: str
    statistic: float
    pvalue: float
    df: float | None = None
    distribution: str
    method: str
    nobs: float
    details: Mapping[str, Any] = field(default_factory=dict)
    note: str | None = None

    def __iter__(self) -> Iterator[float]:
        """Unpack to (statistic, pvalue)."""
        return iter((self.statistic, self.pvalue))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy by the arguments, the details as a plain dict.

        Not by a state: before Python 3.11.4 a dataclass with slots replaces methods for it by its own.
        """
        arguments = {f.name: getattr(self, f.name) for f in fields(self)}
        return _made, (type(self), arguments | {"details": dict(self.details)})

    def __post_init__(self) -> None:
        """Make the details read-only."""
        object.__setattr__(self, "details", MappingProxyType(dict(self.details)))

    @property
    def reference(self) -> str:
        """Name of the statistic with its degrees of freedom, as printed: "chi2(2)", "z", "statistic"."""
        if self.df is not None and self.distribution == "chi2":
            return f"chi2({format_count(self.df)})"
        return "z" if self.distribution == "normal" else "statistic"

    def __str__(self) -> str:
        """Name, null hypothesis, result and note, a line each."""
        p = format_pvalue(self.pvalue)
        p = f"p {p[0]} {p[1:]}" if p.startswith("<") else f"p = {p}"
        extra = "" if self.distribution in {"chi2", "normal"} else f" ({self.distribution} reference)"
        lines = [
            f"{self.name} (method: {self.method})",
            f"H0: {self.null}",
            f"{self.reference} = {format_number(self.statistic)}, {p}{extra}, n = {format_count(self.nobs)}",
        ]
        if self.note:
            lines += wrap(f"Note: {self.note}", width=TEXT_WIDTH)
        return "\n".join(lines)

    __repr__ = __str__

    def summary(self) -> Summary:
        """
        Return the test as a table with text, HTML and LaTeX forms.

        Returns
        -------
        statsmodels.iolib.summary.Summary
            One row: statistic, degrees of freedom, p-value; the null hypothesis and the note below it.
        """
        df = "" if self.df is None else format_count(self.df)
        row = [format_number(self.statistic), df, format_pvalue(self.pvalue), format_count(self.nobs)]
        headers = ["chi2" if self.distribution == "chi2" else self.reference, "df", "p", "n"]
        notes = [f"H0: {self.null}.", f"Reference law: {self.distribution}."] + ([self.note] if self.note else [])
        return make_summary([number_table([row], headers, [self.method], title=self.name)], notes)

    def to_frame(self) -> pd.DataFrame:
        """
        Return the test as a data frame of one row.

        Returns
        -------
        pandas.DataFrame
            Columns name, method, statistic, df, pvalue, distribution, nobs, null, note.
        """
        fields = ["name", "method", "statistic", "df", "pvalue", "distribution", "nobs", "null", "note"]
        return pd.DataFrame([{f: getattr(self, f) for f in fields}])


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """
    Calibrated probabilities with their uncertainty.

    Attributes
    ----------
    predicted : ndarray, shape (n,)
        Calibrated probabilities; NaN where the score is missing.
    linear_predictor : ndarray, shape (n,)
        Their log odds.
    se_linear : ndarray, shape (n,)
        Standard errors of the log odds.
    index : Index or None
        Index of the rows.
    """

    predicted: FloatArray
    linear_predictor: FloatArray
    se_linear: FloatArray
    index: pd.Index | None

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """
        Return the predictions with standard errors and intervals.

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the confidence level.

        Returns
        -------
        DataFrame
            Columns mean, mean_se (delta method), mean_ci_lower, mean_ci_upper. Intervals are made on the
            log-odds scale, so they stay within [0, 1]; they hold the map's value at that score, not the outcome
            of one case.
        """
        half = normal_quantile(check_alpha(alpha)) * self.se_linear
        return pd.DataFrame(
            {
                "mean": self.predicted,
                "mean_se": self.predicted * (1.0 - self.predicted) * self.se_linear,
                "mean_ci_lower": special.expit(self.linear_predictor - half),
                "mean_ci_upper": special.expit(self.linear_predictor + half),
            },
            index=self.index,
        )
