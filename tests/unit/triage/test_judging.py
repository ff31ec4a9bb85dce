"""Who failed first, what only followed, and what is said of it."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

import pytest

from toolkit.triage import Finding, RuleBook, add_rules, read_rules, rule_faults, shipped_rules
from toolkit.triage.judging import judge
from toolkit.triage.walking import read_log

TIMED_OUT = "EI0006: {when} Getting socket times out. Reason: the peer sent nothing"
OVERFLOW = "{when} error: ub overflow, requires 2097152 bits while 1572864 bits available!"
UNKNOWN = (
    '{when} ERROR Traceback (most recent call last):\n  File "/opt/data.py", line 3, in load\n    x\nOverflowError: a'
)

EARLY, LATE = "2026-06-02 03:06:40.000", "2026-06-02 03:11:50.120"

QUIET = (
    "2026-06-02 03:06:40.000 WARNING error: ub overflow, requires 2097152 bits while 1572864 bits available, skipped\n"
)
STEP = "2026-06-02 03:10:00.000 INFO step: 8  loss: 2.0\n"
OPTIONAL = (
    'Traceback (most recent call last):\n  File "/opt/a.py", line 3, in f\n'
    "ModuleNotFoundError: No module named 'apex'\n"
)

RULES = """
anchors = ["error", "warm"]

[[rule]]
cause = "too-warm"
layer = "runtime"
summary = "{degrees} degrees, {excess} too many, in {place}"
means = "m"
fix = "open {{a}} window of {room}"
source = "s"
numbers = { excess = "degrees - 20" }
when = [{ line = '(?i)warm: (?P<degrees>\\d+)', near = ['in the (?P<place>\\w+)'], where = "degrees > 20" }]

[[rule]]
cause = "warm"
layer = "runtime"
generic = true
confidence = "low"
summary = "warm"
means = "m"
source = "s"
when = [{ line = '(?i)warm: ' }]

