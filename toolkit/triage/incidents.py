"""What one process logged together: exceptions with their tracebacks, and lines that tell of a failure.

Wrappers and chains need no tree here: Python prints the innermost exception first, and so do loggers what came first.
"""

from __future__ import annotations

import re

import msgspec

from toolkit.triage.exceptions import HEADER, Frame, Raised, link_of, read_frame, read_raised, unwrap
from toolkit.triage.lines import Line
from toolkit.triage.progress import is_progress

PATIENCE = 60
"""So many lines of its own may a process log before what it says next is another incident."""

MESSAGE_LINES = 60
CONTEXT_LINES = 12
FRAMES_KEPT = 400
PREFIX_READ = 300
ITEMS_KEPT = 300

IGNORED = "Exception ignored in"
"""What Python prints above the traceback of a destructor: nothing fails by it."""


class Item(msgspec.Struct, kw_only=True):
    """An exception with its traceback (`raised`), or another line with what is indented below it."""

    lines: list[Line]
    header: Line | None = None
    frames: list[Frame] = []
    frame_lines: list[Line] = []
    raised: Raised | None = None
    name: str = ""
    offset: int = 0
    sealed: bool = False
    """Whether the message is over: a record of a logger came behind it."""

    ignored: bool = False

    @property
    def text(self) -> str:
        """All that it says, frames left out."""
        return "\n".join(line.text for line in self.lines)

    @property
    def at(self) -> Line:
        """Its first line, or that of the first frame, or of the header, where there is nothing else."""
        return next(line for line in (*self.lines[:1], *self.frame_lines[:1], self.header) if line is not None)

    @property
    def told(self) -> list[Line]:
        """The lines that say when, and how loudly: header, first frame, and its text."""
        header = [] if self.header is None else [self.header]
        return [*header, *self.frame_lines[:1], *self.lines]

    @property
    def is_told_only(self) -> bool:
        """Whether it is a line that a logger wrote for information, and nothing was raised."""
        is_line = self.raised is None and not self.frames and bool(self.lines)
        return is_line and self.lines[0].level in ("debug", "info")

    @property
    def is_quiet(self) -> bool:
        """Whether the logger that wrote it did not call it an error."""
        header = [] if self.header is None else [self.header]
        said = (line.level for line in (*header, *self.frame_lines[:1], *self.lines[:1]) if line.level)
        level = next(said, "")
        return level in ("debug", "info", "warning")


class Incident(msgspec.Struct, kw_only=True):
    """Items that one process logged together.

    It stands between two offsets of its file, or comes again up to the last. `last_step` is the last step that the
    process had logged before, `before` the last line with a time, `goes_on` whether it logs steps after, and
    `run_goes_on` whether any process does.
    """

    file: str
    rank: int | None
    offset: int
    last_offset: int
    items: list[Item] = []
    last_step: int | None = None
    before: Line | None = None
    goes_on: bool = False
    run_goes_on: bool = False
    count: int = 1

    @property
    def texts(self) -> list[str]:
        """The text of every item, and its frames."""
        return [one.text for one in self.items] + [str(frame) for one in self.items for frame in one.frames]

    @property
    def when(self) -> Line | None:
        """The first line of it that says a time, else the last one before it."""
        lines = (line for one in self.items for line in one.told)
        return next((line for line in lines if line.when is not None), self.before)

    @property
    def signature(self) -> str:
        """What is the same of two incidents that are the same but for numbers and addresses."""
        first, last = self.items[0], self.items[-1]
        return re.sub(r"0x[0-9a-f]+|\d+", "", f"{len(self.items)} {first.text[:400]} {last.text[:400]}")


