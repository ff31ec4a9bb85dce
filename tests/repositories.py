"""Real git repositories for tests: made on the spot, with nobody's configuration and always the same ids."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

WHO = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in
       (("NAME", "A"), ("EMAIL", "a@example.org"), ("DATE", "1700000000 +0000"))}  # fmt: skip


def git(folder: Path, *arguments: str, stdin: bytes = b"") -> str:
    """Run git in a folder and return what it printed."""
    done = subprocess.run(
        ["git", "-c", "protocol.file.allow=always", *arguments], cwd=folder, input=stdin, capture_output=True,
        check=False,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1",
             "GIT_CONFIG_GLOBAL": "/dev/null", **WHO},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode("utf-8", "replace").strip()


def make_upstream(folder: Path, files: Mapping[str, str | bytes]) -> str:
    """Make a repository with one commit, and return its id."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    return commit_files(folder, files)


def commit_files(folder: Path, files: Mapping[str, str | bytes | None], *, message: str = "Change") -> str:
    """Write files (None takes one away), commit all that is there, and return the commit's id."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
    git(folder, "add", "--all")
    return commit_index(folder, message=message)


def commit_index(folder: Path, *, message: str = "Change") -> str:
    """Commit what the index holds, and return the commit's id."""
    git(folder, "commit", "--quiet", "--allow-empty", "--message", message)
    return git(folder, "rev-parse", "HEAD")


def add_submodule(folder: Path, path: str, url: str, commit: str, *, extra: str = "") -> str:
    """Record a submodule with its section in `.gitmodules`, commit that, and return the commit's id."""
    with (folder / ".gitmodules").open("a", encoding="utf-8") as stream:
        stream.write(f'[submodule "{path}"]\n\tpath = {path}\n\turl = {url}\n{extra}')
    git(folder, "add", ".gitmodules")
    git(folder, "update-index", "--add", "--cacheinfo", f"160000,{commit},{path}")
    return commit_index(folder)


def commit_tree(folder: Path, entries: Sequence[tuple[str, str, bytes]]) -> str:
    """Commit a tree of (mode, name, content) as it is, which git itself might not make; return the commit's id."""
    raw = b""
    for mode, name, content in entries:
        kind = "tree" if mode == "40000" else "blob"
        if mode == "160000":
            identifier = content.decode()
        else:
            identifier = git(folder, "hash-object", "-w", "--literally", "-t", kind, "--stdin", stdin=content)
        raw += f"{mode} {name}\0".encode("utf-8", "surrogateescape") + bytes.fromhex(identifier)
    tree = git(folder, "hash-object", "-w", "--literally", "-t", "tree", "--stdin", stdin=raw)
    commit = git(folder, "commit-tree", tree, "-m", "Hostile")
    git(folder, "update-ref", f"refs/heads/hostile-{commit}", commit)
    return commit


def tree_bytes(folder: Path, entries: Sequence[tuple[str, str, bytes]]) -> bytes:
    """Return the bytes of a tree of files, for an entry of another."""
    raw = b""
    for mode, name, content in entries:
        identifier = git(folder, "hash-object", "-w", "--stdin", stdin=content)
        raw += f"{mode} {name}\0".encode() + bytes.fromhex(identifier)
    return raw


def snapshot(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder with its bytes."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
