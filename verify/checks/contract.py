"""The interpreter, the machine and torch are those that the overlay was built for."""

from __future__ import annotations

import importlib
import platform
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from verify import host
from verify.contract import Outcome, Request, failed, passed

LIBC_IN_TAG = re.compile(r"manylinux_(\d+)_(\d+)_(\w+)")


def check(request: Request) -> Outcome:
    """Compare every fact and name all that differ at once."""
    facts = {**describe_interpreter(), **host.prepare(request.runtime)}
    if request.runtime == "device":
        facts["cann"] = importlib.import_module("torch_npu.npu.utils").get_cann_version()
    differences = list(compare(facts, request.expect, on_device=request.runtime == "device"))
    if differences:
        return failed("; ".join(differences), facts=facts)
    return passed(f"{facts['python_tag']}, {facts['machine']}, torch {facts['torch']}", facts=facts)


def describe_interpreter() -> dict[str, Any]:
    """Return this interpreter's tag, machine and C library version."""
    short = {"cpython": "cp", "pypy": "pp"}.get(sys.implementation.name, sys.implementation.name)
    return {
        "python_tag": f"{short}{sys.version_info.major}{sys.version_info.minor}",
        "machine": platform.machine(),
        "libc": platform.libc_ver()[1],
    }


def compare(facts: Mapping[str, Any], expect: Mapping[str, Any], *, on_device: bool) -> Iterator[str]:
    """Yield a sentence for each fact that is not as expected.

    torch is compared by its public version, CANN by as many parts as are expected, and both CANN and the
    SoC only on a device: the host's are made up.
    """
    if facts["python_tag"] != expect["python_tag"]:
        yield f"Python is {facts['python_tag']}, expected {expect['python_tag']}"
    yield from _compare_platform(facts, expect["platform"])
    if _public(facts["torch"]) != _public(expect["torch"]):
        yield f"torch is {facts['torch']}, expected {expect['torch']}"
    if on_device:
        yield from _compare_device(facts, expect)


def _compare_platform(facts: Mapping[str, Any], tag: str) -> Iterator[str]:
    match = LIBC_IN_TAG.fullmatch(tag)
    machine = match[3] if match else tag.partition("_")[2]
    if facts["machine"] != machine:
        yield f"the machine is {facts['machine']}, expected {machine}"
    if match and _numbers(facts["libc"]) < (int(match[1]), int(match[2])):
        yield f"glibc is {facts['libc'] or 'not there'}, expected {match[1]}.{match[2]} or later"


def _compare_device(facts: Mapping[str, Any], expect: Mapping[str, Any]) -> Iterator[str]:
    if facts["devices"] < 1:
        yield "no NPU is visible, expected at least 1"
    wanted = _parts(expect.get("cann") or "")
    if _parts(facts["cann"])[: len(wanted)] != wanted:
        yield f"CANN is {facts['cann'] or 'not there'}, expected {expect['cann']}"
    if expect.get("soc") and facts["soc"] not in expect["soc"]:
        yield f"the SoC is {facts['soc']}, expected {' or '.join(expect['soc'])}"


def _public(version: str) -> str:
    return version.partition("+")[0]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))


def _parts(version: str) -> list[str]:
    """Split a CANN version such as `9.1.0.B2` or `8.3.RC1.alpha002` where one part of it ends."""
    return re.split(r"[.-]", version.lower()) if version else []
