"""The structure of a git diff: which files, which hunks, what they expect. Applying it is git's work, not ours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from toolkit.model import ChangeKind

NO_FILE = b"/dev/null"
SIGNATURES = (b"-- \n", b"--\n")
"""What ends the diff in a mail; an editor may have taken the blank at its end."""

HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(?: (.*))?$")
FIELD = re.compile(
    rb"(old mode|new mode|deleted file mode|new file mode|copy from|copy to|rename from|rename to"
    rb"|similarity index|dissimilarity index|index) (.*)$"
)
INDEX = re.compile(rb"([0-9a-f]+)\.\.([0-9a-f]+)(?: (\d+))?$")
ESCAPE = re.compile(rb"\\([abtnvfr\"\\]|[0-3][0-7]{2})")
ESCAPED = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Hunk:
    """One hunk: the lines it expects and the lines it leaves, each with its line end; line numbers count from 1.

    `heading` is the enclosing definition as git noted it, empty where there was none; `leading` and `trailing` count
    the lines of context; `raw` is the hunk as it stands in the file.
    """

    old_start: int
    new_start: int
    heading: bytes
    before: tuple[bytes, ...]
    after: tuple[bytes, ...]
    leading: int
    trailing: int
    raw: bytes

    def reversed(self) -> Hunk:
        """Return the hunk that takes this one's change out."""
        return replace(self, old_start=self.new_start, new_start=self.old_start, before=self.after, after=self.before)


@dataclass(frozen=True, kw_only=True, slots=True)
class FileDiff:
    """What a patch does to one file. `old_path` differs from `path` only for a rename or a copy.

    `binary` is the text of a binary hunk, None for a text file; `old_blob` and `new_blob` are the ids from the index
    line, empty without one; modes are empty where the diff says nothing of them.
    """

    path: str
    old_path: str
    kind: ChangeKind
    header: bytes
    hunks: tuple[Hunk, ...]
    binary: bytes | None
    old_mode: str
    new_mode: str
    old_blob: str
    new_blob: str

    @property
    def raw(self) -> bytes:
        """The whole section as git is to read it."""
        return self.header + b"".join(hunk.raw for hunk in self.hunks) + (self.binary or b"")

    @property
    def is_edit(self) -> bool:
        """Whether hunks turn one file that is there into another: neither a new file nor a deleted one."""
        return bool(self.hunks) and self.kind != "deleted" and (self.kind != "added" or self.old_path != self.path)

    def with_hunk(self, hunk: Hunk) -> bytes:
        """Return a diff with one of this file's hunks alone."""
        return self.header + hunk.raw


def parse_diff(raw: bytes, faults: list[str]) -> list[FileDiff]:
    """Read a diff's sections; a damaged one goes to `faults` and is left out."""
    found = []
    sections = list(_sections(raw))
    for number, lines in enumerate(sections, 1):
        try:
            found.append(_parse_section(lines, is_last=number == len(sections)))
        except ValueError as fault:
            faults.append(f"{_text(lines[0]).strip()}: {fault}")
    return found


def split_lines(raw: bytes) -> list[bytes]:
    """Split at LF alone, keeping it: a lone CR is a character like any other to git."""
    lines = [line + b"\n" for line in raw.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def unquote_path(raw: bytes) -> str:
    """Decode a path as git prints it, C-quoted or plain; raise ValueError for one that is not UTF-8."""
    if raw.startswith(b'"'):
        if len(raw) < 2 or not raw.endswith(b'"'):
            raise ValueError(f"the quotes of {_text(raw)} do not match")
        raw = ESCAPE.sub(_unescape, raw[1:-1])
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"the path {_text(raw)!r} is not UTF-8") from None


def _sections(raw: bytes) -> Iterator[list[bytes]]:
    lines: list[bytes] = []
    for line in split_lines(raw):
        if line.startswith(b"diff --git ") and lines:
            yield lines
            lines = []
        lines.append(line)
    if lines:
        yield lines


def _parse_section(lines: list[bytes], *, is_last: bool) -> FileDiff:
    fields, at = _parse_fields(lines)
    old_name, new_name, at = _parse_names(lines, at)
    header = b"".join(lines[:at])
    hunks: list[Hunk] = []
    binary = None
    if lines[at : at + 1] == [b"GIT binary patch\n"]:
        binary, at = _parse_binary(lines, at)
    while at < len(lines) and lines[at].startswith(b"@@ "):
        hunk, at = _parse_hunk(lines, at, number=len(hunks) + 1)
        hunks.append(hunk)
    if at < len(lines) and lines[at].startswith(b"Binary files "):
        binary, at = b"", at + 1
    _require_end(lines[at:], is_last=is_last)
    return _file_diff(lines[0], fields, old_name, new_name, header=header, hunks=tuple(hunks), binary=binary)


def _file_diff(
    first: bytes,
    fields: dict[str, bytes],
    old_name: bytes,
    new_name: bytes,
    *,
    header: bytes,
    hunks: tuple[Hunk, ...],
    binary: bytes | None,
) -> FileDiff:
    kind = _kind(fields)
    path, old_path = _paths(first, fields, old_name, new_name)
    index = INDEX.match(fields.get("index", b""))
    same_mode = _text(index[3] or b"") if index else ""
    return FileDiff(
        path=path,
        old_path=old_path,
        kind=kind,
        header=header,
        hunks=hunks,
        binary=binary,
        old_mode=_text(fields.get("old mode", fields.get("deleted file mode", b""))) or same_mode,
        new_mode=_text(fields.get("new mode", fields.get("new file mode", b""))) or same_mode,
        old_blob=_text(index[1]) if index else "",
        new_blob=_text(index[2]) if index else "",
    )


