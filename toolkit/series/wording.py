"""Whether a patch's message says what its reader needs: from whom and when, what it does, what fails without it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from toolkit.series.lines import PatchFault
from toolkit.series.mail import Mail, parse_trailers

SUBJECT_LENGTH = 72
"""Letters of a subject that `git log --oneline`, and whoever lists patches, can show."""

SENTENCES = 2
SENTENCE_END = re.compile(r"[.!?:](?=\s|\Z)")
FAULT_WORDS = re.compile(
    r"\b(fail\w*|\w*errors?|\w*exception|rais(e|es|ed|ing)|wrong\w*|crash\w*|abort\w*|hangs?|deadlock\w*|corrupt\w*"
    r"|loses?|lost|ignor(e|es|ed|ing)|silently|cannot|refus(e|es|ed|ing)|missing|overflow\w*|leaks?|instead of|nan"
    r"|differ(s|ed|ent)?|off by)\b",
    re.IGNORECASE,
)
"""Words without one of which nobody has said what goes wrong."""

LINK = re.compile(r"https?://\S+\.\S+|(?<![0-9a-f])([0-9a-f]{64}|[0-9a-f]{40})(?![0-9a-f])")


def wording_faults(raw: bytes, mail: Mail) -> Iterator[PatchFault]:
    """Find what is wrong with a message that git would take all the same."""
    yield from _header_faults(raw, mail)
    yield from _subject_faults(raw, mail.subject)
    yield from _body_faults(raw, mail)
    for status in mail.values("Upstream-Status")[:1]:
        if status.startswith("Backport") and not LINK.search(status):
            what = f"`Upstream-Status: {status}` has no link: expected upstream's commit, as an address or its full id"
            yield PatchFault(what=what, line=line_of(raw, "Upstream-Status:"))


def line_of(raw: bytes, start: str) -> int:
    """Return the line of a patch file, from 1, that begins with a word, 0 where there is none."""
    for number, line in enumerate(raw.split(b"\n"), 1):
        if line.lower().startswith(start.lower().encode()):
            return number
    return 0


def _header_faults(raw: bytes, mail: Mail) -> Iterator[PatchFault]:
    if not mail.author.strip("<> "):
        yield PatchFault(what="its `From:` is not `Name <address>`", line=line_of(raw, "From:"))
    if mail.date and not _is_date(mail.date):
        what = f"its `Date: {mail.date}` is no date of a mail, expected one such as `Tue, 1 Sep 2026 00:00:00 +0000`"
        yield PatchFault(what=what, line=line_of(raw, "Date:"))


def _is_date(value: str) -> bool:
    """Whether a date is one of RFC 2822, with its zone; the library for it is loaded only here."""
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(value).tzinfo is not None
    except (TypeError, ValueError):
        return False


def _subject_faults(raw: bytes, subject: str) -> Iterator[PatchFault]:
    line = line_of(raw, "Subject:")
    if not subject.strip():
        yield PatchFault(what="its subject is empty; expected what it does, in a few words", line=line)
    if len(subject) > SUBJECT_LENGTH:
        what = f"its subject has {len(subject)} letters, expected {SUBJECT_LENGTH} at most; the body has room for more"
        yield PatchFault(what=what, line=line)
    if subject.rstrip().endswith("."):
        yield PatchFault(what="its subject ends with a dot, expected none: it is a title", line=line)


def _body_faults(raw: bytes, mail: Mail) -> Iterator[PatchFault]:
    line = line_of(raw, "Subject:")
    text = _without_trailers(mail.body)
    prose = "\n".join(part for part in text.splitlines() if not part.startswith(("    ", "\t")))
    if len(SENTENCE_END.findall(prose)) < SENTENCES:
        what = f"its body says nothing: expected what fails without it, why, and how that was proven, in {SENTENCES}"
        yield PatchFault(what=f"{what} sentences or more", line=line)
    elif not FAULT_WORDS.search(text):
        what = "its body has no line that tells what fails without it: expected the error's text, or the wrong value"
        yield PatchFault(what=what, line=line)


def _without_trailers(body: str) -> str:
    """Return a message's body without its last paragraph, where that is its trailers."""
    if not parse_trailers(body):
        return body
    return "\n\n".join(re.split(r"\n[ \t]*\n", body.strip())[:-1])
