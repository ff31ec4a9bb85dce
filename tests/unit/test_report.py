"""What people and programs get to see, as whole texts."""

import io
import json
import logging
import re
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from toolkit.errors import CommandError, RecipeError
from toolkit.model import CheckResult, Proof
from toolkit.report import ASCII_MARKS, UNICODE_MARKS, Console, render_error, render_proof, render_table


class Stream(io.TextIOWrapper):
    """A text stream of a given encoding that may call itself a terminal."""

    def __init__(self, encoding: str = "utf-8", *, terminal: bool = False) -> None:
        super().__init__(io.BytesIO(), encoding=encoding)
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    @property
    def text(self) -> str:
        self.flush()
        buffer = self.buffer
        assert isinstance(buffer, io.BytesIO)
        return buffer.getvalue().decode(self.encoding)


def console(**changed: Any) -> tuple[Console, Stream, Stream]:
    out, err = changed.pop("out", Stream()), changed.pop("err", Stream())
    return Console(stdout=out, stderr=err, environ=changed.pop("environ", {}), **changed), out, err


def result(name: str, **changed: Any) -> CheckResult:
    usual: dict[str, Any] = {
        "side": "overlay", "wanted": "pass", "status": "pass", "required": True, "ok": True, "detail": "seen",
        "seconds": 1.0, "log": f"/logs/{name}.log",
    }  # fmt: skip
    return CheckResult(name=name, **{**usual, **changed})


def proof(*results: CheckResult, runtime: Any = "host") -> Proof:
    return Proof(recipe="fake", overlay="k", runtime=runtime, results=results, environment={})


RED = result(
    "alias", side="base", wanted="fail", status="fail", detail="launch 1 overwrites the accumulator", seconds=8.0
)
GREEN = result("alias", detail="launches 1 and 2 write a temporary", seconds=9.26)
NOT_RUN = [
    result("fallbacks", side=side, wanted=wanted, status="not run", required=False, ok=False,
           detail="no triton-ascend for cp312", seconds=0.0)
    for side, wanted in (("base", "fail"), ("overlay", "pass"))
]  # fmt: skip
CRASHED = result(
    "dvm-codegen", status="error", ok=False, detail="the child ended with signal SIGSEGV",
    evidence={"last_lines": ["Fatal Python error: Segmentation fault", "  File a.py"]},
)  # fmt: skip
WEAK = result("broadcast", side="base", wanted="fail", status="pass", ok=False, detail="it compiled\non the base")


GOOD = """\
check      base                  overlay    seconds
origins    ·                     ✓ pass         5.2
alias      ✓ red, as it must be  ✓ pass        17.3
    base: launch 1 overwrites the accumulator
fallbacks  · not run             · not run      0.0
    base, overlay: no triton-ascend for cp312

✓ 3 of 3 required results are as they must be (runtime: host)
host run: it proves what loads, compiles and is launched, not the values that an NPU computes"""

BAD = """\
check        base                  overlay  seconds
dvm-codegen  -                     ! error      1.0
    overlay: the child ended with signal SIGSEGV
      Fatal Python error: Segmentation fault
        File a.py
    log: /logs/dvm-codegen.log
broadcast    ! green, must be red  + pass       2.0
    base: it compiled
      on the base
    log: /logs/broadcast.log

! 1 of 3 required results are as they must be (runtime: device)"""


def test_a_good_proof_as_a_table() -> None:
    shown = render_proof(proof(result("origins", seconds=5.24), RED, GREEN, *NOT_RUN), UNICODE_MARKS)

    assert shown == GOOD


def test_a_bad_proof_shows_reasons_last_lines_and_logs() -> None:
    shown = render_proof(proof(CRASHED, WEAK, result("broadcast"), runtime="device"), ASCII_MARKS)

    assert shown == BAD


@pytest.mark.parametrize(
    ("shown", "line"),
    [
        pytest.param(replace(RED, detail="word " * 40), f"    base: {'word ' * 31}...", id="cut where all is well"),
        pytest.param(
            replace(RED, detail="word " * 40, ok=False, status="error", log=""), f"    base: {'word ' * 40}",
            id="whole where it is not",
        ),
    ],
)  # fmt: skip
def test_a_long_reason_is_cut_only_where_all_is_well(shown: CheckResult, line: str) -> None:
    assert render_table([shown], UNICODE_MARKS).splitlines()[2:] == [line]


def test_results_go_to_stdout_and_the_rest_to_stderr() -> None:
    shown, out, err = console()

    shown.stage("fake/torch_npu", "apply 4 patches")
    shown.check("fake", RED)
    shown.check("fake", CRASHED)
    shown.proof(proof(GREEN))
    shown.answer("overlays/fake/env.sh", {})

    assert err.text == (
        "fake/torch_npu: apply 4 patches\n"
        "fake: alias on base: ✓ red, as it must be (8.0 s)\n"
        "fake: dvm-codegen on overlay: ✗ error (1.0 s): the child ended with signal SIGSEGV\n"
    )
    assert out.text.splitlines()[0] == "check  base  overlay  seconds"
    assert out.text.splitlines()[-1] == "overlays/fake/env.sh"


def test_json_mode_puts_one_document_on_stdout_and_nothing_else() -> None:
    shown, out, err = console(json_mode=True)

    shown.stage("fake", "verify")
    shown.proof(proof(GREEN))
    shown.answer("text", {"ok": True})

    assert json.loads(out.text) == {"ok": True}
    assert err.text == "fake: verify\n"


def test_an_error_shows_message_details_and_hint() -> None:
    fault = RecipeError("recipe 'a' has 2 faults", details=["line 1: x", "line 2:\ny"], hint="see docs/recipes.md")

    assert render_error(fault) == (
        "error: recipe 'a' has 2 faults\n  line 1: x\n  line 2:\n  y\nhint: see docs/recipes.md"
    )


