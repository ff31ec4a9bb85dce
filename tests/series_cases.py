"""Real patches for tests: trees committed to a repository of their own and written by `git format-patch`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from toolkit.model import FetchedBase, Series, SourceTree, Target
from toolkit.series import load_series

Tree = Mapping[str, bytes]

TRAILERS = "Upstream-Status: Pending [not sent yet]\nWitness: some-witness"
NAMES = {"NAME": "A. Author", "EMAIL": "author@example.org", "DATE": "2026-01-02T03:04:05+00:00"}


def run_git(folder: Path, *arguments: str) -> bytes:
    """Run git in a folder with no configuration but a fixed identity and date."""
    identity = {f"GIT_{who}_{name}": value for who in ("AUTHOR", "COMMITTER") for name, value in NAMES.items()}
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C", **identity}
    command = ["git", "-c", "core.autocrlf=false", "-c", "core.quotePath=true", *arguments]
    return subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True).stdout


def write_tree(root: Path, files: Tree) -> Path:
    """Make a folder hold just these files (what belongs to git aside)."""
    root.mkdir(parents=True, exist_ok=True)
    for path in [*root.rglob("*")]:
        if path.is_file() and ".git" not in path.relative_to(root).parts:
            path.unlink()
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def read_tree(root: Path) -> dict[str, bytes]:
    """Return every file below a folder."""
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def write_patches(
    repository: Path, folder: Path, *trees: Tree, message: str = "", options: Sequence[str] = ()
) -> list[Path]:
    """Commit the trees in turn and write each step as a patch `NNNN-change.patch` into `folder`."""
    run_git(_made(repository), "init", "--quiet")
    for number, tree in enumerate(trees):
        write_tree(repository, tree)
        run_git(repository, "add", "--all", "--force")
        text = message or f"change\n\nStep {number} fails without it.\n\n{TRAILERS}\n"
        run_git(repository, "commit", "--quiet", "--allow-empty", "-m", text)
    count = str(len(trees) - 1)
    printed = run_git(repository, "format-patch", "-o", str(_made(folder)), *options, f"-{count}")
    return [Path(line) for line in printed.decode().splitlines()]


def make_series(tmp_path: Path, *trees: Tree, options: Sequence[str] = ()) -> Series:
    """Write the steps between trees as a series below `tmp_path` and read it."""
    write_patches(tmp_path / "repository", tmp_path / "patches", *trees, options=options)
    return load_series(tmp_path / "patches", name="sample/1.0")


def make_source(tmp_path: Path, files: Tree, *, more_members: Sequence[str] = ()) -> SourceTree:
    """Lay out a base with these files; `more_members` are in the base without being laid out."""
    root = write_tree(tmp_path / "base", files)
    target = Target(python_tag="cp311", platform="manylinux_2_28_x86_64")
    base = FetchedBase(
        component="sample", kind="wheel", digest="0" * 64, path=root, file="sample-1.0-py3-none-any.whl",
        distribution="sample", version="1.0", target=target,
    )  # fmt: skip
    return SourceTree(base=base, root=root, members=frozenset([*files, *more_members]))


def patch_text(diff: str, *, trailers: str = TRAILERS, subject: str = "change") -> str:
    """Put a diff written by hand into the mail of `git format-patch`."""
    return (
        f"From {'0' * 40} Mon Sep 17 00:00:00 2001\nFrom: A. Author <author@example.org>\n"
        f"Date: Fri, 2 Jan 2026 03:04:05 +0000\nSubject: [PATCH] {subject}\n\nIt fails without it.\n\n{trailers}\n"
        f"---\n a | 1 +\n\n{diff}-- \n2.39.5\n\n"
    )


def edit_diff(path: str, *, mode: str = "100644") -> str:
    """Return a diff that changes one line of a file."""
    return (
        f"diff --git a/{path} b/{path}\nindex 1111111..2222222 {mode}\n--- a/{path}\n+++ b/{path}\n"
        "@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    )


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
