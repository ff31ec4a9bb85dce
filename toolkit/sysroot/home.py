"""Lay out a CANN home: the places that torch_npu and the builders of JIT extensions look into."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from toolkit.errors import SysrootError
from toolkit.sysroot.compiler import compile_library
from toolkit.sysroot.needs import Needs
from toolkit.sysroot.stubs import write_stubs

RUNTIME = "libascendcl.so"
"""The library that holds the code; the others are linked to it, so that a name is found through any of them."""

BEHAVIOUR = Path(__file__).with_name("behaviour.c")
HEADERS = ("torch_npu/include/third_party/acl/inc", "torch_npu/include/third_party/hccl/inc")
# Builders of extensions refuse a home without runtime/ and compiler/; operator packages go to opp/.
FOLDERS = ("lib64", "include", "src", "runtime", "compiler", "opp", "python/site-packages")
# CANN as behaviour.c gives it to those who ask the runtime.
VERSION_FILES = {
    "version.info": "Version=9.1.0\nversion_dir=9.1.0\n",
    "version.cfg": "# version: 1.0\nruntime_running_version=[9.1.0:9.1.0]\n",
}


def make_home(
    needs: Needs, *, site: Path, into: Path, env: Mapping[str, str], compiler: str, log: Path | None = None
) -> None:
    """Make the folder `into` with everything that `needs` asks for. Raises SysrootError where that is nothing."""
    if not needs.linked:
        raise SysrootError(
            f"no library under {site} needs anything of CANN", hint="a host sysroot is made from a torch_npu wheel"
        )
    for folder in FOLDERS:
        (into / folder).mkdir(parents=True)
    for name, text in VERSION_FILES.items():
        (into / name).write_text(text, encoding="utf-8")
    _copy_headers(site, into / "include")
    _compile_libraries(needs, into=into, env=env, compiler=compiler, log=log)


def _copy_headers(site: Path, include: Path) -> None:
    """Copy the wheel's own ACL and HCCL headers, so that extensions compile against what the wheel was built with."""
    for folder in HEADERS:
        if (site / folder).is_dir():
            shutil.copytree(site / folder, include, dirs_exist_ok=True)


def _compile_libraries(
    needs: Needs, *, into: Path, env: Mapping[str, str], compiler: str, log: Path | None = None
) -> None:
    """Compile the runtime library, then the others as mere names for it; the sources stay in `src/` to be read."""
    shutil.copyfile(BEHAVIOUR, into / "src/behaviour.c")
    (into / "src/stubs.c").write_text(write_stubs((*needs.linked, *needs.looked_up)), encoding="utf-8")
    (into / "src/name.c").write_text("/* Nothing but a name: the code is in libascendcl.so. */\n", encoding="utf-8")
    compile_library(RUNTIME, ["src/behaviour.c", "src/stubs.c"], root=into, compiler=compiler, env=env, log=log)
    for name in needs.libraries:
        if name != RUNTIME:
            compile_library(name, ["src/name.c"], linked=[RUNTIME], root=into, compiler=compiler, env=env, log=log)
