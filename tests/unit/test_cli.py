"""The command line: what it makes of failures, what every command has, and what it refuses."""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from tests.sample import Sample
from toolkit import cli
from toolkit.errors import (
    CommandError,
    HashMismatchError,
    OverlayError,
    ToolkitError,
    all_errors,
)

ERRORS = [error for error in all_errors() if error.__module__ == "toolkit.errors"]


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Give the command line one command more, `fail`, which raises what a test says."""

    def give(fault: BaseException) -> None:
        @click.command("fail")
        @click.option("--json", is_flag=True)
        @click.argument("rest", nargs=-1)
        def fail(**options: object) -> None:
            raise fault

        monkeypatch.setitem(cli.cli.commands, "fail", fail)

    return give


def run(*words: str) -> object:
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    return ended.value.code


def make(error: type[ToolkitError]) -> ToolkitError:
    if error is HashMismatchError:
        return HashMismatchError(what="a.whl", expected="aa", actual="bb", origin="the index")
    if error is CommandError:
        return CommandError("it failed", argv=["cc"], returncode=1)
    return error("it failed", hint="do this", details=["one", "two"])


# --- failures ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_an_error_ends_the_run_with_its_code(
    error: type[ToolkitError], failing: Callable[[BaseException], None], capsys: pytest.CaptureFixture[str]
) -> None:
    fault = make(error)
    failing(fault)

    assert run("fail") == error.exit_code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"error: {fault.message}\n")


def test_an_error_says_what_failed_where_and_what_to_do(
    failing: Callable[[BaseException], None], capsys: pytest.CaptureFixture[str]
) -> None:
    failing(make(OverlayError))
    run("fail")

    assert capsys.readouterr().err == "error: it failed\n  one\n  two\nhint: do this\n"


def test_with_json_an_error_is_the_document(
    failing: Callable[[BaseException], None], capsys: pytest.CaptureFixture[str]
) -> None:
    failing(make(OverlayError))

    assert run("fail", "--json") == 13
    shown = capsys.readouterr()
    assert json.loads(shown.out) == {
        "error": {
            "kind": "OverlayError",
            "message": "it failed",
            "details": ["one", "two"],
            "hint": "do this",
            "exit_code": 13,
        }
    }
    assert shown.err.startswith("error: it failed\n")


def test_a_json_option_of_the_command_that_is_run_is_not_ours(
    failing: Callable[[BaseException], None], capsys: pytest.CaptureFixture[str]
) -> None:
    failing(make(OverlayError))

    assert run("fail", "--", "--json") == 13
    assert capsys.readouterr().out == ""


def bug_log(told: str) -> Path:
    found = re.search(r"hint: a bug of toolkit; please report it with (\S+)\n", told)
    assert found is not None, told
    return Path(found[1])


@pytest.mark.parametrize(
    ("fault", "what"),
    [
        pytest.param(ZeroDivisionError("by zero"), "ZeroDivisionError: by zero", id="an exception"),
        pytest.param(OSError(errno.ENOTTY, "no tty"), "OSError: [Errno 25] no tty", id="a fault of the system"),
        pytest.param(
            FileNotFoundError(errno.ENOENT, "no such file"), "FileNotFoundError: [Errno 2]", id="no such file"
        ),
    ],
)
def test_a_bug_is_one_line_and_a_log_with_the_traceback(
    failing: Callable[[BaseException], None], capsys: pytest.CaptureFixture[str], fault: Exception, what: str,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    failing(fault)

    assert run("fail", "--json", "word") == 70
    shown = capsys.readouterr()
    assert shown.err.startswith(f"error: unexpected {what}")
    assert len(shown.err.splitlines()) == 2
    document = json.loads(shown.out)["error"]
    assert document["message"].startswith(f"unexpected {what}")
    log = bug_log(shown.err)
    assert log.parent == tmp_path
    text = log.read_text()
    assert "['fail', '--json', 'word']" in text
    assert "Traceback (most recent call last):" in text
    assert "in fail\n    raise fault" in text
    assert what in text


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (errno.ENOSPC, "cannot write: /place is full"),
        (errno.EROFS, "cannot write: /place is read-only"),
        (errno.EACCES, "cannot use /place: that is not permitted"),
    ],
    ids=["full", "read-only", "not permitted"],
)
def test_a_refusal_of_the_file_system_is_an_error_of_its_own(
    failing: Callable[[BaseException], None], capsys: pytest.CaptureFixture[str], number: int, why: str
) -> None:
    failing(OSError(number, "refused", "/place"))

    assert run("fail") == 12
    assert capsys.readouterr().err.startswith(f"error: {why} (refused)\nhint: ")


@pytest.mark.parametrize("fault", [KeyboardInterrupt(), click.Abort()], ids=["interrupt", "abort"])
def test_an_interrupt_is_130_and_says_nothing(
    failing: Callable[[BaseException], None], capsys: pytest.CaptureFixture[str], fault: BaseException
) -> None:
    failing(fault)

    assert run("fail", "--json") == 130
    shown = capsys.readouterr()
    assert (shown.out, shown.err.strip()) == ("", "")


@pytest.mark.parametrize(
    ("words", "message", "command"),
    [
        pytest.param(["build", "--ofline"], r"No such option.*--ofline.*--offline", "toolkit build", id="option"),
        pytest.param(["biuld"], r"No such command 'biuld'", "toolkit", id="command"),
        pytest.param(["build", "--jobs", "0"], r"Invalid value for '--jobs'", "toolkit build", id="value"),
        pytest.param(["key", "diff", "one"], r"Missing argument 'NEW'", "toolkit key diff", id="argument"),
        pytest.param(
            ["key", "--recipe", "x", "explain"], r"options of `explain` go behind it", "toolkit key", id="place"
        ),
    ],
)
def test_a_command_line_that_is_wrong_is_2_with_the_help_to_read(
    capsys: pytest.CaptureFixture[str], words: list[str], message: str, command: str
) -> None:
    assert run(*words, "--json") == 2
    shown = capsys.readouterr()
    fault = json.loads(shown.out)["error"]
    assert re.match(message, fault["message"])
    assert (fault["kind"], fault["hint"]) == ("UsageError", f"see `{command} --help`")
    assert shown.err == f"error: {fault['message']}\nhint: {fault['hint']}\n"


# --- what every command has --------------------------------------------------------------------------------------


def commands(
    group: click.Group = cli.cli, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


COMMANDS = dict(commands())
NOT_ANSWERING = {(name,) for name in ("cache", "recipe", "debug", "patch", "evidence", "lint", "completion")}
ANSWERING = {path: one for path, one in COMMANDS.items() if path not in NOT_ANSWERING}


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_has_an_example_in_its_help(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*path, "--help") == 0
    shown = capsys.readouterr().out
    assert "Example:  " in shown
    assert f"toolkit {' '.join(path)}" in shown


@pytest.mark.parametrize("command", ANSWERING.values(), ids=[" ".join(path) for path in ANSWERING])
def test_every_command_that_answers_takes_json_and_its_places(command: click.Command) -> None:
    names = {name for parameter in command.params for name in parameter.opts}

    assert {"--json", "--project", "--overlays", "--store", "--verbose"} <= names


TARGETED = ["build", "verify", "key", "key explain", "key diff", "cache export", "sysroot"]


@pytest.mark.parametrize("path", TARGETED)
def test_what_plans_a_build_takes_its_target(path: str) -> None:
    names = {name for parameter in COMMANDS[tuple(path.split())].params for name in parameter.opts}

    assert {"--python", "--python-tag", "--platform"} <= names


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_for_the_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("completion", shell) == 0
    assert "_TOOLKIT_COMPLETE" in capsys.readouterr().out


# --- commands that need a project --------------------------------------------------------------------------------


@pytest.fixture
def here(built: Sample, monkeypatch: pytest.MonkeyPatch) -> Sample:
    """Stand in the built sample's environment."""
    monkeypatch.delenv("TOOLKIT_OVERLAYS")
    for name, value in built.environ.items():
        if name.startswith(("TOOLKIT_", "PIP_")):
            monkeypatch.setenv(name, value)
    return built