def test_in_json_mode_an_error_is_the_document_and_is_told_to_people_too() -> None:
    shown, out, err = console(json_mode=True)

    shown.error(CommandError("pip failed", argv=["pip"], returncode=1, details=["no network"]))

    assert json.loads(out.text) == {
        "error": {
            "kind": "CommandError", "message": "pip failed", "details": ["no network"], "hint": "", "exit_code": 19,
        }
    }  # fmt: skip
    assert err.text == "error: pip failed\n  no network\n"


def test_an_error_is_only_on_stderr_for_people() -> None:
    shown, out, err = console()

    shown.error(RecipeError("bad"))

    assert (out.text, err.text) == ("", "error: bad\n")


@pytest.mark.parametrize(
    ("encoding", "line"),
    [
        pytest.param("utf-8", "fake: a on overlay: ✗ fail (1.0 s): é ✓\n", id="utf-8"),
        pytest.param("ascii", "fake: a on overlay: ! fail (1.0 s): \\xe9 \\u2713\n", id="ascii"),
        pytest.param("latin-1", "fake: a on overlay: ! fail (1.0 s): é \\u2713\n", id="latin-1"),
    ],
)
def test_a_stream_gets_only_what_its_encoding_holds(encoding: str, line: str) -> None:
    shown, _, err = console(err=Stream(encoding))

    shown.check("fake", result("a", status="fail", ok=False, detail="é ✓"))

    assert err.text == line


def test_control_characters_of_a_child_do_not_reach_the_terminal() -> None:
    shown, _, err = console()

    shown.note("\x1b]0;title\x07 \x9b31m red\ttab\nnext\r")

    assert err.text == "?]0;title? ?31m red\ttab\nnext?\n"


@pytest.mark.parametrize(
    ("terminal", "environ", "fancy"),
    [
        pytest.param(True, {"TERM": "xterm"}, True, id="terminal"),
        pytest.param(False, {"TERM": "xterm"}, False, id="pipe"),
        pytest.param(True, {"CI": "true"}, False, id="CI"),
        pytest.param(True, {"NO_COLOR": "1"}, False, id="NO_COLOR"),
        pytest.param(True, {"NO_COLOR": ""}, True, id="empty NO_COLOR"),
        pytest.param(True, {"TERM": "dumb"}, False, id="dumb terminal"),
    ],
)
def test_colours_are_for_terminals_that_want_them(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, environ: dict[str, str], fancy: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    shown, _, err = console(err=Stream(terminal=terminal), environ=environ)

    shown.stage("fake/[x]", "✓ done · [bold]no markup[/bold] " + "long " * 60)

    assert ("\x1b[" in err.text) is fancy
    assert "[bold]no markup[/bold]" in err.text
    assert err.text.count("\n") == 1, "nothing is wrapped"


@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "pipe"])
def test_an_answer_has_its_colours_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    shown, out, _ = console(out=Stream(terminal=terminal), environ={"TERM": "xterm"})
    text = f"fail  one  [bold]no markup[/bold] {'long ' * 60}\nwarn  two  fail  not this one"

    shown.answer(text, {}, styles={r"(?m)^fail(?=  )": "bold red"})

    assert re.sub(r"\x1b\[[\d;]*m", "", out.text) == f"{text}\n"
    assert re.findall(r"\x1b\[[\d;]*m(\S+)\x1b", out.text) == (["fail"] if terminal else [])


def test_a_download_is_told_in_quarters_outside_a_terminal() -> None:
    shown, _, err = console()

    with shown.download("fake/torch_npu", "a.whl") as progress:
        for done in range(0, 40_000_001, 1_000_000):
            progress(done, 40_000_000)

    assert err.text == (
        "fake/torch_npu: download a.whl\n"
        "fake/torch_npu: download a.whl: 25% of 40.0 MB\n"
        "fake/torch_npu: download a.whl: 50% of 40.0 MB\n"
        "fake/torch_npu: download a.whl: 75% of 40.0 MB\n"
        "fake/torch_npu: download a.whl: 100% of 40.0 MB\n"
    )


def test_a_download_of_unknown_size_is_told_once() -> None:
    shown, _, err = console()

    with shown.download("fake", "a.whl") as progress:
        progress(5, None)
        progress(0, 0)

    assert err.text == "fake: download a.whl\n"


def test_a_download_is_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    shown, _, err = console(err=Stream(terminal=True))

    with shown.download("fake", "[a].whl") as progress:
        progress(20_000_000, 40_000_000)
        shown.stage("fake", "said while the bar moves")
        progress(40_000_000, 40_000_000)

    assert "fake: download [a].whl" in err.text
    assert "said while the bar moves" in err.text
    assert "40.0/40.0 MB" in err.text


def test_log_records_are_shown_among_the_rest() -> None:
    shown, out, err = console()
    handler = shown.logging_handler()

    handler.handle(logging.LogRecord("toolkit.store", logging.WARNING, "", 0, "waiting for %s", ("it",), None))

    assert (out.text, err.text) == ("", "warning: waiting for it\n")


def test_rich_is_not_imported_without_a_terminal() -> None:
    code = (
        "import sys, toolkit.report as report\n"
        "shown = report.Console(stdout=sys.stdout, stderr=sys.stderr, environ={})\n"
        "shown.stage('a', 'b'); shown.note('c')\n"
        "with shown.download('a', 'b') as progress: progress(1, 2)\n"
        "print(sorted(name for name in sys.modules if name.partition('.')[0] in ('rich', 'torch', 'git', 'msgspec')))\n"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"
