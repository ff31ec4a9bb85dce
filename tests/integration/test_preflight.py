"""`toolkit preflight` on the command of an accepted run, on everything that breaks it, and how it starts one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.sample import Sample, make_sample
from toolkit import cli

RUN_SCRIPT = """\
#!/usr/bin/env bash
NGPU=${NGPU:-1}
MODULE=${MODULE:-small}
exec python -m trainer.main --ranks ${NGPU} --module ${MODULE} "$@"
"""

TRAINER = """\
import json, os, sys
import sample_npu.core

names = ("NGPU", "PYTHONPATH", "TORCH_EXTENSIONS_DIR", "TORCHINDUCTOR_NPU_BACKEND", "SAMPLE_BACKEND")
told = {name: os.environ.get(name) for name in names}
print(json.dumps({"argv": sys.argv[1:], "answer": sample_npu.core.answer(), **told}))
"""


@dataclass(frozen=True, kw_only=True)
class Place:
    """A folder as a run would start in it, and the overlay that it would have."""

    root: Path
    overlay: Path
    sample: Sample

    def variables(self) -> dict[str, str]:
        """Return the variables of the accepted run."""
        return {
            "NGPU": "8",
            "MODULE": "large",
            "LOG_DIR": f"{self.root}/out/logs",
            "PYTHONPATH": f"{self.overlay}/site:{self.root}/trainer_src",
            "TORCH_EXTENSIONS_DIR": f"{self.overlay}/torch_extensions",
            "TORCHINDUCTOR_NPU_BACKEND": "dvm",
            "TORCHINDUCTOR_CACHE_DIR": f"{self.root}/out/cache",
        }

    def options(self) -> list[str]:
        """Return the options of the accepted run."""
        return [
            f"--dump_folder={self.root}/out/dump", "--model.attention_backend=auto",
            "--parallelism.data_parallel_shard_degree=8", "--parallelism.expert_parallel_degree=8",
            "--training.dtype=bfloat16", "--training.global_batch_size=16", "--training.seq_len=2048",
            "--training.steps=10", "--dataloader.dataset=c4", f"--dataloader.dataset_path={self.root}/data",
            "--checkpoint.enable", "--checkpoint.load_only", f"--checkpoint.initial_load_path={self.root}/step-0",
            "--checkpoint.initial_load_model_only", "--debug.seed=42", "--metrics.enable_tensorboard",
            "--metrics.log_freq=1", "--compile.enable",
        ]  # fmt: skip

    def command(self, *, without: str = "", add: tuple[str, ...] = (), **variables: str | None) -> list[str]:
        """Return the accepted command: without an option, with others added, with variables changed or taken out."""
        given = {name: value for name, value in (self.variables() | variables).items() if value is not None}
        options = [one for one in self.options() if not without or not one.startswith(without)]
        return [*(f"{name}={value}" for name, value in given.items()), "./run_train.sh", *options, *add]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """Build a small overlay once; nothing here changes it."""
    made = make_sample(tmp_path_factory.mktemp("sample"))
    for word in ("lock", "build"):
        subprocess.run(made.toolkit(word), env=made.environ, cwd=made.root, capture_output=True, check=True)
    return made


@pytest.fixture
def place(sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Make the folder of a run, and go there."""
    root = tmp_path / "run"
    for folder in ("data", "step-0", "trainer_src/trainer"):
        (root / folder).mkdir(parents=True)
        (root / folder / "__init__.py").touch()
    (root / "trainer_src/trainer/main.py").write_text(TRAINER)
    (root / "run_train.sh").write_text(RUN_SCRIPT)
    (root / "run_train.sh").chmod(0o755)
    for name in ("TOOLKIT_PROJECT", "TOOLKIT_STORE", "TOOLKIT_RECIPE"):
        monkeypatch.setenv(name, sample.environ[name])
    monkeypatch.delenv("TOOLKIT_OVERLAYS", raising=False)
    for name in ("PYTHONPATH", "TORCH_EXTENSIONS_DIR", "TORCHINDUCTOR_NPU_BACKEND", "ASCEND_RT_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(root)
    return Place(root=root, overlay=sample.overlays / "sample/current", sample=sample)


@pytest.fixture
def look(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, dict[str, Any]]]:
    """Return a function that runs the command with --json in this process: its exit code and document."""

    def run(*words: str) -> tuple[int, dict[str, Any]]:
        with pytest.raises(SystemExit) as ended:
            cli.main(["preflight", "--json", *words])
        return int(ended.value.code or 0), json.loads(capsys.readouterr().out)

    return run


Look = Callable[..., tuple[int, dict[str, Any]]]


