from __future__ import annotations

import csv
import io
import os
import resource
import stat
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from tests.wheels import Content, make_wheel, patched_tree, record_hash
from toolkit.errors import RepackError
from toolkit.files import sha256_file
from toolkit.model import AppliedPatch, ApplyStatus, PatchedTree, Target, make_key
from toolkit.repack import repack_wheel, wheel_file_name
from toolkit.wheels.archive import open_wheel
from toolkit.wheels.stored import StoredWheel

KEY = make_key([("patch", "0001")])
VERSION = f"1.0+p1.k{KEY.short}"
INFO = f"sample-{VERSION}.dist-info"
NEW_CORE = "def answer():\n    return 42\n"


def repack(
    wheel: Path,
    tmp_path: Path,
    changes: dict[str, Content | None] | None = None,
    *,
    statuses: tuple[ApplyStatus, ...] = ("clean",),
    into: str = "out",
) -> StoredWheel:
    tree = patched(wheel, tmp_path, {"sample/core.py": NEW_CORE} if changes is None else changes, statuses)
    folder = tmp_path / into
    folder.mkdir()
    return repack_wheel(tree, key=KEY, import_name="sample", into=folder)


def patched(
    wheel: Path, tmp_path: Path, changes: dict[str, Content | None], statuses: tuple[ApplyStatus, ...] = ("clean",)
) -> PatchedTree:
    tree = patched_tree(wheel, tmp_path / "tree", changes)
    applied = tuple(AppliedPatch(name=f"{number:04}-change", status=one) for number, one in enumerate(statuses, 1))
    return replace(tree, applied=applied)


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def record_of(wheel: Path) -> list[list[str]]:
    with open_wheel(wheel) as archive:
        return list(csv.reader(io.StringIO(archive.read(f"{archive.dist_info}/RECORD").decode())))


# --- what comes out ----------------------------------------------------------------------------------------------


def test_the_result_says_what_it_is(tmp_path: Path) -> None:
    stored = repack(make_wheel(tmp_path), tmp_path)

    assert stored.wheel.path == tmp_path / "out" / f"sample-{VERSION}-py3-none-any.whl"
    assert stored.wheel.version == VERSION
    assert stored.wheel.sha256 == sha256_file(stored.wheel.path)
    assert stored.wheel.patches == ("0001-change",)
    assert stored.wheel.key == KEY.digest
    assert stored.findings == ()
    assert os.listdir(tmp_path / "out") == [stored.wheel.path.name]


def test_the_version_stands_everywhere_alike(tmp_path: Path) -> None:
    found = contents(repack(make_wheel(tmp_path), tmp_path).wheel.path)

    assert found["sample/version.py"].decode() == f"__version__ = '{VERSION}'\ngit_version = 'c0ffee'\n"
    assert found[f"{INFO}/METADATA"].decode() == (
        f"Metadata-Version: 2.1\nName: sample\nVersion: {VERSION}\n\nWhat it is for.\n"
    )
    assert {name.partition("/")[0] for name in found} == {"sample", INFO}


def test_only_what_must_change_does(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path)
    before, after = contents(wheel), contents(repack(wheel, tmp_path).wheel.path)

    assert after["sample/core.py"].decode() == NEW_CORE
    assert after["sample/__init__.py"] == before["sample/__init__.py"]
    assert after[f"{INFO}/WHEEL"] == before["sample-1.0.dist-info/WHEEL"]
    assert len(after) == len(before)


def test_record_is_true_and_last(tmp_path: Path) -> None:
    path = repack(make_wheel(tmp_path), tmp_path).wheel.path

    with open_wheel(path) as archive:
        assert archive.verify_record() == []
        assert list(archive.members)[-1] == f"{INFO}/RECORD"
    assert record_of(path)[-1] == [f"{INFO}/RECORD", "", ""]
    assert ["sample/core.py", record_hash(NEW_CORE), str(len(NEW_CORE))] in record_of(path)


def test_untouched_members_keep_their_compressed_bytes_and_new_ones_are_stored(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, files={"sample/data": "x" * 9000, "sample/core.py": "old"})
    path = repack(wheel, tmp_path).wheel.path

    with open_wheel(wheel) as old, open_wheel(path) as new:
        assert b"".join(new.raw_pieces("sample/data")) == b"".join(old.raw_pieces("sample/data"))
        assert new.members["sample/data"].method == zipfile.ZIP_DEFLATED
        assert new.members["sample/core.py"].method == zipfile.ZIP_STORED


