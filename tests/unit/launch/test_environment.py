"""Environments as tools print and keep them."""

from __future__ import annotations

import json
import subprocess

import pytest

from toolkit.errors import UsageError
from toolkit.launch import read_environment_text

EXPECTED = {"A": "1", "TORCHINDUCTOR_NPU_BACKEND": "dvm", "PATH": "/a:/b", "TWO": "x\ny", "EMPTY": ""}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("A=1\nTORCHINDUCTOR_NPU_BACKEND=dvm\nPATH=/a:/b\nTWO=x\ny\nEMPTY=\n", id="env"),
        pytest.param("A=1\0TORCHINDUCTOR_NPU_BACKEND=dvm\0PATH=/a:/b\0TWO=x\ny\0EMPTY=\0", id="env -0"),
        pytest.param(
            'declare -x A="1"\ndeclare -x OLDPWD\ndeclare -x TORCHINDUCTOR_NPU_BACKEND="dvm"\ndeclare -x PATH="/a:/b"\n'
            'declare -x TWO="x\ny"\ndeclare -x EMPTY=""\n', id="export -p of bash"),
        pytest.param("export A='1'\nexport TORCHINDUCTOR_NPU_BACKEND='dvm'\nexport PATH='/a:/b'\nexport TWO='x\ny'\n"
                     "export EMPTY=''\n", id="export -p of sh"),
        pytest.param("# made by hand\n\nA=1\nTORCHINDUCTOR_NPU_BACKEND='dvm'\nPATH=\"/a:/b\"\nHOME\nTWO=\"x\\ny\"\n"
                     "EMPTY=\n", id="an env file"),
        pytest.param(json.dumps(EXPECTED), id="JSON"),
        pytest.param(json.dumps([f"{name}={value}" for name, value in EXPECTED.items()]), id="a list in JSON"),
        pytest.param(json.dumps([{"name": name, "value": value} for name, value in EXPECTED.items()]), id="a pod's"),
        pytest.param(
            json.dumps({"recipe": "r", "set": {k: v for k, v in EXPECTED.items() if k != "PATH"},
                        "prepend": {"PATH": "/a:/b"}}), id="toolkit env"),
    ],
)  # fmt: skip
def test_an_environment_is_read(text: str) -> None:
    assert read_environment_text(text) == (EXPECTED | {"TWO": "x\ny"})


def test_a_function_of_bash_is_no_variable_and_ends_the_one_before() -> None:
    assert read_environment_text("A=1\nBASH_FUNC_f%%=() {  B=2\n}\nC=3\n") == {"A": "1", "C": "3"}


@pytest.mark.parametrize("value", ['a "b" $c `d`', "a\\nb", "a\nb\tc", "it's", "", "x=y", "'q'", "trailing "])
def test_what_bash_exports_comes_back_as_it_was(value: str) -> None:
    done = subprocess.run(["bash", "-c", "export -p"], env={"A": value, "B": "2"}, capture_output=True, check=True)
    found = read_environment_text(done.stdout.decode())

    assert (found["A"], found["B"]) == (value, "2")


def test_nothing_is_nothing() -> None:
    assert read_environment_text("") == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"A": ', "the environment looks like JSON and is not: Expecting value: line 1 column 7 (char 6)"),
        ('{"A": 1}', "the environment's 'A' is no text"),
    ],
)
def test_json_that_is_no_environment_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_environment_text(text)
    assert refused.value.message == message
