from __future__ import annotations

import pytest

from toolkit.platforms import accepted_platforms, accepts_any, accepts_wheel, python_version, split_platform


def test_a_platform_runs_wheels_for_every_older_glibc_under_both_names() -> None:
    assert accepted_platforms("manylinux_2_18_aarch64") == [
        "manylinux_2_18_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64",
    ]  # fmt: skip


def test_x86_64_goes_back_to_manylinux1() -> None:
    found = accepted_platforms("manylinux_2_28_x86_64")
    assert len(found) == 24 + 3
    assert found[-2:] == ["manylinux_2_5_x86_64", "manylinux1_x86_64"]


@pytest.mark.parametrize(
    "platform", ["linux_x86_64", "manylinux2014_x86_64", "manylinux_2_28_riscv64", "musllinux_1_2_x86_64"]
)
def test_what_is_no_manylinux_tag_is_refused(platform: str) -> None:
    with pytest.raises(ValueError, match=f"^{platform!r} is not a manylinux platform tag for x86_64 or aarch64$"):
        split_platform(platform)


def test_a_tag_names_a_version() -> None:
    assert python_version("cp312") == (3, 12)
    with pytest.raises(ValueError, match=r"^'pp310' is not a CPython 3 tag$"):
        python_version("pp310")


@pytest.mark.parametrize(
    ("file", "fits"),
    [
        pytest.param("a-1.0-cp311-cp311-manylinux_2_28_x86_64.whl", True, id="exact"),
        pytest.param("a-1.0-cp311-cp311-manylinux2014_x86_64.whl", True, id="older platform"),
        pytest.param("a-1.0-cp311-cp311-manylinux_2_5_x86_64.manylinux1_x86_64.whl", True, id="compressed tags"),
        pytest.param("a-1.0-cp39-abi3-manylinux_2_28_x86_64.whl", True, id="stable ABI"),
        pytest.param("a-1.0-py3-none-any.whl", True, id="pure"),
        pytest.param("a-1.0-cp312-cp312-manylinux_2_28_x86_64.whl", False, id="newer Python"),
        pytest.param("a-1.0-cp311-cp311t-manylinux_2_28_x86_64.whl", False, id="free-threaded"),
        pytest.param("a-1.0-cp311-cp311-manylinux_2_34_x86_64.whl", False, id="newer platform"),
        pytest.param("a-1.0-cp311-cp311-manylinux_2_28_aarch64.whl", False, id="other machine"),
        pytest.param("a-1.0-cp311-cp311-musllinux_1_2_x86_64.whl", False, id="musl"),
    ],
)
def test_a_wheels_name_says_whether_it_fits(file: str, fits: bool) -> None:
    assert accepts_wheel(file, python_tag="cp311", platform="manylinux_2_28_x86_64") is fits


def test_one_fitting_tag_is_enough() -> None:
    tags = ["cp310-cp310-linux_x86_64", "cp311-cp311-manylinux_2_28_x86_64"]
    assert accepts_any(tags, python_tag="cp311", platform="manylinux_2_28_x86_64")
    assert not accepts_any([], python_tag="cp311", platform="manylinux_2_28_x86_64")
