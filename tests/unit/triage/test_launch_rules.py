"""What is said of a launch: from facts alone, from a command, and beside what a log shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.launch import Launch, launch_facts, read_command_text, read_environment_text
from toolkit.triage import Finding, diagnose, shipped_rules
from toolkit.triage.judging import judge

ACCEPTED = (
    "NGPU=8 LOG_RANK=0 MODULE=deepseek_v4 CONFIG=v4_13b LOG_DIR=/out/logs/dvm "
    "PYTHONPATH=/build/overlays/dsv4-dvm-release/current/site:/opt/torchtitan TORCH_EXTENSIONS_DIR=/build/extensions "
    "TORCHINDUCTOR_NPU_BACKEND=dvm TORCHINDUCTOR_CACHE_DIR=/out/cache "
    "./run_train.sh --dump_folder=/out/dvm --model.attention_backend=auto --parallelism.data_parallel_shard_degree=8 "
    "--training.dtype=bfloat16 --training.steps=10 --debug.seed=42 --compile.enable"
)

OUT_OF_MEMORY = (
    "RuntimeError: NPU out of memory. Tried to allocate 7.00 GiB (NPU 7; 60.96 GiB total capacity; 53.29 GiB already "
    "allocated; 53.29 GiB current active; 6.66 GiB free; 53.44 GiB reserved in total by PyTorch)\n"
)


def findings_on(**facts: str) -> list[Finding]:
    return judge([], shipped_rules(), facts)[0]


def causes_of_command(command: str, environ: dict[str, str] | None = None) -> list[str]:
    facts = launch_facts(read_command_text(command, environ=environ))
    return [one.cause for one in judge([], shipped_rules(), facts)[0]]


BROKEN = {
    "no dtype": (ACCEPTED.replace("--training.dtype=bfloat16 ", ""), "launch-dtype-not-given"),
    "no compile": (ACCEPTED.replace(" --compile.enable", ""), "launch-backend-without-compile"),
    "compile switched off": (f"{ACCEPTED} --compile.no-enable", "launch-backend-without-compile"),
    "no backend": (ACCEPTED.replace("TORCHINDUCTOR_NPU_BACKEND=dvm ", ""), "launch-compile-without-backend"),
    "deterministic": (f"{ACCEPTED} --debug.deterministic", "launch-deterministic-vendor-attention"),
    "warn only": (f"{ACCEPTED} --debug.deterministic-warn-only", "launch-deterministic-warn-only"),
    "system packages first": (
        ACCEPTED.replace("PYTHONPATH=", "PYTHONPATH=/usr/lib/python3/dist-packages:"),
        "launch-packages-before-overlay",
    ),
    "empty entry": (ACCEPTED.replace(":/opt/torchtitan", "::/opt/torchtitan"), "launch-pythonpath-empty-entry"),
    "trailing colon": (ACCEPTED.replace("/opt/torchtitan ", " "), "launch-pythonpath-empty-entry"),
    "no extensions folder": (
        ACCEPTED.replace("TORCH_EXTENSIONS_DIR=/build/extensions ", ""),
        "launch-shared-extensions",
    ),
    "autoload off": (f"TORCH_DEVICE_BACKEND_AUTOLOAD=0 {ACCEPTED}", "launch-autoload-off"),
    "allocator options": (
        f"PYTORCH_NPU_ALLOC_CONF=expandable_segments:True,max_split_size_mb:128 {ACCEPTED}",
        "launch-allocator-options",
    ),
    "blank among devices": (f"ASCEND_RT_VISIBLE_DEVICES='0, 1' {ACCEPTED}", "launch-visible-devices"),
    "eager backend": (f"{ACCEPTED} --compile.backend=aot_eager", "launch-compile-backend"),
}


def test_nothing_is_wrong_with_the_accepted_launch() -> None:
    assert causes_of_command(ACCEPTED, {}) == ["nothing-failed"]


def test_nothing_is_said_of_a_launch_that_nobody_knows() -> None:
    assert [one.cause for one in findings_on()] == ["nothing-failed"]


@pytest.mark.parametrize(("command", "cause"), BROKEN.values(), ids=BROKEN)
def test_each_broken_launch_has_its_fault_named(command: str, cause: str) -> None:
    assert causes_of_command(command, {}) == [cause]


@pytest.mark.parametrize(
    "facts",
    [
        {"compile": "true", "backend": "dvm"},
        {"compile": "true"},
        {"backend": "dvm"},
        {"deterministic": "true", "attention_backend": "sdpa"},
        {"deterministic": "false", "attention_backend": "auto"},
        {"pythonpath": ""},
        {"pythonpath": "/a/overlays/x/current/site:/usr/lib/python3/dist-packages"},
        {"autoload": "0"},
        {"dtype": ""},
        {"dtype": "float32", "compile": "true"},
        {"alloc_conf": "expandable_segments:True"},
        {"alloc_conf": "expandable_segments:False,max_split_size_mb:128"},
        {"visible_devices": "0,1,2,3"},
        {"visible_devices": ""},
        {"extensions_dir": ""},
        {"compile": "true", "compile_backend": "inductor", "backend": "dvm"},
    ],
    ids=str,
)
def test_what_may_be_right_is_not_warned_of(facts: dict[str, str]) -> None:
    assert [one.cause for one in findings_on(**facts)] == ["nothing-failed"]


def test_a_backend_that_only_the_shell_may_have_set_is_doubted() -> None:
    command = ACCEPTED.replace("TORCHINDUCTOR_NPU_BACKEND=dvm ", "")
    facts = launch_facts(read_command_text(command))

    found = judge([], shipped_rules(), facts)[0]

    assert [(one.cause, one.confidence) for one in found] == [("launch-backend-unsaid", "low")]


def test_an_environment_alone_is_judged() -> None:
    environ = read_environment_text("PYTHONPATH=/a:\nASCEND_RT_VISIBLE_DEVICES=0,,2\n")
    facts = launch_facts(Launch(environ=environ, is_environ_whole=True))

    found = judge([], shipped_rules(), facts)[0]

    assert [one.cause for one in found] == ["launch-pythonpath-empty-entry", "launch-visible-devices"]
    assert found[0].summary == "PYTHONPATH has an empty entry (/a:): Python reads it as the working directory"
    assert found[0].command == """export PYTHONPATH="$(printf %s "$PYTHONPATH" | tr -s : | sed 's/^://; s/:$//')\""""
    assert {one.kind for one in found} == {"warning"}


