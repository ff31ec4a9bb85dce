"""Reading a folder of patches: what is refused, all of it at once, and what a good series gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.series_cases import TRAILERS, edit_diff, make_series, patch_text
from toolkit.errors import SeriesError
from toolkit.files import sha256_file
from toolkit.model import FileChange
from toolkit.series import load_series, series_key_inputs

GOOD = patch_text(edit_diff("pkg/a.py"))


def write_folder(folder: Path, **texts: str) -> Path:
    folder.mkdir()
    for name, text in texts.items():
        (folder / f"{name.removeprefix('_')}.patch").write_bytes(text.encode())
    return folder


def faults_of(folder: Path) -> tuple[str, ...]:
    with pytest.raises(SeriesError) as raised:
        load_series(folder, name="sample/1.0")
    return raised.value.details


def test_a_series_written_by_git_is_read(tmp_path: Path) -> None:
    series = make_series(
        tmp_path,
        {"pkg/a.py": b"one\ntwo\n", "csrc/b.cpp": b"int b;\n"},
        {"pkg/a.py": b"one\n2\n", "pkg/data/c.json": b"{}\n"},
    )
    (patch,) = series.patches
    path = tmp_path / "patches" / "0001-change.patch"
    assert (series.name, patch.number, patch.name, patch.path) == ("sample/1.0", 1, "0001-change", path)
    assert patch.sha256 == sha256_file(path)
    assert (patch.subject, patch.body) == ("change", f"Step 1 fails without it.\n\n{TRAILERS}")
    assert (patch.upstream_status, patch.witness, patch.fixes) == ("Pending [not sent yet]", "some-witness", ())
    assert patch.changes == (
        FileChange(path="csrc/b.cpp", old_path="csrc/b.cpp", kind="deleted", part="native"),
        FileChange(path="pkg/a.py", old_path="pkg/a.py", kind="modified", part="python"),
        FileChange(path="pkg/data/c.json", old_path="pkg/data/c.json", kind="added", part="python"),
    )


def test_companions_of_a_series_may_lie_beside_it(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "series", **{"0001-a": GOOD})
    for name in ("series.toml", "README", "README.md"):
        (folder / name).write_text("", encoding="utf-8")
    assert [patch.name for patch in load_series(folder, name="s").patches] == ["0001-a"]


@pytest.mark.parametrize(
    ("names", "faults"),
    [
        pytest.param(["0001-a", "0001-b"], ["0001-b.patch: has number 0001, as 0001-a.patch has"], id="twice"),
        pytest.param(["0001-a", "0003-b"], ["0003-b.patch: has number 0003, expected 0002"], id="gap"),
        pytest.param(["0002-a", "0003-b"], ["0002-a.patch: has number 0002, expected 0001"], id="not from 1"),
        pytest.param(["0000-a"], ["0000-a.patch: has number 0000, expected 0001"], id="zero"),
        pytest.param(
            ["0001-a", "fix"], ["fix.patch: outside the order, expected NNNN-slug.patch"], id="patch without number"
        ),
        pytest.param(
            ["0001-a", "00002-b"], ["00002-b.patch: outside the order, expected NNNN-slug.patch"], id="five digits"
        ),
    ],
)
def test_numbers_are_unique_ascending_and_without_gap(tmp_path: Path, names: list[str], faults: list[str]) -> None:
    assert faults_of(write_folder(tmp_path / "series", **dict.fromkeys(names, GOOD))) == tuple(faults)


@pytest.mark.parametrize(
    "name", ["0001-a.patch.orig", "0001-a.patch~", ".0002-b.patch.swp", "notes.txt", "0002-b.diff"]
)
def test_a_file_outside_the_order_is_refused(tmp_path: Path, name: str) -> None:
    folder = write_folder(tmp_path / "series", **{"0001-a": GOOD})
    (folder / name).write_text(GOOD, encoding="utf-8")
    assert faults_of(folder) == (f"{name}: outside the order, expected NNNN-slug.patch",)


def test_a_folder_in_a_series_is_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "series", **{"0001-a": GOOD})
    (folder / "0002-b.patch").mkdir()
    assert faults_of(folder) == ("0002-b.patch: outside the order, expected NNNN-slug.patch",)


def test_an_empty_series_is_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "series")
    assert faults_of(folder) == (f"{folder}: has no patch, expected files named NNNN-slug.patch",)


def test_a_missing_series_names_those_that_are_there(tmp_path: Path) -> None:
    write_folder(tmp_path / "2.12")
    with pytest.raises(SeriesError) as raised:
        load_series(tmp_path / "2.13", name="torch_npu/2.13")
    assert raised.value.message == f"there is no series 'torch_npu/2.13': no folder {tmp_path / '2.13'}"
    assert raised.value.hint == f"{tmp_path} has 2.12"


def test_all_faults_of_all_patches_are_reported_at_once(tmp_path: Path) -> None:
    folder = write_folder(
        tmp_path / "series",
        **{
            "0001-a": patch_text(edit_diff("../a.py"), trailers="Witness: w"),
            "0003-b": patch_text(edit_diff("/b.py"), trailers="Upstream-Status: Pending"),
        },
    )
    with pytest.raises(SeriesError) as raised:
        load_series(folder, name="sample/1.0")
    assert raised.value.message == "series 'sample/1.0' has 6 faults"
    assert raised.value.hint == f"mend the files in {folder} and try again"
    assert raised.value.details == (
        "0003-b.patch: has number 0003, expected 0002",
        "0001-a.patch: has no `Upstream-Status:` trailer, expected one of Pending, Submitted, Backport, Denied,"
        " Inappropriate with its [link or reason]",
        "0001-a.patch: unsafe path: '../a.py' leaves its folder through '..'",
        "0003-b.patch: has no `Witness:` trailer, expected the name of its witness",
        "0003-b.patch: `Upstream-Status: Pending` lacks its link or reason, expected `Pending [link or reason]`",
        "0003-b.patch: unsafe path: '/b.py' is not a relative POSIX path",
    )


def test_key_inputs_name_each_patch_with_its_place(tmp_path: Path) -> None:
    series = make_series(tmp_path, {"a.py": b"1\n"}, {"a.py": b"2\n"}, {"a.py": b"3\n"})
    assert series_key_inputs(series) == [
        ("series[1] 0001-change", series.patches[0].sha256),
        ("series[2] 0002-change", series.patches[1].sha256),
    ]


def test_a_series_is_read_without_git_and_without_heavy_imports(tmp_path: Path) -> None:
    import subprocess
    import sys

    folder = write_folder(tmp_path / "series", **{"0001-a": GOOD})
    program = (
        "import sys; from pathlib import Path; from toolkit.series import load_series\n"
        f"load_series(Path({str(folder)!r}), name='s')\n"
        "print(sorted({'git', 'email', 'difflib', 'subprocess'} & set(sys.modules) - {'subprocess'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PATH": ""}, check=True, capture_output=True, text=True, cwd=Path.cwd()
    )
    assert done.stdout == "[]\n"
