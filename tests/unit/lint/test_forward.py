"""Imports, log calls, flags and writes: found where the compiler comes by, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint_sample import found_in, lint_sample, write_sample
from toolkit.lint import lint_model

LOG = "log-in-forward"
ONCE = "log-once-in-forward"
STATE = "state-in-forward"
IMPORT = "import-in-forward"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        pytest.param("""
            class Net(nn.Module):
                def forward(self, x):
                    import cann_ops
                    return cann_ops.run(x)
            """, [(3, IMPORT)], id="in a forward"),
        pytest.param("""
            class Net(nn.Module):
                def forward(self, x):
                    return self.attend(x)
                def attend(self, x):
                    return run(x)
            def run(x):
                from vendor.ops import attention
                return attention(x)
            """, [(7, IMPORT)], id="in what a forward calls"),
        pytest.param("""
            class Attention(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    return x
                @staticmethod
                def backward(ctx, grad):
                    import vendor
                    return grad
            """, [(7, IMPORT)], id="in a backward"),
        pytest.param("""
            @torch.library.register_fake("a::b")
            def _(q):
                import vendor
                return torch.empty_like(q)
            """, [(3, IMPORT)], id="in a fake function"),
        pytest.param("""
            lib = torch.library.Library("a", "IMPL")
            def meta(q):
                import vendor
                return torch.empty_like(q)
            lib.impl("b", meta, "Meta")
            """, [(3, IMPORT)], id="in a function that is registered as Meta by a call"),
        pytest.param("""
            def fused(self, x):
                import vendor
                return vendor.f(x)
            replace_methods("Attention", "forward", fused)
            """, [(2, IMPORT)], id="in a function that becomes a forward by a call"),
        pytest.param("""
            def patch(cls):
                def fused(self, x):
                    import vendor
                    return vendor.f(x)
                cls.forward = fused
            """, [(3, IMPORT)], id="in a function that is assigned as a forward"),
        pytest.param("""
            @torch.compile
            def f(x):
                import vendor
                return x
            """, [(3, IMPORT)], id="in a function that is compiled"),
        pytest.param("""
            import importlib
            class Net(nn.Module):
                def forward(self, x):
                    return importlib.import_module("vendor.ops").run(x)
            """, [(4, IMPORT)], id="by a call"),
        pytest.param("""
            class Attention(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    return x
            def attention(x):
                import vendor
                return Attention.apply(x)
            """, [(6, IMPORT)], id="in the wrapper of an autograd function"),
        pytest.param("""
            def attention(x):
                import vendor
                return torch.ops.vendor.attention(x)
            """, [(2, IMPORT)], id="in the wrapper of an operator"),
        pytest.param("""
            from somewhere import Base
            class Net(Base):
                def forward(self, x):
                    import vendor
                    return x
            """, [(4, IMPORT)], id="in a subclass of something unknown"),
    ],
)  # fmt: skip
def test_imports_are_found(source: str, found: list[tuple[int, str]], tmp_path: Path) -> None:
    assert found_in(tmp_path, source) == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        pytest.param("""
            class Net(nn.Module):
                def forward(self, x):
                    logger.info("shape %s", x.shape)
                    print(x.shape)
                    self.logger.debug("x")
                    logging.warning("x")
                    return x
            """, [(3, LOG), (4, LOG), (5, LOG), (6, LOG)], id="each kind of logger"),
        pytest.param("""
            import warnings
            class Net(nn.Module):
                def forward(self, x):
                    if torch.compiler.is_compiling():
                        warnings.warn("compiling")
                    else:
                        warnings.warn("eager")
                    return x
            """, [(5, LOG)], id="the compiling branch"),
        pytest.param("""
            class Net(nn.Module):
                def forward(self, x):
                    if torch.compiler.is_compiling() or x.shape[0] > 4:
                        logger.info("one of them")
                    return x
            """, [(4, LOG)], id="a condition that may hold while compiling"),
        pytest.param("""
            class Net(nn.Module):
                def forward(self, x):
                    return torch.utils.checkpoint.checkpoint(self.block, x)
                def block(self, x):
                    logger.info("block")
                    return x
            """, [(5, LOG)], id="through checkpoint"),
        pytest.param("""
            import functools
            @functools.lru_cache(None)
            def tell(message):
                logger.warning(message)
            class Net(nn.Module):
                def forward(self, x):
                    tell("slow path")
                    return x
            """, [(4, ONCE)], id="a function that runs once"),
        pytest.param("""
            from vendor.logs import warn_once
            class Net(nn.Module):
                def forward(self, x):
                    warn_once("slow path")
                    return x
            """, [(4, ONCE)], id="somebody's log_once"),
        pytest.param("""
            _logged = False
            class Net(nn.Module):
                def forward(self, x):
                    global _logged
                    if not _logged:
                        logger.info("first")
                        _logged = True
                    return x
            """, [(5, ONCE)], id="a global flag"),
        pytest.param("""
            _logged: set[str] = set()
            def log_once(key):
                if key not in _logged:
                    _logged.add(key)
                    logger.info(key)
            class Net(nn.Module):
                def forward(self, x):
                    log_once("attention")
                    return x
            """, [(3, ONCE)], id="a set"),
        pytest.param("""
            _seen = {}
            class Net(nn.Module):
                def forward(self, x):
                    if "net" in _seen:
                        return x
                    _seen["net"] = True
                    logger.info("first")
                    return x
            """, [(4, ONCE)], id="a dict, the other way round"),
        pytest.param("""
            class Net(nn.Module):
                def forward(self, x):
                    if not self._warned:
                        self._warned = True
                        logger.warning("slow")
                    if not hasattr(self, "_told"):
                        print("told")
                        self._told = True
                    return x
            """, [(3, ONCE), (6, ONCE)], id="an attribute"),
    ],
)  # fmt: skip
def test_log_calls_are_found(source: str, found: list[tuple[int, str]], tmp_path: Path) -> None:
    assert found_in(tmp_path, source) == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        pytest.param("""
            CACHE = {}
            SHAPES = []
            SEEN = set()
            calls = 0
            class Net(nn.Module):
                def forward(self, x):
                    global calls
                    calls += 1
                    CACHE[x.shape] = x
                    SHAPES.append(x.shape)
                    SEEN.add(x.dtype)
                    del CACHE["old"]
                    return x
            """, [(8, STATE), (9, STATE), (10, STATE), (11, STATE)], id="each kind of container"),
        pytest.param("""
            class Tracker:
                values = {}
                @staticmethod
                def save(loss):
                    values = Tracker.values
                    values["loss"] = loss
            class Loss(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    return x
                @staticmethod
                def backward(ctx, grad):
                    Tracker.save(grad)
                    return grad
            """, [(6, STATE)], id="a class's container by another name"),
        pytest.param("""
            class Net(nn.Module):
                masks = {}
                def forward(self, x):
                    self.masks[x.shape[0]] = x
                    return x
            """, [(4, STATE)], id="a class's container through self"),
        pytest.param("""
            class Net(nn.Module):
                masks = {}
                def forward(self, x):
                    self.__class__.masks[0] = x
                    type(self).masks.clear()
                    return x
            """, [(4, STATE)], id="a class's container through the class of self"),
        pytest.param("""
            from collections import defaultdict
            COUNTS = defaultdict(int)
            @torch.library.register_fake("a::b")
            def _(q):
                COUNTS["b"] += 1
                return torch.empty_like(q)
            """, [(5, STATE)], id="in a fake function"),
    ],
)  # fmt: skip
def test_writes_are_found(source: str, found: list[tuple[int, str]], tmp_path: Path) -> None:
    assert found_in(tmp_path, source) == found


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("""
            CACHE = {}
            _told = False
            class Net(nn.Module):
                def forward(self, x):
                    global _told
                    if not torch.compiler.is_compiling():
                        import vendor
                        logger.info("x")
                        CACHE[0] = x
                    if self.training and not torch._dynamo.is_compiling():
                        print(x)
                    if not _told and not torch.compiler.is_compiling():
                        logger.info("first")
                        _told = True
                    is_first = not torch.compiler.is_compiling() and not hasattr(self, "_told")
                    if is_first:
                        logger.info("first")
                    compiling = torch.compiler.is_compiling()
                    compiling or logger.info("x")
                    logger.info("x") if not compiling else None
                    return self.tell(x)
                def tell(self, x):
                    if torch.compiler.is_compiling():
                        return x
                    logger.info("eager")
                    return x
            """, id="behind a guard"),
        pytest.param("""
            CACHE = {}
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    import vendor
                    logger.info("built")
                    CACHE["net"] = self
                    self.seen = {}
                def forward(self, x, names):
                    self.seen[0] = x
                    names.append("x")
                    local = []
                    local.append(x)
                    return CACHE["net"] + torch.log(x)
            """, id="where a model is built, and what is its own"),
        pytest.param("""
            CACHE = {}
            class Net(nn.Module):
                def forward(self, x, CACHE):
                    CACHE["x"] = x
                    return x
            """, id="a parameter of the same name"),
        pytest.param("""
            class Net(nn.Module):
                def forward(self, x):
                    if x.dim() != 3:
                        logger.error("three dimensions are needed")
                        raise ValueError("three dimensions are needed")
                    assert x.shape[0], logger.error("empty")
                    torch._check(x.shape[0] > 1, lambda: print("too small"))
                    try:
                        return x.fast()
                    except AttributeError:
                        logger.warning("no fast path")
                    return x
            """, id="on the way to an error"),
        pytest.param("""
            class Net(nn.Module):
                def forward(self, x):
                    self.report(x)
                    return x
                @torch.compiler.disable
                def report(self, x):
                    import vendor
                    logger.info("x")
            """, id="where Dynamo does not look"),
        pytest.param("""
            HANDLES = {}
            @torch.library.custom_op("a::b", mutates_args=())
            def b(q: torch.Tensor) -> torch.Tensor:
                import vendor
                logger.info("running")
                HANDLES[0] = 1
                return q.clone()
            class Net(nn.Module):
                def forward(self, x):
                    return b(x)
            """, id="in the opaque body of an operator"),
        pytest.param("""
            @torch.library.register_fake("a::b")
            def _(q):
                import math
                from torch.fx.experimental.symbolic_shapes import guard_or_true
                return torch.empty_like(q)
            """, id="in a fake function what is loaded already"),
        pytest.param("""
            def backend(graph, inputs):
                import vendor
                print(graph)
                return vendor.compile(graph)
            step = torch.compile(train, backend=backend)
            """, id="a backend of the compiler"),
        pytest.param("""
            def main(path):
                import vendor
                print(torch.ops.vendor.attention(path))
                return 0
            def read(path):
                print(path)
                return path
            """, id="a program that runs an operator"),
        pytest.param("""
            from typing import TYPE_CHECKING, Protocol
            class Forwards(Protocol):
                def forward(self, x):
                    logger.info("x")
            class Plan:
                def forward(self, x):
                    logger.info("x")
            def main():
                import vendor
                logger.info("x")
            """, id="no forward path"),
        pytest.param("""
            class Net(nn.Module):
                def forward(self, x):
                    if not self._ready:
                        self._ready = True
                    return x
            """, id="a flag without a log line"),
    ],
)  # fmt: skip
def test_what_is_right_is_left_alone(source: str, tmp_path: Path) -> None:
    assert found_in(tmp_path, source) == []


def test_a_finding_says_where_one_comes_from(tmp_path: Path) -> None:
    report = lint_sample(
        tmp_path,
        """
        class Net(nn.Module):
            def forward(self, x):
                return run(x)
        def run(x):
            logger.info("x")
            return x
        """,
    )
    (finding,) = report.findings
    assert (finding.what, finding.text) == (
        "`logger.info` is called in run, called from Net.forward", 'logger.info("x")',
    )  # fmt: skip


def test_calls_are_followed_into_other_files_of_a_code_base(tmp_path: Path) -> None:
    write_sample(tmp_path, "from .ops.run import run\n", "pkg/__init__.py")
    write_sample(
        tmp_path,
        """
        from ..tools import logs
        COUNTS = {}
        def run(x):
            COUNTS[0] = x
            logs.tell(x)
            return x
        """,
        "pkg/ops/run.py",
    )
    write_sample(tmp_path, "def tell(x):\n    logger.info(x)\n", "pkg/tools/logs.py")
    write_sample(
        tmp_path,
        """
        from pkg import run
        class Net(nn.Module):
            def forward(self, x):
                return run(x)
        """,
        "pkg/model.py",
    )
    report = lint_model([tmp_path])
    found = [(Path(one.file).name, one.line, one.check) for one in report.findings]
    assert found == [("run.py", 9, STATE), ("logs.py", 7, LOG)]


# --- counters in attributes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "found"),
    [
        pytest.param("""
            class Net(nn.Module):
                def __init__(self):
                    self.calls = 0
                def forward(self, x):
                    self.calls += 1
                    return x
            """, [(5, STATE)], id="of the instance"),
        pytest.param("""
            class Net(nn.Module):
                calls = 0
                def forward(self, x):
                    Net.calls += 1
                    return x
            """, [(4, STATE)], id="of the class"),
        pytest.param("""
            class Net(nn.Module):
                calls: int = 0
                def forward(self, x):
                    type(self).calls += 1
                    self.__class__.calls += 1
                    return x
            """, [(4, STATE)], id="of the class, through the instance"),
        pytest.param("""
            class Stats:
                calls = 0
            class Net(nn.Module):
                def forward(self, x):
                    Stats.calls -= 1
                    return x
            """, [(5, STATE)], id="of another class"),
        pytest.param("""
            class Base(nn.Module):
                def __init__(self):
                    self.calls = 0
                def reset(self):
                    self.calls = -1
            class Net(Base):
                def forward(self, x):
                    self.calls = self.calls + 1
                    return self.attend(x)
                def attend(self, x):
                    self.calls += 2
                    return x
            """, [(8, STATE), (11, STATE)], id="of a base, spelled out, and in what a forward calls"),
    ],
)  # fmt: skip
def test_counters_in_attributes_are_found(source: str, found: list[tuple[int, str]], tmp_path: Path) -> None:
    assert found_in(tmp_path, source) == found


@pytest.mark.parametrize(
    ("start", "method"),
    [
        pytest.param("self.register_buffer('calls', torch.zeros(()))", "self.calls += 1", id="a buffer"),
        pytest.param("self.calls = torch.zeros(())", "self.calls += 1", id="a tensor"),
        pytest.param("self.calls = start", "self.calls += 1", id="what a caller gives"),
        pytest.param("self.calls = 0; self.calls, y = start", "self.calls += 1", id="a part of a tuple"),
        pytest.param("self.calls = 0", "self.calls += x.sum()", id="a tensor is added"),
        pytest.param("self.calls = 0; self.calls += start", "self.calls += 1", id="a tensor may be added elsewhere"),
        pytest.param("self.calls = 0.0", "self.calls += 1", id="no whole number"),
        pytest.param("self.calls = 0", "if self.training: self.calls += 1", id="in training only"),
        pytest.param("self.calls = 0", "if not torch.compiler.is_compiling(): self.calls += 1", id="in eager only"),
        pytest.param("self.calls = 0", "self.calls = 1", id="merely set"),
        pytest.param("self.calls = 0", "x.calls += 1", id="of something else"),
        pytest.param("self.others = 0", "self.calls += 1", id="nobody knows what"),
    ],
)
def test_what_is_no_counter_is_not(start: str, method: str, tmp_path: Path) -> None:
    source = f"""
        class Net(nn.Module):
            def __init__(self, start):
                {start}
            def forward(self, x):
                {method}
                return x
        """
    assert found_in(tmp_path, source) == []


def test_a_counter_where_nothing_is_traced_is_not(tmp_path: Path) -> None:
    source = """
        class Net(nn.Module):
            calls = 0
            def count(self):
                self.calls += 1
            def forward(self, x):
                return x
        """
    assert found_in(tmp_path, source) == []


def test_a_counter_in_a_helper_that_is_no_network_is_not(tmp_path: Path) -> None:
    source = """
        class Meter:
            calls = 0
            def hit(self):
                self.calls += 1
        @torch.compile
        def step(x):
            return Meter.hit(x)
        """
    assert found_in(tmp_path, source) == []
