"""Bare repositories of ours: what they hold is read, and never changed by what is done with it."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import CommandError, SourceError
from toolkit.files import temporary_directory
from toolkit.git.command import RAW_FILES, GitCommand, base_environment
from toolkit.git.listing import EXECUTABLE, FILE, GITLINK, Listing, gitlinks, judge_symlinks, parse_listing, symlinks

MARKS = "refs/toolkit"
"""Where the refs stand that say of a commit that it is whole here."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeEdit:
    """One change to a tree: a file put there, or a submodule's commit; with neither, the path is taken away."""

    path: str
    source: Path | None = None
    commit: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Tree:
    """A tree by its id, with all that it holds; judged, so that it may be written."""

    id: str
    entries: Listing


def make_repository(folder: Path, commit: str) -> None:
    """Make an empty bare repository in a folder, for commits with ids like that one's."""
    folder.mkdir(parents=True, exist_ok=True)
    form = "sha256" if len(commit) == 64 else "sha1"
    git_in(folder).output("init", "--quiet", "--bare", "--template=", f"--object-format={form}", str(folder))


def git_in(folder: Path, **variables: str) -> GitCommand:
    """Return the way to run git on the repository in a folder; `variables` are added to its environment."""
    environment = base_environment(os.environ, folder / "home") | {"GIT_DIR": str(folder), "GIT_NO_LAZY_FETCH": "1"}
    return GitCommand(folder, environment | variables)


def is_marked(folder: Path, commit: str) -> bool:
    """Whether a commit was whole here once."""
    return git_in(folder).attempt("rev-parse", "--verify", "--quiet", f"{MARKS}/{commit}").code == 0


def mark(folder: Path, commit: str) -> None:
    """Note that a commit is whole here."""
    git_in(folder).output("update-ref", f"{MARKS}/{commit}", commit)


def missing_part(folder: Path, commit: str) -> str:
    """Say what keeps a repository from having a commit with its whole tree, or nothing where it has."""
    git = git_in(folder)
    found = git.attempt("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}")
    if found.code != 0:
        return f"there is no commit {commit}"
    if (name := found.stdout.decode().strip()) != commit:
        return f"{commit} is no commit, but leads to the commit {name}"
    answer = git.attempt("rev-list", "--objects", "--max-count=1", "--quiet", commit)
    return (answer.stderr.strip().splitlines() or ["its tree is not whole"])[-1] if answer.code != 0 else ""


def commit_time(folder: Path, commit: str) -> int:
    """Return when a commit was made, in seconds since 1970."""
    return int(git_in(folder).output("show", "--no-patch", "--no-show-signature", "--format=%ct", commit))


def read_tree(folder: Path, commit: str, *, what: str) -> Tree:
    """List a commit's tree; SourceError for one that may not be written to a disk."""
    git = git_in(folder)
    return list_tree(git, git.output("rev-parse", f"{commit}^{{tree}}").decode().strip(), what=what)


def read_blobs(git: GitCommand, ids: Sequence[str]) -> dict[str, bytes]:
    """Return the bytes of some blobs by id."""
    if not ids:
        return {}
    raw = git.output("cat-file", "--batch", stdin="".join(f"{name}\n" for name in ids).encode())
    found = {}
    start = 0
    for name in ids:
        end = raw.index(b"\n", start)
        _, kind, *size = raw[start:end].split(b" ")
        if kind != b"blob":
            raise CommandError(
                f"{git.folder} has no file {name}", argv=("git", "cat-file"), returncode=0,
                hint="remove that folder; it is fetched again",
            )  # fmt: skip
        start = end + 1 + int(size[0]) + 1
        found[name] = raw[end + 1 : start - 1]
    return found


def edit_tree(folder: Path, commit: str, edits: Sequence[TreeEdit], *, what: str) -> Tree:
    """Return the tree that edits make of a commit's; the repository stays as it is."""
    with temporary_directory("toolkit-tree-") as scratch:
        (scratch / "objects").mkdir()
        git = git_in(
            folder,
            GIT_INDEX_FILE=str(scratch / "index"),
            GIT_OBJECT_DIRECTORY=str(scratch / "objects"),
            GIT_ALTERNATE_OBJECT_DIRECTORIES=_quoted(folder / "objects"),
        )
        return write_edits(git, commit, edits, what=what)


def write_edits(git: GitCommand, commit: str, edits: Sequence[TreeEdit], *, what: str) -> Tree:
    """Fill the index with a commit's tree and the edits, and return the tree that it makes."""
    git.output("read-tree", commit)
    links = gitlinks(list_tree(git, commit, what=what).entries) if edits else {}
    ids = _hash_files(git, [edit.source for edit in edits if edit.source is not None])
    lines = [_index_line(edit, ids, len(commit)) for edit in sorted(edits, key=lambda edit: not _is_removal(edit))]
    git.output("update-index", "-z", "--index-info", stdin=b"".join(lines))
    tree = list_tree(git, git.output("write-tree").decode().strip(), what=what)
    if lost := links.keys() - tree.entries.keys() - {edit.path for edit in edits}:
        raise SourceError(f"{what}: a patch puts a file into the submodule {min(lost)!r}, which was not fetched")
    return tree


def list_tree(git: GitCommand, tree: str, *, what: str) -> Tree:
    """List and judge a tree."""
    entries = parse_listing(git.output("ls-tree", "-r", "-z", "--full-tree", tree), what=what)
    links = symlinks(entries)
    texts = read_blobs(git, [entry.id for entry in links])
    judge_symlinks(entries, {entry.path: texts[entry.id] for entry in links}, what=what)
    return Tree(id=tree, entries=entries)


def read_settings(path: Path, *, what: str) -> list[tuple[str, str]]:
    """List the keys and values of a file in the format of git's configuration; SourceError where git cannot."""
    git = GitCommand(path.parent, base_environment(os.environ, path.parent / "home"))
    answer = git.attempt("config", "--file", str(path), "--no-includes", "--null", "--list")
    if answer.code != 0:
        raise SourceError(f"{what} cannot be read", details=answer.stderr.strip().splitlines()[-1:])
    pairs = (entry.partition("\n") for entry in answer.stdout.decode("utf-8", "replace").split("\0") if entry)
    return [(key, value) for key, _, value in pairs]


def write_attributes(folder: Path) -> None:
    """Keep git from converting any file on its way into or out of a repository's work tree."""
    (folder / "info").mkdir(exist_ok=True)
    (folder / "info" / "attributes").write_text(RAW_FILES, encoding="ascii")


def _hash_files(git: GitCommand, files: Sequence[Path]) -> Mapping[Path, str]:
    if not files:
        return {}
    listed = "".join(f"{_quoted(path)}\n" for path in files)
    printed = git.output("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=os.fsencode(listed))
    return dict(zip(files, printed.decode().split(), strict=True))


def _quoted(path: Path) -> str:
    """Write a path as git reads it in a list, whatever letters it has."""
    text = str(path.absolute())
    for letter, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n")):
        text = text.replace(letter, escape)
    return f'"{text}"'


def _is_removal(edit: TreeEdit) -> bool:
    return edit.source is None and edit.commit is None


def _index_line(edit: TreeEdit, ids: Mapping[Path, str], length: int) -> bytes:
    if edit.source is not None:
        mode = EXECUTABLE if edit.source.stat().st_mode & stat.S_IXUSR else FILE
        head = f"{mode} {ids[edit.source]}"
    else:
        head = f"{GITLINK} {edit.commit}" if edit.commit else f"0 {'0' * length}"
    return f"{head}\t{edit.path}\0".encode()
