"""Show people and programs what happens.

Results go to standard output, everything that only tells how it goes (stages, progress, checks as they come, errors)
to standard error. With `json_mode` standard output gets one JSON document and nothing else. Colours and moving bars
appear on a terminal only; in CI, with NO_COLOR, with TERM=dumb and into files and pipes the same is said in plain
lines. rich is imported where a terminal wants it, not before.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from toolkit.errors import ToolkitError

if TYPE_CHECKING:
    from rich.console import Console as RichConsole

    from toolkit.model import CheckResult, Progress, Proof

# A child's last lines may hold whatever it printed; only line ends and tabs of it may reach a terminal.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
MEGABYTE = 1_000_000
QUARTERS = 4
REASON_LENGTH = 160
HOST_NOTE = "host run: it proves what loads, compiles and is launched, not the values that an NPU computes"


@dataclass(frozen=True, kw_only=True, slots=True)
class Marks:
    """How verdicts are marked, for the eye."""

    good: str
    bad: str
    none: str


UNICODE_MARKS = Marks(good="✓", bad="✗", none="·")
ASCII_MARKS = Marks(good="+", bad="!", none="-")


class Console:
    """The two streams of one command, and how much they can show."""

    def __init__(self, *, stdout: TextIO, stderr: TextIO, environ: Mapping[str, str], json_mode: bool = False) -> None:
        self._out = _Screen(stdout, environ)
        self._err = _Screen(stderr, environ)
        self._json_mode = json_mode

    @property
    def columns(self) -> int | None:
        """The columns of the terminal that gets the results; None where that is none, or does not say."""
        return self._out.columns

    def stage(self, prefix: str, text: str) -> None:
        """Say what is done next, for which recipe and component (`dsv4-dvm-release/torch_npu`)."""
        self._err.say(f"{prefix}: {text}", bold=prefix)

    def note(self, text: str) -> None:
        """Say something beside the results."""
        self._err.say(text)

    def logging_handler(self) -> logging.Handler:
        """Return a handler that shows log records here."""
        return _Handler(self._err)

    @contextlib.contextmanager
    def download(self, prefix: str, name: str) -> Iterator[Progress]:
        """Show how many bytes of a file have come: a bar on a terminal, elsewhere a line at each quarter."""
        label = f"{prefix}: download {name}"
        with self._err.bar(label) if self._err.fancy else _quarter_lines(label, self._err) as progress:
            yield progress

    @contextlib.contextmanager
    def steps(self, prefix: str, name: str) -> Iterator[Progress]:
        """Show how many steps of a piece of work are done: a bar on a terminal, elsewhere a line at each quarter."""
        label = f"{prefix}: {name}"
        with self._err.bar(label, counts_bytes=False) if self._err.fancy else _step_lines(label, self._err) as told:
            yield told

    def check(self, prefix: str, result: CheckResult) -> None:
        """Show one check's result as it comes."""
        verdict = describe_result(result, self._err.marks)
        reason = "" if result.ok else f": {_first_line(result.detail)}"
        self._err.say(f"{prefix}: {result.name} on {result.side}: {verdict} ({result.seconds:.1f} s){reason}")

    def proof(self, proof: Proof) -> None:
        """Show the table of a proof's results and the verdict on the whole."""
        if not self._json_mode:
            self._out.say(render_proof(proof, self._out.marks))

    def answer(self, text: str, document: object, *, styles: Mapping[str, str] | None = None) -> None:
        """Give a command's result: the text to a person, the document to a program.

        `styles` are the colours that a terminal gives to what patterns match.
        """
        if self._json_mode:
            self._out.write(json.dumps(document, indent=1, default=str))
        elif text and styles and self._out.fancy:
            self._out.paint(text, styles)
        elif text:
            self._out.write(text)

    def error(self, fault: ToolkitError) -> None:
        """Show why a command failed and what to do next; a program also gets it as its document."""
        self._err.say(render_error(fault), bold="error:")
        if self._json_mode:
            self._out.write(json.dumps(error_document(fault), indent=1))


