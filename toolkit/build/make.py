"""Build one wheel from one source tree: compose, shut off, run, diagnose, examine."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from toolkit.build.cache import CompilerCache, counted_command, find_cache, put_behind_cache, read_cache_facts
from toolkit.build.command import build_command, list_wheels, step_reader, take_wheel, wheel_folder
from toolkit.build.compilers import compiler_identity, plain_linkers
from toolkit.build.contents import examine_contents
from toolkit.build.diagnose import diagnose
from toolkit.build.interpreter import inspect_python
from toolkit.build.native import NativeFacts, examine_wheel
from toolkit.build.sandbox import Sandbox, View, choose_sandbox, enter_sandbox, hidden_folder, seen_temporary
from toolkit.build.variables import asked_variables, compose_variables, named_paths, search_path
from toolkit.build.workroom import UMASK, BuildRecord, Workroom, open_workroom, restore_record, write_record
from toolkit.errors import BuildError, SourceError
from toolkit.files import PART_PREFIX
from toolkit.model import BuildFacts, BuildSpec, BuildTree, Progress, SandboxMode
from toolkit.process import describe_code, last_lines, run


@dataclass(frozen=True, kw_only=True, slots=True)
class BuiltWheel:
    """A wheel as its project's build made it; `findings` are what a person should know of it."""

    path: Path
    facts: BuildFacts
    findings: tuple[str, ...] = ()


def build_wheel(
    tree: BuildTree,
    spec: BuildSpec,
    *,
    environment: Path,
    work: Path,
    into: Path,
    jobs: int,
    sandbox: SandboxMode,
    environ: Mapping[str, str],
    import_name: str,
    compiler_cache: Path | None = None,
    on_progress: Progress | None = None,
    debug_command: str = "",
) -> BuiltWheel:
    """Build a tree that lies at `tree` in `work` with the interpreter of `environment`, and put the wheel into `into`.

    `work` must hold nothing else that matters. What the build printed is in its `logs/build.log`, and `shell_command`
    leads back into it, whatever the end; the caller removes it. Of the caller's `environ` only what the recipe passes
    on gets into the build. `compiler_cache` is a folder for ccache or sccache, used where the machine has one.
    `on_progress` hears how many of a build tool's steps are done. `debug_command` is what the hint of an error names as
    the way back.

    Raises BuildError with the first real cause, StorageError for a full disk, SandboxError where a sandbox is
    required and none works. The build's processes have ended then; after an interrupt too.
    """
    room = open_workroom(work)
    tree = replace(tree, root=tree.root.resolve())
    if tree.root != room.tree:
        raise ValueError(f"the tree lies at {tree.root}, expected {room.tree}")
    box = choose_sandbox(sandbox, path=environ.get("PATH", os.defpath))
    path = search_path(asked_variables(spec, environ))
    cache = find_cache(compiler_cache, path=path, contained=box.kind == "bubblewrap")
    record, view = _plan(tree, spec, room, box, environment, jobs, environ, cache)
    write_record(room, record)
    folder = wheel_folder(spec.backend, Path(record.cwd), room)
    before = list_wheels(folder)
    with _way_back(room, debug_command or f"toolkit debug shell --component {tree.base.component}"):
        _run_build(record, room, tree, partial(hidden_folder, box, view), on_progress)
        made = take_wheel(folder, before, within=room.root)
        native = _examine(made, tree, import_name)
    facts = BuildFacts(
        tree=tree.digest,
        sandbox=box.kind,
        compiler=compiler_identity(spec, environ, cached=cache is not None),
        jobs=jobs,
        libraries=native.libraries,
        symbol_versions=native.symbol_versions,
        cache=read_cache_facts(cache, room),
    )
    return BuiltWheel(path=_put(made, into), facts=facts, findings=native.findings)


def _plan(
    tree: BuildTree, spec: BuildSpec, room: Workroom, box: Sandbox, environment: Path, jobs: int,
    environ: Mapping[str, str], cache: CompilerCache | None,
) -> tuple[BuildRecord, View]:  # fmt: skip
    """Decide what is run, in which environment, and what it sees; the compilers of the room are made on the way."""
    python = inspect_python(environment)
    variables = compose_variables(
        spec, tree, room, environment=environment, temporary=seen_temporary(box, room.tmp), jobs=jobs, caller=environ
    )
    if cache is not None:
        variables |= put_behind_cache(cache, room, variables, tree.root, commands=python.commands)
    variables |= plain_linkers(variables, python.commands)
    home = environ.get("HOME")
    view = View(
        writable=(*room.writable, *([cache.folder] if cache else [])),
        readable=(
            room.root,
            *python.files,
            *named_paths(spec, environ),
            *([Path(cache.program)] if cache else []),
        ),
        temporary=room.tmp,
        home=Path(home) if home else None,
    )
    record = BuildRecord(
        component=tree.base.component,
        command=counted_command(cache, build_command(spec.backend, python, room), room),
        prefix=enter_sandbox(box, view),
        env=variables,
        cwd=str(tree.root / tree.base.subfolder),
    )
    return record, view


@contextlib.contextmanager
def _way_back(room: Workroom, debug_command: str) -> Iterator[None]:
    """Add to the hint of a BuildError where its log is, and how to get into the folder that it leaves."""
    try:
        yield
    except BuildError as fault:
        log = f"the log is {room.log}, the" if room.has_log else "the"
        kept = f"{log} folder is kept: `{debug_command}` opens a shell in it"
        fault.hint = "; ".join(part for part in (fault.hint, kept) if part)
        raise


def _run_build(
    record: BuildRecord, room: Workroom, tree: BuildTree, hidden: Callable[[Path], Path | None],
    on_progress: Progress | None,
) -> None:  # fmt: skip
    try:
        done = run(
            record.argv, cwd=Path(record.cwd), env=record.env, log_file=room.log, check=False, umask=UMASK,
            on_line=step_reader(on_progress),
        )  # fmt: skip
    finally:
        restore_record(room, record)
    if done.returncode == 0:
        return
    if not room.has_log:
        raise BuildError(
            f"{record.component} cannot be built: its build ended with {describe_code(done.returncode)}, and removed "
            f"or replaced its log {room.log}",
            details=last_lines(done.stdout, done.stderr),
        )
    found = diagnose(room.log, done.returncode, work=room.root, tree_root=tree.root, hidden=hidden)
    raise found.error(
        f"{record.component} cannot be built: {found.cause}",
        hint=found.hint,
        details=[*last_lines(done.stdout, done.stderr), *found.remarks],
    )


def _examine(wheel: Path, tree: BuildTree, import_name: str) -> NativeFacts:
    """Refuse what is no good wheel of the project; return its facts with all findings."""
    target = tree.base.target
    try:
        findings = examine_contents(wheel, target=target, import_name=import_name)
        native = examine_wheel(wheel, platform=target.platform)
    except SourceError as fault:
        raise BuildError(f"the build left no good wheel: {fault.message}", hint=fault.hint) from fault
    return replace(native, findings=(*findings, *native.findings))


def _put(wheel: Path, into: Path) -> Path:
    """Copy a wheel to its final place, under its name only when it is whole."""
    into.mkdir(parents=True, exist_ok=True)
    aside = into / f"{PART_PREFIX}{wheel.name}"
    try:
        shutil.copyfile(wheel, aside)
        return aside.replace(into / wheel.name)
    finally:
        aside.unlink(missing_ok=True)
