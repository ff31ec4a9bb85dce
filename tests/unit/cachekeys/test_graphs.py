"""What the traces of one run say of its compiles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.trace_sample import CODE, COMPILE, VERSION, fx, lookup, metrics, record, version
from toolkit.cachekeys.graphs import read_run
from toolkit.cachekeys.values import RunTrace

FORWARD = ["gm: f", "fx_kwargs[is_backward]: False", "fx_kwargs[is_inference]: False"]
BACKWARD = ["gm: g", "fx_kwargs[is_backward]: True", "fx_kwargs[is_inference]: False"]
INFERENCE = ["gm: f", "fx_kwargs[is_backward]: False", "fx_kwargs[is_inference]: True"]


def read(tmp_path: Path, **files: str) -> RunTrace:
    for name, text in files.items():
        (tmp_path / f"{name}.log").write_text(text, encoding="utf-8")
    return read_run(tmp_path)


def test_lookups_are_told_in_their_order(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        a=version()
        + lookup("aotautograd_cache_miss", {"key": "akey", "components": []})
        + fx("miss", "f1", FORWARD, time_taken_ns=2_000_000_000)
        + fx("hit", "f2", BACKWARD, time_saved_ns=500_000_000)
        + fx("miss", "f3", INFERENCE, frame_id=1),
    )

    assert (found.torch, found.doubts, found.files) == ("2.13.0", (), 1)
    assert [(one.place, one.state, one.key, one.direction, one.seconds, one.saved) for one in found.lookups] == [
        (("", "0/0", "aotautograd", 1), "miss", "akey", "", None, None),
        (("", "0/0", "fx", 1), "miss", "f1", "forward", 2.0, None),
        (("", "0/0", "fx", 2), "hit", "f2", "backward", None, 0.5),
        (("", "1/0", "fx", 1), "miss", "f3", "inference", None, None),
    ]
    assert [one.parts is None for one in found.lookups] == [True, False, False, False]


def test_parts_keep_their_hash_and_text_and_equal_names_are_counted(tmp_path: Path) -> None:
    parts = ["gm: f()\n\ndef forward(x): pass", "a: 1", "a: 2", "a: 3"]
    (found,) = read(tmp_path, a=fx("miss", parts=parts)).lookups

    assert found.parts is not None
    assert {name: one.text for name, one in found.parts.items()} == {
        "gm": "f()\n\ndef forward(x): pass", "a": "1", "a #2": "2", "a #3": "3"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "state", "reason"),
    [
        pytest.param(
            fx("bypass", None, None, cache_bypass_reason="Unsupported post grad custom pass"), "bypass",
            "Unsupported post grad custom pass", id="bypass",
        ),
        pytest.param(fx("miss", cache_status_detailed="guard_miss"), "miss", "guard_miss", id="another kind of miss"),
        pytest.param(fx("miss", cache_status_detailed="full_miss"), "miss", "", id="a plain miss"),
        pytest.param(
            record({"chromium_event": {}, **COMPILE}, '{\n"name": "fx_graph_cache_disabled"\n}') + record(CODE),
            "disabled", "", id="disabled",
        ),
        pytest.param(
            record(CODE), "unrecorded", "the trace has the graph's code and no lookup", id="nothing recorded"
        ),
    ],
)  # fmt: skip
def test_a_graph_that_is_not_cached_says_why(tmp_path: Path, text: str, state: str, reason: str) -> None:
    found = read(tmp_path, a=text).lookups

    assert [(one.state, one.reason) for one in found] == [(state, reason)]


def test_compiles_have_their_seconds_in_either_form(tmp_path: Path) -> None:
    older = {"co_name": "g", "co_filename": "/x/m.py", "co_firstlineno": 9, "entire_frame_compile_time_s": 0.5}
    text = metrics(1.5) + metrics(0.25, "", backward=True) + record({"compilation_metrics": older, "frame_id": 1,
                                                                     "frame_compile_id": 2})  # fmt: skip
    found = read(tmp_path, a=text).compiles

    assert [(one.compile_id, one.backward, one.function, one.seconds) for one in found] == [
        ("0/0", False, "f (m.py:3)", 1.5), ("0/0", True, "", 0.25), ("1/2", False, "g (m.py:9)", 0.5)
    ]  # fmt: skip


def test_a_compiled_backward_and_a_compile_without_a_frame_have_names_too(tmp_path: Path) -> None:
    artifact = {"artifact": {"name": "fx_graph_cache_miss"}}
    text = "".join(
        record({**artifact, **where}, "{}")
        for where in (
            {"compiled_autograd_id": 1, "frame_id": 0, "frame_compile_id": 0},
            {"compiled_autograd_id": 2},
            {},
        )
    )

    assert [one.compile_id for one in read(tmp_path, a=text).lookups] == ["!1/0/0", "!2", "-"]


def test_compiles_after_a_reset_are_others_though_torch_counts_anew(tmp_path: Path) -> None:
    begin, again = record({"dynamo_start": {}, **COMPILE}), record({"dynamo_start": {}, **COMPILE, "attempt": 1})
    text = begin + again + fx("miss", "one") + metrics(1, "f") + fx("miss", "back") + begin + fx("miss", "two")
    found = read(tmp_path, a=text + metrics(2, "g"))

    assert [(one.compile_id, one.ordinal, one.key) for one in found.lookups] == [
        ("0/0", 1, "one"), ("0/0", 2, "back"), ("0/0 #2", 1, "two")
    ]  # fmt: skip
    assert [(one.compile_id, one.function) for one in found.compiles] == [
        ("0/0", "f (m.py:3)"),
        ("0/0 #2", "g (m.py:3)"),
    ]


def test_a_compile_that_fails_is_said_to(tmp_path: Path) -> None:
    failing = {"co_name": "f", "fail_type": "InductorError", "fail_reason": "AssertionError: no\n\nmore"}
    text = lookup("aotautograd_cache_miss", {"key": "a"}) + record({"compilation_metrics": failing, **COMPILE})
    found = read(tmp_path, a=text)

    assert [one.failure for one in found.compiles] == ["InductorError: AssertionError: no"]
    assert [one.failure for one in found.lookups] == ["InductorError: AssertionError: no"]


def test_ranks_are_named_by_file_or_by_record(tmp_path: Path) -> None:
    found = read(tmp_path, log_rank_10_x=fx("miss"), log_a=fx("miss", rank=2), log_b=version())

    assert [(one.process, one.key) for one in found.lookups] == [("rank 2", "fkey"), ("rank 10", "fkey")]
    assert found.files == 3


def test_processes_without_a_rank_are_named_by_when_they_began(tmp_path: Path) -> None:
    late = record({"x": 1}, stamp="09:00:00.000000") + fx("miss", "late")
    early = record({"x": 1}, stamp="08:00:00.000000") + fx("miss", "early")

    assert [(one.process, one.key) for one in read(tmp_path, a=late, b=early).lookups] == [
        ("process 1", "early"), ("process 2", "late")
    ]  # fmt: skip


def test_what_a_trace_lacks_is_told(tmp_path: Path) -> None:
    found = read(tmp_path, a="hello\n" + fx("miss")[:-9])

    assert found.torch is None
    assert found.doubts == (
        "1 line of the trace is in no form that is known here",
        "1 record of the trace is cut short",
        "the trace does not say which torch wrote it",
    )
    assert [(one.state, one.key, one.parts) for one in found.lookups] == [("miss", None, None)]


@pytest.mark.parametrize("payload", ["[]", "null", '{"key": 5, "components": 3, "time_taken_ns": "x"}', "no JSON"])
def test_a_payload_of_another_shape_has_no_key(tmp_path: Path, payload: str) -> None:
    text = record({"artifact": {"name": "fx_graph_cache_miss"}, **COMPILE}, payload)

    assert [(one.key, one.parts, one.seconds) for one in read(tmp_path, a=text).lookups] == [(None, None, None)]


def test_records_of_other_kinds_are_passed_over(tmp_path: Path) -> None:
    other = record({"artifact": "text"}) + record({"artifact": {"name": "fx_graph_cache_pickle_failure"}}, "{}")

    assert read(tmp_path, a=other + record(VERSION, json.dumps({})) + version("2.9.1")).lookups == ()


def test_no_trace_is_no_file(tmp_path: Path) -> None:
    assert read_run(tmp_path) == RunTrace(lookups=(), compiles=(), torch=None, doubts=(), files=0)
