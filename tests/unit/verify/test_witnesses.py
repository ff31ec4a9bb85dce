"""What the witnesses make of what they saw: pure judgements, without torch."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from verify import graphs, triton_host
from verify.witnesses import aliased_reduction, symbolic_broadcast, unknown_backend, user_fallbacks
from verify.witnesses.aliased_reduction import Run
from verify.witnesses.symbolic_broadcast import Attempt

ROOT = Path(__file__).parents[3]
GUARD = (
    "InductorError: LoweringException: GuardOnDataDependentSymNode: Could not guard on data-dependent expression "
    "Eq(u0 + u1, 1) (unhinted: Eq(u0 + u1, 1)).  (Size-like symbols: none)\n\n"
    "Caused by: (base/torch_npu/_inductor/lowering_fx.py:1237 in <genexpr>)\n  target: aten.add.Tensor"
)


def run(
    graph: str = "running_mean",
    kernels: tuple[str, ...] = ("vector", "vector"),
    launches: tuple[str, ...] = ("1 blocks: load old, store old",),
    lost: Mapping[str, str] | None = None,
) -> Run:
    return Run(graph, kernels, launches, lost or {})


PLAIN = run("plain_sum", kernels=("spec",))


class TestAliasedReduction:
    def test_kept_inputs_and_one_kernel_pass(self) -> None:
        outcome = aliased_reduction.judge_runs([run(), PLAIN], launches_expected=True)
        assert (outcome.status, outcome.detail) == (
            "pass",
            "1 graphs keep their inputs, and dst.copy_(x.sum()) is one kernel",
        )

    def test_a_lost_input_fails_with_its_reason(self) -> None:
        lost = run(kernels=("spec",), lost={"old": "launch 3 loads it twice"})
        outcome = aliased_reduction.judge_runs([lost, PLAIN], launches_expected=True)
        assert (outcome.status, outcome.detail) == ("fail", "running_mean loses old (launch 3 loads it twice)")
        assert outcome.evidence["running_mean"]["kernels"] == ("spec",)

    def test_a_fix_that_forbids_too_much_fails(self) -> None:
        apart = run("plain_sum", kernels=("vector", "vector"))
        outcome = aliased_reduction.judge_runs([run(), apart], launches_expected=True)
        assert outcome.status == "fail"
        assert outcome.detail == (
            "dst.copy_(x.sum()) became vector + vector, expected one spec kernel: the fix is too broad"
        )

    @pytest.mark.parametrize(
        "nothing",
        [run(kernels=()), run(launches=()), run(kernels=(), lost={"old": "?"})],
        ids=["code", "launches", "both"],
    )
    def test_nothing_to_judge_is_an_error(self, nothing: Run) -> None:
        assert aliased_reduction.judge_runs([nothing, PLAIN], launches_expected=True).status == "error"

    def test_a_lost_input_is_the_fault_whatever_else_cannot_be_judged(self) -> None:
        unjudged = Run("normalized_step", ("spec",), ("1 blocks: ",), {}, unjudged="no launch loads 'p'")
        lost = run(lost={"old": "late"})
        assert aliased_reduction.judge_runs([unjudged, lost, PLAIN], launches_expected=True).status == "fail"

    def test_a_graph_that_cannot_be_judged_is_no_pass(self) -> None:
        unjudged = Run("normalized_step", ("spec",), ("1 blocks: ",), {}, unjudged="no launch loads 'p'")
        outcome = aliased_reduction.judge_runs([run(), unjudged, PLAIN], launches_expected=True)
        assert (outcome.status, outcome.detail) == ("error", "normalized_step: no launch loads 'p'")

    def test_a_device_records_no_launches(self) -> None:
        runs = [run(launches=()), run("plain_sum", kernels=("spec",), launches=())]
        assert aliased_reduction.judge_runs(runs, launches_expected=False).status == "pass"

    def test_kernels_are_found_in_code(self) -> None:
        code = "@dvm.kernel(ktype='spec', dyn_shape=False)\ndef f(k):\n# @dvm.kernel(ktype='vector')\n"
        assert aliased_reduction.KERNEL.findall(code) == ["spec"]

    def test_graphs_have_unique_names(self) -> None:
        names = [graph.name for graph in (*graphs.ACCUMULATING, graphs.PLAIN_SUM)]
        assert len(names) == len(set(names))


class TestSymbolicBroadcast:
    def test_lowered_broadcasts_pass(self) -> None:
        outcome = symbolic_broadcast.judge([Attempt("a", lowered=True), Attempt("b", lowered=True)])
        assert (outcome.status, outcome.detail) == ("pass", "2 broadcasts lower without a guard")

    def test_what_was_left_out_is_said(self) -> None:
        outcome = symbolic_broadcast.judge([Attempt("a", lowered=True)], left_out="no triton")
        assert (outcome.status, outcome.detail) == ("pass", "1 broadcasts lower without a guard; no triton")

    def test_the_guard_fails_in_its_own_words(self) -> None:
        outcome = symbolic_broadcast.judge([Attempt("fx", lowered=False, error=GUARD)])
        assert outcome.status == "fail"
        assert outcome.detail == (
            "fx: GuardOnDataDependentSymNode: Could not guard on data-dependent expression Eq(u0 + u1, 1), "
            "Caused by: (base/torch_npu/_inductor/lowering_fx.py:1237 in <genexpr>)"
        )

    @pytest.mark.parametrize(
        "error",
        ["TritonMissing: no triton", GUARD.replace("Eq(u0 + u1, 1)", "u0 < 5")],
        ids=["unrelated", "other-guard"],
    )
    def test_another_error_is_no_verdict(self, error: str) -> None:
        assert symbolic_broadcast.judge([Attempt("a", lowered=False, error=error)]).status == "error"

    def test_an_error_after_lowering_does_not_count(self) -> None:
        attempt = Attempt("fx", lowered=True, error="InductorError: CodeWrittenError: enough")
        assert symbolic_broadcast.judge([attempt]).status == "pass"

    def test_a_wrong_shape_fails(self) -> None:
        attempt = Attempt("0-d", lowered=True, wrong="gives shape (1,), expected ()")
        assert symbolic_broadcast.judge([attempt]).detail == "0-d: gives shape (1,), expected ()"


class TestUserFallbacks:
    CALLS = "    buf0 = torch.ops.aten.max.dim(arg0_1, -1)\n    buf3 = torch.ops.aten.sum.dim_IntList(arg0_1, [0])\n"

    def test_called_operators_pass(self) -> None:
        outcome = user_fallbacks.judge_code(self.CALLS)
        assert (outcome.status, outcome.detail) == (
            "pass",
            "the generated code calls aten.max.dim and aten.sum.dim_IntList",
        )

    def test_a_kernel_in_an_operators_place_fails(self) -> None:
        code = self.CALLS.replace("buf0 = torch.ops.aten.max.dim(", "triton_per_fused_max_0.run(")
        outcome = user_fallbacks.judge_code(code)
        assert (outcome.status, outcome.detail) == (
            "fail",
            "aten.max.dim was named for fallback, yet the code calls triton_per_fused_max_0",
        )

    def test_operators_in_comments_and_checks_are_no_calls(self) -> None:
        code = (
            "#   %max_1 : call_function[target=torch.ops.aten.max.dim](args = (%arg0_1, -1))\n"
            "    assert_alignment(buf1, 16, 'torch.ops.aten.max.dim')\n"
        )
        assert user_fallbacks.judge_code(code).status == "error"

    @pytest.mark.parametrize(
        ("python", "there"), [((3, 10), True), ((3, 11), True), ((3, 12), False), ((3, 14), False)]
    )
    def test_wheels_of_triton_ascend_end_with_3_11(self, python: tuple[int, int], there: bool) -> None:
        assert triton_host.has_wheel(python) is there


class TestUnknownBackend:
    BACKENDS = ("mlir", "default", "dvm")
    REFUSAL = ValueError("unknown backend 'dmv', this build has default, dvm, mlir")

    def test_refusals_that_name_the_backends_pass(self) -> None:
        outcome = unknown_backend.judge({"variable": self.REFUSAL, "option": self.REFUSAL}, self.BACKENDS)
        assert outcome.status == "pass"
        assert outcome.detail.startswith("variable: ValueError: unknown backend 'dmv'")

    def test_silence_fails_and_names_what_was_loaded(self) -> None:
        outcome = unknown_backend.judge({"variable": "triton.Scheduling"}, self.BACKENDS)
        assert (outcome.status, outcome.detail) == ("fail", "variable raised nothing and loaded triton.Scheduling")

    def test_one_way_that_is_silent_is_enough_to_fail(self) -> None:
        outcome = unknown_backend.judge({"variable": self.REFUSAL, "option": "triton.Scheduling"}, self.BACKENDS)
        assert outcome.detail == "option raised nothing and loaded triton.Scheduling"

    def test_a_refusal_without_names_fails(self) -> None:
        outcome = unknown_backend.judge({"variable": ValueError("no backend dmv")}, self.BACKENDS)
        assert outcome.detail == "variable was refused without naming default, dvm, mlir"

    def test_another_error_is_no_verdict(self) -> None:
        outcome = unknown_backend.judge({"variable": ImportError("libhccl.so")}, self.BACKENDS)
        assert (outcome.status, outcome.detail) == (
            "error",
            "variable raised an error about something else: ImportError: libhccl.so",
        )

    def test_advice_after_the_message_is_left_out(self) -> None:
        wrapped = RuntimeError(f"backend='inductor' raised:\nValueError: {self.REFUSAL}\n\nSet TORCHDYNAMO_VERBOSE=1")
        outcome = unknown_backend.judge({"option": wrapped}, self.BACKENDS)
        assert outcome.detail == f"option: RuntimeError: backend='inductor' raised: ValueError: {self.REFUSAL}"

    def test_backends_are_read_from_the_table(self) -> None:
        source = 'import os\n_BACKEND_LOADERS = {\n    "mlir": load_mlir,\n    "dvm": load_dvm,\n}\n'
        assert unknown_backend.read_backends(source) == ["mlir", "dvm"]

    def test_a_package_without_the_table_is_refused(self) -> None:
        with pytest.raises(LookupError, match=r"^torch_npu's inductor package has no table _BACKEND_LOADERS$"):
            unknown_backend.read_backends("OTHER = {'dvm': 1}\n")


def test_every_patch_names_a_witness_of_the_catalogue() -> None:
    catalogue = json.loads((ROOT / "verify" / "checks.json").read_text(encoding="utf-8"))
    witnesses = {name for name, entry in catalogue.items() if entry.get("witness") and "beside" not in entry}
    patches = sorted((ROOT / "patches").glob("*/*/*.patch"))
    named = [re.findall(r"^Witness: (.+)$", patch.read_text(encoding="utf-8"), re.MULTILINE) for patch in patches]
    assert [len(names) for names in named] == [1] * len(patches)
    assert {name for names in named for name in names} == witnesses
