"""The DVM checks against stand-ins with each part missing, and against generated code of each kind."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.verify_cases import VERSION, write_files
from verify.checks.dvm_codegen import judge_code

Run = Callable[..., dict[str, Any]]

PARTS = {
    "torch_npu/__init__.py": f"__version__ = {VERSION!r}\nfrom . import _C\n",
    "torch_npu/_C.py": "dvm = object()\n",
    "torch_npu/_inductor/dvm/__init__.py": "",
    "torch_npu/_inductor/dvm/mlir_fusion.py": "class NpuDvmScheduling: pass\nclass Wrapper: pass\n",
    "torch_npu/_inductor/triton.py": "class NPUCombinedScheduling: pass\nclass Wrapper: pass\n",
    "torch_npu/_inductor/__init__.py": """
import os
from torch._inductor.codegen import common
def _load_triton_backend():
    from . import triton
    common.device_codegens["npu"] = (triton.NPUCombinedScheduling, triton.Wrapper)
def _load_dvm_backend():
    from .dvm import mlir_fusion
    common.device_codegens["npu"] = (mlir_fusion.NpuDvmScheduling, mlir_fusion.Wrapper)
{"dvm": _load_dvm_backend}.get(os.environ["TORCHINDUCTOR_NPU_BACKEND"], _load_triton_backend)()
""",
}
TORCH_PARTS = {
    "torch/_inductor/__init__.py": "",
    "torch/_inductor/scheduler.py": "",
    "torch/_inductor/codegen/__init__.py": "",
    "torch/_inductor/codegen/common.py": "device_codegens = {}\n"
    "def get_scheduling_for_device(name):\n    return device_codegens.get(name, (None, None))[0]\n"
    "def get_wrapper_codegen_for_device(name):\n    return device_codegens[name][1]\n",
}
TRITON = "torch_npu._inductor.triton.NPUCombinedScheduling"
DVM = "torch_npu._inductor.dvm.mlir_fusion.NpuDvmScheduling"


@pytest.fixture
def run_backend(run_check: Run, site: Path, tmp_path: Path) -> Callable[[Mapping[str, str | None]], dict[str, Any]]:
    def run(changed: Mapping[str, str | None]) -> dict[str, Any]:
        parts = {name: text for name, text in {**PARTS, **changed}.items() if text is not None}
        write_files(site, parts)
        write_files(tmp_path / "torch-site", TORCH_PARTS)
        return run_check("dvm-backend")

    return run


def test_a_build_whose_dvm_is_really_installed_passes(run_backend: Callable[..., dict[str, Any]]) -> None:
    record = run_backend({})

    assert (record["status"], record["detail"]) == ("pass", f"npu is scheduled by {DVM}")
    assert record["evidence"] == {"scheduling": DVM, "wrapper": "torch_npu._inductor.dvm.mlir_fusion.Wrapper"}


def test_a_release_without_dvm_fails_with_every_missing_part_and_the_symptom(
    run_backend: Callable[..., dict[str, Any]],
) -> None:
    inductor = PARTS["torch_npu/_inductor/__init__.py"]
    without_loader = inductor[: inductor.index("def _load_dvm_backend")]

    record = run_backend({
        "torch_npu/_C.py": "",
        "torch_npu/_inductor/dvm/__init__.py": None,
        "torch_npu/_inductor/dvm/mlir_fusion.py": None,
        "torch_npu/_inductor/__init__.py": f"{without_loader}_load_triton_backend()\n",
    })  # fmt: skip

    assert record["status"] == "fail"
    assert record["detail"] == (
        "there is no package torch_npu._inductor.dvm; "
        "there is no native binding torch_npu._C.dvm; "
        "there is no loader torch_npu._inductor._load_dvm_backend; "
        f"asking for dvm installed {TRITON} for npu, expected a scheduling of torch_npu._inductor.dvm "
        "(such a build falls through to NPU Triton, where it fails with KeyError: 'r')"
    )


def test_a_release_without_dvm_says_so_too_where_the_triton_that_it_falls_through_to_raises(
    run_backend: Callable[..., dict[str, Any]],
) -> None:
    record = run_backend({
        "torch_npu/_C.py": "",
        "torch_npu/_inductor/dvm/__init__.py": None,
        "torch_npu/_inductor/dvm/mlir_fusion.py": None,
        "torch_npu/_inductor/__init__.py": "raise RuntimeError('0 active drivers ([]).')\n",
    })  # fmt: skip

    assert record["status"] == "fail"
    assert record["detail"] == (
        "there is no package torch_npu._inductor.dvm; "
        "there is no native binding torch_npu._C.dvm; "
        "there is no loader torch_npu._inductor._load_dvm_backend; "
        "asking for dvm raised RuntimeError: 0 active drivers ([]). "
        "(such a build falls through to NPU Triton, where it fails with KeyError: 'r')"
    )


def test_a_build_without_any_inductor_package_lacks_package_and_loader(
    run_backend: Callable[..., dict[str, Any]],
) -> None:
    record = run_backend({name: None for name in PARTS if name.startswith("torch_npu/_inductor/")})

    assert record["status"] == "fail"
    assert record["detail"] == (
        "there is no package torch_npu._inductor.dvm; "
        "there is no loader torch_npu._inductor._load_dvm_backend; "
        "asking for dvm raised ModuleNotFoundError: No module named 'torch_npu._inductor' "
        "(such a build falls through to NPU Triton, where it fails with KeyError: 'r')"
    )


def test_a_build_that_has_all_parts_but_installs_triton_fails(run_backend: Callable[..., dict[str, Any]]) -> None:
    inductor = PARTS["torch_npu/_inductor/__init__.py"].replace('{"dvm": _load_dvm_backend}', "{}")

    record = run_backend({"torch_npu/_inductor/__init__.py": inductor})

    assert record["status"] == "fail"
    assert record["detail"].startswith(f"asking for dvm installed {TRITON} for npu")


def test_a_build_that_installs_nothing_fails(run_backend: Callable[..., dict[str, Any]]) -> None:
    inductor = "def _load_dvm_backend(): pass\n"

    record = run_backend({"torch_npu/_inductor/__init__.py": inductor})

    assert record["status"] == "fail"
    assert record["detail"].startswith("asking for dvm installed none for npu")


def test_a_lost_binding_fails_though_the_scheduling_is_there(run_backend: Callable[..., dict[str, Any]]) -> None:
    record = run_backend({"torch_npu/_C.py": ""})

    assert (record["status"], record["detail"]) == ("fail", "there is no native binding torch_npu._C.dvm")


def test_a_loader_that_raises_is_the_fault(run_backend: Callable[..., dict[str, Any]]) -> None:
    record = run_backend({"torch_npu/_inductor/dvm/mlir_fusion.py": "raise OSError('libdvm.so')\n"})

    assert (record["status"], record["detail"]) == ("fail", "asking for dvm raised OSError: libdvm.so")


VECTOR = "@dvm.kernel(ktype='vector', dyn_shape=False)\ndef a(k):\n    pass\n"
JIT = "async_compile.triton('b', '''\n    @triton.jit\n    def b(): pass\n''')\n"


@pytest.mark.parametrize(
    ("code", "status", "detail"),
    [
        pytest.param(
            VECTOR, "pass", "1 @dvm.kernel, no @triton.jit: @dvm.kernel(ktype='vector', dyn_shape=False)", id="dvm"
        ),
        pytest.param(JIT, "fail", "the generated code has no @dvm.kernel and 1 @triton.jit", id="triton"),
        pytest.param(
            VECTOR + JIT, "fail", "the generated code has 1 @triton.jit beside 1 @dvm.kernel", id="both"
        ),
        pytest.param(
            "# @dvm.kernel()\ntorch.ops.aten.relu(x)\n", "fail",
            "the generated code has no @dvm.kernel and 0 @triton.jit", id="a comment only",
        ),
        pytest.param("", "fail", "torch.compile wrote no code", id="nothing"),
    ],
)  # fmt: skip
def test_generated_code_is_judged_by_the_kernels_that_it_defines(code: str, status: str, detail: str) -> None:
    outcome = judge_code(code)

    assert (outcome.status, outcome.detail) == (status, detail)
