"""Real upstreams of our own: git repositories made from `tests/projects`, patches for them, and counted compilers.

`sample_npu` has torch_npu's shape: a native part, generated code, submodules inside submodules, a version with the
commit's id. Commits, dates and names are fixed, so that ids are the same in every folder and on every machine.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.upstream_edits import EDITS, HEADERS, Edit, Kind

PROJECTS = Path(__file__).parent / "projects"

AUTHOR = "The toolkit authors"
EMAIL = "toolkit@example.invalid"
DAYS = {"older": "2026-09-01T12:00:00+0000", "newer": "2026-09-02T12:00:00+0000", "patch": "2026-09-03T12:00:00+0000"}

INNER = "inner"
UNUSED = "third_party/sample_unused"
UNUSED_COMMIT = "5a" * 20
"""A commit that exists nowhere: whoever wants to check out a submodule with `update = none` will fail."""

COMPILERS = ("cc", "gcc", "c++", "g++")
CALLS = "calls.txt"
PIP_OPTIONS = ("--quiet", "--disable-pip-version-check")


@dataclass(frozen=True, kw_only=True, slots=True)
class Upstream:
    """Bare repositories beside each other in `root`, as on a server; branch `main` of each is its newer commit.

    At `newer` the main repository has the fix that the patch `python` makes, and the newer headers.
    """

    root: Path
    older: str
    newer: str
    headers_older: str
    headers_newer: str
    inner_commit: str
    ops_older: str
    ops_newer: str

    @property
    def main(self) -> Path:
        """The repository with torch_npu's shape."""
        return self.root / "sample_npu.git"

    @property
    def headers(self) -> Path:
        """Its submodule at `HEADERS`."""
        return self.root / "sample_headers.git"

    @property
    def inner(self) -> Path:
        """The submodule `INNER` of that one."""
        return self.root / "sample_inner.git"

    @property
    def ops(self) -> Path:
        """The repository with ops-transformer's shape."""
        return self.root / "sample_ops.git"


# --- repositories ----------------------------------------------------------------------------------------------


def make_upstream(root: Path, *, absolute: bool = False) -> Upstream:
    """Make the repositories in `root`, which is made if need be.

    A submodule's address is relative to its parent's; with `absolute` the nested one's is a `file:` URL, so that the
    ids of what records it differ from root to root.
    """
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="making-", dir=root) as folder:
        return _make_repositories(root, Path(folder), absolute=absolute)


def clone_bare(repository: Path, into: Path) -> Path:
    """Clone a repository as a mirror has it: bare, with every branch."""
    git(repository.parent, "clone", "--quiet", "--mirror", "--no-local", repository.as_uri(), str(into))
    return into


def check_out(repository: Path, commit: str, into: Path) -> Path:
    """Clone a repository and check a commit out with its submodules, as its authors build it."""
    git(repository.parent, "clone", "--quiet", "--no-checkout", repository.as_uri(), str(into))
    git(into, "checkout", "--quiet", "--detach", commit)
    git(into, "submodule", "--quiet", "update", "--init", "--recursive")
    return into


