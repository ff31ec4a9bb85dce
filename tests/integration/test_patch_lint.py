"""`toolkit patch lint` on whole projects: all faults at once, each at its place."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.sample import Sample, make_sample, silent_console
from tests.series_cases import run_git, write_patches
from toolkit.process import Completed, run
from toolkit.resolve import resolve_recipe
from toolkit.schema import shown_path
from toolkit.upkeep.lint import SeriesReport, lint_series

CORE = b"def answer():\n    return 41\n"
MESSAGE = """\
give the right answer

Without it answer() is wrong: 41 instead of 42.

Count once more. Proven by asking again.

Upstream-Status: Pending [not sent yet]
Witness: answer
"""
NORMAL = ("--zero-commit", "--no-signature", "--full-index", "--find-renames", "--stat=72", "--no-numbered")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """Return a project in small whose only patch is as it should be, and whose base is in the store."""
    sample = make_sample(tmp_path_factory.mktemp("sample"))
    resolve_recipe(sample.project, "sample", upgrade=False, environ=sample.environ, stage=lambda prefix, text: None)
    write_series(sample, {"sample_npu/core.py": CORE}, {"sample_npu/core.py": CORE.replace(b"41", b"42")})
    assert report_on(sample, offline=False).remarks == ()
    return sample


@pytest.fixture
def sample(made: Sample, tmp_path: Path) -> Sample:
    """Return a copy of the project, for the test alone; the store is everybody's."""
    root = shutil.copytree(made.root, tmp_path / "project")
    return replace(made, root=root, environ={**made.environ, "TOOLKIT_PROJECT": str(root)})


@pytest.fixture
def without_base(sample: Sample, tmp_path: Path) -> Sample:
    """Return the project with nothing to get its base from."""
    sample.recipe.with_suffix(".lock").unlink()
    nowhere = {"PIP_FIND_LINKS": str(tmp_path / "nowhere"), "TOOLKIT_STORE": str(tmp_path / "store")}
    return replace(sample, environ={**sample.environ, **nowhere})


@dataclass(frozen=True)
class Upstream:
    """A server that turns everybody away, and counts them."""

    port: int
    visits: list[object]


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    """Return a place that nobody shall come to."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = Upstream(port=server.getsockname()[1], visits=[])

        def turn_away() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, address = server.accept()
                    found.visits.append(address)
                    connection.close()

        threading.Thread(target=turn_away, daemon=True).start()
        yield found
        server.shutdown(socket.SHUT_RDWR)


def write_series(sample: Sample, *trees: Mapping[str, bytes], message: str = MESSAGE) -> list[Path]:
    """Write the steps between trees as the sample's series, in normal form."""
    folder, scratch = sample.patch.parent, sample.root.parent / "series-scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    for old in folder.glob("*.patch"):
        old.unlink()
    return write_patches(scratch, folder, *trees, message=message, options=NORMAL)


def lint(sample: Sample, *words: str, code: int = 0, **environ: str) -> Completed:
    argv = sample.toolkit("patch", "lint", *words)
    done = run(argv, cwd=sample.root, env={**sample.environ, **environ}, check=False, timeout=120)
    assert done.returncode == code, done.stderr + done.stdout
    return done


def report_on(sample: Sample, name: str = "sample_npu/1.0", offline: bool = True, **environ: str) -> SeriesReport:
    """Lint one series in this process, with what the store has."""
    means = replace(sample.means, offline=offline, environ={**sample.environ, **environ})
    (report,) = lint_series([name], sample.project, means, silent_console())
    return report


def faults_of(sample: Sample, name: str = "sample_npu/1.0", **environ: str) -> list[tuple[str, int, str]]:
    """Return file, line and text of every fault of a series."""
    return [(one.path.name, one.line, one.what) for one in report_on(sample, name, **environ).faults]


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, (old, text)
    path.write_text(text.replace(old, new), encoding="utf-8")


def patch_of(sample: Sample, number: int = 1) -> Path:
    return next(sample.patch.parent.glob(f"{number:04}-*.patch"))


def test_a_series_without_fault_is_compiled_on_its_home(sample: Sample) -> None:
    done = lint(sample)
    assert done.stdout == "1 patch: no fault in 1 series\n"
    assert json.loads(lint(sample, "--json").stdout) == {
        "faults": 0,
        "series": [{"series": "sample_npu/1.0", "patches": 1, "faults": [], "remarks": []}],
    }


