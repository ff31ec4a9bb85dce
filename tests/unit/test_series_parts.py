"""Sorting files by the build that their change can reach."""

from __future__ import annotations

import pytest

from toolkit.series.parts import classify


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("torch_npu/_inductor/dvm/mlir_fusion.py", "python"),
        ("torch_npu/_inductor/codegen/triton.py", "python"),
        ("torch_npu/_C/__init__.pyi", "python"),
        ("torch_npu/_inductor/config/data.json", "python"),
        ("single_module.py", "python"),
        ("torch_npu/utils/version.py", "python"),
        ("torch_npu/csrc/core/npu/NPUStream.cpp", "native"),
        ("torch_npu/csrc/aten/npu_native_functions.yaml", "native"),
        ("torch_npu/include/third_party/acl/inc/acl.h", "native"),
        ("torch_npu/lib/libtorch_npu.so", "native"),
        ("torch_npu/lib/libtorch_npu.so.2", "native"),
        ("third_party/acl/libs/build_stub.sh", "native"),
        ("codegen/gen_backend_stubs.py", "native"),
        ("cmake/BuildFlags.cmake", "native"),
        ("CMakeLists.txt", "native"),
        ("torch_npu/CMakeLists.txt", "native"),
        ("setup.py", "native"),
        ("version.txt", "native"),
        ("pyproject.toml", "native"),
        ("torch_npu/version.py", "generated"),
        ("torch_npu-2.13.0.dist-info/RECORD", "generated"),
        ("torch_npu.egg-info/PKG-INFO", "generated"),
        ("torch_npu/csrc/generated/bindings.cpp", "generated"),
        ("torch_npu/_generated_ops.py", "generated"),
    ],
)
def test_a_file_is_sorted_by_what_its_change_can_reach(path: str, part: str) -> None:
    assert classify(path) == part
