"""Files that are not the manifest's are named, whether this process can load them or not."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.verify_cases import VERSION, write_files, write_manifest

Run = Callable[..., dict[str, Any]]


@pytest.fixture
def listed(site: Path) -> Path:
    """List the site's files as they are now; what a test changes after is a fault."""
    return write_manifest(site)


@pytest.mark.parametrize(
    ("can_load", "detail"),
    [
        pytest.param(True, "all 4 files are as the manifest lists them, 1 of them loaded", id="loading"),
        pytest.param(False, "all 4 files are as the manifest lists them", id="for another platform"),
    ],
)
def test_a_site_that_is_as_listed_passes(run_check: Run, listed: Path, can_load: bool, detail: str) -> None:
    record = run_check("manifest", can_load=can_load)

    assert (record["status"], record["detail"]) == ("pass", detail)


def test_for_another_platform_nothing_is_imported(run_check: Run, site: Path) -> None:
    (site / "torch_npu/__init__.py").write_text("raise RuntimeError('imported')\n")

    assert run_check("manifest", can_load=False)["status"] == "pass"


def test_one_flipped_byte_is_named_and_nothing_is_imported(run_check: Run, site: Path, listed: Path) -> None:
    before = json.loads(listed.read_text())["files"]["torch_npu/__init__.py"]["sha256"]
    init = site / "torch_npu/__init__.py"
    init.write_bytes(init.read_bytes().replace(b"_", b"(", 1))

    record = run_check("manifest")

    assert record["status"] == "fail"
    assert record["detail"].startswith("torch_npu/__init__.py has sha256 ")
    assert record["detail"].endswith(f", listed {before}")


def test_missing_and_unlisted_files_are_all_named(run_check: Run, site: Path, listed: Path) -> None:
    (site / "torch_npu/part.py").unlink()
    write_files(site, {"torch_npu/extra.pyc": "", "top.py": "", "torch_npu/__pycache__/part.cpython-311.pyc": ""})

    record = run_check("manifest")

    assert (record["status"], record["detail"]) == (
        "fail",
        "top.py is not listed; torch_npu/extra.pyc is not listed; torch_npu/part.py is missing",
    )


def test_a_linked_folder_is_named(run_check: Run, site: Path, listed: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (site / "torch_npu/more").symlink_to(tmp_path / "outside")

    assert run_check("manifest")["detail"] == "torch_npu/more is not listed"


def test_a_long_list_is_cut_in_the_sentence_and_kept_in_the_evidence(run_check: Run, site: Path, listed: Path) -> None:
    write_files(site, {f"extra-{number:02}": "" for number in range(12)})

    record = run_check("manifest")

    assert record["detail"].endswith("extra-09 is not listed; and 2 more")
    assert len(record["evidence"]["faults"]) == 12


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        pytest.param(
            "import os\n"
            "path = os.path.join(os.path.dirname(__file__), '__pycache__', 'hidden.py')\n"
            "os.makedirs(os.path.dirname(path), exist_ok=True)\nopen(path, 'w').close()\n"
            "import importlib.util, sys\n"
            "spec = importlib.util.spec_from_file_location('hidden', path)\n"
            "sys.modules['hidden'] = importlib.util.module_from_spec(spec)\n",
            "torch_npu/__pycache__/hidden.py was loaded and is not listed",
            id="a module",
        ),
        pytest.param(
            "import mmap, os\n"
            "path = os.path.join(os.path.dirname(__file__), 'libgone.so')\n"
            "open(path, 'w').write('x')\n"
            "with open(path, 'rb') as stream:\n"
            "    held = mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ)\nos.unlink(path)\n",
            "torch_npu/libgone.so (deleted) was loaded and is not listed",
            id="a library",
        ),
    ],
)
def test_what_was_loaded_from_the_site_and_is_not_listed_is_named(
    run_check: Run, site: Path, source: str, fault: str
) -> None:
    (site / "torch_npu/__init__.py").write_text(f"__version__ = {VERSION!r}\n{source}")

    record = run_check("manifest")

    assert (record["status"], record["detail"]) == ("fail", fault)


def test_a_side_without_a_manifest_is_an_error(run_check: Run) -> None:
    record = run_check("manifest", manifest=None, side="base")

    assert (record["status"], record["detail"]) == ("error", "the base has no manifest")
