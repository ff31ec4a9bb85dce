from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.sysroot.needs import C_NAME, CXX_NAME, SYSTEM_LIBRARY, TORCH_LIBRARY, read_needs


def test_libraries_are_those_that_neither_wheel_nor_torch_nor_platform_has(site: Path) -> None:
    assert read_needs(site).libraries == ("libascendcl.so", "libatb.so", "libopapi.so")


def test_linked_names_are_canns_and_not_torchs_or_libcs(site: Path) -> None:
    assert read_needs(site).linked == ("_ZN3atb5ProbeEv", "aclrtProbe")


def test_looked_up_names_are_whole_words_at_the_end_of_a_string(site: Path) -> None:
    assert read_needs(site).looked_up == ("aclnnProbe", "aclnnProbeGetWorkspaceSize", "aclrtSpoken")


def test_a_folder_without_libraries_needs_only_what_is_opened(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("not ELF")
    needs = read_needs(tmp_path)
    assert (needs.linked, needs.looked_up) == ((), ())


@pytest.mark.parametrize(
    "name",
    ["aclInit", "aclrtMalloc", "aclnnAdd", "aclopCreateAttr", "acltdtCreateDataset", "HcclSetConfig", "rtKernelLaunch",
     "MsprofReportApi", "snprintf_s", "vsnprintf_s", "strcpy_s"],
)  # fmt: skip
def test_c_names_of_cann_are_recognised(name: str) -> None:
    assert C_NAME.fullmatch(name)


@pytest.mark.parametrize(
    "name", ["PyList_New", "pthread_create", "dlsym", "runtime", "accept", "_ITM_registerTMCloneTable"]
)
def test_other_c_names_are_left_alone(name: str) -> None:
    assert not C_NAME.fullmatch(name)


def test_cxx_names_are_told_by_their_outermost_namespace() -> None:
    own = [
        "_ZN2ge5GraphC1EPKc",
        "_ZNK2ge6Tensor9GetFormatEv",
        "_ZTIN2ge5GraphE",
        "_ZN3atb5Utils13GetTensorSizeERKNS_6TensorE",
    ]
    foreign = [
        "_ZN2at6Tensor3addEv",
        "_ZN3c106Device3getEN2ge1XE",
        "_ZTHN3atb10g_hash_bufE",
        "_ZNSt6vectorIN2ge5ShapeEE",
    ]
    assert [bool(CXX_NAME.fullmatch(name)) for name in own + foreign] == [True] * len(own) + [False] * len(foreign)


def test_library_families() -> None:
    system = ["libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libstdc++.so.6", "libpthread.so.0"]
    assert all(SYSTEM_LIBRARY.fullmatch(name) for name in system)
    assert all(
        TORCH_LIBRARY.fullmatch(name) for name in ["libtorch.so", "libtorch_python.so", "libc10.so", "libc10_cuda.so"]
    )
    assert not any(
        SYSTEM_LIBRARY.fullmatch(name) or TORCH_LIBRARY.fullmatch(name) for name in ["libhccl.so", "libgraph.so"]
    )
