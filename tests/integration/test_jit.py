"""JIT extensions of a real torch, in the interpreter that runs the tests: compiled, found again, killed, mended."""

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.jit_cases import make_build
from tests.verify_cases import make_request, start_verify, write_files
from toolkit.envfile import Activation, render
from toolkit.extensions import examine_extensions
from verify.checks.jit_extensions import PYBIND11_SOURCE, compose_env

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="there is no torch in this interpreter"),
]

ROOT = Path(__file__).parents[2]
LOAD = "import sys; from torch.utils.cpp_extension import load; print(load(sys.argv[1], [sys.argv[2]]).made_for)"


@pytest.fixture
def overlay(tmp_path: Path) -> Path:
    """Make a folder that has an overlay's shape, in a place whose name a shell would split."""
    root = tmp_path / "an overlay"
    for folder in ("site", "torch_extensions"):
        (root / folder).mkdir(parents=True)
    variables = {"TOOLKIT_OVERLAY": str(root), "TORCH_EXTENSIONS_DIR": str(root / "torch_extensions")}
    activation = Activation(recipe="sample", key="0" * 16, versions="1", root=root, variables=variables)
    (root / "env.sh").write_text(render("sh", activation))
    return root


@pytest.fixture
def cann(tmp_path: Path) -> Path:
    """Make a CANN home with the one function that the check's extension refers to."""
    home = write_files(tmp_path / "a home", {"include/acl/acl.h": 'extern "C" int aclrtGetDeviceCount(unsigned *);\n'})
    (home / "lib64").mkdir()
    source = "int aclrtGetDeviceCount(unsigned *count) { return *count = 1; }"
    argv = ["cc", "-shared", "-fPIC", "-xc", "-", "-o", str(home / "lib64/libascendcl.so")]
    subprocess.run(argv, input=source, text=True, check=True)
    return home


def verify(overlay: Path, tmp_path: Path, environ: dict[str, str]) -> dict[str, Any]:
    """Run the check as `prove` does, and return its record."""
    request = make_request(["jit-extensions"], overlay / "site", tmp_path, overlay=str(overlay), time_limit=300)
    done = start_verify(tmp_path, request, {"PYTHONPATH": f"{overlay}/site:{ROOT}", **environ})
    assert done.returncode == 0, done.stderr
    (record,) = json.loads((tmp_path / "result.json").read_text())["checks"]
    return dict(record)


def test_a_real_torch_keeps_to_the_overlays_folder_also_beside_a_stale_lock(
    overlay: Path, cann: Path, tmp_path: Path
) -> None:
    stale = make_build(overlay / "torch_extensions", "killed") / "lock"
    stale.touch()
    before = sorted((overlay / "torch_extensions").rglob("*"))

    record = verify(overlay, tmp_path, {"ASCEND_HOME_PATH": str(cann), "LD_LIBRARY_PATH": str(cann / "lib64")})

    assert record["status"] == "pass", record
    assert record["evidence"]["cann"] == str(cann)
    assert "-lascendcl" in (tmp_path / "jit/first.log").read_text()
    assert "[1/2]" in (tmp_path / "jit/other.log").read_text()
    assert "ninja: no work to do." in (tmp_path / "jit/again.log").read_text()
    assert sorted((overlay / "torch_extensions").rglob("*")) == before


def test_a_runtime_that_lacks_what_the_headers_promise_is_told(overlay: Path, cann: Path, tmp_path: Path) -> None:
    (cann / "include/acl/acl.h").write_text("int aclrtGetDeviceCount(unsigned *);  // a C++ name, which C lacks\n")

    record = verify(overlay, tmp_path, {"ASCEND_HOME_PATH": str(cann), "LD_LIBRARY_PATH": str(cann / "lib64")})

    assert record["status"] == "error"
    assert record["detail"].startswith("the process 'first' ended with code 1: ImportError: ")
    assert "undefined symbol" in record["detail"]
    assert list((overlay / "torch_extensions").iterdir()) == []


def test_a_killed_build_is_reported_once_nobody_is_at_it_and_its_remedy_mends_it(overlay: Path, tmp_path: Path) -> None:
    folder = overlay / "torch_extensions"
    source = tmp_path / "killed.cpp"
    source.write_text(PYBIND11_SOURCE)
    argv = [sys.executable, "-c", LOAD, "killed", str(source)]
    env = {**compose_env(os.environ), "TORCH_EXTENSIONS_DIR": str(folder)}
    builder = subprocess.Popen(argv, env=env, cwd=tmp_path)
    wait_until(lambda: (folder / "killed/.ninja_log").exists())
    assert examine_extensions(folder) == ()

    builder.kill()
    builder.wait()

    wait_until(lambda: bool(examine_extensions(folder)))  # ninja works on without its caller
    (finding,) = examine_extensions(folder)
    assert finding.path == folder / "killed/lock"
    subprocess.run(["sh", "-c", finding.remedy], check=True)
    assert examine_extensions(folder) == ()
    done = subprocess.run(argv, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "first\n"


def wait_until(holds: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
