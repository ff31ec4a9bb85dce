"""A proof is made anew for what its own checks are made of, and for nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from toolkit.prove import proof_inputs

FILES = {
    "contract.py": "",
    "__init__.py": "",
    "checks/__init__.py": "",
    "checks/one.py": "from verify.witnesses import base\n",
    "checks/two.py": "",
    "witnesses/base.py": "import verify.witnesses.deep\n",
    "witnesses/deep.py": "",
    "witnesses/three.py": "from verify.witnesses.deep import x\n",
}
CATALOGUE = {
    "one": {"module": "verify.checks.one", "summary": "1"},
    "two": {"module": "verify.checks.two", "summary": "2"},
    "three": {"module": "verify.witnesses.three", "summary": "3"},
}


@pytest.fixture
def verify(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "checks.json").write_text(json.dumps(CATALOGUE))
    return tmp_path


def test_the_files_are_the_shared_ones_and_what_the_checks_import(verify: Path) -> None:
    names = [name for name, _ in proof_inputs(verify, ["one"])]
    assert names == [
        "check/one", "verify/__init__.py", "verify/checks/one.py", "verify/contract.py", "verify/witnesses/base.py",
        "verify/witnesses/deep.py",
    ]  # fmt: skip


def _edit(name: str) -> Callable[[Path], object]:
    return lambda verify: (verify / name).write_text("# edited\n")


def _describe(name: str) -> Callable[[Path], object]:
    catalogue = CATALOGUE | {name: CATALOGUE[name] | {"summary": "another"}}
    return lambda verify: (verify / "checks.json").write_text(json.dumps(catalogue))


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        pytest.param(_edit("checks/one.py"), True, id="its module"),
        pytest.param(_edit("witnesses/deep.py"), True, id="what that imports in turn"),
        pytest.param(_edit("contract.py"), True, id="what all share"),
        pytest.param(_describe("one"), True, id="its entry"),
        pytest.param(_edit("checks/two.py"), False, id="another check"),
        pytest.param(_edit("witnesses/three.py"), False, id="a witness that it does not run"),
        pytest.param(_edit("witnesses/four.py"), False, id="a new witness"),
        pytest.param(_describe("two"), False, id="another entry"),
    ],
)
def test_only_what_the_checks_are_made_of_counts(
    verify: Path, change: Callable[[Path], object], counts: bool
) -> None:  # fmt: skip
    before = list(proof_inputs(verify, ["one"]))
    change(verify)
    assert (list(proof_inputs(verify, ["one"])) != before) is counts
