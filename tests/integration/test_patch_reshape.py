"""`toolkit patch refresh`, `split`, `reorder` and `retire`: the series is what was asked for, or what it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.changing_sample import NAMES, SERIES, Changing, copy_of, in_process, make_changing
from toolkit.series import load_series
from toolkit.upkeep.roundtrip import round_trip_faults

FIRST, SECOND, THIRD = (f"{name}.patch" for name in NAMES)


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Changing:
    return make_changing(tmp_path_factory.mktemp("changing"))


@pytest.fixture
def changing(
    made_once: Changing, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Changing:
    return copy_of(made_once, tmp_path, in_process(capfd, monkeypatch))


def change(changing: Changing, name: str, old: str, new: str) -> None:
    path = changing.folder / name
    text = path.read_bytes()
    assert text.count(old.encode()) == 1, old
    path.write_bytes(text.replace(old.encode(), new.encode()))


def subjects(changing: Changing) -> list[str]:
    return [patch.subject for patch in load_series(changing.folder, name=SERIES).patches]


# --- refresh ---------------------------------------------------------------------------------------------------


def test_a_series_in_normal_form_is_left_alone(changing: Changing) -> None:
    before = changing.files()
    inode = changing.folder.stat().st_ino
    done = changing.patch("refresh")

    assert (done.code, done.out, done.err) == (0, f"{SERIES}: nothing changed\n", "")
    assert (changing.files(), changing.folder.stat().st_ino) == (before, inode)


def test_what_is_not_in_normal_form_is_written_again(changing: Changing) -> None:
    before = changing.files()
    change(changing, FIRST, "Subject: [PATCH] ", "Subject: [PATCH 1/3] ")
    with (changing.folder / THIRD).open("ab") as stream:
        stream.write(b"-- \n2.39.5\n\n")
    done = changing.patch("refresh")

    assert (done.code, done.err) == (0, "")
    assert done.out == (
        f"{SERIES}: wrote {changing.folder}\n  {NAMES[0]} (written anew)\n  {NAMES[1]}\n  {NAMES[2]} (written anew)\n"
    )
    assert changing.files() == before


def test_only_the_patches_that_are_named_are_written_again(changing: Changing) -> None:
    before = changing.files()
    for name in (FIRST, THIRD):
        with (changing.folder / name).open("ab") as stream:
            stream.write(b"-- \n2.39.5\n\n")
    assert changing.patch("refresh", "3").code == 0

    assert changing.files()[THIRD] == before[THIRD]
    assert changing.files()[FIRST] == before[FIRST] + b"-- \n2.39.5\n\n"


def test_lines_that_are_off_are_put_right(changing: Changing) -> None:
    before = changing.files()
    change(changing, FIRST, "@@ -5,7 +5,7 @@", "@@ -9,7 +9,7 @@")
    assert changing.patch("refresh").code == 0

    assert changing.files() == before


def test_what_does_not_apply_is_refused(changing: Changing) -> None:
    change(changing, FIRST, "-    return 2\n", "-    return 3\n")
    before = changing.files()
    done = changing.patch("refresh")

    assert (done.code, done.out) == (9, "")
    assert done.err.startswith(
        f"error: patch {NAMES[0]} does not apply to sample_npu 1.0: hunk #1 of sample_npu/core.py"
    )
    assert changing.files() == before
    assert not changing.tree.exists()


def test_a_base_that_the_line_does_not_cover_is_refused(changing: Changing) -> None:
    (changing.folder / "series.toml").write_text('schema = 1\ncovers = ["other==1.0"]\n')
    done = changing.patch("refresh", "--base", "sample_npu==1.0")

    assert (done.code, done.err) == (
        2,
        f"error: series {SERIES} is not for sample_npu==1.0\n"
        "hint: it is for other==1.0; move it with `toolkit patch rebase --onto`\n",
    )


def test_companions_stay(changing: Changing) -> None:
    change(changing, FIRST, "Subject: [PATCH] ", "Subject: [PATCH 1/3] ")
    assert changing.patch("refresh").code == 0
    assert changing.files()["README.md"] == b"A companion.\n"


# --- split -----------------------------------------------------------------------------------------------------


def test_a_patch_is_split_by_file(changing: Changing) -> None:
    done = changing.patch("split", "2")

    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[1:] == [
        f"  {NAMES[0]}", "  0002-mend-four-and-eight-core-py (new)", "  0003-mend-four-and-eight-other-py (new)",
        "  0004-core-mend-two-again (was 0003-core-mend-two-again)", f"  {NAMES[1]} is no longer there",
    ]  # fmt: skip
    assert subjects(changing) == [
        "core: mend two", "mend four and eight (core.py)", "mend four and eight (other.py)", "core: mend two again",
    ]  # fmt: skip
    assert {patch.witness for patch in load_series(changing.folder, name=SERIES).patches} == {"answer"}
    assert changing.patch("refresh").out == f"{SERIES}: nothing changed\n"


def test_a_patch_is_split_by_hunk(changing: Changing) -> None:
    assert changing.patch("split", "2", "--by", "hunk").code == 0

    assert subjects(changing)[1:-1] == [
        "mend four and eight (core.py, 1 of 2)", "mend four and eight (core.py, 2 of 2)",
        "mend four and eight (other.py)",
    ]  # fmt: skip


def test_what_has_one_part_only_is_not_split(changing: Changing) -> None:
    before = changing.files()
    done = changing.patch("split", "1")

    assert (done.code, done.err) == (
        2,
        f"error: patch {NAMES[0]} changes one file only\nhint: split it --by hunk, or by hand with --shell\n",
    )
    assert changing.files() == before


# --- reorder ---------------------------------------------------------------------------------------------------


def test_patches_that_do_not_need_each_other_change_places(changing: Changing) -> None:
    done = changing.patch("reorder", "2", "1", "3")

    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[1:] == [
        "  0001-mend-four-and-eight (was 0002-mend-four-and-eight, written anew)",
        "  0002-core-mend-two (was 0001-core-mend-two, written anew)",
        f"  {NAMES[2]}",
    ]
    assert changing.patch("refresh").out == f"{SERIES}: nothing changed\n"


def test_an_order_in_which_a_patch_does_not_apply_is_refused(changing: Changing) -> None:
    before = changing.files()
    done = changing.patch("reorder", "3", "1", "2")

    assert done.code == 9
    assert done.err.startswith(
        f"error: patch {NAMES[2]} does not apply to sample_npu 1.0: hunk #1 of sample_npu/core.py"
    )
    assert changing.files() == before


@pytest.mark.parametrize("order", [("1", "2"), ("1", "2", "2"), ("1", "2", "4")], ids=["short", "twice", "unknown"])
def test_what_is_no_order_is_refused(changing: Changing, order: tuple[str, ...]) -> None:
    done = changing.patch("reorder", *order)

    assert (done.code, done.err) == (
        2,
        f"error: {' '.join(order)} is no order of the 3 patches of {SERIES}\n"
        "hint: give every number once, in the new order\n",
    )


def test_the_order_that_stands_changes_nothing(changing: Changing) -> None:
    assert changing.patch("reorder", "1", "2", "3").out == f"{SERIES}: nothing changed\n"


# --- retire ----------------------------------------------------------------------------------------------------


def test_a_retired_patch_is_kept_with_the_reason_and_the_rest_byte_for_byte(changing: Changing) -> None:
    before = changing.files()
    done = changing.patch("retire", "2", "--why", "upstream did it", "--upstream", "0123abcd")

    assert (done.code, done.err) == (0, "")
    retired = changing.root / "patches/retired" / SERIES / SECOND
    assert done.out.splitlines() == [
        f"{NAMES[1]} is retired: {retired}",
        f"{SERIES}: wrote {changing.folder}",
        f"  {NAMES[0]}",
        "  0002-core-mend-two-again (was 0003-core-mend-two-again, written anew)",
        f"  {NAMES[1]} is no longer there",
    ]
    assert retired.read_bytes() == before[SECOND].replace(
        b"Witness: answer\n", b"Witness: answer\nRetired: upstream did it\nRetired-Upstream: 0123abcd\n"
    )
    assert changing.project.series_names() == [SERIES]
    assert changing.patch("refresh").out == f"{SERIES}: nothing changed\n"


def test_a_patch_that_a_later_one_needs_is_not_retired(changing: Changing) -> None:
    before = changing.files()
    done = changing.patch("retire", "1", "--why", "no more")

    assert done.code == 9
    assert done.err.startswith(
        f"error: patch {NAMES[2]} does not apply to sample_npu 1.0: hunk #1 of sample_npu/core.py"
    )
    assert changing.files() == before
    assert not (changing.root / "patches/retired").exists()


def test_the_only_patch_is_not_retired(changing: Changing) -> None:
    for number in ("3", "2"):
        assert changing.patch("retire", number, "--why", "no more").code == 0
    done = changing.patch("retire", "1", "--why", "no more")

    assert (done.code, done.err) == (
        2,
        f"error: patch {NAMES[0]} is the only one of series {SERIES}, and a series without patches is none\n"
        "hint: take the series out of the recipes, then remove its folder\n",
    )


def test_two_patches_of_one_name_are_both_kept(changing: Changing) -> None:
    folder = changing.root / "patches/retired" / SERIES
    folder.mkdir(parents=True)
    (folder / THIRD).write_text("another that was retired before\n")
    assert changing.patch("retire", "3", "--why", "no more").code == 0

    assert sorted(path.name for path in folder.iterdir()) == [f"{NAMES[2]}-2.patch", THIRD]
    assert (folder / THIRD).read_text() == "another that was retired before\n"


def test_recipes_that_name_a_patch_by_its_old_name_are_listed(changing: Changing) -> None:
    recipe = changing.root / "recipes/sample.toml"
    accepted = f'accept_upstream = ["{NAMES[1]}", "{NAMES[2]}"]'
    recipe.write_text(recipe.read_text().replace('series = "', f'{accepted}\nseries = "', 1))
    done = changing.patch("retire", "2", "--why", "upstream did it", "--json")

    assert json.loads(done.out)["accept_upstream"] == [
        {"recipe": "sample", "component": "sample_npu", "old": NAMES[1], "new": ""},
        {"recipe": "sample", "component": "sample_npu", "old": NAMES[2], "new": "0002-core-mend-two-again"},
    ]


@pytest.mark.parametrize("why", ["", "two\nlines"], ids=["empty", "two lines"])
def test_a_reason_is_one_line(changing: Changing, why: str) -> None:
    done = changing.patch("retire", "3", "--why", why)

    assert done.code == 2
    assert "Invalid value for '--why': it has to be one line of text." in done.err


def test_every_series_that_is_written_is_in_normal_form(changing: Changing) -> None:
    for words in (("split", "2", "--by", "hunk"), ("reorder", "2", "3", "1", "4", "5"), ("retire", "1", "--why", "x")):
        assert changing.patch(*words).code == 0
        assert round_trip_faults(load_series(changing.folder, name=SERIES), None) == []
