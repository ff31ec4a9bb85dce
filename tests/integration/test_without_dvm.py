"""A base without DVM, as torch_npu 2.12.0 is: refused for a series of another base, and red in `dvm-backend`.

The wheels here are made up. They have the layout of that release as far as `dvm-backend` looks, and a stand-in for
torch in them, so that nothing is measured on this machine's own.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.sample import PATCH, RECIPE, Sample, own_tag, torch_version
from tests.verify_cases import REPOSITORY, TORCH
from tests.wheels import make_wheel
from toolkit.process import Completed, run

INDUCTOR = """\
import os
from torch._inductor.codegen import common

def _load_triton_backend():
    from . import triton
    common.device_codegens["npu"] = (triton.NPUCombinedScheduling, triton.Wrapper)

_BACKEND_LOADERS = {"mlir": _load_triton_backend}
_BACKEND_LOADERS.get(os.environ["TORCHINDUCTOR_NPU_BACKEND"], _load_triton_backend)()
"""
DVM = """
def _load_dvm_backend():
    from .dvm import mlir_fusion
    common.device_codegens["npu"] = (mlir_fusion.NpuDvmScheduling, mlir_fusion.Wrapper)

if os.environ["TORCHINDUCTOR_NPU_BACKEND"] == "dvm":
    _load_dvm_backend()
"""
FILES = {
    "torch_npu/__init__.py": '__version__ = "2.12.0"\nfrom . import _C\n',
    "torch_npu/version.py": '__version__ = "2.12.0"\n',
    "torch_npu/core.py": "def answer():\n    return 41\n",
    "torch_npu/_C.py": "",
    "torch_npu/_inductor/__init__.py": INDUCTOR,
    "torch_npu/_inductor/triton.py": "class NPUCombinedScheduling: pass\nclass Wrapper: pass\n",
    "torch/__init__.py": TORCH,
    "torch/_inductor/__init__.py": "",
    "torch/_inductor/scheduler.py": "",
    "torch/_inductor/codegen/__init__.py": "",
    "torch/_inductor/codegen/common.py": "device_codegens = {}\n"
    "def get_scheduling_for_device(name):\n    return device_codegens.get(name, (None, None))[0]\n"
    "def get_wrapper_codegen_for_device(name):\n    return device_codegens[name][1]\n",
}
WITH_DVM = {
    "torch_npu/_C.py": "dvm = object()\n",
    "torch_npu/_inductor/__init__.py": INDUCTOR + DVM,
    "torch_npu/_inductor/dvm/__init__.py": "",
    "torch_npu/_inductor/dvm/mlir_fusion.py": "class NpuDvmScheduling: pass\nclass Wrapper: pass\n",
}
ENV = 'SAMPLE_BACKEND = "small"'


def make_project(folder: Path, files: Mapping[str, str] = FILES) -> Sample:
    """Write a project whose DVM recipe has a made-up torch_npu 2.12.0 as its base, taken as it is."""
    root = folder / "project"
    tag = own_tag()
    wheel = make_wheel(
        folder / "index", "torch_npu", "2.12.0", files, tag=f"{tag.interpreter}-{tag.abi}-{tag.platform}"
    )
    recipe = RECIPE.format(python_tag=tag.interpreter, platform=tag.platform, torch=torch_version())
    for old, new in (
        ('"sample_npu"', '"torch_npu"'), ('version = "1.0"', 'version = "2.12.0"'), ('["loads"]', '["dvm-backend"]'),
        ('series = "sample_npu/1.0"\n', ""), (ENV, 'TORCHINDUCTOR_NPU_BACKEND = "dvm"'),
    ):  # fmt: skip
        assert old in recipe
        recipe = recipe.replace(old, new)
    for name in ("recipes", "patches"):
        (root / name).mkdir(parents=True)
    (root / "recipes/sample.toml").write_text(recipe, encoding="utf-8")
    shutil.copytree(REPOSITORY / "verify", root / "verify", ignore=shutil.ignore_patterns("__pycache__"))
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "TOOLKIT_"))}
    environ |= {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheel.parent),
        "PIP_CONFIG_FILE": os.devnull,
        "TOOLKIT_PROJECT": str(root),
        "TOOLKIT_STORE": str(folder / "store"),
        "TOOLKIT_RECIPE": "sample",
        "PYTHONPATH": str(REPOSITORY),
    }
    return Sample(root=root, wheel=wheel, environ=environ)


def toolkit(sample: Sample, *words: str) -> Completed:
    return run(sample.toolkit(*words), cwd=sample.root, env=sample.environ, check=False, timeout=300)


def test_a_build_without_dvm_fails_naming_what_is_missing_and_the_symptom(tmp_path: Path) -> None:
    sample = make_project(tmp_path)
    assert toolkit(sample, "lock").returncode == 0

    done = toolkit(sample, "build")

    assert done.returncode == 16, done.stderr
    assert "error: 1 required check(s) of 'sample' did not come out as required" in done.stderr
    told = " ".join(done.stderr.split())
    assert (
        "dvm-backend on the overlay: fail, wanted pass: there is no package torch_npu._inductor.dvm; there is no "
        "native binding torch_npu._C.dvm; there is no loader torch_npu._inductor._load_dvm_backend; asking for dvm "
        "installed torch_npu._inductor.triton.NPUCombinedScheduling for npu, expected a scheduling of "
        "torch_npu._inductor.dvm (such a build falls through to NPU Triton, where it fails with KeyError: 'r')"
    ) in told
    assert not (sample.overlays / "sample/current").exists()


def test_the_same_build_with_dvm_in_it_is_proven(tmp_path: Path) -> None:
    sample = make_project(tmp_path, {**FILES, **WITH_DVM})
    assert toolkit(sample, "lock").returncode == 0

    done = toolkit(sample, "build", "--json")

    assert done.returncode == 0, done.stderr
    (check,) = json.loads(done.stdout)["proof_record"]["results"]
    assert (check["name"], check["status"]) == ("dvm-backend", "pass")


@pytest.mark.parametrize("command", ["build", "key"])
def test_a_series_of_another_base_is_refused_before_anything_is_fetched(tmp_path: Path, command: str) -> None:
    sample = make_project(tmp_path)
    assert toolkit(sample, "lock").returncode == 0
    folder = sample.root / "patches/torch_npu/2.12"
    folder.mkdir(parents=True)
    (folder / "series.toml").write_bytes((REPOSITORY / "patches/torch_npu/2.12/series.toml").read_bytes())
    (folder / "0001-right-answer.patch").write_text(PATCH.replace("sample_npu", "torch_npu"), encoding="utf-8")
    recipe = sample.recipe.read_text(encoding="utf-8")
    sample.recipe.write_text(
        recipe.replace('name = "torch_npu"\n', 'name = "torch_npu"\nseries = "torch_npu/2.12"\n'), encoding="utf-8"
    )

    done = toolkit(sample, command)

    assert done.returncode == 8, done.stderr
    assert "error: series 'torch_npu/2.12' is not for torch_npu torch_npu==2.12.0" in done.stderr
    assert "torch_npu==2.12.0.post3, git:f38033913dbefc3a74dbdc4d4838794790d834f8" in done.stderr
    assert not list(Path(sample.environ["TOOLKIT_STORE"]).rglob("*.whl"))
    assert not sample.overlays.exists()
