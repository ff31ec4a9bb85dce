"""torch and torch_npu: planted versions that do not match, installs that are not whole, and sound ones."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from tests.doctor_sites import (
    COMMIT,
    OTHER_SUFFIX,
    SUFFIX,
    Planted,
    grades,
    install,
    make_recipe,
    named,
    plant_npu,
    plant_torch,
    plant_torch_npu,
)
from toolkit.doctor.torches import examine_torch, match_fault
from toolkit.model import Component, Observation, Recipe
from toolkit.sources.wheel import Base


def look(planted: Planted, wanted: Recipe | None = None) -> list[Observation]:
    survey = planted.survey()
    return examine_torch(planted.asked(survey, wanted), survey)


@pytest.mark.parametrize(
    ("torch", "npu", "requires", "fault"),
    [
        pytest.param("2.13.0+cpu", "2.13.0", ["torch==2.13.0.*"], "", id="the release's own"),
        pytest.param("2.12.0", "2.12.0.post3", ["torch==2.12.0"], "", id="a post release"),
        pytest.param("2.12.0+cpu", "2.12.0.post3", [], "", id="a post release that says nothing"),
        pytest.param("2.12.0", "2.12.0+gitf380339", ["torch"], "", id="built from a commit"),
        pytest.param("2.13.0a0+git1234567", "2.13.0", ["torch==2.13.0.*"], "", id="a torch built from source"),
        pytest.param("2.13.0+cpu", "2.13.0+p6.k1a2b3c4d", ["torch==2.13.0.*"], "", id="patched"),
        pytest.param("2.13.0", "2.13.0", ["torch==2.13.0; extra == 'x'", "numpy"], "", id="only for an extra"),
        pytest.param("2.12.1", "2.12.0.post3", ["torch>=2.12,<2.13"], "", id="a range"),
        pytest.param("2.12.0+cpu", "2.13.0", ["torch==2.13.0.*"],
                     "torch_npu 2.13.0 requires torch==2.13.0.*, found torch 2.12.0+cpu", id="another release"),
        pytest.param("2.13.0", "2.12.0.post3", [],
                     "torch_npu 2.12.0.post3 is for torch 2.12.0, found torch 2.13.0", id="another, not said"),
        pytest.param("2.12.1", "2.12.0.post3", [],
                     "torch_npu 2.12.0.post3 is for torch 2.12.0, found torch 2.12.1", id="another patch release"),
        pytest.param("2.12.0", "2.12.1.post1", ["torch"],
                     "torch_npu 2.12.1.post1 is for torch 2.12.1, found torch 2.12.0", id="any torch, it says"),
        pytest.param("2.13.0+cu130", "2.13.0", ["torch==2.13.0+cpu"],
                     "torch_npu 2.13.0 requires torch==2.13.0+cpu, found torch 2.13.0+cu130", id="another build"),
        pytest.param("", "2.13.0", [], "the versions cannot be compared: Invalid version: ''", id="none"),
    ],
)  # fmt: skip
def test_whether_both_belong_together(torch: str, npu: str, requires: list[str], fault: str) -> None:
    assert match_fault(torch, npu, requires) == fault


def test_a_sound_environment_has_no_doubt(planted: Planted) -> None:
    plant_npu(planted)

    observations = look(planted, make_recipe())

    assert grades(observations) == {}
    assert named(observations, "torch_npu.version") == (
        "ok", f"torch_npu 2.13.0 (commit c798c6532a0d) in {planted.site / 'torch_npu'}", "",
    )  # fmt: skip
    assert named(observations, "torch.match") == ("ok", "torch_npu 2.13.0 is for torch 2.13.0+cpu", "")
    assert named(observations, "torch_npu.whole") == ("ok", "all 6 files are as installed", "")


def test_nothing_is_installed(planted: Planted) -> None:
    assert [(one.name, one.grade, one.seen, one.do) for one in look(planted)] == [
        ("torch.version", "fail", "no torch is found", f"{planted.python} -m pip install torch"),
        (
            "torch_npu.version", "warn", "no torch_npu is found: no overlay is active, and none is installed",
            "build one with `toolkit build`, source its env.sh; or `toolkit run -- CMD`",
        ),
    ]  # fmt: skip


def test_nothing_is_installed_where_there_is_cann(planted: Planted) -> None:
    planted.environ["ASCEND_HOME_PATH"] = "/usr/local/Ascend/cann"

    assert named(look(planted), "torch_npu.version")[0] == "fail"


def test_torch_of_another_release(planted: Planted) -> None:
    plant_torch(planted.site, "2.12.0+cpu")
    plant_torch_npu(planted.site)

    observations = look(planted, make_recipe())

    assert grades(observations) == {"torch.version": "fail", "torch.match": "fail"}
    assert named(observations, "torch.version") == (
        "fail", f"torch 2.12.0+cpu in {planted.site / 'torch'}; the recipe mine is for torch 2.13.0",
        f"name another interpreter with --python, or {planted.python} -m pip install torch==2.13.0",
    )  # fmt: skip
    assert named(observations, "torch.match") == (
        "fail", "torch_npu 2.13.0 requires torch==2.13.0.*, found torch 2.12.0+cpu",
        f"{planted.python} -m pip install 'torch==2.13.0.*', or take the torch_npu of 2.12.0+cpu",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("version", "grade"),
    [("2.12.0.post3", "ok"), ("2.12.0.post3+p6.k1a2b3c4d", "ok"), ("2.12.0", "warn"), ("2.12.0.post2", "warn")],
)
def test_the_release_that_the_recipe_is_for(planted: Planted, version: str, grade: str) -> None:
    plant_torch(planted.site, "2.12.0+cpu")
    plant_torch_npu(planted.site, version, requires=("torch==2.12.0",))
    base = Base(kind="wheel", distribution="torch_npu", version="2.12.0.post3")
    part = Component(name="torch_npu", import_name="torch_npu", base=base)

    observations = look(planted, replace(make_recipe(torch="2.12.0"), components=(part,)))

    assert grades(observations) == ({} if grade == "ok" else {"torch_npu.version": "warn"})
    if grade == "warn":
        assert named(observations, "torch_npu.version") == (
            "warn", f"torch_npu {version} (commit {COMMIT[:12]}) in {planted.site / 'torch_npu'}; the recipe mine is "
            "for 2.12.0.post3",
            "name the recipe that is for it with --recipe, or activate the overlay",
        )  # fmt: skip


@pytest.mark.parametrize(("cann", "grade"), [("", "warn"), ("/usr/local/Ascend/cann", "fail")], ids=["host", "device"])
def test_a_cuda_build(planted: Planted, cann: str, grade: str) -> None:
    plant_torch(planted.site, "2.13.0+cu130", cuda="13.0")
    plant_torch_npu(planted.site)
    planted.environ["ASCEND_HOME_PATH"] = cann

    assert named(look(planted), "torch.build") == (
        grade,
        "torch is a build for CUDA 13.0: torch_npu 2.12.0.post3 and later abort beside it "
        "(Duplicated key 'pinned_reserve_segment_size_mb')",
        "install the CPU build, torch 2.13.0+cpu; `toolkit run --host` works around it",
    )


@pytest.mark.parametrize(
    ("environ", "wanted", "grade", "who"),
    [
        pytest.param({}, None, "warn", "", id="nobody asks"),
        pytest.param({"TORCHINDUCTOR_NPU_BACKEND": "dvm"}, None, "fail", "; TORCHINDUCTOR_NPU_BACKEND is dvm",
                     id="the environment asks"),
        pytest.param({}, make_recipe(torch="2.12.0", env={"TORCHINDUCTOR_NPU_BACKEND": "dvm"}), "fail",
                     "; the recipe mine sets TORCHINDUCTOR_NPU_BACKEND=dvm", id="the recipe asks"),
        pytest.param({"TORCHINDUCTOR_NPU_BACKEND": "mlir"},
                     make_recipe(torch="2.12.0", env={"TORCHINDUCTOR_NPU_BACKEND": "dvm"}), "warn", "",
                     id="the environment asks for another"),
    ],
)  # fmt: skip
def test_a_torch_npu_without_dvm(
    planted: Planted, environ: dict[str, str], wanted: Recipe | None, grade: str, who: str
) -> None:
    plant_torch(planted.site, "2.12.0+cpu")
    plant_torch_npu(planted.site, "2.12.0", requires=("torch==2.12.0",), dvm=False)
    planted.environ.update(environ)

    observations = look(planted, wanted)

    assert grades(observations) == {"torch_npu.dvm": grade}
    assert named(observations, "torch_npu.dvm") == (
        grade, f"torch_npu 2.12.0 has no _inductor/dvm: dvm silently becomes Triton (KeyError: 'r'){who}",
        "take one with DVM: 2.12.0.post3, 2.13.0 or later",
    )  # fmt: skip


def test_files_that_are_edited_in_place(planted: Planted) -> None:
    plant_npu(planted)
    (planted.site / "torch_npu" / "_inductor" / "__init__.py").write_text("patched = True\n", "utf-8")

    assert named(look(planted), "torch_npu.whole") == (
        "warn", "edited in place: of 6 files 1 changed (such as torch_npu/_inductor/__init__.py)",
        "carry the change as a patch in an overlay, and pip install --force-reinstall --no-deps torch_npu==2.13.0",
    )  # fmt: skip


def test_an_edit_of_the_same_length_is_seen(planted: Planted) -> None:
    plant_npu(planted)
    file = planted.site / "torch_npu" / "version.py"
    file.write_text(file.read_text("utf-8").replace("c798", "c799"), "utf-8")

    assert grades(look(planted)) == {"torch_npu.whole": "warn"}


@pytest.mark.parametrize("kind", ["missing", "truncated"])
def test_an_install_that_was_cut_short(planted: Planted, kind: str) -> None:
    plant_npu(planted)
    library = planted.site / "torch_npu" / "lib" / "libtorch_npu.so"
    if kind == "missing":
        library.unlink()
    else:
        library.write_bytes(b"\x7fELF")

    assert named(look(planted), "torch_npu.whole") == (
        "fail", "not as it was installed: of 6 files 1 "
        f"{'missing' if kind == 'missing' else 'changed'} (such as torch_npu/lib/libtorch_npu.so)",
        "pip install --force-reinstall --no-deps torch_npu==2.13.0",
    )  # fmt: skip


@pytest.mark.parametrize("name", ["torch", "torch_npu"])
def test_a_package_of_another_interpreter(planted: Planted, name: str) -> None:
    plant_torch(planted.site, suffix=OTHER_SUFFIX if name == "torch" else SUFFIX)
    plant_torch_npu(planted.site, suffix=OTHER_SUFFIX if name == "torch_npu" else SUFFIX)

    assert named(look(planted), f"{name}.compiled") == (
        "fail", f"{planted.site / name} has _C{OTHER_SUFFIX}, this interpreter loads _C{SUFFIX}",
        f"take {name} out of site-packages, or name the interpreter that it is for with --python",
    )  # fmt: skip


def test_a_source_tree_that_is_not_built(planted: Planted) -> None:
    plant_npu(planted)
    source = planted.cwd / "torch_npu"
    source.mkdir()
    (source / "__init__.py").touch()

    observations = look(planted)

    assert named(observations, "torch_npu.compiled") == (
        "fail", f"{source} has no _C{SUFFIX}: a source tree that is not built, or an install cut short; it is found "
        "through the working directory",
        "start elsewhere, or take it off sys.path",
    )  # fmt: skip


def test_a_source_tree_has_no_version_of_another_place(planted: Planted) -> None:
    plant_npu(planted)
    source = planted.cwd / "torch_npu"
    source.mkdir()
    (source / "__init__.py").touch()

    observations = look(planted)

    assert named(observations, "torch_npu.dvm")[1] == (
        f"torch_npu in {source} has no _inductor/dvm: dvm silently becomes Triton (KeyError: 'r')"
    )
    assert named(observations, "torch_npu.metadata")[1] == (
        f"the import takes {source}, importlib.metadata gives 2.13.0 ({planted.site / 'torch_npu-2.13.0.dist-info'})"
    )
    assert "torch.match" not in {one.name for one in observations}


def test_metadata_of_another_place(planted: Planted) -> None:
    plant_torch(planted.site)
    plant_torch_npu(planted.site, "2.12.0.post3")
    aside = planted.root / "aside"
    plant_torch_npu(aside)
    shutil.rmtree(aside / "torch_npu-2.13.0.dist-info")
    planted.environ["PYTHONPATH"] = str(aside)

    assert named(look(planted), "torch_npu.metadata") == (
        "warn", "the import takes 2.13.0, importlib.metadata gives 2.12.0.post3 "
        f"({planted.site / 'torch_npu-2.12.0.post3.dist-info'})",
        "let one place have both: uninstall the other, or put an overlay first, which has its own metadata",
    )  # fmt: skip


def test_no_metadata_at_all(planted: Planted) -> None:
    plant_npu(planted)
    shutil.rmtree(planted.site / "torch_npu-2.13.0.dist-info")

    assert named(look(planted), "torch_npu.metadata") == (
        "warn", f"{planted.site / 'torch_npu'} has no dist-info: its version and entry points are not found",
        "install torch_npu; where it is a source tree: pip install -e",
    )  # fmt: skip


@pytest.mark.parametrize("version", ["2.12.0.post3", "2.14.0"], ids=["older", "newer"])
def test_metadata_of_two_versions_in_one_place(planted: Planted, version: str) -> None:
    plant_npu(planted)
    install(planted.site, "torch_npu", version, {}, requires=(f"torch=={version[:6]}",))

    observations = look(planted)

    first, second = sorted(f"torch_npu-{one}.dist-info" for one in ("2.13.0", version))
    assert grades(observations) == {"torch_npu.metadata": "warn"}
    assert named(observations, "torch_npu.metadata") == (
        "warn", f"{planted.site} has {first}, {second}: an install that was cut short, and any of them is taken",
        "pip uninstall -y torch_npu until none is left, and install it again",
    )  # fmt: skip


def test_metadata_that_an_interrupted_install_left_is_none(planted: Planted) -> None:
    plant_npu(planted)
    install(planted.site, "torch_npu", "2.12.0", {})
    (planted.site / "torch_npu-2.12.0.dist-info" / "METADATA").write_text("", "utf-8")

    assert grades(look(planted)) == {}
