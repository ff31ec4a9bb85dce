"""Files with patches that somebody sent: a mail, an mbox with several, or a diff alone, read by git itself."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import SeriesError
from toolkit.git.command import GitCommand, base_environment

FROM = re.compile(rb"^From: ", re.MULTILINE)
DIFF = re.compile(rb"^diff --git ", re.MULTILINE)
BARE = re.compile(rb"^--- (a/([^\t\n]+))[^\n]*\n\+\+\+ (b/([^\t\n]+))[^\n]*\n(?=@@ )", re.MULTILINE)
FIELD = re.compile(r"^(Author|Email|Subject|Date): (.*)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Incoming:
    """A change that is to become a patch; its paths begin at the top of upstream's repository.

    `author` is `Name <address>`, `date` as git takes it; both and `message` are empty where a diff came alone.
    `address` and `commit` say where it is from, for people and programs, and are empty for a file. `what` names it in
    messages. `repository` is one of ours that has the commit and its `parent`, None where there is no more than a diff.
    """

    author: str
    date: str
    message: str
    diff: bytes
    what: str
    address: str = ""
    commit: str = ""
    parent: str = ""
    repository: Path | None = None


def read_mails(path: Path, scratch: Path) -> list[Incoming]:
    """Read the patches of a file in their order; SeriesError where one of them has no diff."""
    raw = path.read_bytes()
    if not FROM.search(raw.partition(b"\n\n")[0]):
        return [Incoming(author="", date="", message="", diff=_diff_of(raw, path.name), what=path.name)]
    scratch.mkdir(parents=True, exist_ok=True)
    git = GitCommand(scratch, base_environment(os.environ, scratch / "home"))
    (scratch / "mails").mkdir()
    git.output("mailsplit", "--keep-cr", "-omails", "--", str(path.absolute()))
    mails = sorted((scratch / "mails").iterdir())
    return [_read_mail(git, mail, _name(path, at, len(mails))) for at, mail in enumerate(mails, 1)]


def _read_mail(git: GitCommand, mail: Path, what: str) -> Incoming:
    message, patch = mail.with_suffix(".message"), mail.with_suffix(".patch")
    raw = git.output("mailinfo", "-b", "--encoding=UTF-8", str(message), str(patch), stdin=mail.read_bytes())
    fields = dict(FIELD.findall(raw.decode("utf-8", "replace")))
    body = message.read_bytes().decode("utf-8", "replace").strip("\n")
    return Incoming(
        author=f"{fields.get('Author', '')} <{fields.get('Email', '')}>",
        date=fields.get("Date", ""),
        message=f"{fields.get('Subject', '')}\n\n{body}".strip("\n") + "\n",
        diff=_diff_of(patch.read_bytes(), what),
        what=what,
    )


def _diff_of(raw: bytes, what: str) -> bytes:
    """Cut what stands before the diff; one that no git wrote gets the lines that git begins each file with."""
    start = DIFF.search(raw)
    if start is not None:
        return raw[start.start() :]
    start = BARE.search(raw)
    if start is None:
        raise SeriesError(
            f"{what} has no diff",
            hint="give a mail of `git format-patch`, an mbox of several, or what `git diff` wrote",
        )
    return BARE.sub(rb"diff --git \1 \3\n\g<0>", raw[start.start() :])


def _name(path: Path, at: int, count: int) -> str:
    return path.name if count == 1 else f"mail {at} of {count} in {path.name}"
