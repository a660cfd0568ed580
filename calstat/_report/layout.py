"""Tables of formatted cells, from which both the text and the page of a report are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from calstat._arrays.statistics import holm
from calstat._results import CalibrationTest, format_count, format_number, format_pvalue

_DIGITS = 3
_MOST_CLASSES = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A titled table of formatted cells; `remarks` are words for each row, which a page writes under its name."""

    title: str
    headers: Sequence[str]
    stubs: Sequence[str]
    rows: Sequence[Sequence[str]]
    remarks: Sequence[str] = ()


def index_table(title: str, frame: pd.DataFrame, alpha: float, calibrated: Mapping[str, str] | None = None) -> Table:
    """Lay out indexes with standard error and interval, and the value that a calibrated model has."""
    columns = ["estimate", "se", "ci_low", "ci_high"]
    rows = [
        [number_text(estimate), known_text(se), limits_text(low, high)]
        for estimate, se, low, high in frame[columns].to_numpy(dtype=float)
    ]
    headers = ["estimate", "se", level_text(alpha)]
    if calibrated is not None:
        headers = [*headers, "calibrated"]
        rows = [[*row, calibrated[name]] for row, name in zip(rows, frame.index, strict=True)]
    return Table(title=title, headers=headers, stubs=list(frame.index), rows=rows)


def error_table(frame: pd.DataFrame, alpha: float) -> Table:
    """Lay out errors with interval, expectation under calibration and p-value."""
    columns = ["estimate", "ci_low", "ci_high", "expected", "pvalue"]
    rows = [
        [number_text(estimate), limits_text(low, high), known_text(expected), pvalue_text(p)]
        for estimate, low, high, expected, p in frame[columns].to_numpy(dtype=float)
    ]
    headers = ["estimate", level_text(alpha), "expected", "p"]
    return Table(title="Calibration errors", headers=headers, stubs=list(frame.index), rows=rows)


def test_table(tests: Sequence[CalibrationTest]) -> Table:
    """Lay out tests with p-values adjusted for their number, and their null hypotheses in words."""
    adjusted = holm(np.array([test.pvalue for test in tests]))
    rows = [
        [
            number_text(test.statistic),
            "" if test.df is None else format_count(test.df),
            format_pvalue(test.pvalue),
            format_pvalue(float(together)),
            test.method.replace("_", "-"),
        ]
        for test, together in zip(tests, adjusted, strict=True)
    ]
    headers = ["statistic", "df", "p", "p (Holm)", "method"]
    stubs = [test.name for test in tests]
    nulls = [f"H0: {test.null}" for test in tests]
    return Table(title="Tests", headers=headers, stubs=stubs, rows=rows, remarks=nulls)


def bin_table(frame: pd.DataFrame, alpha: float) -> Table:
    """Lay out the reliability table."""
    edges = frame[["lower", "upper"]].to_numpy(dtype=float)
    stubs = [f"{low:.4g} to {high:.4g}" for low, high in edges]
    columns = ["count", "mean_p", "mean_y", "gap", "ci_low", "ci_high"]
    rows = [
        [format_count(count), known_text(mean_p), known_text(mean_y), known_text(gap), limits_text(low, high)]
        for count, mean_p, mean_y, gap, low, high in frame[columns].to_numpy(dtype=float)
    ]
    headers = ["n", "mean p", "observed", "gap", level_text(alpha)]
    return Table(title="Bins", headers=headers, stubs=stubs, rows=rows)


def class_table(frame: pd.DataFrame) -> Table:
    """Lay out the classes with their errors and p-values."""
    columns = ["count", "frequency", "mean_p", "ece", "expected", "pvalue", "pvalue_holm"]
    title = "Classes"
    if len(frame) > _MOST_CLASSES:
        title = f"Classes: the {_MOST_CLASSES} of {len(frame)} with the largest ECE"
        frame = frame.sort_values("ece", ascending=False, kind="stable").head(_MOST_CLASSES)
    rows = [
        [format_count(count), *map(number_text, numbers), pvalue_text(p), pvalue_text(holm)]
        for count, *numbers, p, holm in frame[columns].to_numpy(dtype=float)
    ]
    headers = ["n", "frequency", "mean p", "ECE", "expected", "p", "p (Holm)"]
    return Table(title=title, headers=headers, stubs=[str(name) for name in frame.index], rows=rows)


def group_tables(frame: pd.DataFrame, alpha: float) -> tuple[Table, Table]:
    """Lay out the table of `calibration_by`: what is on average, and what is spread and error."""
    names = [str(name) for name in frame.index]
    first = ["nobs", "events", "O/E", "O/E low", "O/E high"]
    average = [
        [format_count(n), format_count(events), number_text(ratio), limits_text(low, high)]
        for n, events, ratio, low, high in frame[first].to_numpy(dtype=float)
    ]
    second = ["Slope", "Slope low", "Slope high", "ece"]
    spread = [
        [number_text(slope), limits_text(low, high), number_text(error)]
        for slope, low, high, error in frame[second].to_numpy(dtype=float)
    ]
    level = level_text(alpha)
    return (
        Table(title="Groups: on average", headers=["n", "events", "O/E", level], stubs=names, rows=average),
        Table(title="Groups: spread and error", headers=["slope", level, "ECE"], stubs=names, rows=spread),
    )


def number_text(value: float) -> str:
    """Write a number; NaN is written."""
    return format_number(value, _DIGITS)


def known_text(value: float) -> str:
    """Write a number, nothing where it does not exist."""
    return number_text(value) if np.isfinite(value) else ""


def pvalue_text(value: float) -> str:
    """Write a p-value, nothing where there is none."""
    return format_pvalue(value) if np.isfinite(value) else ""


def limits_text(low: float, high: float) -> str:
    """Write an interval, nothing where it does not exist."""
    return f"{number_text(low)} to {number_text(high)}" if np.isfinite([low, high]).all() else ""


def level_text(alpha: float) -> str:
    """Write the heading of a column of intervals."""
    return f"{100 * (1 - alpha):g}% interval"


__all__ = [
    "Table",
    "bin_table",
    "class_table",
    "error_table",
    "group_tables",
    "index_table",
    "known_text",
    "level_text",
    "limits_text",
    "number_text",
    "pvalue_text",
    "test_table",
]
