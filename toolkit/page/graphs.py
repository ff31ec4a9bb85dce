"""Generated code before and after, side by side, with kernel calls marked; beneath it stages and disassembly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from toolkit.model import Side
from toolkit.page.compare import Line, are_equal, code_lines, mark_differences, stage_lines
from toolkit.page.html import code, details, section, tag, text
from toolkit.page.kernels import by_graph
from toolkit.page.values import SIDES, Account, GraphEvidence, KeptFile, Program, grouped
from toolkit.page.words import count, program_words

BUDGET = 600_000
"""Characters of HTML that the code of all graphs may take: what is beyond it is only named."""

NONE_KEPT = "No generated code is kept: the checks leave none, or the overlay's logs were removed."
SIGNS = {"base": "-", "overlay": "+"}


def render_graphs(account: Account) -> str:
    """Write each graph's code and listings, as many of them as there is room for."""
    return section("code", "Generated code", _body(account))


def _body(account: Account) -> Iterator[str]:
    if not account.graphs:
        yield f"<p>{NONE_KEPT}</p>"
        return
    yield (
        '<p class="soft"><mark>Marked</mark> lines define, divide or call a kernel; - and + stand before what only one '
        "side has. Addresses differ from run to run and count for no difference.</p>"
    )
    programs = {(check, graph): sides for check, graph, sides in by_graph(account.programs)}
    room = BUDGET
    checks = grouped(_in_order(account), lambda one: one.check)
    first = next((graph for _, graphs in checks for graph in graphs if _is_compared(graph)), None)
    for check, graphs in checks:
        yield f"<h3>{text(check)}</h3>"
        for graph in graphs:
            written = _graph(graph, programs.get((check, graph.graph), {}), is_open=graph is first)
            if len(written) > room:
                written = _named_only(graph)
            room -= len(written)
            yield written


def _in_order(account: Account) -> list[GraphEvidence]:
    """Sort graphs by the proof's order of checks, those that have a before and an after first."""
    places = {check.name: place for place, check in enumerate(account.checks)}
    compared = {graph.check for graph in account.graphs if _is_compared(graph)}
    return sorted(account.graphs, key=lambda graph: (graph.check not in compared, places.get(graph.check, len(places))))


def _is_compared(graph: GraphEvidence) -> bool:
    return len(graph.code) == len(SIDES)


def _graph(graph: GraphEvidence, programs: Mapping[Side, Program], *, is_open: bool) -> str:
    parts = []
    if any(program.launches for program in programs.values()):
        parts.append(_pair({side: _launches(program) for side, program in programs.items()}))
    if graph.code:
        parts.append(_compared({side: code_lines(file.text) for side, file in graph.code.items()}, graph.code))
    if graph.stages:
        listing = _compared({side: stage_lines(file.text) for side, file in graph.stages.items()}, graph.stages)
        parts.append(details("stages and disassembly of the DVM compiler", listing))
    return details(_summary(graph, programs), "\n".join(parts), is_open=is_open, class_="graph")


def _summary(graph: GraphEvidence, programs: Mapping[Side, Program]) -> str:
    told = "".join(
        f'<small class="{"bad" if program.lost else "none"}">{side}: {text(program_words(program))}</small>'
        for side, program in programs.items()
    )
    return f"<b>{text(graph.graph or graph.check)}</b>{told}"


def _named_only(graph: GraphEvidence) -> str:
    names = ", ".join(code(file.path) for files in (graph.code, graph.stages) for file in files.values())
    return f"<p><b>{text(graph.graph)}</b>: left out, as this page would become too long; see {names}</p>"


def _launches(program: Program) -> str:
    steps = "".join(f"<li>{text(launch)}</li>" for launch in program.launches)
    lost = "".join(f'<li class="bad">✗ {text(name)} is lost: {text(how)}</li>' for name, how in program.lost.items())
    return f"<h4>launches, {program.side}</h4><ol>{steps}</ol>{f'<ul>{lost}</ul>' if lost else ''}"


def _pair(sides: Mapping[Side, str]) -> str:
    return '<div class="pair">' + "".join(tag("div", sides[side]) for side in SIDES if side in sides) + "</div>"


def _compared(lines: Mapping[Side, Sequence[Line]], files: Mapping[Side, KeptFile]) -> str:
    """Write the sides beside each other; what is the same on both is written once."""
    if len(lines) == len(SIDES):
        if are_equal(lines["base"], lines["overlay"]):
            return f"<h4>base and overlay: the same</h4>{_listing(lines['overlay'], 'overlay', files['overlay'])}"
        base, overlay = mark_differences(lines["base"], lines["overlay"])
        lines = {"base": base, "overlay": overlay}
    return _pair({side: f"<h4>{side}</h4>{_listing(own, side, files[side])}" for side, own in lines.items()})


def _listing(lines: Sequence[Line], side: Side, file: KeptFile) -> str:
    shown = "\n".join(_line(line, SIGNS[side]) for line in lines)
    cut = f" ({count(file.cut, 'character')} more are there)" if file.cut else ""
    listing = f'<pre class="code" tabindex="0"><span class="lines">{shown}</span></pre>'
    return f'{listing}<p class="soft">{code(file.path)}{cut}</p>'


def _line(line: Line, sign: str) -> str:
    if line.is_remark:
        return f"<i>{text(line.text)}</i>"
    shown = f"{sign if line.is_own else ' '} {text(line.text)}"
    if line.is_kernel:
        return f"<mark>{shown}</mark>"
    return f'<span class="{"del" if sign == "-" else "ins"}">{shown}</span>' if line.is_own else shown
