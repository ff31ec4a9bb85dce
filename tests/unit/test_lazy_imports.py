"""What the quick commands do not import: asked of fresh interpreters."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

import toolkit
from toolkit.process import run

CHECKOUT = Path(toolkit.__file__).parents[1]
HEAVY = ("rich", "git", "torch", "torch_npu", "msgspec", "packaging")

TELL = """
import json, runpy, sys
try:
    {code}
finally:
    print(json.dumps(sorted({{name.partition(".")[0] for name in sys.modules}})), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def stand_ins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make empty modules of the heavy ones' names, so that an import shows even where they are not installed."""
    folder = tmp_path_factory.mktemp("stand-ins")
    for name in HEAVY:
        (folder / f"{name}.py").touch()
    return folder


def imported(code: str, stand_ins: Path, cwd: Path) -> set[str]:
    """Run code in a fresh interpreter and return the top-level names of what it imported."""
    env = {"PATH": os.environ["PATH"], "HOME": str(cwd), "PYTHONPATH": f"{stand_ins}:{CHECKOUT}"}
    done = run([sys.executable, "-c", TELL.format(code=code)], cwd=cwd, env=env)
    return set(json.loads(done.stderr))


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        pytest.param("import toolkit.cli", HEAVY, id="the command line"),
        pytest.param("sys.argv[1:] = ['--help']; runpy.run_module('toolkit', run_name='__main__')", HEAVY, id="--help"),
        pytest.param("sys.argv[1:] = ['build', '--help']; runpy.run_module('toolkit', run_name='__main__')", HEAVY,
                     id="build --help"),
        pytest.param("sys.argv[1:] = ['--version']; runpy.run_module('toolkit', run_name='__main__')", HEAVY,
                     id="--version"),
        pytest.param("import toolkit.current", HEAVY, id="the current overlay"),
        pytest.param("import toolkit.envfile", HEAVY, id="env files"),
        pytest.param("import toolkit.trace, toolkit.project, toolkit.files, toolkit.store", HEAVY, id="light rooms"),
    ],
)  # fmt: skip
def test_heavy_modules_are_not_imported(code: str, unwanted: tuple[str, ...], stand_ins: Path, tmp_path: Path) -> None:
    found = imported(code, stand_ins, tmp_path)

    assert "toolkit" in found
    assert sorted(found.intersection(unwanted)) == []


def test_an_import_of_a_heavy_module_would_be_seen(stand_ins: Path, tmp_path: Path) -> None:
    assert imported("import torch, toolkit", stand_ins, tmp_path) >= {"torch", "toolkit"}
