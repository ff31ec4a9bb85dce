"""What the target is, against what the overlay was built for."""

import platform
import sys
from collections.abc import Callable
from typing import Any

import pytest

from verify.checks.contract import compare, describe_interpreter

FACTS = {
    "python_tag": "cp311", "machine": "x86_64", "libc": "2.28", "torch": "2.13.0+cpu", "devices": 1,
    "soc": "Ascend910B3", "cann": "9.1.0.B2",
}  # fmt: skip
EXPECT = {
    "python_tag": "cp311", "platform": "manylinux_2_28_x86_64", "torch": "2.13.0", "cann": "9.1",
    "soc": ["Ascend910B3", "Ascend910_9391"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("facts", "expect", "differences"),
    [
        pytest.param({}, {}, [], id="as expected"),
        pytest.param({"torch": "2.13.0"}, {"torch": "2.13.0+cpu"}, [], id="local version of torch does not count"),
        pytest.param({"torch": "2.13.1"}, {}, ["torch is 2.13.1, expected 2.13.0"], id="torch"),
        pytest.param({"python_tag": "cp312"}, {}, ["Python is cp312, expected cp311"], id="Python"),
        pytest.param({"machine": "aarch64"}, {}, ["the machine is aarch64, expected x86_64"], id="machine"),
        pytest.param({"libc": "2.17"}, {}, ["glibc is 2.17, expected 2.28 or later"], id="old glibc"),
        pytest.param({"libc": ""}, {}, ["glibc is not there, expected 2.28 or later"], id="no glibc"),
        pytest.param({"libc": "2.100"}, {}, [], id="glibc compared by numbers"),
        pytest.param({}, {"platform": "linux_x86_64"}, [], id="platform without a C library"),
        pytest.param({"cann": "9.10.0"}, {}, ["CANN is 9.10.0, expected 9.1"], id="prefix ends at a part"),
        pytest.param({"cann": "9"}, {}, ["CANN is 9, expected 9.1"], id="CANN shorter than expected"),
        pytest.param({"cann": ""}, {}, ["CANN is not there, expected 9.1"], id="no CANN"),
        pytest.param({"cann": "8.3.RC1.alpha002"}, {"cann": "8.3.rc1"}, [], id="CANN with letters"),
        pytest.param({"cann": ""}, {"cann": None}, [], id="no CANN demanded"),
        pytest.param(
            {"soc": "Ascend310P3"}, {}, ["the SoC is Ascend310P3, expected Ascend910B3 or Ascend910_9391"], id="SoC"
        ),
        pytest.param({"soc": "Ascend310P3"}, {"soc": []}, [], id="no SoC demanded"),
        pytest.param(
            {"devices": 0, "soc": None}, {"soc": []}, ["no NPU is visible, expected at least 1"], id="no device"
        ),
        pytest.param(
            {"python_tag": "cp310", "machine": "aarch64", "torch": "2.12.0", "cann": "8.0"},
            {},
            [
                "Python is cp310, expected cp311",
                "the machine is aarch64, expected x86_64",
                "torch is 2.12.0, expected 2.13.0",
                "CANN is 8.0, expected 9.1",
            ],
            id="all at once",
        ),
    ],
)
def test_each_difference_is_a_sentence(facts: dict[str, Any], expect: dict[str, Any], differences: list[str]) -> None:
    assert list(compare({**FACTS, **facts}, {**EXPECT, **expect}, on_device=True)) == differences


def test_on_the_host_the_made_up_device_is_not_judged() -> None:
    facts = {**FACTS, "soc": "made up", "devices": 0, "cann": ""}

    assert list(compare(facts, EXPECT, on_device=False)) == []


def test_the_interpreter_describes_itself() -> None:
    facts = describe_interpreter()

    assert facts["python_tag"] == f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert facts["machine"] == platform.machine()


def test_the_check_asks_the_running_interpreter_and_torch(run_check: Callable[..., dict[str, Any]]) -> None:
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    expect = {"python_tag": tag, "platform": f"linux_{platform.machine()}", "torch": "2.14.0"}

    record = run_check("contract", expect=expect)

    assert (record["status"], record["detail"]) == ("fail", "torch is 2.13.0+cpu, expected 2.14.0")
    assert record["evidence"]["facts"]["soc"] == "Ascend910B3"
