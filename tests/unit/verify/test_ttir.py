"""Compiling as far as the front end, with stand-ins for torch, Triton and torch_npu's scheduling."""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from verify import triton_host, ttir
from verify.contract import Request
from verify.ttir import Attempt, Graph

CONFIGURATIONS = 3


class PyCodeCache:
    """The part of Inductor that writes code."""

    @classmethod
    def write(cls, source_code: str) -> None:
        """Write nothing."""

    @classmethod
    def load(cls, source_code: str) -> str:
        """Load a single kernel, as a check does."""
        return cls.load_by_key_path(source_code)

    @classmethod
    def load_by_key_path(cls, source_code: str) -> str:
        """Load what was written."""
        return f"loaded {source_code}"


class ASTSource:
    """A kernel's source; `broken` is what its front end says."""

    def __init__(self, name: str, broken: str = "") -> None:
        self.name, self.broken, self.fn = name, broken, None

    def make_ir(self, _context: object) -> str:
        """Return the kernel's TTIR."""
        if self.broken:
            raise ValueError(self.broken)
        return f"ttir of {self.name}"


class Checked:
    """The scheduling of a release that checks its kernels."""

    def make_ttir_for_check(self, source: ASTSource) -> None:
        """Raise what the front end says."""
        if source.broken:
            raise LookupError(f"no config:\n{source.broken}")


class Unchecked:
    """The scheduling of a release that does not."""


class FakeTensor:
    """A tensor that is on the NPU at once."""

    def npu(self) -> FakeTensor:
        """Return itself."""
        return self


@pytest.fixture
def bring_up(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that puts the stand-ins in place, with how torch compiles and what schedules."""

    def put(compile_graph: Callable[..., None], scheduling: type = Unchecked) -> None:
        @contextlib.contextmanager
        def patch(**_options: object) -> Iterator[None]:
            yield

        torch = types.SimpleNamespace(
            compile=lambda function: lambda *tensors: compile_graph(scheduling(), function),
            _dynamo=types.SimpleNamespace(reset=lambda: None),
        )
        modules = {
            "torch": torch,
            "torch._inductor.codecache": types.SimpleNamespace(PyCodeCache=PyCodeCache),
            "torch._inductor.config": types.SimpleNamespace(patch=patch),
            "triton.compiler.compiler": types.SimpleNamespace(ASTSource=ASTSource),
            "torch_npu._inductor.codegen.scheduling": types.SimpleNamespace(NPUTritonScheduling=scheduling),
        }
        for name, module in modules.items():
            monkeypatch.setitem(sys.modules, name, module)

    return put


def compile_kernel(source: ASTSource) -> None:
    """Compile every configuration, and raise as torch_npu does when none is left."""
    PyCodeCache.write(f"code of {source.name}")
    for _ in range(CONFIGURATIONS):
        with contextlib.suppress(Exception):
            source.make_ir(None)
    raise RuntimeError("no valid configurations")


def compile_checked(scheduling: Any, kernel: ASTSource) -> None:
    """Compile as torch_npu 2.13 does: another kind of kernel for one that is refused, and no word of it."""
    try:
        scheduling.make_ttir_for_check(kernel)
    except Exception:
        kernel = ASTSource(f"{kernel.name}, another kind")
    compile_kernel(kernel)


def try_one(kernel: ASTSource, folder: Path) -> list[Attempt]:
    request = Request((), side="base", runtime="device", site=folder, manifest=None, scratch=folder)
    graph: Any = kernel  # handed to the stand-in's compile as it is
    return ttir.try_graphs([Graph("graph", graph, [FakeTensor()])], request)


def test_a_kernel_is_taken_once_with_its_ttir_and_left_on_disk(bring_up: Callable[..., None], tmp_path: Path) -> None:
    bring_up(lambda _scheduling, kernel: compile_kernel(kernel))
    assert try_one(ASTSource("k"), tmp_path) == [Attempt("graph", ttir="ttir of k")]
    assert (tmp_path / "graph.txt").read_text() == "code of k\n\n# k\nttir of k"


def test_what_the_front_end_says_is_kept(bring_up: Callable[..., None], tmp_path: Path) -> None:
    bring_up(lambda _scheduling, kernel: compile_kernel(kernel))
    (attempt,) = try_one(ASTSource("k", "at 3:4:\n  ^\nrank mismatch"), tmp_path)
    assert (attempt.ttir, attempt.error) == ("", "ValueError: at 3:4:\n  ^\nrank mismatch")
    assert attempt.reason == "rank mismatch"


def test_a_release_that_checks_is_tried_with_both_kinds(bring_up: Callable[..., None], tmp_path: Path) -> None:
    bring_up(compile_checked, Checked)
    assert try_one(ASTSource("k"), tmp_path) == [
        Attempt("graph", ttir="ttir of k"),
        Attempt("graph (without loops)", ttir="ttir of k, another kind"),
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph (without loops).txt", "graph.txt"]


def test_a_refusal_that_the_release_hides_is_seen(bring_up: Callable[..., None], tmp_path: Path) -> None:
    bring_up(compile_checked, Checked)
    with_loops, without = try_one(ASTSource("k", "cannot reshape a scalar"), tmp_path)
    assert (with_loops.ttir, with_loops.error) == ("", "LookupError: no config:\ncannot reshape a scalar")
    assert without == Attempt("graph (without loops)", ttir="ttir of k, another kind")


def test_a_compile_that_makes_no_kernel_raises_its_own_error(bring_up: Callable[..., None], tmp_path: Path) -> None:
    def fail(_scheduling: object, _kernel: object) -> None:
        raise RuntimeError("not lowered")

    bring_up(fail)
    with pytest.raises(RuntimeError, match=r"^not lowered$"):
        try_one(ASTSource("k"), tmp_path)


def test_a_graph_of_two_kernels_or_none_is_not_judged(bring_up: Callable[..., None], tmp_path: Path) -> None:
    def compile_two(_scheduling: object, kernel: ASTSource) -> None:
        for one in (kernel, ASTSource("other")):
            with contextlib.suppress(RuntimeError):
                compile_kernel(one)

    bring_up(compile_two)
    assert try_one(ASTSource("k"), tmp_path) == [Attempt("graph", error="2 kernels, expected one")]
    bring_up(lambda *_arguments: None)
    assert try_one(ASTSource("k"), tmp_path) == [Attempt("graph", error="0 kernels, expected one")]


def test_everything_is_as_before_afterwards(bring_up: Callable[..., None], tmp_path: Path) -> None:
    before = [dict(vars(owner)) for owner in (ASTSource, Checked)]
    bring_up(compile_checked, Checked)
    try_one(ASTSource("k"), tmp_path)
    assert [dict(vars(owner)) for owner in (ASTSource, Checked)] == before


def test_code_is_not_loaded_but_a_kernel_under_check_is(bring_up: Callable[..., None]) -> None:
    bring_up(lambda *_arguments: None)
    with triton_host.code_only():
        assert PyCodeCache.load("one kernel") == "loaded one kernel"
        with pytest.raises(triton_host.CodeWrittenError):
            PyCodeCache.load_by_key_path("the whole code")
    assert PyCodeCache.load_by_key_path("the whole code") == "loaded the whole code"
