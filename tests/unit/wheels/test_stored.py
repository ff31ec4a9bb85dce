"""The record beside a stored wheel: read as it was written, and believed in nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from toolkit.errors import StoreError
from toolkit.files import sha256_file
from toolkit.model import AppliedPatch, Wheel, make_key
from toolkit.wheels.stored import RECORD_FILE, StoredWheel, read_wheel_record, write_wheel_record

KEY = make_key([("base", "wheel:aa"), ("platform", "manylinux_2_28_x86_64")])
FILE = "sample-1.0+p1.kaabbccdd-py3-none-any.whl"
HINT = "remove that folder and build again"


@pytest.fixture
def stored(tmp_path: Path) -> StoredWheel:
    """Write a wheel with its record into `tmp_path`, which stands for a store entry."""
    (tmp_path / FILE).write_bytes(b"the wheel")
    wheel = Wheel(
        component="sample",
        distribution="sample",
        import_name="sample",
        version="1.0+p1.kaabbccdd",
        path=tmp_path / FILE,
        sha256=sha256_file(tmp_path / FILE),
        key=KEY.digest,
        patches=("0001-a",),
    )
    applied = (AppliedPatch(name="0001-a", status="offset", offsets=("hunk 1: 3 lines",)),)
    stored = StoredWheel(wheel=wheel, key=KEY, applied=applied, findings=("RECORD has no line for 'a'",))
    write_wheel_record(stored, tmp_path)
    return stored


def test_a_record_is_read_as_it_was_written(stored: StoredWheel, tmp_path: Path) -> None:
    assert read_wheel_record(tmp_path) == stored


def test_an_entry_may_be_moved(stored: StoredWheel, tmp_path: Path) -> None:
    moved = tmp_path.rename(tmp_path.with_name(f"{tmp_path.name}-moved"))

    assert read_wheel_record(moved).wheel.path == moved / FILE


def test_equal_wheels_have_equal_records(stored: StoredWheel, tmp_path: Path) -> None:
    first = (tmp_path / RECORD_FILE).read_bytes()

    write_wheel_record(stored, tmp_path)

    assert (tmp_path / RECORD_FILE).read_bytes() == first


def edit_record(folder: Path, change: Callable[[dict], object]) -> None:
    path = folder / RECORD_FILE
    body = json.loads(path.read_text())
    change(body)
    path.write_text(json.dumps(body))


DIGEST_OF_OTHER_INPUTS = {"digest": KEY.digest, "inputs": [["base", "wheel:bb"]]}
NAME_TWICE = {"digest": KEY.digest, "inputs": [["base", "a"], ["base", "b"]]}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        pytest.param(lambda body: body.update(schema=2), "its record has schema 2, expected 1", id="another schema"),
        pytest.param(lambda body: body.update(key=DIGEST_OF_OTHER_INPUTS), "its key is not the digest of its inputs",
                     id="a key of other inputs"),
        pytest.param(lambda body: body.update(key=NAME_TWICE), "its key is not the digest of its inputs",
                     id="an input twice"),
        pytest.param(lambda body: body.update(file="other.whl"), "'other.whl' is missing", id="another file"),
        pytest.param(lambda body: body.update(file="../entry.whl"), "'../entry.whl' is missing", id="a file outside"),
        pytest.param(lambda body: body.update(file=".."), "'..' is missing", id="the folder above"),
        pytest.param(lambda body: body.update(file=""), "'' is missing", id="no file name"),
        pytest.param(lambda body: body.update(file="a\0b"), "'a\\x00b' is missing", id="a name with nul"),
        pytest.param(lambda body: body.update(extra=1),
                     "its record cannot be read (Object contains unknown field `extra`)", id="an unknown member"),
        pytest.param(lambda body: body.pop("version"),
                     "its record cannot be read (Object missing required field `version`)", id="a missing member"),
    ],
)  # fmt: skip
def test_a_record_that_does_not_hold_is_refused(
    stored: StoredWheel, tmp_path: Path, change: Callable[[dict], object], why: str
) -> None:
    (tmp_path.parent / "entry.whl").write_bytes(b"the wheel")
    edit_record(tmp_path, change)

    with pytest.raises(StoreError) as caught:
        read_wheel_record(tmp_path)

    assert caught.value.message == f"store entry {tmp_path} is damaged: {why}"
    assert caught.value.hint == HINT


def test_a_wheel_with_other_bytes_is_refused(stored: StoredWheel, tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"the whee1")

    with pytest.raises(StoreError) as caught:
        read_wheel_record(tmp_path)

    assert caught.value.message == (
        f"store entry {tmp_path} is damaged: {FILE} has sha256 {sha256_file(tmp_path / FILE)}, "
        f"expected {stored.wheel.sha256}"
    )


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"\xff", b"null"], ids=["empty", "cut", "list", "bytes", "null"])
def test_a_record_that_cannot_be_read_is_refused(stored: StoredWheel, tmp_path: Path, raw: bytes) -> None:
    (tmp_path / RECORD_FILE).write_bytes(raw)

    with pytest.raises(StoreError, match=f"^store entry {tmp_path} is damaged: its record cannot be read"):
        read_wheel_record(tmp_path)


def test_an_entry_without_a_record_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=f"^store entry {tmp_path} is damaged: its record cannot be read"):
        read_wheel_record(tmp_path)
