"""For any small tree and any edit: what git diffs comes out, and a base that moved on is never patched wrongly."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.series_cases import make_series, make_source, read_tree
from toolkit.errors import ApplyError
from toolkit.series import apply_series

# Few different lines, so that hunks stand in many places; some are headings to git, some are blank.
LINE = st.sampled_from([b"def f():\n", b"def g():\n", b"class K:\n", b"    x = 1\n", b"    y = 2\n", b"\n", b"z \r\n"])
# Lines that the source never has: where equal lines come in, nobody can say which of them are the new ones.
NEW_LINE = st.sampled_from([b"def new():\n", b"class New:\n", b"    new = 1\n"])
TEXT = st.builds(lambda lines, end: b"".join(lines) + end, st.lists(LINE, max_size=30), st.sampled_from([b"", b"end"]))
PATH = st.sampled_from(["a.py", "p/a.py", "p/b c.py", "p/é.py", "q/d.txt"])
TREE = st.dictionaries(PATH, TEXT, min_size=1, max_size=4)


@given(before=TREE, after=TREE)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_applying_gives_exactly_the_edited_tree(before: dict[str, bytes], after: dict[str, bytes]) -> None:
    if before == after:
        return
    folder = Path(tempfile.mkdtemp(prefix="apply-"))
    try:
        done = apply_series(
            make_series(folder, before, after), make_source(folder, before), into=folder / "out", scratch=folder / "s"
        )
        assert read_tree(done.root) == {path: raw for path, raw in after.items() if before.get(path) != raw}
        assert {file.path for file in done.changed if file.sha256 is None} == before.keys() - after.keys()
    finally:
        shutil.rmtree(folder)


@given(
    source=st.lists(LINE, min_size=9, max_size=30),
    inserted=st.lists(NEW_LINE, min_size=1, max_size=6),
    at=st.integers(0, 29),
    gap=st.integers(0, 15),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_base_that_moved_on_is_patched_rightly_or_not_at_all(
    source: list[bytes], inserted: list[bytes], at: int, gap: int
) -> None:
    """The edit replaces one line; the base got other lines somewhere above it.

    The line is none of the outer four: a hunk that reaches an end of the file is bound to that, whatever came before.
    """
    at = 4 + at % (len(source) - 8)
    above = max(0, at - gap)
    edited = [*source[:at], b"    edited = True\n", *source[at + 1 :]]
    moved_on, expected = ([*lines[:above], *inserted, *lines[above:]] for lines in (source, edited))
    folder = Path(tempfile.mkdtemp(prefix="apply-"))
    try:
        series = make_series(folder, {"a.py": b"".join(source)}, {"a.py": b"".join(edited)})
        base = make_source(folder, {"a.py": b"".join(moved_on)})
        try:
            done = apply_series(series, base, into=folder / "out", scratch=folder / "s")
        except ApplyError:
            assert not (folder / "out").exists()
        else:
            assert read_tree(done.root) == {"a.py": b"".join(expected)}
    finally:
        shutil.rmtree(folder)
