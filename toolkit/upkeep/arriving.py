"""A change of upstream's made ready for a series: its paths cut, its message kept, our trailers under it."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from toolkit.errors import SeriesError, UsageError
from toolkit.git import split_message
from toolkit.prove import load_catalogue
from toolkit.schema import did_you_mean
from toolkit.series.diff import FileDiff, parse_diff
from toolkit.series.gitlinks import is_gitlink
from toolkit.series.write import ENDS_MAIL, ENDS_MESSAGE
from toolkit.upkeep.sent import Incoming
from toolkit.upkeep.trailers import value_of, with_trailers

AUTHOR = re.compile(r"[^<>\n]+ <[^<>\s]*>\Z")


@dataclass(frozen=True, kw_only=True, slots=True)
class Wishes:
    """What a person says about an import; empty for what the origin says itself.

    `only` and `leave_out` are files or folders of upstream's repository. `author` and `message` are for a diff alone.
    """

    witness: str = ""
    status: str = ""
    only: tuple[str, ...] = ()
    leave_out: tuple[str, ...] = ()
    author: str = ""
    message: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrival:
    """A change as it is to be committed: `files` and `diff` begin at the series' folder, `message` has our trailers."""

    incoming: Incoming
    files: tuple[FileDiff, ...]
    message: str
    author: str
    date: str
    left_out: tuple[str, ...]
    subfolder: str = ""

    @property
    def diff(self) -> bytes:
        """What git is to apply."""
        return b"".join(file.raw for file in self.files)

    @property
    def subject(self) -> str:
        """The first paragraph of the message."""
        return split_message(self.message)[0]

    @property
    def mail(self) -> bytes:
        """The change as a patch file that this project can read, though not in normal form."""
        subject, body = split_message(self.message)
        head = f"From: {self.author}\nDate: {self.date}\nSubject: [PATCH] {subject}\n\n{body}\n---\n\n"
        return head.encode() + self.diff


def prepare_arrival(
    incoming: Incoming, wishes: Wishes, *, subfolder: str, known: Collection[str], is_whole: bool, verify: Path,
    status: str,
) -> Arrival:  # fmt: skip
    """Choose and cut a change's paths, and write its message.

    `known` are the files of the base; where they are all of upstream's (`is_whole`), new ones may lie anywhere.
    `status` is the Upstream-Status where neither the wishes nor the message have one. Raises UsageError, with all
    paths that are outside of the base, unless a person left them out, and for a witness that there is not.
    """
    faults: list[str] = []
    files = parse_diff(incoming.diff, faults)
    if faults or not files:
        raise SeriesError(f"the diff of {incoming.what} cannot be read", details=faults)
    kept, left_out = _choose(files, wishes, incoming)
    outside = [f"{file.path}: {why}" for file in kept if (why := _why_outside(file, subfolder, known, is_whole))]
    if outside:
        raise UsageError(
            f"{incoming.what} changes {_count(outside)} outside of what the series is for",
            details=outside,
            hint="leave them out, if what is left does its work without them: --leave-out PATH (a folder too); or take "
            "what is wanted: --only PATH",
        )
    author, date, message = _who_and_what(incoming, wishes)
    trailers = [
        ("Upstream-Status", wishes.status or value_of(message, "Upstream-Status") or status),
        ("Witness", _require_witness(wishes.witness or value_of(message, "Witness"), verify, incoming)),
        *([("Origin", f"{incoming.address} {incoming.commit}")] if incoming.commit else []),
        *([("Left-out", ", ".join(left_out))] if left_out else []),
    ]
    if not trailers[0][1]:
        raise UsageError(
            f"nothing says how {incoming.what} stands with upstream",
            hint="say it: --status 'Submitted [LINK]', or Backport, Pending, Denied, Inappropriate with its [reason]",
        )
    return Arrival(
        incoming=incoming, files=tuple(_cut(file, subfolder) for file in kept), author=author, date=date,
        message=with_trailers(_without_ends(message), trailers), left_out=tuple(left_out), subfolder=subfolder,
    )  # fmt: skip


# --- paths -----------------------------------------------------------------------------------------------------