def git(folder: Path, *arguments: str, day: str = DAYS["patch"]) -> str:
    """Run git in a folder, with nothing of the user's, and return what it printed."""
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_ALLOW_PROTOCOL": "file",
        "GIT_AUTHOR_NAME": AUTHOR,
        "GIT_AUTHOR_EMAIL": EMAIL,
        "GIT_AUTHOR_DATE": day,
        "GIT_COMMITTER_NAME": AUTHOR,
        "GIT_COMMITTER_EMAIL": EMAIL,
        "GIT_COMMITTER_DATE": day,
    }
    done = subprocess.run(["git", *arguments], cwd=folder, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"git {' '.join(arguments)}: {done.stderr}"
    return done.stdout


def _make_repositories(root: Path, work: Path, *, absolute: bool) -> Upstream:
    inner = _begin(work / "sample_inner")
    inner_commit = _publish(inner, root, "older")

    headers = _begin(work / "sample_headers")
    inner_url = (root / "sample_inner.git").absolute().as_uri() if absolute else "../sample_inner.git"
    _add_submodule(headers, INNER, inner_url, inner_commit)
    headers_older = _publish(headers, root, "older")
    _replace(headers / "include/sample/release.h", "RELEASE 1", "RELEASE 2")
    headers_newer = _publish(headers, root, "newer")

    main = _begin(work / "sample_npu")
    _add_submodule(main, HEADERS, "../sample_headers.git", headers_older)
    _add_submodule(main, UNUSED, "../sample_unused.git", UNUSED_COMMIT, "update = none")
    older = _publish(main, root, "older")
    _edit(main, EDITS["python"])
    _replace(main / "sample_npu/shapes.py", '"""Shapes of tensors,', '"""Shapes, sizes\nand strides of tensors,')
    _record_gitlink(main, HEADERS, headers_newer)
    newer = _publish(main, root, "newer")

    ops = _begin(work / "sample_ops")
    ops_older = _publish(ops, root, "older")
    _edit(ops, EDITS["ops"])
    ops_newer = _publish(ops, root, "newer")
    return Upstream(
        root=root, older=older, newer=newer, headers_older=headers_older, headers_newer=headers_newer,
        inner_commit=inner_commit, ops_older=ops_older, ops_newer=ops_newer,
    )  # fmt: skip


def _begin(folder: Path) -> Path:
    """Begin a repository with a copy of a project, named as the folder is."""
    shutil.copytree(PROJECTS / folder.name, folder, ignore=shutil.ignore_patterns("__pycache__"))
    git(folder, "init", "--quiet", "--template=", "--initial-branch=main")
    return folder


def _publish(folder: Path, root: Path, day: str) -> str:
    """Commit everything in a work tree, put it on its server, and return the commit's id."""
    git(folder, "add", "--all", "--", ".", *(f":(exclude){path}" for path in _gitlinks(folder)))
    git(folder, "commit", "--quiet", "--no-gpg-sign", "-m", f"{folder.name}: the {day} state", day=DAYS[day])
    bare = root / f"{folder.name}.git"
    if not bare.exists():
        git(root, "init", "--quiet", "--bare", "--template=", "--initial-branch=main", str(bare))
    git(folder, "push", "--quiet", bare.absolute().as_uri(), "HEAD:refs/heads/main")
    return git(folder, "rev-parse", "HEAD").strip()


def _gitlinks(folder: Path) -> list[str]:
    """Return the submodules, whose folders are not there: adding everything would take them away."""
    lines = git(folder, "ls-files", "--stage").splitlines()
    return [line.partition("\t")[2] for line in lines if line.startswith("160000 ")]


def _add_submodule(folder: Path, path: str, url: str, commit: str, *lines: str) -> None:
    with (folder / ".gitmodules").open("a", encoding="utf-8") as file:
        file.write(f'[submodule "{path}"]\n')
        file.writelines(f"\t{line}\n" for line in (f"path = {path}", f"url = {url}", *lines))
    _record_gitlink(folder, path, commit)


def _record_gitlink(folder: Path, path: str, commit: str) -> None:
    git(folder, "update-index", "--add", "--cacheinfo", f"160000,{commit},{path}")


# --- patches ---------------------------------------------------------------------------------------------------


UNKNOWN_COMMIT = "0123456789" * 4
COVERS = ("sample_npu==1.2.0", "installed:sample_npu", "installed:sample_ops", f"git:{UNKNOWN_COMMIT}")
"""Other bases that the tests build the series from, and one that no repository has."""


def make_patches(
    upstream: Upstream,
    kinds: Sequence[Kind | Edit],
    into: Path,
    *,
    base: str | None = None,
    covers: Sequence[str] = COVERS,
) -> list[Path]:
    """Write patches of these kinds, or of edits of one's own, into a folder, each made on top of those before it.

    They are made from the older commit unless `base` names another. Paths begin where the recipe's subfolder is:
    for `ops`, which stands alone, at `torch_extension`. The line that they make is for every commit of the repository,
    and for `covers`.
    """
    repository, commit = (upstream.ops, upstream.ops_older) if "ops" in kinds else (upstream.main, upstream.older)
    into.mkdir(parents=True, exist_ok=True)
    commits = [f"git:{commit}" for commit in git(repository, "rev-list", "--all").split()]
    line = f"schema = 1\ncovers = {json.dumps([*commits, *covers])}\n"
    (into / "series.toml").write_text(line, encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="patching-", dir=upstream.root) as folder:
        tree = check_out(repository, base or commit, Path(folder) / "tree")
        return [_make_patch(upstream, tree, kind, number, into) for number, kind in enumerate(kinds, 1)]


def _make_patch(upstream: Upstream, tree: Path, kind: Kind | Edit, number: int, into: Path) -> Path:
    edit = kind if isinstance(kind, Edit) else EDITS[kind]
    if edit.changes:
        _edit(tree, edit)
    else:
        git(tree / edit.file, "checkout", "--quiet", "--detach", upstream.headers_newer)
    path = into / f"{number:04}-{edit.slug}.patch"
    path.write_text(_commit_as_mail(tree / edit.folder, edit), encoding="utf-8", newline="")
    return path


def _commit_as_mail(repository: Path, edit: Edit) -> str:
    message = f"{edit.subject}\n\n{edit.fault}\n\nUpstream-Status: Pending [a sample]\nWitness: {edit.witness}\n"
    git(repository, "add", "--", edit.file)
    git(repository, "commit", "--quiet", "--no-gpg-sign", "-m", message)
    return git(repository, "format-patch", "-1", "--stdout", "--zero-commit", "--no-signature", *edit.options)


def _edit(tree: Path, edit: Edit) -> None:
    for old, new in edit.changes:
        _replace(tree / edit.folder / edit.file, old, new)


def _replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, (old, path)
    path.write_text(text.replace(old, new), encoding="utf-8")


# --- builds ----------------------------------------------------------------------------------------------------


def build_requirements() -> list[str]:
    """Return what pip has to bring for a build: what it imports, CMake and ninja only where the machine has none."""
    missing = [name for name in ("cmake", "ninja") if shutil.which(name) is None]
    return ["setuptools>=70.1", "pybind11", *missing]


def make_build_environment(folder: Path) -> Path:
    """Make a virtual environment that can build the upstream, and return its interpreter."""
    python = folder / "bin" / "python"
    _run_python("-m", "venv", "--without-pip", str(folder))
    _run_python("-m", "pip", "--python", str(python), "install", *PIP_OPTIONS, *build_requirements())
    return python


def download_requirements(folder: Path, *requirements: str) -> Path:
    """Put wheels of what a build needs, and of what is asked for besides, into a folder that pip takes as an index."""
    options = (*PIP_OPTIONS, "--only-binary=:all:", "--dest", str(folder))
    _run_python("-m", "pip", "download", *options, *build_requirements(), *requirements)
    return folder


def _run_python(*arguments: str) -> None:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def counting_compilers(folder: Path) -> dict[str, str]:
    """Put compilers into a folder that note each call there; returns what an environment needs to use them.

    CC and CXX name them, and PATH finds them as `cc`, `gcc`, `c++` and `g++`. See `compiled_sources`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, path in [(name, found) for name in COMPILERS if (found := shutil.which(name))]:
        # One short write, appended: calls at the same time do not mix. The first character of IFS joins the words.
        # A call that cannot be noted fails, as in a sandbox: not counted must not look like not called.
        script = (
            f"#!/bin/sh\nIFS='\t'\nprintf '%s\\n' \"{name}\t$*\" >> '{folder}/{CALLS}' || exit\nexec '{path}' \"$@\"\n"
        )
        (folder / name).write_text(script, encoding="utf-8")
        (folder / name).chmod(0o755)
    (folder / CALLS).touch()
    path = os.pathsep.join([str(folder), os.environ["PATH"]])
    return {"CC": str(folder / "cc"), "CXX": str(folder / "c++"), "PATH": path}


def compiler_calls(folder: Path) -> list[list[str]]:
    """Return the words of every call of a counting compiler so far."""
    return [line.split("\t") for line in (folder / CALLS).read_text(encoding="utf-8").splitlines()]


def compiled_sources(folder: Path) -> list[str]:
    """Return the names of the upstream's own sources that were compiled, sorted; what CMake tries out is not theirs."""
    calls = [words for words in compiler_calls(folder) if "-c" in words and "-E" not in words]
    sources = [Path(word) for words in calls for word in words if word.endswith((".c", ".cpp"))]
    return sorted(source.name for source in sources if "csrc" in source.parts)
