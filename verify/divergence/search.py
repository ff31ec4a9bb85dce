"""Find the first stage in which eager and compiled differ."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from verify.divergence.comparison import Compared, Comparison, Explain, Gates
from verify.divergence.isolation import find_module_calls, find_node_calls
from verify.divergence.program import Program, make_program, split_arguments
from verify.divergence.report import Report, Stage
from verify.divergence.runs import outside_inference_mode, run_compiled, same_randomness
from verify.divergence.subjects import By, Planned, plan_stages, subject_of
from verify.numbers import compare


def first_difference(
    module: Any,
    inputs: Any,
    *,
    run: Callable[..., Any] | None = None,
    gates: Gates = None,
    backward: bool = True,
    by: By = "auto",
    isolate: bool = False,
    explain: Explain = "first",
    seed: int = 0,
) -> Report:
    """Compare eager with compiled, stage by stage, and name the first that differs beyond its gate, and why.

    `module` is a module or a function, `inputs` its arguments: a tuple or list of the positional ones, a mapping of
    those by keyword, or one tensor. Both sides, and each of the runs, start from copies of the inputs, parameters and
    buffers, and from the same random numbers.

    Stages are the outputs of submodules and what the code names with `tap`, in the order in which eager computes
    them, then their gradients; where there are none, or with `by="nodes"`, the nodes of the graph that Dynamo traces.
    A tap is one more output of the compiled graph, which forces a store there and changes what is fused: so the ends
    are compared without taps too, and the report says where the two disagree. `isolate` also compiles each stage by
    itself, on eager's inputs.

    `run(function, *tensors, tangents=...)` makes and runs the compiled side, and returns `results`, `inputs` and
    `gradients` (see `verify.divergence.runs`); by default `torch.compile` on the tensors' device, and
    `functools.partial(run_compiled, backend=...)` or `functools.partial(verify.run_generated, hazards=...)` are others.
    `explain` says for which differences a cause is looked for, which takes dozens of eager runs: of each table the
    "first" whose bits differ and the first beyond its gate, "all", or "nothing".
    `gates` is one gate for all, or gates by stage name or dtype ("float32"); by dtype by default.

    Beyond the gate of its type, a value that is as near to FP64 as eager's own counts as within (`Stage.as_near`);
    gates that are given are kept to, and with `explain="nothing"` nobody looks.

    Raises ValueError where the module returns nothing that can be compared. A side that fails is in the report; where
    it fails with taps alone, that is among the notes.
    """
    comparison = Comparison(run=run or run_compiled, gates=gates, explain=explain, seed=seed)
    with outside_inference_mode():
        return _search(comparison, module, inputs, backward=backward, by=by, isolate=isolate)


def _search(comparison: Comparison, module: Any, inputs: Any, *, backward: bool, by: By, isolate: bool) -> Report:
    args, kwargs = split_arguments(inputs)
    program, seed = make_program(module, args, kwargs), comparison.seed
    if not backward:
        program = replace(program, tensors=tuple(one.detach() for one in program.tensors))
    subject = comparison.attempt("eager", "without taps", lambda: subject_of(program, seed))
    if subject is None:
        comparison.try_compiled(program)
        return _make_report(comparison, None, None, ())
    ends = comparison.compare(subject, "without taps")
    if ends is not None and not ends.stages:
        raise ValueError(f"{_name_of(module)} returns no number, changes no input, and there is no gradient to compare")
    if backward and not any(one.requires_grad for one in subject.tensors):
        comparison.notes.append("no input and no parameter requires a gradient: forward only")
    failed = len(comparison.failures)
    planned = comparison.attempt("eager", "to find the stages", lambda: plan_stages(program, subject, by, seed))
    if planned is None:
        if ends is not None:
            comparison.excuse_since(failed, "no stages are found, so that none are compared")
        return _make_report(comparison, ends, None, ())
    comparison.notes.extend(planned.notes)
    stages = comparison.compare_tapped(planned.subject, ends) if planned.subject.taps else None
    isolated = _isolate(comparison, module, program, planned) if isolate else ()
    return _make_report(comparison, ends, stages, isolated)


def _isolate(comparison: Comparison, module: Any, program: Program, planned: Planned) -> tuple[Stage, ...]:
    """Compile each stage by itself, on eager's inputs."""
    with same_randomness(comparison.seed):
        if planned.traced is None:
            calls = find_module_calls(module, program)
        else:
            calls = find_node_calls(planned.traced, program.tensors, [one.name for one in planned.subject.taps])
    found: list[Stage] = []
    for call in calls:
        what = f"{call.name} by itself"
        subject = comparison.attempt("eager", what, functools.partial(subject_of, call.program, comparison.seed))
        compared = comparison.compare(subject, what) if subject is not None else None
        found.extend(_name_isolated(stage, call.name) for stage in (compared.stages if compared else ()))
    return tuple(found)


def _name_isolated(stage: Stage, call: str) -> Stage:
    """Name the result of a call as its tap is named, and its inputs as its own."""
    if stage.kind == "result":
        return replace(stage, kind="value", name=call + stage.name)
    return replace(stage, name=f"{stage.name} of {call}")


def _make_report(
    comparison: Comparison, ends: Compared | None, stages: Compared | None, isolated: tuple[Stage, ...]
) -> Report:
    inner, outer = (found.stages if found else () for found in (stages, ends))
    everything = (*inner, *outer, *isolated)
    return Report(
        ends=outer,
        stages=inner,
        isolated=isolated,
        first=next((stage for stage in everything if not stage.within), None),
        earliest=next((stage for stage in everything if not stage.difference.bit_equal), None),
        disagreements=tuple(_find_disagreements(ends, stages)) if ends and stages else (),
        failures=tuple(comparison.failures),
        notes=tuple(dict.fromkeys(comparison.notes)),
    )


def _find_disagreements(ends: Compared, stages: Compared) -> list[str]:
    """Say which ends come out otherwise with taps, on either side."""
    tapped = {(stage.kind, stage.name): stage for stage in stages.stages}
    found = []
    for stage in ends.stages:
        key = (stage.kind, stage.name)
        if key not in tapped:
            continue
        if not compare(stages.eager[key], ends.eager[key]).bit_equal:
            found.append(f"eager's own {stage.title} is another in a second run: it cannot be repeated")
        elif not compare(stages.compiled[key], ends.compiled[key]).bit_equal:
            before, after = _verdict(stage), _verdict(tapped[key])
            verdicts = f"{before} both times" if before == after else f"{before} without them, {after} with them"
            found.append(f"{stage.title} has other bits: {verdicts}")
    return found


def _verdict(stage: Stage) -> str:
    if stage.difference.bit_equal:
        return "bit-equal"
    if stage.as_near:
        return "as near to FP64 as eager"
    return "within its gate" if stage.within else "beyond its gate"


def _name_of(module: Any) -> str:
    return str(getattr(module, "__name__", type(module).__name__))