def test_members_stand_in_order_with_dist_info_last(tmp_path: Path) -> None:
    wheel = make_wheel(
        tmp_path, files={"zz/a": "", "sample/core.py": "", "a/b": "", "sample.libs/x": ""}, folders=["a/"]
    )
    path = repack(wheel, tmp_path).wheel.path

    assert zipfile.ZipFile(path).namelist() == [
        "a/b",
        "sample.libs/x",
        "sample/core.py",
        "zz/a",
        f"{INFO}/METADATA",
        f"{INFO}/WHEEL",
        f"{INFO}/RECORD",
    ]


def test_times_and_modes_are_normal(tmp_path: Path) -> None:
    modes = {"sample/run": 0o750, "sample/odd": 0o660}
    wheel = make_wheel(tmp_path, files={"sample/core.py": "", **dict.fromkeys(modes, "x")}, modes=modes)
    entries = zipfile.ZipFile(repack(wheel, tmp_path).wheel.path).infolist()

    assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}
    assert {entry.filename: entry.external_attr >> 16 for entry in entries if entry.filename in modes} == {
        "sample/run": stat.S_IFREG | 0o755,
        "sample/odd": stat.S_IFREG | 0o644,
    }
    assert all(entry.flag_bits & 0x8 == 0 and entry.extra == b"" for entry in entries)


def test_a_changed_file_keeps_its_execute_bit(tmp_path: Path) -> None:
    tree = patched(make_wheel(tmp_path), tmp_path, {"sample/core.py": NEW_CORE, "sample/run.sh": "#!/bin/sh\n"})
    (tmp_path / "tree" / "sample" / "run.sh").chmod(0o755)
    stored = repack_wheel(tree, key=KEY, import_name="sample", into=tmp_path)

    with open_wheel(stored.wheel.path) as archive:
        assert (archive.members["sample/run.sh"].mode, archive.members["sample/core.py"].mode) == (0o755, 0o644)


def test_added_files_are_listed_and_deleted_ones_are_gone(tmp_path: Path) -> None:
    path = repack(make_wheel(tmp_path), tmp_path, {"sample/new.py": "x = 1\n", "sample/core.py": None}).wheel.path

    assert set(contents(path)) >= {"sample/new.py"}
    assert "sample/core.py" not in contents(path)
    assert [line[0] for line in record_of(path)] == zipfile.ZipFile(path).namelist()


def test_a_base_with_a_local_version_keeps_it(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, version="1.0+gitc0ffee", files={"sample/core.py": ""})

    assert repack(wheel, tmp_path).wheel.version == f"1.0+gitc0ffee.p1.k{KEY.short}"


def test_the_data_folder_carries_the_new_version(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, files={"sample/core.py": "", "sample-1.0.data/scripts/run": "#!python\n"})
    path = repack(wheel, tmp_path).wheel.path

    assert f"sample-{VERSION}.data/scripts/run" in contents(path)
    assert not any(name.startswith("sample-1.0.data") for name in contents(path))
    with open_wheel(path) as archive:
        assert archive.verify_record() == []


def test_a_wheel_for_another_machine_keeps_its_tags(tmp_path: Path) -> None:
    tag = "cp312-cp312-manylinux_2_28_aarch64"
    wheel = make_wheel(tmp_path, tag=tag, dist_info={"direct_url.json": "{}"})
    target = Target(python_tag="cp312", platform="manylinux_2_28_aarch64")
    tree = replace(
        patched_tree(wheel, tmp_path / "tree", {"sample/core.py": NEW_CORE}, target=target),
        applied=(AppliedPatch(name="0001-change", status="offset"),),
    )
    stored = repack_wheel(tree, key=KEY, import_name="sample", into=tmp_path)

    assert stored.wheel.path.name == f"sample-{VERSION}-{tag}.whl"
    with open_wheel(stored.wheel.path) as archive:
        assert archive.metadata.tags == (tag,)
        assert archive.metadata.root_is_purelib is False
        assert archive.read(f"{INFO}/direct_url.json") == b"{}"
        assert archive.verify_record() == []


# --- the package's own version file ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("__version__ = '1.0'\n", f"__version__ = '{VERSION}'\n", id="single quotes"),
        pytest.param('# x\n__version__="1.0"\r\nb = 1', f'# x\n__version__="{VERSION}"\r\nb = 1', id="double quotes"),
        pytest.param("__version__ = '1.0.0'\n", f"__version__ = '{VERSION}'\n", id="same version, spelled longer"),
        pytest.param("version = '1.0'\n", "version = '1.0'\n", id="another name"),
        pytest.param("a__version__ = '1.0'\n", "a__version__ = '1.0'\n", id="part of a name"),
        pytest.param("__version__ = get()\n", "__version__ = get()\n", id="computed"),
    ],
)
def test_a_version_file_gets_the_new_version_where_it_has_the_old(tmp_path: Path, before: str, after: str) -> None:
    wheel = make_wheel(tmp_path, files={"sample/core.py": "", "sample/version.py": before})
    stored = repack(wheel, tmp_path)

    assert contents(stored.wheel.path)["sample/version.py"].decode() == after
    assert stored.findings == ()


