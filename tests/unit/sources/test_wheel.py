from __future__ import annotations

import shutil
from pathlib import Path
from types import ModuleType

import pytest

from tests.wheels import fetched, make_wheel
from toolkit import sources
from toolkit.errors import FetchError, LockError, SourceError, StoreError
from toolkit.files import sha256_file
from toolkit.lock import read_lock, require_current, write_lock
from toolkit.model import Contract, FetchedBase, Lock, LockedComponent, Target
from toolkit.recipe import load_recipe
from toolkit.sources import available_sources, wheel
from toolkit.sources.wheel import Artifact, Locked, artifact_digest, fetch, lay_out
from toolkit.store import Store

CP311 = Target(python_tag="cp311", platform="manylinux_2_28_x86_64")
CP312 = Target(python_tag="cp312", platform="manylinux_2_28_aarch64")
CP313 = Target(python_tag="cp313", platform="manylinux_2_28_x86_64")

NEW_KIND = """
from typing import Literal
import msgspec
from toolkit.model import FetchedBase, SourceTree

KIND = "commit"

class Base(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    kind: Literal["commit"]
    url: str
    commit: str

    @property
    def identity(self):
        return f"{self.url}@{self.commit}"

class Locked(Base, frozen=True, kw_only=True, forbid_unknown_fields=True):
    tree: str

    def covers(self, target):
        return True

def resolve(base, contract, *, component, env, progress):
    return Locked(kind="commit", url=base.url, commit=base.commit, tree="7ree")

def artifact_digest(locked, target):
    return locked.commit

def fetch(locked, *, component, target, store, offline, env, progress): ...

def lay_out(base, paths, into): ...
"""


def artifact(target: Target, file: str, sha256: str = "ab" * 32) -> Artifact:
    return Artifact(file=file, sha256=sha256, python_tag=target.python_tag, platform=target.platform)


LOCKED = Locked(
    distribution="sample",
    version="1.0",
    artifact=(
        artifact(CP312, "sample-1.0-cp312-cp312-manylinux_2_28_aarch64.whl", "cd" * 32),
        artifact(CP311, "sample-1.0-cp311-cp311-manylinux_2_28_x86_64.whl"),
    ),
)


def stored(store: Store, tmp_path: Path) -> tuple[Locked, Path]:
    """Put a wheel into the store as a fetch does."""
    path = make_wheel(tmp_path / "made")
    sha256 = sha256_file(path)
    entry = store.obtain("base", sha256, lambda folder: None)
    shutil.copy(path, entry)
    return Locked(distribution="sample", version="1.0", artifact=(artifact(CP311, path.name, sha256),)), entry


def fetch_offline(locked: Locked, store: Store) -> FetchedBase:
    return fetch(locked, component="sample", target=CP311, store=store, offline=True, env={})


def test_the_digest_is_known_without_a_download() -> None:
    assert artifact_digest(LOCKED, CP312) == "cd" * 32


def test_a_target_that_the_lock_lacks_is_answered_with_those_it_has() -> None:
    assert (LOCKED.covers(CP311), LOCKED.covers(CP313)) == (True, False)
    with pytest.raises(LockError) as caught:
        artifact_digest(LOCKED, CP313)
    assert caught.value.message == "the lock of sample==1.0 has no wheel for cp313-manylinux_2_28_x86_64"
    assert caught.value.hint == (
        "it has cp311-manylinux_2_28_x86_64, cp312-manylinux_2_28_aarch64; "
        "add the target to the recipe and run `toolkit lock`"
    )


