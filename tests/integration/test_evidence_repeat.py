"""`toolkit evidence repeat`: real commands, run several times, and what is said of what they print and save."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from toolkit.cli import main

ONE, TWO = "1" * 64, "2" * 64

COUNTED = """
import os, pathlib, sys
count = pathlib.Path("count")
number = int(count.read_text()) + 1 if count.exists() else 1
count.write_text(str(number))
one, two = "1" * 64, "2" * 64
"""
"""Lets a command know which run it is in."""


class Ended:
    """How a command ended in this process."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


Repeat = Callable[..., Ended]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder where toolkit puts what it makes for a while."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr("tempfile.tempdir", None)
    return place


@pytest.fixture
def cwd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


@pytest.fixture
def repeat(cwd: Path, temporary: Path, capsys: pytest.CaptureFixture[str]) -> Repeat:
    def call(*words: str) -> Ended:
        with pytest.raises(SystemExit) as ended:
            main(["evidence", "repeat", *words])
        told = capsys.readouterr()
        return Ended(int(ended.value.code or 0), told.out, told.err)

    return call


def python(code: str) -> list[str]:
    return ["--", sys.executable, "-c", COUNTED + code]


def without_times(text: str) -> list[str]:
    """Leave out the line of the command, which holds seconds."""
    return text.splitlines()[1:]


# --- printed hashes ----------------------------------------------------------------------------------------------


def test_what_every_run_prints_alike_is_stable(repeat: Repeat, temporary: Path) -> None:
    ended = repeat("-n", "2", *python("print('loss:', one); print('[rank1]: w =', two, file=sys.stderr)"))

    assert (ended.code, ended.err) == (0, "repeat: run 1 of 2\nrepeat: run 2 of 2\n")
    assert without_times(ended.out) == [
        "  stable  loss  (111111111111)",
        "  stable  rank 1: w  (222222222222)",
        "2 of 2 values are the same in every run",
    ]
    assert list(temporary.iterdir()) == []


def test_what_differs_or_is_missing_is_named_with_its_runs(repeat: Repeat, temporary: Path) -> None:
    code = "print('loss:', one if number < 3 else two)\nif number != 2: print('grad:', one)\nprint('w:', one)"
    ended = repeat(*python(code))

    (kept,) = temporary.iterdir()
    assert ended.code == 23
    assert without_times(ended.out) == [
        "  DIFFERS loss",
        "          from run 3 on, 2 different values",
        "  MISSING grad",
        "          not in run 2",
        "  stable  w  (111111111111)",
        "1 of 3 values are the same in every run",
        f"kept in {kept}",
    ]
    assert ended.err.splitlines()[3:] == [
        "error: 2 of 3 values are not the same in every run, as listed",
        f"hint: what the runs have printed and saved is in {kept}",
    ]
    assert (kept / "run-3" / "stdout.txt").read_text() == f"loss: {TWO}\ngrad: {ONE}\nw: {ONE}\n"


def test_the_document_has_every_hash(repeat: Repeat) -> None:
    ended = repeat("-n", "2", "--json", *python("print('loss:', one if number == 1 else two)"))

    document = json.loads(ended.out)
    assert ended.code == 23
    assert (document["runs"], document["stable"], len(document["seconds"])) == (2, False, 2)
    assert document["values"] == [
        {
            "kind": "printed", "name": "loss", "state": "differs", "hashes": [ONE, TWO], "types": [],
            "missing_in": [], "differs_from": 2, "differences": [],
        }
    ]  # fmt: skip


def test_a_pattern_of_ones_own_finds_other_hashes(repeat: Repeat) -> None:
    pattern = "(?P<hash>[0-9a-f]{4}) of (?P<name>[a-z]+)"
    ended = repeat("-n", "2", "--hashes", pattern, *python("print('12ab of loss', '34cd of grad')"))

    assert without_times(ended.out)[:2] == ["  stable  loss  (12ab)", "  stable  grad  (34cd)"]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        pytest.param(
            "(", "--hashes '(' is no regular expression: missing ), unterminated subpattern at position 0",
            id="not a pattern",
        ),
        pytest.param("[0-9a-f]{8}", "--hashes '[0-9a-f]{8}' does not say where name and hash are", id="no groups"),
    ],
)  # fmt: skip
def test_a_pattern_that_cannot_be_used_is_refused(repeat: Repeat, cwd: Path, pattern: str, message: str) -> None:
    ended = repeat("--hashes", pattern, *python(""))

    assert ended.code == 2
    assert ended.err.splitlines()[0] == f"error: {message}"
    assert list(cwd.iterdir()) == []


