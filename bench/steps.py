"""One step of a build as a whole process, for timing: `python -m bench.steps repack|overlay|hash …`."""

from __future__ import annotations

import sys
from pathlib import Path


def repack(base: Path, patched: Path, into: Path) -> None:
    """Write `base` with the files of `patched` in it as a new wheel."""
    from toolkit.files import sha256_file
    from toolkit.model import AppliedPatch, ChangedFile, FetchedBase, PatchedTree, Series, SourceTree, Target, make_key
    from toolkit.repack import repack_wheel
    from toolkit.wheels.archive import open_wheel

    names = sorted(str(path.relative_to(patched)) for path in patched.rglob("*") if path.is_file())
    with open_wheel(base) as archive:
        members, version, name = frozenset(archive.members), archive.metadata.version, archive.metadata.name
    fetched = FetchedBase(
        component=name, kind="wheel", digest=sha256_file(base), path=base, file=base.name, distribution=name,
        version=version, target=Target(python_tag="", platform=""),
    )  # fmt: skip
    changed = [
        ChangedFile(path=path, kind="modified", part="python", sha256=sha256_file(patched / path)) for path in names
    ]
    tree = PatchedTree(
        source=SourceTree(base=fetched, root=patched, members=members),
        series=Series(name="bench", patches=()),
        root=patched,
        applied=(AppliedPatch(name="0001-bench", status="clean"),),
        changed=tuple(changed),
    )
    repack_wheel(tree, key=make_key([("bench", "bench")]), import_name=name, into=into)


def overlay(wheel: Path, into: Path) -> None:
    """Lay `wheel` out as an overlay, with its manifest and its seal."""
    from toolkit.files import sha256_file
    from toolkit.model import Contract, Target, Wheel, make_key
    from toolkit.overlay import build_overlay

    name, version, *_ = wheel.name.split("-")
    stored = Wheel(
        component=name, distribution=name, import_name=name, version=version, path=wheel, sha256=sha256_file(wheel),
        key="bench", patches=(),
    )  # fmt: skip
    build_overlay(
        into,
        recipe="bench",
        key=make_key([("bench", "bench")]),
        wheels=[stored],
        target=Target(python_tag="", platform=""),
        contract=Contract(python_tags=(), platforms=(), torch="2.13.0"),
        env={},
    )


def hash_site(site: Path, threads: str | None = None) -> None:
    """Hash every file below `site`."""
    from toolkit.files import sha256_files, tree_signatures

    sha256_files(site, tree_signatures(str(site)), threads=int(threads) if threads else None)


if __name__ == "__main__":
    _, step, *words = sys.argv
    if step == "hash":
        hash_site(Path(words[0]), *words[1:])
    elif step == "repack":
        repack(Path(words[0]), Path(words[1]), Path(words[2]))
    else:
        overlay(Path(words[0]), Path(words[1]))
