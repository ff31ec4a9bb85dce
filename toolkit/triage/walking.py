"""Go through a log of any size: stop only where a word of the rules stands, and at what belongs to it.

RE2 looks for all words at once, at memory speed and without case; a line without any is never looked at, unless an
incident is open. Memory does not grow with the log: one chunk and the one before it are held, and of incidents that
repeat only the first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from toolkit.triage.incidents import PATIENCE, Incident, Stream, finish
from toolkit.triage.lines import Line, peel
from toolkit.triage.patterns import compiled, fact_set, ignored_set, line_set, mark_set, rough_set, words_of
from toolkit.triage.progress import is_progress, step_of
from toolkit.triage.raw import LONGEST, common_indent, cut_line, lines_backwards
from toolkit.triage.records import inner_lines
from toolkit.triage.rules import RuleBook
from toolkit.triage.values import Evidence

KNOWN_LINES = 50_000
REPEATS = 20
"""A line that differs from earlier ones in digits only is looked at so many times."""

INCIDENTS_KEPT = 400
STREAMS_KEPT = 4096
"""What further processes say is taken for the file's own: a log of millions of ids must not fill the memory."""

STEP_LINES = 400
LINES_BACK = 20
TAIL = 262_144
"""So many bytes are looked back for the last step."""

CROWDED_PATIENCE = 400
"""So many lines of a file may come between two of one process, where several of them fail at once."""

TYPED = re.compile(r"(?:\++|\$|#|>>>) ")
"""A command as a shell shows it: what it asks for is a fact of the launch, what it searches for did not happen."""

PROGRESS_WORDS = re.compile(rb"step|iter|train|epoch|samples", re.IGNORECASE)
DIGITS = b"0123456789"


class Said(msgspec.Struct, kw_only=True):
    """What a log says of a fact, and where."""

    value: str
    evidence: Evidence


class LogRead(msgspec.Struct, kw_only=True):
    """What one log holds."""

    name: str
    incidents: list[Incident] = []
    facts: dict[str, Said] = {}
    progress: Evidence | None = None
    lines: int = 0
    bytes: int = 0


def read_log(name: str, rank: int | None, chunks: Iterable[bytes], book: RuleBook) -> LogRead:
    """Return what a log holds; `rank` is its file's, for lines that name none."""
    walker = _Walker(name, rank, book)
    for chunk in chunks:
        walker.take(chunk)
    return walker.end()


