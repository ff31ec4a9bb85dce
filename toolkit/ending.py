"""How a command ends: its exit code, what is said of a failure, signals, and streams that are closed or gone."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import click

from toolkit import __version__
from toolkit.errors import INTERNAL_ERROR, INTERRUPTED, ToolkitError, UsageError

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_commands(cli: click.Group, words: list[str]) -> int:
    """Run the command that the words name and return its exit code; whatever fails is shown, never raised."""
    try:
        code = cli.main(args=words, prog_name="toolkit", standalone_mode=False)
    except click.exceptions.Abort:
        code = INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as asked:
        click.echo(asked.format_message(), err=True)
        code = asked.exit_code
    except click.ClickException as fault:
        hint = f"see `{fault.ctx.command_path} --help`" if isinstance(fault, click.UsageError) and fault.ctx else ""
        code = _show_error(UsageError(fault.format_message(), hint=hint), words)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except (ToolkitError, OSError) as fault:
        code = _show_fault(fault, words)
    except Exception as fault:  # whatever else comes up here is a bug of ours: keep its traceback, say one line
        code = _show_bug(fault, words)
    return code if isinstance(code, int) else 0


class Commands(click.Group):
    """The group of all commands."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; a reader that went away (`| head -1`) is no failure, which click ends with a 1."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _discard_output()
            return 0


# --- failures ----------------------------------------------------------------------------------------------------


def _show_fault(fault: ToolkitError | OSError, words: list[str]) -> int:
    from toolkit.files import storage_error

    if isinstance(fault, ToolkitError):
        return _show_error(fault, words)
    known = storage_error(fault)
    return _show_error(known, words) if known else _show_bug(fault, words)


def _show_error(fault: ToolkitError, words: list[str]) -> int:
    from toolkit.report import Console

    try:
        Console(stdout=sys.stdout, stderr=sys.stderr, environ=os.environ, json_mode=_asks_for_json(words)).error(fault)
    except OSError:  # Standard output may be the very thing that failed: then the code alone has to tell.
        _discard_output()
    return fault.exit_code


def _show_bug(fault: Exception, words: list[str]) -> int:
    what = f"unexpected {type(fault).__name__}: {fault}"
    try:
        hint = f"a bug of toolkit; please report it with {_keep_traceback(fault, words)}"
    except OSError as refusal:
        hint = f"a bug of toolkit; its traceback cannot be kept: {refusal.strerror}; set TMPDIR to a folder with room"
    _show_error(ToolkitError(what, hint=hint), words)
    return INTERNAL_ERROR


def _keep_traceback(fault: Exception, words: list[str]) -> str:
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="toolkit-bug-", suffix=".log", delete=False) as stream:
        stream.write(f"toolkit {__version__}, Python {sys.version}\n{words!r}\n\n")
        traceback.print_exception(fault, file=stream)
    return stream.name


def _asks_for_json(words: list[str]) -> bool:
    return "--json" in (words[: words.index("--")] if "--" in words else words)


# --- the process -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def ending_by_signal() -> Iterator[None]:
    """Let a signal that ends us end the block as an exception does: children stopped, what was being made removed.

    More signals while that goes on are ignored. One that the caller has us ignore, as nohup does, stays so.
    """
    before = {number: signal.getsignal(number) for number in ENDING}
    heeded = [number for number, handler in before.items() if handler is not signal.SIG_IGN]

    def end(number: int, _frame: FrameType | None) -> None:
        for other in heeded:
            signal.signal(other, signal.SIG_IGN)
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)

    for number in heeded:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in heeded:
            signal.signal(number, before[number])


def open_closed_streams() -> None:
    """Give what the caller closed (`>&-`) somewhere to go; Python has None in its place."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  It stays open as the stream that it stands for.


def let_streams_take_all_text() -> None:
    """Write what a stream's encoding lacks all the same: undecoded bytes of names as they were, the rest as numbers."""
    codecs.register_error("toolkit-streams", _encode_all)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="toolkit-streams")


def _encode_all(fault: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(fault, UnicodeEncodeError):
        raise fault
    lacking = fault.object[fault.start : fault.end]
    kept = (
        character.encode("ascii", "surrogateescape" if "\udc80" <= character <= "\udcff" else "backslashreplace")
        for character in lacking
    )
    return b"".join(kept), fault.end


def _discard_output() -> None:
    """Leave nothing for the interpreter to write as it ends, where writing fails."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
