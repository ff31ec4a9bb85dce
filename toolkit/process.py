"""The only place that starts child processes: argv, a folder, a full environment, a log, one error."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import selectors
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from toolkit.errors import CommandError

log = logging.getLogger(__name__)

LAST_LINES = 12
CHUNK = 1 << 16
DRAIN_LIMIT = 2.0
"""How many seconds a killed child's streams are still read: what left its session may hold them for ever."""

LOOK = 0.5
"""How many seconds pass between two looks whether a silent child has ended."""

ROUNDS = 20
"""How often a session is looked through for what was started while it was being killed."""

INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "USER", "LOGNAME", "SSL_CERT_FILE", "SSL_CERT_DIR")
"""What a child may know of the caller's environment unless its stage adds more."""

PREFIXES_OF_PIP = ("PIP_", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
                   "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NETRC", "XDG_CONFIG")  # fmt: skip
"""What pip needs besides, to reach the index that the user has set up."""

KEPT = 1 << 20
"""How many bytes of each stream are held in memory where a log file has them all."""

NOT_FOUND_HINT = "is it installed, and on PATH?"

_RUNNING: set[subprocess.Popen[bytes]] = set()
"""The children alive now: an interrupt reaches only the main thread, which stops those of the others through this."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Completed:
    """A child that ended: its code and what it printed (undecodable bytes replaced; see `run` for what is kept)."""

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str


def compose_env(
    caller: Mapping[str, str], extra: Mapping[str, str] | None = None, *, prefixes: tuple[str, ...] = ()
) -> dict[str, str]:
    """Compose a child's environment: the few inherited names, those with a given prefix, and the stage's own."""
    chosen = {name: caller[name] for name in INHERITED if name in caller}
    if prefixes:
        chosen |= {name: value for name, value in caller.items() if name.startswith(prefixes)}
    return {"LANG": "C.UTF-8", **chosen, **(extra or {})}


def run(
    argv: Sequence[str | Path],
    *,
    cwd: Path,
    env: Mapping[str, str],
    log_file: Path | None = None,
    timeout: float | None = None,
    stdin: bytes | None = None,
    check: bool = True,
    on_line: Callable[[str], None] | None = None,
    umask: int = -1,
    limit: int | None = None,
) -> Completed:
    """Run a child to its end and return what it printed.

    With `log_file`, the command and both streams are added to that file as they come, and only the last mebibyte of
    each is returned. `on_line` sees each line of stdout as it comes. `umask` is the caller's unless given.
    A child that outlives `timeout` seconds is killed with all that it started in its session, and so is one that prints
    more than `limit` bytes. Raises CommandError with argv, code and last lines for a child that cannot start, is killed
    so, or (with `check`) ends with another code than 0.
    """
    words = tuple(str(word) for word in argv)
    log.debug("run %s (in %s)", shlex.join(words), cwd)
    with (
        _opened(log_file, words) as kept,
        _started(words, cwd=cwd, env=env, stdin=stdin, umask=umask) as child,
    ):
        printed = _Printed(on_line, kept, limit)
        try:
            _follow(child, printed, timeout)
        except subprocess.TimeoutExpired as expired:
            _kill_group(child)
            with contextlib.suppress(subprocess.TimeoutExpired):
                _follow(child, printed, DRAIN_LIMIT)
            raise CommandError(
                f"{words[0]} did not end within {timeout:g} s and was stopped", argv=words, returncode=None,
                hint=_where(log_file), details=last_lines(printed.stdout, printed.stderr),
            ) from expired  # fmt: skip
        except _FloodError:
            raise CommandError(
                f"{words[0]} printed more than {limit} bytes and was stopped", argv=words, returncode=None,
                hint=_where(log_file), details=last_lines(printed.stdout, printed.stderr),
            ) from None  # fmt: skip
    if check and child.returncode != 0:
        raise CommandError(
            f"`{shlex.join(words)}` ended with {describe_code(child.returncode)}", argv=words,
            returncode=child.returncode, hint=_where(log_file), details=last_lines(printed.stdout, printed.stderr),
        )  # fmt: skip
    return Completed(
        argv=words, returncode=child.returncode, stdout=_text(printed.stdout), stderr=_text(printed.stderr)
    )


def run_in_terminal(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdout: IO[str] | None = None) -> int:
    """Run a child that a person works with, on this process's own terminal, and return its exit code.

    Its streams are ours, `stdout` aside where it is given. An interrupt from the keyboard is the child's to deal with.
    Raises CommandError where it cannot be started.
    """
    words = tuple(argv)
    log.debug("run %s (in %s)", shlex.join(words), cwd)
    try:
        child = subprocess.Popen(words, cwd=cwd, env=dict(env), stdout=stdout)
    except OSError as fault:
        raise CommandError(
            f"cannot start {argv[0]!r}: {fault.strerror}", argv=words, returncode=None, hint=NOT_FOUND_HINT
        ) from fault
    with child:
        while True:
            try:
                return child.wait()
            except KeyboardInterrupt:  # The child got it too, and shells go on.
                continue


def replace_process(argv: Sequence[str], env: Mapping[str, str]) -> None:
    """Become another program, as `exec` does; raise CommandError where it cannot be started."""
    try:
        os.execvpe(argv[0], list(argv), dict(env))
    except (OSError, ValueError) as fault:  # An empty name is a ValueError.
        why = fault.strerror if isinstance(fault, OSError) else str(fault)
        raise CommandError(
            f"cannot start {argv[0]!r}: {why}", argv=argv, returncode=None, hint=NOT_FOUND_HINT
        ) from fault


def stop_running() -> None:
    """Kill every child that `run` is waiting for in any thread, with all that it started; each `run` then returns."""
    for child in tuple(_RUNNING):
        _kill_group(child)


def describe_code(code: int) -> str:
    """Say an exit code in words: `exit code 1`, `signal SIGKILL`."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"


