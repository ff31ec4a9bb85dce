"""The whole report as Markdown: for a terminal or a file beside others, without plots."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import unified_diff

from toolkit.page.agreement import beyond_words
from toolkit.page.compare import are_equal, code_lines, stage_lines
from toolkit.page.graphs import NONE_KEPT
from toolkit.page.html import text, visible
from toolkit.page.kernels import NONE_RECORDED as NO_KERNELS
from toolkit.page.kernels import by_graph
from toolkit.page.numbers import NONE_RECORDED as NO_NUMBERS
from toolkit.page.summary import tiles_of
from toolkit.page.values import SIDES, Account, ComponentAccount, GraphEvidence, NumberRow, PatchAccount
from toolkit.page.words import NONE, figure, program_words, result_words, shape_words, short_paths, verdict_words
from toolkit.prove import LIMITS
from toolkit.report import HOST_NOTE

SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!&])")
BUDGET = 400_000
"""Characters that the differences of generated code may take."""


def render_markdown(account: Account) -> str:
    """Write the report; tables and differences only, what is long is named by its file."""
    return "\n\n".join(part for part in _parts(account) if part) + "\n"


def head_parts(account: Account) -> Iterator[str]:
    """Yield the verdict, what must be known before it is believed, and the figures."""
    yield f"# {plain(account.recipe)}: {verdict_words(account)}"
    yield plain(account.description)
    yield from (f"> **Note.** {plain(notice)}" for notice in account.notices)
    yield "\n".join(f"- **{plain(value)}** {plain(name)}" for value, name in tiles_of(account))
    wrong = [result for result in account.proof.results if result.required and not result.ok]
    yield "\n".join(f"- **{plain(one.name)}** on the {one.side}: {one.status}, wanted {one.wanted}" for one in wrong)
    if account.proof.runtime == "host":
        yield f"{plain(HOST_NOTE[:1].upper() + HOST_NOTE[1:])}. {plain(LIMITS['host'])}"


def _parts(account: Account) -> Iterator[str]:
    yield from head_parts(account)
    yield "## Built from"
    for part in account.components:
        yield from _component(part)
    yield "## Checks"
    yield pipe_table(
        ("check", "base", "overlay", "seconds", "again"),
        (
            (plain(check.name), *(plain(result_words(check.results.get(side))) for side in SIDES),
             f"{check.seconds:.1f}", inline_code(check.command))
            for check in account.checks
        ),
    )  # fmt: skip
    yield from _reasons(account)
    yield "## Numbers"
    yield _numbers(account.numbers) if account.numbers else NO_NUMBERS
    yield "## Kernels and launches"
    yield _kernels(account)
    yield "## Generated code"
    yield from _graphs(account.graphs) if account.graphs else [NONE_KEPT]
    yield "## Repeat it"
    yield from (f"{plain(what)}:\n\n{fenced(command, 'sh')}" for what, command in account.commands)


def _component(part: ComponentAccount) -> Iterator[str]:
    yield f"### {plain(part.name)}"
    lines = [f"base: {plain(part.kind)} {plain(part.base_version)}, {inline_code(part.digest)}"]
    lines += [f"from: {inline_code(place)}" for place in part.places]
    lines += [f"becomes: {plain(part.version)}, {inline_code(part.wheel)}, sha256 {inline_code(part.wheel_sha256)}"]
    yield "\n".join(f"- {line}" for line in lines)
    for patch in part.patches:
        yield from _patch(patch)


def _patch(patch: PatchAccount) -> Iterator[str]:
    yield f"#### {plain(patch.name)}{'' if patch.is_in else ' (left out: the base has it)'}"
    yield plain(patch.remark)
    yield fenced(patch.reason, "text") if patch.reason else ""
    lines = [("upstream", plain(patch.upstream_status)), ("witness", plain(patch.witness))]
    yield "\n".join(f"- {name}: {value}" for name, value in (*lines, ("sha256", inline_code(patch.sha256))) if value)
    if patch.diff:
        yield _folded("diff", fenced(patch.diff, "diff"))


def _reasons(account: Account) -> Iterator[str]:
    for result in account.proof.results:
        if result.required and (not result.ok or result.wanted == "fail"):
            yield f"- **{plain(result.name)}** on the {result.side}: {plain(short_paths(result.detail))}"


def _numbers(rows: Sequence[NumberRow]) -> str:
    return pipe_table(
        ("check", "graph", "value", "side", "mode", "against", "largest error", "relative L2", "cosine", "gate"),
        (
            (plain(row.check), plain(row.graph), f"{plain(row.value)} {plain(shape_words(row))}", row.side,
             plain(row.mode), plain(row.reference), figure(row.maximum_absolute_error), figure(row.relative_l2),
             "not finite" if row.cosine is None else f"{row.cosine:.9g}", beyond_words(row))
            for row in rows
        ),
    )  # fmt: skip


def _kernels(account: Account) -> str:
    if not account.programs:
        return NO_KERNELS
    return pipe_table(
        ("check", "graph", *SIDES),
        (
            (plain(check), plain(graph), *(plain(program_words(sides[s])) if s in sides else NONE for s in SIDES))
            for check, graph, sides in by_graph(account.programs)
        ),
    )


def _graphs(graphs: Iterable[GraphEvidence]) -> Iterator[str]:
    room = BUDGET
    for graph in graphs:
        for what, files, split in (("code", graph.code, code_lines), ("stages", graph.stages, stage_lines)):
            if not files:
                continue
            lines = {side: split(file.text) for side, file in files.items()}
            names = ", ".join(inline_code(file.path) for file in files.values())
            title = f"{graph.check}, {graph.graph or 'its graph'}: {what}"
            if len(lines) < len(SIDES):
                yield f"- {plain(title)}, on one side only: {names}"
            elif are_equal(lines["base"], lines["overlay"]):
                yield f"- {plain(title)}: the same on both sides; {names}"
            else:
                base, overlay = ([line.text for line in lines[side]] for side in SIDES)
                difference = "\n".join(unified_diff(base, overlay, "base", "overlay", lineterm=""))
                room -= len(difference)
                yield (
                    _folded(title, fenced(difference, "diff"))
                    if room > 0
                    else f"- {plain(title)}: too long; see {names}"
                )


# --- pieces ----------------------------------------------------------------------------------------------------


def plain(value: object) -> str:
    """Return text on one line in which nothing is markup."""
    return SPECIAL.sub(r"\\\1", " ".join(visible(value).split()))


def fenced(value: str, language: str) -> str:
    """Return text as a block of code, with a fence that it does not hold itself."""
    shown = visible(value)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    return f"{fence}{language}\n{shown.rstrip(chr(10))}\n{fence}"


def inline_code(value: object) -> str:
    """Return text as code within a line, which ends no table's cell."""
    shown = " ".join(visible(value).split()).replace("|", r"\|")
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    return f"{ticks} {shown} {ticks}" if len(ticks) > 1 else f"`{shown}`"


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{text(title)}</summary>\n\n{body}\n\n</details>"


def pipe_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are Markdown."""
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])
