"""The form of torch's structured trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.trace_sample import record
from toolkit.cachekeys.trace import Reading, Record, read_records


def read(tmp_path: Path, text: str | bytes) -> tuple[list[Record], Reading]:
    path = tmp_path / "a.log"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    reading = Reading()
    return list(read_records(path, reading, wants)), reading


def wants(header: dict[str, Any]) -> bool:
    return "skip" not in header


def test_records_come_with_their_payloads(tmp_path: Path) -> None:
    text = record({"a": 1}) + record({"b": 2}, "{\n}\n\nend\n") + record({"c": 3}, "one")
    found, reading = read(tmp_path, text)

    assert [(one.header.get("b"), one.payload) for one in found] == [(None, None), (2, "{\n}\n\nend\n"), (None, "one")]
    assert found[0].stamp == "07:28:05.762000"
    assert reading == Reading(records=3)


def test_a_payload_that_is_not_wanted_is_not_kept(tmp_path: Path) -> None:
    found, reading = read(tmp_path, record({"skip": 1}, "text") + record({"a": 1}))

    assert ([one.payload for one in found], reading) == ([None, None], Reading(records=2))


def test_a_payload_that_was_cut_is_counted_and_left_out(tmp_path: Path) -> None:
    found, reading = read(tmp_path, record({"a": 1}, "one\ntwo")[:-3])

    assert ([one.payload for one in found], reading) == ([None], Reading(records=1, cut_payloads=1))


def test_lines_of_another_form_are_counted(tmp_path: Path) -> None:
    text = "\tnobody's\nhello\n" + record({"a": 1}) + record({"b": 1})[:-4] + "\n" + "[" * 100_000 + "\n"
    deep = "V1130 07:28:05.762000 5796 torch/x.py:1] " + '{"a":' * 100_000 + "\n"
    found, reading = read(tmp_path, text + deep)

    assert (len(found), reading) == (1, Reading(records=1, unknown_lines=5))


def test_bytes_that_are_no_utf8_cut_their_payload_only(tmp_path: Path) -> None:
    text = record({"a": 1}, "one").encode().replace(b"one", b"\xff\xfe") + record({"b": 1}, "é").encode()
    found, reading = read(tmp_path, text)

    assert ([one.payload for one in found], reading.cut_payloads) == ([None, "é"], 1)


def test_an_empty_file_has_no_records(tmp_path: Path) -> None:
    assert read(tmp_path, "") == ([], Reading())
