"""What `sources.wheel` and build environments share; tests/integration/test_fetch.py shows the rest through a base."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.wheels import CP311, make_wheel
from toolkit.artifacts import obtain_file, obtain_wheel_file
from toolkit.errors import FetchError, HashMismatchError, SourceError
from toolkit.files import sha256_bytes, sha256_file
from toolkit.model import Requirement, Target
from toolkit.store import Store

CP312 = Target(python_tag="cp312", platform="manylinux_2_28_x86_64")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def pin(wheel: Path) -> Requirement:
    distribution, version = wheel.name.split("-")[:2]
    return Requirement(distribution=distribution, version=version, file=wheel.name, sha256=sha256_file(wheel))


def obtain(wheel: Path, store: Store, *, offline: bool = False, target: Target = CP311) -> Path:
    env = {
        "PATH": os.environ["PATH"], "PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheel.parent),
    }  # fmt: skip
    return obtain_wheel_file(pin(wheel), component="c", target=target, store=store, offline=offline, env=env)


def test_a_wheel_of_a_local_version_is_brought_once_for_all_targets(tmp_path: Path, store: Store) -> None:
    wheel = make_wheel(tmp_path / "index", "sample", "1.0+cpu")
    path = obtain(wheel, store)
    assert path == store.root / "base" / sha256_file(wheel) / "sample-1.0+cpu-py3-none-any.whl"
    assert list(path.parent.iterdir()) == [path]
    kept = path.stat().st_ino
    assert obtain(wheel, store, offline=True, target=CP312).stat().st_ino == kept


def test_offline_names_who_needs_the_wheel(tmp_path: Path, store: Store) -> None:
    with pytest.raises(FetchError) as caught:
        obtain(make_wheel(tmp_path / "index"), store, offline=True)
    assert caught.value.message == (
        f"c: sample-1.0-py3-none-any.whl is not in the store at {store.root}, and offline nothing is downloaded"
    )


def test_a_wheel_that_says_it_is_something_else_is_not_kept(tmp_path: Path, store: Store) -> None:
    other = make_wheel(tmp_path / "index", tag="cp312-cp312-manylinux_2_28_x86_64")
    lying = Path(shutil.move(other, other.with_name("sample-1.0-py3-none-any.whl")))
    with pytest.raises(SourceError) as caught:
        obtain(lying, store)
    assert caught.value.message == (
        f"{lying.name} is for cp312-cp312-manylinux_2_28_x86_64 by its WHEEL file, expected {CP311}"
    )
    assert store.entries() == []


@pytest.mark.parametrize("content", [b"right", b"wrong"])
def test_only_the_pinned_bytes_are_checked_and_only_what_passes_is_kept(store: Store, content: bytes) -> None:
    checked: list[bytes] = []

    def download(folder: Path) -> Path:
        (folder / "arrived").write_bytes(content)
        return folder / "arrived"

    def check(path: Path) -> None:
        checked.append(path.read_bytes())
        raise SourceError("it is something else")

    with pytest.raises(HashMismatchError if content == b"wrong" else SourceError):
        obtain_file(
            "file", sha256_bytes(b"right"), component="c", store=store, offline=False, download=download, check=check
        )
    assert checked == ([] if content == b"wrong" else [b"right"])
    assert store.entries() == []
