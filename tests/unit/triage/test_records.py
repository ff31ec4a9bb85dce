"""Lines that hold other lines."""

from __future__ import annotations

import json

import pytest

from toolkit.triage.records import inner_lines

TRACE = 'Traceback (most recent call last):\n  File "/a.py", line 3, in f\nKeyError: 1'


@pytest.mark.parametrize(
    ("record", "lines"),
    [
        pytest.param(
            {"log": '  File "/a.py", line 3\n', "stream": "stderr", "time": "2026-08-01T10:00:00.12Z"},
            ['2026-08-01T10:00:00.12Z   File "/a.py", line 3'],
            id="a container's",
        ),
        pytest.param(
            {"level": "error", "rank": 3, "msg": "it failed", "exc_info": "ValueError: x"},
            ["ERROR [rank3]: it failed", "ERROR [rank3]: ValueError: x"],
            id="a logger's, with its exception",
        ),
        pytest.param(
            {"message": {"message": "KeyError: 1", "extraInfo": {"py_callstack": TRACE, "timestamp": "17"}}},
            ["KeyError: 1", *TRACE.splitlines()],
            id="torchrun's error file",
        ),
        pytest.param({"rank": True, "ts": 17.5, "event": "a"}, ["a"], id="what is no rank and no time"),
    ],
)
def test_what_a_record_says_is_read_with_its_prefixes(record: object, lines: list[str]) -> None:
    assert inner_lines(json.dumps(record)) == lines


@pytest.mark.parametrize(
    "raw",
    ["{'loss': 3.1}", '{"loss": 3.1}', "[1, 2]", "{}", '{"msg": "cut', "plain \\n text", "{" * 5000 + "}"],
)
def test_what_is_no_record_stays_as_it_is(raw: str) -> None:
    assert inner_lines(raw) == [raw]


def test_a_traceback_in_one_line_is_taken_apart() -> None:
    raw = "failed: 'Traceback (most recent call last):\\n  File \\\"/a.py\\\", line 3, in f\\n    x()\\nKeyError: 1'"

    assert inner_lines(raw) == [
        "failed: 'Traceback (most recent call last):", '  File "/a.py", line 3, in f', "    x()", "KeyError: 1'"
    ]  # fmt: skip