def test_a_difference_between_keys_is_1_and_none_is_0(
    here: Sample, generation: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("key", "diff", str(generation), "sample") == 0
    assert capsys.readouterr().out == "the keys are equal\n"

    other = here.root.parent / "other.toml"
    other.write_text(here.recipe.read_text().replace('"small"', '"large"'))
    lock = here.recipe.with_suffix(".lock").read_text()
    other.with_suffix(".lock").write_text(lock.replace('recipe = "sample"', 'recipe = "other"'))
    assert run("key", "diff", str(generation), str(other), "--json") == 1
    assert json.loads(capsys.readouterr().out)["differences"] == [
        {"input": "env/SAMPLE_BACKEND", "old": "small", "new": "large"}
    ]


def test_a_key_is_compared_for_the_target_that_is_asked_for(
    here: Sample, generation: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("key", "diff", str(generation), "sample", "--platform", "manylinux_2_5_x86_64") == 14
    assert "recipe 'sample' is not for" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "evidence"), [((), "proof.json"), (("--check", "loads"), "logs")], ids=["all checks", "one check"]
)
def test_a_failed_verify_points_to_where_its_evidence_is(
    here: Sample, generation: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], evidence: str
) -> None:
    loads = here.project.verify / "loads.py"
    before, proof = loads.read_text(), (generation / "proof.json").read_bytes()
    loads.write_text("from verify.contract import failed\n\n\ndef check(request):\n    return failed('never')\n")
    try:
        assert run("verify", *words) == 16
        assert f"hint: the evidence is in {generation}/{evidence}\n" in capsys.readouterr().err
        assert run("verify", *words, "--json") == 16
        assert json.loads(capsys.readouterr().out)["ok"] is False
    finally:
        loads.write_text(before)
        (generation / "proof.json").write_bytes(proof)


def test_a_junit_file_is_written_for_a_failure_too(here: Sample, tmp_path: Path) -> None:
    assert run("verify", "--check", "answer", "--junit", str(tmp_path / "junit.xml")) == 0
    assert 'testcase classname="sample.base" name="answer"' in (tmp_path / "junit.xml").read_text()
