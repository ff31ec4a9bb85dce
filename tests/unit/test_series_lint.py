"""What is refused in one patch before anything is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.series_cases import TRAILERS, edit_diff, patch_text, write_patches
from toolkit.errors import SeriesError
from toolkit.series import load_series

NEW_SYMLINK = (
    "diff --git a/pkg/link b/pkg/link\nnew file mode 120000\nindex 0000000..1111111\n--- /dev/null\n+++ b/pkg/link\n"
    "@@ -0,0 +1 @@\n+/etc\n\\ No newline at end of file\n"
)
STATUS_WORDS = "Pending, Submitted, Backport, Denied, Inappropriate"


def faults_of(tmp_path: Path, *texts: str | bytes) -> list[str]:
    for number, text in enumerate(texts, 1):
        raw = text.encode() if isinstance(text, str) else text
        (tmp_path / f"000{number}-a.patch").write_bytes(raw)
    try:
        load_series(tmp_path, name="s")
    except SeriesError as fault:
        return list(fault.details)
    return []


@pytest.mark.parametrize(
    ("trailers", "faults"),
    [
        pytest.param("Upstream-Status: Backport [abc]\nWitness: a-b\nFixes: #1", [], id="good"),
        pytest.param("Upstream-Status: Denied [they\n said no]\nWitness: a", [], id="folded"),
        pytest.param(
            "Upstream-Status: pending [x]\nWitness: a",
            [f"`Upstream-Status: pending [x]` has an unknown word, expected one of {STATUS_WORDS};"
             " did you mean 'Pending'?"], id="wrong case",
        ),
        pytest.param(
            "Upstream-Status: Merged [x]\nWitness: a",
            [f"`Upstream-Status: Merged [x]` has an unknown word, expected one of {STATUS_WORDS}"], id="unknown word",
        ),
        pytest.param(
            "Upstream-Status: Submitted https://x\nWitness: a",
            [f"`Upstream-Status: Submitted https://x` has an unknown word, expected one of {STATUS_WORDS};"
             " did you mean 'Submitted'?"], id="no brackets",
        ),
        pytest.param(
            "Upstream-Status: Denied [ ]\nWitness: a",
            [f"`Upstream-Status: Denied [ ]` has an unknown word, expected one of {STATUS_WORDS};"
             " did you mean 'Denied'?"], id="empty reason",
        ),
        pytest.param(
            "Upstream-Status: Inappropriate\nWitness: a",
            ["`Upstream-Status: Inappropriate` lacks its link or reason, expected `Inappropriate [link or reason]`"],
            id="no reason",
        ),
        pytest.param(
            "Upstream-Status: Pending [x]\nUpstream-Status: Denied [x]\nWitness: a\nWitness: b",
            ["has 2 `Upstream-Status:` trailers, one is expected", "has 2 `Witness:` trailers, one is expected"],
            id="twice",
        ),
        pytest.param(
            "Upstream-Status: Pending [x]\nWitness: A Witness",
            ["`Witness: A Witness` is not a name such as `aliased-reduction`"], id="no name",
        ),
        pytest.param(
            f"{TRAILERS}\n\nOne more thing.",
            [f"has no `Upstream-Status:` trailer, expected one of {STATUS_WORDS} with its [link or reason];"
             " the one in the message is not in its last paragraph",
             "has no `Witness:` trailer, expected the name of its witness;"
             " the one in the message is not in its last paragraph"], id="not at the end",
        ),
    ],
)  # fmt: skip
def test_trailers_are_required_and_checked(tmp_path: Path, trailers: str, faults: list[str]) -> None:
    text = patch_text(edit_diff("pkg/a.py"), trailers=trailers)
    assert faults_of(tmp_path, text) == [f"0001-a.patch: {fault}" for fault in faults]


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("../a.py", "'../a.py' leaves its folder through '..'"),
        ("pkg/../../a.py", "'pkg/../../a.py' leaves its folder through '..'"),
        ("/etc/passwd", "'/etc/passwd' is not a relative POSIX path"),
        (".git/hooks/post-checkout", "'.git/hooks/post-checkout' reaches into a '.git' folder"),
        ("pkg/.GiT/config", "'pkg/.GiT/config' reaches into a '.git' folder"),
        ("pkg/./a.py", "'pkg/./a.py' is not in normal form"),
        ("pkg//a.py", "'pkg//a.py' is not in normal form"),
        ("C:/a.py", "'C:/a.py' is not a relative POSIX path"),
    ],
)
def test_a_path_that_leaves_the_tree_is_refused(tmp_path: Path, path: str, why: str) -> None:
    assert faults_of(tmp_path, patch_text(edit_diff(path))) == [f"0001-a.patch: unsafe path: {why}"]


@pytest.mark.parametrize(
    ("quoted", "why"),
    [
        ('"a/\\056\\056/a.py" "b/\\056\\056/a.py"', "'../a.py' leaves its folder through '..'"),
        ('"a/\\056git/x" "b/\\056git/x"', "'.git/x' reaches into a '.git' folder"),
        ('"a/x\\\\y" "b/x\\\\y"', "'x\\\\y' is not a relative POSIX path"),
        ('"a/x\\ny" "b/x\\ny"', "'x\\ny' is not a file's name"),
        ('"a/.g\\342\\200\\214it/x" "b/.g\\342\\200\\214it/x"', "'.g\\u200cit/x' is not a file's name"),
        ("a/x/ b/x/", "'x/' is not a file's name"),
    ],
    ids=["dots", "git", "backslash", "line feed", "invisible letter", "folder"],
)
def test_a_quoted_path_is_judged_by_what_it_means(tmp_path: Path, quoted: str, why: str) -> None:
    diff = f"diff --git {quoted}\nnew file mode 100644\nindex 0000000..1111111\n"
    assert faults_of(tmp_path, patch_text(diff)) == [f"0001-a.patch: unsafe path: {why}"]


@pytest.mark.parametrize("verb", ["rename", "copy"])
@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("../../etc/passwd", "pkg/b", "'../../etc/passwd' leaves its folder through '..'"),
        ("pkg/a", "/tmp/b", "'/tmp/b' is not a relative POSIX path"),
        ("pkg/a", "x/.git/config", "'x/.git/config' reaches into a '.git' folder"),
    ],
    ids=["from outside", "to outside", "into git"],
)
def test_a_rename_or_copy_that_leaves_the_tree_is_refused(
    tmp_path: Path, verb: str, old: str, new: str, why: str
) -> None:
    diff = f"diff --git a/x b/x\nsimilarity index 100%\n{verb} from {old}\n{verb} to {new}\n"
    assert faults_of(tmp_path, patch_text(diff)) == [f"0001-a.patch: unsafe path: {why}"]


def test_a_symlink_that_is_then_written_through_is_refused(tmp_path: Path) -> None:
    one_patch = faults_of(tmp_path, patch_text(NEW_SYMLINK + edit_diff("pkg/link/passwd")))
    assert one_patch == ["0001-a.patch: pkg/link is a symlink; only regular files can be patched"]
    two_patches = faults_of(tmp_path, patch_text(NEW_SYMLINK), patch_text(edit_diff("pkg/link/passwd")))
    assert two_patches == one_patch


@pytest.mark.parametrize(("mode", "kind"), [("120000", "a symlink"), ("100600", "mode 100600")])
def test_only_regular_files_can_be_patched(tmp_path: Path, mode: str, kind: str) -> None:
    text = patch_text(edit_diff("pkg/x", mode=mode))
    assert faults_of(tmp_path, text) == [f"0001-a.patch: pkg/x is {kind}; only regular files can be patched"]


def test_a_change_of_mode_is_refused(tmp_path: Path) -> None:
    diff = "diff --git a/pkg/x b/pkg/x\nold mode 100644\nnew mode 100755\n"
    assert faults_of(tmp_path, patch_text(diff)) == [
        "0001-a.patch: changes the mode of pkg/x from 100644 to 100755; a wheel would not carry that"
    ]


def test_a_patch_without_diff_is_refused(tmp_path: Path) -> None:
    assert faults_of(tmp_path, patch_text("")) == ["0001-a.patch: has no diff"]


@pytest.mark.parametrize(
    "diff",
    [
        "diff --git a/pkg/x b/pkg/x\n",
        edit_diff("pkg/x").replace("+2\n", "+two\n"),
        edit_diff("pkg/x").replace("-two\n+2\n", " two\n"),
    ],
    ids=["header alone", "same line", "context alone"],
)
def test_a_patch_without_effect_is_refused(tmp_path: Path, diff: str) -> None:
    assert faults_of(tmp_path, patch_text(diff)) == ["0001-a.patch: names pkg/x without changing it"]


def test_a_file_named_twice_is_refused(tmp_path: Path) -> None:
    assert faults_of(tmp_path, patch_text(edit_diff("x") * 2)) == ["0001-a.patch: names x twice"]


def test_a_hunk_without_context_is_refused(tmp_path: Path) -> None:
    (path,) = write_patches(
        tmp_path / "repo", tmp_path / "series", {"a": b"1\n2\n3\n"}, {"a": b"1\n2\nnew\n3\n"}, options=["-U0"]
    )
    assert faults_of(path.parent) == ["0001-change.patch: hunk #1 of a has no line of context; export with -U3 or more"]


@pytest.mark.parametrize(("before", "after"), [(b"1", b"2"), (b"", b"1\n"), (b"1\n2\n", b"")])
def test_a_hunk_that_is_the_whole_file_needs_no_context(tmp_path: Path, before: bytes, after: bytes) -> None:
    (path,) = write_patches(tmp_path / "repo", tmp_path / "series", {"a": before}, {"a": after})
    assert faults_of(path.parent) == []


def test_a_patch_file_converted_to_crlf_is_refused_with_a_hint(tmp_path: Path) -> None:
    text = patch_text(edit_diff("a.py")).replace("\n", "\r\n")
    assert faults_of(tmp_path, text) == [
        "0001-a.patch: its lines end in CRLF: something converted it after `git format-patch` wrote it"
        " (core.autocrlf, an editor, a mail program); take the original, and keep `*.patch -text` in .gitattributes"
    ]


@pytest.mark.parametrize(
    ("options", "faults"),
    [
        (["--binary"], []),
        (["--no-binary"], ["the change of binary a.bin has no data; export with `git format-patch --binary`"]),
        (["--no-binary", "--full-index"],
         ["the change of binary a.bin has no data; export with `git format-patch --binary`"]),
    ],
    ids=["data and full index", "neither", "full index alone"],
)  # fmt: skip
def test_a_binary_change_needs_its_data(tmp_path: Path, options: list[str], faults: list[str]) -> None:
    (path,) = write_patches(
        tmp_path / "repo", tmp_path / "series", {"a.bin": b"\0" + b"a" * 99}, {"a.bin": b"\0" * 99}, options=options
    )
    assert faults_of(path.parent) == [f"0001-change.patch: {fault}" for fault in faults]


def test_a_binary_change_needs_its_full_index(tmp_path: Path) -> None:
    (path,) = write_patches(
        tmp_path / "repo",
        tmp_path / "series",
        {"a.bin": b"\0" + b"a" * 99},
        {"a.bin": b"\0" * 99},
        options=["--binary"],
    )
    lines = path.read_bytes().split(b"\n")
    at = next(number for number, line in enumerate(lines) if line.startswith(b"index "))
    lines[at] = b"index " + lines[at].split()[1][:7] + b".." + lines[at].split(b"..")[1][:7] + b" 100644"
    path.write_bytes(b"\n".join(lines))
    assert faults_of(path.parent) == [
        "0001-change.patch: the change of binary a.bin has no full index line;"
        " export with `git format-patch --full-index`"
    ]
