"""A machine with NPUs, planted in a folder: CANN, NNAL, driver, device nodes, and packages that are loaded on it.

The libraries are real ones: compiled once, each with the names that the next one needs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from toolkit.doctor.asked import Asked
from toolkit.model import Contract, Interpreter, Observation, Recipe
from toolkit.target import inspect_interpreter

VERSION = "8.5.0"
ASCEND = "root/usr/local/Ascend"
HOME = f"{ASCEND}/ascend-toolkit/{VERSION}"
DRIVER = f"{ASCEND}/driver"
TORCH = "site/torch"
NPU = "site/torch_npu"

ORIGIN = "-Wl,-rpath,$ORIGIN:$ORIGIN/lib"
LIBRARIES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (f"{DRIVER}/lib64/driver/libascend_hal.so", "int halGet(void) { return 0; }", ()),
    (
        f"{HOME}/lib64/libascendcl.so",
        "int halGet(void); int aclInit(void) { return halGet(); } int MsprofSysCycleTime(void) { return 0; }",
        (f"{DRIVER}/lib64/driver/libascend_hal.so",),
    ),
    (f"{HOME}/lib64/libhccl.so", "int HcclGetRootInfo(void) { return 0; }", ()),
    (f"{ASCEND}/nnal/atb/lib/libatb.so", "int run(void) __asm__(\"_ZN3atb3RunEv\"); int run(void) { return 0; }", ()),
    (f"{TORCH}/lib/libc10.so", "int fault(void) __asm__(\"_ZN3c105ErrorEv\"); int fault(void) { return 0; }", ()),
    (
        f"{NPU}/lib/libtorch_npu.so",
        "int aclInit(void); int MsprofSysCycleTime(void); int HcclGetRootInfo(void); "
        "int fault(void) __asm__(\"_ZN3c105ErrorEv\"); int load(void) __asm__(\"_ZN6at_npu4loadEv\"); "
        "int load(void) { return aclInit() + MsprofSysCycleTime() + HcclGetRootInfo() + fault(); }",
        (f"{HOME}/lib64/libascendcl.so", f"{HOME}/lib64/libhccl.so", f"{TORCH}/lib/libc10.so"),
    ),
    (
        f"{NPU}/lib/libop_plugin_atb.so",
        "int run(void) __asm__(\"_ZN3atb3RunEv\"); int plug(void) { return run(); }",
        (f"{ASCEND}/nnal/atb/lib/libatb.so",),
    ),
    (
        f"{NPU}/_C.so",
        "int load(void) __asm__(\"_ZN6at_npu4loadEv\"); int PyInit__C(void) { return load(); }",
        (f"{NPU}/lib/libtorch_npu.so",),
    ),
)  # fmt: skip
"""Each library, its source, and the libraries that it is linked to, by their file names."""

TEXTS = {
    f"{HOME}/set_env.sh": "",
    f"{HOME}/x86_64-linux/ascend_toolkit_install.info": f"package_name=Ascend-cann-toolkit\nversion={VERSION}\n",
    f"{HOME}/runtime/version.info": f"Version={VERSION}\n",
    f"{HOME}/compiler/version.info": f"Version={VERSION}\n",
    f"{HOME}/opp/version.info": f"Version={VERSION}\n",
    f"{HOME}/python/site-packages/acl.py": "",
    f"{DRIVER}/version.info": "Version=25.5.0\nascendhal_version=7.35.23\n",
    "root/etc/ascend_install.info": "UserName=HwHiAiUser\nDriver_Install_Path_Param=/usr/local/Ascend\n",
    "root/dev/davinci0": "",
    "root/dev/davinci1": "",
    "root/dev/davinci_manager": "",
    "root/dev/devmm_svm": "",
    "root/dev/hisi_hdc": "",
    "root/proc/meminfo": "MemTotal: 1056964608 kB\nMemAvailable: 1006964608 kB\n",
    "root/proc/mounts": "/dev/vda / ext4 rw,relatime 0 0\n",
    "root/proc/self/cgroup": "0::/\n",
    f"{TORCH}/__init__.py": "",
    f"{TORCH}/version.py": "__version__ = '2.13.0+cpu'\ncuda: Optional[str] = None\n",
    f"{NPU}/__init__.py": "",
    f"{NPU}/_inductor/__init__.py": "_BACKEND_LOADERS = {'mlir': 1, 'dvm': 2, 'default': 3}\n",
}

COMPILERS = (f"{HOME}/tools/bishengir/bin/bishengir-compile", f"{HOME}/tools/ccec_compiler/bin/bisheng")


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A planted machine; `environ` is what its set_env.sh files and an env file would have left."""

    place: Path
    environ: dict[str, str]
    packages: dict[str, Path] = field(default_factory=dict)

    @property
    def root(self) -> Path:
        return self.place / "root"

    @property
    def ascend(self) -> Path:
        return self.place / ASCEND

    @property
    def home(self) -> Path:
        return self.place / HOME

    @property
    def driver(self) -> Path:
        return self.place / DRIVER

    @property
    def torch(self) -> Path:
        return self.place / TORCH

    @property
    def npu(self) -> Path:
        return self.place / NPU

    def compile(self, where: str, source: str, needed: Sequence[str] = ()) -> Path:
        """Compile a library in the place of another, or a new one."""
        compile_library(self.place / where, source, [self.place / one for one in needed])
        return self.place / where

    def unset(self, *names: str) -> None:
        for name in names:
            del self.environ[name]

    def asked(self, *, wanted: Recipe | None = None) -> Asked:
        """Return what a look at this machine starts from."""
        return Asked(
            environ=self.environ, cwd=self.place, interpreter=own_interpreter(), packages=self.packages, project=None,
            recipe="sample", wanted=wanted, root=self.root,
        )  # fmt: skip

    def look(self, examine: Callable[[Asked], list[Observation]], **asked: Recipe) -> list[tuple[str, str, str, str]]:
        """Return what an examination sees here as plain tuples."""
        return [(one.grade, one.name, one.seen, one.do) for one in examine(self.asked(**asked))]

    def faults(self, examine: Callable[[Asked], list[Observation]], **asked: Recipe) -> list[tuple[str, str, str, str]]:
        """Return what of it is not ok."""
        return [one for one in self.look(examine, **asked) if one[0] != "ok"]