@pytest.mark.parametrize("own", ["0.9", "unknown"])
def test_a_version_file_that_says_something_else_is_left_and_told(tmp_path: Path, own: str) -> None:
    text = f"__version__ = '{own}'\n"
    stored = repack(make_wheel(tmp_path, files={"sample/core.py": "", "sample/version.py": text}), tmp_path)

    assert contents(stored.wheel.path)["sample/version.py"].decode() == text
    assert stored.findings == (f"sample/version.py says {own!r} where METADATA says '1.0'; it was left so",)


def test_a_version_file_that_a_patch_changes_gets_both(tmp_path: Path) -> None:
    stored = repack(make_wheel(tmp_path), tmp_path, {"sample/version.py": "__version__ = '1.0'\nextra = True\n"})

    assert contents(stored.wheel.path)["sample/version.py"].decode() == f"__version__ = '{VERSION}'\nextra = True\n"


def test_a_package_that_says_its_version_in_its_init_gets_the_new_one_there(tmp_path: Path) -> None:
    files = {"sample/core.py": "", "sample/__init__.py": '__version__ = "1.0"\nimport sys\n'}
    stored = repack(make_wheel(tmp_path, files=files), tmp_path)

    assert contents(stored.wheel.path)["sample/__init__.py"].decode() == f'__version__ = "{VERSION}"\nimport sys\n'
    assert stored.findings == ()


def test_a_version_line_in_the_description_is_no_version(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, metadata="\nVersion: history\n")

    assert contents(repack(wheel, tmp_path).wheel.path)[f"{INFO}/METADATA"].decode() == (
        f"Metadata-Version: 2.1\nName: sample\nVersion: {VERSION}\n\nVersion: history\n\nWhat it is for.\n"
    )


# --- upstream's RECORD -------------------------------------------------------------------------------------------


def test_a_wrong_line_in_upstreams_record_is_put_right_and_told(tmp_path: Path) -> None:
    text = "from .core import answer\n"
    lines = {"sample/__init__.py": f"sample/__init__.py,{record_hash('other')},{len(text)}"}
    stored = repack(make_wheel(tmp_path, record_lines=lines), tmp_path)

    assert stored.findings == (
        "upstream's RECORD was put right: RECORD gives 'sample/__init__.py' the hash "
        f"{record_hash('other')!r}, it has {record_hash(text)!r}",
    )
    with open_wheel(stored.wheel.path) as archive:
        assert archive.verify_record() == []
    assert ["sample/__init__.py", record_hash(text), str(len(text))] in record_of(stored.wheel.path)


def test_signatures_over_upstreams_record_are_dropped_and_told(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, dist_info={"RECORD.jws": "{}", "RECORD.p7s": "x"}, record_lines={
        "sample-1.0.dist-info/RECORD.jws": None, "sample-1.0.dist-info/RECORD.p7s": None})  # fmt: skip
    stored = repack(wheel, tmp_path)

    assert stored.findings == (
        "sample-1.0.dist-info/RECORD.jws was dropped: it signs upstream's RECORD",
        "sample-1.0.dist-info/RECORD.p7s was dropped: it signs upstream's RECORD",
    )
    assert not [name for name in contents(stored.wheel.path) if "RECORD." in name]


# --- where nothing is patched ------------------------------------------------------------------------------------


@pytest.mark.parametrize("statuses", [(), ("upstream",)], ids=["no patches", "all upstream"])
def test_a_base_that_no_patch_went_into_is_copied(tmp_path: Path, statuses: tuple[ApplyStatus, ...]) -> None:
    wheel = make_wheel(tmp_path)
    stored = repack(wheel, tmp_path, {}, statuses=statuses)

    assert stored.wheel.path.name == wheel.name
    assert stored.wheel.path.read_bytes() == wheel.read_bytes()
    assert (stored.wheel.version, stored.wheel.sha256, stored.wheel.patches) == ("1.0", sha256_file(wheel), ())


def test_a_copied_base_with_a_wrong_record_is_told(tmp_path: Path) -> None:
    stored = repack(make_wheel(tmp_path, record_lines={"sample/core.py": None}), tmp_path, {}, statuses=())

    assert stored.findings == ("upstream's RECORD is wrong, and kept: RECORD has no line for 'sample/core.py'",)


