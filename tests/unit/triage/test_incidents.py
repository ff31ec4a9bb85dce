"""What one process logged together, told apart from what others did."""

from __future__ import annotations

import itertools
import textwrap

import pytest

from toolkit.triage import shipped_rules
from toolkit.triage.exceptions import read_frame, read_raised, unwrap
from toolkit.triage.incidents import Incident
from toolkit.triage.progress import step_of
from toolkit.triage.walking import LogRead, read_log

CHAIN = """
[rank2]: Traceback (most recent call last):
[rank2]:   File "/opt/a.py", line 3, in inner
[rank2]:     raise ValueError("seven")
[rank2]:            ^^^^^^^^^^^^^^^^^^
[rank2]: ValueError: seven
[rank2]:
[rank2]: The above exception was the direct cause of the following exception:
[rank2]:
[rank2]: Traceback (most recent call last):
[rank2]:   File "/opt/b.py", line 9, in outer
[rank2]:     call()
[rank2]: torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:
[rank2]: ValueError: seven
[rank2]:
[rank2]: Set TORCHDYNAMO_VERBOSE=1 for the internal stack trace
"""


def read(text: str, *, size: int = 1 << 20, rank: int | None = None) -> LogRead:
    data = textwrap.dedent(text).lstrip("\n").encode()
    return read_log("a.log", rank, [data[at : at + size] for at in range(0, len(data), size)], shipped_rules())


def summary(incident: Incident) -> list[tuple[str, list[str], str]]:
    return [
        (
            "<".join(item.raised.names) if item.raised else "",
            [frame.function for frame in item.frames],
            item.raised.message if item.raised else item.text,
        )
        for item in incident.items
    ]


def test_a_chain_is_one_incident_innermost_first() -> None:
    log = read(CHAIN)

    assert [one.rank for one in log.incidents] == [2]
    inner, outer, *more = summary(log.incidents[0])
    assert inner == ("ValueError", ["inner"], "seven")
    assert log.incidents[0].items[0].frames[0].source == 'raise ValueError("seven")'
    assert outer[:2] == ("BackendCompilerFailed", ["outer"])
    assert more[0] == ("ValueError", [], "seven\n\nSet TORCHDYNAMO_VERBOSE=1 for the internal stack trace")


def test_interleaved_ranks_are_taken_apart() -> None:
    lines = []
    for line in CHAIN.strip().splitlines():
        lines += [line, line.replace("rank2", "rank5").replace("seven", "eight"), "[rank0]: INFO step: 3  loss: 2.0"]

    log = read("\n".join(lines))

    assert {one.rank: summary(one)[0] for one in log.incidents} == {
        2: ("ValueError", ["inner"], "seven"),
        5: ("ValueError", ["inner"], "eight"),
    }


def test_lines_without_prefix_go_on_with_what_was_said_before() -> None:
    text = """
    2026-08-20 11:02:12,123 [rank1] ERROR Traceback (most recent call last):
      File "/opt/x.py", line 3, in main
        f()
    KeyError: 'tokens'
    2026-08-20 11:02:13,000 [rank0] INFO all is well here, no error
    """

    (incident,) = read(text).incidents

    assert incident.rank == 1
    assert summary(incident) == [("KeyError", ["main"], "'tokens'")]


@pytest.mark.parametrize("blank", ["step: 7  loss: 1.5", "{'loss': 2.1, 'grad_norm': 1.0, 'step': 7}"])
def test_the_last_step_before_is_known_and_whether_training_went_on(blank: str) -> None:
    failure = 'Traceback (most recent call last):\n  File "/a.py", line 3, in f\nKeyError: 1\n'

    ended = read(f"{blank}\n{failure}").incidents[0]
    survived = read(f"{blank}\n{failure}{blank}\n").incidents[0]

    assert (ended.last_step, ended.goes_on) == (7, False)
    assert (survived.last_step, survived.goes_on) == (7, True)


def test_what_repeats_is_kept_once_and_counted() -> None:
    failure = (
        'Traceback (most recent call last):\n  File "/a.py", line 3, in f\nKeyError: {at}\nINFO step: {at} loss: 1\n'
    )

    log = read("".join(failure.format(at=at) for at in range(500)))

    assert [(one.count, one.goes_on) for one in log.incidents] == [(500, True)]


@pytest.mark.parametrize("size", [64, 1000])
def test_line_numbers_hold_across_chunks(size: int) -> None:
    text = "fine\n" * 700 + "RuntimeError: lost\n" + "fine\n" * 300
    data = text.encode()
    ends = [at + 1 for at in range(len(data)) if data[at : at + 1] == b"\n"]
    cuts = [0, *ends[::size], len(data)]
    chunks = [data[start:end] for start, end in itertools.pairwise(cuts) if end > start]

    log = read_log("a.log", None, chunks, shipped_rules())

    assert [one.items[0].at.number for one in log.incidents] == [701]
    assert (log.lines, log.bytes) == (1001, len(data))