class _Walker:
    """Holds the place in one log, and its streams."""

    def __init__(self, name: str, rank: int | None, book: RuleBook) -> None:
        self._book = book
        self._words = words_of(book)
        self._rank = rank
        self._log = LogRead(name=name)
        self._streams: dict[tuple[int | None, str], Stream] = {}
        self._opened: dict[Stream, None] = {}
        self._steps: dict[int | None, tuple[int, int | None]] = {}
        self._last_stream: Stream | None = None
        self._known: dict[int, int] = {}
        self._repeated: dict[int, Incident] = {}
        self._signatures: dict[str, Incident] = {}
        self._attention = 0
        self._number = 1
        self._chunk = self._before = b""
        self._chunk_at = self._base = 0
        self._indent = b""

    def take(self, chunk: bytes) -> None:
        """Go through one chunk."""
        is_within = self._chunk != b"" and not self._chunk.endswith(b"\n")
        if not self._base:
            self._indent = common_indent(chunk[:TAIL])
        self._before, self._chunk, self._chunk_at = self._chunk, chunk, self._base
        counted = 0
        for start, end, at in self._places(chunk):
            if is_within and start == 0 and at < 0:  # More of a line so long that it came in pieces.
                continue
            self._number += chunk.count(b"\n", counted, start)
            counted = start
            self._look_at(cut_line(chunk, start, end, at), offset=self._chunk_at + start, is_word=at >= 0)
        self._number += chunk.count(b"\n", counted)
        self._base += len(chunk)

    def end(self) -> LogRead:
        """Close what is open and return all."""
        self._close_all()
        self._log.lines = self._number - (1 if self._chunk.endswith(b"\n") or not self._chunk else 0)
        self._log.bytes = self._base
        for incident in self._log.incidents:
            after = [line.rank for line in self._progress_after(incident)]
            incident.goes_on = any(rank in (None, incident.rank) for rank in after)
            incident.run_goes_on = bool(after)
        self._log.progress = self._last_progress()
        return self._log

    def _places(self, chunk: bytes) -> Iterator[tuple[int, int, int]]:
        """Yield the lines to look at: start, end, and where a word stands in it (-1: it has none)."""
        cursor, size = 0, len(chunk)
        while cursor < size:
            at, start = -1, cursor
            if self._attention <= 0:
                found = self._words.search(chunk, cursor)
                if found is None:
                    return
                at = found.start()
                start = chunk.rfind(b"\n", cursor, at) + 1 or cursor
            end = chunk.find(b"\n", start)
            end = size if end < 0 else end
            if at < 0:
                found = self._words.search(chunk, start, end)
                at = found.start() if found else -1
            yield start, end, at
            cursor = end + 1

    def _look_at(self, raw: bytes, *, offset: int, is_word: bool) -> None:
        self._attention -= 1
        key = hash(raw.translate(None, DIGITS))
        if is_word and self._known.get(key, 0) >= REPEATS and (key in self._repeated or self._is_dull(raw)):
            self._repeat(key, offset)
            return
        held = inner_lines(raw.removeprefix(self._indent).decode("utf-8", "replace"))
        for text in held:
            self._take_line(peel(text, self._number), key, offset, is_word=is_word or len(held) > 1)

    def _take_line(self, line: Line, key: int, offset: int, *, is_word: bool) -> None:
        if ignored_set(self._book).Match(line.text):
            return
        is_kept = is_word and self._is_kept(line)
        stream = self._stream_of(line)
        was_open = stream.open
        is_taken = stream.feed(line, offset=offset, is_hit=is_kept)
        if is_word and (is_kept or not is_taken) and len(self._known) < KNOWN_LINES:
            self._known[key] = self._known.get(key, 0) + 1 if is_kept else REPEATS
            if is_kept and stream.open is not None:
                self._repeated[key] = stream.open
        self._follow(stream, offset, is_new=stream.open is not was_open)

    def _follow(self, stream: Stream, offset: int, *, is_new: bool) -> None:
        """Read on where an incident is open, until nothing more comes of it."""
        incident = stream.open
        self._collect(stream)
        if incident is None:
            self._opened.pop(stream, None)
        else:
            self._opened[stream] = None
            if incident.last_offset == offset:
                self._last_stream = stream
                self._attention = CROWDED_PATIENCE if len(self._opened) > 1 else PATIENCE
            if is_new:
                incident.last_step = self._last_step(stream.rank, offset)
                incident.before = self._last_time(stream.rank, offset)
        if self._attention == 0:
            self._close_all()

    def _is_dull(self, raw: bytes) -> bool:
        """Whether a line, which is one that was seen to mean nothing but for its digits, means nothing with these."""
        return not rough_set(self._book).Match(raw.decode("utf-8", "replace"))

    def _is_kept(self, line: Line) -> bool:
        """Note what a line says of the launch, and tell whether a rule may be about it."""
        book = self._book
        for at in fact_set(book).Match(line.text) or ():
            fact = book.facts[at]
            found = compiled(fact.line).search(line.text)
            value = fact.value or (found.groupdict().get("value") or "" if found else "")
            self._log.facts[fact.name] = Said(value=value, evidence=self._evidence(line))
        if TYPED.match(line.text):
            return False
        is_loud = line.level in ("error", "fatal") and not is_progress(line.text)
        return is_loud or any(patterns.Match(line.text) for patterns in (line_set(book), mark_set(book)))

    def _repeat(self, key: int, offset: int) -> None:
        """Count a line that was looked at often enough, and remember where it stood last."""
        if (incident := self._repeated.get(key)) is not None:
            incident.count += 1
            incident.last_offset = offset

    def _stream_of(self, line: Line) -> Stream:
        """Return the stream of a line; one without any prefix goes on with what was said just before it."""
        has_prefix = line.rank is not None or line.level or line.process or line.when is not None
        last = self._last_stream
        if not has_prefix and last is not None and last.open is not None:
            return last
        rank = self._rank if line.rank is None else line.rank
        who = rank, line.process if rank is None else ""
        if who not in self._streams and len(self._streams) >= STREAMS_KEPT:
            who = self._rank, ""
        if who not in self._streams:
            self._streams[who] = Stream(file=self._log.name, rank=rank)
        return self._streams[who]

    def _close_all(self) -> None:
        """End every incident that is open."""
        for stream in self._opened:
            stream.close()
            self._collect(stream)
        self._opened.clear()

    def _collect(self, stream: Stream) -> None:
        """Keep a stream's incidents that have ended; of those that are the same, the first with their number."""
        while stream.done:
            incident = finish(stream.done.pop(0))
            if not incident.items:
                continue
            known = self._signatures.get(incident.signature)
            if known is not None:
                known.count += incident.count
                known.last_offset = incident.last_offset
            elif len(self._signatures) < INCIDENTS_KEPT:
                self._signatures[incident.signature] = incident
                self._log.incidents.append(incident)
                continue
            incident.items = []  # Repeated lines are still counted by it, which keeps it alive.

    def _last_step(self, rank: int | None, offset: int) -> int | None:
        """Return the step of the last line before an offset that tells of the process's progress."""
        after, before = self._steps.get(rank, (-1, None))
        told = (step_of(one.text) for one in self._backwards(offset, after=after) if one.rank in (None, rank))
        self._steps[rank] = offset, next((step for step in told if step is not None), before)
        return self._steps[rank][1]

    def _last_time(self, rank: int | None, offset: int) -> Line | None:
        """Return the nearest line before an offset that says a time: of this process, or of nobody."""
        held = self._chunk[max(0, offset - self._chunk_at - LONGEST) : offset - self._chunk_at]
        lines = (peel(raw.decode("utf-8", "replace"), 0) for raw in reversed(held.split(b"\n")[-LINES_BACK:]))
        return next((line for line in lines if line.when is not None and line.rank in (None, rank)), None)

    def _progress_after(self, incident: Incident) -> Iterator[Line]:
        lines = self._backwards(self._base, after=incident.last_offset)
        return (line for line in lines if is_progress(line.text))

    def _last_progress(self) -> Evidence | None:
        lines = self._backwards(self._base, number=self._number)
        return next((self._evidence(line) for line in lines if is_progress(line.text)), None)

    def _backwards(self, offset: int, *, after: int = -1, number: int = 0) -> Iterator[Line]:
        """Yield, last first, what may tell of progress before an offset (in line `number`), and behind another."""
        here = offset - self._chunk_at
        tail = self._before[-max(TAIL - here, 0) :] if here < TAIL else b""
        held, at = (tail + self._chunk[:here], self._chunk_at - len(tail)) if tail else (self._chunk, self._chunk_at)
        start, end = max(0, offset - at - TAIL, after - at), offset - at
        is_whole = at + start == 0
        left = STEP_LINES
        for back, line in enumerate(lines_backwards(held, start, end, is_whole=is_whole)):
            if left and PROGRESS_WORDS.search(line):
                left -= 1
                yield peel(line[:LONGEST].decode("utf-8", "replace"), number - back)

    def _evidence(self, line: Line) -> Evidence:
        rank = self._rank if line.rank is None else line.rank
        return Evidence(file=self._log.name, line=line.number, text=line.text, rank=rank)
