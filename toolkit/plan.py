"""Everything that is decided before anything is done: what a build is made from, and its keys.

No byte is downloaded and no tree is touched to make a plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from toolkit import lock, overlay, prove, recipe, repack, series, sources, sysroot, target
from toolkit.current import RecipeFolder, recipe_folder
from toolkit.errors import ContractMismatchError, LockError, SeriesError
from toolkit.files import sha256_file
from toolkit.model import (
    Component,
    Interpreter,
    Key,
    Lock,
    LockedBase,
    Recipe,
    Runtime,
    Series,
    Target,
    make_key,
)
from toolkit.project import Project
from toolkit.trace import Trace, record_trace


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedComponent:
    """One component with all that its wheel is made from, and the key over it."""

    component: Component
    locked: LockedBase
    source: sources.Source
    series: Series
    key: Key


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What a build will do. `can_load` says whether the interpreter can import the result on this machine.

    `trace` is the state of all input files as the plan was made: what is edited during the build is not in it.
    """

    recipe: Recipe
    interpreter: Interpreter
    target: Target
    can_load: bool
    components: tuple[PlannedComponent, ...]
    key: Key
    folder: RecipeFolder
    trace: Trace

    @property
    def witnesses(self) -> tuple[str, ...]:
        """The witnesses that the series' patches name; they always run."""
        named = (patch.witness for part in self.components for patch in part.series.patches)
        return tuple(dict.fromkeys(named))

    @property
    def upstream_witnesses(self) -> frozenset[str]:
        """The witnesses of the patches whose change the recipe accepts as there already: green on the base too."""
        return frozenset(
            patch.witness
            for part in self.components
            for patch in part.series.patches
            if patch.name in part.component.accept_upstream
        )


def make_plan(
    *,
    project: Project,
    name: str,
    interpreter: Path,
    environ: Mapping[str, str],
    python_tag: str | None = None,
    platform: str | None = None,
) -> Plan:
    """Read the recipe, its lock and its series, look at the target, and key everything.

    `python_tag` and `platform` ask for a build that another machine will import; what is left out is the
    interpreter's own. Raises every kind of error that bad input can: recipe, lock, series, target, contract.
    """
    wanted = read_recipe(project, name)
    locked = read_lock(project, wanted)
    found = target.inspect_interpreter(interpreter, env=environ)
    chosen = _choose_target(wanted, found, python_tag, platform)
    can_load = chosen.python_tag == found.python_tag and chosen.platform in found.platforms
    parts = tuple(_plan_component(part, locked, chosen, project) for part in wanted.components)
    _require_known_witnesses(parts, project)
    return Plan(
        recipe=wanted,
        interpreter=found,
        target=chosen,
        can_load=can_load,
        components=parts,
        key=make_key(_overlay_inputs(wanted, chosen, parts)),
        folder=recipe_folder(project, wanted.name, other_target=None if can_load else str(chosen)),
        trace=record_trace(
            files=(*_input_files(wanted, locked, parts, project), *found.files),
            folders=(
                *(project.series_folder(part.series) for part in wanted.components if part.series),
                *sorted({project.verify, *(path.parent for path in _verify_files(project))}),
            ),
        ),
    )


def read_recipe(project: Project, name: str) -> Recipe:
    """Read one recipe against everything that its names may refer to."""
    kinds = sources.available_sources()
    return recipe.load_recipe(
        name,
        folders=project.recipes,
        base_types={kind: source.Base for kind, source in kinds.items()},
        known_series=project.series_names(),
        known_checks=list(prove.load_catalogue(project.verify)),
    )


def read_series(project: Project, part: Component) -> Series:
    """Read a component's series; one that is taken as it is has an empty one."""
    if part.series is None:
        return Series(name="", patches=())
    return series.load_series(project.series_folder(part.series), name=part.series)


def read_lock(project: Project, wanted: Recipe) -> Lock:
    """Read a recipe's lock; LockError where it is missing or was made for other bases."""
    found = load_lock(project, wanted)
    lock.require_current(found, wanted)
    return found


def load_lock(project: Project, wanted: Recipe) -> Lock:
    """Read the lock beside a recipe, whether it fits or not; LockError where there is none that can be read."""
    kinds = sources.available_sources()
    return lock.read_lock(
        project.lock_path(wanted.files[0]), locked_types={kind: source.Locked for kind, source in kinds.items()}
    )


def standing_lock(project: Project, wanted: Recipe) -> Lock | None:
    """Read a recipe's lock if there is one that fits it."""
    try:
        return read_lock(project, wanted)
    except LockError:
        return None