[[rule]]
cause = "asked-for-nothing"
layer = "environment"
kind = "warning"
summary = "asked for {asked}"
means = "m"
source = "s"
when = [{ facts = { asked = "no.*", told = "" }, no_facts = ["other"] }]
"""


def book_of(text: str = RULES) -> RuleBook:
    return read_rules({"own.toml": text})


def findings(
    logs: Mapping[str, str], *, book: RuleBook | None = None, facts: Mapping[str, str] | None = None
) -> list[Finding]:  # fmt: skip
    rules = book or shipped_rules()
    read = []
    for name, text in logs.items():
        rank = int(name[4]) if name.startswith("rank") else None
        read.append(read_log(name, rank, [textwrap.dedent(text).encode()], rules))
    return judge(read, rules, facts or {})[0]


def test_the_earliest_error_that_is_no_time_out_is_the_cause() -> None:
    found = findings(
        {
            "rank0.log": TIMED_OUT.format(when=EARLY),
            "rank1.log": TIMED_OUT.format(when=LATE),
            "rank3.log": OVERFLOW.format(when=LATE),
        }
    )

    assert [(one.cause, one.kind, one.ranks) for one in found] == [
        ("ub-overflow", "cause", (3,)), ("peer-timed-out", "victim", (0, 1))
    ]  # fmt: skip
    assert found[0].summary.startswith("rank3: a generated kernel does not fit")
    assert found[1].summary.startswith("rank0 first, 2 ranks in all: ")
    assert found[1].summary.endswith("(followed from what failed on rank3: ub-overflow)")


@pytest.mark.parametrize("order", [("rank2.log", "rank3.log"), ("rank3.log", "rank2.log")])
def test_an_unknown_failure_that_came_first_is_not_passed_over(order: tuple[str, str]) -> None:
    logs = {"rank2.log": UNKNOWN.format(when=EARLY), "rank3.log": OVERFLOW.format(when=LATE)}

    found = findings({name: logs[name] for name in order})

    assert [(one.layer, one.ranks) for one in found] == [("unknown", (2,)), ("codegen", (3,))]


def test_in_one_process_what_is_known_decides_before_what_is_not() -> None:
    found = findings({"a.log": f"{UNKNOWN.format(when=EARLY)}\n" + "INFO fine\n" * 90 + OVERFLOW.format(when=LATE)})

    assert [one.layer for one in found] == ["codegen", "unknown"]


def test_what_training_survived_comes_after_what_ended_it() -> None:
    step = "2026-06-02 03:10:00.000 INFO step: 8  loss: 2.0\n"

    found = findings({"a.log": f"{OVERFLOW.format(when=EARLY)}\n{step}{UNKNOWN.format(when=LATE)}"})

    assert [(one.layer, one.goes_on) for one in found] == [("unknown", False), ("codegen", True)]


def test_a_victim_alone_sends_to_the_other_logs() -> None:
    (found,) = findings({"rank0.log": TIMED_OUT.format(when=EARLY)})

    assert (found.layer, found.kind) == ("distributed", "victim")
    assert "the earliest error that is no time-out is the cause" in found.fix


def test_templates_are_filled_and_specific_rules_decide() -> None:
    (found,) = findings({"a.log": "warm: 30\n  in the attic\n"}, book=book_of())

    assert (found.cause, found.summary, found.fix) == (
        "too-warm", "30 degrees, 10 too many, in attic", "open {a} window of ?"
    )  # fmt: skip


def test_a_generic_rule_decides_where_no_other_does() -> None:
    (found,) = findings({"a.log": "warm: 19\n  in the attic\n"}, book=book_of())

    assert (found.cause, found.confidence) == ("warm", "low")


@pytest.mark.parametrize(
    ("facts", "causes"),
    [
        ({"asked": "nothing", "told": ""}, ["asked-for-nothing"]),
        ({"asked": "nothing", "told": "x"}, ["nothing-failed"]),
        ({"asked": "nothing"}, ["nothing-failed"]),
        ({"asked": "nothing", "told": "", "other": ""}, ["nothing-failed"]),
    ],
)
def test_a_rule_about_the_launch_needs_its_facts(facts: dict[str, str], causes: list[str]) -> None:
    assert [one.cause for one in findings({"a.log": "fine\n"}, book=book_of(), facts=facts)] == causes


def test_what_is_given_counts_more_than_what_a_log_says() -> None:
    text = RULES + "\n[[fact]]\nname = 'asked'\nline = 'asked=(?P<value>\\w+)'\nanchors = ['asked=']\n"
    log = {"a.log": "asked=nobody\n"}

    (said,) = findings(log, book=book_of(text), facts={"told": ""})
    (given,) = findings(log, book=book_of(text), facts={"told": "", "asked": "now"})

    assert (said.summary, said.evidence[0].line) == ("asked for nobody", 1)
    assert (given.summary, given.evidence) == ("asked for now", ())


def test_rules_of_ones_own_take_the_place_of_shipped_ones() -> None:
    text = """
    [[rule]]
    cause = "ub-overflow"
    layer = "codegen"
    summary = "ours"
    means = "m"
    source = "s"
    when = [{ line = 'ub overflow' }]
    """
    book = add_rules(shipped_rules(), {"own.toml": text})

    assert [one.summary for one in findings({"a.log": OVERFLOW.format(when=EARLY)}, book=book)] == ["ours"]


def test_faults_of_rules_are_told_together() -> None:
    text = RULES.replace("(?i)warm: (?P<degrees>", "(?=x)(?P<degrees>").replace("degrees > 20", "degrees >")

    assert rule_faults(book_of(text), patches=[], recipes=[]) == [
        "too-warm: '(?=x)(?P<degrees>\\\\d+)': invalid perl operator: (?=",
        "too-warm: 'open {{a}} window of {room}': {room} is no group of a pattern, number or fact",
        "too-warm: 'degrees >' is no expression",
    ]


@pytest.mark.parametrize(
    ("template", "fault"),
    [
        ("{degrees.__class__}", "{degrees.__class__} is no group of a pattern, number or fact"),
        ("{0}", "{0} is no group of a pattern, number or fact"),
        ("{degrees", "expected '}' before end of string; a brace that is meant is doubled"),
        ("}", "Single '}' encountered in format string; a brace that is meant is doubled"),
    ],
)
def test_a_template_that_cannot_be_filled_is_refused(template: str, fault: str) -> None:
    text = RULES.replace("open {{a}} window of {room}", template)

    assert rule_faults(book_of(text)) == [f"too-warm: {template!r}: {fault}"]


def test_a_rule_that_never_holds_is_refused() -> None:
    text = "[[rule]]\ncause = 'a'\nlayer = 'runtime'\nsummary = 's'\nmeans = 'm'\nsource = 's'\nwhen = []\n"

    assert rule_faults(book_of(text)) == ["a: `when` is empty: it never holds"]


PREFLIGHT = """\
ok    preflight.determinism    --debug.deterministic is not given
warn  cann.environment         no CANN: ASCEND_HOME_PATH is not set, error
                               -> add --model.attention_backend=auto, or source set_env.sh where it failed
dsv4-dvm-release: aliased-reduction on base: red, as it must be (9.1 s)
  base: GuardOnDataDependentSymNode: Could not guard on data-dependent expression Eq(u0, 1) (unhinted: x), expected so
