"""Who owns `triton/`: one distribution, two, in either order, and what their removal leaves."""

from __future__ import annotations

import shutil

import pytest

from tests.doctor_sites import Planted, grades, install, named, plant_npu, plant_torch, plant_torch_npu, plant_triton
from toolkit.doctor.tritons import AGAIN, examine_triton
from toolkit.model import Observation


def look(planted: Planted) -> list[Observation]:
    survey = planted.survey()
    return examine_triton(planted.asked(survey), survey)


def test_a_sound_environment_has_no_doubt(planted: Planted) -> None:
    plant_npu(planted)

    assert [(one.name, one.grade, one.seen) for one in look(planted)] == [
        ("triton.owner", "ok", f"triton/ in {planted.site} is triton-ascend 3.2.0's alone"),
        ("triton.whole", "ok", "all 4 files are as installed"),
        ("triton.backend", "ok", "has the Ascend backend"),
    ]


def test_triton_after_triton_ascend_takes_its_files(planted: Planted) -> None:
    plant_npu(planted)
    plant_triton(planted.site, "triton", "3.4.0")

    observations = look(planted)

    assert named(observations, "triton.owner") == (
        "fail", "triton 3.4.0 and triton-ascend 3.2.0 both own triton/; the files are triton 3.4.0's; of triton-ascend "
        "3.2.0: of 4 files 3 changed (such as triton/__init__.py)",
        AGAIN,
    )  # fmt: skip


def test_triton_ascend_after_triton_holds_until_the_next_install(planted: Planted) -> None:
    plant_triton(planted.site, "triton", "3.4.0")
    plant_npu(planted)

    observations = look(planted)

    assert grades(observations) == {"triton.owner": "warn"}
    assert named(observations, "triton.owner") == (
        "warn", "triton 3.4.0 and triton-ascend 3.2.0 both own triton/; the files are triton-ascend's, whole, until "
        "the other is removed or updated",
        AGAIN,
    )  # fmt: skip


def test_a_mixture_of_both(planted: Planted) -> None:
    plant_triton(planted.site, "triton", "3.4.0")
    plant_npu(planted)
    (planted.site / "triton" / "__init__.py").write_text("__version__ = '3.4.0'  # of triton\n", "utf-8")

    assert named(look(planted), "triton.owner") == (
        "fail", "triton 3.4.0 and triton-ascend 3.2.0 both own triton/; a mixture: of triton 3.4.0 of 4 files 2 "
        "changed (such as triton/backends/__init__.py); of triton-ascend 3.2.0 of 4 files 1 changed (such as "
        "triton/__init__.py)",
        AGAIN,
    )  # fmt: skip


def test_with_dvm_the_same_is_a_doubt_only(planted: Planted) -> None:
    plant_npu(planted)
    plant_triton(planted.site, "triton", "3.4.0")
    planted.environ["TORCHINDUCTOR_NPU_BACKEND"] = "dvm"

    assert grades(look(planted)) == {"triton.owner": "warn"}


def test_what_the_removal_of_the_other_leaves(planted: Planted) -> None:
    plant_triton(planted.site, "triton", "3.4.0")
    plant_npu(planted)
    shutil.rmtree(planted.site / "triton-3.4.0.dist-info")
    (planted.site / "triton" / "backends" / "__init__.py").unlink()

    assert named(look(planted), "triton.whole") == (
        "fail", "triton-ascend 3.2.0: of 4 files 1 missing (such as triton/backends/__init__.py): another "
        "distribution's install or removal went over it",
        "pip install --force-reinstall --no-deps triton-ascend==3.2.0",
    )  # fmt: skip


def test_the_removal_of_the_other_takes_the_files_of_both(planted: Planted) -> None:
    """As `pip uninstall triton` does: what is left is a folder without `__init__.py`."""
    plant_triton(planted.site, "triton", "3.2.0")
    plant_npu(planted)
    shutil.rmtree(planted.site / "triton-3.2.0.dist-info")
    (planted.site / "triton" / "__init__.py").unlink()
    (planted.site / "triton" / "backends" / "__init__.py").unlink()

    assert named(look(planted), "triton.whole") == (
        "fail", "triton-ascend 3.2.0: of 4 files 2 missing (such as triton/__init__.py): another distribution's "
        "install or removal went over it",
        "pip install --force-reinstall --no-deps triton-ascend==3.2.0",
    )  # fmt: skip


def test_a_triton_without_the_ascend_backend(planted: Planted) -> None:
    plant_torch(planted.site)
    plant_torch_npu(planted.site)
    plant_triton(planted.site, "triton", "3.4.0")

    observations = look(planted)

    assert grades(observations) == {"triton.backend": "fail"}
    assert named(observations, "triton.backend") == (
        "fail", f"{planted.site / 'triton'}/backends has no ascend: 0 active drivers on an NPU", AGAIN,
    )  # fmt: skip


def test_a_machine_for_cuda_is_left_alone(planted: Planted) -> None:
    plant_torch(planted.site)
    plant_triton(planted.site, "triton", "3.4.0")

    assert grades(look(planted)) == {}


@pytest.mark.parametrize(
    ("backend", "grade"),
    [("", "warn"), ("default", "warn"), ("dvm", "ok"), ("mlir", "ok")],
)
def test_no_triton(planted: Planted, backend: str, grade: str) -> None:
    plant_torch(planted.site)
    plant_torch_npu(planted.site)
    planted.environ["TORCHINDUCTOR_NPU_BACKEND"] = backend

    assert [(one.name, one.grade) for one in look(planted)] == [("triton.owner", grade)]


def test_a_folder_that_nothing_installed(planted: Planted) -> None:
    plant_npu(planted)
    source = planted.root / "source"
    install(source, "aside", "1", {"triton/__init__.py": ""})
    planted.environ["PYTHONPATH"] = str(source)

    assert named(look(planted), "triton.owner") == (
        "warn", f"{source / 'triton'} belongs to no installed distribution (entry 1 of 1 of PYTHONPATH)",
        "take it off the path unless it is meant; pip install triton-ascend for the NPU's",
    )  # fmt: skip