def render_proof(proof: Proof, marks: Marks) -> str:
    """Lay out a proof as plain text: the table, then one line on the whole."""
    required = [result for result in proof.results if result.required]
    good = sum(result.ok for result in required)
    lines = [
        render_table(proof.results, marks),
        "",
        f"{marks.good if proof.ok else marks.bad} {good} of {len(required)} required results are as they must be "
        f"(runtime: {proof.runtime})",
    ]
    return "\n".join([*lines, *([HOST_NOTE] if proof.runtime == "host" else [])])


def render_table(results: Sequence[CheckResult], marks: Marks) -> str:
    """Lay out results as plain text: check, base, overlay, seconds; beneath a row the reasons for it.

    A witness that is red on the base, as it must be, has its reason there too: it is what the patch is for.
    """
    rows = [("check", "base", "overlay", "seconds")]
    notes: list[list[str]] = [[]]
    for name in dict.fromkeys(result.name for result in results):
        sides = {result.side: result for result in results if result.name == name}
        base, overlay = (
            describe_result(sides[side], marks) if side in sides else marks.none for side in ("base", "overlay")
        )
        rows.append((name, base, overlay, f"{sum(result.seconds for result in sides.values()):.1f}"))
        notes.append(_reasons(list(sides.values())))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = []
    for (name, base, overlay, seconds), beneath in zip(rows, notes, strict=True):
        cells = (name.ljust(widths[0]), base.ljust(widths[1]), overlay.ljust(widths[2]), seconds.rjust(widths[3]))
        lines.extend(["  ".join(cells), *beneath])
    return "\n".join(lines)


def describe_result(result: CheckResult, marks: Marks) -> str:
    """Say a result in a few words, by what was wanted of it."""
    if not result.required:
        return f"{marks.none} {result.status}"
    if result.ok:
        return f"{marks.good} {'red, as it must be' if result.wanted == 'fail' else result.status}"
    if result.wanted == "fail" and result.status == "pass":
        return f"{marks.bad} green, must be red"
    return f"{marks.bad} {result.status}"


def render_error(fault: ToolkitError) -> str:
    """Lay out an error as plain text: the message, its details indented, the hint."""
    details = [f"  {line}" for detail in fault.details for line in detail.splitlines()]
    return "\n".join([f"error: {fault.message}", *details, *([f"hint: {fault.hint}"] if fault.hint else [])])


def error_document(fault: ToolkitError) -> dict[str, object]:
    """Return what a program gets in place of a result: `{"error": {kind, message, details, hint, exit_code}}`."""
    return {
        "error": {
            "kind": type(fault).__name__,
            "message": fault.message,
            "details": list(fault.details),
            "hint": fault.hint,
            "exit_code": fault.exit_code,
        }
    }


class _Screen:
    """One stream: what it can show, and text made fit for it."""

    def __init__(self, stream: TextIO, environ: Mapping[str, str]) -> None:
        self._stream = stream
        self._encoding = stream.encoding or "utf-8"
        self._rich: RichConsole | None = None
        self.fancy = _is_fancy(stream, environ)
        self.marks = UNICODE_MARKS if self._can_show(UNICODE_MARKS) else ASCII_MARKS

    @property
    def columns(self) -> int | None:
        """The columns of the terminal, if it is one."""
        try:
            return os.get_terminal_size(self._stream.fileno()).columns if self._stream.isatty() else None
        except (OSError, ValueError):
            return None

    def write(self, text: str) -> None:
        """Write text as it is, with a line end: for what is read by programs or pasted into a shell."""
        self._stream.write(text.rstrip("\n") + "\n")
        self._stream.flush()

    def paint(self, text: str, styles: Mapping[str, str]) -> None:
        """Write text as it is, in colours."""
        from rich.text import Text

        styled = Text(text)
        for pattern, style in styles.items():
            styled.highlight_regex(pattern, style)
        self._console().print(styled, soft_wrap=True)

    def say(self, text: str, *, bold: str = "") -> None:
        """Write text for people: coloured on a terminal, without control characters, in the stream's encoding."""
        shown = CONTROL.sub("?", text).encode(self._encoding, "backslashreplace").decode(self._encoding)
        if self.fancy:
            self._say_coloured(shown, bold)
        else:
            self.write(shown)

    @contextlib.contextmanager
    def bar(self, label: str, *, counts_bytes: bool = True) -> Iterator[Progress]:
        """Show a bar that moves with the bytes, or with the steps."""
        from rich import progress

        amounts = (progress.DownloadColumn(), progress.TransferSpeedColumn()) if counts_bytes else (
            progress.MofNCompleteColumn(), progress.TimeElapsedColumn(),
        )  # fmt: skip
        columns = (
            progress.TextColumn("{task.description}", markup=False), progress.BarColumn(), *amounts,
            progress.TimeRemainingColumn(),
        )  # fmt: skip
        with progress.Progress(*columns, console=self._console(), transient=True) as bars:
            task = bars.add_task(label, total=None)
            yield lambda done, total: bars.update(task, completed=done, total=total)

    def _say_coloured(self, text: str, bold: str) -> None:
        from rich.text import Text

        styled = Text(text)
        for mark, style in ((self.marks.good, "green"), (self.marks.bad, "bold red"), (self.marks.none, "dim")):
            styled.highlight_regex(rf"(?<!\S){re.escape(mark)}( \S+)*", style)
        if bold:
            styled.highlight_words([bold], "bold")
        self._console().print(styled, soft_wrap=True)

    def _console(self) -> RichConsole:
        if self._rich is None:
            from rich.console import Console as RichConsole

            self._rich = RichConsole(file=self._stream, force_terminal=True)
        return self._rich

    def _can_show(self, marks: Marks) -> bool:
        try:
            f"{marks.good}{marks.bad}{marks.none}".encode(self._encoding)
        except UnicodeEncodeError:
            return False
        return True


