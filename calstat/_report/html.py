"""One self-contained HTML page from headings, sentences, tables and a picture."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from itertools import zip_longest

from calstat._report.layout import Table

_STYLE = """
:root { --ink: #1b1f24; --soft: #47525e; --line: #c9d0d8; --tint: #f4f6f8; }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: #fff; color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 70rem; margin: 0 auto; padding: 1.5rem clamp(0.8rem, 3vw, 2rem) 3rem; }
h1 { font-size: clamp(1.4rem, 4vw, 2rem); line-height: 1.2; margin: 0 0 0.3rem; overflow-wrap: anywhere; }
h2 { font-size: 1.12rem; margin: 2rem 0 0.5rem; padding-bottom: 0.2rem; border-bottom: 2px solid var(--ink); }
p, li { max-width: 46rem; overflow-wrap: anywhere; }
p.lead, p.caption { color: var(--soft); margin: 0.3rem 0 0.8rem; }
p.caption, ol.notes { font-size: 0.86rem; }
ul, ol { padding-left: 1.3rem; margin: 0.4rem 0; }
li { margin: 0.3rem 0; }
.pair { display: grid; grid-template-columns: minmax(0, 1fr); gap: 0 2rem; }
@media (min-width: 70rem) { .pair { grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); } }
figure { margin: 0.6rem 0; }
img { display: block; width: 100%; max-width: 34rem; height: auto; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: clamp(0.66rem, 2.4vw, 0.84rem); font-variant-numeric: tabular-nums;
  margin: 0.3rem 0; }
th, td { padding: 0.22em 0.42em; text-align: right; white-space: nowrap; vertical-align: top;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; }
thead th { border-bottom: 2px solid var(--soft); vertical-align: bottom; }
th:first-child, td.text { text-align: left; }
tbody th { font-weight: 500; }
tbody tr:nth-child(even) { background: var(--tint); }
small { display: block; white-space: normal; font-weight: 400; font-size: 0.92em; color: var(--soft); }
td.text { white-space: normal; overflow-wrap: break-word; min-width: 7em; }
@media (max-width: 40rem) {
  th, td { padding: 0.2em 0.3em; }
  th:first-child { padding-left: 0; white-space: normal; }
}
@media (max-width: 27rem) {
  th, td { padding: 0.2em 0 0.2em 0.36em; }
  thead th { white-space: normal; }
  td:last-child { white-space: normal; overflow-wrap: anywhere; }
}
@page { margin: 13mm; }
@media print {
  body { font-size: 9pt; line-height: 1.35; }
  main { max-width: none; padding: 0; }
  .pair { grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 0 1rem; }
  .scroll { overflow: visible; }
  table { font-size: 7.5pt; }
  th, td { padding: 0.14em 0.45em; }
  h1 { font-size: 16pt; }
  h2 { break-after: avoid; margin-top: 0.9rem; font-size: 11pt; }
  li { margin: 0.12rem 0; }
  img { max-width: 8.8cm; }
  p.caption, ol.notes { font-size: 7.5pt; }
  table, figure, li { break-inside: avoid; }
  tbody tr:nth-child(even) { background: none; }
}
"""


def table_html(table: Table) -> str:
    """Return a heading and the table."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in ("", *table.headers))
    body = "".join(
        f'<tr><th scope="row">{escape(stub)}{f"<small>{escape(remark)}</small>" if remark else ""}</th>'
        + "".join(f"<td>{escape(value)}</td>" for value in row)
        + "</tr>\n"
        for stub, row, remark in zip_longest(table.stubs, table.rows, table.remarks)
    )
    return (
        f'<section>\n<h2>{escape(table.title)}</h2>\n<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}</tbody></table></div>\n</section>\n"
    )


def pairs_html(title: str, entries: Sequence[tuple[str, str]]) -> str:
    """Return a heading and a table of names and values."""
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td class="text">{escape(value)}</td></tr>\n'
        for name, value in entries
    )
    return f"<section>\n<h2>{escape(title)}</h2>\n<table><tbody>\n{rows}</tbody></table>\n</section>\n"


def list_html(title: str, sentences: Sequence[str], *, numbered: bool = False) -> str:
    """Return a heading and a list of sentences."""
    items = "".join(f"<li>{escape(sentence)}</li>\n" for sentence in sentences)
    start, end = ('<ol class="notes">', "</ol>") if numbered else ("<ul>", "</ul>")
    return f"<section>\n<h2>{escape(title)}</h2>\n{start}\n{items}{end}\n</section>\n"


def picture_html(title: str, png: bytes, *, alt: str, caption: str, width: float | None = None) -> str:
    """Return a heading and a picture that is part of the page, up to `width` inches wide."""
    kind = "" if width is None else f' style="max-width: {width:g}in"'
    data = base64.b64encode(png).decode("ascii")
    image = f'<img{kind} src="data:image/png;base64,{data}" alt="{escape(alt)}">'
    return (
        f"<section>\n<h2>{escape(title)}</h2>\n<figure>{image}"
        f'<figcaption><p class="caption">{escape(caption)}</p></figcaption></figure>\n</section>\n'
    )


def side_by_side(*parts: str) -> str:
    """Set parts beside each other where the page is wide enough."""
    cells = "".join(f"<div>\n{part}</div>\n" for part in parts)
    return f'<div class="pair">\n{cells}</div>\n'


def page_html(title: str, lead: str, parts: Sequence[str]) -> str:
    """Return the whole page."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        f'<h1>{escape(title)}</h1>\n<p class="lead">{escape(lead)}</p>\n{"".join(parts)}</main>\n</body>\n</html>\n'
    )


__all__ = ["list_html", "page_html", "pairs_html", "picture_html", "side_by_side", "table_html"]
