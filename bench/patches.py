"""(h) The status of a long series against a large tree, against what a user would do otherwise: `git am`.

The tree and the series are of our own making: 20,000 modules in a bare repository, and 200 patches that were written
on an older commit than the one that they are judged on, so that a part of them has to be found at an offset.
"""

from __future__ import annotations

import json
import random
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.sample import ANSWER, CHECKS, LINE, RECIPE, own_tag, torch_version

FILES = 20_000
PATCHES = 200
CROWDED = 40
"""Patches, of all, that change a file which an earlier one changes."""

MOVED = 0.3
"""The share of the patched files that have other lines since the patches were written."""

PERSON = "A. Author <author@example.org> 1767323045 +0000"
TRAILERS = "Upstream-Status: Pending [not sent yet]\nWitness: answer"

Contents = Mapping[str, bytes]


@dataclass(frozen=True, kw_only=True, slots=True)
class LongSeries:
    """A project with one series; `commit` is the series' home in the bare `repository`."""

    root: Path
    repository: Path
    commit: str

    def by_hand(self, tree: Path) -> list[str]:
        """Return what a user would do to know how the series stands: check the commit out, and apply it there."""
        clone = ["git", "clone", "--quiet", "--shared", "--branch", "moved-on", str(self.repository), str(tree)]
        person = ["-c", "user.name=A. Author", "-c", "user.email=author@example.org"]
        apply = ["git", "-C", str(tree), *person, "am", "--quiet", *map(str, self.patches)]
        return ["sh", "-c", f"{shlex.join(clone)} && {shlex.join(apply)}"]

    @property
    def patches(self) -> list[Path]:
        """The patch files in their order."""
        return sorted((self.root / "patches/sample_npu/1.0").glob("*.patch"))


def make_long_series(folder: Path, *, files: int = FILES, patches: int = PATCHES) -> LongSeries:
    """Write the repository and the project below `folder`; the same every time."""
    repository = folder / "upstream.git"
    names = [f"pkg/part_{number % 97:02}/module_{number:05}.py" for number in range(files)]
    tree = {name: _module(number) for number, name in enumerate(names)}
    edits = list(_edits(tree, patches))
    moved = {name: b'"""Moved on."""\n\n' + tree[name] for name in _moved_on(edits)}
    subprocess.run(["git", "init", "--quiet", "--bare", str(repository)], check=True)
    _import_history(repository, tree, edits, moved)
    root = folder / "project"
    commit = _git(repository, "rev-parse", "moved-on").decode().strip()
    _write_project(root, repository, commit)
    _git(
        repository, "format-patch", "--quiet", "--no-numbered", "--zero-commit", "--no-signature", "--full-index", "-o",
        str(root / "patches/sample_npu/1.0"), "base..patched",
    )  # fmt: skip
    return LongSeries(root=root, repository=repository, commit=commit)


def _module(number: int) -> bytes:
    """Return a module of some 60 lines, whose functions are much like those of its neighbours."""
    pick = random.Random(number)
    body = "".join(
        f"def step_{place}(value, scale={pick.randrange(100)}):\n"
        f'    """Return step {place} of module {number}."""\n'
        f"    if value is None:\n        return {pick.randrange(1000)}\n"
        f"    result = value * scale + {pick.randrange(1000)}\n    return result\n\n\n"
        for place in range(7)
    )
    return f"import math\n\nLIMIT = {pick.randrange(10**6)}\n\n\n{body}".encode()


def _edits(tree: Contents, count: int) -> Iterator[tuple[str, bytes]]:
    """Yield one file and its new content for each patch; the last ones come back to files of the first."""
    pick = random.Random(count)
    chosen = pick.sample(sorted(tree), count - CROWDED * count // PATCHES)
    chosen += chosen[: count - len(chosen)]
    state: dict[str, bytes] = {}
    for number, name in enumerate(chosen):
        place = 5 if name in state else number % 4
        before = state.get(name, tree[name])
        head, line, tail = before.partition(f"def step_{place}(".encode())
        state[name] = head + line + tail.replace(b"    return result\n", b"    return result + %d\n" % number, 1)
        yield name, state[name]


def _moved_on(edits: list[tuple[str, bytes]]) -> list[str]:
    names = sorted({name for name, _ in edits})
    return names[: int(len(names) * MOVED)]


def _import_history(repository: Path, tree: Contents, edits: list[tuple[str, bytes]], moved: Contents) -> None:
    """Write the commits `base`, `patched` (one for each edit on it) and `moved-on` (beside those)."""
    stream = [*_commit("base", "", "base", tree)]
    for number, (name, content) in enumerate(edits, 1):
        message = f"module {number}: one more\n\nIt fails without it.\n\n{TRAILERS}\n"
        parent = "refs/heads/base" if number == 1 else ""
        stream += _commit("patched", parent, message, {name: content})
    stream += _commit("moved-on", "refs/heads/base", "moved on", moved)
    subprocess.run(
        ["git", "-C", str(repository), "fast-import", "--quiet"], input=b"".join(stream), check=True
    )  # fmt: skip


def _commit(branch: str, parent: str, message: str, files: Contents) -> Iterator[bytes]:
    raw = message.encode()
    yield f"commit refs/heads/{branch}\nauthor {PERSON}\ncommitter {PERSON}\n".encode()
    yield b"data %d\n%s\n" % (len(raw), raw)
    yield f"from {parent}\n".encode() if parent else b""
    for name, content in files.items():
        yield b"M 100644 inline %s\ndata %d\n%s\n" % (name.encode(), len(content), content)


def _write_project(root: Path, repository: Path, commit: str) -> None:
    tag = own_tag()
    base, after = RECIPE.partition("[component.base]\n")[0], RECIPE.partition("[env]")[2]
    recipe = base.format(python_tag=tag.interpreter, platform=tag.platform, torch=torch_version())
    url = repository.as_uri()
    recipe += (
        f'[component.base]\nkind = "git"\nurls = ["{url}"]\ncommit = "{commit}"\n\n'
        f'[component.base.build]\nbackend = "setup.py"\nrequires = []\n\n[env]{after}'
    )
    line = f'{LINE.partition("covers")[0]}covers = ["git:{commit}"]\nupstream = ["{url}"]\n'
    for path, text in {
        "recipes/sample.toml": recipe,
        "patches/sample_npu/1.0/series.toml": line,
        "verify/checks.json": json.dumps(CHECKS),
        "verify/answer.py": ANSWER,
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


def _git(repository: Path, *words: str) -> bytes:
    return subprocess.run(["git", "-C", str(repository), *words], check=True, stdout=subprocess.PIPE).stdout
