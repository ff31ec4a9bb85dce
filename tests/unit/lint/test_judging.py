"""Which checks speak, and which findings a comment allows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint_sample import found_in, lint_sample, write_sample
from toolkit.errors import UsageError
from toolkit.lint import CHECKS, lint_model

TWO = """
class Net(nn.Module):
    def forward(self, x):
        import vendor
        print(x)
        return x
"""


def test_checks_are_selected_and_ignored(tmp_path: Path) -> None:
    path = write_sample(tmp_path, TWO)

    assert [one.check for one in lint_model([path]).findings] == ["import-in-forward", "log-in-forward"]
    assert [one.check for one in lint_model([path], select=["log-in-forward"]).findings] == ["log-in-forward"]
    assert [one.check for one in lint_model([path], ignore=["log-in-forward"]).findings] == ["import-in-forward"]


@pytest.mark.parametrize(
    ("select", "ignore", "message", "hint"),
    [
        pytest.param(["log-in-foward"], [], "--select 'log-in-foward': there is no such check",
                     "did you mean log-in-forward?", id="a near miss"),
        pytest.param([], ["x"], "--ignore 'x': there is no such check", f"the checks are {', '.join(CHECKS)}",
                     id="nothing like it"),
        pytest.param(["bad-allow"], ["bad-allow"], "--select and --ignore leave no check",
                     f"the checks are {', '.join(CHECKS)}", id="none left"),
    ],
)  # fmt: skip
def test_a_check_that_is_none_is_an_error(
    select: list[str], ignore: list[str], message: str, hint: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as caught:
        lint_model([write_sample(tmp_path, TWO)], select=select, ignore=ignore)
    assert (str(caught.value), caught.value.hint) == (message, hint)


@pytest.mark.parametrize(
    ("comment", "found"),
    [
        pytest.param("print(x)  # toolkit: allow[log-in-forward] only rank 0, never compiled", [], id="on the line"),
        pytest.param("# toolkit: allow[log-in-forward] never compiled\n        print(x)", [], id="above it"),
        pytest.param("print(x)  # toolkit:allow[import-in-forward, log-in-forward]: never compiled", [], id="two"),
        pytest.param("print(x)  # toolkit: allow[import-in-forward] never compiled", ["log-in-forward"],
                     id="another check"),
        pytest.param("print(x)  # toolkit: allow[log-in-forward]", ["bad-allow", "log-in-forward"], id="no reason"),
        pytest.param("print(x)  # toolkit: allow[logs] never compiled", ["bad-allow", "log-in-forward"],
                     id="no such check"),
        pytest.param("print('# toolkit: allow[log-in-forward] in a string')", ["log-in-forward"], id="no comment"),
        pytest.param("y = x  # toolkit: allow[log-in-forward] for y\n        print(x)", ["log-in-forward"],
                     id="on the line before"),
    ],
)  # fmt: skip
def test_a_comment_allows_a_finding(comment: str, found: list[str], tmp_path: Path) -> None:
    source = f"class Net(nn.Module):\n    def forward(self, x):\n        {comment}\n        return x\n"
    assert [check for _, check in found_in(tmp_path, source)] == found


def test_what_is_allowed_is_kept_with_its_reason(tmp_path: Path) -> None:
    source = "class Net(nn.Module):\n    def forward(self, x):\n        print(x)  # toolkit: allow[log-in-forward] no\n"
    (one,) = lint_sample(tmp_path, source).allowed
    assert (one.finding.check, one.finding.line, one.reason) == ("log-in-forward", 8, "no")


def test_findings_come_in_the_order_of_files_and_lines(tmp_path: Path) -> None:
    for name in ("b.py", "a.py", "sub/c.py"):
        write_sample(tmp_path, TWO, name)
    found = [(Path(one.file).name, one.line) for one in lint_model([tmp_path]).findings]
    assert found == [("a.py", 8), ("a.py", 9), ("b.py", 8), ("b.py", 9), ("c.py", 8), ("c.py", 9)]
