"""How the doctor's lines are shown, to a person and to a program."""

from __future__ import annotations

import json

from toolkit.diagnosing.answers_machine import describe_observations
from toolkit.doctor.observed import bad, doubtful, good


def test_lines_are_aligned_and_added_up() -> None:
    answer = describe_observations(
        [
            good("path.torch", "wins"),
            doubtful("interpreter.path", "on the PATH python is another", "put it first"),
            bad("torch.match", "no\x1b[2Jmatch\n", "install the other"),
        ]
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
    answer = describe_observations([])

    assert answer.text == "0 ok, 0 warn, 0 fail"
    assert answer.document["worst"] == "ok"