def test_a_dtype_that_is_known_not_to_be_given_sharpens_out_of_memory(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("2026-08-20 11:02:11 INFO step:  1  loss: 12.2  grad_norm: 3.1\n" + OUT_OF_MEMORY)

    def first(dtype: str | None) -> Finding:
        return diagnose([str(log)], facts={} if dtype is None else {"dtype": dtype}).findings[0]

    assert first("").cause == "npu-memory-full-float32"
    assert first("").summary == (
        "out of memory, training in float32: 53.29 GiB of 60.96 GiB allocated, 7.00 GiB wanted, and the launch does "
        "not ask for bfloat16"
    )
    assert first("float32").cause == "npu-memory-full-float32"
    assert first("bfloat16").cause == "npu-memory-full-second-step-bf16"
    assert first(None).cause == "npu-memory-full-second-step"


def test_what_failed_comes_before_what_is_wrong_with_the_launch(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(OUT_OF_MEMORY)

    found = diagnose([str(log)], facts={"deterministic": "warn_only", "dtype": "bfloat16"}).findings

    assert [one.cause for one in found] == ["npu-memory-full", "launch-deterministic-warn-only"]


def test_given_facts_count_more_than_those_of_the_log(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("export PYTHONPATH=/a:\n2026-08-20 11:02:11 INFO step:  1  loss: 12.2  grad_norm: 3.1\n")

    assert diagnose([str(log)]).findings[0].evidence[0].text == "export PYTHONPATH=/a:"
    assert diagnose([str(log)], facts={"pythonpath": "/a"}).findings[0].cause == "nothing-failed"
