"""Small stand-ins for torch and torch_npu, and requests to verify about them."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolkit.files import sha256_file
from toolkit.process import Completed, compose_env, run

REPOSITORY = Path(__file__).parents[1]
VERSION = "2.13.0+p4.k12345678"

TORCH = """
__version__ = "2.13.0+cpu"
class version:
    cuda = None
class npu:
    device_count = staticmethod(lambda: 1)
    get_device_name = staticmethod(lambda index: "Ascend910B3")
"""


def make_torch_npu(site: Path, version: str = VERSION, **files: str) -> Path:
    info = f"torch_npu-{version}.dist-info"
    return write_files(
        site,
        {
            "torch_npu/__init__.py": f"__version__ = {version!r}\n",
            "torch_npu/part.py": "",
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: torch_npu\nVersion: {version}\n",
            f"{info}/entry_points.txt": "[torch.backends]\ntorch_npu = torch_npu:_autoload\n",
            **files,
        },
    )


def make_request(checks: Sequence[str], folder: Path, scratch: Path, **changed: Any) -> dict[str, Any]:
    manifest = write_manifest(folder)
    return {
        "schema": 1, "checks": list(checks), "side": "overlay", "runtime": "host", "site": str(folder),
        "manifest": str(manifest), "scratch": str(scratch), "can_load": True, "time_limit": 0,
        "packages": [{
            "component": "torch_npu", "import_name": "torch_npu", "distribution": "torch_npu",
            "version": VERSION,
        }],
        "expect": {}, **changed,
    }  # fmt: skip


def write_manifest(site: Path) -> Path:
    """List the site's files beside it, once: a test may then change them."""
    path = site.parent / "manifest.json"
    if not path.exists():
        files = [file for file in site.rglob("*") if file.is_file()]
        listed = {file.relative_to(site).as_posix(): {"sha256": sha256_file(file), "size": 0} for file in files}
        path.write_text(json.dumps({"files": listed}))
    return path


def write_files(root: Path, files: Mapping[str, str]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


def start_verify(
    scratch: Path,
    request: object,
    env: Mapping[str, str],
    executable: str = sys.executable,
    cwd: Path | None = None,
) -> Completed:
    (scratch / "request.json").write_text(json.dumps(request))
    empty = scratch / "empty"
    empty.mkdir(exist_ok=True)
    own = {"PYTHONDONTWRITEBYTECODE": "1", **env}
    argv = [executable, "-m", "verify", scratch / "request.json", scratch / "result.json"]
    return run(argv, cwd=cwd or empty, env=compose_env(os.environ, own), check=False, timeout=60)
