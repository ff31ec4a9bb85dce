"""The alias hazard: a value that a kernel keeps in an output is stored over an input that is still needed.

It takes three things together: a call passes one buffer as an input and as an output, the kernel may keep a value in
that output before it ends, and it reads the input in that stage or a later one. One buffer in and out by itself is
none: `dst.copy_(x.sum())` passes dst twice and never uses what it loads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from toolkit.scan.aliasing import Run, find_runs
from toolkit.scan.kernels import Kernel, published_names
from toolkit.scan.outline import Outline
from toolkit.scan.parking import Plan, Write, plan_launches
from toolkit.scan.program import REDUCTIONS, Program, read_program
from toolkit.scan.values import Certainty, Hazard


def find_hazards(outline: Outline, kernels: list[Kernel]) -> tuple[list[Hazard], list[str]]:
    """List the hazards of a file, and what could not be judged."""
    watched = {kernel.name: kernel for kernel in kernels if kernel.backend == "dvm" and _keeps_values(kernel)}
    if not watched:
        return [], []
    others = published_names(outline)
    known = {name: watched[real] for name in (*others, *watched) if (real := _real_name(name, others)) in watched}
    hazards: list[Hazard] = []
    doubts: list[str] = []
    for run in find_runs(outline, known):
        found, doubt = _judge(run, known[run.kernel])
        hazards += found
        doubts += doubt
    return hazards, list(dict.fromkeys(doubts))


def _keeps_values(kernel: Kernel) -> bool:
    """Whether a kernel may store anything before its end: it has stages, or reduces."""
    text = "\n".join(kernel.body)
    return "spec_next" in text or any(f".{name}(" in text for name in REDUCTIONS)


def _real_name(name: str, others: Mapping[str, str]) -> str:
    seen: set[str] = set()
    while name in others and name not in seen:
        seen.add(name)
        name = others[name]
    return name


def _judge(run: Run, kernel: Kernel) -> tuple[list[Hazard], list[str]]:
    if run.doubt:
        return [], [f"{run.kernel}: line {run.line} {run.doubt}"]
    program = _program(kernel.body)
    if program.unknown:
        return [], [f"{run.kernel}: `{program.unknown[0]}` is no statement of a builder that is known"]
    wanted = len(program.inputs) + len(program.outputs)
    if len(run.memory) != wanted:
        return [], [f"{run.kernel}: line {run.line} passes {len(run.memory)} arguments, the kernel has {wanted}"]
    return _find(run, kernel, program)


@lru_cache(maxsize=4096)
def _program(body: tuple[str, ...]) -> Program:
    return read_program(body)


@lru_cache(maxsize=4096)
def _plans(body: tuple[str, ...], kind: str) -> tuple[Plan, ...]:
    return plan_launches(_program(body), kind)


def _find(run: Run, kernel: Kernel, program: Program) -> tuple[list[Hazard], list[str]]:
    """List the hazards of one call: each value with the output that holds it and the input that it overwrites.

    Where it would be one if the two were the same memory, and that cannot be told, it is a doubt.
    """
    hazards, doubts = [], []
    plans: tuple[Plan, ...] = ()
    for output in program.outputs:
        place = len(program.inputs) + output.index
        written = run.memory[place]
        for index, load in enumerate(program.inputs):
            read = run.memory[index]
            is_shared = "no" if written is None or read is None else written.overlaps(read)
            if written is None or is_shared == "no":
                continue
            plans = plans or _plans(kernel.body, kernel.type)
            for write, last, certainty in _overwrites(plans, output.index, load):
                if is_shared == "unknown":
                    doubts.append(
                        f"{run.kernel}: line {run.line}: arguments {index + 1} and {place + 1} may share memory"
                    )
                    continue
                hazard = Hazard(
                    kernel=run.kernel,
                    line=run.line,
                    value=write.value,
                    made=write.launch,
                    used=write.used,
                    output=run.names[place],
                    input=run.names[index],
                    buffer=written.buffer,
                    read=last,
                    certainty=certainty,
                )
                hazards.append(hazard)
    return hazards, doubts


def _overwrites(plans: Sequence[Plan], output: int, load: str) -> Iterator[tuple[Write, int, Certainty]]:
    """Yield each write to an output that comes before a read of the same memory, with the last read.

    It is certain where it does in every plan, and no other choice is left in any.
    """
    found: dict[str, list[tuple[Write, int, bool]]] = {}
    for plan in plans:
        for value, way in _overwrites_of(plan, output, load).items():
            found.setdefault(value, []).append(way)
    for ways in found.values():
        write, last, _ = max(ways, key=lambda way: (way[2], way[1]))
        is_certain = len(ways) == len(plans) and all(is_sure for _, _, is_sure in ways)
        yield write, last, "certain" if is_certain else "possible"


def _overwrites_of(plan: Plan, output: int, load: str) -> dict[str, tuple[Write, int, bool]]:
    """Map each value that is written too early in one plan to the write, the last read, and whether that is sure."""
    found: dict[str, tuple[Write, int, bool]] = {}
    last = max(plan.reads.get(load, ()), default=-1)
    for write in plan.writes:
        is_early = last > write.launch
        if write.output != output or not (is_early or (last == write.launch and write.is_cleared != "no")):
            continue
        is_sure = write.is_sure and (is_early or write.is_cleared == "yes")
        if is_sure or write.value not in found:
            found[write.value] = (write, last, is_sure)
    return found
