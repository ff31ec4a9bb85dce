from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.wheels import CP311, as_wheel, make_wheel
from toolkit import files, manifest
from toolkit.errors import OverlayError
from toolkit.files import sha256_bytes, sha256_file
from toolkit.manifest import SEAL, read_overlay, rehash_manifest, seal_site, verify_site
from toolkit.model import Contract, make_key
from toolkit.overlay import build_overlay

KEY = make_key([("component", "sample"), ("base", "wheel:00")])
CONTRACT = Contract(python_tags=("cp311",), platforms=("manylinux_2_28_x86_64",), torch="2.13.0", soc=("910B",))
BUILD_AGAIN = "build it again: toolkit build"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    wheel = make_wheel(tmp_path / "store", version="1.0+p1.k01234567")
    folder = tmp_path / "overlay"
    build_overlay(
        folder,
        recipe="sample",
        key=KEY,
        wheels=[as_wheel(wheel, patches=("0001-change",))],
        target=CP311,
        contract=CONTRACT,
        env={"MODE": "dvm"},
        diagnostic="for tests",
    )
    return folder


@pytest.fixture
def settled(root: Path) -> Path:
    """An overlay all of whose files are in the seal."""
    time.sleep(manifest.RACY / 1e9)
    seal_site(root)
    assert set(sealed_paths(root)) == set(json.loads((root / "manifest.json").read_text())["files"])
    return root


def sealed_paths(root: Path) -> list[str]:
    return [path for path, one in json.loads((root / SEAL).read_text())["signatures"].items() if one]


def refusal(root: Path, *, full: bool = False) -> OverlayError:
    with pytest.raises(OverlayError) as caught:
        verify_site(root, full=full)
    assert caught.value.hint == BUILD_AGAIN
    return caught.value


