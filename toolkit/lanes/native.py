"""Building a patched source tree: once for what can change a compiled file, the Python files put in afterwards."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import cast

from toolkit import build, repack, series
from toolkit.errors import BuildError, UsageError
from toolkit.files import remove_tree, sha256_bytes, sha256_file, swap_symlink, temporary_directory
from toolkit.lanes.entries import obtain_stored
from toolkit.lanes.fetch import fetch_submodules, obtain_environment, prefix_of
from toolkit.lanes.patch import IsNative, PatchedSource, native_inputs
from toolkit.model import BuildTree, ChangedFile, FetchedBase, Key, PatchedTree, SourceTree, Target, Wheel, make_key
from toolkit.plan import Plan, PlannedComponent
from toolkit.sources import TreeSource
from toolkit.wheels.archive import WheelArchive, open_wheel
from toolkit.wheels.stored import StoredWheel, write_wheel_record
from toolkit.work import Means, Watcher

NATIVE = "native"
"""The store's kind of what was compiled: a wheel with upstream's own Python files in it."""

WORK = "build"
"""The store's kind of a build's folder: there while it runs, and kept where it failed."""

COMPILER_CACHE = "compiler-cache"

FAILED = "failed-"
"""Before a component's name: the link in a recipe's folder to a kept build."""


def build_source(
    part: PlannedComponent, patched: PatchedSource, plan: Plan, means: Means, watcher: Watcher, folder: Path
) -> StoredWheel:
    """Return the wheel of a patched source tree, written into `folder`.

    Where the native wheel does not carry a patched Python file as the tree has it, what the build makes of that file
    is not known, and the whole patched tree is built.
    """
    is_native = native_inputs(part)
    native = _obtain_native(part, patched, is_native, plan, means, watcher)
    if reason := _why_not_separable(native, patched, is_native, part):
        watcher.stage(prefix_of(part, plan), f"{reason}, so the whole patched tree is built")
        is_native = _everything
        native = _obtain_native(part, patched, is_native, plan, means, watcher)
    with temporary_directory("toolkit-") as scratch:
        tree = _python_tree(native, patched, is_native, part, plan.target, scratch)
        made = repack.repack_wheel(tree, key=part.key, import_name=part.component.import_name, into=folder)
    facts = replace(native.wheel.built, tree=patched.digest) if native.wheel.built else None
    return replace(made, wheel=replace(made.wheel, built=facts), findings=(*native.findings, *made.findings))


def kept_build(component: str | None, folder: Path) -> Path:
    """Return the kept folder of a recipe's failed build; `folder` is the recipe's.

    Without `component`, that of the only one that failed. Raises UsageError where there is none, or a choice.
    """
    failed = {link.name.removeprefix(FAILED): link for link in sorted(folder.glob(f"{FAILED}*")) if link.is_dir()}
    if component is None and len(failed) > 1:
        raise UsageError(f"several builds failed: {', '.join(failed)}", hint="choose one with --component")
    name = component or next(iter(failed), "")
    if name not in failed:
        raise UsageError(
            f"there is no failed build{f' of {component!r}' if component else ''} in {folder}",
            hint=f"there is one of {', '.join(failed)}" if failed else "a build's folder is kept only where it fails",
        )
    return failed[name].resolve()


# --- the native wheel ------------------------------------------------------------------------------------------


def _obtain_native(
    part: PlannedComponent, patched: PatchedSource, is_native: IsNative, plan: Plan, means: Means, watcher: Watcher
) -> StoredWheel:
    """Return the wheel of the tree with those changes alone that can change a compiled file."""
    source = cast(TreeSource, part.source)
    parts = tuple(series.native_changes(tree, is_native) for tree in patched.parts)
    _, native_digest = source.digest_tree(patched.base, parts, is_native=is_native)
    named = [("component", part.component.name), ("import_name", part.component.import_name), ("tree", native_digest)]
    key = make_key([*named, *part.build_inputs])

    def make(folder: Path) -> None:
        submodules = fetch_submodules(part, patched.base, patched.parts[0], plan, means, watcher)
        environment = obtain_environment(part, plan, means, watcher)
        with _work_folder(part, plan, means.store.root / WORK, key.digest) as work:
            watcher.stage(prefix_of(part, plan), "lay out the source tree")
            tree = source.check_out(patched.base, submodules, parts, work / "tree", is_native=is_native)
            built = _run_build(part, tree, key, environment, work, plan, means, watcher, folder)
        write_wheel_record(built, folder)

    if was_there := means.store.find(NATIVE, key.digest) is not None:
        watcher.stage(prefix_of(part, plan), "what is compiled is in the store, no compiler is needed")
    stored = obtain_stored(NATIVE, key.digest, make, means)
    # What the compiler cache did for an earlier build is nothing that this one can tell of.
    return replace(stored, wheel=_without_cache(stored.wheel)) if was_there else stored


def _without_cache(wheel: Wheel) -> Wheel:
    return replace(wheel, built=replace(wheel.built, cache={})) if wheel.built else wheel


@contextmanager
def _work_folder(part: PlannedComponent, plan: Plan, works: Path, key: str) -> Iterator[Path]:
    """Yield an empty folder to build in: gone afterwards, kept and remembered only where the build itself fails.

    Its name is its own: what a killed run has left behind may still be writing into the folder of that one.
    """
    link = _failure_link(part.component.name, plan.folder.path)
    _forget_failure(link, works)
    for left in works.glob(f"{key}-*"):
        remove_tree(left)
    work = works / f"{key}-{secrets.token_hex(4)}"
    work.mkdir(parents=True)
    try:
        yield work
    except BuildError:
        swap_symlink(link, str(work))
        raise
    except BaseException:
        remove_tree(work)
        raise
    remove_tree(work)


def _forget_failure(link: Path, works: Path) -> None:
    """Remove the kept folder of an earlier build of the same component, which nobody could find any more."""
    if link.is_symlink():
        kept = Path(os.readlink(link))
        if kept.parent == works:
            remove_tree(kept)
        link.unlink()


def _run_build(
    part: PlannedComponent, tree: BuildTree, key: Key, environment: Path, work: Path, plan: Plan, means: Means,
    watcher: Watcher, into: Path,
) -> StoredWheel:  # fmt: skip
    assert part.spec is not None
    jobs, why = build.choose_jobs(means.build_jobs)
    watcher.stage(prefix_of(part, plan), f"build the wheel with {why}")
    with watcher.steps(prefix_of(part, plan), "build") as progress:
        built = build.build_wheel(
            tree,
            part.spec,
            environment=environment,
            work=work,
            into=into,
            jobs=jobs,
            sandbox=means.sandbox,
            environ=means.environ,
            compiler_cache=means.store.obtain(COMPILER_CACHE, "ccache", lambda _folder: None),
            on_progress=progress,
            import_name=part.component.import_name,
            debug_command=f"toolkit debug shell --recipe {plan.recipe.name} --component {part.component.name}",
        )
    if cache := built.facts.cache:
        said = ", ".join(f"{count} {name}" for name, count in sorted(cache.items()))
        watcher.stage(prefix_of(part, plan), f"the compiler cache had {said}")
    with open_wheel(built.path) as archive:
        metadata = archive.metadata
    wheel = Wheel(
        component=part.component.name,
        distribution=metadata.name,
        import_name=part.component.import_name,
        version=metadata.version,
        path=built.path,
        sha256=sha256_file(built.path),
        key=key.digest,
        patches=(),
        built=replace(built.facts, native=key.digest),
    )
    return StoredWheel(wheel=wheel, key=key, applied=(), findings=built.findings)


def _failure_link(part: str, folder: Path) -> Path:
    return folder / f"{FAILED}{part}"


def _everything(_path: str) -> bool:
    return True


# --- the Python files in it ------------------------------------------------------------------------------------


def _why_not_separable(native: StoredWheel, patched: PatchedSource, is_native: IsNative, part: PlannedComponent) -> str:
    """Say which patched Python file cannot just be put into the native wheel, and why; nothing where all can."""
    with open_wheel(native.wheel.path) as archive:
        for tree in patched.parts:
            for change in series.python_changes(tree, is_native).changed:
                if reason := _why_not_put_in(change, tree.source, archive, part):
                    return reason
    return ""


def _why_not_put_in(change: ChangedFile, source: SourceTree, archive: WheelArchive, part: PlannedComponent) -> str:
    name = series.wheel_path(change.path, package=part.component.import_name)
    if change.path in source.members:
        if name not in archive.members:
            return f"the built wheel has no {name}"
        if sha256_bytes(archive.read(name)) != sha256_file(source.root / change.path):
            return f"the built wheel's {name} is not the tree's own"
        return ""
    above = f"{PurePosixPath(name).parent}/"
    if change.sha256 and not any(member.startswith(above) for member in archive.members):
        return f"the built wheel has nothing in {above}"
    return ""


def _python_tree(
    native: StoredWheel, patched: PatchedSource, is_native: IsNative, part: PlannedComponent, target: Target,
    scratch: Path,
) -> PatchedTree:  # fmt: skip
    """Return the native wheel as a base with the patched Python files in it, at the wheel's paths."""
    changed: list[ChangedFile] = []
    for tree in patched.parts:
        for change in series.python_changes(tree, is_native).changed:
            name = series.wheel_path(change.path, package=part.component.import_name)
            changed.append(replace(change, path=name))
            if change.sha256:
                (scratch / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(tree.root / change.path, scratch / name)
    wheel = native.wheel
    base = FetchedBase(
        component=part.component.name,
        kind=patched.base.kind,
        digest=wheel.sha256,
        path=wheel.path,
        file=wheel.path.name,
        distribution=wheel.distribution,
        version=wheel.version,
        target=target,
    )
    with open_wheel(wheel.path) as archive:
        members = frozenset(archive.members)
    return PatchedTree(
        source=SourceTree(base=base, root=scratch, members=members),
        series=part.series,
        root=scratch,
        applied=patched.applied,
        changed=tuple(changed),
    )
