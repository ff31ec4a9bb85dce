"""`toolkit evidence cachekey`: real compiles, and made-up traces for what they would take long to show."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.trace_sample import fx, lookup, metrics, version, write_program
from toolkit.cli import main

FORWARD = ["gm: f", "fx_kwargs[is_backward]: False", "fx_kwargs[is_inference]: True"]

Ended = tuple[int, str, str]
Cachekey = Callable[..., Ended]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder where toolkit puts what it makes for a while."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr("tempfile.tempdir", None)
    return place


@pytest.fixture
def cachekey(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Cachekey:
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> Ended:
        with pytest.raises(SystemExit) as ended:
            main(["evidence", "cachekey", *words])
        told = capsys.readouterr()
        return int(ended.value.code or 0), told.out, told.err

    return call


def program(place: Path, cold: str, warm: str, again: str) -> list[str]:
    return write_program(place, [{"log_a.log": version() + text} for text in (cold, warm, again)])


def body(out: str) -> list[str]:
    """Leave out the line of the command, which holds seconds."""
    return out.splitlines()[1:]


STAGES = ["cachekey: run 1 of 3, cold", "cachekey: run 2 of 3, warm", "cachekey: run 3 of 3, cold again"]

# --- real compiles -----------------------------------------------------------------------------------------------

COMPILED = """
import os, sys
import torch
import torch._inductor.config

torch.set_num_threads(1)

@torch.compile
def steady(x):
    return torch.mm(x, x)

@torch.compile
def changing(x):
    return torch.mm(x, x.t())

x = torch.ones(2, 2)
steady(x)
with torch._inductor.config.patch(kernel_name_max_ops=os.getpid()):
    changing(x)
"""
"""Matrix products alone need no C++ compiler; the second graph's key hangs on the process."""


def test_real_compiles(tmp_path: Path, cachekey: Cachekey, monkeypatch: pytest.MonkeyPatch, temporary: Path) -> None:
    pytest.importorskip("torch")
    monkeypatch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    monkeypatch.setenv("TORCHINDUCTOR_COMPILE_THREADS", "1")
    (tmp_path / "compiled.py").write_text(COMPILED)
    code, out, err = cachekey("--json", "--", sys.executable, "-W", "ignore", "compiled.py")
    document = json.loads(out)

    assert (code, err.splitlines()) == (23, STAGES)
    assert (document["torch"].partition("+")[0], document["doubts"]) == ("2.13.0", [])
    assert [(one["function"].partition(" ")[0], one["compile_id"]) for one in document["compiles"]] == [
        ("steady", "0/0"), ("changing", "1/0")
    ]  # fmt: skip
    assert all(0 < seconds < 600 for one in document["compiles"] for seconds in one["seconds"])
    steady, changing = (
        {one["cache"]: one for one in document["lookups"] if one["compile_id"] == place} for place in ("0/0", "1/0")
    )
    for one in steady.values():
        assert [run["state"] for run in one["runs"]] == ["miss", "hit", "miss"]
        assert (len({run["key"] for run in one["runs"]}), one["findings"]) == (1, [])
    for one in changing.values():
        assert [run["state"] for run in one["runs"]] == ["miss", "miss", "miss"]
        assert (len({run["key"] for run in one["runs"]}), one["findings"]) == (3, ["its key differs when warm"])
    assert steady.keys() == changing.keys() == {"fx", "aotautograd"}
    assert [one["name"] for one in changing["fx"]["parts_that_differ"]] == ["inductor_config[kernel_name_max_ops]"]
    assert changing["aotautograd"]["parts_that_differ"] is None
    assert list(temporary.iterdir()) == []


# --- what is told of a run's caches ------------------------------------------------------------------------------


