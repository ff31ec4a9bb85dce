from __future__ import annotations

import pytest

from toolkit.schema import did_you_mean, locate_keys


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param("a = 1\n\nb.c = 2\n", {("a",): 1, ("b", "c"): 3}, id="keys"),
        pytest.param("[t]\na = 1\n[t.u]\nb = 2\n", {("t",): 1, ("t", "a"): 2, ("t", "u"): 3, ("t", "u", "b"): 4},
                     id="tables"),
        pytest.param("[[c]]\na = 1\n[c.d]\nb = 1\n[[c]]\n[c.d]\n[[c.e]]\n[[c.e]]\nf = 1\n",
                     {("c", 0): 1, ("c", 0, "a"): 2, ("c", 0, "d"): 3, ("c", 0, "d", "b"): 4, ("c", 1): 5,
                      ("c", 1, "d"): 6, ("c", 1, "e", 0): 7, ("c", 1, "e", 1): 8, ("c", 1, "e", 1, "f"): 9},
                     id="arrays of tables"),
        pytest.param('a = [\n  "b = 1",\n  { c = 2 },\n]\nd = 1\n', {("a",): 1, ("d",): 5}, id="array over lines"),
        pytest.param("a = [\n  [1],\n  [2]\n]\nb = 1\n", {("a",): 1, ("b",): 5}, id="array of arrays"),
        pytest.param('a = """\nb = 1\n[t]\n"""\nc = 1\n', {("a",): 1, ("c",): 5}, id="string over lines"),
        pytest.param("a = '''\nb = 1\n'''\nc = 1\n", {("a",): 1, ("c",): 4}, id="literal over lines"),
        pytest.param('a = "[" # ]\nb = \'{\'\nc = 1 # "\nd = 1\n', {("a",): 1, ("b",): 2, ("c",): 3, ("d",): 4},
                     id="brackets in strings and comments"),
        pytest.param('"q u" = 1\n["x.y"]\na = 1\n[t]\nb = 1\n', {("t",): 4, ("t", "b"): 5}, id="quoted: left out"),
        pytest.param("[ t ] # c\n  a  =  1\n", {("t",): 1, ("t", "a"): 2}, id="blanks"),
    ],
)  # fmt: skip
def test_keys_are_located(text: str, lines: dict[tuple[str | int, ...], int]) -> None:
    assert locate_keys(text) == lines


def test_only_a_near_name_is_proposed() -> None:
    assert did_you_mean("verison", ["version", "kind"]) == "; did you mean 'version'?"
    assert did_you_mean("zzz", ["version", "kind"]) == ""
