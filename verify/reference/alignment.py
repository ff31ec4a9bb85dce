"""Find out which value of a kernel's program each recorded launch loads and stores, and where.

    plan = align(program, recording)

A recording holds what the real compiler and runtime said of one launch of the kernel: the stages that the compiler
lists (verify.reference.listing) and the accesses of the launches (verify.launches). A stage's loads and stores stand in
both in the same order, which gives each its address. What a node of the listing computes is found out from below, by
its operation and operands, and from above, by what its users may be (verify.reference.terms). Where two different
values remain possible for a store, or a launch does not fit its stage, that is an AlignmentError; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from verify.reference.listing import LOADS, STORES, Node, parse_listing
from verify.reference.paired import AlignmentError, PairedStage, Recording, Stored, pair_stages
from verify.reference.program import Instruction, Program
from verify.reference.stages import Launch, Place, Plan, Read, Write
from verify.reference.terms import COMMUTATIVE, TRANSPARENT, Terms

ROUNDS = 8
"""How often what is known of one stage is carried to the others. Two suffice for all kernels seen."""

ANSWERS = ("Compare", "CompareS")
"""Nodes that give 0 or 1, which no cast rounds."""

WIDTHS = {"bool": 0, "bfloat16": 1, "float16": 1, "float32": 2, "int32": 2, "int64": 3}
"""Which element type holds more than which."""


def align(program: Program, recording: Recording) -> Plan:
    """Return the launches with what each loads and stores; raise AlignmentError where they do not tell."""
    stages = pair_stages(parse_listing(recording.listing), recording.launches)
    matching = _Matching(program, recording, Terms(program, recording.numbers), stages)
    if len(stages) == 1:
        matching.take_outputs()  # nothing crosses, so the addresses alone tell
    else:
        matching.run()
    return matching.plan()


class _Matching:
    """Narrows down what each node of each stage may be."""

    def __init__(self, program: Program, recording: Recording, terms: Terms, stages: list[PairedStage]) -> None:
        self._program, self._recording, self._terms, self._stages = program, recording, terms, stages
        self._stores = [stored for stage in stages for stored in stage.stored]
        self._outputs = {store.number: terms.of[store.values[0].number] for store in program.stores}

    def run(self) -> None:
        for _ in range(ROUNDS):
            before = [set(stored.terms) for stored in self._stores]
            for stage in self._stages:
                self._match_upwards(stage)
                self._match_downwards(stage)
            self._narrow_stores()
            if before == [stored.terms for stored in self._stores]:
                break
        for stored in self._stores:
            self._settle(stored)

    def take_outputs(self) -> None:
        """Match the stores of a single stage with the outputs, and its loads with the inputs, by their addresses."""
        stage = self._stages[0]
        free = list(self._program.stores)
        for stored in self._stores:
            copied = not any(stored.address == address for address in self._recording.addresses.values())
            wanted = None if copied else stored.address
            found = next((one for one in free if self._recording.addresses[one.number] == wanted), None)
            if found is None:
                raise AlignmentError(f"the only stage of the listing: {stored.node} is none of the outputs")
            free.remove(found)
            stored.output, stored.instruction = found.number, found.values[0].number
        stage.terms = {number: self._loadable(stage, address) for number, address in stage.loaded.items()}

    def plan(self) -> Plan:
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

    def _match_upwards(self, stage: PairedStage) -> None:
        for node in stage.listed.nodes:
            if node.name in LOADS:
                possible = self._loadable(stage, stage.loaded[node.number])
            elif node.name in STORES or node.name in TRANSPARENT:
                possible = set(stage.terms[node.operands[0]])
            else:
                possible = {one for one in self._terms.matching(node) if self._operands(stage, node, one)}
            stage.terms[node.number] = possible & stage.terms.get(node.number, possible)
            if not stage.terms[node.number]:
                raise AlignmentError(
                    f"stage {stage.number} of the listing: {node} is nothing that the program computes"
                )
        for stored in stage.stored:
            stored.terms = stage.terms[stored.node.number]

    def _match_downwards(self, stage: PairedStage) -> None:
        for node in (one for one in reversed(stage.listed.nodes) if one.operands):
            wanted: dict[int, set[int]] = {number: set() for number in node.operands}
            for term in stage.terms[node.number]:
                if node.name in STORES or node.name in TRANSPARENT:
                    wanted[node.operands[0]].add(term)
                    continue
                for operands in self._operands(stage, node, term):
                    for number, operand in zip(node.operands, operands, strict=True):
                        wanted[number].add(operand)
            for number, possible in wanted.items():
                stage.terms[number] = stage.terms[number] & possible

    def _operands(self, stage: PairedStage, node: Node, term: int) -> list[tuple[int, ...]]:
        """Return the orders of a term's operands in which the node's operands may be they."""
        operands = self._terms.all[term].operands
        orders = [operands]
        if node.name in COMMUTATIVE and len(operands) == 2:
            orders.append(operands[::-1])
        return [
            order
            for order in orders
            if all(one in stage.terms[number] for number, one in zip(node.operands, order, strict=True))
        ]

    def _loadable(self, stage: PairedStage, address: int) -> set[int]:
        """Return the terms of the inputs that lie at an address, and of what earlier stages stored there."""
        inputs = {self._terms.of[one.number] for one in self._inputs_at(address)}
        return inputs.union(*(one.terms for one in self._stores if one.stage < stage.number and one.address == address))

    def _inputs_at(self, address: int) -> list[Instruction]:
        tensors = [one for one in self._program.inputs if one.operation != "scalar"]
        exact = [one for one in tensors if self._recording.addresses[one.number] == address]
        if (
            exact
            or address in self._recording.addresses.values()
            or any(one.address == address for one in self._stores)
        ):
            return exact
        return [one for one in tensors if self._recording.addresses[one.number] is None]

    def _narrow_stores(self) -> None:
        """Drop from each parked value what no load can be of, and from each output's what it is not."""
        for stored in self._stores:
            outputs = self._outputs_at(stored)
            if outputs:
                stored.terms &= set(outputs.values())
                continue
            loaded: set[int] = set()
            for stage in self._stages[stored.stage + 1 :]:
                for number, address in stage.loaded.items():
                    if address == stored.address:
                        loaded |= stage.terms[number]
            stored.terms &= loaded
            if not stored.terms:
                raise AlignmentError(f"stage {stored.stage} of the listing stores {stored.node}, which no stage loads")
            self._stages[stored.stage].terms[stored.node.number] = stored.terms

    def _outputs_at(self, stored: Stored) -> dict[int, int]:
        """Return the outputs that a store may be: they lie at its address and have its element type and value."""
        copied = not any(stored.address == address for address in self._recording.addresses.values())
        return {
            store.number: self._outputs[store.number]
            for store in self._program.stores
            if self._outputs[store.number] in stored.terms
            and store.dtype == stored.node.dtype
            and self._recording.addresses[store.number] == (None if copied else stored.address)
        }

    def _settle(self, stored: Stored) -> None:
        if len(stored.terms) != 1:
            possible = ", ".join(str(self._instructions(one)[0]) for one in sorted(stored.terms))
            raise AlignmentError(f"stage {stored.stage} of the listing: {stored.node} may be of {possible}")
        outputs = list(self._outputs_at(stored))
        if len(outputs) > 1:
            raise AlignmentError(f"stage {stored.stage} of the listing: {stored.node} may be outputs {outputs}")
        stored.output = outputs[0] if outputs else None
        if stored.output is None:
            stored.instruction = self._represent(stored)
        else:
            stored.instruction = self._program.instructions[stored.output].values[0].number

    def _represent(self, stored: Stored) -> int:
        """Return the instruction whose value, of the stored element type, roundings and size, a parked value is."""
        (term,) = stored.terms
        alike = self._instructions(term)
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
        return typed[0].number

    def _instructions(self, term: int) -> list[Instruction]:
        return [self._program.instructions[number] for number, one in self._terms.of.items() if one == term]

    def _trace(self, one: Instruction) -> tuple[tuple[str, ...], bool]:
        """Return the roundings and whether there is a broadcast between an instruction and what it is a form of."""
        rounded: list[str] = []
        repeated = False
        while one.operation in ("cast", "broadcast", "reshape", "copy") and one.values:
            source = self._program.instructions[one.values[0].number]
            if self._terms.of.get(source.number) != self._terms.of[one.number]:
                break
            repeated |= one.operation == "broadcast"
            if one.operation == "cast" and _rounds(source.dtype, one.dtype):
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
        for one in self._inputs_at(address):
            if self._terms.of[one.number] in wanted:
                yield Read(instruction=one.number)
        for stored in self._stores:
            if stored.stage < stage.number and stored.address == address and stored.terms & wanted:
                for number in self._alike(stored.instruction):
                    yield Read(instruction=number, place=self._place(stored), dtype=stored.node.dtype)

    def _alike(self, number: int) -> list[int]:
        """Return the instructions that give the very value of one; a listing does not tell which of them it stores."""
        one = self._program.instructions[number]
        shapes = self._recording.shapes
        return [
            other.number
            for other in self._instructions(self._terms.of[number])
            if (other.dtype, shapes[other.number], self._trace(other)) == (one.dtype, shapes[number], self._trace(one))
            and other.operation not in ("load", "view_load")
        ]


def _trace(node: Node, nodes: Mapping[int, Node]) -> tuple[tuple[str, ...], bool]:
    """Return the roundings and whether there is a broadcast between a stored node and the operation that it is of."""
    rounded: list[str] = []
    repeated = False
    while node.name in STORES or node.name in TRANSPARENT:
        source = nodes[node.operands[0]]
        repeated |= node.name == "Broadcast"
        if node.name == "Cast" and _rounds(source.dtype, node.dtype) and source.name not in ANSWERS:
            rounded.insert(0, node.dtype)
        node = source
    return tuple(rounded), repeated


def _rounds(source: str, target: str) -> bool:
    if "bool" in (source, target):
        return False
    return WIDTHS[target] < WIDTHS[source] or {source, target} == {"float16", "bfloat16"}