class Stream:
    """Takes the lines of one process and groups them.

    While an incident is `open`, the next lines of the process matter even where no word of a rule is in them.
    """

    def __init__(self, *, file: str, rank: int | None) -> None:
        self.file = file
        self.rank = rank
        self.done: list[Incident] = []
        self._open: Incident | None = None
        self._item: Item | None = None
        self._in_frames = False
        self._is_ignored = False
        self._prefixes: list[re.Pattern[str]] = []
        self._quiet = 0

    @property
    def open(self) -> Incident | None:
        """The incident that is open."""
        return self._open

    def feed(self, line: Line, *, offset: int, is_hit: bool) -> bool:
        """Take a line and say whether it belongs to an incident.

        `is_hit` is one that a rule may be about, or that its own level calls an error.
        """
        line = self._without_prefixes(line)
        is_taken = self._take_structure(line, offset) or self._take_rest(line, is_hit)
        if not is_taken and is_hit:
            self._add(Item(lines=[line], offset=offset))
            is_taken = True
        if is_taken:
            self._quiet = 0
            if self._open is not None:
                self._open.last_offset = offset
            return True
        self._quiet += 1
        if self._open is not None and (self._quiet > PATIENCE or is_progress(line.text)):
            self.close()
        return False

    def close(self) -> None:
        """End the incident that is open."""
        if self._open is not None and self._open.items:
            self.done.append(self._open)
        self._open = self._item = None
        self._prefixes.clear()
        self._in_frames = self._is_ignored = False
        self._quiet = 0

    def _without_prefixes(self, line: Line) -> Line:
        """Take off what stands before the header of the traceback that is open, and so before all of its lines."""
        text = line.text
        for shape in self._prefixes:
            found = shape.match(text)
            text = text[found.end() :] if found else text
        return line if text is line.text else msgspec.structs.replace(line, text=text)

    def _take_structure(self, line: Line, offset: int) -> bool:
        """Take what a traceback is made of."""
        text = line.text
        if text.startswith(IGNORED):
            self._ensure_open(offset)
            self._is_ignored = True
            return True
        if found := HEADER.search(text):
            if found[1]:
                self._prefixes.append(_shape_of(found[1]))
            self._start_frames(offset, header=line)
            assert self._item is not None
            self._item.ignored, self._is_ignored = self._is_ignored, False
            return True
        is_ignored, self._is_ignored = self._is_ignored, False
        if (frame := read_frame(text)) is not None:
            if not self._in_frames:
                self._start_frames(offset)
            assert self._item is not None
            if len(self._item.frames) < FRAMES_KEPT:
                path, number, function = frame
                self._item.frames.append(Frame(path=path, line=number, function=function, source=""))
                self._item.frame_lines.append(line)
            return True
        if link_of(text):
            self._seal()
            self._ensure_open(offset)
            return True
        raised = read_raised(text, in_traceback=self._in_frames)
        if raised is None:
            return False
        self._raise(raised, line, offset)
        assert self._item is not None
        self._item.ignored |= is_ignored
        return True

    def _take_rest(self, line: Line, is_hit: bool) -> bool:
        """Take a frame's source, or what belongs to the message or line before it."""
        item, text = self._item, line.text
        if item is None:
            return False
        if self._in_frames:
            if text[:1].isspace() or not text:
                _add_source(item, text)
                return True
            if line.level or is_progress(text):
                return False
            self._in_frames = False
        if item.sealed or is_progress(text):
            return False
        if _is_record(line, item):
            item.sealed = True
            return False
        limit = MESSAGE_LINES if item.name else CONTEXT_LINES
        if len(item.lines) >= limit or (is_hit and not item.name):
            item.sealed = True
            return False
        item.lines.append(line)
        return True

    def _start_frames(self, offset: int, *, header: Line | None = None) -> None:
        self._add(Item(lines=[], header=header, offset=offset))
        self._in_frames = True

    def _raise(self, found: tuple[str, str], line: Line, offset: int) -> None:
        """Let an exception end the open traceback, or stand alone."""
        if not (self._in_frames and self._item is not None):
            self._add(Item(lines=[], offset=offset))
        assert self._item is not None
        self._item.name = found[0]
        self._item.lines.append(line)
        self._in_frames = False

    def _add(self, item: Item) -> None:
        self._seal()
        incident = self._ensure_open(item.offset)
        self._item = item
        if len(incident.items) < ITEMS_KEPT:
            incident.items.append(item)

    def _seal(self) -> None:
        self._in_frames = False
        if self._item is not None:
            self._item.sealed = True

    def _ensure_open(self, offset: int) -> Incident:
        if self._open is None:
            self._open = Incident(file=self.file, rank=self.rank, offset=offset, last_offset=offset)
        return self._open


def finish(incident: Incident) -> Incident:
    """Read each exception's message, now that all of it is there; a traceback without one stays as it is."""
    for item in incident.items:
        if item.name:
            first = read_raised(item.lines[0].text, in_traceback=True)
            message = "\n".join([first[1] if first else "", *(line.text for line in item.lines[1:])])
            item.raised = unwrap(item.name, message)
    told = (one for one in incident.items if one.lines or one.frames or one.header)
    incident.items = [one for one in told if not one.ignored]
    return incident


def _shape_of(prefix: str) -> re.Pattern[str]:
    """Return the pattern of a prefix of which only numbers change from line to line."""
    return re.compile(re.sub(r"\d+", r"\\d+", re.escape(prefix[:PREFIX_READ])))


def _is_record(line: Line, item: Item) -> bool:
    """Whether a logger wrote this line by itself, not as more of the item's text."""
    first = item.lines[0] if item.lines else None
    if line.level in ("debug", "info"):
        return True
    return bool(first and line.when is not None and first.when is None and line.level)


def _add_source(item: Item, text: str) -> None:
    """Give the last frame its source line; the carets below it are left out."""
    shown = text.strip()
    if item.frames and not item.frames[-1].source and shown.strip("~^ "):
        last = item.frames[-1]
        item.frames[-1] = Frame(path=last.path, line=last.line, function=last.function, source=shown)
