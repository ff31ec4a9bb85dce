"""For any series and any base that has moved on: what is judged to go in is what a build applies."""

from __future__ import annotations

import shutil
import tempfile
from itertools import pairwise
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.series_cases import make_series, make_source
from toolkit.errors import ApplyError
from toolkit.model import Series, SourceTree
from toolkit.series import apply_series, judge_series

# Few different lines, so that hunks stand in many places; some are headings to git.
LINE = st.sampled_from([b"def f():\n", b"def g():\n", b"class K:\n", b"    x = 1\n", b"    y = 2\n", b"\n"])


@given(
    source=st.lists(LINE, min_size=4, max_size=24),
    edits=st.lists(st.integers(0, 23), min_size=1, max_size=3),
    drift=st.lists(st.tuples(st.integers(0, 23), LINE), max_size=4),
)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_judged_to_go_in_is_what_a_build_applies(
    source: list[bytes], edits: list[int], drift: list[tuple[int, bytes]]
) -> None:
    """Each patch edits one line; the base got other lines here and there."""
    trees, base = [source], [*source]
    for number, at in enumerate(edits):
        trees.append([*trees[-1]])
        trees[-1][at % len(source)] = b"    edited = %d\n" % number
    for at, line in drift:
        base.insert(at % len(base), line)
    files = [{"a.py": b"".join(lines)} for lines in trees]
    assert all(before != after for before, after in pairwise(files))
    folder = Path(tempfile.mkdtemp(prefix="judge-"))
    try:
        series, tree = make_series(folder, *files), make_source(folder, {"a.py": b"".join(base)})
        verdicts = judge_series(series, tree, scratch=folder / "scratch")
        assert all(verdict.goes_in for verdict in verdicts) == is_applied(series, tree, folder)
    finally:
        shutil.rmtree(folder)


def is_applied(series: Series, tree: SourceTree, folder: Path) -> bool:
    try:
        apply_series(series, tree, into=folder / "out", scratch=folder / "scratch")
    except ApplyError:
        return False
    return True
