"""LaTeX from headings, sentences and tables, with every special character escaped; it needs the package booktabs."""

from __future__ import annotations

from collections.abc import Sequence

from calstat._report.layout import Table
from calstat._results import latex_escape as escape


def table_latex(table: Table) -> str:
    """Return a heading and the table."""
    names = [escape(stub) for stub in table.stubs]
    if table.remarks:
        pairs = zip(names, table.remarks, strict=True)
        names = [rf"{name} \newline {{\footnotesize {escape(remark)}}}" for name, remark in pairs]
    columns = (r"p{0.4\textwidth}" if table.remarks else "l") + "r" * len(table.headers)
    head = " & ".join(["", *map(escape, table.headers)])
    body = [" & ".join([name, *map(escape, row)]) for name, row in zip(names, table.rows, strict=True)]
    return _tabular(table.title, columns, [rf"{head} \\", r"\midrule", *(rf"{line} \\" for line in body)])


def pairs_latex(title: str, entries: Sequence[tuple[str, str]]) -> str:
    """Return a heading and a table of names and values."""
    return _tabular(title, "ll", [rf"{escape(name)} & {escape(value)} \\" for name, value in entries])


def _tabular(title: str, columns: str, lines: Sequence[str]) -> str:
    start = rf"\noindent\begin{{tabular}}{{{columns}}}"
    return "\n".join([_heading(title), "", start, r"\toprule", *lines, r"\bottomrule", r"\end{tabular}", ""])


def _heading(title: str) -> str:
    return rf"\paragraph{{{escape(title)}}}\mbox{{}}"


def list_latex(title: str, sentences: Sequence[str], *, numbered: bool = False) -> str:
    """Return a heading and a list of sentences."""
    kind = "enumerate" if numbered else "itemize"
    items = [rf"\item {escape(sentence)}" for sentence in sentences]
    return "\n".join([_heading(title), rf"\begin{{{kind}}}", *items, rf"\end{{{kind}}}", ""])


__all__ = ["list_latex", "pairs_latex", "table_latex"]
