"""What a patch may say of a submodule."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.series_cases import edit_diff, patch_text
from toolkit.errors import SeriesError
from toolkit.model import FileChange, Series
from toolkit.series import load_series
from toolkit.series.diff import parse_diff
from toolkit.series.gitlinks import GitlinkMove, read_move

OLD, NEW = "1" * 40, "2" * 40
MOVE = (
    "diff --git a/third_party/sub b/third_party/sub\nindex 1111111..2222222 160000\n--- a/third_party/sub\n"
    f"+++ b/third_party/sub\n@@ -1 +1 @@\n-Subproject commit {OLD}\n+Subproject commit {NEW}\n"
)
ADDITION = (
    "diff --git a/third_party/sub b/third_party/sub\nnew file mode 160000\nindex 0000000..2222222\n--- /dev/null\n"
    f"+++ b/third_party/sub\n@@ -0,0 +1 @@\n+Subproject commit {NEW}\n"
)
REMOVAL = (
    "diff --git a/third_party/sub b/third_party/sub\ndeleted file mode 160000\nindex 1111111..0000000\n"
    f"--- a/third_party/sub\n+++ /dev/null\n@@ -1 +0,0 @@\n-Subproject commit {OLD}\n"
)
UNCLEAR = "does not say which commits submodule third_party/sub is moved between, as git does"


def load(tmp_path: Path, text: str) -> Series:
    (tmp_path / "0001-a.patch").write_text(text, encoding="utf-8")
    return load_series(tmp_path, name="s")


def faults_of(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(SeriesError) as raised:
        load(tmp_path, text)
    return [fault.removeprefix("0001-a.patch: ") for fault in raised.value.details]


@pytest.mark.parametrize(
    ("diff", "old", "new"),
    [
        pytest.param(MOVE, OLD, NEW, id="moved"),
        pytest.param(MOVE.replace("1111111..2222222", f"{OLD}..{NEW}"), OLD, NEW, id="full index"),
        pytest.param(MOVE.replace("1" * 40, "3" * 64).replace("1111111", "3333333"), "3" * 64, NEW, id="SHA-256"),
        pytest.param(ADDITION, None, NEW, id="added"),
        pytest.param(REMOVAL, OLD, None, id="removed"),
    ],
)
def test_a_move_is_read_as_git_writes_it(tmp_path: Path, diff: str, old: str | None, new: str | None) -> None:
    (file,) = parse_diff(diff.encode(), [])
    assert read_move(file) == GitlinkMove(path="third_party/sub", old=old, new=new)
    (patch,) = load(tmp_path, patch_text(diff)).patches
    assert patch.changes == (
        FileChange(path="third_party/sub", old_path="third_party/sub", kind=file.kind, part="native", is_gitlink=True),
    )


@pytest.mark.parametrize(
    ("diff", "faults"),
    [
        pytest.param(
            MOVE.replace(NEW, OLD).replace("2222222", "1111111"), ["names third_party/sub without changing it"],
            id="nowhere",
        ),
        pytest.param(MOVE.replace(NEW, f"{NEW}-dirty"), [UNCLEAR], id="dirty"),
        pytest.param(MOVE.replace(NEW, NEW[:12]), [UNCLEAR], id="short id"),
        pytest.param(MOVE.replace(NEW, "0" * 40), [UNCLEAR], id="no commit"),
        pytest.param(edit_diff("third_party/sub", mode="160000"), [UNCLEAR], id="lines of a file"),
        pytest.param(MOVE.partition("---")[0], [UNCLEAR], id="no lines"),
        pytest.param(ADDITION.replace("new file mode 160000\n", "").replace("2222222", "2222222 160000"), [UNCLEAR],
                     id="added without being new"),
        pytest.param(MOVE.partition("---")[0] + "Binary files a/x and b/x differ\n", [UNCLEAR], id="binary"),
        pytest.param(
            MOVE.replace("1111111..", "3333333.."),
            [f"names submodule third_party/sub at {OLD}, but at 3333333 in its index line"], id="another old id",
        ),
        pytest.param(
            REMOVAL.replace("..0000000", "..2222222"),
            ["names submodule third_party/sub at no commit, but at 2222222 in its index line"], id="another new id",
        ),
        pytest.param(
            MOVE.replace("index 1111111..2222222 160000", "old mode 100644\nnew mode 160000"),
            ["makes third_party/sub a submodule of a file, or a file of a submodule; remove it in a patch of its own"],
            id="of a file",
        ),
        pytest.param(
            "diff --git a/sub b/moved\nsimilarity index 100%\nrename from sub\nrename to moved\n"
            + MOVE.partition("\n")[2].partition("---")[0],
            ["renames or copies submodule sub; export with `git format-patch --no-renames`"], id="renamed",
        ),
        pytest.param(
            MOVE.replace("third_party/sub", "../sub"), ["unsafe path: '../sub' leaves its folder through '..'"],
            id="outside",
        ),
        pytest.param(REMOVAL + edit_diff("third_party/sub"), ["names third_party/sub twice"], id="and a file there"),
        pytest.param(
            f"Submodule third_party/sub {OLD[:7]}..{NEW[:7]}:\n  > a commit\n" + edit_diff("a.py"),
            ["has a submodule's move as a log; export with `git format-patch --submodule=short`"], id="log before",
        ),
        pytest.param(
            f"Submodule third_party/sub {OLD[:7]}...{NEW[:7]} (commits not present)\n",
            ["has a submodule's move as a log; export with `git format-patch --submodule=short`"], id="log alone",
        ),
    ],
)  # fmt: skip
def test_what_git_does_not_write_is_refused(tmp_path: Path, diff: str, faults: list[str]) -> None:
    assert faults_of(tmp_path, patch_text(diff)) == faults


def test_a_message_may_speak_of_a_submodules_move(tmp_path: Path) -> None:
    text = patch_text(edit_diff("a.py")).replace(
        "It fails", f"Submodule third_party/sub {OLD[:7]}..{NEW[:7]}: it fails"
    )
    assert load(tmp_path, text).native == ()
