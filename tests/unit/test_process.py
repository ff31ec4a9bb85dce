"""Child processes: what they get, what is kept of them, and that none outlives its time."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from toolkit import process
from toolkit.errors import CommandError
from toolkit.process import (
    PREFIXES_OF_PIP,
    compose_env,
    describe_code,
    last_lines,
    replace_process,
    run,
    stop_running,
)

ENV = {"PATH": os.environ["PATH"]}
LARGE = 4 << 20
"""More than any pipe holds."""

PATIENCE = 10.0
"""Seconds that a test waits for what should come at once."""

SLEEPER = ["sh", "-c", "echo $$; exec sleep 60"]


def python(code: str, *arguments: object) -> list[str]:
    return [sys.executable, "-c", code, *map(str, arguments)]


# --- what it printed -------------------------------------------------------------------------------------------


def test_both_streams_and_the_code_come_back(tmp_path: Path) -> None:
    argv = python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")

    done = run(argv, cwd=tmp_path, env=ENV, check=False)

    assert (done.argv, done.returncode, done.stdout, done.stderr) == (tuple(argv), 3, "out\n", "err\n")


def test_bytes_that_are_no_utf8_are_replaced(tmp_path: Path) -> None:
    done = run(["printf", r"a\377b"], cwd=tmp_path, env=ENV)

    assert done.stdout == "a\ufffdb"


def test_it_runs_in_the_folder_that_is_named(tmp_path: Path) -> None:
    assert run(["pwd", "-P"], cwd=tmp_path, env=ENV).stdout == f"{tmp_path.resolve()}\n"


@pytest.mark.parametrize("on_line", [None, lambda line: None], ids=["whole", "by line"])
def test_large_output_on_both_streams_does_not_deadlock(tmp_path: Path, on_line: object) -> None:
    code = "import os, sys; os.write(2, b'e' * {0}); os.write(1, b'o' * {0}); os.write(2, b'E' * {0})"

    done = run(python(code.format(LARGE)), cwd=tmp_path, env=ENV, timeout=PATIENCE, on_line=on_line)  # type: ignore[arg-type]

    assert (len(done.stdout), len(done.stderr)) == (LARGE, 2 * LARGE)


@pytest.mark.parametrize("on_line", [None, lambda line: None], ids=["whole", "by line"])
def test_large_input_does_not_deadlock(tmp_path: Path, on_line: object) -> None:
    done = run(["cat"], cwd=tmp_path, env=ENV, stdin=b"i" * LARGE, timeout=PATIENCE, on_line=on_line)  # type: ignore[arg-type]

    assert done.stdout == "i" * LARGE


def test_without_input_there_is_nothing_to_read(tmp_path: Path) -> None:
    assert run(["cat"], cwd=tmp_path, env=ENV, timeout=PATIENCE).stdout == ""


# --- line by line ----------------------------------------------------------------------------------------------


def test_on_line_sees_each_line_of_stdout_once_without_its_end(tmp_path: Path) -> None:
    lines: list[str] = []

    done = run(["printf", r"one\r\n\ntw\377o\nlast"], cwd=tmp_path, env=ENV, on_line=lines.append)

    assert lines == ["one", "", "tw\ufffdo", "last"]
    assert done.stdout == "one\r\n\ntw\ufffdo\nlast"


def test_on_line_sees_a_line_while_the_child_runs(tmp_path: Path) -> None:
    go = tmp_path / "go"
    code = (
        "import os, sys, time\n"
        "print('ready', flush=True)\n"
        "while not os.path.exists(sys.argv[1]): time.sleep(0.01)\n"
        "print('went')"
    )
    lines: list[str] = []

    def answer(line: str) -> None:
        lines.append(line)
        go.touch()

    run(python(code, go), cwd=tmp_path, env=ENV, timeout=PATIENCE, on_line=answer)

    assert lines == ["ready", "went"]


def test_a_child_dies_with_the_on_line_that_fails(tmp_path: Path) -> None:
    pids: list[int] = []

    def fail(line: str) -> None:
        pids.append(int(line))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(SLEEPER, cwd=tmp_path, env=ENV, on_line=fail, log_file=tmp_path / "log")

    assert _is_gone(pids[0])
    assert str(pids[0]) in (tmp_path / "log").read_text()


# --- failures --------------------------------------------------------------------------------------------------


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CommandError) as caught:
        run(["no-such-program", "x"], cwd=tmp_path, env=ENV)

    assert caught.value.message == "cannot start 'no-such-program': No such file or directory"
    assert caught.value.hint == "is it installed, and on PATH?"
    assert (caught.value.argv, caught.value.returncode) == (("no-such-program", "x"), None)


def test_a_program_is_looked_up_on_the_path_of_the_child(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("#!/bin/sh\necho found\n")
    (tmp_path / "mine").chmod(0o755)

    assert run(["mine"], cwd=tmp_path, env={"PATH": f"{tmp_path}:{ENV['PATH']}"}).stdout == "found\n"


def test_a_folder_that_is_not_there_is_not_taken_for_a_missing_program(tmp_path: Path) -> None:
    with pytest.raises(CommandError) as caught:
        run(["true"], cwd=tmp_path / "none", env=ENV)

    assert caught.value.message == "cannot start 'true': No such file or directory"
    assert caught.value.hint == f"there is no folder {tmp_path}/none to start it in"


def test_a_failing_child_is_an_error_with_its_last_lines(tmp_path: Path) -> None:
    argv = python("import sys; print('out'); [print(n, file=sys.stderr) for n in range(20)]; sys.exit(3)")
    log_file = tmp_path / "logs" / "child.log"

    with pytest.raises(CommandError) as caught:
        run(argv, cwd=tmp_path, env=ENV, log_file=log_file)

    assert caught.value.message == f"`{shlex.join(argv)}` ended with exit code 3"
    assert caught.value.hint == f"the whole output is in {log_file}"
    assert caught.value.details == tuple(str(number) for number in range(8, 20))
    assert (caught.value.argv, caught.value.returncode) == (tuple(argv), 3)


def test_a_child_that_a_signal_ended(tmp_path: Path) -> None:
    with pytest.raises(CommandError) as caught:
        run(["sh", "-c", "kill -9 $$"], cwd=tmp_path, env=ENV)

    assert caught.value.message == "`sh -c 'kill -9 $$'` ended with signal SIGKILL"
    assert caught.value.returncode == -signal.SIGKILL


# --- time ------------------------------------------------------------------------------------------------------

PARENT_OF_SLEEPER = ["sh", "-c", "sleep 60 & echo $!; wait"]

PARENT_OF_DAEMON = ["sh", "-c", "setsid sh -c 'echo $$; exec sleep 60' & wait"]


@pytest.mark.parametrize("on_line", [None, lambda line: None], ids=["whole", "by line"])
def test_a_child_that_outlives_its_time_is_stopped_with_all_that_it_started(tmp_path: Path, on_line: object) -> None:
    began = time.monotonic()
    with pytest.raises(CommandError) as caught:
        run(PARENT_OF_SLEEPER, cwd=tmp_path, env=ENV, timeout=0.5, on_line=on_line)  # type: ignore[arg-type]

    assert caught.value.message == "sh did not end within 0.5 s and was stopped"
    assert caught.value.returncode is None
    (grandchild,) = caught.value.details
    assert _is_gone(int(grandchild))
    assert time.monotonic() - began < PATIENCE


def test_what_left_the_session_cannot_hold_up_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "DRAIN_LIMIT", 0.1)
    began = time.monotonic()

    with pytest.raises(CommandError, match=r"^sh did not end within 0\.5 s and was stopped$") as caught:
        run(PARENT_OF_DAEMON, cwd=tmp_path, env=ENV, timeout=0.5)

    (daemon,) = caught.value.details
    os.kill(int(daemon), signal.SIGKILL)
    assert time.monotonic() - began < PATIENCE


def test_a_child_that_closes_its_streams_is_still_waited_for(tmp_path: Path) -> None:
    code = "import os, time; os.close(1); os.close(2); time.sleep(0.3); os._exit(5)"

    assert run(python(code), cwd=tmp_path, env=ENV, check=False).returncode == 5


def test_a_child_that_closes_its_streams_and_lives_on_is_stopped_too(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"^sh did not end within 0\.3 s and was stopped$"):
        run(["sh", "-c", "exec sleep 60 >&- 2>&-"], cwd=tmp_path, env=ENV, timeout=0.3)


def test_a_child_that_never_stops_printing_is_stopped_too(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"^yes did not end within 0\.2 s and was stopped$"):
        run(["yes"], cwd=tmp_path, env=ENV, timeout=0.2, on_line=lambda line: None)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_child_that_prints_more_than_it_may_is_stopped(tmp_path: Path, stream: str) -> None:
    code = f"import os, sys; open('pid', 'w').write(str(os.getpid()))\nwhile True: print('x' * 999, file=sys.{stream})"
    with pytest.raises(CommandError) as caught:
        run(python(code), cwd=tmp_path, env=os.environ, limit=500_000, log_file=tmp_path / "log")

    assert caught.value.message == f"{sys.executable} printed more than 500000 bytes and was stopped"
    assert caught.value.hint == f"the whole output is in {tmp_path / 'log'}"
    assert caught.value.details[0][:9] == "xxxxxxxxx"
    assert _is_gone(int((tmp_path / "pid").read_text()))


def test_a_child_may_print_as_much_as_its_limit(tmp_path: Path) -> None:
    assert run(python("print('x' * 99)"), cwd=tmp_path, env=os.environ, limit=100).stdout == "x" * 99 + "\n"


def test_stop_running_ends_the_children_of_other_threads(tmp_path: Path) -> None:
    started = threading.Event()
    faults: list[CommandError] = []

    def work() -> None:
        try:
            run(SLEEPER, cwd=tmp_path, env=ENV, timeout=PATIENCE, on_line=lambda line: started.set())
        except CommandError as fault:
            faults.append(fault)

    thread = threading.Thread(target=work)
    thread.start()
    assert started.wait(PATIENCE)
    stop_running()
    thread.join(PATIENCE)

    assert [fault.returncode for fault in faults] == [-signal.SIGKILL]


# --- the log ---------------------------------------------------------------------------------------------------


def test_the_log_file_holds_each_command_with_its_output(tmp_path: Path) -> None:
    log_file = tmp_path / "logs" / "child.log"

    run(["sh", "-c", "echo out; echo err >&2"], cwd=tmp_path, env=ENV, log_file=log_file)
    run(["printf", r"\377"], cwd=tmp_path, env=ENV, log_file=log_file)

    assert log_file.read_bytes() == b"$ sh -c 'echo out; echo err >&2'\nout\nerr\n$ printf '\\377'\n\xff"


def test_the_log_file_holds_what_came_before_the_time_was_up(tmp_path: Path) -> None:
    log_file = tmp_path / "child.log"

    with pytest.raises(CommandError) as caught:
        run(["sh", "-c", "echo begun; sleep 60"], cwd=tmp_path, env=ENV, log_file=log_file, timeout=0.3)

    assert log_file.read_text() == "$ sh -c 'echo begun; sleep 60'\nbegun\n"
    assert caught.value.hint == f"the whole output is in {log_file}"


def test_the_log_file_grows_while_the_child_runs(tmp_path: Path) -> None:
    log_file = tmp_path / "child.log"
    seen: list[str] = []

    run(
        ["sh", "-c", "echo err >&2; sleep 0.2; echo out; sleep 0.2; echo last"], cwd=tmp_path, env=ENV,
        log_file=log_file, on_line=lambda line: seen.append(log_file.read_text().partition("\n")[2]),
    )  # fmt: skip

    assert seen == ["err\nout\n", "err\nout\nlast\n"]


def test_the_log_file_has_the_command_that_was_interrupted(tmp_path: Path) -> None:
    log_file = tmp_path / "child.log"

    def interrupt(line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(["sh", "-c", "echo begun; sleep 60"], cwd=tmp_path, env=ENV, log_file=log_file, on_line=interrupt)

    assert log_file.read_text() == "$ sh -c 'echo begun; sleep 60'\nbegun\n"


def test_with_a_log_file_only_the_end_is_held_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "KEPT", 1000)
    log_file = tmp_path / "child.log"
    lines: list[str] = []
    code = "for n in range(100_000): print(n)"

    done = run(python(code), cwd=tmp_path, env=ENV, log_file=log_file, on_line=lines.append)

    everything = "".join(f"{number}\n" for number in range(100_000))
    assert len(done.stdout) <= 2 * process.KEPT
    assert everything.endswith(done.stdout)
    assert log_file.read_text() == f"$ {shlex.join(done.argv)}\n{everything}"
    assert lines == everything.splitlines()


def test_a_failing_child_with_a_long_log_still_has_its_last_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "KEPT", 200)
    code = "for n in range(10_000): print(n)\nraise SystemExit(1)"

    with pytest.raises(CommandError) as caught:
        run(python(code), cwd=tmp_path, env=ENV, log_file=tmp_path / "child.log")

    assert caught.value.details == tuple(str(number) for number in range(9_988, 10_000))


def test_a_command_with_undecodable_bytes_can_be_logged(tmp_path: Path) -> None:
    log_file = tmp_path / "child.log"

    run(["echo", os.fsdecode(b"\xff")], cwd=tmp_path, env=ENV, log_file=log_file)

    assert log_file.read_bytes() == b"$ echo '\xff'\n\xff\n"


# --- environment -----------------------------------------------------------------------------------------------

CALLER = {
    "PATH": ENV["PATH"],
    "HOME": "/home/user",
    "LC_ALL": "C",
    "PYTHONPATH": "/leak",
    "PYTHONHOME": "/leak",
    "GIT_DIR": "/leak",
    "LD_PRELOAD": "/leak.so",
    "LD_LIBRARY_PATH": "/leak",
    "PIP_TIMEOUT": "7",
    "https_proxy": "proxy",
    "TORCHINDUCTOR_CACHE_DIR": "/leak",
}


@pytest.mark.parametrize(
    ("extra", "prefixes", "expected"),
    [
        pytest.param({}, (), {"LANG": "C.UTF-8"}, id="few names are inherited"),
        pytest.param({"LC_ALL": "de_DE", "MINE": "1"}, (), {"LANG": "C.UTF-8", "LC_ALL": "de_DE", "MINE": "1"},
                     id="the stage's own win"),
        pytest.param({}, PREFIXES_OF_PIP, {"LANG": "C.UTF-8", "PIP_TIMEOUT": "7", "https_proxy": "proxy"},
                     id="pip's settings where they are meant to come"),
    ],
)  # fmt: skip
def test_an_environment_is_composed(extra: dict[str, str], prefixes: tuple[str, ...], expected: dict[str, str]) -> None:
    inherited = {"PATH": ENV["PATH"], "HOME": "/home/user", "LC_ALL": "C"}

    assert compose_env(CALLER, extra, prefixes=prefixes) == inherited | expected


def test_a_child_makes_files_with_the_umask_that_it_was_given(tmp_path: Path) -> None:
    run(["touch", "made"], cwd=tmp_path, env=ENV, umask=0o077)

    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o600


def test_a_child_sees_exactly_the_environment_that_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PYTHONPATH", "GIT_DIR", "MALLOC_CHECK_"):
        monkeypatch.setenv(name, "leak")

    done = run(["env", "-0"], cwd=tmp_path, env={"PATH": ENV["PATH"], "MINE": "1"})

    assert sorted(done.stdout.split("\0")) == sorted(["", f"PATH={ENV['PATH']}", "MINE=1"])


# --- becoming another program ----------------------------------------------------------------------------------


def test_replace_process_becomes_the_program_with_just_that_environment(tmp_path: Path) -> None:
    code = f"from toolkit.process import replace_process; replace_process(['env'], {{**{ENV!r}, 'MINE': '1'}})"
    checkout = Path(process.__file__).parents[1]

    done = run(python(code), cwd=tmp_path, env={**ENV, "PYTHONPATH": str(checkout), "OTHER": "2"})

    assert sorted(done.stdout.splitlines()) == ["MINE=1", f"PATH={ENV['PATH']}"]


def test_replace_process_says_what_cannot_be_started() -> None:
    with pytest.raises(CommandError) as caught:
        replace_process(["no-such-program"], ENV)

    assert caught.value.message == "cannot start 'no-such-program': No such file or directory"
    assert caught.value.hint == "is it installed, and on PATH?"


# --- words -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "words"),
    [(0, "exit code 0"), (127, "exit code 127"), (-9, "signal SIGKILL"), (-11, "signal SIGSEGV"), (-250, "signal 250")],
)
def test_a_code_in_words(code: int, words: str) -> None:
    assert describe_code(code) == words


@pytest.mark.parametrize(
    ("streams", "lines"),
    [
        pytest.param((b"out\n", b"err\n"), ["err"], id="the last stream that has any"),
        pytest.param((b"out\n\n", b" \n"), ["out"], id="blank lines do not count"),
        pytest.param(("text",), ["text"], id="text as it is"),
        pytest.param((bytearray(b"\xff"),), ["\ufffd"], id="undecodable"),
        pytest.param((None, b""), [], id="none"),
        pytest.param(("\n".join(map(str, range(30))),), [str(number) for number in range(18, 30)], id="only the last"),
    ],
)
def test_last_lines(streams: tuple[bytes | str | None, ...], lines: list[str]) -> None:
    assert last_lines(*streams) == lines


def _is_gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has waited for yet has."""
    limit = time.monotonic() + PATIENCE
    while time.monotonic() < limit:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state in "ZX":
            return True
        time.sleep(0.02)
    return False


# --- what a child leaves behind ----------------------------------------------------------------------------------


def test_who_holds_the_streams_of_a_child_that_has_ended_is_not_waited_for(tmp_path: Path) -> None:
    began = time.monotonic()
    done = run(["sh", "-c", "echo said; sleep 60 & exit 3"], cwd=tmp_path, env=ENV, check=False)
    assert (done.returncode, done.stdout) == (3, "said\n")
    assert time.monotonic() - began < 20


def test_what_has_a_group_of_its_own_in_the_session_is_stopped_too(tmp_path: Path) -> None:
    program = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen(['sleep', '60'], process_group=0)\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    program = program.replace("process_group=0", "preexec_fn=os.setpgrp")
    seen: list[str] = []
    with pytest.raises(CommandError, match="did not end within"):
        run([sys.executable, "-c", program], cwd=tmp_path, env=ENV, timeout=3, on_line=seen.append)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and is_alive(int(seen[0])):
        time.sleep(0.05)
    assert not is_alive(int(seen[0]))


def is_alive(pid: int) -> bool:
    try:
        return b") Z " not in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
