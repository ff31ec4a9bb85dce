"""Run a kernel by reference, with what the real one does to its inputs before it reads them.

    kernel = ModelledKernel(program, kobj)
    ran = kernel.run(arguments, hazards="recorded")         # npu tensors and numbers, inputs and then outputs
    ran.launches, ran.parked, ran.hazards, ran.remarks      # in words

Three modes: "recorded" goes by what the real runtime launches for this very kernel, with tensors that lie as these do;
"separate" reads all inputs and then writes all outputs; "worst case" parks every value that crosses stages in every
output where it fits and does harm (`verify.reference.worst`). A recording is made once for each layout of arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from verify import on_cpu
from verify.launches import Launch
from verify.reference import recording as recordings
from verify.reference.alignment import align
from verify.reference.evaluate import bind, evaluate
from verify.reference.listing import UnreadableListingError
from verify.reference.paired import AlignmentError, Recording
from verify.reference.plan import Overlaps, Plan
from verify.reference.predicted import compare_prediction
from verify.reference.program import Program
from verify.reference.stages import evaluate_stages, tell_hazards, tell_parked
from verify.reference.worst import plan_worst

MODES = ("recorded", "separate", "worst case")
STAGED = ("vector", "vector:opt_fractal", "spec")
"""The types of kernels whose worst case is known: a launch for each stage, in the builder's order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ran:
    """What one run of a kernel launched and did, in words.

    `hazards` are what may make or makes its numbers wrong, `parked` the values that lay in an output or a workspace,
    and `remarks` what else should be known: why nothing is known of its launches, for one. `unjudged` says why the
    real launches do not compute what the kernel should, so that numbers computed by reference are none of theirs.
    """

    launches: tuple[str, ...] = ()
    hazards: tuple[str, ...] = ()
    parked: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    unjudged: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Known:
    """What the recording of one layout gave. Without a plan nothing is lost whatever the launches do."""

    ran: Ran
    plan: Plan | None
    overlaps: Overlaps | None


class ModelledKernel:
    """One built kernel: its program, the real object (`kobj`), and the recordings made of it so far."""

    def __init__(self, program: Program, kernel: Any) -> None:
        self.program = program
        self._kernel = kernel
        self._known: dict[tuple[Any, ...], _Known] = {}

    def run(self, arguments: Sequence[Any], hazards: str) -> Ran:
        """Compute the outputs in their own memory, and what else is written, and say how."""
        if hazards not in MODES:
            raise ValueError(f"hazards {hazards!r}, expected one of {', '.join(map(repr, MODES))}")
        binding = bind(self.program, [_share(one) for one in arguments])
        if hazards == "separate":
            evaluate(binding)
            return Ran()
        known = self._find(hazards, arguments, binding.arguments)
        if known.plan is None or known.overlaps is None:
            evaluate(binding)
        else:
            evaluate_stages(known.plan, binding, known.overlaps)
        return known.ran

    def _find(self, hazards: str, arguments: Sequence[Any], shared: Mapping[int, Any]) -> _Known:
        key = (hazards, *recordings.layout_of(arguments))
        if key not in self._known:
            know = self._record if hazards == "recorded" else self._suppose
            self._known[key] = know(arguments, shared)
        return self._known[key]

    def _suppose(self, arguments: Sequence[Any], shared: Mapping[int, Any]) -> _Known:
        tensors = {number: one for number, one in shared.items() if hasattr(one, "untyped_storage")}
        copied = frozenset(one for one in tensors if recordings.is_copied(self.program, one, tensors[one]))
        overlaps = recordings.overlaps_of(shared, copied)
        if self.program.kind not in STAGED or not _is_aliased(self.program, overlaps):
            return _Known(ran=Ran(), plan=None, overlaps=None)
        plan = plan_worst(self.program, recordings.shapes_of(self.program, shared), overlaps, copied)
        hazards = tuple(f"supposed, not recorded: {one}" for one in tell_hazards(plan, overlaps))
        return _Known(ran=Ran(hazards=hazards, parked=tell_parked(plan)), plan=plan, overlaps=overlaps)

    def _record(self, arguments: Sequence[Any], shared: Mapping[int, Any]) -> _Known:
        if twice := _stored_twice(self.program):
            hazard = f"not launched: the real runtime was seen never to come back from a kernel that stores {twice}"
            return _Known(ran=Ran(hazards=(hazard,)), plan=None, overlaps=None)
        recording = recordings.record(self._kernel, self.program, arguments)
        copied = frozenset(number for number, address in recording.addresses.items() if address is None)
        overlaps = recordings.overlaps_of(shared, copied)
        words = tuple(_tell_launch(launch, self.program, recording, shared) for launch in recording.launches)
        if unjudged := tell_empty(recording.launches):
            return _Known(ran=Ran(launches=words, unjudged=unjudged), plan=None, overlaps=None)
        try:
            plan = align(self.program, recording)
        except (AlignmentError, UnreadableListingError) as fault:
            if _is_aliased(self.program, overlaps):
                raise AlignmentError(f"{self.program.name}: {fault}; its outputs lie in its inputs' memory") from fault
            return _Known(ran=Ran(launches=words, remarks=(f"not matched with its launches: {fault}",)), plan=None,
                          overlaps=None)  # fmt: skip
        hazards, parked = tell_hazards(plan, overlaps), tell_parked(plan)
        remarks = compare_prediction(plan, recording.listing)
        ran = Ran(launches=words, hazards=hazards, parked=parked, remarks=remarks)
        return _Known(ran=ran, plan=plan, overlaps=overlaps)


def _stored_twice(program: Program) -> str:
    """Say which value is two outputs of a kernel in stages, "" where none is: its compiler loops for ever."""
    stored = [store.values[0].number for store in program.stores]
    twice = [number for number in dict.fromkeys(stored) if stored.count(number) > 1]
    if program.kind != "spec" or program.stages == 1 or not twice:
        return ""
    return f"{program.instructions[twice[0]]} as two outputs"


def tell_empty(launches: Sequence[Launch]) -> tuple[str, ...]:
    """Say which launches have no instruction: DVM of torch_npu 2.12.0.post3 makes nothing of some stages."""
    return tuple(
        f"launch {number} of {len(launches)} is empty: what its stage should store is never stored"
        for number, launch in enumerate(launches, 1)
        if launch.accesses == ()
    )


def _share(one: Any) -> Any:
    return on_cpu.share(one) if hasattr(one, "untyped_storage") else one


def _is_aliased(program: Program, overlaps: Overlaps) -> bool:
    inputs = [one.number for one in program.inputs if one.operation != "scalar"]
    return any(overlaps(one, store.number) != "none" for one in inputs for store in program.stores)


def _tell_launch(launch: Launch, program: Program, recording: Recording, shared: Mapping[int, Any]) -> str:
    if launch.accesses is None:
        return str(launch)
    ranges = {
        _tell_argument(program, number): (address, shared[number].nbytes)
        for number, address in recording.addresses.items()
        if address is not None
    }

    def name(address: int) -> str:
        found = [what for what, (start, size) in ranges.items() if start <= address < start + size]
        return " = ".join(found) or "temporary"

    return str(replace(launch, accesses=tuple(replace(one, tensor=name(one.address)) for one in launch.accesses)))


def _tell_argument(program: Program, number: int) -> str:
    inputs = [one.number for one in program.inputs]
    outputs = [one.number for one in program.stores]
    return f"input {inputs.index(number)}" if number in inputs else f"output {outputs.index(number)}"
