"""The report as an object: text, table, page and picture made from its numbers."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from statsmodels.iolib.summary import Summary

from calstat._arrays.statistics import holm
from calstat._report import html, latex
from calstat._report.layout import Table, bin_table, class_table, error_table, group_tables, index_table, test_table
from calstat._report.models import SideBySide
from calstat._results import CalibrationTest, info_table, number_table
from calstat.diagnostics import CalibrationByGroup
from calstat.exceptions import NotDefinedError
from calstat.reliability import ClassPanels, ReliabilityPanel

_WIDTH = 98
_WIDEST_ENTRY = 28
_CALIBRATED = {"O/E": "1", "Intercept (slope 1)": "0", "Intercept": "0", "Slope": "1", "Confidence - accuracy": "0"}
_CAPTION = (
    "Observed frequency against predicted probability. Points are bins, the line is the isotonic curve; grey is where "
    "that curve would lie if the predictions were calibrated. Below: histogram of the predictions."
)


class _ReportSummary(Summary):  # type: ignore[misc]  # statsmodels has no types
    """A summary with LaTeX of its own: that of statsmodels has no headings and takes "95%" for a comment."""

    def __init__(self, latex_text: str) -> None:
        super().__init__()
        self._latex_text = latex_text

    def as_latex(self, label: str = "") -> str:  # noqa: ARG002  part of the signature that is overridden
        """Return the LaTeX text."""
        return self._latex_text


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationReport:
    """
    Everything about the calibration of one set of predictions; made by `report`.

    Attributes
    ----------
    title : str
        Title of the report.
    data : tuple of (str, str)
        Description of the data, as names and texts.
    indexes : pandas.DataFrame
        Scores and indexes, those of `val_prob` for a binary outcome: columns estimate, se, ci_low, ci_high.
    sections : tuple of (str, tuple of str)
        Under which headings the indexes are printed.
    errors : pandas.DataFrame
        Calibration errors: columns estimate, ci_low, ci_high, expected (under calibration), pvalue.
    tests : tuple of CalibrationTest
        The tests.
    bins : pandas.DataFrame
        The reliability table; of the top label's probability for several classes.
    findings : tuple of str
        What the numbers say, in sentences.
    notes : tuple of str
        Definitions and remarks.
    panel : ReliabilityPanel
        What the diagram shows; the top label's probability for several classes.
    alpha : float
        One minus the confidence level of all intervals.
    models : SideBySide or None
        The models side by side, where there are several.
    classes : pandas.DataFrame or None
        For several classes, a row for each: count, frequency, mean_p, ece, expected, pvalue, pvalue_holm.
    class_panels : ClassPanels or None
        What the diagrams by class show.
    groups : CalibrationByGroup or None
        Calibration of each subgroup, where `by` was given.

    Notes
    -----
    Printing it gives the text of `summary`. It holds no time of day: equal data give equal reports.
    """

    title: str
    data: tuple[tuple[str, str], ...]
    indexes: pd.DataFrame
    sections: tuple[tuple[str, tuple[str, ...]], ...]
    errors: pd.DataFrame
    tests: tuple[CalibrationTest, ...]
    bins: pd.DataFrame
    findings: tuple[str, ...]
    notes: tuple[str, ...]
    panel: ReliabilityPanel
    alpha: float
    models: SideBySide | None = None
    classes: pd.DataFrame | None = None
    class_panels: ClassPanels | None = None
    groups: CalibrationByGroup | None = None

    def __str__(self) -> str:
        return str(self.summary())

    __repr__ = __str__

    def summary(self) -> Summary:
        """
        Return the report as tables and sentences.

        Returns
        -------
        statsmodels.iolib.summary.Summary
            With ``as_text()``, ``as_html()`` and ``as_latex()``; the last needs the LaTeX package booktabs.
        """
        result = _ReportSummary(self._latex())
        result.tables = [info_table(self.title, [(name, _clipped(value)) for name, value in self.data])]
        result.tables += [
            number_table(part.rows, part.headers, part.stubs, title=part.title) for part in self._all_tables()
        ]
        lines = ["In words:"]
        for sentence in self.findings:
            lines += wrap(f"- {sentence}", width=_WIDTH, subsequent_indent="  ")
        lines += ["", "Null hypotheses:"]
        for hypothesis in dict.fromkeys(f"- {test.name}: {test.null}" for test in self.tests):
            lines += wrap(hypothesis, width=_WIDTH, subsequent_indent="  ")
        lines += ["", "Notes:"]
        for number, note in enumerate(self.notes, start=1):
            lines += wrap(f"[{number}] {note}", width=_WIDTH, subsequent_indent="    ")
        result.add_extra_txt(lines)
        return result

    def to_frame(self) -> pd.DataFrame:
        """
        Return all numbers as one long table.

        Returns
        -------
        pandas.DataFrame
            Columns section ("index", "error" or "test"), name, method (of a test), estimate, se, ci_low, ci_high,
            expected, df, pvalue, pvalue_holm (over the tests); NaN where a number does not exist. The estimate of a
            test is its statistic. `bins` and `classes` are tables of their own.
        """
        tests = pd.DataFrame(
            {
                "name": [test.name for test in self.tests],
                "method": [test.method for test in self.tests],
                "estimate": [test.statistic for test in self.tests],
                "df": [np.nan if test.df is None else test.df for test in self.tests],
                "pvalue": [test.pvalue for test in self.tests],
                "pvalue_holm": holm(np.array([test.pvalue for test in self.tests])),
            }
        )
        parts = {
            "index": self.indexes.rename_axis("name").reset_index(),
            "error": self.errors.rename_axis("name").reset_index(),
            "test": tests,
        }
        names, numbers = (
            ["name", "method"],
            ["estimate", "se", "ci_low", "ci_high", "expected", "df", "pvalue", "pvalue_holm"],
        )
        types = dict.fromkeys(names, object) | dict.fromkeys(numbers, float)
        aligned = [
            part.reindex(columns=names + numbers).astype(types).assign(section=section)
            for section, part in parts.items()
        ]
        return pd.concat(aligned, ignore_index=True)[["section", *names, *numbers]]

    def plot(self, ax: Any = None) -> Any:
        """
        Draw the reliability diagram.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure is made when it is None.

        Returns
        -------
        matplotlib.figure.Figure
        """
        texts = {} if self.class_panels is None else {"xlabel": "Confidence", "ylabel": "Accuracy"}
        return self.panel.draw(ax, **texts)

    def plot_classes(self) -> Any:
        """
        Draw a reliability diagram for each class, or for those with the largest errors.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        NotDefinedError
            For a binary outcome, whose one diagram `plot` draws.
        """
        if self.class_panels is None:
            raise NotDefinedError("a binary outcome has one diagram; use plot().")
        return self.class_panels.draw()

    def to_html(self, path: str | Path | None = None) -> str:
        """
        Return the report as one page of HTML that needs nothing else: the style and the picture are inside.

        Parameters
        ----------
        path : str or pathlib.Path, optional
            File to write the page to, in UTF-8.

        Returns
        -------
        str
            The page.
        """
        errors, tests, bins = (html.table_html(table) for table in self._tables())
        first, *more = [html.table_html(table) for table in self._index_tables()]
        scores = html.side_by_side(first + errors, *more) if more else html.side_by_side(first, errors)
        png, _ = _png(self.plot())
        picture = html.picture_html("Reliability diagram", png, alt=self.panel.title, caption=_CAPTION)
        words = html.list_html("In words", self.findings) + html.pairs_html("Data", self.data)
        page = html.page_html(
            self.title,
            ", ".join(f"{name.lower()} {value}" for name, value in self.data[:3]),
            [
                html.side_by_side(words, picture),
                self._models_html(),
                scores,
                tests,
                self._classes_html(),
                html.side_by_side(bins, self._groups_html()),
                html.list_html("Notes", self.notes, numbered=True),
            ],
        )
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def _models_html(self) -> str:
        """Return the comparison of models as a part of the page; nothing where there is one model."""
        if self.models is None:
            return ""
        caption = "Observed frequency against mean prediction in the bins of each model."
        png, _ = _png(self.models.plot())
        picture = html.picture_html("Models in one diagram", png, alt=caption, caption=caption)
        tables = "".join(html.table_html(table) for table in self.models.tables())
        return html.side_by_side(tables, picture)

    def _classes_html(self) -> str:
        """Return the table and the diagrams by class as a part of the page; nothing for a binary outcome."""
        if self.classes is None or self.class_panels is None:
            return ""
        png, width = _png(self.class_panels.draw())
        wide = 1.25 * width  # the text of small panels is small
        picture = html.picture_html("By class", png, alt=self.class_panels.title, caption=_CAPTION, width=wide)
        return html.table_html(class_table(self.classes)) + picture

    def _groups_html(self) -> str:
        """Return the tables of subgroups as a part of the page; nothing where there are none."""
        if self.groups is None:
            return ""
        return "".join(html.table_html(table) for table in group_tables(self.groups.table, self.alpha))

    def _latex(self) -> str:
        """Return the report as LaTeX."""
        return "\n".join(
            [
                latex.pairs_latex(self.title, self.data),
                latex.list_latex("In words", self.findings),
                *map(latex.table_latex, self._all_tables()),
                latex.list_latex("Notes", self.notes, numbered=True),
            ]
        )

    def _all_tables(self) -> list[Table]:
        """Lay out all numbers, in the order of print."""
        errors, tests, bins = self._tables()
        models = [] if self.models is None else list(self.models.tables())
        classes = [] if self.classes is None else [class_table(self.classes)]
        groups = [] if self.groups is None else list(group_tables(self.groups.table, self.alpha))
        return [*models, *self._index_tables(), errors, tests, *classes, bins, *groups]

    def _index_tables(self) -> list[Table]:
        """Lay out the indexes under their headings."""
        tables = []
        for heading, names in self.sections:
            known = {name: _CALIBRATED.get(name, "") for name in names}
            calibrated = known if any(known.values()) else None
            tables.append(index_table(heading, self.indexes.loc[list(names)], self.alpha, calibrated))
        return tables

    def _tables(self) -> tuple[Table, Table, Table]:
        """Lay out the errors, the tests and the bins."""
        return error_table(self.errors, self.alpha), test_table(self.tests), bin_table(self.bins, self.alpha)


def _clipped(text: str) -> str:
    """Cut a text that would make the block of data wider than a terminal."""
    return text if len(text) <= _WIDEST_ENTRY else f"{text[: _WIDEST_ENTRY - 1]}…"


def _png(figure: Any) -> tuple[bytes, float]:
    """Return a new figure as PNG with its width in inches, and close it."""
    stream = io.BytesIO()
    # The background is the figure's own: the user's style may have light text.
    figure.savefig(stream, format="png", dpi=180, facecolor=figure.get_facecolor())
    plt.close(figure)
    return stream.getvalue(), figure.get_figwidth()


__all__ = ["CalibrationReport"]
