"""Everything that is decided before anything is done: what a build is made from, and its keys.

No byte is downloaded and no tree is touched to make a plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from toolkit import build, inputs, lock, prove, recipe, series, sources, sysroot, target
from toolkit.current import RecipeFolder, recipe_folder
from toolkit.errors import ContractMismatchError, LockError, SeriesError
from toolkit.model import (
    BuildSpec,
    Component,
    Interpreter,
    Key,
    Lock,
    LockedBase,
    Overlay,
    Patch,
    Recipe,
    Runtime,
    Series,
    Target,
    make_key,
)
from toolkit.project import Project
from toolkit.trace import Trace, digest_variable, record_trace

Inputs = tuple[tuple[str, str], ...]

NO_SERIES = Series(name="", patches=())


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedComponent:
    """One component with all that its wheel is made from, and the key over it.

    `digest` names the base's artifact, `base_key` is the key of the same without patches. `spec` says how a source
    tree is built, None for a base that is a wheel already; `build_inputs` are all that decides what its compiler makes
    of the tree.
    """

    component: Component
    locked: LockedBase
    source: sources.Source
    digest: str
    series: Series
    key: Key
    base_key: Key
    spec: BuildSpec | None = None
    build_inputs: Inputs = ()

    def without_patches(self) -> PlannedComponent:
        """Return the same component as upstream has it: what the negative control loads."""
        bare = replace(self.component, accept_upstream=())
        return replace(self, component=bare, series=NO_SERIES, key=self.base_key)


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What a build will do. `can_load` says whether the interpreter can import the result on this machine.

    `absent` are the optional components that this machine does not have. `trace` is the state of all input files as
    the plan was made: what is edited during the build is not in it.
    """

    recipe: Recipe
    interpreter: Interpreter
    target: Target
    can_load: bool
    components: tuple[PlannedComponent, ...]
    absent: tuple[str, ...]
    key: Key
    folder: RecipeFolder
    trace: Trace

    @property
    def witnesses(self) -> tuple[str, ...]:
        """The witnesses that the series' patches name; they always run."""
        named = (patch.witness for part in self.components for patch in part.series.patches)
        return tuple(dict.fromkeys(named))

    def upstream_witnesses(self, built: Overlay) -> frozenset[str]:
        """Return the witnesses all of whose patches an overlay does without, as its base has them: green there too."""
        applied = {(package.component, name) for package in built.packages for name in package.patches}
        named = [(part.component, patch) for part in self.components for patch in part.series.patches]
        there = {
            patch.witness
            for component, patch in named
            if patch.name in component.accept_upstream and (component.name, patch.name) not in applied
        }
        return frozenset(
            there - {patch.witness for component, patch in named if (component.name, patch.name) in applied}
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
    for part in wanted.components:
        require_covered(project, part)
    return plan_recipe(
        wanted, read_lock(project, wanted), project=project, interpreter=interpreter, environ=environ,
        python_tag=python_tag, platform=platform,
    )  # fmt: skip


def plan_recipe(
    wanted: Recipe,
    locked: Lock,
    *,
    project: Project,
    interpreter: Path,
    environ: Mapping[str, str],
    python_tag: str | None = None,
    platform: str | None = None,
) -> Plan:
    """Plan a recipe that is at hand, its lock and its files too; `make_plan` says what the rest means."""
    found = target.inspect_interpreter(interpreter, env=environ)
    chosen = _choose_target(wanted, found, python_tag, platform)
    can_load = chosen.python_tag == found.python_tag and chosen.platform in found.platforms
    ground = _Ground(interpreter=found, target=chosen, can_load=can_load, environ=environ)
    planned = [_plan_component(part, locked, ground, project) for part in wanted.components]
    parts = tuple(part for part in planned if not sources.is_absent(part.digest))
    _require_known_witnesses(parts, project)
    specs = [part.spec for part in parts if part.spec]
    watched = [sources.watched_paths(part.source, part.locked, interpreter=found, env=environ) for part in planned]
    return Plan(
        recipe=wanted,
        interpreter=found,
        target=chosen,
        can_load=can_load,
        components=parts,
        absent=tuple(part.component.name for part in planned if part not in parts),
        key=make_key(
            [
                *inputs.overlay_inputs(wanted, chosen, {part.component.name: part.key for part in parts}),
                *((f"{part.component.name}/base", part.digest) for part in planned if part not in parts),
            ]
        ),
        folder=recipe_folder(project, wanted.name, other_target=None if can_load else str(chosen)),
        trace=record_trace(
            files=(
                *_input_files(wanted, locked, parts, project),
                *found.files,
                *(path for files, _ in watched for path in files),
                *(path for spec in specs for path in build.compiler_drivers(spec, environ).values()),
            ),
            folders=(
                *(path for _, folders in watched for path in folders),
                *(project.series_folder(part.series) for part in wanted.components if part.series),
                *sorted({project.verify, *(path.parent for path in _verify_files(project))}),
            ),
            links=[path for spec in specs for path in build.compiler_links(spec, environ)],
            variables={name: digest_variable(environ, name) for spec in specs for name in spec.pass_env},
        ),
    )


def read_recipe(project: Project, name: str) -> Recipe:
    """Read one recipe against everything that its names may refer to."""
    kinds = sources.available_sources()
    known = project.series_names()
    return recipe.load_recipe(
        name,
        folders=project.recipes,
        base_types={kind: source.Base for kind, source in kinds.items()},
        known_series=known,
        known_checks=list(prove.load_catalogue(project.verify)),
        diagnostic_series=[name for name in known if _is_diagnostic(project, name)],
    )


def read_series(project: Project, part: Component) -> Series:
    """Read a component's series; one that is taken as it is has an empty one."""
    if part.series is None:
        return NO_SERIES
    return series.load_series(project.series_folder(part.series), name=part.series)


def _is_diagnostic(project: Project, name: str) -> bool:
    try:
        return series.read_line(project.series_folder(name), name=name).diagnostic
    except SeriesError:  # It is reported where the series is taken; another recipe's series is nobody's matter here.
        return False


def require_covered(project: Project, part: Component) -> None:
    """Raise SeriesError where a component's series is not for its base."""
    if part.series is not None:
        series.require_covered(series.read_line(project.series_folder(part.series), name=part.series), part)


def witness_faults(patches: Iterable[Patch], project: Project) -> Iterator[tuple[Patch, str]]:
    """Find the patches whose witness is not in the catalogue of `verify/`, or has no module there."""
    known = {name: check for name, check in prove.load_catalogue(project.verify).items() if check.witness}
    for patch in patches:
        witness = known.get(patch.witness)
        if witness is None:
            yield patch, f"no witness {patch.witness!r} in {project.verify / prove.CATALOGUE}"
        elif not (module := _module_file(witness.module, project)).is_file():
            yield patch, f"witness {patch.witness!r} has no module at {module}"


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
            *prove.proof_inputs(project.verify, dict.fromkeys((*checks, *plan.witnesses))),
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


@dataclass(frozen=True, kw_only=True, slots=True)
class _Ground:
    """What every component is planned for."""

    interpreter: Interpreter
    target: Target
    can_load: bool
    environ: Mapping[str, str]


def _plan_component(part: Component, locked: Lock, ground: _Ground, project: Project) -> PlannedComponent:
    entry = locked.component(part.name)
    if entry is None:
        raise LockError(f"the lock has no component {part.name!r}", hint="make it anew: toolkit lock")
    source = sources.available_sources()[entry.base.kind]
    patches = read_series(project, part)
    spec = _build_spec(part, entry.base, source, ground)
    built = tuple(inputs.build_inputs(spec, ground.interpreter, ground.target, ground.environ)) if spec else ()
    digest = source.artifact_digest(entry.base, ground.target, interpreter=ground.interpreter, env=ground.environ)
    common = (*inputs.component_inputs(part, f"{entry.base.kind}:{digest}", ground.target), *built)
    return PlannedComponent(
        component=part,
        locked=entry.base,
        source=source,
        digest=digest,
        series=patches,
        key=make_key([*common, *inputs.series_inputs(part, patches)]),
        base_key=make_key([*common, *inputs.series_inputs(replace(part, accept_upstream=()), NO_SERIES)]),
        spec=spec,
        build_inputs=built,
    )


def _build_spec(part: Component, locked: LockedBase, source: sources.Source, ground: _Ground) -> BuildSpec | None:
    """Return how a source tree is built; ContractMismatchError where this machine is not the one to do it."""
    if source.FORM != "tree":
        return None
    if not ground.can_load:
        raise ContractMismatchError(
            f"{part.name} is built from source, which only the interpreter that it is for can do: {ground.target} "
            f"is asked for, {ground.interpreter.executable} is {ground.interpreter.python_tag}",
            hint="build there, or use a recipe whose bases are release wheels",
        )
    return cast(sources.TreeSource, source).build_spec(part.base, locked, ground.target)


def _require_known_witnesses(parts: tuple[PlannedComponent, ...], project: Project) -> None:
    """Raise SeriesError for a patch whose witness is not in the catalogue, or whose witness's module is not there."""
    faults = list(witness_faults([patch for part in parts for patch in part.series.patches], project))
    if faults:
        known = (name for name, check in prove.load_catalogue(project.verify).items() if check.witness)
        raise SeriesError(
            "a patch names a witness that verify/ does not have",
            details=[f"{patch.name}: {fault}" for patch, fault in faults],
            hint=f"write it, as docs/patches.md says, or name one of {', '.join(sorted(known))}",
        )


def _module_file(module: str, project: Project) -> Path:
    """Return the file of a module `verify.x.y`."""
    return project.verify.joinpath(*module.split(".")[1:]).with_suffix(".py")


def _input_files(wanted: Recipe, locked: Lock, parts: tuple[PlannedComponent, ...], project: Project) -> Iterator[Path]:
    yield from wanted.files
    yield locked.path
    for part in wanted.components:
        if part.series is not None:
            yield project.series_folder(part.series) / series.LINE_FILE
    yield from (patch.path for part in parts for patch in part.series.patches)
    yield from _verify_files(project)
    yield from inputs.own_sources()


def _verify_files(project: Project) -> list[Path]:
    """List what is staged for a proof."""
    found = (path for path in project.verify.rglob("*") if path.is_file())
    return sorted(path for path in found if "__pycache__" not in path.relative_to(project.verify).parts)