def not_ok(document: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["name"], one["grade"]) for one in document["observations"] if one["grade"] != "ok"]


def seen(document: dict[str, Any], name: str) -> str:
    """Return what was seen in the first line of that name that is not ok."""
    return next(one["seen"] for one in document["observations"] if one["name"] == name and one["grade"] != "ok")


# --- the accepted command, and what breaks it --------------------------------------------------------------------


def test_the_accepted_command_is_fine(place: Place, look: Look) -> None:
    code, document = look("--", *place.command())

    assert (code, document["worst"], not_ok(document)) == (0, "ok", [])
    assert document["recipe"] == "sample"
    assert document["command"]["variables"]["SAMPLE_BACKEND"] == "small"
    assert document["command"]["argv"] == ["./run_train.sh", *place.options()]


@pytest.mark.parametrize(
    ("change", "name", "told"),
    [
        ({"without": "--training.dtype"}, "dtype",
         "--training.dtype is not given: the configuration's default is FP32: parameters, gradients and optimizer "
         "state take twice the memory, and the second step, when the optimizer's state has come, runs out of it"),
        ({"add": ("--training.dtype", "float32")}, "dtype",
         "--training.dtype float32 (the last of 2: before it bfloat16), expected bfloat16: the configuration's default "
         "is FP32: parameters, gradients and optimizer state take twice the memory, and the second step, when the "
         "optimizer's state has come, runs out of it"),
        ({"without": "--compile.enable"}, "compile",
         "--compile.enable is not given: TORCHINDUCTOR_NPU_BACKEND=dvm alone compiles nothing, and every step runs in "
         "eager"),
        ({"add": ("--compile.no-enable",)}, "compile",
         "--compile.no-enable (the last of 2: before it true): TORCHINDUCTOR_NPU_BACKEND=dvm alone compiles nothing, "
         "and every step runs in eager"),
        ({"TORCHINDUCTOR_NPU_BACKEND": None}, "backend",
         "TORCHINDUCTOR_NPU_BACKEND is not set: --compile.enable compiles with the default backend, not with dvm"),
        ({"TORCHINDUCTOR_NPU_BACKEND": "mlir"}, "backend",
         "TORCHINDUCTOR_NPU_BACKEND=mlir, the recipe sample is for dvm"),
        ({"add": ("--debug.deterministic",)}, "determinism",
         "--debug.deterministic with --model.attention_backend=auto: the backward of the vendor's attention refuses "
         "strict determinism"),
        ({"add": ("--debug.deterministic", "--model.attention-backend", "vendor")}, "determinism",
         "--debug.deterministic with --model.attention-backend vendor (the last of 2: before it auto): the backward of "
         "the vendor's attention refuses strict determinism"),
        ({"add": ("--debug.deterministic_warn_only",)}, "determinism",
         "--debug.deterministic_warn_only: operators without a deterministic form run all the same, so nothing is "
         "promised, while DVM takes it for the strict form"),
        ({"TORCH_EXTENSIONS_DIR": None}, "extensions",
         "TORCH_EXTENSIONS_DIR is not set: extensions go to the folder that all torch_npu of this user share"),
        ({"add": ("--training.steps=1",)}, "steps",
         "--training.steps=1 (the last of 2: before it 10), expected at least 10: a passing first step proves nothing "
         "about memory, as the optimizer's state comes only after it"),
        ({"add": ("--checkpoint.no-enable",)}, "checkpoint",
         "--checkpoint.no-enable (the last of 2: before it true), expected true: nothing is loaded, whatever "
         "checkpoint is named, and the weights are random"),
        ({"without": "--debug.seed"}, "seed",
         "--debug.seed is not given: without a seed no other run can be compared with this one"),
        ({"NGPU": "4"}, "processes", "4 processes cannot be shared out over degrees of 8"),
        ({"add": ("--training.global-batch-size", "12")}, "processes",
         "--training.global-batch-size 12 (the last of 2: before it 16) is no multiple of 8, what the data-parallel "
         "ranks take at a time"),
        ({"ASCEND_RT_VISIBLE_DEVICES": "0,1,2,3"}, "devices",
         "ASCEND_RT_VISIBLE_DEVICES=0,1,2,3 lets 4 NPUs be seen, and there are 8 processes"),
    ],
)  # fmt: skip
def test_a_broken_command_has_its_fault_named(
    change: dict[str, Any], name: str, told: str, place: Place, look: Look
) -> None:
    code, document = look("--", *place.command(**change))

    failed = [one for one, grade in not_ok(document) if grade == "fail"]
    assert (code, failed) == (23, [f"preflight.{name}"])
    assert [one["seen"] for one in document["observations"] if one["grade"] == "fail"] == [told]
    assert all(one["do"] for one in document["observations"] if one["grade"] == "fail")


