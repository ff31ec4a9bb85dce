"""What recipes and locks may say of a git base."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec
import pytest

from tests.git_cases import TARGET
from toolkit.errors import LockError
from toolkit.model import Contract
from toolkit.requirements import LockedRequirement
from toolkit.schema import find_faults, format_place
from toolkit.sources import available_sources
from toolkit.sources import git as source

COMMIT = "f38033913dbefc3a74dbdc4d4838794790d834f8"
CONTRACT = Contract(python_tags=("cp312",), platforms=(TARGET.platform,), torch="2.12.0")
BASE = {"kind": "git", "urls": ["https://h/a/x.git"], "commit": COMMIT, "build": {"requires": []}}
NO_COMMIT = f"is not a full commit id, such as '{COMMIT}'"
NO_ADDRESS = "is not an https, ssh or file address, such as 'https://gitcode.com/Ascend/pytorch.git'"


def test_the_kind_is_found_by_its_name() -> None:
    assert available_sources()["git"].KIND == "git"
    assert available_sources()["git"].FORM == "tree"


def test_a_recipes_base_is_read() -> None:
    base = msgspec.convert({**BASE, "branch": "v2.12.0", "subfolder": "ext"}, source.Base)

    assert (base.urls, base.commit, base.subfolder, base.submodules) == (("https://h/a/x.git",), COMMIT, "ext", True)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        pytest.param({"commit": "main"}, f"commit: 'main' {NO_COMMIT}", id="a branch"),
        pytest.param({"commit": COMMIT[:12]}, f"commit: 'f38033913dbe' {NO_COMMIT}", id="a short id"),
        pytest.param({"commit": COMMIT.upper()}, f"commit: '{COMMIT.upper()}' {NO_COMMIT}", id="capitals"),
        pytest.param({"urls": ["http://h/a"]}, f"urls[0]: 'http://h/a' {NO_ADDRESS}", id="http"),
        pytest.param({"urls": ["ext::sh -c x"]}, f"urls[0]: 'ext::sh -c x' {NO_ADDRESS}", id="ext"),
        pytest.param({"urls": ["--upload-pack=x"]}, f"urls[0]: '--upload-pack=x' {NO_ADDRESS}", id="an option"),
        pytest.param({"urls": ["ssh://-oProxyCommand=x/y"]},
                     ": 'ssh://-oProxyCommand=x/y' is no address of a repository: it looks like an option",
                     id="an option as a host"),
        pytest.param({"urls": ["https://u:p@h/a"]},
                     ": 'https://h/a' was given with credentials; keep them out of files",
                     id="a password"),
        pytest.param({"urls": []}, "urls: expected array of length >= 1", id="no address"),
        pytest.param({"subfolder": "../x"}, ": '../x' leaves its folder through '..'", id="a folder outside"),
        pytest.param({"subfolder": "x/"}, ": 'x/' is not a folder in normal form", id="a folder with a slash"),
        pytest.param({"tag": "v1"}, "tag: unknown key", id="an unknown key"),
    ],
)  # fmt: skip
def test_a_base_that_is_no_pin_is_refused(change: Mapping[str, object], fault: str) -> None:
    found = find_faults({**BASE, **change}, source.Base)

    assert [f"{format_place(one.where)}: {one.what}" for one in found] == [fault]


def test_the_identity_names_all_that_is_asked_for_and_not_the_branch() -> None:
    plain = msgspec.convert(BASE, source.Base)
    full = msgspec.convert(
        {**BASE, "urls": ["https://h/a", "ssh://g@h/a"], "subfolder": "e", "submodules": False, "branch": "b",
         "build": {"requires": ["torch==2.12.0", "ninja"]}}, source.Base,
    )  # fmt: skip

    assert plain.identity == f"commit {COMMIT} of https://h/a/x.git"
    assert full.identity == (
        f"commit {COMMIT} of https://h/a, ssh://g@h/a in e without submodules built with torch==2.12.0, ninja"
    )


def test_resolving_asks_no_repository() -> None:
    base = msgspec.convert({**BASE, "urls": ["https://127.0.0.1:1/x"], "subfolder": "e"}, source.Base)

    locked = source.resolve(base, CONTRACT, component="x", env={})

    assert locked == source.Locked(urls=("https://127.0.0.1:1/x",), commit=COMMIT, subfolder="e")
    assert locked.identity == base.identity
    assert source.artifact_digest(locked, TARGET) == COMMIT
    assert locked.covers(TARGET)


def test_a_lock_covers_the_targets_that_it_has_requirements_for() -> None:
    wheel = LockedRequirement(
        distribution="ninja", version="1.11.1", file="ninja-1.11.1-py3-none-any.whl", sha256="0" * 64,
        python_tag="cp312", platform=TARGET.platform,
    )  # fmt: skip
    locked = source.Locked(urls=("https://h/x",), commit=COMMIT, requires=("ninja",), requirement=(wheel,))
    other = replace(TARGET, python_tag="cp313")
    base = msgspec.convert(
        {**BASE, "build": {"requires": ["ninja"], "backend": "setup.py", "env": {"A": "1"}, "pass_env": ["B"]}},
        source.Base,
    )

    assert locked.covers(TARGET)
    assert not locked.covers(other)
    spec = source.build_spec(base, locked, TARGET)
    assert (spec.backend, spec.env, spec.pass_env, spec.subfolder) == ("setup.py", {"A": "1"}, ("B",), "")
    assert [requirement.file for requirement in spec.requirements] == ["ninja-1.11.1-py3-none-any.whl"]
    with pytest.raises(LockError):
        source.build_spec(base, locked, other)


def test_a_lock_that_lost_its_requirements_covers_no_target() -> None:
    locked = source.Locked(urls=("https://h/x",), commit=COMMIT, requires=("ninja",))
    base = msgspec.convert({**BASE, "build": {"requires": ["ninja"]}}, source.Base)

    assert not locked.covers(TARGET)
    with pytest.raises(LockError, match=f"the lock has no build requirements for {TARGET}"):
        source.build_spec(base, locked, TARGET)