def test_a_graph_that_is_cached_as_it_should_be(tmp_path: Path, cachekey: Cachekey, temporary: Path) -> None:
    aot = {"key": "akey-of-the-graph"}
    cold = lookup("aotautograd_cache_miss", aot) + fx("miss", "fkey-of-the-graph", FORWARD) + metrics(2)
    warm = fx("hit", "fkey-of-the-graph", FORWARD) + lookup("aotautograd_cache_hit", aot) + metrics(0.25)
    code, out, err = cachekey(*program(tmp_path, cold, warm, cold))

    assert (code, err.splitlines()) == (0, STAGES)
    assert body(out) == [
        "torch 2.13.0",
        "",
        "0/0 f (m.py:3)",
        "  compile: 2.00 s cold, 0.25 s warm, 2.00 s cold again",
        "  ok   aotautograd: miss, hit, miss; key akey-of-the-",
        "  ok   fx inference: miss, hit, miss; key fkey-of-the-",
        "2 of 2 lookups are as they should be: one key in every process, and a hit when warm",
    ]
    assert list(temporary.iterdir()) == []


def keyed(key: str, *parts: str) -> str:
    return fx("miss", key, [*FORWARD, *parts])


@pytest.mark.parametrize(
    ("runs", "lines"),
    [
        pytest.param(
            [keyed("one", "seed: 1"), keyed("two", "seed: 2"), keyed("one", "seed: 1")],
            ["its key differs when warm", "seed: 1 and 2"], id="a part of the key differs",
        ),
        pytest.param(
            [keyed("one", "seed: 1"), fx("hit", "one", FORWARD), keyed("two", "more: 5")],
            ["its key differs when cold again", "seed: only when cold", "more: only when not cold"],
            id="a part is in one key only",
        ),
        pytest.param(
            [keyed("one", "gm: a\n b\n c"), keyed("two", "gm: a\n B\n c"), keyed("two", "gm: a\n B\n c")],
            ["its key differs when warm", "gm #2:", "  @@ -2 +2 @@", "  - b", "  + B"], id="the graph differs",
        ),
        pytest.param(
            [fx("miss", "one", FORWARD), fx("miss", "two", FORWARD), fx("miss", "one", FORWARD)],
            ["its key differs when warm", "no part of its input that the trace lists differs"],
            id="the key differs for what is not listed",
        ),
        pytest.param(
            [fx("miss", "one", None), fx("miss", "two", None), fx("miss", "one", None)],
            [
                "its key differs when warm",
                "what of its input differs is not in the trace: it lists no parts of this key",
            ],
            id="no parts are listed",
        ),
        pytest.param(
            [fx("miss"), fx("miss", cache_status_detailed="guard_miss"), fx("miss")],
            ["missed when warm though its key is the same (guard_miss)"], id="a miss with the same key",
        ),
        pytest.param(
            [fx("bypass", None, None, cache_bypass_reason="Unsupported pass")] * 3,
            ["not cached: bypass, Unsupported pass"], id="a bypass",
        ),
        pytest.param(
            [fx("miss") + metrics(1, fail_type="InductorError", fail_reason="no")] * 3,
            ["not cached, as its compile fails: InductorError: no"], id="a compile that fails",
        ),
        pytest.param(
            [fx("hit"), fx("hit"), fx("hit")],
            ["hit when cold: the command has a cache of its own, or a remote one"], id="another cache",
        ),
        pytest.param(
            [fx("miss"), metrics(1) + fx("hit", frame_id=1), fx("miss")],
            ["not looked up in the run that is warm"], id="a graph that is not in every run",
        ),
    ],
)  # fmt: skip
def test_what_is_not_as_it_should_be_is_told(
    tmp_path: Path, cachekey: Cachekey, runs: Sequence[str], lines: list[str]
) -> None:
    code, out, err = cachekey(*program(tmp_path, *runs))
    told = [line[7:] for line in out.splitlines() if line.startswith("       ")]

    assert (code, told[: len(lines)]) == (23, lines)
    assert err.splitlines()[-1] == "hint: --json has the whole keys, and every part of their input that differs"


def test_a_part_whose_hash_differs_and_whose_text_does_not(tmp_path: Path, cachekey: Cachekey) -> None:
    raw = [{"key": key, "components": [f"[{digest}] torch_version: \x07x"]} for key, digest in (("a", "1"), ("b", "2"))]
    first, second = (lookup("fx_graph_cache_miss", one) for one in raw)
    _, out, _ = cachekey(*program(tmp_path, first, second, first))

    assert "       torch_version: differs, though it reads the same: ?x\n" in out


