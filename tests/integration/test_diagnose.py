"""`toolkit diagnose` as it is run: on good logs, on bad ones, and on what is none."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

import toolkit
from tests.generate_docs import DOCS
from toolkit.triage.document import DiagnosisDocument

CHECKOUT = Path(toolkit.__file__).parents[1]
OVERFLOW = "[rank3]: error: ub overflow, requires 2097152 bits while 1572864 bits available!\n"
TIMED_OUT = "[rank0]: EI0006: 2026-06-02-03:11:50.120.001 Getting socket times out. Reason: nothing came\n"
STEP = "2026-08-20 11:02:11 INFO step:  1  loss: 12.2131  grad_norm: 3.1021\n"


def run_diagnose(words: Sequence[str], folder: Path, *, stdin: bytes = b"") -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "toolkit", "diagnose", *words], cwd=folder, input=stdin, capture_output=True, timeout=60,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), "PYTHONDONTWRITEBYTECODE": "1"}, check=False,
    )  # fmt: skip
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def document(words: Sequence[str], folder: Path, **more: Any) -> Any:
    done = run_diagnose([*words, "--json"], folder, **more)
    assert done.returncode == 0, done.stderr
    msgspec.convert(json.loads(done.stdout), DiagnosisDocument)
    return json.loads(done.stdout)


def test_a_log_comes_out_with_its_cause_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(STEP + OVERFLOW)

    done = run_diagnose(["train.log"], tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("codegen: ub-overflow (cause, confidence high)\n  rank3: ")
    assert "  at: train.log:2 (rank 3)\n      error: ub overflow, requires" in done.stdout
    assert "\n  run: toolkit build --recipe " in done.stdout


def test_standard_input_and_several_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "rank0.log").write_text(TIMED_OUT)

    told = document(["rank0.log", "-"], tmp_path, stdin=OVERFLOW.encode())

    assert [(one["cause"], one["ranks"], one["kind"]) for one in told["findings"]] == [
        ("ub-overflow", [3], "cause"), ("peer-timed-out", [0], "victim")
    ]  # fmt: skip
    assert sorted(told["sources"]) == ["-", "rank0.log"]


def test_a_thousand_rank_logs(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for rank in range(1000):
        (folder / f"rank{rank}.log").write_text(STEP + (OVERFLOW if rank == 3 else TIMED_OUT.replace("[rank0]: ", "")))

    told = document(["logs"], tmp_path)

    assert [one["cause"] for one in told["findings"]] == ["ub-overflow", "peer-timed-out"]
    assert told["findings"][1]["ranks"] == [rank for rank in range(1000) if rank != 3]


@pytest.mark.parametrize(
    ("name", "content", "remark"),
    [
        pytest.param(
            "cut.log.gz", gzip.compress((STEP * 9000 + OVERFLOW * 5).encode(), 0)[:-700], "cut", id="gzip, cut"
        ),
        pytest.param("wide.log", (STEP + OVERFLOW).encode("utf-16"), "", id="UTF-16"),
        pytest.param("tail.log", (STEP * 5 + OVERFLOW).encode() + bytes(range(256)) * 900, "NUL", id="a tail of bytes"),
        pytest.param("long.log", b"x " * 25_000_000 + OVERFLOW.encode(), "", id="a line of 50 MB"),
    ],
)
def test_a_log_that_is_not_quite_one_is_read_as_far_as_it_goes(
    name: str, content: bytes, remark: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)

    told = document([name], tmp_path)

    assert told["findings"][0]["layer"] == ("none" if remark == "cut" else "codegen")
    assert [remark in one["text"] for one in told["remarks"]] == ([True] if remark else [])


def test_a_file_that_grows_while_it_is_read_ends(tmp_path: Path) -> None:
    path, stop = tmp_path / "train.log", threading.Event()
    path.write_text(STEP * 1000)

    def write() -> None:
        with path.open("a") as stream:
            while not stop.is_set():
                stream.write(STEP * 1000)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        told = document(["train.log"], tmp_path)
    finally:
        stop.set()
        writer.join()
    assert told["findings"][0]["cause"] == "nothing-failed"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "empty"),
        (os.urandom(100_000), "binary, not a log"),
        (b"\x7fELF\x02\x01\x01" + bytes(5000), "binary, not a log"),
    ],
    ids=["empty", "bytes of all kinds", "a library"],
)
def test_what_is_no_log_is_an_error(content: bytes, why: str, tmp_path: Path) -> None:
    (tmp_path / "x.log").write_bytes(content)

    done = run_diagnose(["x.log"], tmp_path)

    assert (done.returncode, done.stdout) == (24, "")
    assert done.stderr == (
        f"error: no line can be read of 'x.log'\n  x.log: {why}\n"
        "hint: name the log that the run wrote: a text file, a folder with those of all ranks, or - for a pipe\n"
    )


def test_an_empty_log_beside_a_good_one_is_a_remark(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(OVERFLOW)
    (tmp_path / "b.log").touch()

    told = document(["a.log", "b.log"], tmp_path)

    assert told["findings"][0]["cause"] == "ub-overflow"
    assert told["remarks"] == [{"source": "b.log", "text": "empty"}]


def test_what_is_not_there_is_an_error(tmp_path: Path) -> None:
    done = run_diagnose(["nope.log", "--json"], tmp_path)

    assert done.returncode == 2
    assert "nope.log" in json.loads(done.stdout)["error"]["message"]


def test_another_framework_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text(
        'Exception in thread "main" java.lang.IllegalStateException: out\n\tat a.B.c(B.java:3)\nBUILD FAILED in 3s\n'
    )

    (found,) = document(["x.log"], tmp_path)["findings"]

    assert (found["layer"], found["cause"], found["confidence"]) == ("unknown", "unrecognized", "low")
    assert found["experiment"]


def test_the_exit_code_tells_only_where_it_is_asked_to(tmp_path: Path) -> None:
    (tmp_path / "bad.log").write_text(OVERFLOW)
    (tmp_path / "good.log").write_text(STEP)

    codes = [run_diagnose([name, *words], tmp_path).returncode
             for name in ("bad.log", "good.log") for words in ((), ("--exit-code",))]  # fmt: skip

    assert codes == [0, 23, 0, 0]


def test_rules_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text("reactor: too warm by 3 K\n")
    rule = (
        '[[rule]]\ncause = "too-warm"\nlayer = "runtime"\nsummary = "{much} K"\nmeans = "m"\nsource = "s"\n'
        "anchors = ['too warm']\nwhen = [{ line = 'too warm by (?P<much>\\d+)' }]\n"
    )
    (tmp_path / "own.toml").write_text(rule)
    (tmp_path / "bad.toml").write_text(rule.replace("cause", "because"))

    told = document(["x.log", "--rules", "own.toml"], tmp_path)
    refused = run_diagnose(["x.log", "--rules", "bad.toml"], tmp_path)

    assert [(one["cause"], one["summary"]) for one in told["findings"]] == [("too-warm", "3 K")]
    assert refused.returncode == 3
    assert refused.stderr == (
        "error: the rules in bad.toml cannot be read\n"
        "  bad.toml:1: rule[0].cause: missing key\n"
        "  bad.toml:2: rule[0].because: unknown key; did you mean 'cause'?\n"
        "hint: see docs/diagnose-rules.md\n"
    )


def test_the_launch_is_read_from_files(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text(STEP)
    (tmp_path / "env.txt").write_text("TORCHINDUCTOR_NPU_BACKEND=dvm\nHOME=/root\n")
    (tmp_path / "run.sh").write_text("torchrun --nproc_per_node=8 train.py --training.dtype bfloat16\n")

    facts = document(["x.log", "--env", "env.txt", "--cmd", "run.sh"], tmp_path)["facts"]

    assert {name: facts[name] for name in ("backend", "dtype", "compile", "ngpu")} == {
        "backend": "dvm", "dtype": "bfloat16", "compile": "false", "ngpu": "8"
    }  # fmt: skip
    assert run_diagnose(["x.log", "--env", "none.txt"], tmp_path).returncode == 2


def test_the_schema_names_every_field_of_the_document(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text(OVERFLOW)
    schema = json.loads((DOCS / "diagnose-schema.json").read_text())
    told = document(["x.log"], tmp_path)
    parts = {"DiagnosisDocument": told, "FindingDocument": told["findings"][0],
             "EvidenceDocument": told["findings"][0]["evidence"][0]}  # fmt: skip

    for name, value in parts.items():
        assert set(schema["$defs"][name]["properties"]) == set(value)
        assert schema["$defs"][name]["additionalProperties"] is False
