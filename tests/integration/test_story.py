"""The whole story on a small project, through the command line, in processes of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.sample import Sample, copy_of, make_sample
from toolkit.files import PART_PREFIX, sha256_file
from toolkit.manifest import read_overlay, rehash_manifest, verify_site
from toolkit.model import make_key
from toolkit.wheels.stored import read_wheel_record


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """Make the project once, with its lock; tests work on copies."""
    sample = make_sample(tmp_path_factory.mktemp("sample"))
    done = toolkit(sample, "lock")
    assert done.returncode == 0, done.stderr
    return sample


@pytest.fixture
def sample(locked: Sample, tmp_path: Path) -> Sample:
    return copy_of(locked, tmp_path)


def toolkit(sample: Sample, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        sample.toolkit(*words),
        env=sample.environ | environ,
        cwd=sample.root.parent,
        capture_output=True,
        text=True,
        check=False,
    )


def build(sample: Sample, *words: str) -> subprocess.CompletedProcess[str]:
    done = toolkit(sample, "build", *words)
    assert done.returncode == 0, done.stderr
    return done


def current_of(sample: Sample) -> Path:
    return sample.overlays / "sample" / os.readlink(sample.overlays / "sample" / "current")


def store_of(sample: Sample) -> Path:
    return Path(sample.environ["TOOLKIT_STORE"])


def require_whole(sample: Sample) -> None:
    """Whatever has a final name is whole: store entries, generations, and what `current` points to."""
    store = store_of(sample)
    for entry in store.glob("wheel/*"):
        if not entry.name.startswith(PART_PREFIX):
            assert read_wheel_record(entry).key.digest == entry.name
    for entry in store.glob("base/*"):
        if not entry.name.startswith(PART_PREFIX):
            assert [sha256_file(path) for path in entry.iterdir()] == [entry.name]
    for generation in (sample.overlays / "sample").glob("generations/*"):
        if not generation.name.startswith(PART_PREFIX):
            verify_site(generation, full=True)
    if (sample.overlays / "sample" / "current").is_symlink():
        assert json.loads((current_of(sample) / "proof.json").read_text())["ok"] is True
        verify_site(current_of(sample), full=True)


def test_a_build_proves_publishes_and_then_has_nothing_to_do(sample: Sample) -> None:
    first = build(sample)
    assert "red, as it must be" in first.stdout
    assert f"env file: {sample.overlays}/sample/env.sh" in first.stdout
    overlay = read_overlay(current_of(sample))
    assert overlay.packages[0].version.startswith("1.0+p1.k")
    assert overlay.packages[0].patches == ("0001-right-answer",)

    second = build(sample)
    assert second.stdout.startswith(f"sample: nothing to do, sample_npu {overlay.packages[0].version} stands and holds")
    assert second.stderr == ""


def test_every_command_gives_one_json_document(sample: Sample) -> None:
    build(sample)
    commands = [
        ["build"], ["verify"], ["env"], ["key"], ["key", "explain"], ["key", "diff", "sample", "sample"],
        ["cache", "list"], ["cache", "gc"], ["recipe", "list"], ["recipe", "show", "sample"], ["lock"],
        ["cache", "export", "cache.tar"], ["cache", "import", "cache.tar"],
    ]  # fmt: skip
    for words in commands:
        done = toolkit(sample, *words, "--json")
        assert done.returncode == 0, (words, done.stderr)
        json.loads(done.stdout)


def test_an_error_is_one_json_document_too(sample: Sample) -> None:
    done = toolkit(sample, "build", "--recipe", "sampel", "--json")
    assert done.returncode == 2
    fault = json.loads(done.stdout)["error"]
    assert fault["kind"] == "UsageError"
    assert fault["message"] == "there is no recipe 'sampel'; did you mean 'sample'?"
    assert fault["exit_code"] == 2


def test_a_witness_that_is_green_on_the_base_stops_the_build_and_current_stays(sample: Sample) -> None:
    build(sample)
    before = current_of(sample)
    (sample.root / "verify/answer.py").write_text(
        "from verify.contract import passed\n\n\ndef check(request):\n    return passed('always')\n"
    )
    sample.patch.write_text(sample.patch.read_text().replace("is 41.", "is 41, and that is wrong."))
    done = toolkit(sample, "build")
    assert done.returncode == 16
    assert "answer on the base: pass, wanted fail: always" in done.stderr
    assert "green, must be red" in done.stdout
    assert current_of(sample) == before


def test_a_changed_check_is_proven_anew_without_a_new_overlay(sample: Sample) -> None:
    build(sample)
    before = current_of(sample)
    witness = sample.root / "verify/answer.py"
    witness.write_text(witness.read_text() + "\n# a new day\n")
    document = json.loads(build(sample, "--json").stdout)
    assert document["did"] == ["proof"]
    assert current_of(sample) == before


def test_a_flipped_byte_is_named_by_verify_and_env_and_mended_by_build(sample: Sample) -> None:
    build(sample)
    core = current_of(sample) / "site/sample_npu/core.py"
    core.write_bytes(core.read_bytes().replace(b"42", b"43"))
    for words in (["verify"], ["env"], ["run", "--", "true"]):
        done = toolkit(sample, *words)
        assert done.returncode == 13, words
        assert "sample_npu/core.py" in done.stderr
        assert done.stdout == ""
    build(sample)
    assert b"42" in core.read_bytes()


def test_an_undone_change_under_a_rehashed_manifest_is_red(sample: Sample) -> None:
    build(sample)
    core = current_of(sample) / "site/sample_npu/core.py"
    core.write_bytes(core.read_bytes().replace(b"42", b"41"))
    rehash_manifest(current_of(sample))
    assert "is one of other files" in toolkit(sample, "env").stderr
    done = toolkit(sample, "verify")
    assert done.returncode == 16
    assert "answer on the overlay: fail, wanted pass: the answer is 41" in done.stderr


def test_an_undone_change_under_a_manifest_edited_by_hand_is_red_too(sample: Sample) -> None:
    build(sample)
    core, manifest = current_of(sample) / "site/sample_npu/core.py", current_of(sample) / "manifest.json"
    core.write_bytes(core.read_bytes().replace(b"42", b"41"))
    body = json.loads(manifest.read_text())
    body["files"]["sample_npu/core.py"]["sha256"] = sha256_file(core)
    manifest.write_text(json.dumps(body))
    assert toolkit(sample, "env").returncode == 13
    done = toolkit(sample, "verify")
    assert done.returncode == 16
    assert "answer on the overlay: fail, wanted pass: the answer is 41" in done.stderr


def test_an_edited_comment_changes_the_key_and_the_difference_names_the_patch(sample: Sample) -> None:
    old = sample.root.parent / "old.json"
    old.write_text(toolkit(sample, "key", "explain", "--json").stdout)
    assert toolkit(sample, "key", "diff", str(old), "sample").stdout == "the keys are equal\n"
    sample.patch.write_text(sample.patch.read_text().replace("Without it", "Without this"))
    done = toolkit(sample, "key", "diff", str(old), "sample")
    assert done.returncode == 1
    assert "0001-right-answer" in done.stdout.splitlines()[0]
    assert len(done.stdout.splitlines()) == 3


def test_two_clones_give_the_same_key_and_the_same_bytes(locked: Sample, tmp_path: Path) -> None:
    wheels = []
    for name in ("here", "a longer place/over there"):
        clone = copy_of(locked, tmp_path / name)
        build(clone)
        wheels.append(next((current_of(clone) / "wheels").iterdir()))
    assert wheels[0].name == wheels[1].name
    assert wheels[0].read_bytes() == wheels[1].read_bytes()


def test_two_builds_at_once_work_once(sample: Sample) -> None:
    both = [
        subprocess.Popen(
            sample.toolkit("build", "--json"),
            env=sample.environ, cwd=sample.root.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    ends = [one.communicate(timeout=120) for one in both]
    assert [one.returncode for one in both] == [0, 0], ends
    assert sorted(json.loads(out)["did"] for out, _ in ends) == [[], ["overlay", "proof"]]
    require_whole(sample)


def test_killed_at_any_moment_leaves_nothing_half_made(locked: Sample, tmp_path: Path) -> None:
    sample = copy_of(locked, tmp_path)
    began = time.monotonic()
    build(sample)
    whole_run = time.monotonic() - began
    shutil.rmtree(store_of(sample))
    shutil.rmtree(sample.overlays)
    kills = 0
    for step in range(24):
        child = subprocess.Popen(
            sample.toolkit("build"), env=sample.environ, cwd=sample.root.parent,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            child.wait(whole_run * (step + 1) / 24)
            shutil.rmtree(store_of(sample))
            shutil.rmtree(sample.overlays)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            kills += 1
        require_whole(sample)
    assert kills >= 5
    build(sample)
    require_whole(sample)
    assert not list(store_of(sample).glob(f"*/{PART_PREFIX}*"))
    assert not list((sample.overlays / "sample" / "generations").glob(f"{PART_PREFIX}*"))


@pytest.mark.parametrize("full", ["TOOLKIT_STORE", "TOOLKIT_OVERLAYS"])
def test_a_full_disk_is_an_error_and_leaves_nothing_half_made(sample: Sample, small_disk: Path, full: str) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(1_040_000))
    done = toolkit(sample, "build", **{full: str(small_disk / "place")})
    assert done.returncode == 12, done.stderr
    assert "is full (No space left on device)" in done.stderr
    left = [path for path in (small_disk / "place").rglob("*") if PART_PREFIX in path.name]
    assert left == []
    ballast.unlink()
    done = toolkit(sample, "build", **{full: str(small_disk / "place")})
    assert done.returncode == 0, done.stderr


def test_a_store_that_cannot_be_written_is_named(sample: Sample, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    done = toolkit(sample, "build", "--store", str(tmp_path / "file" / "store"))
    assert done.returncode == 11
    assert f"the store at {tmp_path}/file/store cannot be written: Not a directory" in done.stderr
    assert "--store DIR or TOOLKIT_STORE" in done.stderr


def test_offline_with_an_empty_store_says_what_is_missing(sample: Sample) -> None:
    done = toolkit(sample, "build", "--offline")
    assert done.returncode == 5
    assert sample.wheel.name in done.stderr
    assert "toolkit cache import" in done.stderr


def test_another_file_under_the_locked_name_is_refused_and_not_kept(sample: Sample) -> None:
    lock = sample.root / "recipes/sample.lock"
    lock.write_text(lock.read_text().replace(sha256_file(sample.wheel), "0" * 64))
    done = toolkit(sample, "build")
    assert done.returncode == 6, done.stderr
    assert sha256_file(sample.wheel) in done.stderr
    assert "0" * 64 in done.stderr
    assert not list(store_of(sample).glob("base/*"))


def test_an_exported_cache_builds_offline_elsewhere(locked: Sample, sample: Sample, tmp_path: Path) -> None:
    build(sample)
    file = tmp_path / "cache.tar"
    assert toolkit(sample, "cache", "export", str(file)).returncode == 0
    other = copy_of(locked, tmp_path / "other")
    assert toolkit(other, "cache", "import", str(file)).returncode == 0
    document = json.loads(build(other, "--offline", "--json").stdout)
    assert document["key"] == json.loads(toolkit(sample, "key", "--json").stdout)["key"]
    assert current_of(other).name == current_of(sample).name


def test_run_activates_the_overlay_and_passes_the_exit_code_on(sample: Sample) -> None:
    build(sample)
    program = (
        "import sample_npu.core, os, sys; print(sample_npu.core.answer(), os.environ['SAMPLE_BACKEND']); sys.exit(7)"
    )
    python = sample.toolkit()[0]
    done = toolkit(sample, "run", "--", python, "-c", program)
    assert (done.returncode, done.stdout, done.stderr) == (7, "42 small\n", "")


def test_run_can_put_the_unpatched_base_in_the_overlay_s_place(sample: Sample) -> None:
    build(sample)
    program = (
        "import os, sample_npu, sample_npu.core; print(sample_npu.core.answer(), os.environ['SAMPLE_BACKEND']);"
        "print(sample_npu.__file__, os.environ['TORCHINDUCTOR_CACHE_DIR'], os.environ.get('TOOLKIT_OVERLAY'))"
    )
    python = sample.toolkit()[0]
    done = toolkit(sample, "run", "--base", "--", python, "-c", program)
    assert (done.returncode, done.stderr) == (0, "")
    answer, where = done.stdout.splitlines()
    file, cache, overlay = where.split()
    assert answer == "41 small"
    assert Path(file).is_relative_to(store_of(sample) / "base-site")
    assert (Path(cache), overlay) == (current_of(sample) / "cache" / "base" / "torchinductor_cache_dir", "None")


def test_env_for_an_interpreter_that_does_not_fit_is_refused(sample: Sample, tmp_path: Path) -> None:
    build(sample)
    bare = tmp_path / "bare"
    subprocess.run([sample.toolkit()[0], "-m", "venv", "--without-pip", bare], check=True)
    done = toolkit(sample, "env", "--python", str(bare / "bin/python"))
    assert done.returncode == 17
    assert "has no torch" in done.stderr
    assert done.stdout == ""


def test_an_interpreter_without_torch_has_a_key_but_no_build(sample: Sample, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sample.toolkit()[0], "-m", "venv", "--without-pip", bare], check=True)
    words = ("--python", str(bare / "bin/python"))
    assert toolkit(sample, "key", *words).stdout == toolkit(sample, "key").stdout != ""
    done = toolkit(sample, "build", *words)
    assert done.returncode == 17
    assert "has no torch" in done.stderr
    assert not store_of(sample).exists()


def test_the_manifest_keeps_the_key_with_its_inputs(sample: Sample) -> None:
    build(sample)
    manifest = json.loads((current_of(sample) / "manifest.json").read_text())
    assert make_key(manifest["key_inputs"].items()).digest == manifest["key"]
