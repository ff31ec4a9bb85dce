"""Virtual environments with planted packages: small, without pip, sound by default and wrong as a test asks."""

from __future__ import annotations

import base64
import functools
import hashlib
import os
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from toolkit.doctor.asked import Asked
from toolkit.doctor.survey import Survey, survey_imports
from toolkit.model import Contract, Interpreter, Observation, Recipe
from toolkit.target import inspect_interpreter

SUFFIX = str(sysconfig.get_config_var("EXT_SUFFIX"))
COMMIT = "c798c6532a0d05c1863489e83cb7e3985be4e830"
ALL_TAGS = tuple(f"cp3{minor}" for minor in range(10, 20))
OTHER_SUFFIX = SUFFIX.replace(f"cpython-{sys.version_info.major}{sys.version_info.minor}", "cpython-39")


@functools.cache
def library() -> bytes:
    """Return a library that is whole and has nothing in it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "lib.so")
        subprocess.run(["cc", "-shared", "-x", "c", os.devnull, "-o", file], check=True)
        return file.read_bytes()


@dataclass(kw_only=True)
class Planted:
    """A virtual environment, the folder that training starts in, and its environment."""

    root: Path
    environ: dict[str, str]
    interpreter: Interpreter

    @property
    def python(self) -> Path:
        return self.root / "venv" / "bin" / "python"

    @property
    def site(self) -> Path:
        return next((self.root / "venv" / "lib").glob("python3*")) / "site-packages"

    @property
    def cwd(self) -> Path:
        return self.root / "work"

    def survey(self) -> Survey:
        return survey_imports(self.interpreter, self.environ, self.cwd)

    def asked(self, survey: Survey | None = None, wanted: Recipe | None = None) -> Asked:
        return Asked(
            environ=self.environ, cwd=self.cwd, interpreter=self.interpreter,
            packages={} if survey is None else survey.packages, project=None, recipe="mine", wanted=wanted,
        )  # fmt: skip


def plant(root: Path) -> Planted:
    """Make an empty virtual environment, a folder to start in and an environment that is sound."""
    venv.create(root / "venv", symlinks=True, with_pip=False)
    (root / "work").mkdir()
    environ = {"PATH": f"{root / 'venv' / 'bin'}{os.pathsep}{os.defpath}", "HOME": str(root), "LANG": "C.UTF-8"}
    interpreter = inspect_interpreter(root / "venv" / "bin" / "python", env=environ)
    return Planted(root=root, environ=environ, interpreter=interpreter)


def plant_npu(planted: Planted) -> None:
    """Install a torch, a torch_npu and a triton-ascend that belong together."""
    plant_torch(planted.site)
    plant_torch_npu(planted.site)
    plant_triton(planted.site)


def plant_torch(site: Path, version: str = "2.13.0+cpu", *, cuda: str | None = None, suffix: str = SUFFIX) -> None:
    files: dict[str, str | bytes] = {
        "torch/__init__.py": "raise SystemExit('torch was imported')\n",
        "torch/version.py": f"import typing\n\n__version__ = '{version}'\ncuda: typing.Optional[str] = {cuda!r}\n",
        f"torch/_C{suffix}": library(),
    }
    install(site, "torch", version, files)


def plant_torch_npu(
    site: Path, version: str = "2.13.0", *, requires: tuple[str, ...] = ("torch==2.13.0.*", "numpy"), dvm: bool = True,
    suffix: str = SUFFIX,
) -> None:  # fmt: skip
    files: dict[str, str | bytes] = {
        "torch_npu/__init__.py": "raise SystemExit('torch_npu was imported')\n",
        "torch_npu/version.py": f"__version__ = '{version}'\ngit_version = '{COMMIT}'\n",
        f"torch_npu/_C{suffix}": library(),
        "torch_npu/_inductor/__init__.py": "",
        "torch_npu/lib/libtorch_npu.so": library(),
    }
    if dvm:
        files["torch_npu/_inductor/dvm/__init__.py"] = ""
    install(site, "torch_npu", version, files, requires=requires)


def plant_triton(site: Path, name: str = "triton-ascend", version: str = "3.2.0") -> None:
    """Install a triton, over whatever is there; the one for NPUs has the Ascend backend."""
    files = {
        "triton/__init__.py": f"__version__ = '{version}'  # of {name}\n",
        "triton/backends/__init__.py": f"# of {name}\n",
        "triton/_C/libtriton.so": f"\x7fELF of {name}",
    }
    backend = "ascend" if name == "triton-ascend" else "nvidia"
    files[f"triton/backends/{backend}/__init__.py"] = f"# of {name}\n"
    install(site, name, version, files)


def install(
    site: Path, name: str, version: str, files: Mapping[str, str | bytes], *, requires: tuple[str, ...] = (),
    source: str = "",
) -> Path:  # fmt: skip
    """Write a distribution's files with its metadata, as pip would; return the dist-info."""
    lines = []
    for path, content in files.items():
        raw = content.encode("utf-8") if isinstance(content, str) else content
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_bytes(raw)
        digest = base64.urlsafe_b64encode(hashlib.sha256(raw).digest()).rstrip(b"=").decode("ascii")
        lines.append(f"{path},sha256={digest},{len(raw)}")
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    needs = "".join(f"Requires-Dist: {one}\n" for one in requires)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}\n", "utf-8")
    (info / "RECORD").write_text("\n".join([*lines, f"{info.name}/RECORD,,"]) + "\n", "utf-8")
    if source:
        (info / "direct_url.json").write_text(
            f'{{"url": "file://{source}", "dir_info": {{"editable": true}}}}', "utf-8"
        )
    return info


def install_editable(site: Path, name: str, mapping: Mapping[str, str]) -> Path:
    """Install by a finder, as setuptools does where a project's folders are not simply its packages."""
    from setuptools.command.editable_wheel import _finder_template

    module = f"__editable___{name}_1_0_finder"
    (site / f"{module}.py").write_text(_finder_template(name, dict(mapping), {}), "utf-8")
    (site / f"__editable__.{name}-1.0.pth").write_text(f"import {module}; {module}.install()\n", "utf-8")
    install(site, name, "1.0", {}, source=next(iter(mapping.values())))
    return site / f"{module}.py"


def make_recipe(
    *, torch: str = "2.13.0", env: Mapping[str, str] | None = None, tags: tuple[str, ...] = ALL_TAGS
) -> Recipe:  # fmt: skip
    """Return a recipe that asks for what `plant_npu` plants."""
    return Recipe(
        name="mine", description="", components=(), env=env or {}, checks=(), files=(),
        contract=Contract(python_tags=tags, platforms=("manylinux_2_17_x86_64", "manylinux_2_17_aarch64"), torch=torch),
    )  # fmt: skip


def named(observations: list[Observation] | tuple[Observation, ...], name: str) -> tuple[str, str, str]:
    """Return the grade, the sight and the advice of the one observation of that name."""
    (one,) = [one for one in observations if one.name == name]
    return one.grade, one.seen, one.do


def grades(observations: list[Observation] | tuple[Observation, ...]) -> dict[str, str]:
    """Return the names of those that are not ok, with their grades."""
    return {one.name: one.grade for one in observations if one.grade != "ok"}
