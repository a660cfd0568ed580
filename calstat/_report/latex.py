"""LaTeX from headings, sentences and tables, with every special character escaped; it needs the package booktabs."""

from __future__ import annotations

from collections.abc import Sequence

from calstat._report.layout import Table

_SPECIAL = {
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


def escape(text: str) -> str:
    """Escape what LaTeX would read as a command."""
    return "".join(_SPECIAL.get(letter, letter) for letter in text)


def table_latex(table: Table) -> str:
    """Return a heading and the table."""
    # Names, right-aligned numbers, short words; the last column of words is a paragraph, since it may be long.
    columns = ["l", *("l" if name in table.text else "r" for name in table.headers)]
    if table.text:
        columns[0], columns[-1] = r"p{0.26\textwidth}", r"p{0.3\textwidth}"
    lines = [
        " & ".join(["", *map(escape, table.headers)]),
        *(" & ".join(map(escape, (stub, *row))) for stub, row in zip(table.stubs, table.rows, strict=True)),
    ]
    head, *body = (rf"{line} \\" for line in lines)
    return _tabular(table.title, "".join(columns), [head, r"\midrule", *body])


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


__all__ = ["escape", "list_latex", "pairs_latex", "table_latex"]
