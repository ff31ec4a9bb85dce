"""What a patch file in normal form is made of, and what it is called."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.series_cases import write_patches
from toolkit.series.diff import FileDiff, parse_diff
from toolkit.series.mail import parse_mail
from toolkit.series.write import context_of, file_name, form_faults, message_faults, slug_in, slug_of

LINES = [b"line %d\n" % number for number in range(1, 41)]


def diff_of(tmp_path: Path, *changed: int, context: int, before: list[bytes] = LINES) -> list[FileDiff]:
    """Return a real diff, with that many lines of context, of a file in which some lines are other ones."""
    after = [b"other\n" if number in changed else line for number, line in enumerate(before, 1)]
    (path,) = write_patches(
        tmp_path / "repo", tmp_path / "out", {"a.py": b"".join(before)}, {"a.py": b"".join(after)},
        options=[f"-U{context}", "--full-index"],
    )  # fmt: skip
    return parse_diff(parse_mail(path.read_bytes(), []).diff, [])


@pytest.mark.parametrize("context", [1, 2, 3, 6, 12])
def test_the_context_of_a_diff_is_what_it_was_made_with(tmp_path: Path, context: int) -> None:
    assert context_of(diff_of(tmp_path, 20, context=context)) == context


@pytest.mark.parametrize(
    ("changed", "context", "found"),
    [
        pytest.param((2,), 3, 3, id="near the start"),
        pytest.param((39,), 3, 3, id="near the end"),
        pytest.param((2, 39), 1, 1, id="near both"),
        pytest.param((20, 23), 1, 1, id="joined over twice the context"),
        pytest.param((5, 12), 3, 3, id="joined"),
        pytest.param((1,), 5, 5, id="at the start with more"),
    ],
)
def test_a_hunk_at_an_end_of_the_file_is_no_sign(
    tmp_path: Path, changed: tuple[int, ...], context: int, found: int
) -> None:
    assert context_of(diff_of(tmp_path, *changed, context=context)) == found


def test_a_small_file_shows_all_of_itself_whatever_the_context(tmp_path: Path) -> None:
    """What is written with three lines of context later is no worse than it was."""
    assert context_of(diff_of(tmp_path, 2, context=3, before=LINES[:2])) == 3


def test_new_and_deleted_files_have_no_context(tmp_path: Path) -> None:
    (path,) = write_patches(tmp_path / "repo", tmp_path / "out", {"a": b"1\n"}, {"b": b"2\n"}, options=["--no-renames"])
    assert context_of(parse_diff(parse_mail(path.read_bytes(), []).diff, [])) == 3


@pytest.mark.parametrize(
    ("subject", "slug"),
    [
        ("dvm: Reject aliased reduction fusion", "dvm-reject-aliased-reduction-fusion"),
        ("[dvm] keep `a/b.py` & c", "dvm-keep-a-b-py-c"),
        ("größer: naïve café", "groer-naive-cafe"),
        ("形状", "patch"),
        ("w" * 60, "w" * 52),
        ("one " * 20, "one-one-one-one-one-one-one-one-one-one-one-one-one"),
    ],
)
def test_a_file_is_named_after_the_subject(subject: str, slug: str) -> None:
    assert slug_of(subject) == slug


def test_a_name_that_is_taken_gets_a_number() -> None:
    assert slug_of("fix it", ["fix-it", "fix-it-2"]) == "fix-it-3"


def test_a_name_is_number_and_slug() -> None:
    assert file_name(7, "fix-it") == "0007-fix-it.patch"
    assert slug_in("0007-fix-it") == "fix-it"


@pytest.mark.parametrize(
    ("subject", "body", "faults"),
    [
        pytest.param("fine", "Text.\n\n  ---\n  diff --git a/x b/x\nFrom here on.\n\nFixes: 1", [], id="harmless"),
        pytest.param(" ", "Text.", ["the message has no subject"], id="no subject"),
        pytest.param(
            "[RFC v2] x", "", ["the subject begins with [RFC v2], which whoever reads the patch takes away"], id="tag",
        ),
        pytest.param(
            "x", "Text.\n---\nmore", ["the line '---' would end the message there; indent it"], id="dashes"
        ),
        pytest.param(
            "x", "Text.\n--- a/file", ["the line '--- a/file' would end the message there; indent it"], id="old file"
        ),
        pytest.param(
            "x", "diff --git a/x b/x", ["the line 'diff --git a/x b/x' would end the message there; indent it"],
            id="diff",
        ),
        pytest.param("x", "Index: x", ["the line 'Index: x' would end the message there; indent it"], id="subversion"),
        pytest.param(
            "x", "Text.\nFrom 0123abc Mon Sep 17 00:00:00 2001",
            ["the line 'From 0123abc Mon Sep 17 00:00:00 2001' would begin another mail there; indent it"], id="mbox",
        ),
        pytest.param(
            "x", "From: Somebody",
            ["the body's first line 'From: Somebody' would be taken for a header; indent it, or put text before it"],
            id="header",
        ),
    ],
)  # fmt: skip
def test_a_message_that_a_patch_file_cannot_carry_is_a_fault(subject: str, body: str, faults: list[str]) -> None:
    assert list(message_faults(subject, body)) == faults


def test_a_diff_as_git_writes_it_has_no_fault(tmp_path: Path) -> None:
    assert list(form_faults(diff_of(tmp_path, 3, 20, 39, context=3))) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (b"@@ -17,7 +17,7 @@", b"@@ -17,7 +18,7 @@", "hunk #1 of a.py says that it goes to line 18, which is not so"),
        (b"@@ -17,7 +17,7 @@", b"@@ -17,07 +17,7 @@",
         "hunk #1 of a.py begins with '@@ -17,07 +17,7 @@ line 16', expected '@@ -17,7 +17,7 @@'"),
    ],
    ids=["line", "count"],
)  # fmt: skip
def test_a_hunk_that_git_would_write_otherwise_is_a_fault(tmp_path: Path, old: bytes, new: bytes, fault: str) -> None:
    (file,) = diff_of(tmp_path, 20, context=3)
    files = parse_diff(file.raw.replace(old, new), [])

    assert list(form_faults(files)) == [fault]


def test_shortened_ids_are_a_fault(tmp_path: Path) -> None:
    (path,) = write_patches(tmp_path / "repo", tmp_path / "out", {"a": b"1\n"}, {"a": b"2\n"})
    files = parse_diff(parse_mail(path.read_bytes(), []).diff, [])

    assert list(form_faults(files)) == ["the index line of a has shortened ids"]
