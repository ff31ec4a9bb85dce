"""Logs and rules that were written to break the reading of them, or might as well have been."""

from __future__ import annotations

import json
import time

import pytest

from toolkit.errors import RecipeError
from toolkit.triage import add_rules, shipped_rules
from toolkit.triage.exceptions import read_frame
from toolkit.triage.expressions import parse
from toolkit.triage.findings import match_finding
from toolkit.triage.judging import judge
from toolkit.triage.matching import match_incident
from toolkit.triage.progress import step_of
from toolkit.triage.values import Finding
from toolkit.triage.walking import STREAMS_KEPT, LogRead, read_log

BOOK = shipped_rules()
RULE = '[[rule]]\ncause = "x"\nlayer = "codegen"\nsource = "s"\nmeans = "m"\n'
WHEN = "when = [{ line = '(?P<a>bo+m)' }]\n"


def read(text: str) -> LogRead:
    return read_log("train.log", None, [text.encode()], BOOK)


def first(text: str) -> Finding:
    return judge([read(text)], BOOK, {})[0][0]


@pytest.mark.parametrize(
    "line", ["step" + " " * 8000 + "x", "loss step" + "\t" * 8000, 'File "a", line 1, in ' + " " * 8000 + "x"]
)
def test_a_line_of_blanks_takes_no_time(line: str) -> None:
    began = time.perf_counter()
    step_of(line)
    read_frame(line)

    assert time.perf_counter() - began < 0.2  # It was 2 to 10 seconds.


def test_a_frame_has_its_function_without_the_blanks_around_it() -> None:
    assert read_frame('  File "a.py", line 12, in forward  ') == ("a.py", 12, "forward")
    assert read_frame('  File "a.py", line 12 in <listcomp> of f') == ("a.py", 12, "<listcomp> of f")
    assert read_frame('  File "a.py", line 12') == ("a.py", 12, "")


def test_numbers_that_python_does_not_read_are_text() -> None:
    digits = "9" * 5000

    found = first(
        f'step: {digits} loss: 1\nTraceback (most recent call last):\n  File "a", line {digits}, in f\nE: x\n'
    )

    assert step_of(f"step: {digits} loss: 1") is None
    assert read_frame(f'  File "a", line {digits}, in f') is None
    assert found.cause == "unrecognized"


def test_processes_without_number_are_read_in_linear_time() -> None:
    began = time.perf_counter()
    log = read("".join(f"(Worker pid={at}) RuntimeError: boom {at}\n" for at in range(3 * STREAMS_KEPT)))

    assert sum(incident.count for incident in log.incidents) > STREAMS_KEPT
    assert time.perf_counter() - began < 20  # It was a minute, and grew with the square.


def test_a_long_record_in_json_is_read_whole() -> None:
    frames = "".join(f'  File "/a/torch/x{at}.py", line {at}, in f\n    return g({"y" * 60})\n' for at in range(120))
    said = (
        f"Traceback (most recent call last):\n{frames}RuntimeError: ub overflow, requires 2 bits while 1 bits available"
    )
    record = json.dumps({"level": "error", "rank": 3, "message": said})

    for line in (record, said.replace("\n", "\\n")):
        assert len(line) > 10_000
        assert first(line + "\n").cause == "ub-overflow"


@pytest.mark.parametrize("expression", ["1" + "0" * 400, "9e999", "-" * 50_000 + "1", "1" + "+1" * 20_000, "a\0"])
def test_an_expression_that_cannot_be_evaluated_is_refused(expression: str) -> None:
    with pytest.raises(ValueError, match=r"too large|at most 500|is no expression"):
        parse(expression)


def test_a_sum_beyond_all_numbers_is_shown() -> None:
    sums = "numbers = { n = 'a * 1e308', m = 'n - n' }\nwhen = [{ line = 'boom (?P<a>\\d+)' }]\n"
    text = f"{RULE}summary = '{{n}} {{m}}'\n{sums}"
    book = add_rules(BOOK, {"own.toml": text})
    incident = read_log("a", None, [b"error: boom 100\n"], book).incidents[0]
    match = next(one for one in match_incident(incident, book, {}) if one.rule.cause == "x")

    assert match_finding(incident, match).summary == "inf nan"


def test_a_command_quotes_what_a_log_says() -> None:
    text = f"{RULE}summary = 's'\ncommand = 'ls -l {{a}}'\nwhen = [{{ line = 'boom (?P<a>.*)' }}]\n"
    book = add_rules(BOOK, {"own.toml": text})

    for said, command in (("/a/b.so", "ls -l /a/b.so"), ("x; rm -rf $HOME", "ls -l 'x; rm -rf $HOME'")):
        incident = read_log("a", None, [f"error: boom {said}\n".encode()], book).incidents[0]
        match = next(one for one in match_incident(incident, book, {}) if one.rule.cause == "x")
        assert match_finding(incident, match).command == command


@pytest.mark.parametrize("template", ["{a!r}", "{a:>900000000}"])
def test_a_template_has_no_formats(template: str) -> None:
    with pytest.raises(RecipeError) as raised:
        add_rules(BOOK, {"own.toml": f"{RULE}summary = '{template}'\n{WHEN}"})

    assert raised.value.details == (f"x: {template!r}: {{a}} has a format, expected the name alone",)
