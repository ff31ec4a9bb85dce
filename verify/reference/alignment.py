"""Find out which value of a kernel's program each recorded launch loads and stores, and where.

    plan = align(program, recording)

A recording holds what the real compiler and runtime said of one launch of the kernel: the stages that the compiler
lists (verify.reference.listing) and the accesses of the launches (verify.launches). A stage's loads and stores stand in
both in the same order, which gives each its address. What a node of the listing computes is found out from below, by
its operation and operands, and from above, by what its users may be (verify.reference.terms). Where two different
values remain possible for a store, or a launch does not fit its stage, that is an AlignmentError; nothing is guessed.
"""

from __future__ import annotations

from verify.reference.listing import LOADS, STORES, Node, parse_listing
from verify.reference.paired import AlignmentError, PairedStage, Recording, Stored, pair_stages
from verify.reference.plan import Plan
from verify.reference.planned import Planner, inputs_at
from verify.reference.program import Program
from verify.reference.terms import COMMUTATIVE, TRANSPARENT, Terms

ROUNDS = 8
"""How often what is known of one stage is carried to the others. Two suffice for all kernels seen."""


def align(program: Program, recording: Recording) -> Plan:
    """Return the launches with what each loads and stores; raise AlignmentError where they do not tell."""
    stages = pair_stages(parse_listing(recording.listing), recording.launches)
    terms = Terms(program, recording.numbers, recording.shapes)
    matching = _Matching(program, recording, terms, stages)
    if len(stages) == 1:
        matching.take_outputs()  # nothing crosses, so the addresses alone tell
    else:
        matching.run()
    return Planner(program, recording, terms, stages).plan()


class _Matching:
    """Narrows down what each node of each stage may be."""

    def __init__(self, program: Program, recording: Recording, terms: Terms, stages: list[PairedStage]) -> None:
        self._program, self._recording, self._terms, self._stages = program, recording, terms, stages
        self._stores = [stored for stage in stages for stored in stage.stored]
        self._last = {stored.address: stored for stored in self._stores}
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

    def _match_upwards(self, stage: PairedStage) -> None:
        for node in stage.listed.nodes:
            if node.name in LOADS and node.empty:
                possible = set(self._terms.of.values())  # no address tells, and nothing depends on it
            elif node.name in LOADS:
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
        inputs = {
            self._terms.of[one.number] for one in inputs_at(self._program, self._recording, self._stores, address)
        }
        return inputs.union(*(one.terms for one in self._stores if one.stage < stage.number and one.address == address))

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
                unlaunched = (node.number for node in stage.listed.nodes if node.name in LOADS and node.empty)
                loaded = loaded.union(*(stage.terms[number] for number in unlaunched))
            stored.terms &= loaded
            if not stored.terms:
                raise AlignmentError(f"stage {stored.stage} of the listing stores {stored.node}, which no stage loads")
            self._stages[stored.stage].terms[stored.node.number] = stored.terms

    def _outputs_at(self, stored: Stored) -> dict[int, int]:
        """Return the outputs that a store may be: they lie at its address and have its element type and value.

        What is stored there before the last store is gone in the end, so it is parked, even if it is the same value.
        """
        addresses = self._recording.addresses
        copied = not any(stored.address == address for address in addresses.values())
        here = [one for one in self._program.stores if addresses[one.number] == (None if copied else stored.address)]
        if self._last[stored.address] is not stored and (copied or len(here) == 1):
            return {}
        return {
            store.number: self._outputs[store.number]
            for store in here
            if self._outputs[store.number] in stored.terms and store.dtype == stored.node.dtype
        }

    def _settle(self, stored: Stored) -> None:
        if len(stored.terms) != 1:
            possible = ", ".join(
                str(self._program.instructions[self._terms.instructions_of(one)[0]]) for one in sorted(stored.terms)
            )
            raise AlignmentError(f"stage {stored.stage} of the listing: {stored.node} may be of {possible}")
        outputs = list(self._outputs_at(stored))
        if len(outputs) > 1:
            raise AlignmentError(f"stage {stored.stage} of the listing: {stored.node} may be outputs {outputs}")
        if outputs:
            stored.output = outputs[0]
            stored.instruction = self._program.instructions[outputs[0]].values[0].number
