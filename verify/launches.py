"""Read which tensors each recorded kernel launch loads and stores, and which inputs that destroys.

    tensors = {"old": (old.data_ptr(), old.nbytes), "x": (x.data_ptr(), x.nbytes)}
    operations = learn_operations(lines, [kernel.kobj.das() for kernel in kernels])
    launches = read_launches(lines, tensors, operations)    # lines: host.recorded_launches, or the log's text split
    lost = overwritten_before_read(launches, ["old"])

The lines are the host sysroot's launch log: one JSON object for each call, here those whose `kind` is "launch":
`function` (name or null), `blocks`, `args` (the argument words in hex) and `allocations` (which words point into live
device memory). Fills and copies stand in the same log and are skipped.

What is known of DVM's arguments was observed on torch_npu 2.13.0 and 2.12.0.post3 against the disassembly that the DVM
compiler prints of the same kernels (`kobj.das()`): on either the instructions of all launches of 22 graphs that update
an input agreed, one by one. A launch of a vector kernel is

    word 0              where blocks wait for each other, 0 if they do not
    word 1              bits 0 to 7 the kind of kernel (0 vector, 1 vector whose blocks wait; 9 and 10, with matrix
                        multiplication, are laid out otherwise), bits 8 to 23 the number of the words that follow
    word 2 and on       instructions, one word 0, then in kernels of kind 1 a few counters

and an instruction says its own length in its first word: in bits 7 to 9 if it works on local memory (bit 0 is 1), in
bits 4 to 7 if it moves memory (bit 0 is 0). The top 16 bits name the operation, by a number that each build of DVM's
device code has its own of: a store is 1a80 in 2.13.0 and 7064 in 2.12.0.post3. So what the numbers mean is learnt from
the disassembly, in the very process. The device address stands in one of the other words, as the whole word. What does
not fit this form stays unknown and is never guessed: an operation that was not learnt and holds an address is an
access of kind "unknown", and a launch whose words do not add up has `accesses` None.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["load", "store", "atomic", "unknown"]
Ranges = Mapping[str, tuple[int, int]]
Operations = Mapping[int, Kind]

TEMPORARY = "temporary"
"""The name of device memory outside all named tensors: a workspace or another buffer of the allocator's."""

OPERATIONS: Mapping[str, Kind] = {
    "load": "load",
    "view_load": "load",
    "view_load_x": "load",
    "store": "store",
    "view_store": "store",
    "store_cond": "store",  # the last block to arrive stores
    "store_atomic": "atomic",
}
"""What the disassembly calls the operations that access device memory."""

OTHER_VALUES = ((0.5, 0.125), (1000, 1000), (-1000, -1000))
"""What an input's values are multiplied by, and what is added, to see whether anything depends on them."""

LISTED = re.compile(r"^\s+\d+: (\w+)(.*)$", re.MULTILINE)  # a workspace's address stands in the remark at the end
HEXADECIMAL = re.compile(r"\b0x[0-9a-f]+\b")
VECTOR_KINDS = (0, 1)
HEADER = 2
OPERATION_SHIFT = 48


class UnreadableLaunchError(ValueError):
    """A launch cannot be judged: its words, or an access to a tensor in question, are of an unknown form."""


@dataclass(frozen=True)
class Access:
    """One instruction's access to device memory. `tensor` is a given name, or "temporary"."""

    kind: Kind
    address: int
    tensor: str


@dataclass(frozen=True)
class Launch:
    """One kernel launch. `accesses` stand in the order of its instructions; None: the words were not understood."""

    function: str | None
    blocks: int
    accesses: tuple[Access, ...] | None

    def count(self, kind: Kind, tensor: str) -> int:
        """Count this launch's accesses of one kind to one tensor."""
        return sum(access.kind == kind and access.tensor == tensor for access in self.accesses or ())

    def stores(self, tensor: str) -> bool:
        """Tell whether this launch writes a tensor, adding to it included."""
        return self.count("store", tensor) + self.count("atomic", tensor) > 0

    def __str__(self) -> str:
        if self.accesses is None:
            return f"{self.blocks} blocks: not understood"
        return f"{self.blocks} blocks: " + ", ".join(f"{access.kind} {access.tensor}" for access in self.accesses)