"""


def test_what_our_own_commands_print_is_no_failure() -> None:
    assert [one.layer for one in findings({"a.log": PREFLIGHT + STEP})] == ["none"]


@pytest.mark.parametrize(
    ("text", "confidence", "rest"),
    [
        (f"{STEP}INFO Training completed\n", "high", "2 lines of 1 log: training has ended"),
        (STEP, "medium", "1 line of 1 log: the last sign of progress is `step: 8  loss: 2.0`, of an end there is none"),
        ("hello\n", "low", "1 line of 1 log: nor do they tell of any training"),
    ],
)
def test_how_sure_it_is_that_nothing_failed(text: str, confidence: str, rest: str) -> None:
    (found,) = findings({"a.log": text})

    assert (found.summary, found.confidence) == (f"no failure is told of in {rest}", confidence)


@pytest.mark.parametrize(
    ("text", "layer"),
    [
        pytest.param(QUIET + STEP, "none", id="a warning that training survived"),
        pytest.param(QUIET, "codegen", id="a warning at the end"),
        pytest.param(OPTIONAL + STEP, "none", id="a package that is done without"),
        pytest.param(OPTIONAL, "unknown", id="a package at the end"),
        pytest.param("ERROR the disk is nearly full\n" + STEP, "none", id="a line that training survived"),
        pytest.param("ERROR the disk is full\n", "unknown", id="a line at the end"),
    ],
)
def test_what_no_logger_calls_an_error_and_training_survives_is_no_failure(text: str, layer: str) -> None:
    assert [one.layer for one in findings({"a.log": text})] == [layer]


def test_a_wrapper_alone_is_a_victim_of_what_another_rank_says() -> None:
    wrapper = (
        "{when} [rank1]: torch._inductor.exc.InductorError: SubprocException: An exception occurred in a subprocess"
    )

    found = findings({"rank1.log": wrapper.format(when=EARLY), "rank3.log": OVERFLOW.format(when=LATE)})

    assert [(one.layer, one.kind) for one in found] == [("codegen", "cause"), ("unknown", "victim")]


def test_a_known_time_out_decides_before_a_line_that_only_says_error() -> None:
    found = findings({"rank0.log": f"{EARLY} ERROR wait for the socket\n" + TIMED_OUT.format(when=LATE)})

    assert found[0].cause == "peer-timed-out"


def test_a_variable_that_is_not_set_says_nothing_against_the_log() -> None:
    text = RULES + "\n[[fact]]\nname = 'asked'\nline = 'asked=(?P<value>\\w+)'\nanchors = ['asked=']\n"

    (found,) = findings({"a.log": "asked=nobody\n"}, book=book_of(text), facts={"told": "", "asked": ""})

    assert found.summary == "asked for nobody"


def test_the_user_s_own_frame_is_named_beside_a_library_s() -> None:
    text = (
        'Traceback (most recent call last):\n  File "/opt/train/data.py", line 3, in load\n'
        '  File "/usr/lib/python3.11/json/decoder.py", line 355, in raw_decode\n'
        "json.decoder.JSONDecodeError: Expecting value\n"
    )

    (found,) = findings({"a.log": text})

    assert found.summary == (
        "JSONDecodeError: Expecting value in /usr/lib/python3.11/json/decoder.py:355 (raw_decode), called from "
        "/opt/train/data.py:3 (load): no rule knows it; nothing of torch or the NPU is in its traceback"
    )


@pytest.mark.parametrize(
    "text",
    [
        "bash: torchrun: command not found",
        "docker: Error response from daemon: no space",
        "Unhandled exception. System.X: y",
        "===== 1 failed, 11 passed in 0.21s =====",
        "nginx: [emerg] bind() to 0.0.0.0:80 failed",
        "MPI_ABORT was invoked on rank 3",
        "│ Error: Missing required argument",
        "train.py: error: the following arguments are required: --data",
        "ssh: connect to host node3 port 22: Connection refused",
    ],
)
def test_failures_of_other_programs_are_unknown(text: str) -> None:
    assert [one.layer for one in findings({"a.log": text})] == ["unknown"]


@pytest.mark.parametrize(
    "line",
    [
        '+ grep -c "NPU out of memory" old.log',
        "NOTE: if you see 'error: ub overflow', reduce the tile",
        "$ grep Killed log",
    ],
)
def test_what_is_searched_for_did_not_happen(line: str) -> None:
    assert [one.layer for one in findings({"a.log": f"{line}\n{STEP}"})] == ["none"]


IGNORED = (
    "Exception ignored in: <function Pool.__del__ at 0x7f>\nTraceback (most recent call last):\n"
    '  File "/usr/lib/python3.11/multiprocessing/pool.py", line 271, in __del__\n'
    "OSError: [Errno 9] Bad file descriptor\n"
)


@pytest.mark.parametrize(
    "text",
    [
        f"{STEP}INFO Training completed\n{IGNORED}",
        f"INFO probing libatb.so: cannot open shared object file\n{STEP}",
        "[INFO] failure policy: restart 3 times, exit code 137 ends the job\n",
        QUIET + "{'loss': 1.2, 'grad_norm': 0.3, 'learning_rate': 1e-05, 'epoch': 0.1}\n",
        QUIET + "Epoch 0:  10%|█         | 10/100 [00:12<01:50,  0.81it/s, train_loss=2.3]\n",
    ],
    ids=["a destructor", "information", "a policy", "another trainer", "a bar"],
)
def test_what_nobody_calls_a_failure_is_none(text: str) -> None:
    assert [one.layer for one in findings({"a.log": text})] == ["none"]
