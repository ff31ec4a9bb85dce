"""What wins on the path and why: every way in which another copy than the meant one is imported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.doctor_sites import (
    Planted,
    grades,
    install,
    install_editable,
    make_recipe,
    named,
    plant_npu,
    plant_torch_npu,
)
from toolkit.doctor.import_path import examine_path
from toolkit.model import Component, Observation, Recipe
from toolkit.sources.installed import Base


def look(planted: Planted, wanted: Recipe | None = None) -> list[Observation]:
    survey = planted.survey()
    return examine_path(planted.asked(survey, wanted), survey)


def test_a_sound_environment_has_no_doubt(planted: Planted) -> None:
    plant_npu(planted)

    observations = look(planted, make_recipe())

    assert [(one.name, one.grade, one.seen) for one in observations] == [
        ("path.pythonpath", "ok", "PYTHONPATH is not set"),
        ("path.pth", "ok", "0 folders added by .pth files"),
        ("path.finders", "ok", "no editable finder brings any of the packages"),
        ("path.user_site", "ok", "the user's site-packages are not on the path"),
        ("path.torch", "ok", f"{planted.site / 'torch'} (2.13.0+cpu) wins, through site-packages"),
        ("path.torch_npu", "ok", f"{planted.site / 'torch_npu'} (2.13.0) wins, through site-packages"),
        ("path.triton", "ok", f"{planted.site / 'triton'} (3.2.0) wins, through site-packages"),
        ("path.cann_ops_transformer", "ok", "not found, and the recipe does not bring it"),
        ("path.torchtitan", "ok", "not found, and the recipe does not bring it"),
        ("path.torchtitan_npu", "ok", "not found, and the recipe does not bring it"),
    ]


# --- PYTHONPATH --------------------------------------------------------------------------------------------------


def test_what_pythonpath_must_not_hold(planted: Planted) -> None:
    extra = planted.root / "extra"
    extra.mkdir()
    planted.environ["PYTHONPATH"] = f"{extra}::sub:/nowhere:{extra}"

    assert named(look(planted), "path.pythonpath") == (
        "warn", f"PYTHONPATH={extra}::sub:/nowhere:{extra}: entry 2 is empty, which is the working directory of each "
        "process; entry 3 (sub) is relative to the working directory of each process; entry 4 (/nowhere) does not "
        "exist",
        f"export PYTHONPATH={extra}",
    )  # fmt: skip


def test_nothing_is_left_of_it(planted: Planted) -> None:
    planted.environ["PYTHONPATH"] = ":"

    assert named(look(planted), "path.pythonpath")[2] == "unset PYTHONPATH"


def test_the_empty_entry_lets_another_copy_win(planted: Planted) -> None:
    plant_npu(planted)
    plant_torch_npu(planted.cwd, "2.12.0.post3")
    planted.environ |= {"PYTHONPATH": ":/usr/share", "PYTHONSAFEPATH": "1"}

    if "" in planted.survey().path:
        pytest.skip("this Python has no safe path")
    assert named(look(planted), "path.torch_npu") == (
        "warn", f"{planted.cwd / 'torch_npu'} (2.12.0.post3) wins, through the empty entry 1 of 2 of PYTHONPATH; it "
        f"hides {planted.site / 'torch_npu'} (2.13.0) (site-packages)",
        "take the empty entry out of PYTHONPATH",
    )  # fmt: skip


def overlay(planted: Planted) -> Path:
    root = planted.root / "overlay"
    plant_torch_npu(root / "site", "2.13.0+p6.k1a2b3c4d")
    planted.environ["TOOLKIT_OVERLAY"] = str(root)
    return root


def test_an_active_overlay_that_wins(planted: Planted) -> None:
    plant_npu(planted)
    root = overlay(planted)
    planted.environ["PYTHONPATH"] = str(root / "site")

    observations = look(planted)

    assert grades(observations) == {}
    assert named(observations, "path.torch_npu")[1] == (
        f"{root}/site/torch_npu (2.13.0+p6.k1a2b3c4d) wins, through entry 1 of 1 of PYTHONPATH; it hides "
        f"{planted.site}/torch_npu (2.13.0) (site-packages)"
    )


def test_an_active_overlay_that_stands_further_back(planted: Planted) -> None:
    plant_npu(planted)
    root = overlay(planted)
    planted.environ["PYTHONPATH"] = f"{planted.site}:{root / 'site'}"

    assert named(look(planted), "path.torch_npu") == (
        "fail", f"{planted.site}/torch_npu (2.13.0) wins, through entry 1 of 2 of PYTHONPATH; it hides "
        f"{root}/site/torch_npu (2.13.0+p6.k1a2b3c4d) (entry 2 of 2 of PYTHONPATH); the active overlay {root} has it "
        "too, further back",
        f"source {root}/env.sh again, after what sets PYTHONPATH",
    )  # fmt: skip


def test_an_active_overlay_that_somebody_took_off_the_path(planted: Planted) -> None:
    plant_npu(planted)
    root = overlay(planted)

    assert named(look(planted), "path.torch_npu") == (
        "fail", f"{planted.site}/torch_npu (2.13.0) wins, through site-packages; the active overlay {root} has it too, "
        "and is not on the path",
        f"source {root}/env.sh again, after what sets PYTHONPATH",
    )  # fmt: skip


@pytest.mark.parametrize("is_on_path", [True, False], ids=["overlay on the path", "overlay off the path"])
def test_a_folder_of_the_working_directory_wins_over_an_active_overlay(planted: Planted, is_on_path: bool) -> None:
    plant_npu(planted)
    root = overlay(planted)
    (planted.cwd / "torch_npu").mkdir()
    (planted.cwd / "torch_npu" / "__init__.py").touch()
    if is_on_path:
        planted.environ["PYTHONPATH"] = str(root / "site")

    again = "" if is_on_path else f", and source {root}/env.sh again, after what sets PYTHONPATH"
    grade, _, do = named(look(planted), "path.torch_npu")
    assert (grade, do) == ("fail", f"start from another folder than {planted.cwd}{again}")


@pytest.mark.parametrize("first", ["overlay", "system"])
def test_an_overlay_that_was_put_on_pythonpath_by_hand(planted: Planted, first: str) -> None:
    plant_npu(planted)
    root = overlay(planted)
    (root / "manifest.json").touch()
    del planted.environ["TOOLKIT_OVERLAY"]
    entries = [str(root / "site"), str(planted.site)]
    planted.environ["PYTHONPATH"] = ":".join(entries if first == "overlay" else entries[::-1])

    grade, seen, do = named(look(planted), "path.torch_npu")

    assert grade == ("ok" if first == "overlay" else "fail")
    assert seen.endswith(f"; the overlay {root} has it too, further back") == (first == "system")
    assert do == ("" if first == "overlay" else f"source {root}/env.sh again, after what sets PYTHONPATH")


# --- the working directory ---------------------------------------------------------------------------------------


def test_a_source_tree_in_the_working_directory(planted: Planted) -> None:
    plant_npu(planted)
    plant_torch_npu(planted.cwd, "2.14.0")

    assert named(look(planted), "path.torch_npu") == (
        "warn", f"{planted.cwd}/torch_npu (2.14.0) wins, through the working directory; it hides "
        f"{planted.site}/torch_npu (2.13.0) (site-packages)",
        "start from another folder, or say that it is meant: put the folder first on PYTHONPATH",
    )  # fmt: skip


def test_one_that_pythonpath_names_first_is_meant(planted: Planted) -> None:
    plant_npu(planted)
    install(planted.site, "torchtitan", "0.3.0", {"torchtitan/__init__.py": ""})
    install(planted.cwd, "torchtitan", "0.3.1", {"torchtitan/__init__.py": ""})
    planted.environ["PYTHONPATH"] = str(planted.cwd)

    observations = look(planted)

    assert grades(observations) == {}
    assert named(observations, "path.torchtitan")[1] == (
        f"{planted.cwd}/torchtitan (0.3.1) wins, through entry 1 of 1 of PYTHONPATH; it hides "
        f"{planted.site}/torchtitan (0.3.0) (site-packages)"
    )


def test_one_that_hides_nothing_is_how_it_is_used(planted: Planted) -> None:
    install(planted.cwd, "torchtitan", "0.3.1", {"torchtitan/__init__.py": ""})

    assert named(look(planted), "path.torchtitan") == (
        "ok", f"{planted.cwd}/torchtitan (0.3.1) wins, through the working directory", "",
    )  # fmt: skip


def test_a_folder_without_init_beside_an_installed_package_loses(planted: Planted) -> None:
    plant_npu(planted)
    (planted.cwd / "torch_npu").mkdir()

    assert grades(look(planted)) == {}


def test_a_folder_without_init_alone_wins(planted: Planted) -> None:
    (planted.cwd / "torchtitan" / "docs").mkdir(parents=True)

    assert named(look(planted), "path.torchtitan") == (
        "fail", f"{planted.cwd}/torchtitan wins, a folder without __init__.py: an empty namespace package, found "
        "through the working directory",
        f"start from another folder than {planted.cwd}",
    )  # fmt: skip


def test_a_folder_without_init_that_an_uninstall_left(planted: Planted) -> None:
    (planted.site / "torch_npu").mkdir()

    assert named(look(planted), "path.torch_npu")[2] == (
        f"install what it is of again, or remove it: rm -r {planted.site / 'torch_npu'}"
    )


def test_a_folder_without_init_on_pythonpath(planted: Planted) -> None:
    (planted.root / "extra" / "torchtitan").mkdir(parents=True)
    planted.environ["PYTHONPATH"] = str(planted.root / "extra")

    assert named(look(planted), "path.torchtitan")[2] == f"take {planted.root / 'extra'} off the path"


# --- editable installs and .pth files ----------------------------------------------------------------------------


def test_an_editable_install_by_a_finder(planted: Planted) -> None:
    source = planted.root / "source" / "torchtitan"
    install(source.parent, "source", "1", {"torchtitan/__init__.py": "__version__ = '0.4'\n"})
    install_editable(planted.site, "torchtitan", {"torchtitan": str(source)})

    observations = look(planted)

    assert grades(observations) == {}
    assert named(observations, "path.finders")[1] == f"editable finders bring torchtitan in {source}"
    assert named(observations, "path.torchtitan")[1] == (
        f"{source} (0.4) wins, through the finder __editable___torchtitan_1_0_finder._EditableFinder"
    )


def test_a_folder_without_init_hides_an_editable_install(planted: Planted) -> None:
    source = planted.root / "source" / "torchtitan"
    install(source.parent, "source", "1", {"torchtitan/__init__.py": ""})
    install_editable(planted.site, "torchtitan", {"torchtitan": str(source)})
    (planted.cwd / "torchtitan").mkdir()

    assert named(look(planted), "path.torchtitan") == (
        "fail", f"{planted.cwd}/torchtitan wins, a folder without __init__.py: an empty namespace package, found "
        "through the working directory; the editable install by __editable___torchtitan_1_0_finder.py is hidden by it",
        f"start from another folder than {planted.cwd}",
    )  # fmt: skip


def test_an_editable_install_whose_source_is_gone(planted: Planted) -> None:
    file = install_editable(planted.site, "torchtitan_npu", {"torchtitan_npu": "/gone/torchtitan_npu"})

    assert named(look(planted), "path.finders") == (
        "fail", f"the editable install of torchtitan_npu is at /gone/torchtitan_npu, which is not there ({file})",
        "install torchtitan_npu again from where its source is now, or uninstall it",
    )  # fmt: skip


def test_an_editable_install_by_a_pth_file(planted: Planted) -> None:
    source = planted.root / "source"
    install(source, "source", "1", {"torchtitan/__init__.py": "__version__ = '0.4'\n"})
    (planted.site / "_titan.pth").write_text(f"# a note\n{source}\n", "utf-8")

    observations = look(planted)

    assert grades(observations) == {}
    assert named(observations, "path.pth")[1] == "1 folder added by .pth files"
    assert named(observations, "path.torchtitan")[1] == (
        f"{source}/torchtitan (0.4) wins, through _titan.pth in {planted.site}"
    )


def test_a_pth_file_whose_folder_is_gone(planted: Planted) -> None:
    (planted.site / "_titan.pth").write_text("/gone/source\n", "utf-8")

    assert named(look(planted), "path.pth") == (
        "warn", f"_titan.pth names /gone/source: not there (in {planted.site})",
        "install what it is for again, or uninstall it",
    )  # fmt: skip


def test_a_pth_file_whose_code_fails(planted: Planted) -> None:
    file = planted.site / "__editable__.titan-1.0.pth"
    file.write_text("import __editable___titan_1_0_finder\n", "utf-8")

    assert named(look(planted), "path.pth") == (
        "warn", f"fails at each start: line 1 of {file}: ModuleNotFoundError: No module named "
        "'__editable___titan_1_0_finder'",
        "install what it is for again, or remove the file",
    )  # fmt: skip


def test_a_finder_that_fails(planted: Planted) -> None:
    (planted.site / "broken.py").write_text(
        "import sys\n"
        "class Broken:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'torch_npu': raise RuntimeError('lost its way')\n"
        "sys.meta_path.insert(0, Broken())\n",
        "utf-8",
    )
    (planted.site / "broken.pth").write_text("import broken\n", "utf-8")

    assert named(look(planted), "path.torch_npu") == (
        "fail", "broken.Broken fails: RuntimeError: lost its way",
        "uninstall what brought the finder, or install it again",
    )  # fmt: skip


# --- the user's site-packages ------------------------------------------------------------------------------------


def test_a_virtual_environment_that_sees_the_users_site_packages(planted: Planted) -> None:
    config = planted.root / "venv" / "pyvenv.cfg"
    config.write_text(config.read_text("utf-8").replace("site-packages = false", "site-packages = true"), "utf-8")
    user = planted.root / ".local" / "lib" / planted.site.parent.name / "site-packages"
    plant_torch_npu(user, "2.12.0.post3")

    observations = look(planted)
    planted.environ["PYTHONNOUSERSITE"] = "1"

    assert named(observations, "path.user_site") == (
        "warn", f"torch_npu would come from {user}, not from the virtual environment",
        "export PYTHONNOUSERSITE=1, or uninstall there",
    )  # fmt: skip
    assert named(observations, "path.torch_npu") == (
        "ok", f"{user}/torch_npu (2.12.0.post3) wins, through the user's site-packages", "",
    )  # fmt: skip
    assert grades(look(planted)) == {}


def test_the_users_site_packages_hide_those_of_the_machine(planted: Planted) -> None:
    """Which a start of the machine's own Python shows only; so its survey is written down here."""
    plant_npu(planted)
    user = planted.root / ".local"
    plant_torch_npu(user, "2.12.0.post3")
    survey = planted.survey()
    hidden = survey.winners["torch_npu"]
    own = replace(hidden, place=user / "torch_npu", kind="user", why="the user's site-packages")
    survey = replace(
        survey, prefix=planted.root, user_site=user, winners={**survey.winners, "torch_npu": own},
        others={**survey.others, "torch_npu": (hidden,)},
    )  # fmt: skip

    observations = examine_path(planted.asked(survey), survey)

    assert grades(observations) == {"path.torch_npu": "warn"}
    assert named(observations, "path.user_site")[1] == f"torch_npu comes from {user}"
    assert named(observations, "path.torch_npu") == (
        "warn", f"{user}/torch_npu (2.12.0.post3) wins, through the user's site-packages; it hides "
        f"{planted.site}/torch_npu (2.13.0) (site-packages)",
        "export PYTHONNOUSERSITE=1, or uninstall there",
    )  # fmt: skip


# --- what the recipe brings --------------------------------------------------------------------------------------


def test_a_component_of_the_recipe_that_is_not_found(planted: Planted) -> None:
    base = Base(kind="installed", package="cann_ops_transformer")
    part = Component(name="cann_ops_transformer", import_name="cann_ops_transformer", base=base)

    assert named(look(planted, replace(make_recipe(), components=(part,))), "path.cann_ops_transformer") == (
        "warn", "not found; the recipe mine brings it, in an overlay",
        "activate the overlay: source its env.sh, or `toolkit run --recipe mine -- CMD`",
    )  # fmt: skip
