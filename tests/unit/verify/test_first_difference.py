"""The first stage in which eager and compiled differ, found with backends that have a planted fault."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
import verify  # noqa: E402 (after the question for torch)
from verify.divergence.report import Report, Stage  # noqa: E402
from verify.divergence.runs import run_compiled  # noqa: E402
from verify.numbers import EXACT, Gate  # noqa: E402

SEED = 20261130


def rand(*shape: int, dtype: Any = torch.float32, seed: int = SEED, grad: bool = False) -> Any:
    drawn = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    return drawn.to(dtype).requires_grad_(grad)


def search(module: Any, inputs: Any, backend: Any = "eager", **options: Any) -> Report:
    return verify.first_difference(module, inputs, run=functools.partial(run_compiled, backend=backend), **options)


def replacing(target: Any, new: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """Return a backend that calls another function in place of one that the graph calls."""

    def backend(graph_module: Any, examples: Any) -> Any:
        for node in graph_module.graph.nodes:
            if node.target == target:
                node.op, node.target = "call_function", new
        graph_module.recompile()
        return graph_module.forward

    return backend


def keeping_wide(graph_module: Any, examples: Any) -> Any:
    """A backend that keeps FP32 between all operators, and rounds what comes out."""

    def narrow(one: Any) -> Any:
        return one.to(torch.bfloat16) if one.dtype is torch.float32 else one

    def run(*arguments: Any) -> Any:
        wide = [one.float() if one.dtype is torch.bfloat16 else one for one in arguments]
        return [narrow(one) for one in graph_module(*wide)]

    return run


def sum_backwards(one: Any, dim: int) -> Any:
    return sum(part.sum(dim) for part in one.flip(dim).split(37, dim))


def near_exp(one: Any) -> Any:
    return (one.double() * (1 + 1e-8)).exp().float() * (1 + 2.0**-23)


def smooth(x: Any, w: Any) -> Any:
    y = x * 1.7
    z = y + w.exp()
    return z * z - x


def normalize(x: Any) -> Any:
    y = x.exp()
    s = y.sum(-1)
    return y / s[:, None]


class Block(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.dense, self.act = torch.nn.Linear(8, 8), torch.nn.Tanh()

    def forward(self, x: Any) -> Any:
        return x + self.act(self.dense(x))


class Network(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A shared block, a drawn mask, an updated buffer, and a dict of results."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Block(), Block()
        self.drop = torch.nn.Dropout(0.5)
        self.register_buffer("seen", torch.tensor(1.0))
        self.calls = 0

    def forward(self, x: Any) -> dict[str, Any]:
        self.calls += 1
        x = self.first(self.second(self.first(x)))
        self.seen.add_(x.detach().mean())
        return {"out": self.drop(x), "pair": (x.sum(), None)}


def titles(stages: tuple[Stage, ...]) -> list[str]:
    return [stage.title for stage in stages]


# --- what is the same --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def network_report() -> Report:
    torch.manual_seed(SEED)
    return search(Network(), rand(4, 8, grad=True), "aot_eager", gates=EXACT, explain="nothing")


def test_a_module_that_compiles_right_has_no_difference(network_report: Report) -> None:
    assert network_report.ok
    assert (network_report.first, network_report.earliest, network_report.disagreements) == (None, None, ())
    assert str(network_report).splitlines()[0] == "no difference: all bits are equal"


def test_stages_are_submodules_in_their_order_with_repeated_calls_numbered(network_report: Report) -> None:
    parts = [
        *(f"first.{part}#1" for part in ("dense", "act")),
        "first#1",
        *(f"second.{part}" for part in ("dense", "act")),
        "second",
        *(f"first.{part}#2" for part in ("dense", "act")),
        "first#2",
        "drop",
    ]
    found = titles(network_report.stages)
    assert found[: len(parts)] == parts
    assert found[len(parts) : len(parts) + 3] == ["result['out']", "result['pair'][0]", "seen afterwards"]
    backwards = [f"gradient of {part}" for part in reversed(parts)]
    assert found[len(parts) + 3 : 2 * len(parts) + 3] == backwards
    assert found[2 * len(parts) + 3] == "gradient of x"


def test_both_sides_start_from_copies(network_report: Report) -> None:
    network, x = Network(), rand(4, 8)
    before = {name: one.clone() for name, one in network.state_dict().items()}
    state = torch.random.get_rng_state()
    assert search(network, (x,), explain="nothing").ok
    assert network.calls == 0
    assert all(torch.equal(before[name], one) for name, one in network.state_dict().items())
    assert torch.equal(x, rand(4, 8))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert x.grad is None


def test_an_input_that_is_changed_is_compared_afterwards() -> None:
    def accumulate(old: Any, x: Any) -> None:
        old.copy_(old + (x * 2).mean())

    report = search(accumulate, (torch.tensor(1.0), rand(3, 4)))
    assert titles(report.ends) == ["old afterwards"]
    assert titles(report.stages) == ["mul", "mean", "add", "copy_", "old afterwards"]
    wrong = search(accumulate, (torch.tensor(1.0), rand(3, 4)), replacing("mean", lambda one: one.amax()))
    assert wrong.first is not None
    assert wrong.first.title == "mean"
    assert [stage.difference.within for stage in wrong.ends] == [False]


# --- what differs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gates", [None, EXACT], ids=["by dtype", "exact"])
def test_a_skipped_rounding_is_named(gates: Gate | None) -> None:
    x, w = (rand(16, 16, dtype=torch.bfloat16, seed=seed, grad=True) for seed in (1, 2))
    report = search(smooth, (x, w), keeping_wide, gates=gates)
    assert report.earliest is not None
    assert (report.first is None) is (gates is None)
    assert (report.earliest.title, report.earliest.difference.shape) == ("z", (16, 16))
    cause = report.earliest.cause
    assert cause is not None
    assert (cause.kind, cause.detail) == ("rounding boundary", "no 16-bit intermediate is rounded (bit-equal)")
    assert cause.compiled_error is not None
    assert cause.eager_error is not None
    assert cause.compiled_error < cause.eager_error


def test_the_one_skipped_rounding_is_named_by_its_operator() -> None:
    def scale(x: Any) -> Any:
        y = x * 1.7
        return y.float() - x.float()

    wide = replacing("float", lambda one: one if one.dtype is torch.float32 else one.float())

    def backend(graph_module: Any, examples: Any) -> Any:
        graph_module = wide(graph_module, examples).__self__
        for node in graph_module.graph.nodes:
            if node.name == "y":
                node.target = lambda one, by: one.float() * by
        graph_module.recompile()
        return graph_module.forward

    report = verify.first_difference(
        torch.nn.Sequential(Wrapped(scale)),
        rand(16, 16, dtype=torch.bfloat16),
        run=functools.partial(run_compiled, backend=backend),
    )
    assert report.ok
    assert report.earliest is not None
    assert (report.earliest.title, report.earliest.difference.dtype) == ("0", "float32")
    assert (report.earliest.difference.within, report.earliest.as_near) == (False, True)
    assert report.earliest.cause is not None
    assert report.earliest.cause.kind == "rounding boundary"
    assert report.earliest.cause.detail == "the bfloat16 result of mul in '0' is not rounded (bit-equal)"


class Wrapped(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


@pytest.mark.parametrize("gates", [None, EXACT], ids=["by dtype", "exact"])
def test_another_order_of_a_sum_is_named(gates: Gate | None) -> None:
    report = search(normalize, rand(8, 1000), replacing("sum", sum_backwards), gates=gates)
    assert report.earliest is not None
    assert report.earliest.title == "s"
    assert report.earliest.cause is not None
    assert report.earliest.cause.kind == "order of reduction"
    assert (report.first is None) is (gates is None)


def test_another_approximation_is_named() -> None:
    report = search(normalize, rand(8, 10), replacing("exp", near_exp), gates=EXACT)
    assert report.first is not None
    assert report.first.title == "y"
    assert report.first.cause is not None
    assert report.first.cause.kind == "operations"


def test_a_stage_after_equal_ones_is_explained_from_its_own_inputs() -> None:
    def summed(x: Any) -> Any:
        s = x.sum(-1)
        return s.exp()

    report = search(summed, rand(8, 10), replacing("exp", near_exp), gates=EXACT)
    assert [(stage.title, stage.cause.kind) for stage in report.stages if stage.cause] == [("exp", "operations")]
    assert report.first is not None
    assert report.first.cause is not None
    assert report.first.cause.detail == "within two units in the last place of each operation, from the equal stages on"
    assert [stage.cause.kind for stage in report.ends if stage.cause] == ["order of reduction"]


def test_a_stage_after_equal_ones_in_16_bits_is_explained_from_the_inputs_on() -> None:
    """A kernel may keep the sum wider than the tap shows it, so that the sum's order comes through."""

    def summed(x: Any, w: Any) -> Any:
        s = x.sum(-1)
        return torch.add(s, w)

    near = replacing(torch.add, lambda one, other: torch.add(one, other) * (1 + 2.0**-23))
    report = search(summed, (rand(8, 10, dtype=torch.bfloat16), rand(8)), near, gates=EXACT)
    explained = [(stage.title, stage.cause) for stage in report.stages if stage.cause]
    assert [title for title, _ in explained] == ["add"]
    assert not any("equal stages" in cause.detail for _, cause in explained)


