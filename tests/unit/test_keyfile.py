"""Keys read from disk: only what is the digest of its own inputs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolkit.errors import UsageError
from toolkit.keyfile import read_key
from toolkit.model import make_key

KEY = make_key([("base", "wheel:00"), ("target", "cp311")])
EXPLAINED = {"key": KEY.digest, "inputs": dict(KEY.inputs)}
MANIFEST = {"schema": 1, "key": KEY.digest, "key_inputs": dict(KEY.inputs), "files": {}}


def write(path: Path, body: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(body if isinstance(body, str) else json.dumps(body))
    return path


@pytest.mark.parametrize(
    ("file", "body", "named"),
    [
        pytest.param("key.json", EXPLAINED, "key.json", id="what key explain prints"),
        pytest.param("g/manifest.json", MANIFEST, "g/manifest.json", id="a manifest"),
        pytest.param("g/manifest.json", MANIFEST, "g", id="an overlay's folder"),
        pytest.param("sample/current/manifest.json", MANIFEST, "sample", id="a recipe's folder"),
    ],
)
def test_a_key_is_read_from(tmp_path: Path, file: str, body: object, named: str) -> None:
    write(tmp_path / file, body)

    assert read_key(tmp_path / named) == KEY


def test_a_recipes_folder_means_its_current_overlay(tmp_path: Path) -> None:
    write(tmp_path / "current/manifest.json", MANIFEST)
    write(tmp_path / "manifest.json", "another")

    assert read_key(tmp_path) == KEY


def test_where_nothing_is_there_is_no_key(tmp_path: Path) -> None:
    assert read_key(tmp_path / "dsv4-dvm-release") is None
    assert read_key(tmp_path) is None


@pytest.mark.parametrize(
    "tamper",
    [
        pytest.param(lambda body: body["inputs"].update(target="cp312"), id="an input changed"),
        pytest.param(lambda body: body["inputs"].pop("target"), id="an input dropped"),
        pytest.param(lambda body: body["inputs"].update(more=""), id="an input added"),
    ],
)
def test_a_tampered_key_is_refused_with_both_digests(tmp_path: Path, tamper: Callable[[Any], object]) -> None:
    body = {"key": KEY.digest, "inputs": dict(KEY.inputs)}
    tamper(body)
    path = write(tmp_path / "key.json", body)

    with pytest.raises(UsageError) as caught:
        read_key(path)
    actual = make_key(body["inputs"].items()).digest  # type: ignore[attr-defined]
    assert caught.value.message == f"{path} holds the key {KEY.digest}, but its inputs give {actual}"


@pytest.mark.parametrize(
    "body",
    ["", "{", "[]", "null", "3", "{}", {"inputs": {}}, {"key": "00"}, {"key": "00", "inputs": []}, {"key_inputs": 3}],
    ids=str,
)
def test_anything_else_is_refused(tmp_path: Path, body: object) -> None:
    path = write(tmp_path / "key.json", body)

    with pytest.raises(UsageError) as caught:
        read_key(path)
    assert caught.value.message == f"{path} holds no key"
    assert caught.value.hint == "expected what `toolkit key explain --json` prints, or an overlay's folder"
