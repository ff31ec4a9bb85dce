"""Disagreement with the real builder is found; that there is none with it stands in tests/e2e/test_reference.py."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from verify.reference.against_real import DisagreementError, Pair, build_beside
from verify.reference.program import ProgramError


class DataType(str):
    """An element type of the seam."""


@dataclass
class Answer:
    """What the seam's builder answers for a value."""

    told: str
    size: tuple[int, ...]

    def dtype(self) -> DataType:
        return DataType(f"real {self.told}")

    def shape(self) -> tuple[int, ...]:
        return self.size


@dataclass
class RealBuilder:
    """A seam for the real builder: answers with one type and one shape, and notes what it was asked for."""

    told: str
    size: tuple[int, ...]
    asked: list[str]

    def __getattr__(self, name: str) -> Callable[..., Answer]:
        def call(*arguments: Any, **options: Any) -> Answer:
            assert not any(isinstance(one, Pair) for one in arguments)
            self.asked.append(name)
            return Answer(self.told, self.size)

        return call


@pytest.fixture
def asked() -> list[str]:
    return []


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch, asked: list[str]) -> Callable[[str, tuple[int, ...]], Callable[..., Any]]:
    """Return a function that makes a `dvm.kernel` whose builder answers with one type and shape."""
    package = ModuleType("torch_npu._inductor.dvm")
    names = ("float16", "bfloat16", "float32", "int32", "int64")
    vars(package).update({name: DataType(f"real {name}") for name in names}, bool_=DataType("real bool"))
    vars(package).update(is_ascend950=False, config=SimpleNamespace(bf16_vector_keep_promoted=False))
    vars(package).update(KERNEL_FACTORY={("vector", False): lambda: RealBuilder("bool", (1,), [])})
    monkeypatch.setitem(sys.modules, "torch_npu._inductor.dvm", package)

    def answer(told: str, size: tuple[int, ...]) -> Callable[..., Any]:
        return lambda ktype, dyn_shape: lambda build: build(RealBuilder(told, size, asked)) or ktype

    return answer


def doubled(k: Any) -> None:
    """Double a vector."""
    k.store(k.mul(k.load([4], DataType("real float32")), 2), DataType("real float32"))


def test_both_builders_are_asked_the_same(real: Callable[..., Any], asked: list[str]) -> None:
    made, program = build_beside(real("float32", (4,)), doubled, "vector", dyn_shape=False)
    assert made == "vector"
    assert asked == ["load", "mul", "store"]
    assert str(program).splitlines() == ["%0 = load([4]) float32", "%1 = mul(%0, 2) float32", "%2 = store(%1) float32"]


def test_another_element_type_is_a_disagreement(real: Callable[..., Any]) -> None:
    with pytest.raises(DisagreementError, match=r"^%0 = load: float32 here, float16 in the real builder$"):
        build_beside(real("float16", (4,)), doubled, "vector", dyn_shape=False)


def test_another_shape_is_a_disagreement(real: Callable[..., Any]) -> None:
    with pytest.raises(DisagreementError) as caught:
        build_beside(real("float32", (8,)), doubled, "vector", dyn_shape=False)
    assert str(caught.value) == "%0 = load([4]) float32: shape [4] here, [8] in the real builder"


def test_comparisons_answer_as_the_real_builder_s_do(real: Callable[..., Any]) -> None:
    def build(k: Any) -> None:
        k.less(k.load([4], DataType("real float32")), 0)

    package = sys.modules["torch_npu._inductor.dvm"]
    package.KERNEL_FACTORY["vector", False] = lambda: RealBuilder("float32", (1,), [])
    _, program = build_beside(real("float32", (4,)), build, "vector", dyn_shape=False)
    assert str(program.instructions[1]) == "%1 = less(%0, 0) float32"


def test_what_is_refused_here_never_reaches_the_real_builder(real: Callable[..., Any], asked: list[str]) -> None:
    def build(k: Any) -> None:
        k.sum(k.load([4], DataType("real float16")), [0], False)

    with pytest.raises(ProgramError, match="sum of float16, expected float32"):
        build_beside(real("float16", (4,)), build, "spec", dyn_shape=False)
    assert asked == ["load"]
