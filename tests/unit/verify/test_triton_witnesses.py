"""What the Triton backend's check and witnesses make of code and TTIR, and what they need: without torch or Triton."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.verify_cases import write_files
from verify.checks.triton_backend import judge_code
from verify.ttir import Attempt
from verify.witnesses import bool_greater_than, integer_scalar_load

Run = Callable[..., dict[str, Any]]

AND_NOT = (
    "%5 = arith.cmpi eq, %4, %false : tensor<16xi1> loc(#loc5)\n%6 = arith.andi %3, %5 : tensor<16xi1> loc(#loc6)\n"
)
UNSIGNED_I1 = "%5 = arith.cmpi ugt, %3, %4 : tensor<16xi1> loc(#loc5)\n"
BOOL = Attempt("computed", ttir=AND_NOT)
FLOAT = Attempt("float32", ttir="%5 = arith.cmpf ogt, %3, %4 : tensor<16xf32> loc(#loc5)\n")
UINT8 = Attempt("uint8", ttir="%5 = arith.cmpi ugt, %3, %4 : tensor<16xi8> loc(#loc5)\n")


class TestBoolGreaterThan:
    def test_bools_as_and_not_and_others_as_ever_pass(self) -> None:
        outcome = bool_greater_than.judge([BOOL, FLOAT, UINT8])
        assert (outcome.status, outcome.detail) == (
            "pass",
            "bools (computed) need no unsigned comparison of i1, and float32, uint8 compare as ever",
        )

    @pytest.mark.parametrize(
        ("line", "quoted"),
        [
            (UNSIGNED_I1, "arith.cmpi ugt, %3, %4 : tensor<16xi1>"),
            ("%5 = arith.cmpi ugt, %3, %4 : tensor<4x16xi1>", "arith.cmpi ugt, %3, %4 : tensor<4x16xi1>"),
            ("%5 = arith.cmpi ult, %3, %4 : i1 loc(#loc5)", "arith.cmpi ult, %3, %4 : i1"),
        ],
        ids=["one axis", "two axes", "scalar"],
    )
    def test_an_unsigned_comparison_of_i1_fails_in_its_own_words(self, line: str, quoted: str) -> None:
        outcome = bool_greater_than.judge([Attempt("computed", ttir=line), FLOAT])
        assert (outcome.status, outcome.detail) == ("fail", f"computed: {quoted}")

    def test_the_kernel_without_loops_is_judged_as_well(self) -> None:
        outcome = bool_greater_than.judge([BOOL, FLOAT, Attempt("computed (without loops)", ttir=UNSIGNED_I1)])
        assert outcome.detail == "computed (without loops): arith.cmpi ugt, %3, %4 : tensor<16xi1>"

    def test_another_type_that_lost_its_comparison_fails(self) -> None:
        lost = Attempt("uint8 (without loops)", ttir=AND_NOT)
        outcome = bool_greater_than.judge([BOOL, UINT8, lost])
        assert (outcome.status, outcome.detail) == (
            "fail",
            "uint8 (without loops) is no longer compared by arith.cmpi ugt: the fix is too broad",
        )

    @pytest.mark.parametrize("graph", ["computed", "float32"])
    def test_a_wrong_value_fails(self, graph: str) -> None:
        wrong = [
            Attempt(one.graph, ttir=one.ttir, wrong="gives [1], expected [0]" if one.graph == graph else "")
            for one in (BOOL, FLOAT)
        ]
        outcome = bool_greater_than.judge(wrong)
        assert (outcome.status, outcome.detail) == ("fail", f"{graph} gives [1], expected [0]")

    def test_a_kernel_that_the_front_end_refuses_is_no_verdict(self) -> None:
        refused = Attempt("float32", error="CompilationError: at 3:4:\n  tmp0 = \n ^\nNameError('tmp0')\n")
        outcome = bool_greater_than.judge([BOOL, refused])
        assert (outcome.status, outcome.detail) == ("error", "float32: NameError('tmp0')")

    def test_the_fault_counts_whatever_else_is_refused(self) -> None:
        refused = Attempt("float32", error="NameError")
        assert bool_greater_than.judge([Attempt("loaded", ttir=UNSIGNED_I1), refused]).status == "fail"

    @pytest.mark.parametrize("attempts", [[], [BOOL], [FLOAT]], ids=["nothing", "bools alone", "no bools"])
    def test_what_was_not_tried_is_no_pass(self, attempts: list[Attempt]) -> None:
        assert bool_greater_than.judge(attempts).status == "error"


class TestIntegerScalarLoad:
    MISMATCH = (
        "CompilationError: at 18:19:\n            tmp1 = tl.load(in_ptr1 + tl.arange(0,1) +  (2))\n"
        "            tmp2 = tl.broadcast_to(tmp1, [1, 1 ])\n                   ^\n"
        "ValueError('Cannot broadcast, rank mismatch: [1], [1, 1]')"
    )

    def test_kernels_with_ttir_and_right_values_pass(self) -> None:
        outcome = integer_scalar_load.judge([Attempt("two axes", ttir="x"), Attempt("two axes, 0-d", ttir="x")])
        assert (outcome.status, outcome.detail) == (
            "pass",
            "the element is loaded, and its value is right: two axes; two axes, 0-d",
        )

    def test_the_mismatch_fails_in_tritons_own_words(self) -> None:
        outcome = integer_scalar_load.judge([Attempt("two axes", error=self.MISMATCH), Attempt("one axis", ttir="x")])
        assert (outcome.status, outcome.detail) == ("fail", "two axes: Cannot broadcast, rank mismatch: [1], [1, 1]")

    def test_a_scalar_where_it_is_reshaped_is_no_pass(self) -> None:
        """What the patch would do to torch_npu 2.13, where the error is hidden by another kind of kernel."""
        reshaped = self.MISMATCH.replace(
            "ValueError('Cannot broadcast, rank mismatch: [1], [1, 1]')",
            """AttributeError("'dtype' object has no attribute 'numel'")""",
        )
        outcome = integer_scalar_load.judge([Attempt("two axes", error=reshaped)])
        assert (outcome.status, outcome.detail) == (
            "error",
            """two axes: AttributeError("'dtype' object has no attribute 'numel'")""",
        )

    def test_a_wrong_value_fails(self) -> None:
        outcome = integer_scalar_load.judge([Attempt("one axis", ttir="x", wrong="gives [1.0], expected [4.5]")])
        assert (outcome.status, outcome.detail) == ("fail", "one axis gives [1.0], expected [4.5]")

    def test_nothing_is_no_pass(self) -> None:
        assert integer_scalar_load.judge([]).status == "error"


TRITON = "async_compile.triton('b', '''\n    @triton.jit\n    def b(): pass\n''')\n"
DVM = "@dvm.kernel(ktype='vector')\ndef a(k): pass\n"


@pytest.mark.parametrize(
    ("code", "status", "detail"),
    [
        pytest.param(TRITON, "pass", "1 @triton.jit, no @dvm.kernel", id="triton"),
        pytest.param(DVM, "fail", "the generated code has 0 @triton.jit and 1 @dvm.kernel", id="dvm"),
        pytest.param(TRITON + DVM, "fail", "the generated code has 1 @triton.jit and 1 @dvm.kernel", id="both"),
        pytest.param("# @triton.jit\nx.relu()\n", "fail", "the generated code has 0 @triton.jit and 0 @dvm.kernel",
                     id="a comment only"),
        pytest.param("", "fail", "torch.compile wrote no code", id="nothing"),
    ],
)  # fmt: skip
def test_the_backend_s_code_is_judged_by_the_kernels_that_it_defines(code: str, status: str, detail: str) -> None:
    outcome = judge_code(code)
    assert (outcome.status, outcome.detail) == (status, detail)


STAND_INS = {
    "triton/__init__.py": "",
    "triton/backends/__init__.py": "",
    "triton/backends/ascend/__init__.py": "",
    "torch/_inductor/__init__.py": "",
    "torch/_inductor/codegen/__init__.py": "",
}
COMMON = "def get_scheduling_for_device(name):\n    {body}\n"
CHECKS = ["triton-backend", "bool-greater-than", "integer-scalar-load"]


@pytest.mark.parametrize("name", CHECKS)
def test_a_triton_that_another_has_overwritten_is_told_and_nothing_is_tried(
    run_check: Run, site: Path, name: str
) -> None:
    write_files(site, {"triton-3.6.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: triton\nVersion: 3.6.0\n"})
    record = run_check(name, runtime="device")
    assert (record["status"], record["excused"]) == ("skip", False)
    assert record["detail"].startswith("the package triton shares its folder with triton-ascend, so neither is whole")


@pytest.mark.parametrize(
    ("body", "found"),
    [
        pytest.param("return None", "none", id="a warning and nothing"),
        pytest.param(
            "return type('NpuDvmScheduling', (), {'__module__': 'torch_npu._inductor.dvm.mlir_fusion'})",
            "torch_npu._inductor.dvm.mlir_fusion.NpuDvmScheduling",
            id="another backend",
        ),
    ],
)
def test_a_build_that_installs_anything_but_triton_fails(
    run_check: Run, site: Path, tmp_path: Path, body: str, found: str
) -> None:
    write_files(site, {"torch_npu/_inductor/__init__.py": ""})
    write_files(tmp_path / "torch-site", {**STAND_INS, "torch/_inductor/codegen/common.py": COMMON.format(body=body)})
    # The environment's own Triton stands behind these.
    record = run_check("triton-backend", runtime="device", before=[tmp_path / "torch-site"])
    assert (record["status"], record["detail"]) == (
        "fail",
        f"asking for default installed {found} for npu, expected a scheduling of NPU Triton",
    )