# --- the environment ---------------------------------------------------------------------------------------------

CACHES = "import hashlib; print('names:', hashlib.sha256(os.environ['{}'].encode()).hexdigest())"


def test_each_run_has_compiler_caches_of_its_own(repeat: Repeat, temporary: Path) -> None:
    ended = repeat("-n", "2", *python(CACHES.format("TORCHINDUCTOR_CACHE_DIR")))

    assert "  DIFFERS names\n          from run 2 on, 2 different values\n" in ended.out
    assert [path.name[:15] for path in temporary.iterdir()] == ["toolkit-repeat-"]


@pytest.mark.parametrize(
    ("words", "name"),
    [
        pytest.param(["--keep-caches"], "TORCHINDUCTOR_CACHE_DIR", id="the caches that there are"),
        pytest.param([], "MY_OWN_VARIABLE", id="anything else"),
    ],
)
def test_the_command_has_the_environment_of_its_caller(
    repeat: Repeat, monkeypatch: pytest.MonkeyPatch, words: list[str], name: str
) -> None:
    monkeypatch.setenv(name, "/mine")

    assert repeat("-n", "2", *words, *python(CACHES.format(name))).code == 0


def test_a_sysroot_needs_a_recipe(repeat: Repeat) -> None:
    ended = repeat("--host", *python(""))

    assert (ended.code, ended.err) == (
        2, "error: --host adds the host sysroot of a recipe\nhint: name it with --env-of RECIPE\n"
    )  # fmt: skip


# --- runs that do not do their work ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        pytest.param(
            ["--", "sh", "-c", "echo first; echo no >&2; exit 3"], 19,
            "error: run 1 of 3: `sh -c 'echo first; echo no >&2; exit 3'` ended with exit code 3\n  no\n", id="fails",
        ),
        pytest.param(
            ["--", "sh", "-c", "kill -KILL $$"], 19,
            "error: run 1 of 3: `sh -c 'kill -KILL $$'` ended with signal SIGKILL\n", id="dies by a signal",
        ),
        pytest.param(
            ["--timeout", "0.2", "--", "sleep", "60"], 19,
            "error: run 1 of 3: sleep did not end within 0.2 s and was stopped\n", id="takes too long",
        ),
        pytest.param(
            ["--", "no-such-program"], 19,
            "error: run 1 of 3: cannot start 'no-such-program': No such file or directory\n"
            "hint: is it installed, and on PATH?\n", id="is not there",
        ),
        pytest.param(
            ["--", "true"], 2,
            "error: no run printed a hash, and --tensors names no files: there is nothing to compare\n"
            "hint: let it print `name: <sha256>`, say with --hashes how it prints them, or name files with --tensors\n",
            id="prints nothing",
        ),
        pytest.param(
            ["--hashes", "(a)(b)", "--", "true"], 2,
            "error: no run printed a line that --hashes '(a)(b)' matches\n"
            "hint: look at what it prints; the pattern is searched in each line\n", id="prints nothing of the kind",
        ),
    ],
)  # fmt: skip
def test_a_run_that_does_not_do_its_work_is_one_error(
    repeat: Repeat, temporary: Path, words: list[str], code: int, message: str
) -> None:
    ended = repeat(*words)

    assert ended.code == code
    assert "".join(line for line in ended.err.splitlines(True) if not line.startswith("repeat: ")) == message
    assert list(temporary.iterdir()) == []


def test_a_flood_is_stopped(repeat: Repeat, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolkit.runs.OUTPUT_LIMIT", 100_000)
    ended = repeat("--", "yes")

    assert ended.code == 19
    assert "error: run 1 of 3: yes printed more than 100000 bytes and was stopped\n  y\n" in ended.err
    assert list(temporary.iterdir()) == []


def test_a_launchers_workers_do_not_outlive_the_run_that_took_too_long(repeat: Repeat, cwd: Path) -> None:
    ended = repeat("--timeout", "1", "--", "sh", "-c", "setsid sh -c 'echo $$ > worker; exec sleep 60' & sleep 60")

    assert ended.code == 19
    assert_gone(int((cwd / "worker").read_text()))


def test_an_interrupt_ends_the_run_and_leaves_nothing(cwd: Path, temporary: Path) -> None:
    words = ["evidence", "repeat", *python("import time; print(os.getpid(), file=open('pid', 'w'), flush=True); "
                                           "time.sleep(60)")]  # fmt: skip
    child = subprocess.Popen([sys.executable, "-m", "toolkit", *words], stderr=subprocess.PIPE, cwd=cwd)
    pid = int(wait_for(cwd / "pid"))
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=10)

    assert (child.returncode, err) == (130, b"repeat: run 1 of 3\n\n")
    assert_gone(pid)
    assert list(temporary.iterdir()) == []


