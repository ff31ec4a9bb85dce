"""The quick answers: word for word what the command line prints, and none at all once anything is other than it was."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.changes import content, edited, edited_json
from tests.sample import Sample, copy_of
from toolkit.files import sha256_file
from toolkit.quick import quick_answer

BOTH = pytest.mark.parametrize("command", ["build", "env"])


def answer(sample: Sample, *words: str, **environ: str) -> str | None:
    return quick_answer(list(words), sample.environ | environ)


def run_python(sample: Sample, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], env=sample.environ, cwd=sample.root.parent, text=True, check=False,
        **({"capture_output": True} | options),
    )  # fmt: skip


# --- what it prints ----------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("words", [(), ("--recipe", "sample")], ids=["no option", "--recipe"])
def test_the_answer_is_what_the_command_line_prints(built: Sample, command: str, words: tuple[str, ...]) -> None:
    long_way = run_python(built, "-m", "toolkit.cli", command, *words)
    short_way = run_python(built, "-m", "toolkit", command, *words)

    assert (long_way.returncode, long_way.stderr) == (0, "")
    assert (short_way.returncode, short_way.stderr) == (0, "")
    assert (answer(built, command, "--recipe", "sample") or "").rstrip("\n") + "\n" == long_way.stdout
    assert short_way.stdout == long_way.stdout


@BOTH
def test_the_command_line_is_not_even_imported(built: Sample, command: str) -> None:
    code = "import sys; from toolkit.quick import main; main(); sys.exit('click' in sys.modules)"

    assert run_python(built, "-c", code, command).returncode == 0


@BOTH
def test_a_reader_that_has_gone_gets_no_traceback(built: Sample, command: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = run_python(built, "-m", "toolkit", command, capture_output=False, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)

    assert (done.returncode, done.stderr) == (0, "")


def test_an_answer_that_cannot_be_written_is_an_error_of_the_command_line(built: Sample) -> None:
    with open("/dev/full", "w") as full:
        done = run_python(built, "-m", "toolkit", "env", capture_output=False, stdout=full, stderr=subprocess.PIPE)

    assert done.returncode == 12
    assert done.stderr.startswith("error: cannot write: the file system is full (No space left on device)\n")


@pytest.mark.parametrize("module", ["toolkit", "toolkit.cli"], ids=["the quick way", "the long way"])
def test_an_interrupt_ends_it_with_130_and_no_traceback(sample: Sample, module: str) -> None:
    generation = sample.folder.generation("0" * 64)
    generation.mkdir(parents=True)
    (sample.folder.path / "current").symlink_to(generation)
    os.mkfifo(generation / "manifest.json")
    words = [sys.executable, "-m", module, "build"]
    with subprocess.Popen(words, env=sample.environ, stderr=subprocess.PIPE) as child:
        try:
            writing = open_for_reader(generation / "manifest.json")  # the child has begun, and waits for more
            told = interrupt(child)
            os.close(writing)
        finally:
            child.kill()

    assert (child.returncode, told.strip()) == (130, b"")


def interrupt(child: subprocess.Popen[bytes], *, limit: int = 12) -> bytes:
    """Interrupt a child until it ends: Python misses a signal that comes just before it waits in a system call."""
    for _ in range(limit):
        child.send_signal(signal.SIGINT)
        try:
            return child.communicate(timeout=2)[1]
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError(f"{child.args!r} does not end by {limit} interrupts")


def open_for_reader(pipe: Path, *, limit: float = 30) -> int:
    """Open a named pipe for writing once somebody reads from it."""
    end = time.monotonic() + limit
    while True:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as fault:
            if fault.errno != errno.ENXIO or time.monotonic() > end:
                raise
            time.sleep(0.01)


# --- what is left to the command line ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--help",),
        ("verify",),
        ("key",),
        ("build", "--json"),
        ("build", "--offline"),
        ("build", "--recipe"),
        ("build", "--recipe=sample"),
        ("build", "--recipe", "sample", "-v"),
        ("build", "--store", "elsewhere"),
        ("build", "-v", "sample"),
        ("build", "sample"),
        ("build", "--python-tag", "cp311"),
        ("env", "--shell", "fish"),
        ("env", "--python", sys.executable),
        ("env", "--help"),
    ],
    ids=" ".join,
)
def test_other_words_are_left_to_the_command_line(built: Sample, words: tuple[str, ...]) -> None:
    assert answer(built, *words) is None


@BOTH
@pytest.mark.parametrize(
    "environ",
    [
        {"TOOLKIT_PYTHON": sys.executable},
        {"ASCEND_HOME_PATH": "/usr/local/Ascend"},
        {"TOOLKIT_RECIPE": "another"},
        {"TOOLKIT_RECIPE": ""},
        {"TOOLKIT_PROJECT": "/"},
        {"TOOLKIT_OVERLAYS": "/nowhere"},
    ],
    ids=lambda environ: next("=".join(pair) for pair in environ.items()),
)
def test_another_environment_is_left_to_the_command_line(built: Sample, command: str, environ: dict[str, str]) -> None:
    assert answer(built, command, **environ) is None
    assert answer(built, command) is not None


def test_an_empty_variable_is_as_none(built: Sample) -> None:
    assert answer(built, "build", TOOLKIT_PYTHON="") == answer(built, "build") is not None


# --- what was changed --------------------------------------------------------------------------------------------


def recorded_otherwise(sample: Sample, end: str) -> AbstractContextManager[None]:
    """Let the trace say that the build was made from other bytes of a file, which a test must not write to."""

    def change(body: Any) -> None:
        (path,) = (path for path in body["files"] if path.endswith(end))
        body["files"][path] = [[0, 0, 0, 0], "0" * 64]

    return edited_json(sample.folder.trace, change)


INPUTS: dict[str, Callable[[Sample], AbstractContextManager[None]]] = {
    "recipe": lambda s: edited(s.recipe, "a sample", "an example"),
    "lock": lambda s: edited(s.recipe.with_suffix(".lock"), "do not edit", "do edit"),
    "patch": lambda s: edited(s.patch, "Without it", "Without this"),
    "patch removed": lambda s: content(s.patch, None),
    "patch added": lambda s: content(s.patch.with_name("0002-more.patch"), b"\n"),
    "check": lambda s: edited(s.root / "verify/loads.py", "from elsewhere", "from another place"),
    "witness": lambda s: edited(s.root / "verify/answer.py", "42 else", "42 or False else"),
    "catalogue": lambda s: edited_json(s.root / "verify/checks.json", lambda body: body.popitem()),
    "check added": lambda s: content(s.root / "verify/more.py", b""),
    "interpreter": lambda s: recorded_otherwise(s, os.path.realpath(sys.executable)),
    "toolkit's code": lambda s: recorded_otherwise(s, "/toolkit/prove/verdict.py"),
    "toolkit's C code": lambda s: recorded_otherwise(s, "/toolkit/sysroot/behaviour.c"),
}


@BOTH
@pytest.mark.parametrize("change", INPUTS.values(), ids=INPUTS)
def test_a_changed_input_is_left_to_the_command_line_until_it_is_put_back(
    built: Sample, command: str, change: Callable[[Sample], AbstractContextManager[None]]
) -> None:
    before = answer(built, command)
    with change(built):
        assert answer(built, command) is None
    assert answer(built, command) == before is not None


def flipped(path: Path) -> AbstractContextManager[None]:
    raw = path.read_bytes()
    return content(path, bytes([raw[0] ^ 1]) + raw[1:])


OVERLAY: dict[str, Callable[[Path], AbstractContextManager[None]]] = {
    "flipped byte": lambda g: flipped(g / "site/sample_npu/core.py"),
    "file missing": lambda g: content(g / "site/sample_npu/core.py", None),
    "file added": lambda g: content(g / "site/more.py", b""),
    "manifest edited": lambda g: edited_json(g / "manifest.json", lambda body: body.update(recipe="other")),
    "manifest missing": lambda g: content(g / "manifest.json", None),
    "seal of no use": lambda g: content(g / "seal.json", b'{"manifest": 1, "signatures": 1}'),
    "proof missing": lambda g: content(g / "proof.json", None),
    "proof garbled": lambda g: content(g / "proof.json", b"{"),
    "proof failed": lambda g: edited_json(g / "proof.json", lambda body: body.update(ok=False)),
    "proof that says no": lambda g: edited_json(g / "proof.json", lambda body: body.update(ok="no")),
    "proof of other files": lambda g: edited_json(
        g / "proof.json", lambda body: body["environment"].update(manifest="0" * 64)
    ),
    "trace missing": lambda g: content(g.parents[1] / "built.json", None),
    "trace of another generation": lambda g: edited_json(
        g.parents[1] / "built.json", lambda body: body["result"].update(generation="0" * 16)
    ),
    "trace without an answer": lambda g: edited_json(
        g.parents[1] / "built.json", lambda body: body["result"].pop("env")
    ),
    "trace with a path that is none": lambda g: edited_json(
        g.parents[1] / "built.json", lambda body: body["files"].update({"\0": [[], ""]})
    ),
}


@pytest.mark.parametrize("change", OVERLAY.values(), ids=OVERLAY)
def test_an_overlay_that_does_not_hold_is_left_to_the_command_line(
    built: Sample, generation: Path, change: Callable[[Path], AbstractContextManager[None]]
) -> None:
    with change(generation):
        assert answer(built, "env") is None
    assert answer(built, "env") is not None


# --- where it was made -------------------------------------------------------------------------------------------


@BOTH
def test_overlays_that_were_moved_are_built_anew_as_the_answers_name_their_place(built: Sample, command: str) -> None:
    moved = built.overlays.with_name("moved")
    built.overlays.rename(moved)
    try:
        assert answer(built, command, TOOLKIT_OVERLAYS=str(moved)) is None
    finally:
        moved.rename(built.overlays)


@BOTH
def test_another_project_that_shares_the_overlays_folder_has_its_own_inputs(
    built: Sample, command: str, tmp_path: Path
) -> None:
    other = copy_of(built, tmp_path)

    assert answer(other, command, TOOLKIT_OVERLAYS=str(built.overlays)) is None
    assert answer(built, command, TOOLKIT_OVERLAYS=str(built.overlays)) is not None


def test_another_recipe_file_of_the_same_stem_is_not_the_one_that_was_built(built: Sample, tmp_path: Path) -> None:
    other = tmp_path / "sample.toml"
    shutil.copy(built.recipe, other)

    assert answer(built, "build", "--recipe", str(other)) is None


def test_a_relative_recipe_file_is_not_the_one_of_that_name_in_another_folder(
    sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = [tmp_path / "one", tmp_path / "two"]
    for place, value in zip(places, ("small", "large"), strict=True):
        place.mkdir()
        (place / "own.toml").write_text(sample.recipe.read_text().replace('"small"', f'"{value}"'))
        shutil.copy(sample.recipe.with_suffix(".lock"), place / "own.lock")
    lock = places[0] / "own.lock"
    lock.write_text(lock.read_text().replace('recipe = "sample"', 'recipe = "own"'))
    shutil.copy(lock, places[1] / "own.lock")
    done = subprocess.run(
        sample.toolkit("build", "--recipe", "own.toml"), env=sample.environ, cwd=places[0], capture_output=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr

    monkeypatch.chdir(places[0])
    assert answer(sample, "env", "--recipe", "own.toml") is not None
    monkeypatch.chdir(places[1])
    assert answer(sample, "env", "--recipe", "own.toml") is None


def test_a_patch_that_is_edited_during_the_build_is_not_taken_for_built(sample: Sample) -> None:
    plan = sample.plan()
    sample.build(plan)
    assert answer(sample, "build") is not None

    with contextlib.ExitStack() as edits:
        edits.enter_context(edited(sample.patch, "Without it", "Without this"))
        late = sample.build(plan)
        assert late.did == ()
        assert answer(sample, "build") is None
    assert answer(sample, "build") is not None


def test_the_answer_changes_nothing_on_disk(built: Sample, generation: Path) -> None:
    def state() -> dict[Path, str]:
        return {path: sha256_file(path) for path in built.folder.path.rglob("*") if path.is_file()}

    before = state()
    assert answer(built, "build") is not None
    assert state() == before
