"""Every file of the site is the one that the manifest lists, and nothing was loaded that it does not list."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from verify import host
from verify.contract import Outcome, Request, broke, failed_with, passed
from verify.loaded import is_below, mapped_files, module_files

CHUNK = 1 << 20


def check(request: Request) -> Outcome:
    """Hash every listed file, look for others, and compare with what this process has loaded.

    Where files are wrong already, nothing is imported from among them.
    """
    if request.manifest is None:
        return broke(f"the {request.side} has no manifest")
    listed = {path: entry["sha256"] for path, entry in json.loads(request.manifest.read_bytes())["files"].items()}
    faults = compare_files(request.site, listed)
    if faults or not request.can_load:
        return _judge(faults, f"all {len(listed)} files are as the manifest lists them")
    host.prepare(request.runtime)
    for package in request.packages:
        importlib.import_module(package.import_name)
    loaded = sorted(loaded_files(request.site))
    unlisted = [f"{path} was loaded and is not listed" for path in loaded if path not in listed]
    return _judge(unlisted, f"all {len(listed)} files are as the manifest lists them, {len(loaded)} of them loaded")


def compare_files(site: Path, listed: dict[str, str]) -> list[str]:
    """Say of each file what is wrong with it: missing, changed, or not listed (compiled Python aside)."""
    present = set(_files_below(site))
    both = sorted(listed.keys() & present)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        actual = dict(zip(both, pool.map(lambda path: _sha256(site / path), both), strict=True))
    return sorted(
        [f"{path} is missing" for path in listed.keys() - present]
        + [f"{path} is not listed" for path in present - listed.keys()]
        + [f"{path} has sha256 {actual[path]}, listed {listed[path]}" for path in both if actual[path] != listed[path]]
    )


def loaded_files(site: Path) -> set[str]:
    """Return the paths below `site` of imported modules' files and of mapped files."""
    modules = (place for places in module_files().values() for place in places if not place.is_dir())
    root = os.path.realpath(site)
    return {
        os.path.relpath(os.path.realpath(path), root) for path in (*modules, *mapped_files()) if is_below(path, site)
    }


def _judge(faults: list[str], praise: str) -> Outcome:
    return failed_with(faults) if faults else passed(praise)


def _files_below(root: Path) -> Iterator[str]:
    """Yield the paths of files, and of links to folders, which would lead out of what is listed."""
    for folder, folders, files in os.walk(root):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in (*files, *links):
            yield os.path.relpath(os.path.join(folder, name), root)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as stream:
        while chunk := stream.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
