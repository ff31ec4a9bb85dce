"""A recipe made up for one base: what has to be built to see whether a patch is needed there, and works.

Nothing is built here. What the made-up recipe sets and has beside the component comes from those of the project.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from email.parser import BytesHeaderParser
from pathlib import Path
from typing import Any

import msgspec
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from toolkit import plan
from toolkit.errors import ToolkitError
from toolkit.model import Component, Contract, Interpreter, Lock, LockedComponent, Recipe
from toolkit.recipe import recipe_names
from toolkit.series import LINE_FILE
from toolkit.sources import git, installed, wheel
from toolkit.upkeep.matrix import Column
from toolkit.upkeep.releases import find_release
from toolkit.upkeep.words import Installed, Ref, Release
from toolkit.wheels.archive import open_wheel
from toolkit.work import Means

COMPILED = "it would have to be compiled from source; a recipe's `toolkit build` and `toolkit verify` prove it there"


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """A recipe with its lock, both in memory alone, and the interpreter that can load what it builds."""

    recipe: Recipe
    lock: Lock
    interpreter: Interpreter


class Unfit(Exception):  # noqa: N818 - an answer, not an error: it says why there is no trial
    """No trial of a base can be made, or none with this interpreter."""


def make_trial(
    column: Column, *, series: str, bare: bool, accept: Sequence[str], interpreters: Sequence[Interpreter], means: Means
) -> Trial:
    """Make a recipe of one base with a series, or `bare` for the base alone, for the first interpreter that fits it.

    Environment and neighbours are those of the project's recipe for that series, the nearest to this base; a neighbour
    is taken as its release is, without patches. `accept` are the patches that the base has already. Raises Unfit with
    the reason where no interpreter fits.
    """
    recipes = list(_readable(means))
    model = _nearest(recipes, series, column)
    torch = _torch_of(column, interpreters[0], means)
    whys: list[str] = []
    for python in interpreters:
        try:
            _require_torch(python, torch, interpreters)
            return _make(column, series, bare, accept, python, model, recipes, means)
        except Unfit as unfit:
            whys.append(str(unfit))
    raise Unfit("; ".join(dict.fromkeys(whys)))


def public_torch(python: Interpreter) -> str:
    """Return an interpreter's torch without its local part, empty where it has none."""
    return (python.torch or "").partition("+")[0]


def _readable(means: Means) -> Iterator[Recipe]:
    for name in recipe_names(means.project.recipes):
        try:
            yield plan.read_recipe(means.project, name)
        except ToolkitError:  # Whoever builds it is told; here another has to do.
            continue


def _nearest(recipes: Sequence[Recipe], series: str, column: Column) -> Recipe | None:
    """Return the recipe that takes the series on this base, else one that takes it at all; the smallest of several."""
    using = [(recipe, part) for recipe in recipes for part in recipe.components if part.series == series]
    ranked = sorted(using, key=lambda pair: (pair[1].base.coverage != column.coverage, len(pair[0].components)))
    return ranked[0][0] if ranked else None


# --- the interpreter -------------------------------------------------------------------------------------------


def _torch_of(column: Column, python: Interpreter, means: Means) -> SpecifierSet | None:
    """Return which torch a release asks for, None for one that asks for none or is no release."""
    if not isinstance(column.word, Release):
        return None
    locked, chosen, _ = find_release(column.word, component=column.component, means=means, interpreter=python)
    base = wheel.fetch(
        locked, component=column.component, target=chosen, store=means.store, offline=means.offline, env=means.environ
    )
    with open_wheel(base.path) as opened:
        headers = BytesHeaderParser().parsebytes(opened.read(f"{opened.dist_info}/METADATA"))
    needs = (Requirement(str(text)) for text in headers.get_all("Requires-Dist", []))
    return next((need.specifier for need in needs if need.name == "torch" and need.marker is None), None)


def _require_torch(python: Interpreter, wanted: SpecifierSet | None, interpreters: Sequence[Interpreter]) -> None:
    if wanted is None:
        return
    if not python.torch or not wanted.contains(public_torch(python), prereleases=True):
        there = ", ".join(dict.fromkeys(public_torch(one) or "none" for one in interpreters))
        has = "the interpreter has" if len(interpreters) == 1 else "the interpreters have"
        raise Unfit(f"needs torch {_plain(wanted)}, {has} {there}")


def _plain(wanted: SpecifierSet) -> str:
    return str(wanted).removeprefix("==").removesuffix(".*")


# --- the recipe ------------------------------------------------------------------------------------------------