def last_lines(*streams: bytes | bytearray | str | None) -> list[str]:
    """Return the last lines of the last stream that has any."""
    for stream in reversed(streams):
        lines = [line for line in _text(stream).splitlines() if line.strip()]
        if lines:
            return lines[-LAST_LINES:]
    return []


class _FloodError(Exception):
    """A child has printed more than it may."""


class _Printed:
    """What a child has printed so far: written to its log, and each line of stdout passed on once."""

    def __init__(
        self, on_line: Callable[[str], None] | None, log_stream: IO[bytes] | None, limit: int | None = None
    ) -> None:
        self._left = limit
        self.stdout = bytearray()
        self.stderr = bytearray()
        self._on_line = on_line
        self._log = log_stream
        self._untold = bytearray()
        self._has_line = False

    def take(self, stream: bytearray, piece: bytes) -> None:
        """Take what came on one of the two streams; _FloodError where it is more than the child may print."""
        stream.extend(piece)
        if self._left is not None:
            self._left -= len(piece)
            if self._left < 0:
                raise _FloodError
        if self._log is not None:
            self._log.write(piece)
            self._log.flush()
            if len(stream) > 2 * KEPT:
                del stream[:-KEPT]
        if self._on_line is not None and stream is self.stdout:
            self._untold.extend(piece)
            self._has_line = self._has_line or b"\n" in piece

    def tell_lines(self, *, ended: bool = False) -> None:
        """Pass on the lines that are whole, at the end what is left."""
        if self._on_line is None or not (self._has_line or ended):
            return
        self._has_line = False
        end = len(self._untold) if ended else self._untold.rfind(b"\n") + 1
        new = bytes(self._untold[:end])
        del self._untold[:end]
        for line in io.BytesIO(new):
            self._on_line(_text(line).rstrip())


