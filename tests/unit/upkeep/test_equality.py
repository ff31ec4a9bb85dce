"""Whether two diffs do the same, wherever their lines are."""

from __future__ import annotations

import pytest

from toolkit.series.diff import FileDiff, parse_diff
from toolkit.upkeep.equality import compare, differences

HEAD = "diff --git a/a.py b/a.py\nindex 1111111..2222222 100644\n--- a/a.py\n+++ b/a.py\n"
HUNK = "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"


def read(text: str) -> list[FileDiff]:
    faults: list[str] = []
    files = parse_diff(text.encode(), faults)
    assert not faults
    return files


@pytest.mark.parametrize(
    ("other", "kept", "why"),
    [
        (HEAD + HUNK, "unchanged", []),
        (HEAD.replace("1111111", "3333333") + HUNK, "unchanged", []),
        (HEAD + HUNK.replace("-1,3 +1,3 @@", "-9,3 +10,3 @@ def f():"), "moved", []),
        (HEAD + HUNK.replace("+2", "+ 2"), "changed", ["a.py: other lines are removed or added, first in hunk #1"]),
        (HEAD + HUNK.replace(" three", " tree"), "changed",
         ["a.py: the lines removed and added are the same, the context around them is not"]),
        (HEAD + HUNK + "@@ -7 +7 @@\n-x\n+y\n", "changed",
         ["a.py: other lines are removed or added, first in hunk #2"]),
        ((HEAD + HUNK).replace("a.py", "b.py"), "changed",
         ["a.py: it is no longer changed", "b.py: it was not changed before"]),
        ("diff --git a/a.py b/a.py\nnew file mode 100644\n--- /dev/null\n+++ b/a.py\n@@ -0,0 +1 @@\n+2\n", "changed",
         ["a.py: it is added, and was modified"]),
        (HEAD + HUNK.replace(" three\n", " three\n\\ No newline at end of file\n"), "changed",
         ["a.py: the lines removed and added are the same, the context around them is not"]),
    ],
    ids=["same", "other ids", "moved", "a blank", "context", "one more hunk", "another file", "another kind", "no end"],
)  # fmt: skip
def test_two_diffs(other: str, kept: str, why: list[str]) -> None:
    found, details = compare(read(HEAD + HUNK), read(other))

    assert (found, [str(one) for one in details]) == (kept, why)


def test_an_empty_line_of_context_may_have_lost_its_blank() -> None:
    text = HEAD + "@@ -1,3 +1,3 @@\n \n-two\n+2\n three\n"

    assert differences(read(text), read(text.replace("\n \n", "\n\n"))) == []


def test_files_may_have_moved() -> None:
    other = (HEAD + HUNK).replace("a.py", "b.py")

    assert differences(read(HEAD + HUNK), read(other), moved={"a.py": "b.py"}) == []