def _kind(fields: dict[str, bytes]) -> ChangeKind:
    if "new file mode" in fields or "copy to" in fields:
        return "added"
    if "deleted file mode" in fields:
        return "deleted"
    return "renamed" if "rename to" in fields else "modified"


def _paths(first: bytes, fields: dict[str, bytes], old_name: bytes, new_name: bytes) -> tuple[str, str]:
    """Return the path after and the path before, from the most telling lines that the section has."""
    for verb in ("rename", "copy"):
        if f"{verb} to" in fields:
            if f"{verb} from" not in fields:
                raise ValueError(f"`{verb} to` without `{verb} from`")
            return unquote_path(fields[f"{verb} to"]), unquote_path(fields[f"{verb} from"])
    names = [_strip_prefix(name) for name in (new_name, old_name) if name not in (b"", NO_FILE)]
    names = names or [_name_of_first_line(first.rstrip(b"\n"))]
    if names[0] != names[-1]:
        raise ValueError(f"it names {names[-1]!r} before and {names[0]!r} after without a rename")
    return names[0], names[0]


def _strip_prefix(name: bytes) -> str:
    prefix, slash, path = unquote_path(name).partition("/")
    if prefix not in ("a", "b") or not slash:
        raise ValueError(f"{_text(name)} has no a/ or b/ before it; export with diff.noprefix and mnemonicPrefix off")
    return path


def _name_of_first_line(first: bytes) -> str:
    """Return the one name that `diff --git a/NAME b/NAME` says twice."""
    names = first.removeprefix(b"diff --git ")
    middle = len(names) // 2
    if len(names) % 2 == 0 or names[middle : middle + 1] != b" ":
        raise ValueError("it names two files without a rename")
    old, new = _strip_prefix(names[:middle]), _strip_prefix(names[middle + 1 :])
    if old != new:
        raise ValueError(f"it names {old!r} before and {new!r} after without a rename")
    return new


def _parse_fields(lines: list[bytes]) -> tuple[dict[str, bytes], int]:
    fields: dict[str, bytes] = {}
    at = 1
    while at < len(lines) and (match := FIELD.match(lines[at].rstrip(b"\n"))):
        fields[_text(match[1])] = match[2]
        at += 1
    return fields, at


def _parse_names(lines: list[bytes], at: int) -> tuple[bytes, bytes, int]:
    if not (at + 1 < len(lines) and lines[at].startswith(b"--- ") and lines[at + 1].startswith(b"+++ ")):
        return b"", b"", at
    # git ends a name that has a space with a tab, so that others can find where it ends.
    old_name, new_name = (line[4:].rstrip(b"\n").partition(b"\t")[0] for line in lines[at : at + 2])
    return old_name, new_name, at + 2


def _parse_binary(lines: list[bytes], at: int) -> tuple[bytes, int]:
    end = at + 1
    while end < len(lines) and lines[end] not in SIGNATURES:
        end += 1
    return b"".join(lines[at:end]), end


def _parse_hunk(lines: list[bytes], at: int, *, number: int) -> tuple[Hunk, int]:
    match = HUNK.match(lines[at].rstrip(b"\n"))
    if match is None:
        raise ValueError(f"hunk #{number} has a damaged first line {_text(lines[at]).strip()!r}")
    wanted = (int(match[2] or 1), int(match[4] or 1))
    marks, before, after = _parse_body(lines[at + 1 :], *wanted)
    if (len(before), len(after)) != wanted:
        raise ValueError(
            f"hunk #{number} is damaged: its first line promises {wanted[0]} old and {wanted[1]} new lines,"
            f" it has {len(before)} and {len(after)}"
        )
    end = at + 1 + len(marks)
    changes = [mark for mark in marks if mark != b"\\"]
    return Hunk(
        old_start=int(match[1]), new_start=int(match[3]), heading=(match[5] or b"").rstrip(), before=tuple(before),
        after=tuple(after), leading=_context(changes), trailing=_context(changes[::-1]), raw=b"".join(lines[at:end]),
    ), end  # fmt: skip


def _parse_body(lines: list[bytes], old_count: int, new_count: int) -> tuple[list[bytes], list[bytes], list[bytes]]:
    """Return the mark of every line that belongs to a hunk, the old lines and the new lines."""
    marks: list[bytes] = []
    before: list[bytes] = []
    after: list[bytes] = []
    for line in lines:
        mark = line[:1]
        if mark == b"\\" and marks:
            _drop_newline(marks[-1], before, after)
        elif mark not in (b" ", b"-", b"+", b"\n") or (len(before) >= old_count and len(after) >= new_count):
            break
        else:
            # An empty line of context may have lost its blank on the way; git reads it all the same.
            content = line[1:] or mark
            before.extend([content] if mark != b"+" else [])
            after.extend([content] if mark != b"-" else [])
        marks.append(mark)
    return marks, before, after


def _drop_newline(last_mark: bytes, before: list[bytes], after: list[bytes]) -> None:
    """Take the line end from the line that `\\ No newline at end of file` follows."""
    for side, other in ((before, b"+"), (after, b"-")):
        if side and last_mark != other:
            side[-1] = side[-1].removesuffix(b"\n")


def _context(marks: list[bytes]) -> int:
    return next((count for count, mark in enumerate(marks) if mark in b"+-"), len(marks))


def _require_end(rest: list[bytes], *, is_last: bool) -> None:
    for line in rest:
        if is_last and line in SIGNATURES:
            return
        if line.strip():
            raise ValueError(f"unexpected line {_text(line).rstrip()!r} after its end")


def _unescape(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code, 8)]) if len(code) == 3 else ESCAPED.get(code, code)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")