def proof_key(plan: Plan, project: Project, runtime: Runtime, checks: tuple[str, ...]) -> Key:
    """Key a proof: what is proven, by which checks, in which interpreter, on which kind of machine."""
    return make_key(
        [
            ("overlay", plan.key.digest),
            ("runtime", runtime),
            ("checks", ",".join((*checks, *plan.witnesses))),
            ("python", plan.interpreter.version),
            ("torch", plan.interpreter.torch or "none"),
            *([("logic/sysroot", sysroot.SYSROOT_VERSION)] if runtime == "host" else []),
            *((f"verify/{path.relative_to(project.verify)}", sha256_file(path)) for path in _verify_files(project)),
        ]
    )


def _choose_target(wanted: Recipe, found: Interpreter, python_tag: str | None, platform: str | None) -> Target:
    if python_tag is None and platform is None:
        return target.choose_target(found, wanted.contract)
    tags, platforms = wanted.contract.python_tags, wanted.contract.platforms
    tag = python_tag or found.python_tag
    place = platform or next((name for name in platforms if name in found.platforms), platforms[0])
    if tag not in tags or place not in platforms:
        raise ContractMismatchError(
            f"recipe {wanted.name!r} is not for {tag}-{place}",
            hint=f"it is for {', '.join(tags)} on {', '.join(platforms)}",
        )
    return Target(python_tag=tag, platform=place)


def _plan_component(part: Component, locked: Lock, chosen: Target, project: Project) -> PlannedComponent:
    entry = locked.component(part.name)
    if entry is None:
        raise LockError(f"the lock has no component {part.name!r}", hint="make it anew: toolkit lock")
    source = sources.available_sources()[entry.base.kind]
    patches = read_series(project, part)
    digest = source.artifact_digest(entry.base, chosen)
    return PlannedComponent(
        component=part,
        locked=entry.base,
        source=source,
        series=patches,
        key=make_key(_wheel_inputs(part, entry.base.kind, digest, chosen, patches)),
    )


def _wheel_inputs(
    part: Component, kind: str, digest: str, chosen: Target, patches: Series
) -> Iterator[tuple[str, str]]:
    yield "component", part.name
    yield "import_name", part.import_name
    yield "base", f"{kind}:{digest}"
    yield "python_tag", chosen.python_tag
    yield "platform", chosen.platform
    yield "logic/repack", repack.LOGIC_VERSION
    yield from series.series_key_inputs(patches)
    for name in part.accept_upstream:
        yield f"accept_upstream/{name}", "true"


def _overlay_inputs(wanted: Recipe, chosen: Target, parts: tuple[PlannedComponent, ...]) -> Iterator[tuple[str, str]]:
    for part in parts:
        for name, value in part.key.inputs:
            yield f"{part.component.name}/{name}", value
    for name, value in wanted.env.items():
        yield f"env/{name}", value
    contract = wanted.contract
    yield "contract/torch", contract.torch
    yield "contract/cann", contract.cann or ""
    yield "contract/soc", ",".join(contract.soc)
    yield "contract/python", ",".join(contract.python_tags)
    yield "contract/platforms", ",".join(contract.platforms)
    yield "target", str(chosen)
    yield "logic/overlay", overlay.LOGIC_VERSION


def _require_known_witnesses(parts: tuple[PlannedComponent, ...], project: Project) -> None:
    """Raise SeriesError for a patch whose witness is not in the catalogue, or whose witness's module is not there."""
    known = {name: check for name, check in prove.load_catalogue(project.verify).items() if check.witness}
    faults = []
    for patch in (patch for part in parts for patch in part.series.patches):
        witness = known.get(patch.witness)
        if witness is None:
            faults.append(f"{patch.name}: no witness {patch.witness!r} in {project.verify / prove.CATALOGUE}")
        elif not (module := _module_file(witness.module, project)).is_file():
            faults.append(f"{patch.name}: witness {patch.witness!r} has no module at {module}")
    if faults:
        raise SeriesError(
            "a patch names a witness that verify/ does not have",
            details=faults,
            hint=f"write it, as docs/patch-authoring.md says, or name one of {', '.join(sorted(known))}",
        )


def _module_file(module: str, project: Project) -> Path:
    """Return the file of a module `verify.x.y`."""
    return project.verify.joinpath(*module.split(".")[1:]).with_suffix(".py")


def _input_files(wanted: Recipe, locked: Lock, parts: tuple[PlannedComponent, ...], project: Project) -> Iterator[Path]:
    yield from wanted.files
    yield locked.path
    for part in parts:
        yield from (patch.path for patch in part.series.patches)
    yield from _verify_files(project)
    yield from sorted(Path(__file__).parent.glob("**/*.py"))
    yield from sorted(Path(__file__).parent.glob("sysroot/*.c"))


def _verify_files(project: Project) -> list[Path]:
    """List what is staged for a proof."""
    found = (path for path in project.verify.rglob("*") if path.is_file())
    return sorted(path for path in found if "__pycache__" not in path.relative_to(project.verify).parts)
