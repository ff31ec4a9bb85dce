"""Where hunks stand, one by one, and that counting what regions share is the same as comparing each of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.series_cases import write_patches
from toolkit.series.diff import FileDiff, parse_diff
from toolkit.series.mail import parse_mail
from toolkit.series.place import Place, _shares, has_places, locate_hunks

LINES = st.lists(st.sampled_from([b"a\n", b"  a\n", b"b\n", b"\n", b"c\n", b"d"]), max_size=15)


def patch_of(tmp_path: Path, before: bytes, after: bytes) -> FileDiff:
    (path,) = write_patches(tmp_path / "repository", tmp_path / "out", {"m.py": before}, {"m.py": after})
    (file,) = parse_diff(parse_mail(path.read_bytes(), []).diff, [])
    return file


def function(name: str, indent: str = "", value: int = 0) -> bytes:
    lines = (
        f"def {name}(x):",
        f'    """Return {name}."""',
        f"    result = {value}",
        "    last = result",
        "    return last",
    )
    return "".join(f"{indent}{line}\n" for line in (*lines, "", "")).replace(f"{indent}\n", "\n").encode()


def changed(source: bytes, name: str) -> bytes:
    head, line, tail = source.partition(b"def " + name.encode())
    return head + line + tail.replace(b"result = 0", b"result = 1", 1)


def test_every_hunk_is_located_with_its_own_reason(tmp_path: Path) -> None:
    before = b"".join(function(name) for name in ("one", "two", "three"))
    file = patch_of(tmp_path, before, changed(changed(before, "one"), "three"))
    assert locate_hunks(file, before) == (Place(line=1), Place(line=14))
    moved_on = b"import re\n\n\n" + before.replace(b"Return three", b"Give three")
    first, third = locate_hunks(file, moved_on)
    assert first == Place(line=0, distrust="git finds it where its old lines do not stand")
    assert third.line == 0
    assert not has_places(file, moved_on)
    assert not has_places(file, before, reverse=True)


def test_a_function_that_was_moved_past_others_is_found(tmp_path: Path) -> None:
    """Its hunk begins above its first line, so that the heading is of the function before it."""
    before = b"import os\n\n\n" + b"".join(function(name) for name in ("one", "two", "three"))
    file = patch_of(tmp_path, before, changed(before, "two"))
    assert file.hunks[0].heading == b"def one(x):"
    moved = b"import os\n\n\n" + b"".join(function(name) for name in ("one", "three", "two")) + function("four")
    assert locate_hunks(file, moved) == (Place(line=17),)


@pytest.mark.parametrize(
    ("moved", "why"),
    [
        pytest.param(
            b"class A:\n    x = 1\n\n\nclass B:\n\n" + function("two", "    ") + b"y = 1\n",
            "it was made below 'class A:', but there it would stand below 'class B:'", id="to another class",
        ),
        pytest.param(
            b"class C:\n" + function("one", "    ") + function("two", "    ") + function("two", "    ", 5) + b"y = 1\n",
            "it was made below 'class A:', but there it would stand below 'class C:'", id="beside one of its name",
        ),
    ],
)  # fmt: skip
def test_a_method_is_known_by_its_class(tmp_path: Path, moved: bytes, why: str) -> None:
    before = b"class A:\n" + function("one", "    ") + function("two", "    ") + b"y = 1\n"
    file = patch_of(tmp_path, before, changed(before, "two"))
    (place,) = locate_hunks(file, moved)
    assert (bool(place.line), place.distrust) == (True, why)


def test_a_function_whose_name_stands_twice_is_not_known_by_it(tmp_path: Path) -> None:
    before = b"import os\n\n\n" + function("one") + function("two") + function("three")
    file = patch_of(tmp_path, before, changed(before, "two"))
    twice = b"import os\n\n\n" + function("zero") + function("two") + function("two", value=5) + function("one")
    (place,) = locate_hunks(file, twice)
    assert place.distrust == "it was made below 'def one(x):', but there it would stand below 'def zero(x):'"


@given(wanted=LINES, lines=LINES)
def test_the_share_of_a_region_is_what_comparing_it_gives(wanted: list[bytes], lines: list[bytes]) -> None:
    sought = Counter(line.strip() for line in wanted if line.strip())
    for start, share in _shares(wanted, lines, range(len(lines))):
        common = sought & Counter(line.strip() for line in lines[start : start + len(wanted)])
        assert share == (sum(common.values()) / sum(sought.values()) if sought else 0.0)
