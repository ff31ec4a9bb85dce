"""`toolkit patch list` and `show`: what is told of series and patches, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.looking_sample import SERIES, Looking, Toolkit, make_looking, toolkit_of

BEFORE = {
    "pkg/a.py": b"def one():\n" + b"".join(b"    line %d\n" % number for number in range(30)),
    "csrc/b.cpp": b"1\n",
}
ADDED = {**BEFORE, "pkg/a.py": BEFORE["pkg/a.py"].replace(b"    line 5\n", b"    line 5\n    more\n")}
ALL_KINDS = {
    "pkg/a.py": ADDED["pkg/a.py"]
    .replace(b"    line 5\n    more\n", b"    line 5\n    changed\n")
    .replace(b"    line 20\n", b""),
    "csrc/b.cpp": b"2\n",
    "pkg/new.py": b"new\n",
}


@pytest.fixture
def looking(tmp_path: Path) -> Looking:
    return make_looking(tmp_path, BEFORE, ADDED, ALL_KINDS, home=BEFORE)


@pytest.fixture
def toolkit(looking: Looking, capsys: pytest.CaptureFixture[str]) -> Toolkit:
    return toolkit_of(looking, capsys)


def test_list_names_every_patch_with_what_it_is(looking: Looking, toolkit: Toolkit) -> None:
    ended = toolkit("list")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines() == [
        f"sample/1.0, home git:{looking.home[:12]}",
        "  0001 change",
        "       witness answer; Pending [not sent yet]",
        "       pkg/a.py",
        "  0002 change",
        "       witness answer; Pending [not sent yet]",
        "       csrc/b.cpp",
        "       pkg/a.py",
        "       pkg/new.py",
    ]


def test_list_goes_on_where_a_series_has_faults(looking: Looking, toolkit: Toolkit) -> None:
    first, _ = sorted(looking.series.glob("*.patch"))
    first.write_bytes(first.read_bytes().replace(b"Witness: answer\n", b""))
    (looking.series / "series.toml").unlink()
    ended = toolkit("list")
    assert ended.code == 0
    assert ended.out.splitlines()[:3] == [
        "sample/1.0, for no base that it names", "  0001 change", "       no witness; Pending [not sent yet]"
    ]  # fmt: skip
    assert ended.out.splitlines()[-1] == "  2 faults, see `toolkit patch status`"


def test_the_list_of_one_series_as_a_document(looking: Looking, toolkit: Toolkit) -> None:
    (document,) = toolkit("list", "--series", SERIES, "--json").document
    assert (document["series"], document["covers"], document["faults"]) == (SERIES, [f"git:{looking.home}"], [])
    assert [patch["name"] for patch in document["patches"]] == ["0001-change", "0002-change"]
    assert document["patches"][1]["files"] == ["csrc/b.cpp", "pkg/a.py", "pkg/new.py"]


def test_show_tells_all_that_is_known_of_a_patch(looking: Looking, toolkit: Toolkit) -> None:
    ended = toolkit("show", "2", "--series", SERIES)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines() == [
        "sample/1.0 0002-change",
        "  change",
        "  A. Author <author@example.org>, Fri, 2 Jan 2026 03:04:05 +0000",
        "",
        "  It fails without it.",
        "",
        "  Upstream-Status: Pending [not sent yet]",
        "  Witness: answer",
        "",
        "witness  answer (verify.answer): the answer is right",
        f"covers   git:{looking.home}",
        "csrc/b.cpp (native, modified)",
        "  #1 change (+1, -1) at line 1",
        "pkg/a.py (python, modified)",
        "  #1 change (+1, -1) at line 5 below def one():",
        "  #2 removal (-1) at line 20 below def one():",
        "pkg/new.py (python, added)",
        "  #1 addition (+1) at line 0",
    ]


@pytest.mark.parametrize("word", ["1", "0001", "0001-change"])
def test_a_patch_is_meant_by_its_number_or_its_name(toolkit: Toolkit, word: str) -> None:
    document = toolkit("show", word, "--series", SERIES, "--json").document
    assert (document["name"], document["series"], document["author"]) == (
        "0001-change", SERIES, "A. Author <author@example.org>"
    )  # fmt: skip
    assert document["trailers"] == [
        {"name": "Upstream-Status", "value": "Pending [not sent yet]"}, {"name": "Witness", "value": "answer"}
    ]  # fmt: skip
    assert document["files"][0]["hunks"] == [
        {"number": 1, "line": 5, "heading": "def one():", "kind": "addition", "added": 1, "removed": 0}
    ]


def test_a_recipe_with_one_series_needs_no_series_named(toolkit: Toolkit) -> None:
    assert toolkit("show", "1", "--recipe", "sample").out.startswith("sample/1.0 0001-change\n")


@pytest.mark.parametrize(
    ("word", "message"),
    [
        pytest.param("3", "series 'sample/1.0' has no patch '3'", id="no such number"),
        pytest.param(
            "0001-chang", "series 'sample/1.0' has no patch '0001-chang'; did you mean '0001-change'?", id="misspelt"
        ),
        pytest.param("change", "series 'sample/1.0' has 2 patches 'change'", id="two of that slug"),
    ],
)
def test_a_patch_that_is_not_there_is_refused(toolkit: Toolkit, word: str, message: str) -> None:
    ended = toolkit("show", word, "--series", SERIES)
    assert (ended.code, ended.out) == (2, "")
    assert f"error: {message}" in ended.err
    assert "0001-change, 0002-change" in ended.err


def test_show_says_that_a_witness_is_not_there(looking: Looking, toolkit: Toolkit) -> None:
    (looking.root / "verify/checks.json").write_text("{}")
    assert "witness  answer, which verify/ does not have" in toolkit("show", "1", "--series", SERIES).out


def test_nothing_that_is_shown_is_wider_than_a_terminal(looking: Looking, toolkit: Toolkit) -> None:
    first, _ = sorted(looking.series.glob("*.patch"))
    text = (
        first.read_text()
        .replace("[not sent yet]", f"[{'see the list ' * 20}]")
        .replace("PATCH 1/2] change", f"PATCH] {'change ' * 20}")
    )
    first.write_text(text.replace("def one():", f"def one({'argument, ' * 7})"))
    for words in (["list"], ["show", "1", "--series", SERIES], ["status"]):
        assert max(map(len, toolkit(*words).out.splitlines())) <= 100


def test_without_a_series_there_is_nothing_to_list(looking: Looking, toolkit: Toolkit) -> None:
    for path in looking.series.iterdir():
        path.unlink()
    looking.series.rmdir()
    ended = toolkit("list")
    assert (ended.code, json.dumps(ended.out)) == (2, '""')
    assert "error: there is no series" in ended.err