def test_every_fault_of_every_file_is_in_one_report(sample: Sample) -> None:
    write_series(sample, {"sample_npu/core.py": CORE}, {"sample_npu/core.py": CORE.replace(b"41", b"42 ")})
    patch = patch_of(sample)
    edit(patch, "Subject: [PATCH] give the right answer", "Subject: [PATCH] give the right answer.")
    edit(patch, "Witness: answer", "Witness: question")
    second = patch.with_name("0003-second.patch")
    shutil.copy(patch, second)
    edit(second, "Upstream-Status: Pending [not sent yet]\n", "")
    (patch.parent / "notes.txt").write_text("x", encoding="utf-8")
    edit(patch.with_name("series.toml"), '["sample_npu==1.0"]', '["sample_npu==1.0", "sample_npu"]')

    done = lint(sample, code=23)

    folder, catalogue = "patches/sample_npu/1.0", sample.root / "verify/checks.json"
    first, again = f"{folder}/{patch.name}", f"{folder}/0003-second.patch"
    assert done.stdout.splitlines() == [
        f"{first}: no witness 'question' in {catalogue}; write it, as docs/patches.md says",
        f"{first}:4: its subject ends with a dot, expected none: it is a title",
        f"{first}:23: adds a line to sample_npu/core.py that ends in blanks: '    return 42 '",
        f"{again}: has number 0003, expected 0002",
        f"{again}: has no `Upstream-Status:` trailer, expected one of Pending, Submitted, Backport, Denied,"
        " Inappropriate with its [link or reason]",
        f"{again}: no witness 'question' in {catalogue}; write it, as docs/patches.md says",
        f"{again}:4: its subject ends with a dot, expected none: it is a title",
        f"{again}:22: adds a line to sample_npu/core.py that ends in blanks: '    return 42 '",
        f"{folder}/notes.txt: outside the order, expected NNNN-slug.patch",
        f"{folder}/series.toml:2: covers[1]: 'sample_npu' is not a release such as `torch_npu==2.13.0`, `git:` and a"
        " full commit id, or `installed:` and a package, such as 'torch_npu==2.13.0'",
        "sample_npu/1.0: not compiled on a base, nor written anew: the other faults come first",
        "2 patches: 10 faults in 1 of 1 series",
    ]
    assert done.stderr.splitlines()[-2:] == [
        "error: 10 faults in 1 of 1 series",
        "hint: mend the files by hand, or with `toolkit patch edit` and `refresh`",
    ]


def test_a_program_gets_one_document_with_files_and_lines(sample: Sample) -> None:
    edit(patch_of(sample), "give the right answer", "give the right answer.")
    assert json.loads(lint(sample, "--json", code=23).stdout)["series"][0]["faults"] == [
        {
            "file": str(patch_of(sample)), "line": 4,
            "what": "its subject ends with a dot, expected none: it is a title",
        }
    ]  # fmt: skip


@pytest.mark.parametrize("has_base", [True, False], ids=["on the base", "without one"])
def test_python_that_does_not_compile_is_found(request: pytest.FixtureRequest, has_base: bool) -> None:
    sample: Sample = request.getfixturevalue("sample" if has_base else "without_base")
    write_series(sample, {"sample_npu/core.py": CORE}, {"sample_npu/core.py": CORE.replace(b"41", b"(42")})
    text = "'(' was never closed: 'return (42'"
    whole, alone = (
        "sample_npu/core.py does not compile with it: line 2",
        "hunk #1 of sample_npu/core.py does not compile",
    )
    assert faults_of(sample) == [(patch_of(sample).name, 23, f"{whole if has_base else alone}: {text}")]


def test_a_base_that_cannot_be_had_is_a_remark_and_no_fault(without_base: Sample) -> None:
    (remark, total) = lint(without_base, "--offline").stdout.splitlines()

    assert remark == (
        "sample_npu/1.0: not compiled: no base that it covers can be had here (sample_npu==1.0: sample_npu: no wheel "
        f"of sample_npu==1.0 is in the store at {without_base.environ['TOOLKIT_STORE']}, and offline nobody is asked)"
    )
    assert total == "1 patch: no fault in 1 series"


def test_a_commit_is_read_from_a_clone_on_this_machine_and_never_fetched(
    sample: Sample, tmp_path: Path, upstream: Upstream
) -> None:
    clone = tmp_path / "clone"
    clone.mkdir()
    run_git(clone, "init", "--quiet")
    (clone / "sample_npu").mkdir()
    (clone / "sample_npu/core.py").write_bytes(CORE)
    run_git(clone, "add", "--all")
    run_git(clone, "commit", "--quiet", "-m", "base")
    commit = run_git(clone, "rev-parse", "HEAD").decode().strip()
    line = patch_of(sample).with_name("series.toml")
    line.write_text(
        f'schema = 1\ncovers = ["git:{commit}"]\nupstream = ["https://127.0.0.1:{upstream.port}/x.git"]\n',
        encoding="utf-8",
    )

    assert report_on(sample, offline=False).remarks == (
        f"not compiled: no base that it covers can be had here (git:{commit[:12]} is not on this machine)",
    )
    assert upstream.visits == []
    kept = {entry.path for entry in sample.means.store.entries()}
    found = report_on(sample, offline=False, TOOLKIT_MIRROR_SAMPLE_NPU=clone.as_uri())
    assert (found.faults, found.remarks) == ((), ())
    assert {entry.path for entry in sample.means.store.entries()} == kept


