"""The alias hazard: a value that a kernel keeps in an output is stored over an input that is still needed.

It takes three things together: a call passes one buffer as an input and as an output, the kernel may keep a value in
that output before it ends, and it reads the input in that stage or a later one. One buffer in and out by itself is
none: `dst.copy_(x.sum())` passes dst twice and never uses what it loads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from toolkit.scan.aliasing import Run, find_runs
from toolkit.scan.kernels import Kernel, published_names
from toolkit.scan.outline import Outline
from toolkit.scan.parking import may_park
from toolkit.scan.program import REDUCTIONS, Output, Program, Value, read_program
from toolkit.scan.values import Hazard


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
    program = _program(kernel.body)
    if program.unknown:
        return [], [f"{run.kernel}: `{program.unknown[0]}` is no statement of a builder that is known"]
    wanted = len(program.inputs) + len(program.outputs)
    if len(run.memory) != wanted:
        return [], [f"{run.kernel}: line {run.line} passes {len(run.memory)} arguments, the kernel has {wanted}"]
    return list(_find(run, program)), []


@lru_cache(maxsize=4096)
def _program(body: tuple[str, ...]) -> Program:
    return read_program(body)


def _find(run: Run, program: Program) -> Iterator[Hazard]:
    """Yield the hazards of one call: each value with the output that may hold it and the input that it overwrites."""
    for output in program.outputs:
        place = len(program.inputs) + output.index
        written = run.memory[place]
        for index, load in enumerate(program.inputs):
            read = run.memory[index]
            if written is None or read is None or not written.overlaps(read):
                continue
            for value in program.kept():
                if (stage := _read_after(program, value, load)) is not None:
                    yield from _hazard(run, program, value, output, index, stage)


def _read_after(program: Program, value: Value, load: str) -> int | None:
    """Return the last stage that reads an input once a value is being made, or None if none does."""
    return max((stage for stage in program.stages_reading(load) if stage >= value.stage), default=None)


def _hazard(run: Run, program: Program, value: Value, output: Output, index: int, stage: int) -> Iterator[Hazard]:
    verdict = may_park(program, value, output)
    if verdict == "no":
        return
    place = len(program.inputs) + output.index
    memory = run.memory[place]
    assert memory is not None
    yield Hazard(
        kernel=run.kernel,
        line=run.line,
        value=value.name,
        made=value.stage,
        used=program.last_use(value.name),
        output=run.names[place],
        input=run.names[index],
        buffer=memory.buffer,
        read=stage,
        certainty="certain" if verdict == "yes" and stage > value.stage else "possible",
    )