def test_system_packages_before_the_overlay_are_named(place: Place, look: Look) -> None:
    system = place.root / "lib/site-packages"
    (system / "sample_npu").mkdir(parents=True)
    code, document = look("--", *place.command(PYTHONPATH=f"{system}:{place.overlay}/site"))

    assert (code, not_ok(document)) == (23, [("preflight.import_path", "fail")])
    assert seen(document, "preflight.import_path") == (
        f"PYTHONPATH has {system} (with a sample_npu in it) before the overlay's {os.path.realpath(place.overlay)}/site"
    )


@pytest.mark.parametrize("form", ["{site}::{rest}", "{site}:{rest}:", ":{site}:{rest}"])
def test_an_empty_entry_is_named(form: str, place: Place, look: Look) -> None:
    value = form.format(site=f"{place.overlay}/site", rest=f"{place.root}/trainer_src")
    code, document = look("--", *place.command(PYTHONPATH=value))

    assert (code, not_ok(document)) == (23, [("preflight.import_path", "fail")])
    assert seen(document, "preflight.import_path") == (
        f"PYTHONPATH={value} has an empty entry: Python takes it for the folder where the run starts"
    )


def test_the_extensions_of_another_overlay_are_named(place: Place, look: Look) -> None:
    other = place.root / "overlays/other"
    (other / "site").mkdir(parents=True)
    (other / "manifest.json").touch()
    code, document = look("--", *place.command(TORCH_EXTENSIONS_DIR=f"{other}/torch_extensions"))

    assert (code, not_ok(document)) == (23, [("preflight.extensions", "fail")])
    assert seen(document, "preflight.extensions") == (
        f"TORCH_EXTENSIONS_DIR={other}/torch_extensions, which is that of the overlay {other}: expected the overlay's "
        f"own, {os.path.realpath(place.overlay)}/torch_extensions"
    )


@pytest.mark.parametrize(
    ("folder", "name"),
    [("out/dump", "dump_folder"), ("out/logs", "log_folder"), ("out/cache", "cache_folder")],
)
def test_a_folder_that_holds_results_is_named(folder: str, name: str, place: Place, look: Look) -> None:
    (place.root / folder / "deep").mkdir(parents=True)
    assert look("--", *place.command())[0] == 0  # Empty folders hold nothing.

    (place.root / folder / "deep/result.txt").touch()
    code, document = look("--", *place.command())

    assert (code, not_ok(document)) == (23, [(f"preflight.{name}", "fail")])
    assert "it holds results already, such as deep/result.txt" in seen(document, f"preflight.{name}")


def test_other_spellings_are_the_same_options(place: Place, look: Look) -> None:
    spelled = [word.replace("_", "-") if word.startswith("--training") else word for word in place.command()]
    spelled = [part for word in spelled for part in (word.split("=", 1) if word.startswith("--") else [word])]
    code, document = look("--", *spelled)

    assert (code, not_ok(document)) == (0, [])


def test_paths_that_are_not_there_are_named(place: Place, look: Look) -> None:
    add = ("--dataloader.dataset_path=data/none", f"--checkpoint.initial_load_path={place.root}/step-1")
    code, document = look("--", *place.command(add=add))

    assert (code, not_ok(document)) == (23, [("preflight.checkpoint", "fail"), ("preflight.dataset", "fail")])
    assert seen(document, "preflight.checkpoint").endswith(f": there is no {place.root}/step-1")
    assert seen(document, "preflight.dataset").endswith(f": there is no {place.root}/data/none")


# --- whose environment -------------------------------------------------------------------------------------------


def test_a_command_that_leaves_the_environment_to_toolkit_gets_it(place: Place, look: Look) -> None:
    command = place.command(PYTHONPATH=None, TORCH_EXTENSIONS_DIR=None)
    code, document = look("--", *command)

    assert (code, not_ok(document)) == (0, [])
    assert document["command"]["variables"]["PYTHONPATH"] == f"{os.path.realpath(place.overlay)}/site"


