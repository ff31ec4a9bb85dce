"""How the doctor's lines are shown, to a person and to a program."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import struct
import termios

import pytest

from toolkit.diagnosing.answers_machine import describe_observations
from toolkit.diagnosing.wrapping import screen_width
from toolkit.doctor.observed import bad, doubtful, good
from toolkit.report import Console


def test_lines_are_aligned_and_added_up() -> None:
    answer = describe_observations(
        [
            good("path.torch", "wins"),
            doubtful("interpreter.path", "on the PATH python is another", "put it first"),
            bad("torch.match", "no\x1b[2Jmatch\n", "install the other"),
        ],
        verbose=True,
    )

    assert answer.text == (
        "ok    path.torch        wins\n"
        "warn  interpreter.path  on the PATH python is another\n"
        "                        -> put it first\n"
        "fail  torch.match       no\\x1b[2Jmatch\\n\n"
        "                        -> install the other\n"
        "1 ok, 1 warn, 1 fail"
    )
    assert json.loads(json.dumps(answer.document)) == {
        "schema": 1,
        "worst": "fail",
        "observations": [
            {"name": "path.torch", "grade": "ok", "seen": "wins", "do": ""},
            {
                "name": "interpreter.path",
                "grade": "warn",
                "seen": "on the PATH python is another",
                "do": "put it first",
            },
            {"name": "torch.match", "grade": "fail", "seen": "no\x1b[2Jmatch\n", "do": "install the other"},
        ],
    }


def test_nothing_is_nothing_bad() -> None:
    answer = describe_observations([], verbose=False)

    assert answer.text == "0 ok, 0 warn, 0 fail"
    assert answer.document["worst"] == "ok"


def test_what_is_ok_is_only_counted() -> None:
    answer = describe_observations([good("a.long_name", "fine"), doubtful("b", "not so", "mend it")], verbose=False)

    assert answer.text == "warn  b  not so\n         -> mend it\n1 ok (shown with -v), 1 warn, 0 fail"
    assert [one["name"] for one in answer.document["observations"]] == ["a.long_name", "b"]


def test_lines_end_at_the_screen_s_width_and_commands_stay_whole() -> None:
    seen = "word " * 11 + "/a/path/that/is/never/cut/however/long/it/may/be/and/this/one/is"
    answer = describe_observations(
        [doubtful("one", seen, "look at it there with `toolkit run --host -- python -m pytest tests` and see")],
        verbose=False, width=60,
    )  # fmt: skip

    assert answer.text.splitlines() == [
        "warn  one  word word word word word word word word word word",
        "           word",
        "           /a/path/that/is/never/cut/however/long/it/may/be/and/this/one/is",
        "           -> look at it there with",
        "              `toolkit run --host -- python -m pytest tests`",
        "              and see",
        "0 ok, 1 warn, 0 fail",
    ]


@pytest.mark.parametrize(("columns", "width"), [(80, 80), (200, 200), (20, 60), (0, 120)])
def test_the_width_is_the_terminal_s(columns: int, width: int) -> None:
    above, below = pty.openpty()
    fcntl.ioctl(below, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with os.fdopen(below, "w") as screen, os.fdopen(above, "r"):
        console = Console(stdout=screen, stderr=screen, environ={})

        assert screen_width(console.columns) == width


def test_without_a_terminal_the_width_is_120() -> None:
    stream = io.StringIO()

    assert Console(stdout=stream, stderr=stream, environ={}).columns is None
    assert screen_width(None) == 120