@contextlib.contextmanager
def _opened(log_file: Path | None, argv: tuple[str, ...]) -> Iterator[IO[bytes] | None]:
    """Yield the log with the command's line in it."""
    if log_file is None:
        yield None
        return
    log_file.parent.mkdir(parents=True, exist_ok=True)
    with log_file.open("ab") as stream:
        stream.write(b"$ " + os.fsencode(shlex.join(argv)) + b"\n")
        stream.flush()
        yield stream


@contextlib.contextmanager
def _started(
    argv: tuple[str, ...], *, cwd: Path, env: Mapping[str, str], stdin: bytes | None, umask: int
) -> Iterator[subprocess.Popen[bytes]]:
    try:
        with _input(stdin) as source:
            child = subprocess.Popen(
                argv, cwd=cwd, env=dict(env), stdin=source,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                umask=umask,
            )  # fmt: skip
    except OSError as fault:
        raise CommandError(
            f"cannot start {argv[0]!r}: {fault.strerror}", argv=argv, returncode=None,
            hint=NOT_FOUND_HINT if cwd.is_dir() else f"there is no folder {cwd} to start it in",
        ) from fault  # fmt: skip
    _RUNNING.add(child)
    try:
        with child:
            try:
                yield child
            except BaseException:
                _kill_group(child)
                raise
    finally:
        _RUNNING.discard(child)


@contextlib.contextmanager
def _input(stdin: bytes | None) -> Iterator[IO[Any] | int]:
    """Yield what a child shall read: a file, because a pipe would have to be filled while its output is read."""
    if stdin is None:
        yield subprocess.DEVNULL
        return
    with tempfile.TemporaryFile() as stream:
        stream.write(stdin)
        stream.seek(0)
        yield stream


def _follow(child: subprocess.Popen[bytes], printed: _Printed, timeout: float | None) -> None:
    """Read both streams to their ends and wait for the child; subprocess.TimeoutExpired where that takes longer.

    Once the child has ended, who holds its streams still is read for a moment only, and then killed with the session.
    """
    deadline = None if timeout is None else time.monotonic() + timeout

    def seconds_left() -> float | None:
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise subprocess.TimeoutExpired(child.args, timeout or 0)
        return left

    assert child.stdout is not None
    assert child.stderr is not None
    ended: float | None = None
    with selectors.DefaultSelector() as streams:
        streams.register(child.stdout, selectors.EVENT_READ, printed.stdout)
        streams.register(child.stderr, selectors.EVENT_READ, printed.stderr)
        while streams.get_map():
            left = seconds_left()
            for ready, _ in streams.select(LOOK if left is None else min(left, LOOK)):
                piece = os.read(ready.fd, CHUNK)
                printed.take(ready.data, piece)
                if not piece:
                    streams.unregister(ready.fileobj)
            printed.tell_lines()
            if ended is None and child.poll() is not None:
                ended = time.monotonic()
            if ended is not None and time.monotonic() - ended > DRAIN_LIMIT:
                _kill_group(child)
                break
    printed.tell_lines(ended=True)
    child.wait(seconds_left())


def _kill_group(child: subprocess.Popen[bytes]) -> None:
    """Kill a child with all that it started in its session: ninja, for one, gives its own children other groups."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    for _ in range(ROUNDS):
        if not (members := _session_members(child.pid)):
            return
        for member in members:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(member, signal.SIGKILL)


def _session_members(session: int) -> list[int]:
    """List the living processes of a session, which is named by the process that began it."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                stat = Path("/proc", name, "stat").read_bytes().rpartition(b")")[2].split()
                if int(stat[3]) == session and stat[0] not in (b"Z", b"X"):
                    found.append(int(name))
    return found


def _where(log_file: Path | None) -> str:
    return f"the whole output is in {log_file}" if log_file else ""


def _text(raw: bytes | bytearray | str | None) -> str:
    if raw is None:
        return ""
    return raw if isinstance(raw, str) else raw.decode("utf-8", "replace")