def test_offline_takes_what_the_store_has(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    locked, entry = stored(store, tmp_path)
    assert fetch_offline(locked, store) == FetchedBase(
        component="sample",
        kind="wheel",
        digest=locked.artifact[0].sha256,
        path=entry / "sample-1.0-py3-none-any.whl",
        file="sample-1.0-py3-none-any.whl",
        distribution="sample",
        version="1.0",
        target=CP311,
    )


def test_offline_says_what_is_missing_and_how_to_bring_it(tmp_path: Path) -> None:
    with pytest.raises(FetchError) as caught:
        fetch_offline(LOCKED, Store(tmp_path))
    assert caught.value.message == (
        f"sample: sample-1.0-cp311-cp311-manylinux_2_28_x86_64.whl is not in the store at {tmp_path}, "
        "and offline nothing is downloaded"
    )
    assert caught.value.hint == "bring it with `toolkit cache import FILE`, or run once without --offline"


@pytest.mark.parametrize("damage", ["other bytes", "missing"])
def test_offline_a_damaged_entry_is_an_error_that_names_it(tmp_path: Path, damage: str) -> None:
    store = Store(tmp_path / "store")
    locked, entry = stored(store, tmp_path)
    file = entry / locked.artifact[0].file
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-1] + b"!")
    with pytest.raises(StoreError) as caught:
        fetch_offline(locked, store)
    assert caught.value.message == (
        f"sample: store entry {entry} is damaged: sample-1.0-py3-none-any.whl is missing or has other bytes"
    )
    assert entry.is_dir()


def test_only_the_files_that_are_asked_for_are_laid_out(tmp_path: Path) -> None:
    base = fetched(make_wheel(tmp_path))
    tree = lay_out(base, ["sample/core.py", "sample/absent.py"], tmp_path / "tree")
    assert tree.base == base
    assert [path for path in tree.root.rglob("*") if path.is_file()] == [tmp_path / "tree/sample/core.py"]
    assert tree.root.joinpath("sample/core.py").read_text() == "def answer():\n    return 41\n"
    assert tree.members == {
        "sample/__init__.py", "sample/core.py", "sample/version.py",
        "sample-1.0.dist-info/METADATA", "sample-1.0.dist-info/WHEEL", "sample-1.0.dist-info/RECORD",
    }  # fmt: skip


def test_nothing_asked_for_still_gives_a_folder(tmp_path: Path) -> None:
    tree = lay_out(fetched(make_wheel(tmp_path)), [], tmp_path / "a" / "tree")
    assert list(tree.root.iterdir()) == []


def test_an_unsafe_wheel_is_not_laid_out(tmp_path: Path) -> None:
    bad = make_wheel(tmp_path, files={"../evil.py": ""})
    with pytest.raises(SourceError, match=r"\.\./evil\.py"):
        lay_out(fetched(bad), ["../evil.py"], tmp_path / "tree")
    assert not (tmp_path / "evil.py").exists()


def test_every_source_is_found_and_defines_what_it_must() -> None:
    found = available_sources()
    assert "wheel" in found
    for kind, source in found.items():
        assert isinstance(source, ModuleType)
        assert kind == source.KIND
        assert all(hasattr(source, name) for name in sources.Source.__dict__ if not name.startswith("_"))
    assert available_sources()["wheel"] is wheel


def test_an_unknown_kind_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="os"):
        available_sources()["os"]


def test_a_new_kind_of_base_is_one_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "commit.py").write_text(NEW_KIND)
    monkeypatch.setattr(sources, "__path__", [*sources.__path__, str(tmp_path / "more")])
    (tmp_path / "r.toml").write_text(
        'schema = 1\ndescription = "d"\n[target]\npython = ["cp311"]\nplatforms = ["manylinux_2_28_x86_64"]\n'
        'torch = "2.13.0"\n[[component]]\nname = "c"\n[component.base]\nkind = "commit"\nurl = "file:///r"\n'
        'commit = "c0ffee"\n[verify]\nchecks = ["origins"]\n'
    )
    kinds = available_sources()
    recipe = load_recipe(
        "r", folders=[tmp_path], base_types={kind: source.Base for kind, source in kinds.items()},
        known_series=[], known_checks=["origins"],
    )  # fmt: skip
    base = recipe.components[0].base
    locked = kinds["commit"].resolve(base, recipe.contract, component="c", env={}, progress=None)
    path = tmp_path / "r.lock"
    write_lock(Lock(recipe="r", components=(LockedComponent(name="c", base=locked),), path=path), path)
    back = read_lock(path, locked_types={kind: source.Locked for kind, source in kinds.items()})
    require_current(back, recipe)
    assert kinds["commit"].artifact_digest(back.components[0].base, CP311) == "c0ffee"


def test_a_contract_has_every_tag_on_every_platform() -> None:
    contract = Contract(python_tags=("cp311", "cp312"), platforms=("a", "b"), torch="2.13.0")
    assert [str(target) for target in contract.targets] == ["cp311-a", "cp311-b", "cp312-a", "cp312-b"]
