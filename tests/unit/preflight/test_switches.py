"""Compile switches, determinism, and options whose value nobody can know."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.preflight.builders import Room, lines
from toolkit.preflight import examine_launch
from toolkit.preflight.options import examine_options
from toolkit.preflight.switches import examine_switches

DVM = "TORCHINDUCTOR_NPU_BACKEND=dvm"


@pytest.mark.parametrize(
    ("line", "compile_line", "backend_line"),
    [
        (f"{DVM} a.sh --compile.enable", ("ok", "--compile.enable"), ("ok", DVM)),
        ("a.sh --compile.enable", ("ok", "--compile.enable"), ("ok", f"{DVM}, from the overlay")),
        (f"PYTHONPATH={{site}} {DVM} a.sh",
         ("fail", f"--compile.enable is not given: {DVM} alone compiles nothing, and every step runs in eager"),
         ("ok", DVM)),
        ("PYTHONPATH={site} a.sh --compile.enable", ("ok", "--compile.enable"),
         ("fail", "TORCHINDUCTOR_NPU_BACKEND is not set: --compile.enable compiles with the default backend, not with "
          "dvm")),
        ("PYTHONPATH={site} a.sh",
         ("fail", "--compile.enable is not given: the model is not compiled, and every step runs in eager"),
         ("fail", "TORCHINDUCTOR_NPU_BACKEND is not set: not dvm")),
        ("TORCHINDUCTOR_NPU_BACKEND=triton a.sh --compile.enable", ("ok", "--compile.enable"),
         ("fail", "TORCHINDUCTOR_NPU_BACKEND=triton, the recipe sample is for dvm")),
    ],
)  # fmt: skip
def test_both_switches_go_together(
    line: str, compile_line: tuple[str, str], backend_line: tuple[str, str], room: Room
) -> None:
    found = examine_switches(room.subject(line))

    assert (lines(found, "compile"), lines(found, "backend")) == ([compile_line], [backend_line])


def test_a_run_script_that_sets_another_backend_is_told(room: Room) -> None:
    (room.folder / "run.sh").write_text('export TORCHINDUCTOR_NPU_BACKEND=triton\npython -m trainer.main "$@"\n')
    found = examine_switches(room.subject(f"{DVM} bash run.sh --compile.enable"))

    assert lines(found, "backend") == [("fail", "TORCHINDUCTOR_NPU_BACKEND=triton, the recipe sample is for dvm")]


def test_the_acceptance_s_backend_counts_where_the_recipe_has_none(room: Room) -> None:
    subject = room.subject("a.sh --compile.enable", environ={"TORCHINDUCTOR_NPU_BACKEND": "dvm"}, env={})

    assert lines(examine_switches(subject), "backend") == [("ok", DVM)]


def test_another_framework_or_part_is_told(room: Room) -> None:
    found = examine_switches(
        room.subject("a.sh --compile.enable --compile.backend=aot_eager --compile.components loss")
    )

    assert lines(found, "backend")[1] == (
        "fail", "--compile.backend=aot_eager, expected inductor, which has the NPU backends",
    )  # fmt: skip
    assert lines(found, "compile")[1] == ("warn", "--compile.components loss: the model itself is not compiled")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", ("ok", "--debug.deterministic is not given")),
        ("--debug.no-deterministic", ("ok", "--debug.no-deterministic")),
        ("--debug.deterministic --model.attention_backend=sdpa",
         ("ok", "--debug.deterministic, which the trainer sets before it compiles")),
        ("--debug.deterministic",
         ("warn", "--debug.deterministic, and the configuration chooses the attention backend")),
        ("--debug.deterministic --model.attention_backend vendor",
         ("fail", "--debug.deterministic with --model.attention_backend vendor: the backward of the vendor's attention "
          "refuses strict determinism")),
        ("--debug.deterministic --debug.deterministic-warn-only --model.attention_backend=sdpa",
         ("fail", "--debug.deterministic-warn-only: operators without a deterministic form run all the same, so "
          "nothing is promised, while DVM takes it for the strict form")),
    ],
)  # fmt: skip
def test_determinism_is_refused_by_some(options: str, expected: tuple[str, str], room: Room) -> None:
    assert lines(examine_switches(room.subject(f"a.sh {options}")), "determinism") == [expected]


# --- options -----------------------------------------------------------------------------------------------------


def test_what_cannot_be_seen_is_no_fault(room: Room) -> None:
    text = 'python -m trainer.main --debug.seed=$RANDOM --training.dtype bfloat16 "$@"\n'
    found = examine_options(room.subject(text, text=True))

    assert lines(found, "dtype") == [("ok", "--training.dtype bfloat16")]
    assert lines(found, "seed") == [("warn", "--debug.seed=${RANDOM}: what that is, only the shell will know")]
    assert lines(found, "steps") == [
        ("warn", "--training.steps is not seen, and there are arguments that cannot be seen"),
    ]  # fmt: skip


def test_a_configuration_file_may_say_the_rest(room: Room) -> None:
    found = examine_options(room.subject("a.sh --job.config_file=a.toml"))

    assert lines(found, "dtype") == [
        ("warn", "--training.dtype is not given, and --job.config_file=a.toml, which cannot be read, may say it"),
    ]  # fmt: skip
    (room.folder / "a.toml").write_text('[training]\ndtype = "float32"\nsteps = 20\n[compile]\nenable = true\n')
    subject = room.subject("a.sh --job.config_file=a.toml")
    assert lines(examine_options(subject), "dtype")[0][1].startswith(
        "training.dtype = float32 in a.toml, expected bfloat16"
    )
    assert lines(examine_options(subject), "steps") == [("ok", "training.steps = 20 in a.toml")]
    assert lines(examine_switches(subject), "compile") == [("ok", "compile.enable = true in a.toml")]


def test_a_switch_with_a_value_is_told_how_to_be_written(room: Room) -> None:
    found = examine_options(room.subject("a.sh --compile.enable=True --checkpoint.enable false"))

    assert [(one.grade, one.seen, one.do) for one in found if one.name == "preflight.options"] == [
        ("warn", "--compile.enable=True: torchtitan's command line takes no value for a switch",
         "write --compile.enable"),
        ("warn", "--checkpoint.enable false: torchtitan's command line takes no value for a switch",
         "write --checkpoint.no-enable"),
    ]  # fmt: skip


def test_paths_are_looked_at_from_where_the_run_starts(room: Room) -> None:
    for name in ("full", "empty"):
        (room.folder / name).mkdir()
    (room.folder / "full/file").touch()
    line = ("a.sh --checkpoint.enable --checkpoint.initial_load_path={} --dataloader.dataset_path=s3://b/c4 "
            "--hf_assets_path=none")  # fmt: skip
    found = examine_options(room.subject(line.format("full")))

    assert lines(found, "checkpoint")[-1] == ("ok", "--checkpoint.initial_load_path=full is there")
    assert lines(found, "dataset") == [("ok", "--dataloader.dataset_path=s3://b/c4, not on this machine")]
    assert lines(found, "tokenizer") == [("fail", f"--hf_assets_path=none: there is no {room.folder}/none")]
    assert lines(examine_options(room.subject(line.format("empty"))), "checkpoint")[-1] == (
        "warn", f"--checkpoint.initial_load_path=empty: {room.folder}/empty is an empty folder",
    )  # fmt: skip


def test_a_checkpoint_that_is_switched_off_is_not_looked_for(room: Room) -> None:
    found = examine_options(room.subject("a.sh --checkpoint.no-enable --checkpoint.initial_load_path=/none"))

    assert "/none" not in str(lines(found, "checkpoint"))


# --- the whole ---------------------------------------------------------------------------------------------------


def test_what_starts_nothing_is_one_fault(room: Room) -> None:
    found = examine_launch(room.subject("export A=1\n", text=True))

    assert [(one.name, one.grade, one.seen) for one in found] == [
        ("preflight.program", "fail", "there is no command that starts a training in what was given"),
    ]  # fmt: skip


def test_another_acceptance_is_held_against(room: Room, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[[option]]\nname = "training.dtype"\nvalues = ["float32"]\n')
    found = examine_options(room.subject("a.sh --training.dtype=float32", changes=file))

    assert lines(found, "dtype") == [("ok", "--training.dtype=float32")]


def test_a_refused_allocator_is_told_with_the_run_script_s_own_variable(room: Room) -> None:
    (room.folder / "run.sh").write_text('PYTORCH_ALLOC_CONF=expandable_segments:True torchrun -m trainer.main "$@"\n')
    environ = {"PYTORCH_NPU_ALLOC_CONF": "max_split_size_mb:128"}
    found = examine_launch(room.subject("bash run.sh", environ=environ))

    assert next((one.name, one.grade) for one in found if one.name.startswith("allocator")) == (
        "allocator.variable", "fail",
    )  # fmt: skip


def test_strict_determinism_that_a_script_writes_counts_beside_arguments_that_nobody_sees(room: Room) -> None:
    text = 'python -m trainer.main --debug.deterministic --model.attention_backend=auto "$@"\n'
    found = examine_switches(room.subject(text, text=True))

    assert lines(found, "determinism") == [
        ("fail", "--debug.deterministic with --model.attention_backend=auto: the backward of the vendor's attention "
         "refuses strict determinism")
    ]  # fmt: skip