def test_a_long_line_is_read_around_its_word() -> None:
    line = "x " * 3_000_000 + "error: ub overflow, requires 4 bits while 2 bits available" + " y" * 3_000_000

    (incident,) = read(line).incidents

    assert "requires 4 bits while 2 bits" in incident.items[0].text
    assert len(incident.items[0].text) < 20_000


@pytest.mark.parametrize(
    ("text", "path", "line", "function"),
    [
        ('  File "/a/b.py", line 3, in <module>', "/a/b.py", 3, "<module>"),
        ('  File "/a/b.py", line 48 in wait', "/a/b.py", 48, "wait"),
        ('  |   File "/a/b.py", line 3, in f', "/a/b.py", 3, "f"),
        ('E     File "/a/b.py", line 3', "/a/b.py", 3, ""),
    ],
)
def test_frames_in_all_spellings(text: str, path: str, line: int, function: str) -> None:
    assert read_frame(text) == (path, line, function)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("KeyError: 'r'", ("KeyError", "'r'")),
        ("torch._dynamo.exc.Unsupported: builtin", ("torch._dynamo.exc.Unsupported", "builtin")),
        ("ValueError('no', 3)", ("ValueError", "('no', 3)")),
        ("AssertionError", ("AssertionError", "")),
        ("Note: 3 errors", None),
        ("Warning: an Error: of theirs", None),
        ("the KeyError: was here", None),
    ],
)
def test_what_is_raised_without_a_traceback(text: str, found: tuple[str, str] | None) -> None:
    assert read_raised(text, in_traceback=False) == found


def test_wrappers_in_a_message_are_followed() -> None:
    raised = unwrap(
        "torch._inductor.exc.InductorError", "LoweringException: GuardOnDataDependentSymNode: Could not guard"
    )

    assert raised.names == ("InductorError", "LoweringException", "GuardOnDataDependentSymNode")
    assert raised.message == "Could not guard"


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("step:  12  loss: 8.4", 12),
        ("iteration       30/     100 | lm loss: 3.2E+00", 30),
        ("global_step=4 grad_norm=2", 4),
        ("step: 1 building graph", None),
        ("3 steps of the ladder", None),
    ],
)
def test_steps_are_told_from_progress_only(text: str, step: int | None) -> None:
    assert step_of(text) == step


def test_workers_without_a_rank_are_told_apart_by_their_process() -> None:
    lines = []
    for line in CHAIN.strip().splitlines():
        lines += [f"(Worker pid={pid}) {line[9:]}".replace("seven", word) for pid, word in ((12, "ten"), (13, "six"))]

    log = read("\n".join(lines))

    assert [summary(one)[0] for one in log.incidents] == [
        ("ValueError", ["inner"], "ten"), ("ValueError", ["inner"], "six")
    ]  # fmt: skip


@pytest.mark.parametrize("before", ["  ", "      │ ", "#14 812.4   ", "  | "])
def test_a_traceback_that_another_program_shows_further_in(before: str) -> None:
    text = "\n".join(f"{before}{line[9:]}" for line in CHAIN.strip().splitlines()[:5])

    (incident,) = read(text).incidents

    assert summary(incident) == [("ValueError", ["inner"], "seven")]


def test_what_dynamo_repeats_of_a_fake_function_is_the_innermost() -> None:
    message = (
        "Dynamo failed to run FX node with fake tensors: call_function mylib.op(*(FakeTensor(..., size=(4,)),), **{}): "
        'got TypeError("empty(): argument \'size\' … \\"must be ints,but got float\\"")\n\nfrom user code:\n  File …'
    )

    raised = unwrap("torch._dynamo.exc.TorchRuntimeError", message)

    assert raised.names == ("TorchRuntimeError", "TypeError")
    assert raised.message.startswith("empty(): argument 'size' … \"must be ints,but got float\"\n\nfrom user code:")


TRACE = 'Traceback (most recent call last):\n  File "/a.py", line 3, in f\nOSError: 9\n'


@pytest.mark.parametrize(
    ("text", "raised"),
    [
        pytest.param(TRACE, [], id="at once"),
        pytest.param("BrokenPipeError: [Errno 32] Broken pipe\n", [], id="without a traceback"),
        pytest.param(f"no more\n{TRACE}", ["OSError"], id="something else behind it"),
    ],
)
def test_only_what_stands_right_behind_it_is_ignored(text: str, raised: list[str]) -> None:
    log = read(f"Exception ignored in: <function Pool.__del__ at 0x7f>\n{text}")

    assert [item.name for one in log.incidents for item in one.items] == raised
