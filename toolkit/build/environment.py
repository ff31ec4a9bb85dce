"""The virtual environment that a build stands on: pinned wheels alone, made once by the target's interpreter.

An entry of the store names its own place (scripts do, in their first lines), so it is made for the name that it will
have and works only there.
"""

from __future__ import annotations

import csv
import io
import json
import logging
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from packaging.requirements import Requirement as ParsedRequirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from toolkit.artifacts import obtain_wheel_file
from toolkit.errors import BuildError, CommandError, ContractMismatchError, StorageError
from toolkit.files import remove_tree, sha256_bytes
from toolkit.model import Interpreter, Progress, Requirement, Target, make_key
from toolkit.process import Completed, compose_env, run
from toolkit.registry import PIP_SETTINGS, ask_side_by_side, require_pip
from toolkit.requirements import LOCK_ANEW, Distribution, marker_environment, trace_needs
from toolkit.store import Store
from toolkit.wheels.record import RECORD, parse_record, record_hash

log = logging.getLogger(__name__)

KIND = "build-env"
LOGIC_VERSION = "1"
"""Belongs to the key: changes whenever the same wheels would be installed otherwise than before."""

PROMPT = "toolkit-build"
SCRATCH = ".scratch"
ASK_LIMIT = 60.0

NO_SPACE = ("No space left on device", "Disk quota exceeded")
FREE_SPACE = "free some space, or choose another place with --store"

ITS_VERSION = "import sys; print('.'.join(map(str, sys.version_info[:3])))"
WHAT_IS_THERE = """
import importlib.metadata, json
print(json.dumps([[d.metadata["Name"], d.version, d.requires or []] for d in importlib.metadata.distributions()]))
"""


def obtain_environment(
    requirements: Sequence[Requirement], *, interpreter: Interpreter, target: Target, store: Store, offline: bool,
    env: Mapping[str, str], component: str, progress: Progress | None = None,
) -> Path:  # fmt: skip
    """Return a virtual environment in the store that holds these wheels and nothing else, pip neither.

    The interpreter's own packages are not seen in it. `progress` counts the bytes of all downloads together. Raises
    ContractMismatchError for an interpreter that the target is not for, BuildError where the environment cannot be
    made or is not complete, and what `obtain_wheel_file` raises.
    """
    _require_fit(interpreter, target)
    key = _digest_inputs(requirements, interpreter)
    found = store.find(KIND, key)
    if found is not None and not _is_alive(found, interpreter, env):
        log.warning("%s: the build environment %s has lost its interpreter; making it anew", component, found)
        store.discard(KIND, key, unless=lambda path: _is_alive(path, interpreter, env))

    def make(folder: Path) -> None:
        total = _Total(progress)

        def bring(pinned: Requirement) -> Path:
            return obtain_wheel_file(
                pinned, component=component, target=target, store=store, offline=offline, env=env,
                progress=total.part(pinned.file),
            )  # fmt: skip

        wheels = ask_side_by_side(bring, requirements)
        pins = {path: pinned.sha256 for path, pinned in zip(wheels, requirements, strict=True)}
        try:
            _fill(folder.absolute(), key, pins, requirements, interpreter, target, env)
        except (BuildError, StorageError) as fault:
            raise type(fault)(
                f"{component}: the build environment for {target} cannot be made: {fault.message}",
                hint=fault.hint,
                details=fault.details,
            ) from fault

    return store.obtain(KIND, key, make)


def _require_fit(interpreter: Interpreter, target: Target) -> None:
    if interpreter.python_tag == target.python_tag and target.platform in interpreter.platforms:
        return
    newest = interpreter.platforms[0] if interpreter.platforms else "no manylinux platform"
    raise ContractMismatchError(
        f"a build for {target} needs an interpreter of that kind, {interpreter.executable} is "
        f"{interpreter.python_tag} on {newest}",
        hint="name the interpreter that it is for with --python, on a machine that it is for",
    )


def _digest_inputs(requirements: Sequence[Requirement], interpreter: Interpreter) -> str:
    inputs = [
        ("logic", LOGIC_VERSION), ("interpreter", str(interpreter.executable)), ("version", interpreter.version),
        *((f"wheel {pinned.file}", pinned.sha256) for pinned in requirements),
    ]  # fmt: skip
    return make_key(inputs).digest


def _is_alive(entry: Path, interpreter: Interpreter, env: Mapping[str, str]) -> bool:
    """Whether an environment's link still leads to the Python that it was made with."""
    words: list[str | Path] = [entry / "bin" / "python", "-I", "-S", "-c", ITS_VERSION]
    try:
        done = run(words, cwd=entry, env=compose_env(env), timeout=ASK_LIMIT)
    except CommandError:
        return False
    return done.stdout.strip() == interpreter.version