@cache
def own_interpreter() -> Interpreter:
    return inspect_interpreter(Path(sys.executable), env=os.environ)


def wanting(env: Mapping[str, str] | None = None, cann: str | None = None) -> Recipe:
    """Return a recipe with that environment, for that CANN."""
    contract = Contract(python_tags=("cp311",), platforms=("manylinux_2_28_x86_64",), torch="2.13.0", cann=cann)
    return Recipe(
        name="sample", description="", contract=contract, components=(), env=dict(env or {}), checks=(), files=()
    )


def plant_machine(place: Path, factory: pytest.TempPathFactory) -> Machine:
    """Plant a healthy machine with two NPUs in a folder, for one test to spoil."""
    shutil.copytree(_made_once(factory), place, symlinks=True, dirs_exist_ok=True)
    home = place / HOME
    caches = {name: place / "cache" / name.lower() for name in
              ("TORCH_EXTENSIONS_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")}  # fmt: skip
    for folder in caches.values():
        folder.mkdir(parents=True)
    environ = {
        "PATH": ":".join([*(str((place / one).parent) for one in COMPILERS), os.environ["PATH"]]),
        "HOME": str(place / "nobody"),
        "TOOLKIT_STORE": str(place / "store"),
        "TMPDIR": str(place),
        "ASCEND_HOME_PATH": str(home),
        "ASCEND_TOOLKIT_HOME": str(home),
        "ASCEND_OPP_PATH": str(home / "opp"),
        "LD_LIBRARY_PATH": f"{home}/lib64:{place / ASCEND}/nnal/atb/lib:{place / DRIVER}/lib64/driver",
        "PYTHONPATH": f"{place}/site:{home}/python/site-packages",
        "MAX_JOBS": "1",
        "TORCHINDUCTOR_NPU_BACKEND": "dvm",
        **{name: str(folder) for name, folder in caches.items()},
    }
    return Machine(place=place, environ=environ, packages={"torch": place / TORCH, "torch_npu": place / NPU})


_MADE: list[Path] = []


def _made_once(factory: pytest.TempPathFactory) -> Path:
    """Compile the libraries for the first test that asks."""
    if not _MADE:
        place = factory.mktemp("machine")
        for name, text in TEXTS.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text, encoding="utf-8")
        for name, source, needed in LIBRARIES:
            compile_library(place / name, source, [place / one for one in needed])
        for name in COMPILERS:
            (place / name).parent.mkdir(parents=True)
            (place / name).write_text("#!/bin/sh\necho version 1\n", encoding="utf-8")
            (place / name).chmod(0o755)
        (place / HOME).with_name("latest").symlink_to(VERSION)
        _MADE.append(place)
    return _MADE[0]


def compile_library(path: Path, source: str, needed: Sequence[Path] = ()) -> None:
    """Compile C to a library that needs others by their file names, as CANN's do."""
    path.parent.mkdir(parents=True, exist_ok=True)
    links = [word for one in needed for word in (f"-L{one.parent}", f"-l:{one.name}")]
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-nostdlib", "-xc", "-", "-o", path, ORIGIN, "-Wl,--no-as-needed", *links],
        input=source.encode(), check=True,
    )  # fmt: skip
