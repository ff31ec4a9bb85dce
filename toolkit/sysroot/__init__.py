"""The host sysroot: a stand-in for CANN, generated from a torch_npu wheel, on which that very wheel loads.

    sysroot = build_sysroot(site=site, into=folder, env=env)
    env |= sysroot_variables(sysroot.root, launch_log=scratch / "launches.jsonl")

It has the shape of a CANN home and holds libraries by the names that the wheel needs. `behaviour.c` says what they do:
device memory is host memory, the device is an Ascend 910B3, kernels are recorded and not run. So import, lowering,
code generation and DVM's kernel construction are the wheel's own code, and numbers after a launch mean nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from toolkit.sysroot.compiler import compiler_identity

__all__ = [
    "SYSROOT_VERSION",
    "Sysroot",
    "build_sysroot",
    "compiler_identity",
    "is_device",
    "is_needed",
    "sysroot_variables",
]

MARK = "toolkit-sysroot.json"
"""The file that tells our own sysroot from a CANN home."""


def _digest_sources() -> str:
    digest = hashlib.sha256()
    sources = (path for path in Path(__file__).parent.iterdir() if path.suffix in (".c", ".py"))
    for path in sorted(sources):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


SYSROOT_VERSION: str = _digest_sources()
"""Changes with every change to how a sysroot is generated: the digest of this package's own sources."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sysroot:
    """A generated sysroot: where it is, the libraries that it stands in for, and how many names it answers to."""

    root: Path
    libraries: tuple[str, ...]
    linked: int
    looked_up: int
    compiler: str


def build_sysroot(
    *, site: Path, into: Path, env: Mapping[str, str], compiler: str = "cc", log: Path | None = None
) -> Sysroot:
    """Generate the sysroot for the wheel unpacked in `site` and return it; `into` must not exist yet.

    The wheel may be for another machine; the sysroot is for this one. Everything inside is relative, so the folder
    may be moved. The same wheel and compiler give the same bytes. `log` keeps what the compiler prints.

    Raises SysrootError where `site` needs nothing of CANN, or where the compiler is missing or fails.
    """
    from toolkit.sysroot.home import make_home
    from toolkit.sysroot.needs import read_needs

    needs = read_needs(site)
    make_home(needs, site=site, into=into, env=env, compiler=compiler, log=log)
    sysroot = Sysroot(
        root=into,
        libraries=needs.libraries,
        linked=len(needs.linked),
        looked_up=len(needs.looked_up),
        compiler=compiler_identity(compiler, env=env, cwd=into),
    )
    (into / MARK).write_text(_describe(sysroot), encoding="utf-8")
    return sysroot


def is_needed(site: Path) -> bool:
    """Tell whether the wheels unpacked in `site` need anything of CANN: a pure-Python component needs no sysroot."""
    from toolkit.sysroot.needs import read_needs

    return bool(read_needs(site).linked)


def sysroot_variables(root: Path, *, launch_log: Path | None = None) -> dict[str, str]:
    """Return the variables that make a process use the sysroot; with `launch_log`, where it records launches."""
    variables = {
        "ASCEND_HOME_PATH": str(root),
        "ASCEND_TOOLKIT_HOME": str(root),
        "ASCEND_OPP_PATH": str(root / "opp"),
        "LD_LIBRARY_PATH": str(root / "lib64"),
    }
    return variables if launch_log is None else {**variables, "TOOLKIT_LAUNCH_LOG": str(launch_log)}


def is_device(environ: Mapping[str, str]) -> bool:
    """Tell whether `environ` points to a real CANN home: one with its runtime library and without our mark."""
    home = environ.get("ASCEND_HOME_PATH")
    if not home or (Path(home) / MARK).exists():
        return False
    return any((Path(home) / folder / "libascendcl.so").exists() for folder in ("lib64", "runtime/lib64"))


def _describe(sysroot: Sysroot) -> str:
    facts = {
        "version": SYSROOT_VERSION,
        "libraries": list(sysroot.libraries),
        "linked": sysroot.linked,
        "looked_up": sysroot.looked_up,
        "compiler": sysroot.compiler,
    }
    return json.dumps(facts, indent=2) + "\n"
