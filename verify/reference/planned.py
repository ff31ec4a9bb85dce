"""Write down where each launch loads and stores, once it is known which term each store is of.

    plan = Planner(program, recording, terms, stages).plan()

A term stands for all forms of a value: what is stored is one of them, by element type, roundings and repetition. Where
two that differ in memory (verify.reference.contents) remain possible, that is an AlignmentError.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from verify.reference.contents import Contents, rounds
from verify.reference.listing import STORES, Node
from verify.reference.paired import AlignmentError, PairedStage, Recording, Stored
from verify.reference.plan import Launch, Place, Plan, Read, Write
from verify.reference.program import Instruction, Program
from verify.reference.terms import TRANSPARENT, Terms

INPUTS = ("load", "view_load")
ANSWERS = ("Compare", "CompareS")
"""Nodes that give 0 or 1, which no cast rounds."""


class Planner:
    """Makes the plan of stages whose stores have one term each."""

    def __init__(self, program: Program, recording: Recording, terms: Terms, stages: list[PairedStage]) -> None:
        self._program, self._recording, self._terms, self._stages = program, recording, terms, stages
        self._stores = [stored for stage in stages for stored in stage.stored]
        self._contents = Contents(program, recording.shapes).of

    def plan(self) -> Plan:
        """Return the launches, with the fills before each; raise AlignmentError where a value cannot be told."""
        self._check_outputs()
        for stored in self._stores:
            if stored.output is None:
                stored.instruction = self._represent(stored)
        launches: list[Launch] = []
        for stage in self._stages:
            writes = tuple(map(self._write, stage.stored))
            for address, blocks in stage.fills:
                filled = tuple(
                    write for write, stored in zip(writes, stage.stored, strict=True) if stored.address == address
                )
                launches.append(Launch(blocks=blocks, fills=filled))
            launches.append(
                Launch(blocks=stage.launch.blocks, tiles=stage.listed.tiles, reads=self._reads(stage), writes=writes)
            )
        copied = frozenset(number for number, address in self._recording.addresses.items() if address is None)
        return Plan(program=self._program, launches=tuple(launches), shapes=self._recording.shapes, copied=copied)

    def _check_outputs(self) -> None:
        """Make sure that each output is stored once: two stores of it are one that was taken for another."""
        found = [stored.output for stored in self._stores if stored.output is not None]
        shapes = self._recording.shapes
        for store in (one for one in self._program.stores if 0 not in shapes[one.values[0].number]):
            if found.count(store.number) != 1:
                raise AlignmentError(f"the listing stores {store} {found.count(store.number)} times, expected once")

    def _represent(self, stored: Stored) -> int:
        """Return the instruction whose value, of the stored element type, roundings and size, a parked value is."""
        (term,) = stored.terms
        alike = self._instructions(term)
        alike = [one for one in alike if one.operation not in INPUTS] or alike  # inputs are loaded anew, never parked
        stage = self._stages[stored.stage]
        rounded, repeated = _trace(stored.node, stage.nodes)
        traced = {one.number: self._trace(one) for one in alike}
        fitting = [one for one in alike if traced[one.number] == (rounded, repeated)]
        typed = [one for one in fitting if one.dtype == stored.node.dtype] or [
            one for one in fitting if one.dtype == "bool"
        ]
        if not typed:
            raise AlignmentError(
                f"stage {stored.stage} of the listing stores {stored.node}, which is {alike[0]} in another element type"
            )
        other = next((one for one in typed if self._contents[one.number] != self._contents[typed[0].number]), None)
        if other is not None:
            raise AlignmentError(f"stage {stored.stage} of the listing: {stored.node} may be {typed[0]} or {other}")
        return typed[0].number

    def _instructions(self, term: int) -> list[Instruction]:
        return [self._program.instructions[number] for number in self._terms.instructions_of(term)]

    def _trace(self, one: Instruction) -> tuple[tuple[str, ...], bool]:
        """Return the roundings and whether there is a broadcast between an instruction and what it is a form of."""
        rounded: list[str] = []
        repeated = False
        while one.operation in ("cast", "broadcast", "reshape", "copy") and one.values:
            source = self._program.instructions[one.values[0].number]
            if self._terms.of.get(source.number) != self._terms.of[one.number]:
                break
            repeated |= one.operation == "broadcast"
            if one.operation == "cast" and rounds(source.dtype, one.dtype):
                rounded.insert(0, one.dtype)
            one = source
        return tuple(rounded), repeated

    def _write(self, stored: Stored) -> Write:
        return Write(
            instruction=stored.instruction,
            place=self._place(stored),
            dtype=stored.node.dtype,
            atomic=stored.atomic,
            store=stored.output,
        )

    def _place(self, stored: Stored) -> Place:
        if stored.output is not None:
            return Place(argument=stored.output)
        arguments = self._recording.addresses
        outputs = [store.number for store in self._program.stores if arguments[store.number] == stored.address]
        inputs = [one.number for one in self._program.inputs if arguments.get(one.number) == stored.address]
        if outputs or inputs:
            return Place(argument=(outputs or inputs)[0])
        copies = [one.output for one in self._stores if one.address == stored.address and one.output is not None]
        if copies:  # the gapless copy of an output of other strides
            return Place(argument=copies[0])
        spaces = [one.address for one in self._stores if one.address not in arguments.values()]
        return Place(workspace=stored.address - min(spaces))

    def _reads(self, stage: PairedStage) -> tuple[Read, ...]:
        reads: dict[int, Read] = {}
        for number, address in stage.loaded.items():
            for read in self._read(stage, stage.terms[number], address):
                if reads.setdefault(read.instruction, read) != read:
                    raise AlignmentError(
                        f"stage {stage.number} of the listing loads %{read.instruction} from two places"
                    )
        return tuple(reads.values())

    def _read(self, stage: PairedStage, possible: Iterable[int], address: int) -> Iterable[Read]:
        wanted = set(possible)
        for one in inputs_at(self._program, self._recording, self._stores, address):
            if self._terms.of[one.number] in wanted:
                yield Read(instruction=one.number)
        for stored in self._stores:
            if stored.stage < stage.number and stored.address == address and stored.terms & wanted:
                for number in self._alike(stored.instruction):
                    yield Read(instruction=number, place=self._place(stored), dtype=stored.node.dtype)

    def _alike(self, number: int) -> list[int]:
        """Return the instructions that give the very value of one; a listing does not tell which of them it stores."""
        one = self._program.instructions[number]
        return [
            other.number
            for other in self._instructions(self._terms.of[number])
            if other.dtype == one.dtype
            and self._contents[other.number] == self._contents[number]
            and other.operation not in INPUTS
        ]


def inputs_at(program: Program, recording: Recording, stores: Sequence[Stored], address: int) -> list[Instruction]:
    """Return the inputs that a launch may load from an address: those there, or any whose copy it may be."""
    tensors = [one for one in program.inputs if one.operation != "scalar"]
    exact = [one for one in tensors if recording.addresses[one.number] == address]
    if exact or address in recording.addresses.values() or any(one.address == address for one in stores):
        return exact
    return [one for one in tensors if recording.addresses[one.number] is None]


def _trace(node: Node, nodes: Mapping[int, Node]) -> tuple[tuple[str, ...], bool]:
    """Return the roundings and whether there is a broadcast between a stored node and the operation that it is of."""
    rounded: list[str] = []
    repeated = False
    while node.name in STORES or node.name in TRANSPARENT:
        source = nodes[node.operands[0]]
        repeated |= node.name == "Broadcast"
        if node.name == "Cast" and rounds(source.dtype, node.dtype) and source.name not in ANSWERS:
            rounded.insert(0, node.dtype)
        node = source
    return tuple(rounded), repeated
