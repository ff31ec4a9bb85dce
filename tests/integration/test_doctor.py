"""`toolkit doctor` on planted environments: what is sound has no doubt, and each planted fault is named.

The lines of the interpreter, the path, torch and triton; those of the machine are in test_doctor_machine.py.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import toolkit
from tests.doctor_sites import (
    Planted,
    grades,
    install_editable,
    make_recipe,
    plant,
    plant_npu,
    plant_torch,
    plant_torch_npu,
    plant_triton,
)
from toolkit import cli
from toolkit.doctor import examine
from toolkit.process import run

GROUPS = ("interpreter.", "path.", "torch.", "torch_npu.", "triton.", "recipe.")
CHECKOUT = Path(toolkit.__file__).parents[1]


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Planted:
    """Return an environment with packages that belong together, in force for this process too."""
    made = plant(tmp_path)
    plant_npu(made)
    for name in ("PYTHONPATH", "PYTHONHOME", "ASCEND_HOME_PATH", "TORCHINDUCTOR_NPU_BACKEND", "VIRTUAL_ENV"):
        monkeypatch.delenv(name, raising=False)
    for name, value in made.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(made.cwd)
    return made


def doctor(planted: Planted, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    """Run the command in this process; return its exit code and its document."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["doctor", "--python", str(planted.python), "--json", *words])
    return int(ended.value.code or 0), json.loads(capsys.readouterr().out)


def doubts(document: dict[str, Any]) -> dict[str, str]:
    """Return what is not ok of our groups; headers are the machine's own."""
    return {
        one["name"]: one["grade"]
        for one in document["observations"]
        if one["name"].startswith(GROUPS) and one["grade"] != "ok" and one["name"] != "interpreter.headers"
    }


def test_a_sound_environment(planted: Planted, capsys: pytest.CaptureFixture[str]) -> None:
    code, document = doctor(planted, capsys)

    assert doubts(document) == {}
    failed = [one["seen"] for one in document["observations"] if one["grade"] == "fail"]
    assert [seen for seen in failed if "torch" in seen] == []
    assert (code, document["schema"]) == (23 if failed else 0, 1)  # A machine may lack ninja, or disk space.
    assert {frozenset(one) for one in document["observations"]} == {frozenset(("name", "grade", "seen", "do"))}
    names = [one["name"] for one in document["observations"] if one["name"].startswith(GROUPS)]
    assert names == [
        "interpreter.python", "interpreter.tag", "interpreter.start", "interpreter.headers", "interpreter.path",
        "path.pythonpath", "path.pth", "path.finders", "path.user_site", "path.torch", "path.torch_npu", "path.triton",
        "path.cann_ops_transformer", "path.torchtitan", "path.torchtitan_npu",
        "torch.version", "torch.metadata", "torch.compiled",
        "torch_npu.version", "torch_npu.metadata", "torch_npu.compiled", "torch_npu.dvm", "torch_npu.whole",
        "torch.match", "torch.build",
        "triton.owner", "triton.whole", "triton.backend",
    ]  # fmt: skip


def two_releases(planted: Planted) -> None:
    plant_torch(planted.root / "extra", "2.12.0+cpu")
    os.environ["PYTHONPATH"] = str(planted.root / "extra")


def an_editable_install_that_moved(planted: Planted) -> None:
    install_editable(planted.site, "torchtitan", {"torchtitan": "/gone/torchtitan"})


def no_init(planted: Planted) -> None:
    (planted.cwd / "torchtitan").mkdir()


def a_source_tree(planted: Planted) -> None:
    (planted.cwd / "torch_npu").mkdir()
    (planted.cwd / "torch_npu" / "__init__.py").touch()


def an_overlay_further_back(planted: Planted) -> None:
    overlay = planted.root / "overlay"
    plant_torch_npu(overlay / "site", "2.13.0+p6.k1a2b3c4d")
    os.environ["TOOLKIT_OVERLAY"] = str(overlay)
    os.environ["PYTHONPATH"] = f"{planted.site}:{overlay / 'site'}"


def no_dvm(planted: Planted) -> None:
    (planted.site / "torch_npu" / "_inductor" / "dvm" / "__init__.py").unlink()
    (planted.site / "torch_npu" / "_inductor" / "dvm").rmdir()


def triton_over_triton_ascend(planted: Planted) -> None:
    plant_triton(planted.site, "triton", "3.4.0")
    os.environ["TORCHINDUCTOR_NPU_BACKEND"] = "default"


def another_home(planted: Planted) -> None:
    os.environ["PYTHONHOME"] = "/nowhere"