def test_an_interrupt_loses_nothing_that_was_saved(cwd: Path, temporary: Path) -> None:
    code = "open('a.npy', 'w').write(str(number))\nif number == 2:\n import time; open('two', 'w').write('.'); "
    words = ["evidence", "repeat", "--tensors", "*.npy", *python(code + "time.sleep(60)")]
    child = subprocess.Popen([sys.executable, "-m", "toolkit", *words], stderr=subprocess.PIPE, cwd=cwd)
    wait_for(cwd / "two")
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=10)

    (kept,) = temporary.iterdir()
    assert child.returncode == 130
    assert err.decode().splitlines()[-2] == f"warning: what the runs have given until then is in {kept}"
    assert (kept / "run-1" / "files" / "a.npy").read_text() == "1"
    assert (cwd / "a.npy").read_text() == "2"


def wait_for(path: Path) -> str:
    until = time.monotonic() + 10
    while time.monotonic() < until:
        if path.exists() and (text := path.read_text()).strip():
            return text
        time.sleep(0.02)
    raise AssertionError(f"{path} was never written")


def assert_gone(pid: int) -> None:
    for _ in range(100):
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except (ProcessLookupError, FileNotFoundError):
            return
        time.sleep(0.02)
    raise AssertionError(f"process {pid} is still there")


# --- saved tensors -----------------------------------------------------------------------------------------------

NPY = """
def save(name, *values):
    import struct
    head = str({"descr": "<f4", "fortran_order": False, "shape": (len(values),)}).encode() + b"\\n"
    body = b"\\x93NUMPY\\1\\0" + len(head).to_bytes(2, "little") + head + struct.pack(f"<{len(values)}f", *values)
    os.makedirs("out", exist_ok=True)
    open(name, "wb").write(body)
"""


def test_saved_tensors_are_compared_and_the_last_ones_stay(repeat: Repeat, cwd: Path, temporary: Path) -> None:
    code = NPY + (
        "save('out/a.npy', 1, 2)\nsave('out/b.npy', 1, 2 + 0.5 * (number == 3))\nif number != 2: save('out/c.npy', 1)"
    )
    ended = repeat("--tensors", "out/*.npy", *python(code))

    (kept,) = temporary.iterdir()
    assert ended.code == 23
    assert without_times(ended.out) == [
        "  DIFFERS out/b.npy",
        "          float32 [2], from run 3 on, 2 different values, 1 of 2 elements, at most 0.5 from the first",
        "  MISSING out/c.npy",
        "          float32 [1], not in run 2",
        f"  stable  out/a.npy  (float32 [2], {sha256(struct.pack('<2f', 1, 2)).hexdigest()[:12]})",
        "1 of 3 values are the same in every run",
        f"kept in {kept}",
    ]
    assert sorted(path.name for path in (cwd / "out").iterdir()) == ["a.npy", "b.npy", "c.npy"]
    assert (cwd / "out/b.npy").read_bytes() == (kept / "run-3/files/out/b.npy").read_bytes()
    assert (cwd / "out/b.npy").read_bytes() != (kept / "run-2/files/out/b.npy").read_bytes()


def test_where_all_is_stable_only_the_last_runs_files_stay(repeat: Repeat, cwd: Path, temporary: Path) -> None:
    code = NPY + "save('out/a.npy', 1)\nif not os.path.lexists('out/b.npy'): os.symlink('a.npy', 'out/b.npy')"
    ended = repeat("-n", "2", "--tensors", "out/*", "--tensors", f"{cwd}/./out/a*", *python(code))

    assert (ended.code, list(temporary.iterdir())) == (0, [])
    assert [line.split("  ")[2] for line in without_times(ended.out)[:-1]] == ["out/a.npy", "out/b.npy"]
    assert sorted(path.name for path in (cwd / "out").iterdir()) == ["a.npy", "b.npy"]


