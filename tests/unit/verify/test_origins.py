"""What shadows an overlay is named: each way in which another copy can get in, made for real."""

import sys
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.verify_cases import make_torch_npu, write_files

Run = Callable[..., dict[str, Any]]

MAP = """
import mmap
with open({path!r}, "rb") as stream:
    held = mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ)
"""


def test_a_package_that_comes_from_the_site_alone_passes(run_check: Run, site: Path) -> None:
    write_files(site, {"torch_npu/lib/libtorch_npu.so": "x", "torch_npu/_C.so": "x"})
    library = site / "torch_npu/lib/libtorch_npu.so"
    write_init(site, f"from . import part\n{MAP.format(path=str(library))}")

    record = run_check("origins")

    assert (record["status"], record["detail"]) == ("pass", f"torch_npu: all 2 modules come from {site}")
    assert record["evidence"] == {"modules": 2, "libraries": [str(library)]}


def test_a_site_reached_through_a_link_passes(run_check: Run, site: Path, tmp_path: Path) -> None:
    (tmp_path / "current").symlink_to(site)

    assert run_check("origins", site=str(tmp_path / "current"))["status"] == "pass"


def test_an_earlier_entry_of_pythonpath_is_named(run_check: Run, site: Path, tmp_path: Path) -> None:
    other = make_torch_npu(tmp_path / "other")

    record = run_check("origins", before=[other])

    assert record["status"] == "fail"
    assert record["evidence"]["faults"] == [
        f"torch_npu is not imported from {site}: the earlier PYTHONPATH entry {other} stands in its place: "
        f"{other}/torch_npu/__init__.py",
        f"module torch_npu was loaded from {other}/torch_npu/__init__.py",
    ]


def test_a_source_tree_in_the_current_folder_is_named(run_check: Run, site: Path, tmp_path: Path) -> None:
    checkout = make_torch_npu(tmp_path / "checkout")

    record = run_check("origins", cwd=checkout)

    assert record["status"] == "fail"
    assert record["evidence"]["faults"][0] == (
        f"torch_npu is not imported from {site}: a source tree in the current folder stands in its place: "
        f"{checkout}/torch_npu/__init__.py"
    )


def test_the_installed_package_is_named_where_the_site_is_not_on_the_path(run_check: Run, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", symlinks=True)
    installed = tmp_path / f"venv/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    make_torch_npu(installed, "2.13.0")
    elsewhere = tmp_path / "not-on-path"

    record = run_check(
        "origins",
        site=str(elsewhere),
        executable=str(tmp_path / "venv/bin/python"),
        environ={"PYTHONPATH": f"{tmp_path / 'torch-site'}:{Path(__file__).parents[3]}"},
    )

    assert record["evidence"]["faults"][0] == (
        f"torch_npu is not imported from {elsewhere}: the package installed in {installed} stands in its place: "
        f"{installed}/torch_npu/__init__.py ({elsewhere} is not on sys.path)"
    )


def test_a_namespace_package_is_named(run_check: Run, site: Path) -> None:
    (site / "torch_npu/__init__.py").unlink()

    record = run_check("origins")

    assert record["status"] == "fail"
    assert (
        f"torch_npu is not imported from {site}: a namespace package, a folder 'torch_npu' without __init__.py, "
        f"stands for it: {site}/torch_npu"
    ) in record["detail"]
    assert "importing it failed: AttributeError" in record["detail"]


def test_nothing_of_the_name_is_said(run_check: Run, tmp_path: Path) -> None:
    torch_only = f"{tmp_path / 'torch-site'}:{Path(__file__).parents[3]}"

    record = run_check("origins", environ={"PYTHONPATH": torch_only})

    assert record["status"] == "fail"
    assert "nothing of that name is on sys.path (" in record["detail"]
    assert "importing it failed: ModuleNotFoundError: No module named 'torch_npu'" in record["detail"]


def test_a_shadow_that_cannot_be_imported_is_still_named(run_check: Run, tmp_path: Path) -> None:
    other = write_files(tmp_path / "other", {"torch_npu/__init__.py": "raise OSError('libhccl.so: cannot open')\n"})

    record = run_check("origins", before=[other])

    assert record["status"] == "fail"
    assert f"the earlier PYTHONPATH entry {other} stands in its place" in record["detail"]
    assert record["detail"].endswith("importing it failed: OSError: libhccl.so: cannot open")


def test_a_package_of_the_site_that_cannot_be_imported_is_an_error(run_check: Run, site: Path) -> None:
    (site / "torch_npu/__init__.py").write_text("raise OSError('libhccl.so: cannot open')\n")

    record = run_check("origins")

    assert (record["status"], record["detail"]) == ("error", "OSError: libhccl.so: cannot open")


def test_a_submodule_from_elsewhere_is_named(run_check: Run, site: Path, tmp_path: Path) -> None:
    other = make_torch_npu(tmp_path / "other")
    (site / "torch_npu/part.py").unlink()
    write_init(site, f"__path__.append({str(other / 'torch_npu')!r})\nfrom . import part\n")

    record = run_check("origins")

    assert record["evidence"]["faults"] == [f"module torch_npu.part was loaded from {other}/torch_npu/part.py"]


@pytest.mark.parametrize(
    ("place", "fault"),
    [
        pytest.param(
            "lib64/libtorch_npu.so", "a second copy of libtorch_npu.so is mapped from {folder}", id="same name"
        ),
        pytest.param(
            "torch_npu/lib/libother.so",
            "libother.so is mapped from {folder}, which is another copy of the package",
            id="another copy's own library",
        ),
        pytest.param("torch_npu.libs/libgomp-a34b3233.so.1", None, id="vendored by content"),
        pytest.param("torch/_C.so", None, id="another package's extension"),
        pytest.param("lib64/libascendcl.so", None, id="a library that is not the package's"),
    ],
)
def test_another_copy_of_a_library_in_the_process_is_named(
    run_check: Run, site: Path, tmp_path: Path, place: str, fault: str | None
) -> None:
    write_files(
        site,
        {"torch_npu/lib/libtorch_npu.so": "x", "torch_npu/_C.so": "x", "torch_npu.libs/libgomp-a34b3233.so.1": "x"},
    )
    other = write_files(tmp_path / "other", {place: "x", "torch_npu/__init__.py": ""}) / place
    write_init(site, MAP.format(path=str(other)))

    record = run_check("origins")

    faults = [] if fault is None else [fault.format(folder=other.parent)]
    assert record["evidence"].get("faults", []) == faults
    assert record["status"] == ("fail" if faults else "pass")


def test_a_package_with_a_lazy_getattr_is_not_made_to_import_more(run_check: Run, site: Path) -> None:
    write_init(
        site,
        "import sys, types\nclass Lazy(types.ModuleType):\n    def __getattr__(self, name):\n"
        "        raise ImportError('needs what is not installed')\n"
        "sys.modules['torch_npu.lazy'] = Lazy('torch_npu.lazy')\n",
    )

    assert run_check("origins")["status"] == "pass"


def write_init(site: Path, source: str) -> None:
    (site / "torch_npu/__init__.py").write_text(f"__version__ = '2.13.0'\n{source}")
