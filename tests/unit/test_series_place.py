"""Whether the place where a hunk fits can be trusted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.series_cases import write_patches
from toolkit.series.diff import FileDiff, parse_diff, split_lines
from toolkit.series.mail import parse_mail
from toolkit.series.place import Misplacement, find_misplacement, find_nearest, find_places

BODY = b"""\
    total = 0
    for item in items:
        total += item
    if total < 0:
        total = 0
    total *= 2
    total += 1
    return total
"""
FIRST, SECOND = b"def first(items):\n" + BODY, b"def second(items):\n" + BODY
HEAD = b"import os\n\n\n"
TWINS = HEAD + FIRST + b"\n\n" + SECOND + b"\n\nlast = 1\n"
PYTHON = b"*.py diff=python\n"


def patch_of(tmp_path: Path, before: bytes, after: bytes, *, attributes: bytes = b"", context: int = 3) -> FileDiff:
    kept = {".gitattributes": attributes}
    (path,) = write_patches(
        tmp_path / "repo", tmp_path / "out", {**kept, "m.py": before}, {**kept, "m.py": after}, options=[f"-U{context}"]
    )
    (file,) = parse_diff(parse_mail(path.read_bytes(), []).diff, [])
    return file


def change(source: bytes, function: bytes, old: bytes, new: bytes) -> bytes:
    """Replace text in one function of a source."""
    head, name, tail = source.partition(b"def " + function)
    return head + name + tail.replace(old, new, 1)


def test_a_file_that_is_byte_for_byte_the_patchs_own_needs_no_further_proof(tmp_path: Path) -> None:
    file = patch_of(tmp_path, TWINS, change(TWINS, b"second", b"total < 0", b"total < 1"))
    assert len(find_places(file.hunks[0], split_lines(TWINS))) == 2
    assert find_misplacement(file, TWINS) is None


@pytest.mark.parametrize("attributes", [b"", PYTHON], ids=["default driver", "python driver"])
def test_a_place_that_moved_with_its_function_can_be_trusted(tmp_path: Path, attributes: bytes) -> None:
    once = TWINS.replace(SECOND, b"")
    file = patch_of(tmp_path, once, change(once, b"first", b"total < 0", b"total < 1"), attributes=attributes)
    assert file.hunks[0].heading == b"def first(items):"
    assert find_misplacement(file, b"import re\n" * 5 + once) is None


def test_what_is_alike_below_another_heading_is_no_rival(tmp_path: Path) -> None:
    source = TWINS.replace(SECOND, SECOND.replace(b"*= 2", b"*= 3"))
    file = patch_of(tmp_path, source, change(source, b"second", b"total < 0", b"total < 1"))
    assert file.hunks[0].heading == b"def second(items):"
    assert find_misplacement(file, b"import re\n" * 5 + source) is None


def test_old_lines_at_two_places_are_ambiguous_even_where_one_has_the_right_number(tmp_path: Path) -> None:
    file = patch_of(tmp_path, TWINS, change(TWINS, b"first", b"total < 0", b"total < 1"))
    assert find_misplacement(file, TWINS + b"more = 2\n") == Misplacement(
        hunk=1, line=5, reason="it is ambiguous: its old lines stand at lines 5, 16"
    )


def test_a_near_identical_function_is_not_the_place(tmp_path: Path) -> None:
    file = patch_of(tmp_path, TWINS, change(TWINS, b"first", b"total < 0", b"total < 1"))
    moved_on = change(TWINS, b"first", b"total < 0", b"total <= 0")
    assert find_misplacement(file, moved_on) == Misplacement(
        hunk=1,
        line=16,
        reason="it was made below 'def first(items):', but there it would stand below 'def second(items):'",
    )


def test_a_near_identical_function_at_the_same_line_is_not_the_place(tmp_path: Path) -> None:
    file = patch_of(tmp_path, TWINS, change(TWINS, b"first", b"total < 0", b"total < 1"))
    moved_on = HEAD + SECOND + b"\n\nlast = 1\n"
    found = find_misplacement(file, moved_on)
    assert found is not None
    assert (found.line, file.hunks[0].old_start) == (5, 5)
    assert found.reason == "it was made below 'def first(items):', but there it would stand below 'def second(items):'"


def in_one_class(source: bytes) -> bytes:
    return b"class Both:\n" + b"".join(b"    " + line if line.strip() else line for line in split_lines(source))


def test_a_near_identical_method_under_the_same_class_heading_is_not_the_place(tmp_path: Path) -> None:
    twins = in_one_class(FIRST + b"\n" + SECOND) + b"\n\nlast = 1\n"
    file = patch_of(tmp_path, twins, change(twins, b"first", b"total < 0", b"total < 1"))
    assert file.hunks[0].heading == b"class Both:"
    assert find_misplacement(file, change(twins, b"first", b"total < 0", b"total <= 0")) == Misplacement(
        hunk=1,
        line=13,
        reason="it is ambiguous: what begins at line 3 has most of its old lines too, and may be its place",
    )


def test_methods_of_one_name_in_two_classes_are_told_apart(tmp_path: Path) -> None:
    one = in_one_class(FIRST)
    twins = one + b"\n\n" + one.replace(b"Both", b"Other") + b"\n\nlast = 1\n"
    file = patch_of(tmp_path, twins, change(twins, b"first", b"total < 0", b"total < 1"), attributes=PYTHON)
    assert file.hunks[0].heading == b"def first(items):"
    found = find_misplacement(file, change(twins, b"first", b"total < 0", b"total <= 0"))
    assert found is not None
    assert found.reason == "it is ambiguous: what begins at line 3 has most of its old lines too, and may be its place"


def test_a_hunk_without_heading_must_have_no_rival_in_the_whole_file(tmp_path: Path) -> None:
    block = b"".join(b"    - option %d\n" % number for number in range(9))
    twins = b"# first\n" + block + b"# second\n" + block + b"# end\n"
    file = patch_of(tmp_path, twins, twins.replace(b"option 4", b"option four", 1))
    assert file.hunks[0].heading == b""
    moved_on = twins.replace(b"option 4", b"option 44", 1)
    assert find_misplacement(file, moved_on) == Misplacement(
        hunk=1,
        line=13,
        reason="it is ambiguous: what begins at line 3 has most of its old lines too, and may be its place",
    )


def test_a_hunk_that_slid_along_equal_lines_is_not_at_its_place(tmp_path: Path) -> None:
    source = b"# head\n" + b"    - same\n" * 8
    file = patch_of(tmp_path, source, b"# head\n" + b"    - same\n" * 3 + b"    - edited\n" + b"    - same\n" * 4)
    moved_on = b"# head\n    - same\n    - new\n" + b"    - same\n" * 7
    assert find_misplacement(file, moved_on) == Misplacement(
        hunk=1,
        line=4,
        reason="it is ambiguous: what begins at line 2 has most of its old lines too, and may be its place",
    )


def test_a_hunk_that_holds_its_own_definition_is_known_by_it(tmp_path: Path) -> None:
    zero = b"def zero(items):\n" + BODY
    source = in_one_class(zero + b"\n" + FIRST + b"\n" + SECOND) + b"\n\nlast = 1\n"
    file = patch_of(tmp_path, source, change(source, b"second", b"total = 0", b"total = 8"))
    assert b"    def second(items):\n" in file.hunks[0].before
    assert find_misplacement(file, b"import re\n" * 5 + source) is None


def test_a_hunk_bound_to_the_start_of_the_file_is_known_by_it(tmp_path: Path) -> None:
    source = b"    a\n    b\n    c\n    d\n" * 3
    file = patch_of(tmp_path, source, source.replace(b"    a\n", b"    A\n", 1))
    assert find_places(file.hunks[0], split_lines(source)) == [0]
    assert find_misplacement(file, source + b"y = 1\n") is None


def test_a_hunk_bound_to_the_end_of_the_file_is_known_by_it(tmp_path: Path) -> None:
    source = b"x = 1\n" + b"    a\n    b\n    c\n" * 3
    file = patch_of(tmp_path, source, source + b"    d\n")
    assert find_places(file.hunks[0], split_lines(source)) == [7]
    assert find_misplacement(file, b"y = 1\n" + source) is None


def test_headings_are_compared_in_the_length_that_git_keeps(tmp_path: Path) -> None:
    source = b"def first_%s(items):\n" % (b"x" * 99) + BODY + b"\n\nlast = 1\n"
    file = patch_of(tmp_path, source, source.replace(b"total < 0", b"total < 1"))
    assert len(file.hunks[0].heading) == 80
    assert find_misplacement(file, b"import re\n" * 5 + source) is None


def test_a_cpp_heading_skips_access_labels(tmp_path: Path) -> None:
    body = b"".join(b"    call%d();\n" % number for number in range(9))
    source = b"struct Stream {\npublic:\n" + body + b"};\n"
    file = patch_of(tmp_path, source, source.replace(b"call7", b"call77"), attributes=b"*.py diff=cpp\n")
    assert file.hunks[0].heading == b"struct Stream {"
    assert find_misplacement(file, b"int x;\n" * 5 + source) is None


def test_a_change_that_seems_to_be_there_is_asked_the_same(tmp_path: Path) -> None:
    file = patch_of(tmp_path, TWINS, change(TWINS, b"first", b"total < 0", b"total < 1"))
    elsewhere = change(change(TWINS, b"second", b"total < 0", b"total < 1"), b"first", b"total < 0", b"total <= 0")
    assert find_misplacement(file, elsewhere, reverse=True) == Misplacement(
        hunk=1,
        line=16,
        reason="it was made below 'def first(items):', but there it would stand below 'def second(items):'",
    )


def test_a_place_that_only_git_finds_is_not_trusted(tmp_path: Path) -> None:
    file = patch_of(tmp_path, TWINS, change(TWINS, b"first", b"total < 0", b"total < 1"))
    assert find_misplacement(file, HEAD + b"nothing like it\n") == Misplacement(
        hunk=1, line=5, reason="git finds it where its old lines do not stand"
    )


def test_the_nearest_of_equally_good_regions_is_found(tmp_path: Path) -> None:
    file = patch_of(tmp_path, TWINS, change(TWINS, b"second", b"total < 0", b"total < 1"))
    lines = split_lines(TWINS.replace(b"total < 0", b"total <= 0"))
    assert find_nearest(file.hunks[0], lines) == 15


def test_nothing_near_is_found_in_a_foreign_file(tmp_path: Path) -> None:
    file = patch_of(tmp_path, TWINS, change(TWINS, b"second", b"total < 0", b"total < 1"))
    assert find_nearest(file.hunks[0], split_lines(b"something\nelse\n")) is None