class _Total:
    """Adds up what several downloads report; how many bytes there are in all is not known before each has begun."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._done: dict[str, int] = {}
        self._lock = threading.Lock()

    def part(self, name: str) -> Progress | None:
        """Return what one download reports to."""
        progress = self._progress
        if progress is None:
            return None

        def report(done: int, total: int | None) -> None:
            with self._lock:
                self._done[name] = done
                progress(sum(self._done.values()), None)

        return report


# --- making it -------------------------------------------------------------------------------------------------


def _fill(
    folder: Path, final_name: str, wheels: Mapping[Path, str], requirements: Sequence[Requirement],
    interpreter: Interpreter, target: Target, env: Mapping[str, str],
) -> None:  # fmt: skip
    """Make the environment in `folder`, which will have another name when it is whole; BuildError without component."""
    scratch = folder / SCRATCH
    scratch.mkdir()
    own = compose_env(env, {"HOME": str(scratch), "TMPDIR": str(scratch)})  # On the store's disk, which has the room.
    _run(
        [interpreter.executable, "-I", "-m", "venv", "--without-pip", "--symlinks", "--prompt", PROMPT, folder],
        scratch, own, f"{interpreter.executable} makes no virtual environment",
        hint="is its venv module installed? (on Debian and Ubuntu the package python3-venv)",
    )  # fmt: skip
    if wheels:
        require_pip(env)
        _install(folder, wheels, scratch, own)
    _name_final_place(folder, final_name)
    _require_complete(folder, requirements, interpreter, target, own)
    remove_tree(scratch)


def _install(folder: Path, wheels: Mapping[Path, str], scratch: Path, own: Mapping[str, str]) -> None:
    """Install wheels with the pip beside this interpreter; no settings of the user's reach it."""
    wanted = scratch / "wanted.txt"
    lines = (f"{path.absolute().as_uri()} --hash=sha256:{sha256}\n" for path, sha256 in wheels.items())
    wanted.write_text("".join(lines), encoding="utf-8")
    _run(
        [sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", "--no-index", "--no-deps",
         "--no-compile", "--no-cache-dir", "--no-warn-script-location", "--require-hashes", "--requirement", wanted],
        scratch, {**own, **PIP_SETTINGS, "PIP_CONFIG_FILE": os.devnull, "PIP_ROOT_USER_ACTION": "ignore",
         "PYTHONDONTWRITEBYTECODE": "1"},
        "pip does not install its wheels",
    )  # fmt: skip


def _run(argv: Sequence[str | Path], cwd: Path, env: Mapping[str, str], what: str, *, hint: str = "") -> Completed:
    try:
        return run(argv, cwd=cwd, env=env)
    except CommandError as fault:
        said = fault.details or (fault.message,)
        if full := next((line.strip() for line in said if any(words in line for words in NO_SPACE)), ""):
            raise StorageError(f"the disk is full: {full}", hint=FREE_SPACE, details=said) from fault
        raise BuildError(what, hint=hint, details=said) from fault


def _name_final_place(folder: Path, final_name: str) -> None:
    """Let scripts and settings name the place that the environment will have, and RECORD what they now are.

    The folder's name alone is replaced: it is like no other, and no script's way of quoting a path changes it.
    """
    changed: dict[str, tuple[str, int]] = {}
    site = _site_packages(folder)
    for path in [folder / "pyvenv.cfg", *sorted((folder / "bin").rglob("*"))]:
        if path.is_symlink() or not path.is_file():
            continue
        raw = path.read_bytes()
        if (written := raw.replace(folder.name.encode(), final_name.encode())) != raw:
            path.write_bytes(written)
            changed[os.path.relpath(path, site)] = (sha256_bytes(written), len(written))
    for record in site.glob(f"*.dist-info/{RECORD}"):
        _update_record(record, changed)


def _site_packages(folder: Path) -> Path:
    return next((folder / "lib").glob("python3.*/site-packages"))


def _update_record(record: Path, changed: Mapping[str, tuple[str, int]]) -> None:
    """Write the lines of changed files anew, and leave a RECORD without any as it is."""
    lines = parse_record(record.read_text(encoding="utf-8"))
    if not any(line.path in changed for line in lines):
        return
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for line in lines:
        if line.path in changed:
            digest, size = changed[line.path]
            writer.writerow([line.path, record_hash(digest), size])
        else:
            writer.writerow([line.path, line.hash, "" if line.size is None else line.size])
    record.write_text(out.getvalue(), encoding="utf-8")


# --- looking at it ---------------------------------------------------------------------------------------------


def _require_complete(
    folder: Path, requirements: Sequence[Requirement], interpreter: Interpreter, target: Target, own: Mapping[str, str]
) -> None:
    """Raise BuildError, with all that is wrong, where a wheel is not there or needs something that is not."""
    there = _what_is_there(folder, own)
    faults = [fault for pinned in requirements if (fault := _how_it_is_wrong(pinned, there))]
    markers = marker_environment(target, interpreter.version)
    roots = [ParsedRequirement(pinned.distribution) for pinned in requirements]
    if not faults:
        faults = [str(lack) for lack in trace_needs(roots, there, markers)[1]]
    if faults:
        raise BuildError("it is not complete", hint=f"add what lacks to `requires`; {LOCK_ANEW}", details=faults)


def _what_is_there(folder: Path, own: Mapping[str, str]) -> dict[str, Distribution]:
    done = _run(
        [folder / "bin" / "python", "-I", "-B", "-c", WHAT_IS_THERE], folder, own, "its interpreter does not start"
    )
    return {
        canonicalize_name(name): Distribution(version=version, needs=tuple(needs))
        for name, version, needs in json.loads(done.stdout)
    }


def _how_it_is_wrong(pinned: Requirement, there: Mapping[str, Distribution]) -> str:
    found = there.get(canonicalize_name(pinned.distribution))
    if found is None:
        return f"{pinned.distribution} {pinned.version} is not there"
    if Version(found.version) != Version(pinned.version):
        return f"{pinned.distribution} is there as {found.version}, expected {pinned.version}"
    return ""
