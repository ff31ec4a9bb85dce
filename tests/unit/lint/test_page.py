"""docs/lint.md says of each check what the table says, and its code is judged as it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.lint_sample import HEAD, lint_sample
from toolkit.lint import CHECKS, Check

PAGE = (Path(__file__).parents[3] / "docs/lint.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### `([a-z0-9-]+)`\n(.*?)(?=^##)", PAGE, flags=re.MULTILINE | re.DOTALL))


def test_the_page_has_a_section_for_each_check_in_order() -> None:
    assert list(SECTIONS) == list(CHECKS)


@pytest.mark.parametrize("check", CHECKS.values(), ids=lambda check: check.id)
def test_a_section_says_what_the_table_says(check: Check) -> None:
    section = " ".join(SECTIONS[check.id].split())
    for name, words in (("Finds", check.finds), ("Why", check.why), ("Right", check.right)):
        assert f"{name}: {words}." in section


@pytest.mark.parametrize("check", CHECKS.values(), ids=lambda check: check.id)
def test_the_wrong_form_is_found_and_the_right_one_is_not(check: Check, tmp_path: Path) -> None:
    wrong, right = re.findall(r"```python\n(.*?)```", SECTIONS[check.id], flags=re.DOTALL)

    assert check.id in {one.check for one in lint_sample(tmp_path, wrong).findings}
    assert lint_sample(tmp_path, right).findings == ()
    assert all(compile(HEAD + code, check.id, "exec") for code in (wrong, right))