class Aside(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A sum that no tap shows is taken before a stage, and used after it."""

    def __init__(self) -> None:
        super().__init__()
        self.act = torch.nn.Tanh()

    def forward(self, x: Any) -> Any:
        s = x.sum(-1)
        return s[:, None] * self.act(x)


def test_what_no_tap_shows_before_an_equal_stage_is_still_explained() -> None:
    report = search(Aside(), rand(8, 1000), replacing("sum", sum_backwards), gates=EXACT)
    assert report.first is not None
    assert report.first.cause is not None
    assert (report.first.title, report.first.cause.kind) == ("result", "order of reduction")
    assert report.first.cause.detail.startswith("within what another order of the sums' terms changes")


def cancelling() -> Any:
    """Rows whose terms are a thousand times as large as their sum."""
    terms = rand(8, 1000) * 1000
    return torch.cat([terms, -terms.flip(1), rand(8, 10, seed=1)], 1)


def total(x: Any) -> Any:
    s = x.sum(-1)
    return s * 2


def sum_in_double(one: Any, dim: int) -> Any:
    return one.double().sum(dim).to(one.dtype)


def test_what_is_nearer_to_fp64_than_eager_is_no_fault() -> None:
    report = search(total, cancelling(), replacing("sum", sum_in_double))
    assert report.ok
    assert report.first is None
    assert report.earliest is not None
    assert str(report).startswith("within the gates or as near to FP64; the bits differ first in s, float32 (8)")
    (end,) = report.ends
    assert (end.difference.within, end.as_near, end.within) == (False, True, True)


def test_a_gate_of_ones_own_excuses_nothing() -> None:
    report = search(total, cancelling(), replacing("sum", sum_in_double), gates=EXACT)
    assert not report.ok
    assert report.first is not None
    assert (report.first.title, report.first.as_near) == ("s", False)
    unseen = search(total, cancelling(), replacing("sum", sum_in_double), explain="nothing")
    assert not unseen.ok


def coarse(x: Any) -> Any:
    return x.half().exp().float()


def test_what_no_cause_explains_is_called_nearer_to_fp64_where_it_is() -> None:
    def exact(one: Any) -> Any:
        return one.double().exp() + 2.0**-14

    report = search(torch.nn.Sequential(Wrapped(coarse)), rand(8, 8), replacing("exp", exact))
    assert report.ok
    (end,) = report.ends
    assert end.cause is not None
    assert (end.cause.kind, end.cause.detail) == (
        "nearer to FP64",
        "at most 2 times as far from it as eager is",
    )
    assert not end.difference.within


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_wrong_axis_is_a_fault(dtype: Any) -> None:
    x = rand(12, 12, dtype=dtype, grad=True)
    report = search(normalize, x, replacing("sum", lambda one, dim: one.sum(0)), isolate=True)
    assert report.first is not None
    assert report.first.title == "s"
    assert report.first.cause is not None
    assert report.first.cause.kind == "fault"
    assert not report.ok
    assert [stage.title for stage in report.isolated if not stage.difference.within] == [
        "s",
        "gradient of argument 0 of s",
    ]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_term_that_is_left_out_is_no_other_order(dtype: Any) -> None:
    x = (rand(8, 500).abs() + 1).to(dtype)
    report = search(normalize, x, replacing("sum", lambda one, dim: one[..., 9:].sum(dim)), gates=EXACT)
    assert report.first is not None
    assert report.first.title == "s"
    assert report.first.cause is not None
    assert report.first.cause.kind == "fault"


def test_a_fault_in_backward_is_found_at_the_stage_whose_gradient_is_wrong() -> None:
    class Doubled(torch.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(context: Any, one: Any) -> Any:
            return one.clone()

        @staticmethod
        def backward(context: Any, gradient: Any) -> Any:
            return gradient * 2

    wrong = replacing("exp", lambda one: Doubled.apply(one).exp())
    report = search(smooth, (rand(4, 4), rand(4, 4, grad=True)), wrong)
    assert report.first is not None
    assert report.first.title == "gradient of w"
    assert all(stage.difference.bit_equal for stage in report.stages if stage.kind != "input gradient")


def test_submodules_are_isolated_with_eagers_inputs() -> None:
    torch.manual_seed(SEED)
    module = torch.nn.Sequential(Block(), torch.nn.ReLU())
    report = search(module, rand(4, 8), replacing(torch.tanh, torch.sin), isolate=True, explain="nothing")
    assert report.first is not None
    assert report.first.title == "0.act"
    values = [stage for stage in report.isolated if stage.kind == "value"]
    assert titles(tuple(values)) == ["0", "0.dense", "0.act", "1"]
    assert [stage.difference.within for stage in values] == [False, True, False, True]


def test_gates_by_stage_and_by_dtype() -> None:
    wrong = replacing("sum", lambda one, dim: one.sum(dim) * 1.01)
    loose = Gate(relative_l2=0.1, ulps=2**20)
    assert not search(normalize, rand(4, 8), wrong, explain="nothing").ok
    assert search(normalize, rand(4, 8), wrong, gates={"float32": loose}, explain="nothing").ok
    report = search(normalize, rand(4, 8), wrong, gates={"s": loose}, explain="nothing")
    assert report.first is not None
    assert report.first.title == "truediv"


# --- taps --------------------------------------------------------------------------------------------------------


def test_named_taps_are_stages() -> None:
    def steps(x: Any) -> Any:
        y, _ = verify.tap("pair", (x * 2, x * 3))
        return verify.tap("end", y.sum())

    x = rand(3, grad=True)
    assert steps(x).requires_grad
    assert titles(search(steps, x).stages) == [
        *("pair[0]", "pair[1]", "end", "result"),
        *("gradient of end", "gradient of pair[0]", "gradient of x"),
    ]


def test_where_the_taps_change_what_comes_out_it_says_so() -> None:
    def wrong_untapped(graph_module: Any, examples: Any) -> Any:
        """A fusion that goes wrong only where nothing in between is stored."""
        outputs = next(iter(node for node in graph_module.graph.nodes if node.op == "output")).args[0]
        return (
            graph_module if len(outputs) > 1 else replacing("sum", lambda one, dim: one.sum(0))(graph_module, examples)
        )

    report = search(normalize, rand(4, 4), wrong_untapped)
    assert report.disagreements == ("result has other bits: beyond its gate without them, bit-equal with them",)
    assert report.first is not None
    assert (report.first.title, report.first in report.ends) == ("result", True)
    assert all(stage.difference.bit_equal for stage in report.stages)


def test_values_changed_in_place_are_taken_as_they_were() -> None:
    def steps(x: Any) -> Any:
        y = x * 2
        y.add_(1)
        return y.relu_()

    report = search(torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU(inplace=True)), rand(2, 3), "aot_eager")
    assert report.ok
    assert titles(report.stages)[:3] == ["0", "1", "result"]
    assert "gradient of 0" not in titles(report.stages)
    assert titles(search(steps, rand(2, 3), "aot_eager").stages) == ["y", "add_", "relu_", "result"]


def test_where_only_the_taps_cannot_be_compiled_that_is_a_note() -> None:
    def refusing_taps(graph_module: Any, examples: Any) -> Any:
        if any("clone" in str(node.target) for node in graph_module.graph.nodes):
            raise RuntimeError("no taps here")
        return graph_module.forward

    report = search(normalize, rand(3, 3), refusing_taps)
    assert report.ok
    assert (report.failures, report.stages) == ((), ())
    assert report.notes == (
        "no input and no parameter requires a gradient: forward only",
        "the taps cannot be made, so that no stages are compared: compiled: "
        "BackendCompilerFailed: backend='refusing_taps' raised: RuntimeError: no taps here",
    )


def test_inference_mode_is_left_while_it_looks() -> None:
    torch.manual_seed(SEED)
    module = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU(inplace=True))
    with torch.inference_mode():
        report = search(module, rand(2, 3), "aot_eager")
        assert torch.is_inference_mode_enabled()
    assert report.ok
    assert titles(report.stages) == ["0", "1", "result"]


# --- bad input ---------------------------------------------------------------------------------------------------


def test_nothing_to_compare_is_refused() -> None:
    def idle(x: Any) -> None:
        x.sum()

    with pytest.raises(ValueError, match="no number") as error:
        search(idle, rand(3))
    assert str(error.value) == "idle returns no number, changes no input, and there is no gradient to compare"


def test_without_gradients_it_is_forward_only() -> None:
    report = search(normalize, rand(3, 3))
    assert report.notes == ("no input and no parameter requires a gradient: forward only",)
    assert not any("gradient" in title for title in titles(report.stages))
    assert not any(
        "gradient" in title for title in titles(search(normalize, rand(3, 3, grad=True), backward=False).stages)
    )


def test_nan_and_infinity_may_stand_where_eager_has_them() -> None:
    x = torch.tensor([[float("nan"), 1.0], [float("inf"), 2.0]])
    assert search(normalize, x, gates=EXACT).ok
    report = search(normalize, x, replacing("sum", lambda one, dim: one.nan_to_num(1.0).sum(dim)))
    assert report.first is not None
    assert (report.first.title, report.first.difference.nonfinite_equal) == ("s", False)
    assert report.first.cause is not None
    assert report.first.cause.kind == "fault"


def test_empty_and_single_tensors_are_compared() -> None:
    assert search(normalize, torch.empty(0, 4)).ok
    assert search(lambda x: x * 2, torch.tensor(1.0)).ok


def test_the_side_that_fails_is_named() -> None:
    def refuse(graph_module: Any, examples: Any) -> Any:
        raise RuntimeError("no lowering for this")

    def raising(x: Any) -> Any:
        raise ValueError("not today")

    report = search(normalize, rand(3, 3), refuse)
    assert [(one.side, one.run) for one in report.failures] == [("compiled", "without taps"), ("compiled", "with taps")]
    assert report.failures[0].error == (
        "BackendCompilerFailed: backend='refuse' raised: RuntimeError: no lowering for this"
    )
    assert (report.ok, str(report).splitlines()[0]) == (False, "compiled failed")
    both = search(raising, rand(3))
    assert [one.side for one in both.failures] == ["eager", "compiled"]
    assert both.failures[0].error == "ValueError: not today"
    assert str(both).splitlines()[0] == "eager and compiled failed"


def test_a_compiler_that_compiles_nothing_is_told() -> None:
    def run(function: Any, *tensors: Any, tangents: Any) -> Any:
        from verify.divergence.runs import run_eager

        return run_eager(function, *tensors, tangents=tangents)

    report = verify.first_difference(normalize, rand(3, 3), run=run)
    assert "without taps: Dynamo has compiled no graph, so that eager was compared with itself" in report.notes


def test_what_cannot_be_traced_has_no_nodes_but_ends() -> None:
    def breaking(x: Any) -> Any:
        print(end="")
        return x * int(x.sum() > 0)

    report = search(breaking, rand(3))
    assert titles(report.ends) == ["result"]
    assert report.stages == ()
    assert any(note.startswith("no nodes to tap: ") for note in report.notes)


# --- the report --------------------------------------------------------------------------------------------------


def test_a_report_is_json_and_a_few_aligned_lines() -> None:
    report = search(normalize, rand(4, 4), replacing("sum", lambda one, dim: one.sum(0)))
    plain = json.loads(json.dumps(report.as_dict(), allow_nan=False))
    assert plain["ok"] is False
    assert plain["first"]["name"] == "s"
    assert plain["first"]["cause"]["kind"] == "fault"
    lines = str(report).splitlines()
    assert lines[0] == "first difference: s, float32 (4)"
    assert lines[1].startswith("  max abs ")
    assert lines[1].endswith(", ULPs >8:4")
    assert lines[2].startswith("  fault: no skipped rounding, other order or approximation comes near it; off FP64 by ")
    assert "with taps:" in lines
    assert any(line.split()[:4] == ["X", "s", "float32", "4"] for line in lines)


def test_the_door_opens_without_torch() -> None:
    code = "import sys, verify; verify.first_difference; assert 'torch' not in sys.modules; verify.nothing"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == "AttributeError: module 'verify' has no attribute 'nothing'"
