from __future__ import annotations

import json
import os
import resource
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.wheels import CP311, Content, as_wheel, make_wheel, record_hash
from toolkit.errors import OverlayError, SourceError, StorageError
from toolkit.files import sha256_bytes, sha256_file, staged_directory, storage_error
from toolkit.manifest import verify_site
from toolkit.model import BuildFacts, Contract, Overlay, Wheel, make_key
from toolkit.overlay import build_overlay, lay_site, read_overlay

KEY = make_key([("component", "sample")])
CONTRACT = Contract(python_tags=("cp311",), platforms=("manylinux_2_28_x86_64",), torch="2.13.0")


def build(into: Path, *wheels: Wheel) -> Overlay:
    return build_overlay(into, recipe="r", key=KEY, wheels=wheels, target=CP311, contract=CONTRACT, env={"MODE": "dvm"})


def wheel_of(folder: Path, name: str, files: dict[str, Content], **options: object) -> Wheel:
    return as_wheel(make_wheel(folder, name, files=files, **options))  # type: ignore[arg-type]


def tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


# --- what is built -----------------------------------------------------------------------------------------------


def test_an_overlay_has_its_places(tmp_path: Path) -> None:
    build(tmp_path / "overlay", as_wheel(make_wheel(tmp_path)))

    assert sorted(path.name for path in (tmp_path / "overlay").iterdir()) == [
        "cache",
        "manifest.json",
        "seal.json",
        "site",
        "torch_extensions",
        "wheels",
    ]
    assert sorted(os.listdir(tmp_path / "overlay/cache")) == ["inductor", "triton"]


def test_site_holds_the_wheels_with_their_dist_info(tmp_path: Path) -> None:
    one = wheel_of(tmp_path, "one", {"one/__init__.py": "1"})
    two = wheel_of(tmp_path, "two", {"two/__init__.py": "22"})

    build(tmp_path / "overlay", one, two)

    assert set(tree(tmp_path / "overlay/site")) == {
        "one/__init__.py",
        "two/__init__.py",
        *(f"{one}-1.0.dist-info/{name}" for one in ("one", "two") for name in ("METADATA", "RECORD", "WHEEL")),
    }


def test_the_manifest_lists_every_file_by_hash_and_size(tmp_path: Path) -> None:
    build(tmp_path / "overlay", wheel_of(tmp_path, "one", {"one/__init__.py": "1", "one/empty": ""}))

    listed = json.loads((tmp_path / "overlay/manifest.json").read_text())["files"]
    assert listed == {
        name: {"sha256": sha256_bytes(content), "size": len(content)}
        for name, content in tree(tmp_path / "overlay/site").items()
    }
    verify_site(tmp_path / "overlay", full=True)


def test_the_manifest_says_what_the_overlay_was_made_from(tmp_path: Path) -> None:
    path = make_wheel(tmp_path, version="1.0+gitc0ffee.p1.k01234567")
    build(tmp_path / "overlay", as_wheel(path, patches=("0001-change",)))

    body = json.loads((tmp_path / "overlay/manifest.json").read_text())
    del body["files"]
    assert body == {
        "schema": 1,
        "recipe": "r",
        "key": KEY.digest,
        "key_inputs": {"component": "sample"},
        "target": {"python_tag": "cp311", "platform": "manylinux_2_28_x86_64"},
        "contract": {
            "python_tags": ["cp311"],
            "platforms": ["manylinux_2_28_x86_64"],
            "torch": "2.13.0",
            "cann": None,
            "soc": [],
        },
        "packages": [
            {
                "component": "sample",
                "import_name": "sample",
                "distribution": "sample",
                "version": "1.0+gitc0ffee.p1.k01234567",
                "base_version": "1.0+gitc0ffee",
                "wheel": path.name,
                "wheel_sha256": sha256_file(path),
                "patches": ["0001-change"],
                "built": None,
            }
        ],
        "env": {"MODE": "dvm"},
        "diagnostic": "",
        "absent": [],
        "findings": [],
    }