def flip(path: Path) -> tuple[str, str]:
    """Flip one bit of a file in place; return its hash before and after."""
    raw = bytearray(path.read_bytes())
    before = sha256_bytes(raw)
    raw[len(raw) // 2] ^= 1
    with path.open("r+b") as stream:
        stream.write(raw)
    return before, sha256_bytes(raw)


# --- files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("full", [False, True], ids=["quick", "full"])
def test_an_untouched_overlay_holds(settled: Path, full: bool) -> None:
    verify_site(settled, full=full)


@pytest.mark.parametrize("full", [False, True], ids=["quick", "full"])
def test_a_flipped_byte_is_found_and_its_file_named(settled: Path, full: bool) -> None:
    before, after = flip(settled / "site/sample/core.py")

    fault = refusal(settled, full=full)

    assert fault.message == (
        f"the overlay at {settled} is not what its manifest says: "
        f"sample/core.py was changed (sha256 {after}, expected {before})"
    )


def test_a_byte_flipped_right_after_the_build_is_found(root: Path) -> None:
    flip(root / "site/sample/core.py")

    assert "sample/core.py was changed" in refusal(root).message


def test_a_file_is_left_out_of_the_seal_until_its_times_can_tell(root: Path) -> None:
    now = time.time_ns()
    os.utime(root / "site/sample/core.py")
    seal_site(root)
    young = time.time_ns() - now < manifest.RACY

    assert ("sample/core.py" in sealed_paths(root)) is not young


def test_a_file_too_young_for_the_seal_is_missed_when_it_is_gone(settled: Path) -> None:
    path = settled / "site/sample/core.py"
    os.utime(path)
    seal_site(settled)
    path.unlink()

    assert refusal(settled).message.endswith(": sample/core.py is missing")


def test_a_byte_flipped_with_its_old_times_put_back_is_found(settled: Path) -> None:
    path = settled / "site/sample/core.py"
    status = path.stat()
    flip(path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    assert "sample/core.py was changed" in refusal(settled).message


def test_a_file_replaced_by_a_renamed_one_is_found(settled: Path) -> None:
    path = settled / "site/sample/core.py"
    other = settled / "other"
    other.write_bytes(path.read_bytes().replace(b"41", b"42"))
    shutil.copystat(path, other)
    other.replace(path)

    assert "sample/core.py was changed" in refusal(settled).message


def test_what_no_stat_call_shows_is_found_by_a_full_check(settled: Path) -> None:
    flip(settled / "site/sample/core.py")
    forge_seal(settled)

    verify_site(settled)
    assert "sample/core.py was changed" in refusal(settled, full=True).message


def forge_seal(root: Path) -> None:
    """Make the seal say that the files are as they were sealed: then none of them is read."""
    seal = json.loads((root / SEAL).read_text())
    seal["signatures"] = files.tree_signatures(str(root / "site"))
    (root / SEAL).write_text(json.dumps(seal))


def test_a_missing_file_is_named(settled: Path) -> None:
    (settled / "site/sample/core.py").unlink()

    assert refusal(settled).message.endswith(": sample/core.py is missing")


@pytest.mark.parametrize("name", ["sample/extra.py", "torch.py", "sample/core.pyc", "sample/__pycache__/run.sh"])
def test_a_file_too_many_is_named(settled: Path, name: str) -> None:
    path = settled / "site" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("")

    assert refusal(settled).message.endswith(f": {name} is not in the manifest")


def test_every_fault_is_listed(settled: Path) -> None:
    flip(settled / "site/sample/core.py")
    (settled / "site/sample/version.py").unlink()
    (settled / "site/extra.py").write_text("")

    fault = refusal(settled)

    assert fault.message == (
        f"the overlay at {settled} is not what its manifest says: extra.py is not in the manifest (and 2 more)"
    )
    assert [line.split(" (")[0] for line in fault.details] == [
        "extra.py is not in the manifest",
        "sample/core.py was changed",
        "sample/version.py is missing",
    ]


def test_a_symlink_to_the_same_content_is_refused(settled: Path) -> None:
    path = settled / "site/sample/core.py"
    path.rename(settled / "elsewhere.py")
    path.symlink_to(settled / "elsewhere.py")

    assert refusal(settled).message.endswith(": sample/core.py is no regular file")


def test_a_fifo_in_a_files_place_is_refused_without_reading_it(settled: Path) -> None:
    path = settled / "site/sample/core.py"
    path.unlink()
    os.mkfifo(path)

    assert refusal(settled).message.endswith(": sample/core.py is no regular file")


def test_a_folder_replaced_by_a_symlink_is_refused(settled: Path) -> None:
    (settled / "site/sample").rename(settled / "elsewhere")
    (settled / "site/sample").symlink_to(settled / "elsewhere")

    assert "sample is not in the manifest" in refusal(settled).details


def test_a_lost_site_is_told(settled: Path) -> None:
    shutil.rmtree(settled / "site")

    assert refusal(settled).message == f"the overlay at {settled} has lost files: {settled}/site"


def test_what_python_compiles_on_import_is_no_change(settled: Path) -> None:
    subprocess.run([sys.executable, "-c", "import sample"], env={"PYTHONPATH": f"{settled}/site"}, check=True)

    assert list((settled / "site/sample/__pycache__").iterdir())
    verify_site(settled)
    verify_site(settled, full=True)


# --- the seal ----------------------------------------------------------------------------------------------------


def test_only_files_that_were_touched_since_they_were_sealed_are_read(settled: Path) -> None:
    flip(settled / "site/sample/core.py")
    forge_seal(settled)
    os.utime(settled / "site/sample/version.py")
    verify_site(settled)

    os.utime(settled / "site/sample/core.py")
    assert "sample/core.py was changed" in refusal(settled).message


def test_the_seal_survives_a_rename_of_the_overlay(settled: Path, tmp_path: Path) -> None:
    settled.rename(tmp_path / "final")

    assert {path: list(one) for path, one in files.tree_signatures(f"{tmp_path}/final/site").items()} == (
        json.loads((tmp_path / "final" / SEAL).read_text())["signatures"]
    )
    verify_site(tmp_path / "final")


def test_a_copy_is_read_once_and_sealed_anew(settled: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(settled, copy)
    time.sleep(manifest.RACY / 1e9)
    before = (copy / SEAL).read_bytes()

    verify_site(copy)

    assert (copy / SEAL).read_bytes() != before
    assert len(sealed_paths(copy)) == len(sealed_paths(settled))


@pytest.mark.parametrize("seal", [None, "", "[]", "{}", '{"manifest": 1'], ids=str)
def test_without_a_usable_seal_every_file_is_read(settled: Path, seal: str | None) -> None:
    (settled / SEAL).unlink() if seal is None else (settled / SEAL).write_text(seal)
    verify_site(settled)
    assert sealed_paths(settled)

    (settled / SEAL).unlink()
    flip(settled / "site/sample/core.py")
    assert "sample/core.py was changed" in refusal(settled).message


def test_a_failed_check_seals_nothing(settled: Path) -> None:
    before = (settled / SEAL).read_bytes()
    flip(settled / "site/sample/core.py")
    refusal(settled)

    assert (settled / SEAL).read_bytes() == before


def test_an_edited_manifest_is_refused(settled: Path) -> None:
    path = settled / "manifest.json"
    before = sha256_file(path)
    _, after = flip(settled / "site/sample/core.py")
    body = json.loads(path.read_text())
    body["files"]["sample/core.py"]["sha256"] = after
    path.write_text(json.dumps(body))

    assert refusal(settled).message == (
        f"the overlay at {settled} has an edited manifest: sha256 {sha256_file(path)}, sealed as {before}"
    )


def test_a_manifest_can_be_hashed_again_on_purpose(settled: Path) -> None:
    _, after = flip(settled / "site/sample/core.py")
    (settled / "site/extra.py").write_text("x")

    rehash_manifest(settled)

    verify_site(settled, full=True)
    listed = json.loads((settled / "manifest.json").read_text())["files"]
    assert listed["sample/core.py"]["sha256"] == after
    assert listed["extra.py"] == {"sha256": sha256_bytes(b"x"), "size": 1}
    assert read_overlay(settled).packages[0].version == "1.0+p1.k01234567"


# --- reading -----------------------------------------------------------------------------------------------------


def test_the_overlay_is_read_back_as_it_was_built(root: Path) -> None:
    found = read_overlay(root)

    assert (found.recipe, found.key, found.root, found.target, found.contract, found.diagnostic) == (
        "sample",
        KEY.digest,
        root,
        CP311,
        CONTRACT,
        "for tests",
    )
    assert found.env == {"MODE": "dvm"}
    assert [(one.base_version, one.version, one.patches) for one in found.packages] == [
        ("1.0", "1.0+p1.k01234567", ("0001-change",))
    ]


@pytest.mark.parametrize("read", [read_overlay, verify_site], ids=lambda one: str(one.__name__))
def test_a_folder_without_a_manifest_is_no_overlay(tmp_path: Path, read: object) -> None:
    with pytest.raises(OverlayError) as caught:
        read(tmp_path / "nowhere")  # type: ignore[operator]

    assert caught.value.message == f"there is no overlay at {tmp_path}/nowhere: it has no manifest.json"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("[1", "it is not JSON (Expecting ',' delimiter: line 1 column 3 (char 2))", id="cut"),
        pytest.param("[]", "it has schema None, expected 1", id="list"),
        pytest.param('{"schema": 2}', "it has schema 2, expected 1", id="schema"),
        pytest.param('{"schema": 1}', "it lacks or misnames a member ('recipe')", id="member"),
        pytest.param('{"schema": 1, "recipe": "", "key": "", "target": 5}', "it lacks or misnames a member", id="type"),
    ],
)
def test_a_manifest_that_cannot_be_used_says_why(root: Path, text: str, why: str) -> None:
    (root / "manifest.json").write_text(text)

    with pytest.raises(OverlayError) as caught:
        read_overlay(root)

    assert caught.value.message.startswith(f"the manifest of the overlay at {root} cannot be used: {why}")


def test_checking_an_overlay_imports_nothing_heavy(settled: Path) -> None:
    script = (
        "import pathlib, sys\n"
        "from toolkit import envfile, overlay\n"
        "overlay.verify_site(pathlib.Path(sys.argv[1]))\n"
        "envfile.render_all(overlay.read_overlay(pathlib.Path(sys.argv[1])))\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, settled],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )

    heavy = {"msgspec", "click", "rich", "git", "packaging", "zipfile", "email", "concurrent", "filelock", "torch"}
    assert set(done.stdout.split()) & heavy == set()
