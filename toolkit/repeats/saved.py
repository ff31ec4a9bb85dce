"""Take what each run saves out of the next one's way, and have the target interpreter read it."""

from __future__ import annotations

import glob
import logging
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from toolkit.errors import CommandError, TargetError, UsageError
from toolkit.files import temporary_directory
from toolkit.process import compose_env, run

log = logging.getLogger(__name__)

FILES = "files"


class SavedTensor(msgspec.Struct, frozen=True, kw_only=True):
    """One tensor of one run, as verify/saved_tensors.py tells it."""

    file: str
    name: str
    dtype: str
    shape: list[int]
    sha256: str

    @property
    def full_name(self) -> str:
        """The file's name, with the tensor's where the file holds several."""
        return f"{self.file}: {self.name}" if self.name else self.file


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """What a run has saved that is not compared."""

    file: str
    name: str
    why: str


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """How far a tensor of a run is from that of the first run that has it; null where that cannot be measured."""

    file: str
    name: str
    run: int
    against: int
    elements: int
    differing: int | None
    maximum_absolute_error: float | None


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A saved file that cannot be read."""

    run: int
    file: str
    why: str


class RunTold(msgspec.Struct, frozen=True, kw_only=True):
    """What one run has saved."""

    tensors: list[SavedTensor]
    left_out: list[LeftOut]


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What the target interpreter says of all runs."""

    schema: Literal[1]
    runs: list[RunTold]
    differences: list[Difference]
    faults: list[Fault]


def find_saved(patterns: Sequence[str], cwd: Path) -> list[Path]:
    """List the files that the patterns match, from `cwd` where they are relative."""
    found = (name for pattern in patterns for name in glob.glob(pattern, root_dir=cwd, recursive=True))
    return sorted(path for path in {Path(os.path.abspath(cwd / name)) for name in found} if path.is_file())


def require_none(patterns: Sequence[str], cwd: Path) -> None:
    """Raise UsageError where a file is there before the first run: it could be taken for one that a run has saved."""
    if found := find_saved(patterns, cwd):
        raise UsageError(
            f"{len(found)} {'files that --tensors names are' if len(found) > 1 else 'file that --tensors names is'} "
            "there before the first run",
            details=[_name_in(path, cwd) for path in found[:10]],
            hint="move them elsewhere: every run must save its own, and nothing of yours is overwritten",
        )


def require_globs(patterns: Sequence[str], cwd: Path) -> None:
    """Raise UsageError for a pattern that can match no file."""
    for pattern in patterns:
        why = (
            "is empty" if not pattern.strip()
            else "has a `[` that nothing closes" if "[" in pattern and "]" not in pattern[pattern.rindex("[") + 2 :]
            else "is a folder" if pattern.endswith("/") or (cwd / pattern).is_dir()
            else ""
        )  # fmt: skip
        if why:
            raise UsageError(f"--tensors {pattern!r} {why}", hint="name files, as 'out/*' does")


def set_aside(patterns: Sequence[str], cwd: Path, folder: Path, moved: dict[Path, Path]) -> None:
    """Move what a run has saved below `folder`, and note in `moved` the new place of each file by the old one.

    Of a link what it leads to is copied, before that is moved itself, and the link removed. Each file is noted before
    it is moved, so that an interrupt loses none.
    """
    for path in sorted(find_saved(patterns, cwd), key=lambda path: not path.is_symlink()):
        place = folder / FILES / _name_in(path, cwd).lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        moved[path] = place
        if path.is_symlink():
            shutil.copyfile(path, place)
            path.unlink()
        else:
            shutil.move(path, place)


def put_back(moved: Mapping[Path, Path]) -> None:
    """Copy what was set aside to where the command has saved it, unless something else is there now."""
    for path, place in moved.items():
        if place.is_file() and not os.path.lexists(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(place, path)


def read_saved(
    folders: Sequence[Path], *, interpreter: Path, stage: Path, environ: Mapping[str, str], time_limit: float
) -> Told:  # fmt: skip
    """Have the tensors of every run hashed and compared by the interpreter that has torch.

    `stage` is the folder that holds `verify`. torch_npu is not loaded: tensors are read to the CPU. Raises UsageError
    naming the files that cannot be read, and TargetError where the interpreter cannot do it.
    """
    with temporary_directory("toolkit-tensors-") as room:
        result = room / "result.json"
        own = {"PYTHONPATH": str(stage), "PYTHONSAFEPATH": "1", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
               "PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore"}  # fmt: skip
        for folder in folders:
            (folder / FILES).mkdir(parents=True, exist_ok=True)
        try:
            run(
                [interpreter, "-m", "verify.saved_tensors", result, *(folder / FILES for folder in folders)],
                cwd=room, env=compose_env(environ, own), timeout=time_limit,
            )  # fmt: skip
            told = msgspec.json.decode(result.read_bytes(), type=Told)
        except CommandError as fault:
            raise TargetError(
                f"{interpreter} cannot read the saved tensors: {fault.message}", details=fault.details,
                hint="name an interpreter that has torch with --python",
            ) from fault  # fmt: skip
        except (OSError, msgspec.MsgspecError) as fault:
            raise TargetError(f"what {interpreter} says of the saved tensors cannot be read: {fault}") from fault
    _require_readable(told.faults)
    return told


def _require_readable(faults: Sequence[Fault]) -> None:
    if faults:
        raise UsageError(
            f"{len(faults)} saved file{'s' * (len(faults) > 1)} cannot be read as tensors",
            details=[f"run {fault.run}, {fault.file}: {fault.why}" for fault in faults[:10]],
            hint="expected what torch.save writes, loadable with weights_only, or .npy or .safetensors",
        )


def _name_in(path: Path, cwd: Path) -> str:
    return os.path.relpath(path, cwd) if path.is_relative_to(cwd) else str(path)


def as_document(value: Any) -> Any:
    """Return a value of this module as plain dicts and lists."""
    return msgspec.to_builtins(value)
