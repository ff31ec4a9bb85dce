"""What a patch file in normal form is made of, and what it is called; the file itself is written by git."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from toolkit.series.diff import FileDiff, Hunk

CONTEXT = 3
SLUG_LENGTH = 52
"""Letters of a file name that come from the subject, as many as `git format-patch` takes."""

ENDS_MESSAGE = re.compile(r"(diff -|Index: |---(\s|$))")
"""Where `git am` sees the end of a message, and the diffstat or the diff begin."""

ENDS_MAIL = re.compile(r"From \S+.*\d:\d\d.*\d{4}")
"""Where `git am` sees the next mail begin."""

LOOKS_LIKE_HEADER = re.compile(r"(From|Date|Subject):\s", re.IGNORECASE)
"""What `git am` takes out of the first lines of a message."""

SHORT_INDEX = re.compile(rb"^index (?!([0-9a-f]{40}|[0-9a-f]{64})\.\.([0-9a-f]{40}|[0-9a-f]{64})\b)", re.MULTILINE)

TAGGED = re.compile(r"\[[^\]]*(PATCH|RFC|RESEND)[^\]]*\]", re.IGNORECASE)


def file_name(number: int, slug: str) -> str:
    """Return the name of a patch's file."""
    return f"{number:04}-{slug}.patch"


def slug_of(subject: str, taken: Iterable[str] = ()) -> str:
    """Make the part of a file name that comes from the subject: lower case, words joined by `-`, none that is taken."""
    plain = unicodedata.normalize("NFKD", subject).encode("ascii", "ignore").decode().lower()
    words = re.findall(r"[a-z0-9]+", plain) or ["patch"]
    slug = words[0][:SLUG_LENGTH]
    for word in words[1:]:
        if len(slug) + 1 + len(word) > SLUG_LENGTH:
            break
        slug += f"-{word}"
    known = set(taken)
    return next(name for name in _numbered(slug) if name not in known)


def slug_in(name: str) -> str:
    """Return a patch's name without its number."""
    return name.partition("-")[2]


def context_of(files: Sequence[FileDiff]) -> int:
    """Return with how many lines of context a diff was made: what `git diff -U` needs to show it so again.

    A hunk that does not begin a file shows as many before its first change; one that does may show fewer, and is no
    sign. Where there is none, it is what git takes by itself.
    """
    hunks = [hunk for file in files if file.is_edit for hunk in file.hunks]
    shown = max((_most_context(hunk) for hunk in hunks), default=0)
    is_sure = any(hunk.old_start > 1 for hunk in hunks)
    return shown if is_sure and shown else max(shown, CONTEXT)


def message_faults(subject: str, body: str) -> Iterator[str]:
    """Say what in a message would not come out of a patch file again as it went in, ours or `git am`'s way."""
    if not subject.strip():
        yield "the message has no subject"
    if TAGGED.match(subject):
        yield f"the subject begins with {subject.split(']')[0]}], which whoever reads the patch takes away"
    lines = body.split("\n")
    for line in lines:
        if ENDS_MESSAGE.match(line):
            yield f"the line {line!r} would end the message there; indent it"
        elif ENDS_MAIL.match(line):
            yield f"the line {line!r} would begin another mail there; indent it"
    if lines and LOOKS_LIKE_HEADER.match(lines[0]):
        yield f"the body's first line {lines[0]!r} would be taken for a header; indent it, or put text before it"


def form_faults(files: Sequence[FileDiff]) -> Iterator[str]:
    """Say where a diff is not in normal form, as far as that can be seen without the files that it is for."""
    for file in files:
        if SHORT_INDEX.search(file.header):
            yield f"the index line of {file.path} has shortened ids"
        moved = 0
        for number, hunk in enumerate(file.hunks, 1):
            yield from (f"hunk #{number} of {file.path} {fault}" for fault in _hunk_faults(hunk))
            if file.is_edit and _begins(hunk.new_start, hunk.after) != _begins(hunk.old_start, hunk.before) + moved:
                yield f"hunk #{number} of {file.path} says that it goes to line {hunk.new_start}, which is not so"
            moved += len(hunk.after) - len(hunk.before)


def _hunk_faults(hunk: Hunk) -> Iterator[str]:
    first, wanted = hunk.raw.partition(b"\n")[0], _range_line(hunk)
    if not first.startswith(wanted):
        yield f"begins with {_text(first)!r}, expected {_text(wanted)!r}"
    if b"\n\n" in hunk.raw:
        yield "has an empty line that lost its blank"


def _begins(start: int, lines: Sequence[bytes]) -> int:
    """Return where a side of a hunk begins: for one without lines git names the line before."""
    return start if lines else start + 1


def _numbered(slug: str) -> Iterator[str]:
    yield slug
    number = 2
    while True:
        yield f"{slug}-{number}"
        number += 1


def _most_context(hunk: Hunk) -> int:
    """Return the least context under which git shows a hunk as one: it joins changes with twice as much between."""
    between = [len(run) for run in re.findall(rb" +", _marks(hunk).strip(b" "))]
    return max(hunk.leading, hunk.trailing, *((length + 1) // 2 for length in between))


def _marks(hunk: Hunk) -> bytes:
    return b"".join(line[:1] if line else b" " for line in hunk.raw.split(b"\n")[1:-1]).replace(b"\\", b"")


def _range_line(hunk: Hunk) -> bytes:
    old, new = (
        _range(start, len(lines)) for start, lines in ((hunk.old_start, hunk.before), (hunk.new_start, hunk.after))
    )
    return b"@@ -%s +%s @@" % (old, new)


def _range(start: int, count: int) -> bytes:
    return b"%d" % start if count == 1 else b"%d,%d" % (start, count)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")
