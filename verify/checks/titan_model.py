"""The DeepSeek-V4 model of torchtitan_npu comes from the overlay, and this is how a witness gets hold of it.

To import the package takes torch_npu, and what it does not declare: scipy, and torchtitan with half a gigabyte that
torchtitan needs. Where all of them are installed, the package is imported as a training run does it. Where one is not,
the model's own files are executed all the same, but not the `__init__.py` of the two packages around them, which
put patches into torchtitan; and what those files take from a package that is not there is an empty class while they are
imported: bases of other classes, annotations and a logger, none of which a witness reaches.

Either way each file of the package that was executed must lie below the site and be the one that the manifest lists.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import json
import sys
import types
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib import metadata
from itertools import accumulate
from pathlib import Path
from typing import Any

from verify import host
from verify.checks.origins import find_foreign_modules, find_shadows
from verify.contract import Outcome, Request, failed_with, passed
from verify.loaded import is_below, module_files

PACKAGE = "torchtitan_npu"
MODEL = f"{PACKAGE}.models.deepseek_v4.model.model"
AROUND = (PACKAGE, f"{PACKAGE}.models.deepseek_v4")
NEEDED = ("scipy", "torch_npu", "torchtitan")

TAKEN: Mapping[str, tuple[str, ...]] = {
    "scipy": (),
    "torchtitan.config": ("JobConfig",),
    "torchtitan.models.moe.moe": ("MoE", "TokenChoiceTopKRouter"),
    "torchtitan.models.utils": ("get_moe_model_nparams_and_flops",),
    "torchtitan.protocols.model": ("AttentionMasksType", "BaseModelArgs"),
    "torchtitan.protocols.train_spec": ("ModelProtocol",),
    "torchtitan.tools.logging": ("logger",),
}
"""What the model's files import, by module. Anything else is an ImportError where the package is not installed."""


def check(request: Request) -> Outcome:
    """Load the model and look where its files and its distribution lie, and what they hash to."""
    faults = find_shadows([PACKAGE], request.site)
    if faults:
        return failed_with(faults)
    model = load_model(request)
    faults = [*_check_files(request), *_check_distribution(request)]
    evidence = {**describe(model), "modules": sorted(module_files([PACKAGE]))}
    if faults:
        return failed_with(faults, **evidence)
    return passed(f"{evidence['file']}, imported {evidence['imported']}", **evidence)


def load_model(request: Request) -> Any:
    """Return the module of the model; raise ImportError where it, or another of its package, is not the site's."""
    host.prepare(request.runtime)
    missing = find_missing()
    if missing:
        _make_packages(AROUND)
    with stand_ins(missing):
        model = importlib.import_module(MODEL)
    if foreign := find_foreign_modules([PACKAGE], request.site):
        raise ImportError("; ".join(foreign))
    return model


def find_missing() -> list[str]:
    """Return which of the packages that importing torchtitan_npu takes are not installed."""
    return [name for name in NEEDED if importlib.util.find_spec(name) is None]


def describe(model: Any) -> dict[str, str]:
    """Return the model's file with its hash, and how it was imported, for the evidence."""
    missing = find_missing()
    how = f"by itself, without {', '.join(missing)}" if missing else "with its whole package"
    return {"file": str(model.__file__), "sha256": _sha256(Path(model.__file__)), "imported": how}


@contextlib.contextmanager
def stand_ins(missing: Collection[str], taken: Mapping[str, tuple[str, ...]] = TAKEN) -> Iterator[None]:
    """Let the names that the model's files take from these packages be empty classes, until the end of the block."""
    modules: dict[str, types.ModuleType] = {}
    for name in (name for name in taken if name.split(".")[0] in missing):
        for whole in accumulate(name.split("."), "{}.{}".format):
            modules.setdefault(whole, types.ModuleType(whole))
        for word in taken[name]:
            setattr(modules[name], word, type(word, (), {}))
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name in modules:
            del sys.modules[name]


def _make_packages(names: Sequence[str]) -> None:
    """Put packages where the import system finds them, without executing their `__init__.py`."""
    for name in names:
        spec = importlib.util.find_spec(name)
        if spec is None:
            raise ImportError(f"there is no package {name}")
        sys.modules[name] = importlib.util.module_from_spec(spec)


def _check_files(request: Request) -> Iterator[str]:
    """Say of each file of the package that was executed if it is not the manifest's; a base has none."""
    if request.manifest is None:
        return
    listed = json.loads(request.manifest.read_bytes())["files"]
    for places in module_files([PACKAGE]).values():
        for place in (place for place in places if place.is_file()):
            path = place.resolve().relative_to(request.site.resolve()).as_posix()
            expected = listed.get(path, {}).get("sha256", "none")
            if (actual := _sha256(place)) != expected:
                yield f"{path} has sha256 {actual}, listed {expected}"


def _check_distribution(request: Request) -> Iterator[str]:
    wanted = next(package.version for package in request.packages if package.import_name == PACKAGE)
    found = metadata.distribution(PACKAGE)
    place = Path(str(found.locate_file("")))
    if found.version != wanted or not is_below(place, request.site):
        yield f"distribution {PACKAGE} is {found.version} in {place}, expected {wanted} in {request.site}"


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
