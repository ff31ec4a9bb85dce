"""Children that misbehave, one way each: every check asked of them is an error, with what a person needs to look on."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.prove_cases import FakeVerify
from toolkit.model import CheckResult, Interpreter, Proof

PASS = "from verify.contract import passed\ndef check(request):\n    return passed('seen', **{})\n"


EMPTY_RESULT = {"schema": 1, "environment": {}, "checks": []}


def only(proof: Proof) -> CheckResult:
    (result,) = proof.results
    return result


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        pytest.param("import os; os.kill(os.getpid(), 9)", "the child ended with signal SIGKILL", id="killed"),
        pytest.param("import ctypes; ctypes.string_at(0)", "the child ended with signal SIGSEGV", id="segfault"),
        pytest.param("import os; os._exit(7)", "the child ended with exit code 7", id="exits with a code"),
        pytest.param(
            "import os; os._exit(0)",
            "the child ended with exit code 0 but wrote no result",
            id="exits without a result",
        ),
        pytest.param(
            "import os, sys; open(sys.argv[2], 'w').write('rubbish'); os._exit(0)",
            "the child's result is not in its form: JSON is malformed: invalid character (byte 0)",
            id="garbled result",
        ),
        pytest.param(
            "import os, sys; open(sys.argv[2], 'wb').write(b'\\xff\\xfe'); os._exit(0)",
            "the child's result is not in its form: JSON is malformed: invalid character (byte 0)",
            id="binary result",
        ),
        pytest.param(
            f"import os, sys; open(sys.argv[2], 'w').write({json.dumps({**EMPTY_RESULT, 'schema': 2})!r}); os._exit(0)",
            "the child's result is not in its form: Invalid enum value 2 - at `$.schema`",
            id="result of another schema",
        ),
        pytest.param(
            f"import os, sys; open(sys.argv[2], 'w').write({json.dumps({**EMPTY_RESULT, 'schema': 1})!r}); os._exit(0)",
            "the child's result is about nothing, asked was first, second",
            id="incomplete result",
        ),
    ],
)
def test_a_child_without_a_usable_result_is_an_error_on_each_of_its_checks(
    fake_verify: FakeVerify, prove_checks: Callable[..., Proof], tmp_path: Path, body: str, detail: str
) -> None:
    fake_verify.add("first", PASS, group="shared")
    fake_verify.add("second", f"def check(request):\n    print('last words', flush=True)\n    {body}\n", group="shared")

    proof = prove_checks("first", "second")

    assert [(result.name, result.status, result.ok, result.required, result.detail) for result in proof.results] == [
        ("first", "error", False, True, detail),
        ("second", "error", False, True, detail),
    ]
    log = tmp_path / "logs" / "overlay-first.log"
    assert {result.log for result in proof.results} == {str(log)}
    assert "last words\n" in log.read_text()
    assert not proof.ok


def test_a_crash_shows_the_last_lines_with_the_python_frame_that_crashed(
    fake_verify: FakeVerify, prove_checks: Callable[..., Proof]
) -> None:
    fake_verify.add("crash", "import ctypes\ndef check(request):\n    ctypes.string_at(0)\n")

    lines = only(prove_checks("crash")).evidence["last_lines"]

    assert isinstance(lines, list)
    assert any("crash.py" in line and "in check" in line for line in lines)


def test_a_hanging_child_is_stopped_at_the_limit_with_all_that_it_started(
    fake_verify: FakeVerify, prove_checks: Callable[..., Proof], tmp_path: Path
) -> None:
    pid_file = tmp_path / "grandchild"
    fake_verify.add(
        "hang",
        "import subprocess, time\ndef check(request):\n"
        f"    open({str(pid_file)!r}, 'w').write(str(subprocess.Popen(['sleep', '60']).pid))\n    time.sleep(60)\n",
    )
    began = time.monotonic()

    result = only(prove_checks("hang", timeout=2.0))

    assert time.monotonic() - began < 15
    assert (result.status, result.ok) == ("error", False)
    assert result.detail.endswith("did not end within 2 s and was stopped")
    assert is_gone(int(pid_file.read_text()))


def test_rubbish_on_both_streams_spoils_nothing(fake_verify: FakeVerify, prove_checks: Callable[..., Proof]) -> None:
    fake_verify.add(
        "noisy",
        "import os\nfrom verify.contract import passed\ndef check(request):\n"
        "    os.write(1, bytes(range(256)) * 4096)\n    os.write(2, b'{\"schema\": 1}\\n' * 4096)\n"
        "    return passed('seen')\n",
    )

    proof = prove_checks("noisy")

    assert (only(proof).status, only(proof).detail, proof.ok) == ("pass", "seen", True)


def test_a_result_left_by_an_earlier_run_is_not_taken(
    fake_verify: FakeVerify, prove_checks: Callable[..., Proof]
) -> None:
    fake_verify.add("once", PASS)
    assert prove_checks("once").ok
    fake_verify.add("once", "import os\ndef check(request):\n    os._exit(0)\n")

    result = only(prove_checks("once"))

    assert (result.status, result.detail) == ("error", "the child ended with exit code 0 but wrote no result")


def test_an_interpreter_that_cannot_start_is_an_error(
    fake_verify: FakeVerify, prove_checks: Callable[..., Proof], tmp_path: Path
) -> None:
    fake_verify.add("seen", PASS)
    missing = Interpreter(executable=tmp_path / "python9", version="", python_tag="cp39", platforms=(), torch=None)

    result = only(prove_checks("seen", interpreter=missing))

    assert (result.status, result.ok) == ("error", False)
    assert result.detail == f"cannot start '{tmp_path / 'python9'}': No such file or directory"


def test_an_interrupt_stops_what_is_running_and_starts_nothing_more(
    fake_verify: FakeVerify, prove_checks: Callable[..., Proof], tmp_path: Path
) -> None:
    fake_verify.add("quick", PASS)
    for name in ("slow", "next", "never"):
        fake_verify.add(
            name,
            "import os, time\ndef check(request):\n"
            f"    open({str(tmp_path / name)!r}, 'w').write(str(os.getpid()))\n    time.sleep(60)\n",
        )

    def interrupt(result: CheckResult) -> None:
        while not (tmp_path / "slow").exists() or not (tmp_path / "slow").read_text():
            time.sleep(0.02)
        raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        prove_checks("quick", "slow", "next", "never", on_result=interrupt, timeout=60.0)

    assert time.monotonic() - began < 15
    assert is_gone(int((tmp_path / "slow").read_text()))
    assert not (tmp_path / "scratch" / "overlay-never").exists()


def is_gone(pid: int) -> bool:
    """Wait a moment for a killed process to end; one that nobody waits for stays as a zombie."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.02)
    return False