def test_nothing_in_an_overlay_names_its_place(tmp_path: Path) -> None:
    build(tmp_path / "overlay", as_wheel(make_wheel(tmp_path)))

    assert [name for name, content in tree(tmp_path / "overlay").items() if str(tmp_path).encode() in content] == []


def test_two_overlays_of_the_same_wheels_are_alike(tmp_path: Path) -> None:
    wheel = as_wheel(make_wheel(tmp_path))
    for name in ("a", "b"):
        build(tmp_path / name, wheel)
        (tmp_path / name / "seal.json").unlink()

    assert tree(tmp_path / "a") == tree(tmp_path / "b")


def test_the_wheel_is_copied_so_that_the_store_is_out_of_reach(tmp_path: Path) -> None:
    wheel = as_wheel(make_wheel(tmp_path))
    build(tmp_path / "overlay", wheel)
    copy = tmp_path / "overlay/wheels" / wheel.path.name

    assert copy.read_bytes() == wheel.path.read_bytes()
    assert copy.stat().st_ino != wheel.path.stat().st_ino
    assert wheel.path.stat().st_nlink == 1


def test_a_wheel_that_is_not_the_one_that_was_made_is_refused(tmp_path: Path) -> None:
    wheel = as_wheel(make_wheel(tmp_path))
    make_wheel(tmp_path, files={"sample/core.py": "other"})

    with pytest.raises(OverlayError) as caught:
        build(tmp_path / "overlay", wheel)

    assert caught.value.message == f"{wheel.path} has sha256 {sha256_file(wheel.path)}, expected {wheel.sha256}"


def test_a_wheel_whose_own_record_is_wrong_is_laid_out_and_told(tmp_path: Path) -> None:
    wheel = as_wheel(make_wheel(tmp_path, record_lines={"sample/core.py": f"sample/core.py,{record_hash('x')},28"}))

    laid = lay_site([wheel], tmp_path / "site")

    assert laid.findings == (
        "sample-1.0-py3-none-any.whl: RECORD gives 'sample/core.py' the hash "
        f"{record_hash('x')!r}, it has {record_hash((tmp_path / 'site/sample/core.py').read_text())!r}",
    )
    assert {entry.path: entry.sha256 for entry in laid.entries}["sample/core.py"] == sha256_file(
        tmp_path / "site/sample/core.py"
    )


def test_modes_are_kept(tmp_path: Path) -> None:
    wheel = wheel_of(tmp_path, "one", {"one/run": "x", "one/lib.so": "y"}, modes={"one/run": 0o750})
    lay_site([wheel], tmp_path / "site")

    assert stat.S_IMODE((tmp_path / "site/one/run").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "site/one/lib.so").stat().st_mode) == 0o644


# --- where two want one place ------------------------------------------------------------------------------------


def test_two_wheels_with_the_same_file_are_refused(tmp_path: Path) -> None:
    one = wheel_of(tmp_path, "one", {"shared/__init__.py": ""})
    two = wheel_of(tmp_path, "two", {"shared/__init__.py": ""})

    with pytest.raises(OverlayError) as caught:
        lay_site([one, two], tmp_path / "site")

    assert caught.value.message == (
        "one-1.0-py3-none-any.whl and two-1.0-py3-none-any.whl both carry 'shared/__init__.py'; "
        "one overlay cannot have both"
    )
    assert not (tmp_path / "site").exists()


def test_a_file_in_one_wheel_and_a_folder_in_another_are_refused(tmp_path: Path) -> None:
    one = wheel_of(tmp_path, "one", {"shared": ""})
    two = wheel_of(tmp_path, "two", {"shared/__init__.py": ""})

    with pytest.raises(OverlayError) as caught:
        lay_site([one, two], tmp_path / "site")

    assert caught.value.message == (
        "one-1.0-py3-none-any.whl and two-1.0-py3-none-any.whl both carry 'shared'; one overlay cannot have both"
    )


