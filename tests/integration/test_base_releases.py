"""Releases as bases, asked for through the real pip: of a folder of wheels, and of a server on this machine."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.release_index import serving
from tests.wheels import make_wheel
from toolkit.errors import FetchError, HashMismatchError, LockError
from toolkit.files import sha256_file
from toolkit.model import Interpreter
from toolkit.project import Project
from toolkit.registry import list_releases
from toolkit.series import Line
from toolkit.store import Store
from toolkit.upkeep.bases import BaseTree, obtain_tree
from toolkit.work import Means

PYTHON = Interpreter(
    executable=Path(sys.executable),
    version=".".join(map(str, sys.version_info[:3])),
    python_tag="cp311",
    platforms=("manylinux_2_31_x86_64", "manylinux_2_28_x86_64"),
    torch=None,
)
OWN = "cp311-cp311-manylinux_2_28_x86_64"
OTHERS = ("cp312-cp312-manylinux_2_28_x86_64", "cp311-cp311-manylinux_2_28_aarch64")
FILES = {"part/core.py": "answer = 41\n", "part/other.py": "# other\n"}
LOCK = """\
schema = 1
recipe = "r"

[[component]]
name = "part"
kind = "wheel"
distribution = "part"
version = "1.0"

[[component.artifact]]
file = "{file}"
sha256 = "{sha256}"
python_tag = "cp311"
platform = "manylinux_2_28_x86_64"
"""


@pytest.fixture
def index(tmp_path: Path) -> Path:
    (tmp_path / "index").mkdir()
    return tmp_path / "index"


@pytest.fixture
def means(tmp_path: Path, index: Path) -> Means:
    """Return means whose pip finds the wheels of a folder, of a project without recipes."""
    root = tmp_path / "project"
    for folder in ("recipes", "patches"):
        (root / folder).mkdir(parents=True)
    environ = {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(index), "PIP_RETRIES": "0",
    }  # fmt: skip
    project = Project(
        root=root, recipes=(root / "recipes",), patches=(root / "patches",), verify=root, overlays=root / "overlays"
    )
    return Means(project=project, store=Store(tmp_path / "store"), environ=environ)


def obtain(word: str, means: Means, tmp_path: Path, *, line: Line | None = None) -> BaseTree:
    return obtain_tree(
        word, line, ["part/core.py", "core.py", "absent.py"], component="part", means=means, interpreter=PYTHON,
        into=tmp_path / "into",
    )  # fmt: skip


def test_a_release_that_the_registry_has_for_other_interpreters_alone_is_read_from_one_of_those(
    index: Path, means: Means, tmp_path: Path
) -> None:
    wheel = make_wheel(index, "part", "1.0", FILES, tag=OTHERS[0])
    found = obtain("part==1.0", means, tmp_path)
    assert found.read_file("part/core.py") == b"answer = 41\n"
    assert found.remark == f"read from {wheel.name}, as there is none for cp311-manylinux_2_31_x86_64"


def test_a_release_that_does_not_exist_names_those_that_do(index: Path, means: Means, tmp_path: Path) -> None:
    for version in ("0.9", "1.0", "1.0.post1", "1.1rc1"):
        make_wheel(index, "part", version, FILES)
    with pytest.raises(LockError) as caught:
        obtain("part==1.1", means, tmp_path)
    assert caught.value.message == "the registry has no wheel of part==1.1"
    assert caught.value.hint == "it has 0.9, 1.0, 1.0.post1"


@pytest.mark.parametrize(
    ("reason", "said"),
    [("wrong numbers on Sundays", ": wrong numbers on Sundays"), ("", ", without a reason")],
    ids=["reason", "none"],
)
def test_a_release_that_was_yanked_is_refused(
    index: Path, means: Means, tmp_path: Path, reason: str, said: str
) -> None:
    make_wheel(index, "part", "1.0", FILES)
    bad = make_wheel(index, "part", "1.1", FILES)
    with serving(index, {bad.name: reason}) as settings, pytest.raises(LockError) as caught:
        obtain("part==1.1", replace(means, environ={**means.environ, **settings}), tmp_path)
    assert caught.value.message == f"part==1.1 was yanked by its publisher{said}"
    assert caught.value.hint == "it has 1.0; pip takes a yanked release only where it is pinned, and warns"


def test_yanked_releases_and_previews_are_not_listed(index: Path, means: Means) -> None:
    for version in ("1.10", "1.9", "1.9.post2", "2.0rc1", "2.1.dev1"):
        make_wheel(index, "part", version, FILES)
    bad = make_wheel(index, "part", "1.11", FILES)
    with serving(index, {bad.name: "broken"}) as settings:
        assert list_releases("part", env={**means.environ, **settings}) == ("1.9", "1.9.post2", "1.10")


def test_a_distribution_that_nobody_knows_has_no_releases(means: Means) -> None:
    assert list_releases("part", env=means.environ) == ()


def test_a_registry_that_does_not_answer_is_no_empty_list(means: Means) -> None:
    settings = {"PIP_NO_INDEX": "0", "PIP_INDEX_URL": "http://127.0.0.1:1/simple/", "PIP_RETRIES": "1"}
    with pytest.raises(LockError, match="the registry did not answer which releases of part there are"):
        list_releases("part", env={**means.environ, **settings})


def test_what_a_lock_pins_is_taken_without_asking_the_registry(index: Path, means: Means, tmp_path: Path) -> None:
    wheel = make_wheel(index, "part", "1.0", FILES, tag=OWN)
    lock = means.project.recipes[0] / "r.lock"
    lock.write_text(LOCK.format(file=wheel.name, sha256=sha256_file(wheel)), encoding="utf-8")
    with serving(index, {wheel.name: "broken"}) as settings:
        found = obtain("part==1.0", replace(means, environ={**means.environ, **settings}), tmp_path)
    assert found.base.digest == sha256_file(wheel)


def test_bytes_other_than_the_locked_ones_are_refused(index: Path, means: Means, tmp_path: Path) -> None:
    wheel = make_wheel(index, "part", "1.0", FILES, tag=OWN)
    lock = means.project.recipes[0] / "r.lock"
    lock.write_text(LOCK.format(file=wheel.name, sha256="0" * 64), encoding="utf-8")
    with pytest.raises(HashMismatchError):
        obtain("part==1.0", means, tmp_path)


def test_offline_a_release_comes_from_the_store_alone(index: Path, means: Means, tmp_path: Path) -> None:
    make_wheel(index, "part", "1.0", FILES, tag=OWN)
    offline = replace(means, offline=True)
    with pytest.raises(FetchError) as caught:
        obtain("part==1.0", offline, tmp_path)
    assert caught.value.message == (
        f"part: no wheel of part==1.0 is in the store at {means.store.root}, and offline nobody is asked"
    )
    obtain("part==1.0", means, tmp_path / "first")
    assert obtain("part==1.0", offline, tmp_path).read_file("part/core.py") == b"answer = 41\n"


def test_a_damaged_wheel_of_the_registry_is_refused(index: Path, means: Means, tmp_path: Path) -> None:
    wheel = make_wheel(index, "part", "1.0", FILES)
    wheel.write_bytes(wheel.read_bytes()[: wheel.stat().st_size // 2])
    with pytest.raises(LockError) as caught:
        obtain("part==1.0", means, tmp_path)
    assert caught.value.message == (
        "the registry did not answer which wheel of part==1.0 is for cp311-manylinux_2_31_x86_64"
    )
    assert "invalid" in "\n".join(caught.value.details)
    assert not (tmp_path / "into").exists()
