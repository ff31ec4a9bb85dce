"""A command's words: what stands in front of it, its launcher, its run script."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from toolkit.launch import Launch, read_command

RUN_SCRIPT = """\
#!/usr/bin/env bash
set -e
# Eight cards, unless the caller says otherwise.
NGPU=${NGPU:-"8"}
export LOG_RANK=${LOG_RANK:-0}
MODULE=${MODULE:-small}
MODE=${MODE:-""}
if [ -n "$MODE" ]; then
    python3 -m trainer.main --module ${MODULE} "$@" --comm.mode=${MODE} --training.steps 1
else
    PYTORCH_ALLOC_CONF="expandable_segments:True" \\
    torchrun --nproc_per_node=${NGPU} --rdzv-backend c10d --standalone --tee 3 \\
        -m trainer.main --module ${MODULE} "$@"
fi
"""


def read(line: str, **environ: str) -> Launch:
    return read_command(shlex.split(line), environ=environ)


@pytest.mark.parametrize(
    ("line", "program", "target"),
    [
        ("./run_train.sh --training.steps=10", "./run_train.sh", ""),
        ("bash run_train.sh --training.steps=10", "run_train.sh", ""),
        ("bash -eu -o pipefail ./run_train.sh --training.steps=10", "./run_train.sh", ""),
        ("torchrun --nproc_per_node=8 --standalone train.py --training.steps=10", "torchrun", "train.py"),
        ("torchrun --standalone --nproc-per-node 8 -m trainer.main --training.steps=10", "torchrun", "trainer.main"),
        ("python -m torch.distributed.run --tee 3 train.py --training.steps=10", "python", "train.py"),
        ("/opt/venv/bin/python3.11 -u -W ignore train.py --training.steps=10", "/opt/venv/bin/python3.11", "train.py"),
        ("python3 -m trainer.main --training.steps=10", "python3", "trainer.main"),
        ("nohup nice -n 5 python train.py --training.steps=10", "python", "train.py"),
        ("srun -N 2 --ntasks=16 --gres npu:8 python train.py --training.steps=10", "python", "train.py"),
        ("timeout -s KILL 1h taskset -c 0-7 python train.py --training.steps=10", "python", "train.py"),
        ("env -u CI A=1 nohup ./run_train.sh --training.steps=10", "./run_train.sh", ""),
        ("bash -c 'A=1 exec torchrun train.py --training.steps=10'", "torchrun", "train.py"),
        ("toolkit run --host -- python train.py --training.steps=10", "python", "train.py"),
    ],
)
def test_the_training_program_is_found_behind_what_stands_before_it(line: str, program: str, target: str) -> None:
    launch = read(line)

    assert (launch.program, launch.target) == (program, target)
    assert launch.option("training.steps") == "10"
    assert list(launch.options) == ["training.steps"]


def test_variables_before_the_command_win_and_stay_apart() -> None:
    launch = read("A=1 B= env C=3 -u D ./run.sh", A="0", D="4", E="5")

    assert launch.environ == {"A": "1", "B": "", "C": "3", "E": "5"}
    assert launch.own == {"A": "1", "B": "", "C": "3"}
    assert launch.argv == ("env", "C=3", "-u", "D", "./run.sh")
    assert launch.variable("D") == ""


def test_an_empty_environment_is_known_to_be_empty() -> None:
    launch = read_command(["env", "-i", "A=1", "python", "train.py"])

    assert launch.variable("A") == "1"
    assert launch.variable("TORCHINDUCTOR_NPU_BACKEND") == ""


def test_without_an_environment_a_variable_is_unknown() -> None:
    launch = read_command(["A=1", "python", "train.py"])

    assert launch.variable("A") == "1"
    assert launch.variable("TORCHINDUCTOR_NPU_BACKEND") is None


def test_a_run_script_is_read_for_what_it_sets_and_passes_on(tmp_path: Path) -> None:
    (tmp_path / "run_train.sh").write_text(RUN_SCRIPT)
    words = ["NGPU=4", "./run_train.sh", "--training.steps=10", "--compile.enable"]
    launch = read_command(words, environ={"HOME": "/home/me"}, folder=tmp_path)

    assert launch.target == "trainer.main"
    assert launch.script == {"NGPU": "4", "LOG_RANK": "0", "MODULE": "small", "MODE": ""}
    assert launch.script_path == str(tmp_path / "run_train.sh")
    assert launch.launcher["nproc_per_node"].value == "4"
    assert launch.variable("PYTORCH_ALLOC_CONF") == "expandable_segments:True"
    assert launch.variable("MODULE") == ""  # It is not exported.
    assert {name: option.value for name, option in launch.options.items()} == {
        "module": "small", "training.steps": "10", "compile.enable": "true",
    }  # fmt: skip
    assert launch.own == {"NGPU": "4"}
    assert launch.argv == tuple(words[1:])
    assert launch.passes_on is True


def test_a_run_script_takes_the_branch_that_its_variables_choose(tmp_path: Path) -> None:
    (tmp_path / "run_train.sh").write_text(RUN_SCRIPT)
    launch = read_command(
        ["MODE=dry", "bash", "run_train.sh", "--training.steps=10"], environ={}, folder=tmp_path
    )  # fmt: skip

    assert launch.launcher == {}
    assert launch.option("training.steps") == "1"
    assert launch.options["training.steps"].earlier == ("10",)


def test_a_run_script_that_keeps_its_arguments_is_told(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("torchrun -m trainer.main --training.steps 5\n")
    launch = read_command(["sh", "run.sh", "--compile.enable"], environ={}, folder=tmp_path)

    assert launch.passes_on is False
    assert launch.option("compile.enable") == ""


def test_a_run_script_that_takes_its_arguments_apart_is_taken_to_pass_them_on(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(
        "A=()\nwhile [ $# -gt 0 ]; do\n  case $1 in\n    --gpus) N=$2; shift 2 ;;\n    *) A+=($1); shift ;;\n  esac\n"
        'done\ntorchrun -m trainer.main --training.steps 5 "${A[@]}"\n'
    )
    launch = read_command(["sh", "run.sh", "--compile.enable"], environ={}, folder=tmp_path)

    assert (launch.passes_on, launch.is_open) == (None, True)
    assert (launch.option("compile.enable"), launch.option("training.steps")) == ("true", "5")
    assert launch.option("training.dtype") is None


@pytest.mark.parametrize("content", [b"#!/usr/bin/perl\nprint 1", b"\x7fELF\0\0", b"'never closed"])
def test_what_is_no_shell_script_is_not_read(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_bytes(content)
    launch = read_command(["./run.sh", "--compile.enable"], environ={}, folder=tmp_path)

    assert launch.passes_on is None
    assert launch.option("compile.enable") == "true"


def test_scripts_that_call_each_other_for_ever_come_to_an_end(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text('exec bash run.sh "$@"\n')
    launch = read_command(["./run.sh", "--compile.enable"], environ={}, folder=tmp_path)

    assert launch.option("compile.enable") == "true"


def test_no_words_are_no_command() -> None:
    launch = read_command([])

    assert (launch.program, launch.argv, launch.options) == ("", (), {})
