"""What is asked of one patch before anything is done with it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from toolkit.files import safe_relative_path, sha256_bytes
from toolkit.model import FileChange, Part, Patch
from toolkit.series.diff import FileDiff, parse_diff
from toolkit.series.gitlinks import gitlink_faults, is_gitlink, is_logged
from toolkit.series.mail import Mail, is_mangled, parse_mail
from toolkit.series.parts import classify

STATUSES = ("Pending", "Submitted", "Backport", "Denied", "Inappropriate")
"""OpenEmbedded's words for how a patch stands with upstream."""

STATUS = re.compile(r"(\S+)(?:\s+\[(.*\S.*)\])?$")
WITNESS = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*$")
FULL_BLOB = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64})$")
BINARY_DATA = re.compile(rb"^(literal|delta) \d+$", re.MULTILINE)

REGULAR_MODES = ("100644", "100755")
SYMLINK_MODE = "120000"


def read_patch(path: Path, number: int) -> tuple[Patch, list[str]]:
    """Read one patch file and everything that is wrong with it, in the order of the file."""
    raw = path.read_bytes()
    if is_mangled(raw):
        return _make_patch(path, number, raw, Mail(subject="", body="", trailers=(), diff=b""), []), [
            "its lines end in CRLF: something converted it after `git format-patch` wrote it (core.autocrlf, an editor,"
            " a mail program); take the original, and keep `*.patch -text` in .gitattributes"
        ]
    faults: list[str] = []
    mail = parse_mail(raw, faults)
    faults.extend(_trailer_faults(mail))
    files = parse_diff(mail.diff, faults)
    if is_logged(raw):
        faults.append("has a submodule's move as a log; export with `git format-patch --submodule=short`")
    elif not mail.diff:
        faults.append("has no diff")
    faults.extend(fault for file in files for fault in file_faults(file))
    faults.extend(_repeated_paths(files))
    return _make_patch(path, number, raw, mail, files), faults


def file_faults(file: FileDiff) -> Iterator[str]:
    """Say what is wrong with a patch's change to one file."""
    for path in dict.fromkeys((file.path, file.old_path)):
        yield from _path_faults(path)
    if is_gitlink(file):
        yield from gitlink_faults(file)
        return
    yield from _mode_faults(file)
    if file.binary is not None:
        yield from _binary_faults(file, file.binary)
    elif not _has_effect(file):
        yield f"names {file.path} without changing it"
    for number, hunk in enumerate(file.hunks, 1):
        if not hunk.leading and not hunk.trailing and max(hunk.old_start, hunk.new_start) > 1:
            # git puts such a hunk at the end of the file, wherever it was meant to go.
            yield f"hunk #{number} of {file.path} has no line of context; export with -U3 or more"


def _make_patch(path: Path, number: int, raw: bytes, mail: Mail, files: list[FileDiff]) -> Patch:
    return Patch(
        number=number,
        name=path.stem,
        path=path,
        sha256=sha256_bytes(raw),
        subject=mail.subject,
        body=mail.body,
        upstream_status="".join(mail.values("Upstream-Status")[:1]),
        witness="".join(mail.values("Witness")[:1]),
        fixes=tuple(mail.values("Fixes")),
        changes=tuple(_change(file) for file in files),
    )


def _change(file: FileDiff) -> FileChange:
    """Describe a change; a file that is renamed out of the native part is a native change too."""
    parts: set[Part] = {classify(file.path)} | ({classify(file.old_path)} if file.kind == "renamed" else set())
    native = is_gitlink(file) or "native" in parts
    return FileChange(
        path=file.path,
        old_path=file.old_path,
        kind=file.kind,
        part="native" if native else classify(file.path),
        is_gitlink=is_gitlink(file),
    )


def _trailer_faults(mail: Mail) -> Iterator[str]:
    for token, expected in (
        ("Upstream-Status", f"one of {', '.join(STATUSES)} with its [link or reason]"),
        ("Witness", "the name of its witness"),
    ):
        values = mail.values(token)
        if len(values) > 1:
            yield f"has {len(values)} `{token}:` trailers, one is expected"
        elif not values:
            misplaced = re.search(rf"^{token}:", mail.body, re.MULTILINE | re.IGNORECASE)
            where = "; the one in the message is not in its last paragraph" if misplaced else ""
            yield f"has no `{token}:` trailer, expected {expected}{where}"
    yield from _status_faults(mail.values("Upstream-Status")[:1])
    for name in mail.values("Witness")[:1]:
        if not WITNESS.match(name):
            yield f"`Witness: {name}` is not a name such as `aliased-reduction`"


def _status_faults(values: list[str]) -> Iterator[str]:
    for value in values:
        match = STATUS.match(value)
        word = match[1] if match else value
        if word not in STATUSES:
            yield f"`Upstream-Status: {value}` has an unknown word, expected one of {', '.join(STATUSES)}{_meant(word)}"
        elif match is None or not match[2]:
            yield f"`Upstream-Status: {value}` lacks its link or reason, expected `{word} [link or reason]`"


def _meant(word: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word.strip("[]:,").capitalize(), STATUSES, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _path_faults(path: str) -> Iterator[str]:
    try:
        safe_relative_path(path)
    except ValueError as fault:
        yield f"unsafe path: {fault}"
        return
    if path.endswith("/") or not path.isprintable():
        yield f"unsafe path: {path!r} is not a file's name"


def _mode_faults(file: FileDiff) -> Iterator[str]:
    for mode in dict.fromkeys((file.old_mode, file.new_mode)):
        if mode and mode not in REGULAR_MODES:
            kind = "a symlink" if mode == SYMLINK_MODE else f"mode {mode}"
            yield f"{file.path} is {kind}; only regular files can be patched"
    if file.old_mode and file.new_mode and file.old_mode != file.new_mode:
        yield f"changes the mode of {file.path} from {file.old_mode} to {file.new_mode}; a wheel would not carry that"


def _binary_faults(file: FileDiff, data: bytes) -> Iterator[str]:
    if not BINARY_DATA.search(data):
        yield f"the change of binary {file.path} has no data; export with `git format-patch --binary`"
    elif not (FULL_BLOB.match(file.old_blob) and FULL_BLOB.match(file.new_blob)):
        yield f"the change of binary {file.path} has no full index line; export with `git format-patch --full-index`"


def _has_effect(file: FileDiff) -> bool:
    if file.kind == "modified":
        # A change of mode is one, though refused for another reason.
        return file.old_mode != file.new_mode or any(hunk.before != hunk.after for hunk in file.hunks)
    return True


def _repeated_paths(files: list[FileDiff]) -> Iterator[str]:
    seen: set[str] = set()
    for file in files:
        if file.path in seen:
            yield f"names {file.path} twice"
        seen.add(file.path)
