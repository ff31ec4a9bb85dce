"""What a built wheel says of itself, and what it would bring beside its package."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.wheels import CP311, make_wheel
from toolkit.build.contents import examine_contents
from toolkit.errors import BuildError

PACKAGE = {"part/__init__.py": "", "part/model.pth": "weights"}


def test_what_belongs_to_the_package_is_no_finding(tmp_path: Path) -> None:
    files = {**PACKAGE, "part.libs/a.so": "", "part-1.0.data/scripts/run": "", "part.abi3.so": ""}
    wheel = make_wheel(tmp_path, "part", files=files)

    assert examine_contents(wheel, target=CP311, import_name="part") == ()


def test_what_else_would_be_installed_is_told(tmp_path: Path) -> None:
    files = {**PACKAGE, "torch/__init__.py": "", "six.py": "", "part-1.0.data/purelib/partner/a.py": ""}
    wheel = make_wheel(tmp_path, "part", files=files)

    assert examine_contents(wheel, target=CP311, import_name="part") == (
        f"{wheel.name} also brings partner, six.py, torch beside 'part'",
    )


@pytest.mark.parametrize(
    "name",
    ["evil.pth", "part-1.0.data/purelib/evil.pth", "part-1.0.data/data/lib/python3.11/site-packages/evil.pth"],
)
def test_what_every_start_of_python_runs_is_refused(tmp_path: Path, name: str) -> None:
    wheel = make_wheel(tmp_path, "part", files={**PACKAGE, name: "import part"})

    with pytest.raises(BuildError) as caught:
        examine_contents(wheel, target=CP311, import_name="part")

    assert caught.value.message == f"{wheel.name} brings {name}, which every start of Python would run"


@pytest.mark.parametrize(
    ("file", "message"),
    [
        pytest.param("other-{version}-py3-none-any.whl", "{file} is part {version} by its METADATA, "
                     "expected the same in its name", id="name"),
        pytest.param("part-7.7-py3-none-any.whl", "{file} is part {version} by its METADATA, "
                     "expected the same in its name", id="version"),
        pytest.param("part.whl", "part.whl is not the name of a wheel: ", id="no name"),
        pytest.param("part-{version}-cp312-cp312-linux_x86_64.whl", "{file} is for cp312-cp312-linux_x86_64 by its "
                     "name, expected one for cp311-manylinux_2_28_x86_64", id="interpreter"),
        pytest.param("part-{version}-cp311-cp311-linux_aarch64.whl", "{file} is for cp311-cp311-linux_aarch64 by its "
                     "name, expected one for cp311-manylinux_2_28_x86_64", id="machine"),
        pytest.param("part-{version}-cp311-cp311-musllinux_1_2_x86_64.whl", "{file} is for "
                     "cp311-cp311-musllinux_1_2_x86_64 by its name, expected one for cp311-manylinux_2_28_x86_64",
                     id="C library"),
    ],
)  # fmt: skip
def test_a_name_that_is_not_true_is_refused(tmp_path: Path, file: str, message: str) -> None:
    wheel = make_wheel(tmp_path, "part", files=PACKAGE)
    version = wheel.name.split("-")[1]
    wheel = wheel.rename(tmp_path / file.format(version=version))

    with pytest.raises(BuildError) as caught:
        examine_contents(wheel, target=CP311, import_name="part")

    assert caught.value.message.startswith(message.format(file=wheel.name, version=version))


@pytest.mark.parametrize(
    "tags",
    ["py3-none-any", "cp311-cp311-linux_x86_64", "cp38-abi3-manylinux2014_x86_64", "cp311-cp311-manylinux_2_39_x86_64"],
)
def test_a_wheel_of_the_targets_interpreter_and_machine_is_taken(tmp_path: Path, tags: str) -> None:
    wheel = make_wheel(tmp_path, "part", files=PACKAGE)
    wheel = wheel.rename(tmp_path / f"part-{wheel.name.split('-')[1]}-{tags}.whl")

    assert examine_contents(wheel, target=CP311, import_name="part") == ()


def test_tags_inside_that_are_for_another_interpreter_are_refused(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "part", files=PACKAGE, tag="cp312-cp312-linux_x86_64")
    wheel = wheel.rename(tmp_path / "part-1.0-cp311-cp311-linux_x86_64.whl")

    with pytest.raises(
        BuildError, match=r"\.whl is for cp312-cp312-linux_x86_64 by its WHEEL, expected one for cp311-"
    ):
        examine_contents(wheel, target=CP311, import_name="part")


def test_a_wheel_without_the_package_is_refused(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "part", files={"partner/__init__.py": ""})

    with pytest.raises(BuildError, match=rf"^{wheel.name} has no package 'part'$"):
        examine_contents(wheel, target=CP311, import_name="part")
