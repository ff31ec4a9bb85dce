from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from toolkit.errors import SysrootError
from toolkit.process import run
from toolkit.sysroot import (
    MARK,
    SYSROOT_VERSION,
    Sysroot,
    build_sysroot,
    compiler_identity,
    is_device,
    sysroot_variables,
)

LOAD = """
import ctypes, sys
ctypes.CDLL(sys.argv[2], ctypes.RTLD_GLOBAL)
library = ctypes.CDLL(sys.argv[1])
print(library.probe(), library.aclnnProbe(), library.aclrtOwn())
"""


def test_the_wheels_library_loads_on_the_sysroot_wherever_it_is_moved(
    site: Path, compiler_env: Mapping[str, str], tmp_path: Path
) -> None:
    build_sysroot(site=site, into=tmp_path / "made", env=compiler_env)
    root = (tmp_path / "made").rename(tmp_path / "elsewhere")
    (tmp_path / "torch.c").write_text('int other(void) __asm__("_ZN2at5otherEv"); int other(void) { return 0; }\n')
    command = ["cc", "-shared", "-fPIC", "-Wl,-soname,libtorch_cpu.so", "-o", "libtorch_cpu.so", "torch.c"]
    run(command, cwd=tmp_path, env=compiler_env)
    library = site / "torch_npu/lib/libtorch_npu.so"
    environment = {**compiler_env, **sysroot_variables(root)}
    shown = run([sys.executable, "-c", LOAD, library, tmp_path / "libtorch_cpu.so"], cwd=tmp_path, env=environment)
    assert shown.stdout == "0 0 7\n"


def test_it_has_the_shape_of_a_cann_home(sysroot: Sysroot) -> None:
    folders = ("lib64", "include/acl", "python/site-packages", "runtime", "compiler", "opp")
    assert all((sysroot.root / folder).is_dir() for folder in folders)
    assert (sysroot.root / "version.info").read_text().startswith("Version=")
    assert sorted(path.name for path in (sysroot.root / "lib64").iterdir()) == list(sysroot.libraries)


def test_its_mark_records_what_it_was_made_from(sysroot: Sysroot) -> None:
    facts = json.loads((sysroot.root / MARK).read_text())
    assert (facts["version"], facts["linked"], facts["looked_up"]) == (SYSROOT_VERSION, 2, 3)
    assert facts["compiler"] == sysroot.compiler


def test_the_same_wheel_gives_the_same_bytes(
    sysroot: Sysroot, site: Path, compiler_env: Mapping[str, str], tmp_path: Path
) -> None:
    again = build_sysroot(site=site, into=tmp_path / "again", env=compiler_env)
    assert _contents(again.root) == _contents(sysroot.root)
    assert not any(str(tmp_path).encode() in content for content in _contents(again.root).values())


def test_a_missing_compiler_is_named(site: Path, compiler_env: Mapping[str, str], tmp_path: Path) -> None:
    with pytest.raises(SysrootError, match="needs a C compiler, and 'no-such-cc' did not do"):
        build_sysroot(site=site, into=tmp_path / "made", env=compiler_env, compiler="no-such-cc")


def test_a_failing_compiler_is_quoted(site: Path, compiler_env: Mapping[str, str], tmp_path: Path) -> None:
    (tmp_path / "cc").write_text("#!/bin/sh\necho 'stdio.h: No such file or directory' >&2\nexit 1\n")
    (tmp_path / "cc").chmod(0o755)
    with pytest.raises(SysrootError) as caught:
        build_sysroot(
            site=site, into=tmp_path / "made", env=compiler_env, compiler=str(tmp_path / "cc"), log=tmp_path / "cc.log"
        )
    assert caught.value.details == ("stdio.h: No such file or directory",)
    assert "stdio.h" in (tmp_path / "cc.log").read_text()


def test_a_wheel_that_needs_nothing_of_cann_is_refused(compiler_env: Mapping[str, str], tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    with pytest.raises(SysrootError, match="needs anything of CANN"):
        build_sysroot(site=tmp_path / "site", into=tmp_path / "made", env=compiler_env)


def test_compiler_identity_names_version_and_machine(compiler_env: Mapping[str, str], tmp_path: Path) -> None:
    assert f" for {os.uname().machine}" in compiler_identity("cc", env=compiler_env, cwd=tmp_path)


def test_variables_point_into_the_sysroot() -> None:
    variables = sysroot_variables(Path("/s"), launch_log=Path("/l.jsonl"))
    assert variables == {
        "ASCEND_HOME_PATH": "/s",
        "ASCEND_TOOLKIT_HOME": "/s",
        "ASCEND_OPP_PATH": "/s/opp",
        "LD_LIBRARY_PATH": "/s/lib64",
        "TOOLKIT_LAUNCH_LOG": "/l.jsonl",
    }


def test_our_own_sysroot_is_no_device(sysroot: Sysroot) -> None:
    assert not is_device({"ASCEND_HOME_PATH": str(sysroot.root)})


def test_a_cann_home_is_a_device_only_with_its_library(tmp_path: Path) -> None:
    assert not is_device({})
    assert not is_device({"ASCEND_HOME_PATH": str(tmp_path)})
    (tmp_path / "lib64").mkdir()
    (tmp_path / "lib64/libascendcl.so").touch()
    assert is_device({"ASCEND_HOME_PATH": str(tmp_path)})


def _contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}