def _make(
    column: Column, series: str, bare: bool, accept: Sequence[str], python: Interpreter, model: Recipe | None,
    recipes: Sequence[Recipe], means: Means,
) -> Trial:  # fmt: skip
    contract = _contract(python, model)
    base, locked = _base(column, contract, python, recipes, means)
    known = next((part for one in recipes for part in one.components if part.name == column.component), None)
    own = Component(
        name=column.component, import_name=known.import_name if known else column.component, base=base,
        series=None if bare else series, accept_upstream=() if bare else tuple(accept),
    )  # fmt: skip
    neighbours = [
        _neighbour(part.name, contract, recipes, means)
        for part in (model.components if model else ())
        if part.name != column.component
    ]
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{series}-on-{column.name}").strip("-")
    made_from = means.project.series_folder(series) / LINE_FILE
    recipe = Recipe(
        name=name, description=f"{series} on {column.coverage}", contract=contract,
        components=(own, *(part for part, _ in neighbours)), env=model.env if model else {}, checks=(),
        files=(made_from,),
    )  # fmt: skip
    entries = (LockedComponent(name=own.name, base=locked), *(entry for _, entry in neighbours))
    return Trial(recipe=recipe, lock=Lock(recipe=name, components=entries, path=made_from), interpreter=python)


def _contract(python: Interpreter, model: Recipe | None) -> Contract:
    usual = model.contract.platforms if model else ()
    platform = next((name for name in usual if name in python.platforms), python.platforms[0])
    torch = public_torch(python) or (model.contract.torch if model else "")
    return Contract(python_tags=(python.python_tag,), platforms=(platform,), torch=torch)


def _base(
    column: Column, contract: Contract, python: Interpreter, recipes: Sequence[Recipe], means: Means
) -> tuple[Any, Any]:
    """Return a base as a recipe and a lock have it."""
    word = column.word
    if isinstance(word, Release):
        asked = replace(python, platforms=contract.platforms)
        found, _, remark = find_release(word, component=column.component, means=means, interpreter=asked)
        if remark:
            raise Unfit(f"there is no wheel of {word} for {contract.targets[0]}")
        return wheel.Base(kind="wheel", distribution=word.distribution, version=word.version), found
    if isinstance(word, Installed):
        here = installed.Locked(package=word.package, version=word.version, optional=False)
        return installed.Base(kind="installed", package=word.package, version=word.version), here
    urls = (_address(word.url),) if isinstance(word, Ref) else ()
    return _commit(column, urls, contract, recipes, means)


def _commit(
    column: Column, urls: tuple[str, ...], contract: Contract, recipes: Sequence[Recipe], means: Means
) -> tuple[git.Base, git.Locked]:
    """Take how a commit is built, and with what, from a recipe that builds another of that component."""
    target = contract.targets[0]
    for recipe, part in ((one, part) for one in recipes for part in one.components if part.name == column.component):
        entry = _locked(recipe, part.name, means)
        if isinstance(part.base, git.Base) and isinstance(entry, git.Locked) and entry.covers(target):
            if any(Requirement(text).name == "torch" for text in part.base.build.requires):
                raise Unfit(COMPILED)
            changes = {"commit": column.coverage.removeprefix("git:"), "urls": urls or part.base.urls}
            return msgspec.structs.replace(part.base, **changes, branch=None), msgspec.structs.replace(entry, **changes)
    raise Unfit(f"no recipe says how {column.component} is built from source for {target}")


def _address(url: str) -> str:
    return Path(url).absolute().as_uri() if "://" not in url and Path(url).is_dir() else url


def _neighbour(
    name: str, contract: Contract, recipes: Sequence[Recipe], means: Means
) -> tuple[Component, LockedComponent]:  # fmt: skip
    """Return a component that has to be beside the one in question: the release that some recipe has for that torch."""
    target = contract.targets[0]
    for recipe, part in ((one, part) for one in recipes for part in one.components if part.name == name):
        entry = _locked(recipe, name, means)
        if recipe.contract.torch == contract.torch and isinstance(entry, wheel.Locked) and entry.covers(target):
            return replace(part, series=None, accept_upstream=()), LockedComponent(name=name, base=entry)
    raise Unfit(f"no recipe has a release of {name} for torch {contract.torch} and {target}, which has to be beside it")


def _locked(recipe: Recipe, component: str, means: Means) -> Any:
    try:
        found = plan.read_lock(means.project, recipe).component(component)
    except ToolkitError:  # Whoever builds by it is told; here another recipe has to do.
        return None
    return found.base if found else None
