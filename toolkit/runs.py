"""Run a command of the user's, with compiler caches of its own, and tell one clear error where it does not do its work.

It gets the caller's whole environment, unlike every child of ours: it is the caller's command, and what it needs
(CANN's variables, a launcher's, the place of its data) is not ours to know. Only the caches are put elsewhere, and what
is asked for is added.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten

from toolkit.errors import CommandError, UsageError
from toolkit.files import write_atomic
from toolkit.process import describe_code, last_lines, run

CACHES = {"TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton"}
"""Where the compilers look for what earlier processes have compiled, and the folder that takes its place."""

MARK = "TOOLKIT_RUN"
"""The variable by which the processes of a run are known, whatever session they have put themselves in."""

WORDS = 80
"""How much of a command is shown."""

OUTPUT_LIMIT = 64 << 20
"""How many bytes a command may print: it is held in memory."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ran:
    """What a run that ended well has printed, and how long it took."""

    stdout: str
    stderr: str
    seconds: float


def run_command(
    argv: Sequence[str],
    *,
    what: str,
    cwd: Path,
    environ: Mapping[str, str],
    timeout: float | None,
    outputs: Path | None = None,
) -> Ran:
    """Run a command to its end; `what` names the run in the error (`run 2 of 3`).

    `outputs` gets what it printed as `stdout.txt` and `stderr.txt`. Raises CommandError where it cannot be started, is
    not done within `timeout`, prints more than OUTPUT_LIMIT or does not end with 0; nothing of it is then alive.
    """
    mark = uuid.uuid4().hex
    began = time.monotonic()
    with _ended_with(mark):
        try:
            done = run(argv, cwd=cwd, env={**environ, MARK: mark}, timeout=timeout, check=False, limit=OUTPUT_LIMIT)
        except CommandError as fault:
            raise CommandError(
                f"{what}: {fault.message}", argv=argv, returncode=None, hint=fault.hint, details=fault.details
            ) from fault
        except ValueError as fault:  # A NUL byte in a word.
            raise UsageError(f"{what}: the command cannot be started: {fault}") from fault
        seconds = time.monotonic() - began
        if outputs is not None:
            write_atomic(outputs / "stdout.txt", done.stdout)
            write_atomic(outputs / "stderr.txt", done.stderr)
        if done.returncode != 0:
            raise CommandError(
                f"{what}: `{in_words(argv)}` ended with {describe_code(done.returncode)}",
                argv=argv, returncode=done.returncode, details=last_lines(done.stdout, done.stderr),
            )  # fmt: skip
    return Ran(stdout=done.stdout, stderr=done.stderr, seconds=seconds)


def in_words(argv: Sequence[str]) -> str:
    """Return a command as one line that a message can hold; a script given by `-c` is cut."""
    return shorten(shlex.join(argv), WORDS, placeholder=" ...")


def with_caches(environ: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return an environment whose compiler caches are below `folder`."""
    return {**environ, **{name: str(folder.absolute() / place) for name, place in CACHES.items()}}


def require_empty(folder: Path) -> None:
    """Make the folder of `--keep`; UsageError where it holds something already."""
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise UsageError(f"--keep {str(folder)!r} is not an empty folder", hint="name one that is not there yet")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise UsageError(
            f"--keep {str(folder)!r} cannot be made: {fault.strerror}", hint="name one where you can write"
        ) from fault


@contextlib.contextmanager
def _ended_with(mark: str) -> Iterator[None]:
    """Kill what is left of a run that fails: a launcher's workers are in sessions of their own and outlive it."""
    try:
        yield
    except BaseException:
        for process in _processes_of(mark):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        raise


def _processes_of(mark: str) -> list[int]:
    wanted = f"{MARK}={mark}".encode()
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                if wanted in Path("/proc", name, "environ").read_bytes().split(b"\0"):
                    found.append(int(name))
    return found