def test_a_file_from_before_is_not_taken_for_a_runs_own(repeat: Repeat, cwd: Path) -> None:
    (cwd / "old.npy").write_bytes(b"mine")
    ended = repeat("--tensors", "*.npy", *python(NPY + "save('old.npy', 1)"))

    assert (ended.code, ended.err) == (
        2,
        "error: 1 file that --tensors names is there before the first run\n  old.npy\n"
        "hint: move them elsewhere: every run must save its own, and nothing of yours is overwritten\n",
    )
    assert ([path.name for path in cwd.iterdir()], (cwd / "old.npy").read_bytes()) == (["old.npy"], b"mine")


def test_files_that_are_no_tensors_are_named_and_kept(repeat: Repeat, cwd: Path, temporary: Path) -> None:
    ended = repeat("-n", "2", "--tensors", "a.npy", *python("open('a.npy', 'w').write('no')"))

    (kept,) = temporary.iterdir()
    assert ended.code == 2
    assert ended.err.splitlines()[3:] == [
        f"warning: what the runs have given until then is in {kept}",
        "error: 2 saved files cannot be read as tensors",
        "  run 1, a.npy: it is not a .npy file",
        "  run 2, a.npy: it is not a .npy file",
        "hint: expected what torch.save writes, loadable with weights_only, or .npy or .safetensors",
    ]
    assert (cwd / "a.npy").read_text() == "no"


def test_a_pattern_that_no_run_has_saved_to(repeat: Repeat, cwd: Path, temporary: Path) -> None:
    ended = repeat("-n", "2", "--tensors", "out/*.pt", *python("print('loss:', one)"))

    assert ended.code == 2
    assert ended.err.splitlines()[2:] == [
        "error: no run saved a file that --tensors 'out/*.pt' names", f"hint: the pattern counts from {cwd}"
    ]  # fmt: skip
    assert list(temporary.iterdir()) == []


def test_an_interpreter_without_torch_is_said_to_be_one(repeat: Repeat, cwd: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    ended = repeat(
        "-n", "2", "--python", str(bare / "bin/python"), "--tensors", "*.npy", *python(NPY + "save('a.npy', 1)")
    )  # fmt: skip

    assert ended.code == 17
    assert ended.err.splitlines()[-2:] == [
        "  ModuleNotFoundError: No module named 'torch'",
        "hint: name an interpreter that has torch with --python",
    ]


def test_what_the_runs_gave_is_kept_where_that_is_asked_for(repeat: Repeat, cwd: Path) -> None:
    ended = repeat("-n", "2", "--keep", "kept", *python("print('loss:', one)"))

    assert (ended.code, ended.out.splitlines()[-1]) == (0, f"kept in {cwd / 'kept'}")
    assert (cwd / "kept" / "run-2" / "stdout.txt").read_text() == f"loss: {ONE}\n"


def test_a_folder_that_holds_something_is_not_kept_into(repeat: Repeat, cwd: Path) -> None:
    (cwd / "kept").mkdir()
    (cwd / "kept" / "mine").touch()
    ended = repeat("--keep", "kept", *python("print('loss:', one)"))

    assert (ended.code, ended.err) == (
        2, f"error: --keep '{cwd / 'kept'}' is not an empty folder\nhint: name one that is not there yet\n"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "why"),
    [("", "is empty"), ("[", "has a `[` that nothing closes"), ("out", "is a folder"), ("new/", "is a folder")],
)
def test_a_pattern_that_names_no_file_is_refused_before_the_runs(
    repeat: Repeat, cwd: Path, pattern: str, why: str
) -> None:
    (cwd / "out").mkdir()
    ended = repeat("--tensors", pattern, *python("open('ran', 'w')"))

    assert (ended.code, ended.err) == (
        2,
        f"error: --tensors {pattern!r} {why}\nhint: name files, as 'out/*' does\n",
    )
    assert not (cwd / "ran").exists()


def test_a_folder_to_keep_that_cannot_be_made_is_told(repeat: Repeat, cwd: Path) -> None:
    ended = repeat("--keep", "/proc/kept", *python("open('ran', 'w')"))

    assert (ended.code, ended.err) == (
        2,
        "error: --keep '/proc/kept' cannot be made: No such file or directory\nhint: name one where you can write\n",
    )
    assert not (cwd / "ran").exists()
