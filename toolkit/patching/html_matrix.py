"""The matrix as one page of HTML that needs nothing from anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from toolkit.patching.answers_matrix import (
    BRACKETS,
    DIAGNOSTIC,
    HOST,
    hunk_words,
    verdict_words,
    witness_reasons,
    witness_words,
)
from toolkit.upkeep.matrix import Cell, Matrix, Row

STYLE = """\
:root { color-scheme: light dark; --line: #c8ccd1; --head: #f2f4f6; --good: #1a7f37; --bad: #c62828; --soft: #6a737d; }
@media (prefers-color-scheme: dark) {
  :root { --line: #444c56; --head: #22272e; --good: #57ab5a; --bad: #ff7b72; --soft: #909dab; }
}
body { font: 15px/1.45 system-ui, sans-serif; margin: 1.5rem; }
table { border-collapse: collapse; margin: 0 0 2rem; }
th, td { border: 1px solid var(--line); padding: .3rem .6rem; text-align: left; vertical-align: top; }
thead th { position: sticky; top: 0; background: var(--head); }
tbody th { font-weight: normal; } tbody th small { display: block; color: var(--soft); }
tr.series th { background: var(--head); font-weight: bold; }
.applies, .offset, .works { color: var(--good); } .partly, .conflict, .fails { color: var(--bad); }
.finding { outline: 2px solid var(--bad); } .uncovered, .none { color: var(--soft); }
details summary { cursor: pointer; } details ul { margin: .3rem 0; padding-left: 1.2rem; }
pre { overflow-x: auto; margin: .3rem 0; font-size: .85em; }"""


def render_html(matrix: Matrix) -> str:
    """Write the matrix as a page of its own: a table for each component, the hunks behind each cell."""
    return "\n".join(_page(matrix)) + "\n"


def _page(matrix: Matrix) -> Iterator[str]:
    yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>Patches by base</title>\n<style>\n{STYLE}\n</style>\n</head>\n<body>\n<h1>Patches by base</h1>"
    for component in matrix.components:
        yield from _table(matrix, component)
    yield f"<p>{escape(BRACKETS)}</p>"
    if matrix.runtime == "host":
        yield f"<p>{escape(HOST)}</p>"
    yield from _findings(matrix)
    yield "</body>\n</html>"


def _table(matrix: Matrix, component: str) -> Iterator[str]:
    columns = matrix.columns_of(component)
    yield f'<h2>{escape(component)}</h2>\n<table>\n<thead>\n<tr><th scope="col">patch</th>'
    for column in columns:
        yield f'<th scope="col" title="{escape(column.coverage)}">{escape(column.name)}</th>'
    yield "</tr>\n</thead>\n<tbody>"
    series = ""
    for row in matrix.rows_of(component):
        if row.series != series:
            series = row.series
            mark = DIAGNOSTIC if row.diagnostic else ""
            yield f'<tr class="series"><th colspan="{len(columns) + 1}">{escape(series)}{mark}</th></tr>'
        yield _row_head(row)
        yield from (_cell(matrix.cell(row, column)) for column in columns)
        yield "</tr>"
    yield "</tbody>\n</table>"
    for column in columns:
        if column.remark:
            yield f"<p>{escape(column.name)}: {escape(column.remark)}</p>"


def _row_head(row: Row) -> str:
    name = f"{escape(row.patch)}<small>{escape(row.subject)}</small><small>witness: {escape(row.witness)}</small>"
    return f'<tr><th scope="row">{name}</th>'


def _cell(cell: Cell) -> str:
    kind = cell.verdict.verdict if cell.verdict and cell.covered else "uncovered" if cell.verdict else "none"
    marks = f"{kind} finding" if cell.finding else kind
    words = f'<span class="{kind}">{escape(verdict_words(cell))}</span>'
    if cell.witness is not None:
        tone = "works" if cell.witness.works == "still works" else "fails" if cell.witness.works else "none"
        words += f'<br><span class="{tone}">{escape(witness_words(cell.witness))}</span>'
    behind = "".join(_behind(cell))
    return f'<td class="{marks}">{f"<details><summary>{words}</summary>{behind}</details>" if behind else words}</td>'


def _behind(cell: Cell) -> Iterator[str]:
    """Tell all that is known of one cell."""
    told = [cell.why, cell.finding, cell.verdict.reason if cell.verdict else ""]
    told += witness_reasons(cell.witness) if cell.witness else []
    for text in dict.fromkeys(filter(None, told)):
        yield f"<p>{escape(text)}</p>"
    if cell.verdict is None:
        return
    yield f"<ul>{''.join(f'<li>{escape(hunk_words(hunk))}</li>' for hunk in cell.verdict.hunks)}</ul>"
    for old, new in cell.verdict.moved.items():
        yield f"<p>{escape(old)} is now {escape(new)}</p>"
    if cell.verdict.details:
        yield f"<pre>{escape(chr(10).join(cell.verdict.details))}</pre>"


def _findings(matrix: Matrix) -> Iterator[str]:
    if not matrix.findings:
        yield "<p>Nothing is to be looked at.</p>"
        return
    yield "<h2>To be looked at</h2>\n<ul>"
    yield from (f"<li>{escape(line)}</li>" for line in matrix.findings)
    yield "</ul>"