def test_a_patch_that_takes_another_back_is_found(sample: Sample) -> None:
    trees = [{"sample_npu/core.py": CORE.replace(b"41", answer)} for answer in (b"41", b"42", b"41")]
    write_series(sample, *trees)
    first, second = (patch_of(sample, number) for number in (1, 2))
    assert faults_of(sample) == [
        (second.name, 0, f"takes back all that {first.stem} does; drop both, or fold them into one")
    ]


def test_a_file_that_git_would_write_otherwise_is_named_with_its_line(sample: Sample) -> None:
    edit(patch_of(sample), "Subject: [PATCH] give", "Subject: [PATCH 1/2] give")
    assert faults_of(sample) == [
        (
            patch_of(sample).name, 4,
            "it is 'Subject: [PATCH 1/2] give the right answer', in normal form"
            " 'Subject: [PATCH] give the right answer'",
        )
    ]  # fmt: skip


def test_an_index_line_that_is_not_of_its_base_is_named_with_its_line(sample: Sample) -> None:
    patch = patch_of(sample)
    (index,) = [line for line in patch.read_text(encoding="utf-8").split("\n") if line.startswith("index ")]
    wrong = f"index {'1' * 40}{index[len('index ') + 40 :]}"
    edit(patch, index, wrong)
    assert faults_of(sample) == [(patch.name, 17, f"it is {wrong!r}, in normal form {index!r}")]


def test_a_base_on_which_the_series_does_not_stand_is_a_fault(sample: Sample) -> None:
    write_series(sample, {"sample_npu/core.py": CORE + b"x\n"}, {"sample_npu/core.py": CORE + b"y\n"})
    assert faults_of(sample) == [
        (
            patch_of(sample).name, 0,
            "does not apply to sample_npu==1.0: patch failed: sample_npu/core.py:1; see `toolkit patch status`",
        )
    ]  # fmt: skip


@pytest.mark.parametrize("what", ["no series.toml", "an empty folder"])
def test_a_series_that_cannot_be_read_is_a_fault_and_not_the_end(sample: Sample, what: str) -> None:
    broken = sample.root / "patches/sample_npu/2.0"
    broken.mkdir()
    expected = [("2.0", 0, "has no patch, expected files named NNNN-slug.patch")]
    if what == "no series.toml":
        shutil.copy(patch_of(sample), broken)
        hint = 'write one: schema = 1 and covers = ["<distribution>==<version>", "git:<commit id>"]'
        missing = (
            f"series 'sample_npu/2.0' does not say which bases it is for: no file {shown_path(broken / 'series.toml')}"
        )
        expected = [("series.toml", 0, f"{missing}; {hint}")]
    else:
        shutil.copy(sample.patch.with_name("series.toml"), broken)

    assert faults_of(sample, "sample_npu/2.0") == expected
    assert lint(sample, "--series", "sample_npu/1.0").stdout == "1 patch: no fault in 1 series\n"


def test_unsafe_patches_are_judged_without_being_applied(sample: Sample) -> None:
    patch = patch_of(sample)
    text = patch.read_text(encoding="utf-8")
    patch.write_text(text.replace("sample_npu/core.py", "../../outside.py"), encoding="utf-8")

    (fault, *_) = faults_of(sample)
    assert fault == (patch.name, 0, "unsafe path: '../../outside.py' leaves its folder through '..'")
    assert not any(path.name == "outside.py" for path in sample.root.parent.rglob("*"))


def test_a_series_that_is_not_there_is_refused(sample: Sample) -> None:
    done = lint(sample, "--series", "sample_npu/1.1", code=2)
    assert "there is no series 'sample_npu/1.1'; did you mean 'sample_npu/1.0'?" in done.stderr


def test_the_callers_git_settings_change_nothing(sample: Sample, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        "[diff]\n\tnoprefix = true\n\tmnemonicPrefix = true\n\tcontext = 9\n\talgorithm = histogram\n"
        "[format]\n\tnumbered = true\n\tsignature = x\n[core]\n\tautocrlf = true\n\tabbrev = 5\n",
        encoding="utf-8",
    )
    assert lint(sample, HOME=str(home), PATH=os.environ["PATH"]).stdout == "1 patch: no fault in 1 series\n"
