"""One line of a log: what was said, and what the prefixes in front of it tell of who said it, when and how loudly."""

from __future__ import annotations

import re

import msgspec

from toolkit.triage.prefixes import LEVELS, PREFIXES, Level, Need
from toolkit.triage.stamps import ISO, read_stamp

__all__ = ["LINE_KEPT", "Level", "Line", "peel"]

LINE_KEPT = 16384
"""What is kept of a line, in characters; of a longer one the head and the tail, with `_GAP` between them."""

_TAIL = 4096
_GAP = " [...] "
_PREFIXES_READ = 16
_PIECES_TRIED = 32

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]{0,64}[ -/]{0,4}(?:[@-~]|$)|\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)?|[()*+][A-Z0-9]|[ -/]?[0-~])?"
)
"""Colours and cursor moves (CSI), titles (OSC), and what else begins with ESC."""

_RESETS = ("[0m", "[0;0m")
_WRITTEN_COLOURS = re.compile(r"(?:\^\[|#033|(?<!\\x1b)(?<!\\033)(?<!\\e))\[\d{0,3}(?:;\d{1,3}){0,4}m(?!\])")
"""Colours whose escape character was lost, or written as syslog and cat do, where one of `_RESETS` ends them."""

_BAR_REST = re.compile(r"%(?: Completed)? ?\|[^|]{0,400}\| ?[^\[|]{0,80}\[[^\]]{0,160}\]")
_BAR_LABEL = 160
_SAYS_SOMETHING = re.compile(r"\w")

_CODED = re.compile(rf"E[A-Z0-9]\d{{4}}: (?:\[PID: ?\d+\] )?({ISO})")
"""CANN's errors have their code in front of the time: it is read, and left standing."""

_SPOKEN = re.compile(r"(?:fatal )?(error|warning|fatal)\b:", re.IGNORECASE)

_REPEATED = re.compile(r" \[repeated \d+x across cluster\]$")
"""What Ray puts behind a line that several actors wrote."""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a log, taken apart.

    `text` stands behind all prefixes, with the indentation that the program wrote. `rank` is what the prefixes say,
    the one closest to the text. `when` is in seconds since 1970, UTC where no zone is written; where the year is
    missing (`has_year` is false) 1970 is put, which can only be compared with its like. `origin` is the line of code
    that wrote it (`torch/_dynamo/guards.py:12`), `frame` Dynamo's compile id (`[17/8]`); each is empty where no
    prefix says it. `raw` is the line as it stood, `process` the id that a launcher puts before what its worker says.
    """

    number: int
    text: str
    rank: int | None
    when: float | None
    has_year: bool
    level: Level
    origin: str
    frame: str
    raw: str
    process: str = ""


def peel(raw: str, number: int) -> Line:
    """Take a line apart, its prefixes in any order and nesting; what is not surely a prefix stays in the text."""
    shown = raw.rstrip()
    said = _Said()
    text = _last_piece(shown, said) if "\r" in shown else shown
    if len(shown) > LINE_KEPT:
        shown, text = _clip(shown), _clip(text)
    if "\x1b" in text:
        text = _ESCAPES.sub("", text).rstrip()
    elif _RESETS[0] in text or _RESETS[1] in text:
        text = _WRITTEN_COLOURS.sub("", text).rstrip()
    if text.endswith("x across cluster]"):
        text = _REPEATED.sub("", text).rstrip()
    start = _read_prefixes(text, said) if text else 0
    return Line(
        number=number,
        text=text[start:],
        rank=said.local if said.rank is None else said.rank,
        when=said.when,
        has_year=said.has_year,
        level=said.level,
        origin=said.origin,
        frame=said.frame,
        raw=shown,
        process=said.process,
    )


class _Said:
    """What the prefixes read so far have said."""

    __slots__ = ("frame", "has_year", "level", "local", "origin", "process", "rank", "when")

    def __init__(self) -> None:
        self.rank: int | None = None
        self.local: int | None = None
        self.when: float | None = None
        self.has_year = False
        self.level: Level = ""
        self.origin = ""
        self.frame = ""
        self.process = ""

    def meets(self, need: Need) -> bool:
        """Whether enough was said for a prefix that cannot be told from content otherwise."""
        if need == "record":
            return bool(self.level or self.origin or self.when is not None)
        if need == "torch":
            return "torch" in self.origin
        return need == "" or not self.level

    def take(self, found: re.Match[str], says: tuple[str, ...]) -> None:
        """Take over what a prefix says: the closest rank, level and origin to the text, the first time with a year."""
        for name in says:
            value = found[name]
            if value is None:
                continue
            if name == "rank":
                self.rank = int(value)
            elif name == "stamp":
                self.take_stamp(value)
            elif name == "level":
                self.level = LEVELS.get(value.upper(), self.level)
            elif name == "origin":
                self.origin = value
            elif name == "frame":
                self.frame = value
            elif name == "process":
                self.process = value
            else:
                self.local = int(value)

    def take_stamp(self, stamp: str) -> None:
        """Take a time, unless one with its year is known: the outer clock is the same for all of the file's lines."""
        if not self.has_year:
            when, has_year = read_stamp(stamp)
            if self.when is None or has_year:
                self.when, self.has_year = when, has_year


def _read_prefixes(text: str, said: _Said) -> int:
    """Return where the prefixes of `text` end, having told `said` what they say."""
    at = 0
    for _ in range(_PREFIXES_READ):
        for prefix in PREFIXES.get(text[at : at + 1], ()):
            if prefix.needs and not said.meets(prefix.needs):
                continue
            if found := prefix.match(text, at):
                said.take(found, prefix.says)
                at = found.end()
                break
        else:
            behind = _skip_bar(text, at)
            if behind == at:
                break
            at = behind
    if coded := _CODED.match(text, at):
        said.take_stamp(coded[1])
    elif not said.level and (spoken := _SPOKEN.match(text, at)):
        said.level = LEVELS[spoken[1].upper()]
    return at


def _skip_bar(text: str, at: int) -> int:
    """Return where a progress bar ends that something was written behind, for want of a line end; else `at`."""
    percent = text.find("%", at, at + _BAR_LABEL)
    if percent > 0 and text[percent - 1].isdigit() and (rest := _BAR_REST.match(text, percent)):
        return rest.end() if _SAYS_SOMETHING.search(text, rest.end()) else at
    return at


def _last_piece(text: str, said: _Said) -> str:
    """Return what carriage returns left on the screen; the rank is told by the prefix of the first piece."""
    first = text[: text.index("\r")]
    if first:
        head = _Said()
        _read_prefixes(_ESCAPES.sub("", first[:LINE_KEPT]), head)
        said.rank, said.local = head.rank, head.local
    end = len(text)
    for _ in range(_PIECES_TRIED):
        start = text.rfind("\r", 0, end) + 1
        piece = _clip(text[start:end])
        if _ESCAPES.sub("", piece).strip():
            return piece
        end = max(start - 1, 0)
    return ""


def _clip(text: str) -> str:
    if len(text) <= LINE_KEPT:
        return text
    return text[: LINE_KEPT - _TAIL - len(_GAP)] + _GAP + text[-_TAIL:]
