"""importlib.metadata, torch's backend entry point and the package itself give the overlay's version."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from verify import host
from verify.contract import Outcome, Package, Request, failed_with, passed
from verify.loaded import is_below

BACKEND_GROUP = "torch.backends"
BACKEND_NAME = "torch_npu"


def check(request: Request) -> Outcome:
    """Compare what each source says of each package's version, and name all that differ at once."""
    host.prepare(request.runtime)
    faults = [
        fault
        for package in request.packages
        for fault in (*_check_metadata(package, request.site), *_check_module(package))
    ]
    backend = next((package for package in request.packages if package.import_name == BACKEND_NAME), None)
    if backend is not None:
        faults.extend(_check_entry_point(backend, request.site))
    versions = {package.distribution: package.version for package in request.packages}
    if faults:
        return failed_with(faults, expected=versions)
    return passed(", ".join(f"{name} {version}" for name, version in versions.items()))


def _check_metadata(package: Package, site: Path) -> Iterator[str]:
    found = _folders_of(package.distribution)
    if not found:
        yield f"no distribution {package.distribution} is found, expected {package.version} in {site}"
        return
    first, version = found[0]
    if not is_below(first, site):
        yield f"distribution {package.distribution} {version} is found in {first}, expected in {site}"
    elif version != package.version:
        yield f"distribution {package.distribution} has version {version}, expected {package.version}"
    own = [version for folder, version in found if is_below(folder, site)]
    if len(own) > 1:
        yield f"{site} holds {len(own)} dist-infos of {package.distribution} ({', '.join(own)}), expected one"


def _folders_of(name: str) -> list[tuple[Path, str]]:
    """Return the folder and version of every distribution of that name, in the order of sys.path."""
    entries = list(dict.fromkeys(os.path.realpath(entry or os.curdir) for entry in sys.path))
    return [
        (Path(str(distribution.locate_file(""))), str(distribution.version))
        for distribution in metadata.distributions(name=name, path=entries)
    ]


def _check_entry_point(package: Package, site: Path) -> Iterator[str]:
    entries = [entry for entry in metadata.entry_points(group=BACKEND_GROUP) if entry.name == BACKEND_NAME]
    if not entries:
        yield f"no entry point {BACKEND_NAME} in group {BACKEND_GROUP}: torch would not load the backend by itself"
    for entry in entries:
        owner = entry.dist
        if owner is None or not is_below(Path(str(owner.locate_file(""))), site) or owner.version != package.version:
            said = "no distribution" if owner is None else f"{owner.metadata['Name']} {owner.version}"
            place = "" if owner is None else f" in {owner.locate_file('')}"
            yield f"entry point {BACKEND_GROUP}: {BACKEND_NAME} is {said}'s{place}, expected {package.version}'s"


def _check_module(package: Package) -> Iterator[str]:
    said = getattr(importlib.import_module(package.import_name), "__version__", None)
    if said is not None and str(said) != package.version:
        yield f"{package.import_name}.__version__ is {said}, expected {package.version}"
