"""The look into the target: what it must not run, what it must see, and what keeps it from starting."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.doctor_sites import SUFFIX, Planted, plant_npu
from toolkit.doctor import survey as room
from toolkit.doctor.survey import NAMES, survey_imports
from toolkit.errors import TargetError


def test_nothing_is_imported_of_what_is_looked_for(planted: Planted) -> None:
    plant_npu(planted)  # Each of them ends the process that imports it.

    survey = planted.survey()

    assert sorted(survey.winners) == ["torch", "torch_npu", "triton"]
    assert survey.packages == {name: planted.site / name for name in survey.winners}
    assert (survey.suffix, survey.finders, survey.user_site) == (SUFFIX, (), None)
    assert survey.faults == {}
    assert set(survey.others) == set(NAMES)


def test_what_the_working_directory_shadows_is_not_run(planted: Planted) -> None:
    for name in ("json.py", "os.py", "site.py", "importlib.py", "sysconfig.py", "__future__.py"):
        (planted.cwd / name).write_text("raise SystemExit('run')\n", "utf-8")

    assert planted.survey().winners == {}


def test_what_pythonpath_shadows_is_not_run_by_the_look(planted: Planted) -> None:
    folder = planted.root / "shadows"
    folder.mkdir()
    (folder / "json.py").write_text("raise SystemExit('run')\n", "utf-8")
    planted.environ["PYTHONPATH"] = str(folder)

    assert str(folder) in planted.survey().path


def test_a_start_that_prints_is_no_harm(planted: Planted) -> None:
    (planted.site / "noisy.pth").write_text("import sys; print('hello'); print('{}', file=sys.stderr)\n", "utf-8")

    assert planted.survey().prefix == planted.root / "venv"


def test_nothing_is_written(planted: Planted) -> None:
    (planted.site / "own.py").touch()
    (planted.site / "own.pth").write_text("import own\n", "utf-8")

    planted.survey()

    assert not list(planted.site.rglob("__pycache__"))


def test_only_what_decides_about_imports_reaches_the_start(planted: Planted) -> None:
    shown = planted.root / "environ"
    (planted.site / "own.py").write_text(
        f"import os\nopen({str(shown)!r}, 'w').write(' '.join(sorted(os.environ)))\n", "utf-8"
    )
    (planted.site / "own.pth").write_text("import own\n", "utf-8")
    planted.environ |= {"SECRET": "x", "PYTHONINSPECT": "1", "PYTHONUSERBASE": str(planted.root), "PYTHONPATH": "/usr"}

    planted.survey()

    got = set(shown.read_text("utf-8").split())
    assert got - {"LC_CTYPE"} == {
        "HOME", "LANG", "PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "PYTHONUSERBASE",
        "TORCH_DEVICE_BACKEND_AUTOLOAD",
    }  # fmt: skip


def test_a_start_that_fails_is_told(planted: Planted) -> None:
    planted.environ["PYTHONHOME"] = "/nowhere"

    with pytest.raises(TargetError, match="No module named 'encodings'"):
        planted.survey()


def test_a_start_that_never_ends_is_stopped(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    (planted.site / "slow.pth").write_text("import time; time.sleep(60)\n", "utf-8")
    monkeypatch.setattr(room, "LIMIT", 0.5)

    with pytest.raises(TargetError, match=r"python did not end within 0\.5 s and was stopped"):
        planted.survey()


def test_a_start_that_ends_without_a_word(planted: Planted) -> None:
    (planted.site / "quiet.pth").write_text("import os; os._exit(3)\n", "utf-8")

    with pytest.raises(TargetError, match=r"^it ended with code 3 and said nothing$"):
        planted.survey()


@pytest.mark.parametrize("name", ["module.py", "package/__init__.py"], ids=["a module alone", "a package"])
def test_the_place_of_a_package_is_its_folder(planted: Planted, name: str) -> None:
    file = planted.site / name
    file.parent.mkdir(exist_ok=True)
    file.touch()
    top = name.partition("/")[0].removesuffix(".py")

    survey = survey_imports(planted.interpreter, planted.environ, planted.cwd, (top,))

    assert survey.winners[top].place == planted.site / name.partition("/")[0]


def test_one_place_under_two_names_is_told_once(planted: Planted) -> None:
    plant_npu(planted)
    link = planted.root / "link"
    link.symlink_to(planted.site)
    planted.environ["PYTHONPATH"] = os.pathsep.join([str(link), str(planted.site)])

    survey = planted.survey()

    assert survey.winners["torch"].place == link / "torch"
    assert survey.others["torch"] == ()


def test_a_package_in_a_zip(planted: Planted) -> None:
    import zipfile

    archive = planted.root / "packages.zip"
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr("torchtitan/__init__.py", "")
    planted.environ["PYTHONPATH"] = str(archive)

    survey = planted.survey()

    assert survey.winners["torchtitan"].place == Path(archive, "torchtitan")
    assert not survey.winners["torchtitan"].is_namespace