@pytest.mark.parametrize(
    ("break_it", "found"),
    [
        pytest.param(two_releases, {"torch.version": "fail", "torch.match": "fail"}, id="two releases"),
        pytest.param(an_editable_install_that_moved, {"path.finders": "fail"}, id="an editable install that moved"),
        pytest.param(no_init, {"path.torchtitan": "fail"}, id="a folder without __init__"),
        pytest.param(a_source_tree,
                     {"path.torch_npu": "warn", "torch_npu.metadata": "warn", "torch_npu.compiled": "fail",
                      "torch_npu.dvm": "fail"},
                     id="a source tree"),
        pytest.param(an_overlay_further_back, {"path.torch_npu": "fail"}, id="an overlay further back"),
        pytest.param(no_dvm, {"torch_npu.dvm": "fail", "torch_npu.whole": "fail"}, id="without DVM"),
        pytest.param(triton_over_triton_ascend, {"triton.owner": "fail"}, id="triton over triton-ascend"),
        pytest.param(another_home, {"interpreter.start": "fail"}, id="PYTHONHOME"),
    ],
)  # fmt: skip
def test_a_planted_fault(
    planted: Planted,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    break_it: Callable[[Planted], None],
    found: dict[str, str],
) -> None:
    for name in ("PYTHONPATH", "PYTHONHOME", "TOOLKIT_OVERLAY", "TORCHINDUCTOR_NPU_BACKEND"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)  # Both, so that it is gone again afterwards.
    break_it(planted)

    code, document = doctor(planted, capsys)

    assert doubts(document) == found
    assert (code, document["worst"]) == (23, "fail")


def test_the_text_ends_with_the_sum(planted: Planted, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["doctor", "-v", "--python", str(planted.python)])

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ok    interpreter.python  ")
    counts = {grade: sum(line.startswith(grade) for line in lines) for grade in ("ok", "warn", "fail")}
    assert lines[-1] == ", ".join(f"{count} {grade}" for grade, count in counts.items())


def test_what_is_ok_is_shown_only_on_request(planted: Planted, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["doctor", "--python", str(planted.python)])

    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("ok ")] == []
    assert re.fullmatch(r"\d+ ok \(shown with -v\), \d+ warn, \d+ fail", lines[-1])
    assert [line for line in lines if len(line) > 120 and " " in line.strip()[120:]] == []


def test_an_interpreter_that_is_not_there(planted: Planted, capsys: pytest.CaptureFixture[str]) -> None:
    code, document = doctor(planted, capsys, "--python", "/nowhere/python")

    assert code == 23
    assert document["observations"][0] == {
        "name": "interpreter.python", "grade": "fail", "seen": "the interpreter '/nowhere/python' does not exist",
        "do": "name another with --python",
    }  # fmt: skip
    assert not any(one["name"].startswith(("path.", "torch", "triton.")) for one in document["observations"])


def test_a_recipe_that_is_not_there(planted: Planted, capsys: pytest.CaptureFixture[str]) -> None:
    code, document = doctor(planted, capsys, "--recipe", "dsv4-dmv-release")

    assert code == 2
    assert document["error"]["kind"] == "UsageError"


def test_a_recipe_that_cannot_be_read(planted: Planted, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = planted.root / "mine.toml"
    recipe.write_text("schema = 1\nextends = 3\n", "utf-8")

    code, document = doctor(planted, capsys, "--recipe", str(recipe))

    assert code == 23
    assert doubts(document) == {"recipe.read": "fail"}


def test_a_folder_that_is_gone(planted: Planted, capsys: pytest.CaptureFixture[str]) -> None:
    planted.cwd.rmdir()

    code, document = doctor(planted, capsys)

    assert (code, document["error"]["message"]) == (2, "the current folder is no longer there")


def test_without_a_project_the_recipes_part_is_left_out(planted: Planted) -> None:
    observations = examine(
        python=planted.python, environ=planted.environ, cwd=planted.cwd, project=None, recipe="dsv4-dvm-release"
    )

    ours = tuple(one for one in observations if one.name.startswith(GROUPS) and one.name != "interpreter.headers")
    assert grades(ours) == {}
    assert not {"interpreter.tag", "recipe.read"} & {one.name for one in observations}
    assert make_recipe().name not in str(observations)


def test_a_project_without_the_default_recipe_is_none(planted: Planted, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("recipes", "patches", "verify"):
        (planted.root / "project" / name).mkdir(parents=True)
    (planted.root / "project" / "verify" / "checks.json").write_text("{}", "utf-8")
    project = ("--project", str(planted.root / "project"))

    code, document = doctor(planted, capsys, *project)
    named_code, named_document = doctor(planted, capsys, *project, "--recipe", "dsv4-dvm-release")

    assert (code in (0, 23), doubts(document)) == (True, {})
    assert "interpreter.tag" not in {one["name"] for one in document["observations"]}
    assert (named_code, named_document["error"]["kind"]) == (2, "UsageError")


def test_torch_is_imported_nowhere(planted: Planted) -> None:
    """Each planted package ends the process that imports it, the one that runs the command included."""
    tell = "import sys, toolkit.cli\ntry: toolkit.cli.main(['doctor', '--json'])\nfinally: print(sorted({"
    tell += "name.partition('.')[0] for name in sys.modules} & {'torch', 'torch_npu', 'triton'}), file=sys.stderr)"
    env = {**planted.environ, "PYTHONPATH": f"{planted.site}:{CHECKOUT}", "TOOLKIT_PYTHON": str(planted.python)}

    done = run([sys.executable, "-c", tell], cwd=planted.cwd, env=env, check=False)

    assert done.stderr.splitlines()[-1] == "[]"
    assert json.loads(done.stdout)["schema"] == 1