def test_the_same_graph_compiled_twice_may_hit_when_cold(tmp_path: Path, cachekey: Cachekey) -> None:
    cold, warm = fx("miss") + fx("hit", frame_id=1), fx("hit") + fx("hit", frame_id=1)

    assert cachekey(*program(tmp_path, cold, warm, cold))[0] == 0


def test_what_the_trace_lacks_is_told(tmp_path: Path, cachekey: Cachekey) -> None:
    command = write_program(tmp_path, [{"a.log": "?\n" + fx(state)} for state in ("miss", "hit", "miss")])
    code, out, _ = cachekey(*command)

    assert code == 0
    assert body(out)[0] == "torch of a version that the trace does not say"
    assert body(out)[-2:] == [
        "but 1 line of the trace is in no form that is known here",
        "but the trace does not say which torch wrote it",
    ]


def test_traces_and_output_are_kept_where_that_is_asked_for(tmp_path: Path, cachekey: Cachekey) -> None:
    code, out, _ = cachekey("--keep", "kept", *program(tmp_path, fx("miss"), fx("hit"), fx("miss")))
    kept = tmp_path / "kept"

    assert (code, body(out)[-1]) == (0, f"kept in {kept}")
    names = ("stderr.txt", "stdout.txt", "trace/log_a.log")
    assert {str(path.relative_to(kept)) for path in kept.rglob("*.*")} == {
        f"{run}/{name}" for run in ("cold", "cold-again", "warm") for name in names
    }


# --- runs that show nothing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "code", "lines"),
    [
        pytest.param(
            ["--", "true"], 2,
            ["error: the command wrote no trace into the folder that TORCH_TRACE names",
             "hint: expected a program that uses torch.compile, with torch 2.3 or later"], id="no torch",
        ),
        pytest.param(
            ["--", "sh", "-c", "echo no >&2; exit 3"], 19,
            ["error: run 1 of 3, cold: `sh -c 'echo no >&2; exit 3'` ended with exit code 3", "  no"], id="fails",
        ),
        pytest.param(
            ["--timeout", "0.2", "--", "sleep", "60"], 19,
            ["error: run 1 of 3, cold: sleep did not end within 0.2 s and was stopped"], id="takes too long",
        ),
        pytest.param(
            ["--timeout", "nan", "--", "true"], 2,
            ["error: Invalid value for '--timeout': nan is not in the range 0<x<=86400.",
             "hint: see `toolkit evidence cachekey --help`"], id="a time that is none",
        ),
    ],
)  # fmt: skip
def test_a_run_that_shows_nothing_is_one_error(
    cachekey: Cachekey, temporary: Path, command: list[str], code: int, lines: list[str]
) -> None:
    ended, out, err = cachekey(*command)

    assert (ended, out) == (code, "")
    assert [line for line in err.splitlines() if not line.startswith("cachekey: ")] == lines
    assert list(temporary.iterdir()) == []


def test_a_program_that_compiles_nothing(tmp_path: Path, cachekey: Cachekey) -> None:
    code, _, err = cachekey(*program(tmp_path, metrics(1), "", ""))

    assert code == 2
    assert err.splitlines()[1:] == [
        "error: the command's trace has no graph that Inductor has compiled, as torch 2.13.0 tells it",
        "hint: expected a program that uses torch.compile with the backend `inductor`, the default",
    ]


def test_an_interrupt_ends_the_run_and_leaves_nothing(tmp_path: Path, temporary: Path) -> None:
    command = write_program(
        tmp_path, [{}], after="import time; (place / 'began').write_text('yes'); time.sleep(60)"
    )  # fmt: skip
    child = subprocess.Popen(
        [sys.executable, "-m", "toolkit", "evidence", "cachekey", *command], stderr=subprocess.PIPE, cwd=tmp_path
    )
    for _ in range(500):
        if (tmp_path / "began").exists():
            break
        time.sleep(0.02)
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=10)

    assert child.returncode == 143
    assert list(temporary.iterdir()) == []
