"""Run verify's own checks in a fresh interpreter, against small stand-ins for torch and torch_npu."""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.verify_cases import REPOSITORY, TORCH, make_request, make_torch_npu, start_verify, write_files


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Make an overlay's site with torch_npu and its dist-info."""
    return make_torch_npu(tmp_path / "overlay" / "site")


@pytest.fixture
def run_check(tmp_path: Path, site: Path) -> Callable[..., dict[str, Any]]:
    """Return a function that runs one check as `prove` would, and returns its record from result.json."""
    torch = write_files(tmp_path / "torch-site", {"torch/__init__.py": TORCH})

    def run_one(
        name: str,
        *,
        before: Sequence[Path] = (),
        environ: Mapping[str, str] | None = None,
        executable: str = sys.executable,
        cwd: Path | None = None,
        **changed: Any,
    ) -> dict[str, Any]:
        request = make_request([name], site, tmp_path, **changed)
        path = os.pathsep.join(str(entry) for entry in (*before, site, torch, REPOSITORY))
        done = start_verify(tmp_path, request, {"PYTHONPATH": path, **(environ or {})}, executable, cwd)
        assert done.returncode == 0, done.stderr
        (record,) = json.loads((tmp_path / "result.json").read_text())["checks"]
        assert record["name"] == name
        return dict(record)

    return run_one
