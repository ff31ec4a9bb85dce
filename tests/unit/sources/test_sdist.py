from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from tests.tarballs import NOON, entry, make_sdist, write_tarball
from toolkit.errors import FetchError, LockError, SourceError, StoreError
from toolkit.files import sha256_bytes, sha256_file
from toolkit.model import (
    ChangedFile,
    Contract,
    FetchedBase,
    Interpreter,
    PatchedTree,
    Series,
    Target,
)
from toolkit.requirements import LockedRequirement
from toolkit.sources import available_sources, sdist
from toolkit.sources.sdist import Base, Locked
from toolkit.store import Store

CP311 = Target(python_tag="cp311", platform="manylinux_2_28_x86_64")
CP312 = Target(python_tag="cp312", platform="manylinux_2_28_x86_64")
CONTRACT = Contract(python_tags=("cp311",), platforms=("manylinux_2_28_x86_64",), torch="2.13.0")
INTERPRETER = Interpreter(
    executable=Path("python3"), version="3.11.9", python_tag="cp311", platforms=(CP311.platform,), torch=None
)
WHEEL = "ninja-1.0-py3-none-any.whl"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def base(**wanted: object) -> Base:
    raw = {"kind": "sdist", "distribution": "sample", "version": "1.0", "build": {"requires": []}, **wanted}
    return msgspec.convert(raw, Base)


def lock_of(path: Path, **wanted: object) -> Locked:
    raw = {
        "distribution": "sample", "version": "1.0", "file": path.name, "sha256": sha256_file(path), "requires": [],
        "requirement": [], **wanted,
    }  # fmt: skip
    return msgspec.convert(raw, Locked)


def requirement(target: Target = CP311) -> LockedRequirement:
    return LockedRequirement(
        distribution="ninja", version="1.0", file=WHEEL, sha256="ab" * 32, python_tag=target.python_tag,
        platform=target.platform,
    )  # fmt: skip


def fetch_it(locked: Locked, store: Store, env: dict[str, str], *, offline: bool = False) -> FetchedBase:
    return sdist.fetch(
        locked, component="sample", target=CP311, store=store, offline=offline, interpreter=INTERPRETER, env=env
    )


def fetched(path: Path, *, subfolder: str = "") -> FetchedBase:
    return FetchedBase(
        component="sample", kind="sdist", digest=sha256_file(path), path=path, file=path.name, distribution="sample",
        version="1.0", target=CP311, subfolder=subfolder,
    )  # fmt: skip


def patched(of: FetchedBase, root: Path, changes: dict[str, str | None]) -> PatchedTree:
    """Return a patched tree with these files (None: deleted), as the series room would."""
    for path, content in changes.items():
        if content is not None:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(content)
    changed = tuple(
        ChangedFile(
            path=path, kind="modified", part="python",
            sha256=None if content is None else sha256_bytes(content.encode()),
        )
        for path, content in changes.items()
    )  # fmt: skip
    tree = sdist.lay_out(of, [], root)
    return PatchedTree(source=tree, series=Series(name="s", patches=()), root=root, applied=(), changed=changed)


def no_python(path: str) -> bool:
    return not path.endswith(".py")