class _Handler(logging.Handler):
    def __init__(self, screen: _Screen) -> None:
        super().__init__()
        self._screen = screen

    def emit(self, record: logging.LogRecord) -> None:
        self._screen.say(f"{record.levelname.lower()}: {record.getMessage()}")


@contextlib.contextmanager
def _quarter_lines(label: str, screen: _Screen) -> Iterator[Progress]:
    """Say nothing until bytes come: what is in the store already is no download."""
    told = -1

    def progress(done: int, total: int | None) -> None:
        nonlocal told
        if told < 0:
            screen.say(label)
            told = 0
        quarter = done * QUARTERS // total if total else 0
        if total and quarter > told:
            told = quarter
            screen.say(f"{label}: {100 * quarter // QUARTERS}% of {total / MEGABYTE:.1f} MB")

    yield progress


@contextlib.contextmanager
def _step_lines(label: str, screen: _Screen) -> Iterator[Progress]:
    told = 0

    def progress(done: int, total: int | None) -> None:
        nonlocal told
        quarter = done * QUARTERS // total if total else 0
        if total and quarter > told:
            told = quarter
            screen.say(f"{label}: {100 * quarter // QUARTERS}% of {total} steps")

    yield progress


def _is_fancy(stream: TextIO, environ: Mapping[str, str]) -> bool:
    quiet = environ.get("NO_COLOR") or environ.get("CI") or environ.get("TERM") == "dumb"
    return not quiet and stream.isatty()


def _reasons(results: Sequence[CheckResult]) -> list[str]:
    """Say why, for each result that is not simply as it should be; once where the sides say the same."""
    told = [result for result in results if not result.ok or result.wanted == "fail"]
    lines = []
    for detail in dict.fromkeys(result.detail for result in told):
        saying = [result for result in told if result.detail == detail]
        # What only explains a good result is cut; the whole stands in the proof.
        text = textwrap.shorten(detail, REASON_LENGTH, placeholder=" ...") if all(r.ok for r in saying) else detail
        lines.extend(_indented(f"{', '.join(result.side for result in saying)}: {text}"))
    for result in told:
        if result.required and not result.ok:
            last = result.evidence.get("last_lines")
            lines.extend(f"      {line}" for line in (last if isinstance(last, list) else []))
            lines.extend([f"    log: {result.log}"] if result.log else [])
    return lines


def _indented(text: str) -> list[str]:
    first, *others = text.splitlines()
    return [f"    {first}", *(f"      {line}" for line in others)]


def _first_line(text: str) -> str:
    """Return what fits beside a check's name; the whole stands in the table and in the proof."""
    return textwrap.shorten(text.partition("\n")[0], REASON_LENGTH, placeholder=" ...")
