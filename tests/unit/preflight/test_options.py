"""Options: reasons that are told once, and names that are nearly right."""

from __future__ import annotations

import pytest

from tests.unit.preflight.builders import Room, lines
from toolkit.preflight.options import examine_options

TOKENS = "the accepted run had 16 samples of 2048 tokens a step; with others its loss and memory cannot be compared"


def test_a_reason_that_two_options_share_is_told_once(room: Room) -> None:
    assert lines(examine_options(room.subject("a.sh")), "batch") == [
        ("warn", f"--training.global_batch_size is not given: {TOKENS}"),
        ("warn", "--training.seq_len is not given: as for --training.global_batch_size"),
    ]


def test_a_reason_that_the_other_did_not_tell_is_told(room: Room) -> None:
    found = examine_options(room.subject("a.sh --training.global_batch_size=16 --training.seq_len=64"))

    assert lines(found, "batch") == [
        ("ok", "--training.global_batch_size=16"),
        ("warn", f"--training.seq_len=64, expected 2048: {TOKENS}"),
    ]


@pytest.mark.parametrize(
    ("written", "near"),
    [
        ("--training.step 3", "training.steps"),
        ("--trainning.steps=3", "training.steps"),
        ("--training.dytpe=bfloat16", "training.dtype"),
        ("--checkpoint.enabled", "checkpoint.enable"),
        ("--metrics.log-frq 1", "metrics.log_freq"),
    ],
)
def test_an_option_that_is_nearly_one_is_told(written: str, near: str, room: Room) -> None:
    found = [one for one in examine_options(room.subject(f"a.sh {written}")) if one.name == "preflight.options"]

    name = written.lstrip("-").replace("-", "_").partition(" ")[0].partition("=")[0]
    assert [(one.grade, one.seen, one.do) for one in found] == [
        ("warn", f"{written}: --{name} is none of the options that are looked at here", f"did you mean --{near}?")
    ]


@pytest.mark.parametrize(
    "option",
    [
        "dataloader.dataset=c4", "checkpoint.initial_load_model_only", "checkpoint.interval=500", "optimizer.lr=1e-4",
        "parallelism.expert_tensor_parallel_degree=1", "metrics.enable_wandb", "profiling.profile_freq=10",
        "training.local_batch_size=1", "module=a", "config=b", "compile.backend=inductor",
        "lr_scheduler.warmup_steps=2",
    ],
)  # fmt: skip
def test_an_option_that_is_another_is_not(option: str, room: Room) -> None:
    assert lines(examine_options(room.subject(f"a.sh --{option}")), "options") == []
