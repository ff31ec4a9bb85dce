"""Upstreams of a git base for tests, and patched trees of theirs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.repositories import make_upstream
from toolkit.git import Limits
from toolkit.model import ChangedFile, FetchedBase, PatchedTree, Series, SourceTree, Submodule, Target
from toolkit.sources import git as source
from toolkit.sources.git.caches import Patience
from toolkit.store import Store

TARGET = Target(python_tag="cp312", platform="manylinux_2_28_x86_64")
IMPATIENT = Patience(waits=(), limits=Limits(whole=20, silence=5))


def is_native(path: str) -> bool:
    return not (path.startswith("pkg/") and path.endswith(".py"))


class Upstream:
    """A repository, and what is to be done with its last commit."""

    def __init__(self, folder: Path, files: Mapping[str, str | bytes], store: Store) -> None:
        self.folder = folder
        self.commit = make_upstream(folder, files)
        self.store = store
        self.env: dict[str, str] = {}
        self.url = f"file://{folder}"

    def locked(self, **more: Any) -> source.Locked:
        return source.Locked(urls=(self.url,), commit=self.commit, **more)

    def fetch(self, *, offline: bool = False, patience: Patience = IMPATIENT, **more: Any) -> FetchedBase:
        return source.fetch(
            self.locked(**more), component="x", target=TARGET, store=self.store, offline=offline, env=self.env,
            patience=patience,
        )  # fmt: skip

    def submodules(self, base: FetchedBase, patched: PatchedTree | None = None) -> tuple[Submodule, ...]:
        return source.fetch_submodules(
            base, patched or patch(base, {}), store=self.store, offline=False, env=self.env, patience=IMPATIENT
        )


def patch(
    base: FetchedBase, files: Mapping[str, str | None], root: Path = Path("/nonexistent"),
    gitlinks: Mapping[str, str | None] | None = None,
) -> PatchedTree:  # fmt: skip
    """Make a patched tree that has these files, None for one that is taken away."""
    changed = []
    for path, text in files.items():
        if text is not None:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        changed.append(ChangedFile(path=path, kind="modified", part="python", sha256=None if text is None else "x"))
    return PatchedTree(
        source=SourceTree(base=base, root=root, members=frozenset()),
        series=Series(name="s", patches=()),
        root=root,
        applied=(),
        changed=tuple(changed),
        gitlinks=gitlinks or {},
    )
