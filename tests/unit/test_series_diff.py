"""Reading the structure of git's diffs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.series_cases import Tree, edit_diff, write_patches
from toolkit.series.diff import FileDiff, parse_diff, split_lines, unquote_path
from toolkit.series.mail import parse_mail

LINES = b"".join(b"line %d\n" % number for number in range(30))


def diff_of(tmp_path: Path, before: Tree, after: Tree, *options: str) -> tuple[bytes, list[FileDiff]]:
    (path,) = write_patches(tmp_path / "repo", tmp_path / "out", before, after, options=options)
    diff = parse_mail(path.read_bytes(), []).diff
    faults: list[str] = []
    files = parse_diff(diff, faults)
    assert faults == []
    return diff, files


def test_what_git_reads_is_the_file_as_it_stands_but_for_the_signature(tmp_path: Path) -> None:
    diff, files = diff_of(
        tmp_path,
        {"a": LINES, "b": b"x", "gone": b"-- \n", "bin": bytes(range(256))},
        {"a": LINES.replace(b"5", b"five"), "b": b"y", "new": b"", "bin": bytes(range(255))},
        "--binary",
    )
    assert b"".join(file.raw for file in files) == diff.rpartition(b"-- \n")[0]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({"a b.py": LINES}, {"a b.py": b"x" + LINES}, ("a b.py", "a b.py", "modified"), id="space"),
        pytest.param({"a": b"1\n"}, {"a": b"1\n", "p/n e.py": b""}, ("p/n e.py", "p/n e.py", "added"), id="empty file"),
        pytest.param({"a": b"1\n"}, {"a": b"1\n", "é.py": b"x"}, ("é.py", "é.py", "added"), id="non-ASCII added"),
        pytest.param({"é ü.py": LINES}, {"é ü.py": LINES[9:]}, ("é ü.py", "é ü.py", "modified"), id="quoted and space"),
        pytest.param({"q\"\t.py": LINES}, {"q\"\t.py": b""}, ("q\"\t.py", "q\"\t.py", "modified"), id="escapes"),
        pytest.param({"a": b"", "x": b"1"}, {"x": b"1"}, ("a", "a", "deleted"), id="empty file deleted"),
        pytest.param({"a b": LINES}, {"é": LINES}, ("é", "a b", "renamed"), id="rename"),
        pytest.param({"a": LINES}, {"b/c": LINES[7:]}, ("b/c", "a", "renamed"), id="rename with edit"),
        pytest.param({"bin é": b"\0a"}, {"bin é": b"\0b"}, ("bin é", "bin é", "modified"), id="binary"),
    ],
)  # fmt: skip
def test_paths_are_read_as_git_writes_them(
    tmp_path: Path, before: Tree, after: Tree, expected: tuple[str, str, str]
) -> None:
    _, (file,) = diff_of(tmp_path, before, after, "--binary")
    assert (file.path, file.old_path, file.kind) == expected


def test_a_copy_is_an_added_file_with_an_origin(tmp_path: Path) -> None:
    _, files = diff_of(tmp_path, {"a": LINES}, {"a": LINES + b"x\n", "b": LINES + b"y\n"}, "-C")
    assert [(file.path, file.old_path, file.kind, file.is_edit) for file in files] == [
        ("a", "a", "modified", True),
        ("b", "a", "added", True),
    ]


def test_hunks_keep_lines_context_and_heading(tmp_path: Path) -> None:
    source = b"def f():\n" + b"".join(b"    line %d\n" % n for n in range(9)) + b"end"
    _, (file,) = diff_of(tmp_path, {"a.py": source}, {"a.py": source.replace(b"line 5", b"five") + b"\n"}, "-U1")
    first, second = file.hunks
    assert (first.old_start, first.new_start, first.heading) == (6, 6, b"def f():")
    assert first.before == (b"    line 4\n", b"    line 5\n", b"    line 6\n")
    assert first.after == (b"    line 4\n", b"    five\n", b"    line 6\n")
    assert (first.leading, first.trailing) == (1, 1)
    assert (second.before, second.after) == ((b"    line 8\n", b"end"), (b"    line 8\n", b"end\n"))
    assert (second.leading, second.trailing) == (1, 0)


def test_a_reversed_hunk_expects_what_it_left() -> None:
    (file,) = parse_diff(edit_diff("a").replace("-1,2 +1,2", "-1,2 +4,2").encode(), [])
    back = file.hunks[0].reversed()
    assert (back.old_start, back.new_start, back.before, back.after) == (
        4, 1, (b"one\n", b"2\n"), (b"one\n", b"two\n")
    )  # fmt: skip


def test_an_empty_context_line_may_have_lost_its_blank() -> None:
    (file,) = parse_diff(edit_diff("a").replace(" one\n", "\n").encode(), [])
    assert file.hunks[0].before == (b"\n", b"two\n")


@pytest.mark.parametrize("signature", ["-- \n2.39.5\n\n", "--\n2.39.5\n", "\n", ""])
def test_the_signature_ends_the_last_file(signature: str) -> None:
    faults: list[str] = []
    (file,) = parse_diff((edit_diff("a") + signature).encode(), faults)
    assert (faults, file.raw) == ([], edit_diff("a").encode())


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        pytest.param(
            "@@ -1,2 +1,2 @@", "@@ -1,3 +1,3 @@",
            "hunk #1 is damaged: its first line promises 3 old and 3 new lines, it has 2 and 2", id="cut short",
        ),
        pytest.param("+2\n", "+2\n+3\n", "unexpected line '+3' after its end", id="too long"),
        pytest.param("@@ -1,2", "@@ -1;2", "hunk #1 has a damaged first line '@@ -1;2 +1,2 @@'", id="bad range"),
        pytest.param("+2\n", "+2\n--- a/b\n", "unexpected line '--- a/b' after its end", id="diff without git header"),
        pytest.param(
            "--- a/a\n+++ b/a", "--- a\n+++ a",
            "a has no a/ or b/ before it; export with diff.noprefix and mnemonicPrefix off", id="no prefix",
        ),
        pytest.param(
            "+++ b/a", "+++ b/c", "it names 'a' before and 'c' after without a rename", id="two names",
        ),
        pytest.param('+++ b/a', '+++ "b/a', "the quotes of \"b/a do not match", id="open quote"),
        pytest.param('+++ b/a', '+++ "b/\\303"', "the path 'b/\\\\xc3' is not UTF-8", id="not UTF-8"),
        pytest.param("index 1", "rename to c\nindex 1", "`rename to` without `rename from`", id="half a rename"),
        pytest.param("index 1", "frobnicate 1", "unexpected line 'frobnicate 1111111..2222222 100644' after its end",
                     id="unknown header"),
    ],
)  # fmt: skip
def test_a_damaged_section_is_a_fault(old: str, new: str, fault: str) -> None:
    faults: list[str] = []
    assert parse_diff(edit_diff("a").replace(old, new, 1).encode(), faults) == []
    assert faults == [f"diff --git a/a b/a: {fault}"]


def test_other_files_are_still_read_beside_a_damaged_one() -> None:
    faults: list[str] = []
    raw = edit_diff("a").replace("+2\n", "") + edit_diff("b")
    assert [file.path for file in parse_diff(raw.encode(), faults)] == ["b"]
    assert len(faults) == 1


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (b"plain name", "plain name"),
        (b'"caf\\303\\251"', "café"),
        (b'"\\"\\\\\\t\\n\\a\\001"', '"\\\t\n\a\x01'),
        ("unquoted é".encode(), "unquoted é"),
    ],
    ids=["plain", "octal", "escapes", "UTF-8"],
)
def test_paths_are_unquoted_as_git_quotes_them(raw: bytes, path: str) -> None:
    assert unquote_path(raw) == path


def test_lines_end_at_lf_alone() -> None:
    assert split_lines(b"a\rb\x0c\n\x85c\r\n\nd") == [b"a\rb\x0c\n", b"\x85c\r\n", b"\n", b"d"]