def test_the_caller_s_own_environment_is_judged_where_it_has_the_overlay(
    place: Place, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in place.variables().items():
        if name != "TORCH_EXTENSIONS_DIR":
            monkeypatch.setenv(name, value)
    code, document = look("--", "./run_train.sh", *place.options())

    assert (code, not_ok(document)) == (23, [("preflight.extensions", "fail")])


def test_a_variable_of_the_caller_that_is_replaced_is_told(
    place: Place, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", "/elsewhere")
    code, document = look("--", *place.command(PYTHONPATH=None, TORCH_EXTENSIONS_DIR=None))

    own = f"{os.path.realpath(place.overlay)}/torch_extensions"
    assert (code, not_ok(document)) == (0, [("preflight.environment", "warn")])
    assert seen(document, "preflight.environment") == (
        f"TORCH_EXTENSIONS_DIR=/elsewhere of the calling environment is replaced by the overlay's {own}"
    )


# --- from a file, and started ------------------------------------------------------------------------------------


def test_a_run_script_is_read_with_its_arguments(place: Place, look: Look) -> None:
    variables = "".join(f"export {name}='{value}'\n" for name, value in place.variables().items())
    options = " \\\n  ".join(place.options())
    (place.root / "accept.sh").write_text(f'{variables}nohup ./run_train.sh \\\n  {options} "$@" > log.txt 2>&1\n')

    assert look("--cmd", "accept.sh")[0] == 0
    code, document = look("--cmd", "accept.sh", "--", "--training.steps", "5")
    assert (code, not_ok(document)) == (23, [("preflight.steps", "fail")])
    assert document["command"]["argv"] == ["bash", "accept.sh", "--training.steps", "5"]


def test_a_shown_command_starts_as_it_stands(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["preflight", "--", *place.command(add=("--notes", "it's 5 o'clock", "--compile.enable"))])
    text = capsys.readouterr().out.partition("\n\n")[2]
    done = subprocess.run(["sh", "-c", text], cwd=place.root, env={"PATH": os.defpath}, capture_output=True, check=True)

    told = json.loads(done.stdout)
    assert told["answer"] == 42
    assert "it's 5 o'clock" in told["argv"]
    assert told["SAMPLE_BACKEND"] == "small"


def go(place: Place, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "toolkit", "preflight", "--go", *words]
    env = place.sample.environ | {"PYTHONPATH": str(Path(cli.__file__).parents[1])}
    return subprocess.run(argv, cwd=place.root, env=env, capture_output=True, text=True, check=False)


def test_with_go_the_command_takes_over(place: Place) -> None:
    command = place.command(PYTHONPATH=f"{place.overlay}/site:{place.root}/trainer_src")
    done = go(place, "--", *command)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "argv": ["--ranks", "8", "--module", "large", *place.options()],
        "answer": 42,
        "NGPU": "8",
        "PYTHONPATH": f"{place.overlay}/site:{place.root}/trainer_src",
        "TORCH_EXTENSIONS_DIR": f"{place.overlay}/torch_extensions",
        "TORCHINDUCTOR_NPU_BACKEND": "dvm",
        "SAMPLE_BACKEND": "small",
    }


def test_with_go_a_file_is_started_as_it_stands(place: Place) -> None:
    variables = {**place.variables(), "PYTHONPATH": f"{place.overlay}/site:$ROOT/trainer_src:${{PYTHONPATH:-.}}"}
    exports = "".join(f'{name}="{value}" ' for name, value in variables.items())
    options = " \\\n  ".join(place.options())
    (place.root / "accept.sh").write_text(f'ROOT={place.root}\n{exports} ./run_train.sh \\\n  {options} "$@"\n')
    done = go(place, "--cmd", "accept.sh", "--", "--training.steps", "20")

    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["argv"][-2:] == ["--training.steps", "20"]
    # The caller of this test has the checkout on its path, and nothing was put in front twice.
    assert told["PYTHONPATH"].split(":")[:2] == [f"{place.overlay}/site", f"{place.root}/trainer_src"]
    assert sum(entry.endswith("/site") for entry in told["PYTHONPATH"].split(":")) == 1


def test_with_go_nothing_is_started_where_something_fails(place: Place) -> None:
    done = go(place, "--", *place.command(without="--training.dtype"))

    assert done.returncode == 23
    assert "fail  preflight.dtype" in done.stdout
    assert '"answer"' not in done.stdout


def test_with_go_and_json_the_document_comes_before_what_the_command_writes(place: Place) -> None:
    done = go(place, "--json", "--", *place.command(PYTHONPATH=f"{place.overlay}/site:{place.root}/trainer_src"))

    assert done.returncode == 0, done.stderr
    document, end = json.JSONDecoder().raw_decode(done.stdout)
    assert document["worst"] == "ok"
    assert json.loads(done.stdout[end:])["answer"] == 42


def test_a_command_that_is_quoted_whole_is_refused(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["preflight", "--", " ".join(place.command())])

    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        "error: the command behind -- is one word with blanks in it, 'NGPU=8' and what follows\n"
        "hint: write it without the quotes around all of it\n"
    )


def test_without_a_command_it_says_how_to_give_one(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["preflight"])

    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        "error: there is no command to look at\nhint: give it behind --, or in a file with --cmd FILE\n"
    )
