"""How long the checks took, and each graph to compile and to run."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.page.html import section, table, text
from toolkit.page.kernels import by_graph
from toolkit.page.plots import time_bars
from toolkit.page.values import SIDES, Account
from toolkit.page.words import NONE

CHECK_HEADS = ("check", "base, s", "overlay, s", "time")
GRAPH_HEADS = ("graph", "compile, base", "compile, overlay", "run, base", "run, overlay")


def render_timings(account: Account) -> str:
    """Write the tables of times."""
    return section("timings", "Timings", _body(account))


def _body(account: Account) -> Iterator[str]:
    if account.proof.runtime == "host":
        yield '<p class="soft">Times of this machine\'s CPU; they say nothing of speed on an NPU.</p>'
    yield _checks(account)
    programs = [one for one in by_graph(account.programs) if any(program.seconds for program in one[2].values())]
    if programs:
        rows = [
            (
                f"{text(graph)}<small>{text(check)}</small>",
                *(
                    f"{sides[side].seconds[kind]:.3f} s" if side in sides and kind in sides[side].seconds else NONE
                    for kind in ("compile", "run")
                    for side in SIDES
                ),
            )
            for check, graph, sides in programs
        ]
        yield table("Each graph: time to compile and to run", GRAPH_HEADS, rows, class_="figures")


def _checks(account: Account) -> str:
    longest = max((result.seconds for check in account.checks for result in check.results.values()), default=0.0)
    rows = []
    for check in account.checks:
        times = {side: result.seconds for side, result in check.results.items()}
        shown = (f"{times[side]:.2f}" if side in times else NONE for side in SIDES)
        rows.append((text(check.name), *shown, time_bars(times, longest)))
    return table("Time of each check", CHECK_HEADS, rows, class_="histogram")