def learn_operations(lines: Iterable[str], listings: Iterable[str]) -> dict[int, Kind]:
    """Return what the operations' numbers in a log's launches mean, by the disassembly of the launched kernels.

    A launch and a stage of a listing are the same where they have as many instructions and each has the same live
    addresses. A number that two listings name differently is left out.
    """
    stages = [LISTED.findall(stage) for listing in listings for stage in re.split("^vmain", listing, flags=re.M)[1:]]
    meanings: dict[int, set[Kind]] = {}
    for record in _launch_records(lines):
        instructions = split_instructions(_words(record)) or []
        for stage in (stage for stage in stages if _is_same(stage, instructions, _live_memory(record))):
            for (name, _), instruction in zip(stage, instructions, strict=True):
                meanings.setdefault(instruction[0] >> OPERATION_SHIFT, set()).add(OPERATIONS.get(name, "unknown"))
    return {number: kinds.pop() for number, kinds in meanings.items() if len(kinds) == 1}


def read_launches(lines: Iterable[str], tensors: Ranges, operations: Operations) -> list[Launch]:
    """Decode the launches among a log's lines. `tensors` maps names to (address, size in bytes)."""
    return [_read_launch(record, tensors, operations) for record in _launch_records(lines)]


def overwritten_before_read(launches: Sequence[Launch], needed: Iterable[str]) -> dict[str, str]:
    """Return the inputs whose original value was overwritten before any launch read it, each with the reason.

    `needed` names the inputs that the graph mutates and whose original value its results depend on. Launches alone
    do not tell: `dst.copy_(x.sum())` fills `dst`, sums into it, and is right. `needed_inputs` finds out.

    DVM cuts a kernel into stages, a launch each, and may park a value that crosses from one to the next in an output
    that is a mutated input's own buffer. A needed input is lost if it is loaded only by launches after one that
    wrote it: whatever they loaded, the original value was read by nobody. It is safe if it is loaded, and never after
    an earlier launch wrote it. How often a launch loads it says nothing: one load serves the parked value and one the
    input, but `x * x` in a later stage also loads x twice.

    This rests on three things: no operator outside the DVM kernels reads the input, for that leaves no launch here;
    a launch's own loads come before its stores; and `needed` is right. On torch_npu 2.13.0 it agreed with the
    generated code on all observed graphs, those of the numeric catalogue among them.

    Raises UnreadableLaunchError where that decides nothing: an input that is loaded both before and after it is
    written (the later load may be of a parked value, of the final one, or wrong), one that is never loaded, or an
    unknown form that could hide an access.
    """
    reasons = {name: _reason(launches, name) for name in needed}
    return {name: reason for name, reason in reasons.items() if reason}


def needed_inputs(function: Any, tensors: Mapping[str, Any]) -> set[str]:
    """Return the inputs that `function` mutates and on whose original value its results depend.

    Found by running it eagerly on CPU copies: once as it is, and for each mutated input with other values in it,
    near ones and far ones, so that a maximum shows it too. `tensors` maps the function's parameter names to tensors
    of any device, which stay as they are.
    """
    inputs = {name: tensor.detach().cpu() for name, tensor in tensors.items()}
    usual = _effects(function, inputs)
    mutated = [name for name in inputs if not _equal(usual[name], inputs[name])]

    def is_needed(name: str) -> bool:
        others = ((inputs[name] * factor + term).to(inputs[name].dtype) for factor, term in OTHER_VALUES)
        effects = (_effects(function, {**inputs, name: other}) for other in others)
        return any(not _equal(usual[one], effect[one]) for effect in effects for one in usual)

    return {name for name in mutated if is_needed(name)}


def _reason(launches: Sequence[Launch], name: str) -> str | None:
    for number, launch in enumerate(launches, 1):
        _refuse_unknown(launch, number, name)
    loading = [number for number, launch in enumerate(launches, 1) if launch.count("load", name)]
    written = next((number for number, launch in enumerate(launches, 1) if launch.stores(name)), len(launches))
    late = [number for number in loading if number > written]
    if not loading:
        raise UnreadableLaunchError(f"no launch loads {name!r}, though its original value is needed")
    if not late:
        return None
    if loading != late:
        raise UnreadableLaunchError(f"launch {late[0]} loads {name!r} again after launch {written} wrote it")
    return f"launch {written} writes it, and launch {late[0]} is the first to load it"