def _choose(
    files: Sequence[FileDiff], wishes: Wishes, incoming: Incoming
) -> tuple[list[FileDiff], list[str]]:  # fmt: skip
    """Split a change's files into those that are taken and the paths of those that a person left out."""
    for pattern in (*wishes.only, *wishes.leave_out):
        if not any(_is_at(file.path, pattern) for file in files):
            raise UsageError(
                f"{incoming.what} changes nothing at {pattern!r}{did_you_mean(pattern, [file.path for file in files])}",
                hint=f"it changes {', '.join(file.path for file in files)}",
            )
    kept = [
        file
        for file in files
        if (not wishes.only or any(_is_at(file.path, pattern) for pattern in wishes.only))
        and not any(_is_at(file.path, pattern) for pattern in wishes.leave_out)
    ]
    if not kept:
        raise UsageError(f"nothing of {incoming.what} is left", hint="leave less of it out")
    return kept, [file.path for file in files if file not in kept]


def _is_at(path: str, pattern: str) -> bool:
    return path == pattern.rstrip("/") or path.startswith(f"{pattern.rstrip('/')}/")


def _why_outside(file: FileDiff, subfolder: str, known: Collection[str], is_whole: bool) -> str:
    """Say why a file is none of the base's, or nothing."""
    for path in (file.old_path, file.path):
        if subfolder and not path.startswith(f"{subfolder}/"):
            return f"it is not below {subfolder}/"
    old, new = (path.removeprefix(f"{subfolder}/") for path in (file.old_path, file.path))
    if is_gitlink(file):
        return ""
    if (file.kind != "added" or old != new) and old not in known:
        return "the base has no such file"
    top = new.partition("/")[0]
    if not is_whole and new not in known and not any(path.startswith(f"{top}/") for path in known):
        return f"the base has no folder {top}/"
    return ""


def _cut(file: FileDiff, subfolder: str) -> FileDiff:
    """Return a file's change with its paths from the subfolder on."""
    if not subfolder:
        return file
    prefix = re.escape(f"{subfolder}/".encode())
    header = re.sub(rb"^((?:---|\+\+\+) \"?[ab]/)" + prefix, rb"\1", file.header, flags=re.MULTILINE)
    header = re.sub(rb"^((?:rename|copy) (?:from|to) \"?)" + prefix, rb"\1", header, flags=re.MULTILINE)
    first, mark, rest = header.partition(b"\n")
    first = re.sub(rb"(?<= )(\"?[ab]/)" + prefix, rb"\1", first)
    old, new = (path.removeprefix(f"{subfolder}/") for path in (file.old_path, file.path))
    return replace(file, header=first + mark + rest, old_path=old, path=new)


def _count(paths: Sequence[str]) -> str:
    return "a file" if len(paths) == 1 else f"{len(paths)} files"


# --- message ---------------------------------------------------------------------------------------------------


def _who_and_what(incoming: Incoming, wishes: Wishes) -> tuple[str, str, str]:
    """Return author, date and message; of a diff alone a person says who and what, and the date is now."""
    if incoming.message:
        if wishes.author or wishes.message:
            raise UsageError(
                f"{incoming.what} has an author and a message of its own", hint="leave --author and --message out"
            )
        return incoming.author, incoming.date, incoming.message
    if not (wishes.author and wishes.message):
        raise UsageError(
            f"{incoming.what} is a diff alone: it does not say who made it, nor what it is for",
            hint="say it: --author 'NAME <ADDRESS>' --message 'SUBJECT'",
        )
    if not AUTHOR.match(wishes.author):
        raise UsageError(f"--author {wishes.author!r} is not NAME <ADDRESS>")
    return wishes.author, f"{int(time.time())} +0000", wishes.message.strip("\n") + "\n"


def _require_witness(name: str, verify: Path, incoming: Incoming) -> str:
    """Return a witness's name once there is one of that name."""
    catalogue = load_catalogue(verify)
    known = sorted(name for name, spec in catalogue.items() if spec.witness)
    if not name:
        raise UsageError(
            f"nothing says what witnesses the fault that {incoming.what} is for",
            hint=f"name one with --witness: {', '.join(known) or 'there is none yet'}",
        )
    if name not in catalogue:
        raise UsageError(
            f"there is no witness {name!r}{did_you_mean(name, known)}; nothing was written",
            hint=f"write it first, as a module below {verify / 'witnesses'}, with an entry in "
            f'{verify / "checks.json"} that has both sides and "witness": true',
        )
    if not catalogue[name].witness:
        raise UsageError(f"{name!r} is a check, not a witness", hint=f"known witnesses: {', '.join(known)}")
    return name


def _without_ends(message: str) -> str:
    """Indent the lines of a message that would end it, or begin another, in a mail."""
    return "\n".join(_indented(message.split("\n")))


def _indented(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield f" {line}" if ENDS_MESSAGE.match(line) or ENDS_MAIL.match(line) else line