def test_a_file_that_a_data_folder_brings_a_second_time_is_refused(tmp_path: Path) -> None:
    one = wheel_of(tmp_path, "one", {"one/a.py": "", "one-1.0.data/purelib/one/a.py": ""})

    with pytest.raises(OverlayError) as caught:
        lay_site([one], tmp_path / "site")

    assert caught.value.message == "one-1.0-py3-none-any.whl carries 'one/a.py' twice; one overlay cannot have both"


# --- data folders ------------------------------------------------------------------------------------------------


def test_data_folders_go_where_pip_puts_them(tmp_path: Path) -> None:
    kinds = {"purelib": "one/p.py", "platlib": "one/q.so", "data": "share/x", "scripts": "run", "headers": "one.h"}
    wheel = wheel_of(tmp_path, "one", {f"one-1.0.data/{kind}/{name}": kind for kind, name in kinds.items()})

    laid = lay_site([wheel], tmp_path / "site")

    assert [entry.path for entry in laid.entries if "dist-info" not in entry.path] == [
        "bin/run",
        "include/python/one/one.h",
        "one/p.py",
        "one/q.so",
        "share/x",
    ]
    assert laid.findings == ()


@pytest.mark.parametrize("name", ["one-1.0.data/else/x", "one-1.0.data/x", "one-1.0.data/scripts"])
def test_a_data_folder_of_an_unknown_kind_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(OverlayError) as caught:
        lay_site([wheel_of(tmp_path, "one", {name: ""})], tmp_path / "site")

    assert caught.value.message == f"one-1.0-py3-none-any.whl: {name!r} has no place in an overlay"
    assert caught.value.hint == ("expected one of purelib, platlib, data, scripts, headers below 'one-1.0.data'")


# --- failures leave nothing --------------------------------------------------------------------------------------


def test_an_unsafe_wheel_leaves_nothing(tmp_path: Path) -> None:
    wheel = wheel_of(tmp_path, "one", {"one/a.py": "", "../evil.py": ""})

    with pytest.raises(SourceError, match="unsafe name"), staged_directory(tmp_path / "here/final") as aside:
        build(aside, wheel)

    assert list((tmp_path / "here").iterdir()) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB where one can be mounted, else a limit on the size of files."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", place], capture_output=True, check=False
    ).returncode
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    if mounted != 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
    yield place
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    if mounted == 0:
        subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize("large_file", [True, False], ids=["while laying out", "while copying the wheel"])
def test_a_full_disk_leaves_nothing_half_made(tmp_path: Path, small_disk: Path, large_file: bool) -> None:
    content = b"0" * (5 << 20) if large_file else os.urandom(700_000)
    repeated = 1 if large_file else 2
    wheel = wheel_of(tmp_path, "one", {f"one/{number}.bin": content for number in range(repeated)})

    with pytest.raises(OSError, match=r"No space left|File too large") as caught:  # noqa: SIM117
        with staged_directory(small_disk / "final") as aside:
            build(aside, wheel)

    assert list(small_disk.iterdir()) == []
    fault = storage_error(caught.value)
    assert isinstance(fault, StorageError)
    assert fault.message.startswith("cannot write: ")


def test_what_is_known_of_a_build_is_in_the_manifest_and_read_back(tmp_path: Path) -> None:
    facts = BuildFacts(
        tree="0" * 40, sandbox="bubblewrap", compiler="c++ 12", jobs=2, native="1" * 64, libraries=("libc.so.6",),
        symbol_versions={"GLIBC": "2.28"}, cache={"hits": 3, "misses": 1},
    )  # fmt: skip
    wheel = replace(as_wheel(make_wheel(tmp_path, version="1.0")), built=facts)
    build(tmp_path / "overlay", wheel)

    (package,) = read_overlay(tmp_path / "overlay").packages
    assert package.built == facts