def _refuse_unknown(launch: Launch, number: int, name: str) -> None:
    if launch.accesses is None:
        raise UnreadableLaunchError(f"launch {number} ({launch.function}) has words of an unknown form")
    if launch.count("unknown", name):
        raise UnreadableLaunchError(f"launch {number} ({launch.function}) does something unknown to {name!r}")


def _launch_records(lines: Iterable[str]) -> list[Mapping[str, Any]]:
    records = (json.loads(line) for line in lines if line.strip())
    return [record for record in records if record["kind"] == "launch"]


def _words(record: Mapping[str, Any]) -> list[int]:
    return [int(word, 16) for word in record["args"]]


def _live_memory(record: Mapping[str, Any]) -> list[tuple[int, int]]:
    return [(int(found["base"], 16), int(found["size"])) for found in record["allocations"]]


def _is_same(
    stage: Sequence[tuple[str, str]], instructions: Sequence[Sequence[int]], live: Sequence[tuple[int, int]]
) -> bool:
    def addresses(words: Iterable[int]) -> set[int]:
        return {word for word in words if _is_live(word, live)}

    return len(stage) == len(instructions) and all(
        addresses(int(number, 16) for number in HEXADECIMAL.findall(operands)) == addresses(instruction[1:])
        for (_, operands), instruction in zip(stage, instructions, strict=True)
    )


def _read_launch(record: Mapping[str, Any], tensors: Ranges, operations: Operations) -> Launch:
    live = _live_memory(record)
    instructions = split_instructions(_words(record))
    accesses = None
    if instructions is not None:
        found = (_read_access(instruction, tensors, live, operations) for instruction in instructions)
        accesses = tuple(access for access in found if access is not None)
    return Launch(record["function"], record["blocks"], accesses)


def split_instructions(words: Sequence[int]) -> list[Sequence[int]] | None:
    """Split a vector kernel's argument words into instructions; None where they are not of that form."""
    if len(words) <= HEADER or words[1] & 0xFF not in VECTOR_KINDS or (words[1] >> 8) & 0xFFFF != len(words) - HEADER:
        return None
    instructions, at = [], HEADER
    while at < len(words) and words[at] != 0:
        length = _length(words[at])
        if length == 0:
            return None
        instructions.append(words[at : at + length])
        at += length
    return instructions if at < len(words) else None


def _length(first: int) -> int:
    return (first >> 7) & 0x7 if first & 1 else (first >> 4) & 0xF


def _read_access(
    instruction: Sequence[int], tensors: Ranges, live: Sequence[tuple[int, int]], operations: Operations
) -> Access | None:
    named = [(word, _name(word, tensors, live)) for word in instruction[1:]]
    found = [(word, name) for word, name in named if name is not None]
    if not found:
        return None
    address, name = found[0]
    kind = operations.get(instruction[0] >> OPERATION_SHIFT, "unknown") if len(found) == 1 else "unknown"
    return Access(kind, address, name)


def _name(word: int, tensors: Ranges, live: Sequence[tuple[int, int]]) -> str | None:
    for name, (address, size) in tensors.items():
        if address <= word < address + size:
            return name
    return TEMPORARY if _is_live(word, live) else None


def _is_live(word: int, live: Sequence[tuple[int, int]]) -> bool:
    return any(base <= word < base + size for base, size in live)


def _effects(function: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Run on copies and return the inputs' final values, by name, and the results, by number."""
    own = {name: tensor.clone() for name, tensor in inputs.items()}
    results = function(**own)
    listed = results if isinstance(results, (tuple, list)) else [results]
    return own | {str(number): result for number, result in enumerate(listed) if hasattr(result, "dtype")}


def _equal(one: Any, other: Any) -> bool:
    return bool(((one == other) | ((one != one) & (other != other))).all())
