"""What a careless, unlucky or hostile caller does to the command line, in processes of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.sample import Sample, make_sample

SLOW_WITNESS = """\
import subprocess, sys, time
from pathlib import Path


def check(request):
    grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    Path({folder!r}, f"{{grandchild.pid}}.pid").touch()
    time.sleep(60)
"""


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    made = make_sample(tmp_path)
    done = toolkit(made, "lock")
    assert done.returncode == 0, done.stderr
    return made


def toolkit(sample: Sample, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        sample.toolkit(*words), env=sample.environ | environ, cwd=sample.root.parent, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def error_of(done: subprocess.CompletedProcess[str]) -> tuple[int, str, str]:
    """Return the exit code, and message and hint as they stand in the JSON document."""
    error = json.loads(done.stdout)["error"]
    return done.returncode, error["message"], error["hint"]


# --- ended from outside ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=["interrupt", "terminate", "hang up"],
)  # fmt: skip
def test_a_signal_during_the_proof_leaves_no_process_and_no_scratch(
    sample: Sample, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    scratch, told = tmp_path / "tmp", tmp_path / "told"
    scratch.mkdir()
    told.mkdir()
    (sample.root / "verify/answer.py").write_text(SLOW_WITNESS.format(folder=str(told)))
    child = subprocess.Popen(
        sample.toolkit("build"), env=sample.environ | {"TMPDIR": str(scratch)}, cwd=tmp_path, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    pids = wait_for_pids(told, count=2)
    child.send_signal(number)
    child.send_signal(number)  # as an impatient user does
    child.communicate(timeout=30)
    assert child.returncode == code
    assert list(scratch.iterdir()) == []
    assert [pid for pid in pids if is_running(pid)] == []


def wait_for_pids(folder: Path, *, count: int) -> list[int]:
    deadline = time.monotonic() + 30
    while len(found := list(folder.iterdir())) < count:
        assert time.monotonic() < deadline, f"no {count} checks began"
        time.sleep(0.05)
    return [int(path.stem) for path in found]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


# --- where the output goes ---------------------------------------------------------------------------------------

ANSWERS = [["key", "explain"], ["build"], ["build", "--json"], ["env"]]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    made = make_sample(tmp_path_factory.mktemp("built"))
    for words in (["lock"], ["build"]):
        assert toolkit(made, *words).returncode == 0
    return made


@pytest.mark.parametrize("words", ANSWERS, ids=" ".join)
def test_a_reader_that_went_away_is_no_failure(built: Sample, words: list[str]) -> None:
    child = subprocess.Popen(
        built.toolkit(*words), env=built.environ, cwd=built.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout is not None
    child.stdout.close()
    assert child.stderr is not None
    assert child.stderr.read() == b""
    child.stderr.close()
    assert child.wait() == 0


@pytest.mark.parametrize("words", ANSWERS, ids=" ".join)
@pytest.mark.parametrize(("to", "code"), [(">/dev/full", 12), (">&-", 0), (">/dev/null 2>&-", 0)])
def test_an_output_that_takes_nothing_gives_no_traceback(built: Sample, words: list[str], to: str, code: int) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {to}', "sh", *built.toolkit(*words)], env=built.environ, cwd=built.root,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    if code:
        assert done.stderr.startswith("error: cannot write: the file system is full (No space left on device)\n")


# --- what is asked for -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [["env"], ["run", "true"]], ids=["env", "run"])
@pytest.mark.parametrize("name", ["", "..", "sampel"])
def test_a_recipe_that_does_not_exist_is_not_looked_for_among_overlays(
    built: Sample, command: list[str], name: str
) -> None:
    guess = "; did you mean 'sample'?" if name == "sampel" else ""
    done = toolkit(built, command[0], "--recipe", name, "--json", *command[1:])
    assert error_of(done) == (2, f"there is no recipe {name!r}{guess}", "known recipes: sample")


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf"])
def test_a_time_limit_is_one_that_a_clock_can_count(built: Sample, seconds: str) -> None:
    done = toolkit(built, "build", "--json", f"--time-limit={seconds}")
    assert done.returncode == 2
    assert f"{float(seconds):g} is not in the range 0<x<=86400." in done.stderr


def test_an_empty_command_cannot_be_started(built: Sample) -> None:
    done = toolkit(built, "run", "--json", "--", "")
    message = "cannot start '': execve: argv first element cannot be empty"
    assert error_of(done) == (19, message, "is it installed, and on PATH?")


def test_a_group_without_a_command_shows_its_help(built: Sample) -> None:
    done = toolkit(built, "cache")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: toolkit cache [OPTIONS] COMMAND [ARGS]...\n")


# --- where it runs -----------------------------------------------------------------------------------------------


def test_a_current_folder_that_is_gone_is_told_so(built: Sample, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    done = subprocess.run(
        ["sh", "-c", 'cd "$1"; rmdir "$1"; shift; exec "$@"', "sh", str(tmp_path / "gone"),
         *built.toolkit("recipe", "list", "--json")],
        env=built.environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert error_of(done) == (2, "the current folder is no longer there", "change to one that is")


@pytest.mark.parametrize(
    ("variable", "what", "option"),
    [
        ("TOOLKIT_OVERLAYS", "the overlays' folder '{}/sample'", "--overlays DIR"),
        ("TOOLKIT_STORE", "the store '{}'", "--store DIR or TOOLKIT_STORE"),
        ("TMPDIR", "the temporary folder '{}'", "TMPDIR"),
    ],
    ids=["overlays", "store", "temporary"],
)
def test_a_place_that_pythonpath_cannot_hold_is_refused_before_the_work(
    sample: Sample, tmp_path: Path, variable: str, what: str, option: str
) -> None:
    place = tmp_path / "co:lon"
    place.mkdir()
    done = toolkit(sample, "build", "--json", **{variable: str(place)})
    message = f"{what.format(place)} has a colon, which PYTHONPATH cannot hold"
    assert error_of(done) == (2, message, f"choose another place with {option}")
    assert list(place.iterdir()) == []


def test_a_machine_without_git_ends_with_the_code_of_a_failed_command(sample: Sample) -> None:
    done = toolkit(sample, "build", "--json", PATH=os.path.dirname(sys.executable))
    assert error_of(done)[:2] == (19, "git cannot be started: there is none on PATH")


def test_an_overlay_whose_inputs_were_edited_is_used_with_a_warning(sample: Sample) -> None:
    assert toolkit(sample, "build").returncode == 0
    assert toolkit(sample, "run", "true").stderr == ""
    sample.patch.write_text(sample.patch.read_text().replace("Without it", "Before it"))
    way = "toolkit build --recipe sample"
    warning = f"warning: {sample.patch} was changed after the overlay was built; take it in with `{way}`\n"
    for words in (["env"], ["run", "true"]):
        done = toolkit(sample, *words)
        assert (done.returncode, done.stderr) == (0, warning)
    assert "its inputs now give" in toolkit(sample, "verify").stderr
    assert toolkit(sample, "build").returncode == 0
    assert toolkit(sample, "run", "true").stderr == ""


@pytest.mark.parametrize("encoding", ["ascii", "utf-8", "latin-1"])
def test_text_of_any_kind_is_written_whatever_the_locale(tmp_path: Path, encoding: str) -> None:
    program = (
        "from toolkit.ending import let_streams_take_all_text as take; take(); print('✓ é', chr(0xDCE9), chr(0xD800))"
    )
    settings = {**os.environ, "PYTHONIOENCODING": f"{encoding}:strict"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=settings, cwd=tmp_path, capture_output=True, check=False, timeout=60
    )

    said = {"ascii": b"\\u2713 \\xe9", "utf-8": "✓ é".encode(), "latin-1": b"\\u2713 \xe9"}[encoding]
    assert (done.returncode, done.stdout, done.stderr) == (0, said + b" \xe9 \\ud800\n", b"")
