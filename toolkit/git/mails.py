"""Writing patch files of commits that are no one's: git's own header and diffstat, without any base at hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import CommandError
from toolkit.git.history import NORMAL_FORM
from toolkit.git.repository import git_in, write_attributes

NOBODY = "toolkit <toolkit@example.invalid>"


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """One commit to be: its message, its author as `Name <address>`, a date that git reads, and files on both sides."""

    message: str
    author: str
    date: str
    before: Mapping[str, bytes]
    after: Mapping[str, bytes]


def render_mails(drafts: Sequence[Draft], folder: Path) -> list[bytes]:
    """Return the patch file of each draft in normal form; `folder` is made, for a repository that nothing else uses."""
    if not drafts:
        return []
    repository = folder / "repository"
    repository.mkdir(parents=True)
    git = git_in(repository)
    git.output("init", "--quiet", "--bare", "--template=", str(repository))
    write_attributes(repository)
    git.output("fast-import", "--quiet", "--date-format=rfc2822", stdin=b"".join(_stream(drafts)))
    ends = [name for number in range(len(drafts)) for name in (f"after/{number}", f"^before/{number}")]
    printed = folder / "printed"
    git.output("format-patch", "--quiet", "--always", *NORMAL_FORM, "-o", str(printed), *ends)
    made = [path.read_bytes() for path in sorted(printed.iterdir(), key=lambda path: int(path.name.partition("-")[0]))]
    if len(made) != len(drafts):
        raise CommandError("`git format-patch` left out a commit", argv=("git", "format-patch"), returncode=0)
    return made


def _stream(drafts: Sequence[Draft]) -> Iterator[bytes]:
    """Write what fast-import reads; the committers' dates keep the drafts in their order."""
    for number, draft in enumerate(drafts):
        day = f"{number // 86400 + 1} Jan 2000 {number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02} +0000"
        yield from _commit(f"before/{number}", "", NOBODY, day, day, "before\n", draft.before, 2 * number + 1)
        parent = f"from :{2 * number + 1}\ndeleteall\n"
        yield from _commit(
            f"after/{number}", parent, draft.author, draft.date, day, draft.message, draft.after, 2 * number + 2
        )


def _commit(
    ref: str, parent: str, author: str, date: str, day: str, message: str, files: Mapping[str, bytes], mark: int
) -> Iterator[bytes]:
    yield f"commit refs/heads/{ref}\nmark :{mark}\nauthor {author} {date}\ncommitter {NOBODY} {day}\n".encode()
    yield b"data %d\n%s\n" % (len(message.encode()), message.encode())
    yield parent.encode()
    for path, raw in files.items():
        yield f"M 100644 inline {_quoted(path)}\ndata {len(raw)}\n".encode() + raw + b"\n"


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