def test_a_patch_that_is_upstream_does_not_count(tmp_path: Path) -> None:
    stored = repack(make_wheel(tmp_path), tmp_path, statuses=("upstream", "clean", "offset"))

    assert stored.wheel.version == f"1.0+p2.k{KEY.short}"
    assert stored.wheel.patches == ("0002-change", "0003-change")


# --- byte for byte -----------------------------------------------------------------------------------------------


def test_the_same_inputs_give_the_same_bytes_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    for number, (zone, umask) in enumerate([("UTC", 0o022), ("Asia/Shanghai", 0o077), ("America/New_York", 0)]):
        here = tmp_path / ("deeper/" * number) / f"clone {number}"
        here.mkdir(parents=True)
        monkeypatch.setenv("TZ", zone)
        monkeypatch.setenv("SOURCE_DATE_EPOCH", str(number * 10**9))
        time.tzset()
        before = os.umask(umask)
        try:
            made.append(repack(make_wheel(here), here).wheel.path.read_bytes())
        finally:
            os.umask(before)
    monkeypatch.undo()
    time.tzset()

    assert made[0] == made[1] == made[2]


def test_the_order_and_times_of_the_base_do_not_matter(tmp_path: Path) -> None:
    files: dict[str, Content] = {"sample/a.py": "a", "sample/core.py": "b", "sample/c.py": "c"}
    one = make_wheel(tmp_path / "one", files=files, modes={"sample/a.py": 0o664})
    two = make_wheel(tmp_path / "two", files=dict(reversed(files.items())), date_time=(1999, 1, 2, 3, 4, 6))

    paths = [repack(wheel, wheel.parent).wheel.path for wheel in (one, two)]
    assert paths[0].read_bytes() == paths[1].read_bytes()


# --- what is refused ---------------------------------------------------------------------------------------------


def test_a_native_change_is_refused_with_the_lane_that_can_take_it(tmp_path: Path) -> None:
    tree = patched_tree(make_wheel(tmp_path), tmp_path / "tree", {"sample/csrc/x.cpp": "int x;"}, part="native")
    into = tmp_path / "out"
    into.mkdir()

    with pytest.raises(RepackError) as caught:
        repack_wheel(tree, key=KEY, import_name="sample", into=into)

    assert caught.value.message == (
        "patch 0001-change changes native file 'sample/csrc/x.cpp'; a release wheel cannot take it"
    )
    assert caught.value.hint == "use a recipe with a git base, which builds from source"
    assert list(into.iterdir()) == []


@pytest.mark.parametrize("name", ["RECORD", "WHEEL"])
def test_a_patch_of_what_the_wheel_keeps_about_itself_is_refused(tmp_path: Path, name: str) -> None:
    path = f"sample-1.0.dist-info/{name}"

    with pytest.raises(RepackError) as caught:
        repack(make_wheel(tmp_path), tmp_path, {path: "x"})

    assert caught.value.message == f"patch 0001-change changes {path!r}, which the wheel keeps about itself"


def test_a_tree_that_something_else_wrote_to_is_refused(tmp_path: Path) -> None:
    tree = patched(make_wheel(tmp_path), tmp_path, {"sample/core.py": NEW_CORE})
    (tmp_path / "tree" / "sample" / "core.py").write_text("else")

    with pytest.raises(RepackError) as caught:
        repack_wheel(tree, key=KEY, import_name="sample", into=tmp_path)

    assert caught.value.message == "'sample/core.py' is not what the series made of it"


@pytest.mark.parametrize("file", ["sample.zip", "sample-1.0.whl", "sample-1.0-py3-none-any.zip"])
def test_a_base_without_a_wheels_name_is_refused(file: str) -> None:
    with pytest.raises(RepackError) as caught:
        wheel_file_name(file, "1.0")

    assert caught.value.message == f"{file!r} is no wheel's file name"


def test_a_build_tag_stays_in_the_name() -> None:
    assert wheel_file_name("sample-1.0-3-py3-none-any.whl", "2.0") == "sample-2.0-3-py3-none-any.whl"


def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, files={"sample/core.py": "", "sample/large": os.urandom(300_000)})
    tree = patched(wheel, tmp_path, {"sample/core.py": NEW_CORE})
    into = tmp_path / "out"
    into.mkdir()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(OSError, match="File too large") as caught:
            repack_wheel(tree, key=KEY, import_name="sample", into=into)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert caught.value.filename == str(into / f"sample-{VERSION}-py3-none-any.whl")
    assert list(into.iterdir()) == []
