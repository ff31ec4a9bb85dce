"""A tiny wheel that needs CANN, and the sysroot generated for it. Both are made once, with the machine's compiler."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from toolkit.process import compose_env, run
from toolkit.sysroot import Sysroot, build_sysroot

CANN = """
int aclrtProbe(void) { return 41; }
int mangled(void) __asm__("_ZN3atb5ProbeEv");
int mangled(void) { return 41; }
"""
EXTENSION = """
#include <string.h>
int aclrtProbe(void);
int mangled(void) __asm__("_ZN3atb5ProbeEv");
int other(void) __asm__("_ZN2at5otherEv");
static const char *const names[] = {
    "aclnnProbe", "aclnnProbeGetWorkspaceSize", "no aclrtSpoken", "Hcclless", "aclrtOwn"
};
int aclrtOwn(void) { return 7; }
int probe(void) { return aclrtProbe() + mangled(); }
int ask_torch(void) { return other(); }
unsigned long sizes(int which) { return strlen(names[which]); }
"""


@pytest.fixture(scope="session")
def compiler_env() -> Mapping[str, str]:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    return compose_env(os.environ)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, compiler_env: Mapping[str, str]) -> Path:
    """An unpacked wheel with one library that was linked to two of CANN's, one of torch's and libc."""
    root, build = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("build")
    (root / "torch_npu/lib").mkdir(parents=True)
    (root / "torch_npu/include/third_party/acl/inc/acl").mkdir(parents=True)
    (root / "torch_npu/include/third_party/acl/inc/acl/acl.h").write_text("/* acl */\n")
    (root / "torch_npu/__init__.py").write_text("")
    (build / "cann.c").write_text(CANN)
    (build / "torch.c").write_text('int other(void) __asm__("_ZN2at5otherEv"); int other(void) { return 0; }\n')
    (build / "extension.c").write_text(EXTENSION)
    for name, source in (("libascendcl.so", "cann.c"), ("libatb.so", "torch.c"), ("libtorch_cpu.so", "torch.c")):
        run(["cc", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", name, source], cwd=build, env=compiler_env)
    linked = ["-L.", "-Wl,--no-as-needed", "-lascendcl", "-latb", "-ltorch_cpu"]
    target = root / "torch_npu/lib/libtorch_npu.so"
    run(
        ["cc", "-shared", "-fPIC", "-Wl,-soname,libtorch_npu.so", "-o", target, "extension.c", *linked],
        cwd=build,
        env=compiler_env,
    )
    return root


@pytest.fixture(scope="session")
def sysroot(site: Path, compiler_env: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Sysroot:
    return build_sysroot(site=site, into=tmp_path_factory.mktemp("made") / "sysroot", env=compiler_env)
