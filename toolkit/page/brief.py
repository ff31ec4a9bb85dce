"""The report as short Markdown, for a pull request: what was found in figures, and only what stands out by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from toolkit.model import CheckResult, Side
from toolkit.page.agreement import beyond_words, is_computed
from toolkit.page.kernels import NONE_RECORDED as NO_KERNELS
from toolkit.page.kernels import by_graph
from toolkit.page.markdown import head_parts, inline_code, pipe_table, plain
from toolkit.page.numbers import NONE_RECORDED as NO_NUMBERS
from toolkit.page.values import (
    SIDES,
    Account,
    CheckAccount,
    ComponentAccount,
    NumberRow,
    PatchAccount,
    Program,
    grouped,
)
from toolkit.page.words import (
    NONE,
    count,
    figure,
    first_clause,
    program_words,
    result_words,
    shape_words,
    without_it,
)

WORST = 5
ROOM = 12_000
"""Characters that each list or table may take; what is beyond it is counted."""

NUMBER_HEADS = ("graph", "value", "side", "mode", "against", "largest error", "relative L2", "gate")


def render_brief(account: Account) -> str:
    """Write the report short enough for a comment: no diffs, no code, and of the numbers what is beyond its gate."""
    return "\n\n".join(part for part in _parts(account) if part) + "\n"


def _parts(account: Account) -> Iterator[str]:
    yield from head_parts(account)
    yield "## Built from"
    for part in account.components:
        yield _component(part)
        yield _capped([_patch(patch, account) for patch in part.patches])
    yield "## Checks"
    yield _table(("check", "base", "overlay", "reason"), [_check(check) for check in account.checks], "check")
    yield "## Numbers"
    yield from _numbers(account)
    yield "## Kernels and launches"
    yield from _kernels(account)
    yield "## Repeat it"
    yield "\n".join(f"- {plain(what)}: {inline_code(command)}" for what, command in account.commands)
    yield "Diffs, generated code and every value: `toolkit report` writes them as a page, `--full` as Markdown."


def _component(part: ComponentAccount) -> str:
    base = f"{plain(part.kind)} {plain(part.base_version)}, {inline_code(part.digest)}"
    return f"**{plain(part.name)}**: {base}, becomes {plain(part.version)}, sha256 {inline_code(part.wheel_sha256)}."


def _patch(patch: PatchAccount, account: Account) -> str:
    left = "" if patch.is_in else " (left out: the base has it)"
    told = [without_it(patch, account) or patch.remark]
    told += [f"Witness: {patch.witness}"] if patch.witness else []
    return f"- **{plain(patch.name)}**{left}: {plain('. '.join(one.rstrip('.') for one in told if one))}."


def _check(check: CheckAccount) -> tuple[str, ...]:
    results = [check.results.get(side) for side in SIDES]
    return plain(check.name), *(plain(result_words(result)) for result in results), plain(_reason(check.results))


def _reason(results: Mapping[Side, CheckResult]) -> str:
    """Return one line: what is not as required, or what failed as it must, or what the overlay showed."""
    ordered = sorted(results.values(), key=lambda one: (one.ok or not one.required, one.status == "pass"))
    return first_clause(ordered[0].detail) if ordered else NONE


# --- numbers ---------------------------------------------------------------------------------------------------


def _numbers(account: Account) -> Iterator[str]:
    if not account.numbers:
        yield NO_NUMBERS
        return
    computed = [row for row in account.numbers if is_computed(row)]
    beyond = sorted((row for row in computed if not row.within), key=_size, reverse=True)
    good = sorted((row for row in computed if row.side == "overlay" and row.within), key=_size, reverse=True)
    worst = grouped(good, lambda row: (row.graph, row.value))
    if beyond:
        yield "Beyond their gates:"
        yield _table(NUMBER_HEADS, [_number(row) for row in beyond], "row")
    if not any(row.side == "overlay" for row in beyond) and worst:
        yield "Nothing of the overlay is beyond its gate. Its largest relative errors:"
        yield _table(NUMBER_HEADS, [_number(own[0]) for _, own in worst[:WORST]], "row")


def _size(row: NumberRow) -> tuple[bool, bool, float]:
    """Order rows: the overlay's first, and the largest last; what is not finite is larger than any number."""
    return row.side == "overlay", row.relative_l2 is None, row.relative_l2 or 0.0


def _number(row: NumberRow) -> tuple[str, ...]:
    return (
        plain(row.graph),
        f"{plain(row.value)} {plain(shape_words(row))}",
        row.side,
        plain(row.mode),
        plain(row.reference),
        figure(row.maximum_absolute_error),
        figure(row.relative_l2),
        beyond_words(row),
    )


# --- kernels ---------------------------------------------------------------------------------------------------


def _kernels(account: Account) -> Iterator[str]:
    if not account.programs:
        yield NO_KERNELS
        return
    graphs = by_graph(account.programs)
    differing = [one for one in graphs if len(one[2]) == len(SIDES) and _differ(one[2])]
    alike = sum(len(sides) == len(SIDES) for _, _, sides in graphs) - len(differing)
    rows = [(plain(check), plain(graph), *(plain(program_words(sides[side])) for side in SIDES))
            for check, graph, sides in differing]  # fmt: skip
    if rows:
        yield _table(("check", "graph", *SIDES), rows, "graph")
    single = len(graphs) - len(differing) - alike
    yield f"{count(alike, 'graph')} the same on both sides, {count(single, 'graph')} on one side only."


def _differ(sides: Mapping[Side, Program]) -> bool:
    return program_words(sides["base"]) != program_words(sides["overlay"])


# --- pieces ----------------------------------------------------------------------------------------------------


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], noun: str) -> str:
    shown = rows[: _fitting(sum(map(len, row)) + 3 * len(row) for row in rows)]
    rest = len(rows) - len(shown)
    return pipe_table(heads, shown) + (f"\n\n{count(rest, noun)} more: `--full`." if rest else "")


def _capped(lines: Sequence[str]) -> str:
    shown = lines[: _fitting(map(len, lines))]
    rest = len(lines) - len(shown)
    return "\n".join([*shown, *([f"- {rest} more: `--full`."] if rest else [])])


def _fitting(sizes: Iterable[int]) -> int:
    """Return how many of these sizes there is room for."""
    return sum(total <= ROOM for total in accumulate(sizes))