def files_below(root: Path) -> dict[str, str]:
    return {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*") if path.is_file()}


# --- in the store ----------------------------------------------------------------------------------------------


def stored(path: Path, store: Store) -> Path:
    """Put an archive into the store as a fetch does."""
    entry = store.obtain("base", sha256_file(path), lambda folder: None)
    shutil.copy(path, entry)
    return entry / path.name


def test_offline_takes_what_the_store_has(tmp_path: Path, store: Store) -> None:
    path = make_sdist(tmp_path)
    kept = stored(path, store)
    assert fetch_it(lock_of(path), store, {}, offline=True).path == kept


def test_offline_says_what_is_missing(tmp_path: Path, store: Store) -> None:
    with pytest.raises(FetchError) as caught:
        fetch_it(lock_of(make_sdist(tmp_path)), store, {}, offline=True)
    assert caught.value.message == (
        f"sample: sample-1.0.tar.gz is not in the store at {store.root}, and offline nothing is downloaded"
    )


def test_a_damaged_entry_is_an_error_offline(tmp_path: Path, store: Store) -> None:
    path = make_sdist(tmp_path)
    kept = stored(path, store)
    kept.write_bytes(b"other")
    with pytest.raises(StoreError) as caught:
        fetch_it(lock_of(path), store, {}, offline=True)
    assert caught.value.message == (
        f"sample: store entry {kept.parent} is damaged: sample-1.0.tar.gz is missing or has other bytes"
    )


@pytest.mark.parametrize(
    ("made", "wanted", "message"),
    [
        ({"metadata": "Name: sample\nVersion: 2.0\n"}, {}, "is sample 2.0 in 'sample-1.0', expected sample==1.0"),
        ({"metadata": "Name: evil\nVersion: 1.0\n"}, {}, "is evil 1.0 in 'sample-1.0', expected sample==1.0"),
        ({"metadata": ""}, {}, "lacks PKG-INFO"),
        ({}, {"subfolder": "torch_extension"}, "has no folder 'torch_extension'"),
    ],
    ids=["another version", "another name", "no metadata", "no subfolder"],
)
def test_what_is_not_the_locked_release_is_refused(
    tmp_path: Path, made: dict[str, str], wanted: dict[str, str], message: str
) -> None:
    path = make_sdist(tmp_path, metadata=made.get("metadata"))
    with pytest.raises(SourceError) as caught:
        sdist._require_locked_sdist(path, lock_of(path, **wanted))
    assert caught.value.message == f"sample-1.0.tar.gz {message}"


def test_a_top_folder_of_another_name_is_refused(tmp_path: Path) -> None:
    path = write_tarball(tmp_path / "sample-1.0.tar.gz", [entry("evil-1.0/PKG-INFO", "Name: sample\nVersion: 1.0\n")])
    with pytest.raises(SourceError) as caught:
        sdist._require_locked_sdist(path, lock_of(path))
    assert caught.value.message == "sample-1.0.tar.gz is sample 1.0 in 'evil-1.0', expected sample==1.0"


@pytest.mark.parametrize(("mtime", "epoch"), [(0, 315_532_800), (NOON, NOON), (1 << 40, 4_354_819_198)])
def test_the_epoch_is_one_that_a_wheel_can_hold(tmp_path: Path, store: Store, mtime: int, epoch: int) -> None:
    said = "Name: sample\nVersion: 1.0\n"
    path = write_tarball(tmp_path / "sample-1.0.tar.gz", [entry("sample-1.0/PKG-INFO", said, mtime=mtime)])
    stored(path, store)
    assert fetch_it(lock_of(path), store, {}, offline=True).epoch == epoch


# --- as a tree -------------------------------------------------------------------------------------------------


def test_only_the_files_that_are_asked_for_are_laid_out(tmp_path: Path) -> None:
    of = fetched(make_sdist(tmp_path))
    tree = sdist.lay_out(of, ["sample/core.py", "sample/absent.py"], tmp_path / "tree")
    assert files_below(tree.root) == {"sample/core.py": "def answer():\n    return 41\n"}
    assert tree.members == {
        "PKG-INFO", "pyproject.toml", "sample/__init__.py", "sample/core.py", "csrc/core.cpp", "run.sh",
    }  # fmt: skip
    assert (tree.base, dict(tree.gitlinks)) == (of, {})


def test_paths_begin_at_the_subfolder(tmp_path: Path) -> None:
    of = fetched(make_sdist(tmp_path), subfolder="sample")
    tree = sdist.lay_out(of, ["core.py", "sample/core.py"], tmp_path / "tree")
    assert tree.members == {"__init__.py", "core.py"}
    assert list(files_below(tree.root)) == ["core.py"]


def test_there_are_no_submodules(tmp_path: Path) -> None:
    of = fetched(make_sdist(tmp_path))
    tree = patched(of, tmp_path / "p", {})
    assert sdist.fetch_submodules(of, tree, store=Store(tmp_path), offline=True, env={}) == ()
    assert sdist.lay_out_submodules(of, (), ["a"], tmp_path / "subs").members == frozenset()
    assert (tmp_path / "subs").is_dir()


@pytest.mark.parametrize("subfolder", ["", "sample"])
def test_the_whole_tree_is_checked_out_with_its_patches(tmp_path: Path, subfolder: str) -> None:
    of = fetched(make_sdist(tmp_path), subfolder=subfolder)
    prefix = "" if subfolder else "sample/"
    tree = patched(
        of, tmp_path / "p", {f"{prefix}core.py": "new\n", f"{prefix}__init__.py": None, f"{prefix}a/b.py": "b"}
    )
    built = sdist.check_out(of, (), [tree], tmp_path / "build", is_native=no_python)

    found = files_below(built.root)
    assert {name: found[name] for name in found if name.startswith("sample/")} == {
        "sample/core.py": "new\n", "sample/a/b.py": "b",
    }  # fmt: skip
    assert {"PKG-INFO", "csrc/core.cpp", "run.sh"} <= found.keys()
    assert os.access(built.root / "run.sh", os.X_OK)
    assert (built.digest, built.native_digest) == sdist.digest_tree(of, [tree], is_native=no_python)


def digests(of: FetchedBase, root: Path, changes: dict[str, str | None]) -> tuple[str, str]:
    return sdist.digest_tree(of, [patched(of, root, changes)], is_native=no_python)


def test_a_python_change_leaves_the_native_digest_and_a_native_change_does_not(tmp_path: Path) -> None:
    of = fetched(make_sdist(tmp_path))
    whole, native = digests(of, tmp_path / "none", {})
    python = digests(of, tmp_path / "py", {"sample/core.py": "new", "sample/new.py": "", "sample/__init__.py": None})
    compiled = digests(of, tmp_path / "cpp", {"csrc/core.cpp": "new"})
    removed = digests(of, tmp_path / "gone", {"run.sh": None})

    assert python[1] == native
    assert len({whole, python[0], compiled[0], removed[0]}) == 4
    assert len({native, compiled[1], removed[1]}) == 3


def test_what_another_archive_is_built_into_is_another_native_wheel_though_only_python_differs(tmp_path: Path) -> None:
    one = fetched(make_sdist(tmp_path / "one", files={"sample/core.py": "1", "csrc/core.cpp": ""}))
    other = fetched(make_sdist(tmp_path / "other", files={"sample/core.py": "2", "csrc/core.cpp": ""}))
    later = replace(one, epoch=NOON)
    fixed = {"sample/core.py": "3"}
    found = [digests(of, tmp_path / str(place), fixed) for place, of in enumerate((one, other, later))]

    assert len({whole for whole, _ in found}) == 1
    assert len({native for _, native in found}) == 3


def test_what_lies_outside_the_subfolder_is_native(tmp_path: Path) -> None:
    asked: list[str] = []

    def is_native(path: str) -> bool:
        asked.append(path)
        return False

    one = make_sdist(tmp_path / "one", files={"sample/a.py": "", "setup.py": "1"})
    other = make_sdist(tmp_path / "other", files={"sample/a.py": "", "setup.py": "2"})
    same = fetched(one, subfolder="sample")
    natives = {sdist.digest_tree(replace(same, path=path), [], is_native=is_native)[1] for path in (one, other)}
    assert len(natives) == 2
    assert asked == ["a.py", "a.py"]


def test_an_executable_file_has_another_digest(tmp_path: Path) -> None:
    plain = make_sdist(tmp_path / "a", files={"run": ""})
    members = [entry("sample-1.0/PKG-INFO", "Metadata-Version: 2.1\nName: sample\nVersion: 1.0\n")]
    able = write_tarball(tmp_path / "b" / plain.name, [*members, entry("sample-1.0/run", mode=0o755)])
    same = write_tarball(tmp_path / "c" / plain.name, [entry("sample-1.0/run", mtime=5), *members])
    of = fetched(plain)
    one, other, third = (
        sdist.digest_tree(replace(of, path=path), [], is_native=no_python) for path in (plain, able, same)
    )
    assert (one[0] == other[0], one[1] == other[1]) == (False, False)
    assert one == third


def test_a_patched_file_that_somebody_else_changed_is_noticed(tmp_path: Path) -> None:
    of = fetched(make_sdist(tmp_path))
    tree = patched(of, tmp_path / "p", {"sample/core.py": "new"})
    (tree.root / "sample/core.py").write_text("other")
    with pytest.raises(SourceError) as caught:
        sdist.check_out(of, (), [tree], tmp_path / "build", is_native=no_python)
    assert caught.value.message == f"{tree.root}/sample/core.py is not what the series made of it"


def test_a_build_folder_that_is_there_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    with pytest.raises(FileExistsError):
        sdist.check_out(fetched(make_sdist(tmp_path)), (), [], tmp_path / "build", is_native=no_python)


# --- recipe and lock -------------------------------------------------------------------------------------------


def test_the_lock_says_how_it_is_built_for_each_target(tmp_path: Path) -> None:
    locked = replace_requirements(lock_of(make_sdist(tmp_path), requires=["ninja"], subfolder="sample"), requirement())
    asked = base(
        subfolder="sample",
        build={"requires": ["ninja"], "backend": "setup.py", "env": {"A": "1"}, "pass_env": ["MAX_JOBS"]},
    )
    spec = sdist.build_spec(asked, locked, CP311)
    assert (spec.backend, dict(spec.env), spec.pass_env, spec.subfolder) == (
        "setup.py", {"A": "1"}, ("MAX_JOBS",), "sample",
    )  # fmt: skip
    assert [one.file for one in spec.requirements] == [WHEEL]
    assert (locked.covers(CP311), locked.covers(CP312)) == (True, False)
    with pytest.raises(LockError, match=f"the lock has no build requirements for {CP312}"):
        sdist.build_spec(asked, locked, CP312)


def test_a_lock_that_lost_its_requirements_covers_no_target(tmp_path: Path) -> None:
    locked = lock_of(make_sdist(tmp_path), requires=["ninja"])
    assert not locked.covers(CP311)
    with pytest.raises(LockError, match=f"the lock has no build requirements for {CP311}"):
        sdist.build_spec(base(build={"requires": ["ninja"]}), locked, CP311)


def replace_requirements(locked: Locked, *entries: LockedRequirement) -> Locked:
    return msgspec.structs.replace(locked, requirement=entries)


def test_what_needs_nothing_to_be_built_covers_every_target(tmp_path: Path) -> None:
    locked = lock_of(make_sdist(tmp_path))
    assert locked.covers(CP312)
    assert sdist.build_spec(base(), locked, CP312).requirements == ()
    assert sdist.artifact_digest(locked, CP312, interpreter=INTERPRETER, env={}) == locked.sha256


@pytest.mark.parametrize(
    "wanted",
    [{"distribution": "other"}, {"version": "1.1"}, {"subfolder": "a"}, {"build": {"requires": ["ninja"]}}],
    ids=str,
)
def test_whatever_is_asked_for_otherwise_makes_a_lock_stale(tmp_path: Path, wanted: dict[str, object]) -> None:
    assert base(**wanted).identity != base().identity == lock_of(make_sdist(tmp_path)).identity


@pytest.mark.parametrize(
    "file", ["other-1.0.tar.gz", "sample-2.0.tar.gz", "../sample-1.0.tar.gz", "sample-1.0.zip", "x"]
)
def test_a_lock_with_another_file_cannot_be_read(tmp_path: Path, file: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=r"is not an sdist of sample==1\.0"):
        lock_of(make_sdist(tmp_path), file=file)


@pytest.mark.parametrize("subfolder", ["../a", "/a", "a/../b", ".git", "a/", "a//b"])
def test_a_subfolder_stays_inside_and_is_in_normal_form(tmp_path: Path, subfolder: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        base(subfolder=subfolder)
    with pytest.raises(msgspec.ValidationError):
        lock_of(make_sdist(tmp_path), subfolder=subfolder)


def test_it_is_a_kind_of_base_of_the_form_tree() -> None:
    assert available_sources()["sdist"].FORM == "tree"
