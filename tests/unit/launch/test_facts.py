"""The facts of a launch: known ones by their names, the others absent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from toolkit.launch import launch_facts, read_command, read_command_text


def test_a_whole_command_gives_every_fact() -> None:
    words = [
        "NGPU=2",
        "TORCHINDUCTOR_NPU_BACKEND=dvm",
        "PYTORCH_NPU_ALLOC_CONF=a",
        "PYTORCH_ALLOC_CONF=b",
        "MODULE=m",
        "CONFIG=c",
        "./run.sh",
        "--training.dtype=bfloat16",
        "--training.steps=10",
        "--model.attention-backend=vendor",
        "--compile.enable",
        "--checkpoint.no-enable",
        "--debug.deterministic",
        "--debug.seed=1",
        "--dump_folder=/o",
        "--training.seq_len=64",
    ]
    assert launch_facts(read_command(words, environ={})) == {
        "backend": "dvm", "extensions_dir": "", "cache_dir": "", "pythonpath": "", "autoload": "",
        "visible_devices": "", "overlay": "", "cann": "", "max_jobs": "", "launch_blocking": "", "alloc_conf": "a",
        "dtype": "bfloat16", "attention_backend": "vendor", "steps": "10", "seed": "1", "dump_folder": "/o",
        "global_batch_size": "", "local_batch_size": "", "seq_len": "64", "compile_backend": "", "load_path": "",
        "dataset_path": "", "shard_degree": "", "expert_degree": "", "compile": "true", "checkpoint": "false",
        "deterministic": "true", "module": "m", "config": "c", "ngpu": "2", "program": "./run.sh", "target": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "false"),
        (["--debug.deterministic"], "true"),
        (["--debug.no-deterministic"], "false"),
        (["--debug.deterministic", "--debug.deterministic_warn_only"], "warn_only"),
        (["--debug.deterministic-warn-only"], "warn_only"),
        (["--debug.deterministic=\0X\0"], None),
    ],
)
def test_determinism_is_one_of_three_or_unknown(words: list[str], expected: str | None) -> None:
    assert launch_facts(read_command(["./run.sh", *words])).get("deterministic") == expected


@pytest.mark.parametrize("written", ['"$@"', "$@", '"$@" --debug.seed=1'], ids=["quoted", "bare", "before others"])
def test_what_a_script_writes_is_known_beside_arguments_that_nobody_sees(written: str) -> None:
    text = f"NGPU=8 torchrun -m trainer --debug.deterministic --model.attention_backend=auto {written}\n"
    found = launch_facts(read_command_text(text))

    assert (found["deterministic"], found["attention_backend"], found["ngpu"]) == ("true", "auto", "8")
    assert not {"compile", "dtype", "steps", "checkpoint"} & found.keys()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--debug.no-deterministic", "false"),
        ("--debug.deterministic_warn_only", "warn_only"),
        ("--debug.deterministic --debug.deterministic_warn_only=$X", None),
        ("--debug.seed=1", None),
    ],
)
def test_determinism_beside_arguments_that_nobody_sees(words: str, expected: str | None) -> None:
    assert launch_facts(read_command_text(f'python -m trainer {words} "$@"')).get("deterministic") == expected


def test_a_configuration_file_may_say_what_the_command_does_not() -> None:
    found = launch_facts(read_command(["./run.sh", "--job.config_file", "a.toml", "--training.steps=10"]))

    assert found == {"steps": "10", "program": "./run.sh", "target": ""}


def test_a_configuration_file_that_is_there_is_read_and_the_command_wins(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(
        '[job]\ndump_folder = "out"\n[training]\ndtype = "float32"\nsteps = 20\n[compile]\nenable = true\n'
    )
    words = ["./run.sh", "--job.config_file", "a.toml", "--training.steps=10"]
    found = launch_facts(read_command(words, folder=tmp_path))

    assert {name: found[name] for name in ("dtype", "steps", "compile", "seed", "dump_folder")} == {
        "dtype": "float32", "steps": "10", "compile": "true", "seed": "", "dump_folder": "out",
    }  # fmt: skip


@pytest.mark.parametrize("content", ["[training", "\xff", "a = 1\n" * 300_000])
def test_a_configuration_file_that_cannot_be_read_says_nothing(content: str, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(content, encoding="latin-1")

    assert "dtype" not in launch_facts(read_command(["./run.sh", "--job.config-file=a.toml"], folder=tmp_path))


def test_without_a_command_and_an_environment_nothing_is_known() -> None:
    assert launch_facts(read_command([])) == {}


def test_reading_a_launch_needs_the_standard_library_alone() -> None:
    code = (
        "import sys; before = set(sys.modules); import toolkit.launch as room; "
        "room.launch_facts(room.read_command_text('A=1 ./run.sh --a.b')); "
        "print({n.partition('.')[0] for n in set(sys.modules) - before} - set(sys.stdlib_module_names))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "{'toolkit'}\n"
