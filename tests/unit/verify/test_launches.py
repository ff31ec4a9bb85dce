"""Decoding of launches recorded from the unpatched torch_npu 2.13.0 on the host sysroot (recorded_launches.json)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from verify.launches import (
    Access,
    Launch,
    UnreadableLaunchError,
    learn_operations,
    overwritten_before_read,
    read_launches,
    split_instructions,
)

RECORDED = {case["name"]: case for case in json.loads(Path(__file__).with_name("recorded_launches.json").read_text())}
OPERATIONS_OF_2_13: dict[int, Any] = {
    0x1922: "load",
    0x1923: "load",
    0x1A80: "store",
    0x3CF0: "store",
    0x1AF9: "atomic",
}
READABLE = [name for name in RECORDED if name != "matmul"]


def decode(name: str, **changes: Any) -> list[Launch]:
    case = RECORDED[name]
    lines = [json.dumps({**record, **changes}) for record in case["records"]]
    tensors = {tensor: (start, size) for tensor, (start, size) in case["tensors"].items()}
    return read_launches(lines, tensors, OPERATIONS_OF_2_13)


def launch(*accesses: str) -> Launch:
    """Make a launch from words such as `load:a`."""
    parts = [access.split(":") for access in accesses]
    return Launch("f", 1, tuple(Access(kind, 0, tensor) for kind, tensor in parts))  # type: ignore[arg-type]


def test_the_alias_fault_shows_in_three_launches() -> None:
    assert [str(found) for found in decode("alias")] == [
        "1 blocks: store old",
        "40 blocks: load x, atomic old",
        "1 blocks: load old, load old, store old",
    ]


def test_a_deterministic_reduction_parks_without_a_fill() -> None:
    assert [str(found) for found in decode("det_alias")] == [
        "20 blocks: load x, unknown temporary, store old",
        "1 blocks: load old, load old, store old",
    ]


@pytest.mark.parametrize(
    ("name", "parked"),
    [
        ("t1_two", ["a", "b"]),
        ("t2_ema", ["e"]),
        ("t3_ret", ["temporary"]),
        ("t4_softmax", []),
        ("t5_adamw", ["temporary"]),
        ("c4_bn", ["temporary", "temporary"]),
    ],
)
def test_values_are_parked_where_the_catalogue_says(name: str, parked: list[str]) -> None:
    found = [access.tensor for found in decode(name) for access in found.accesses or () if access.kind == "atomic"]
    assert found == parked


@pytest.mark.parametrize("name", READABLE)
def test_lost_inputs_are_found_and_no_others(name: str) -> None:
    assert list(overwritten_before_read(decode(name), RECORDED[name]["needed"])) == RECORDED[name]["lost"]


def test_the_reason_names_the_launches() -> None:
    assert overwritten_before_read(decode("alias"), ["old"]) == {
        "old": "launch 1 writes it, and launch 3 is the first to load it"
    }


@pytest.mark.parametrize(
    ("launches", "reason"),
    [
        pytest.param([launch("load:a", "store:a")], None, id="one-launch"),
        pytest.param([launch("load:a", "store:b"), launch("load:a", "load:b", "store:a")], None, id="parked-elsewhere"),
        pytest.param([launch("load:a"), launch("load:b")], None, id="never-written"),
        pytest.param(
            [launch("store:a"), launch("load:a", "atomic:b")],
            "launch 1 writes it, and launch 2 is the first to load it",
            id="filled",
        ),
        pytest.param(
            [launch("load:x", "store:b"), launch("load:x", "store:a"), launch("load:a", "load:a", "store:a")],
            "launch 2 writes it, and launch 3 is the first to load it",
            id="parked",
        ),
    ],
)
def test_overwritten_before_read(launches: list[Launch], reason: str | None) -> None:
    assert overwritten_before_read(launches, ["a"]) == ({"a": reason} if reason else {})


def test_a_load_before_and_after_the_write_is_not_judged() -> None:
    with pytest.raises(UnreadableLaunchError, match="launch 2 loads 'a' again after launch 1 wrote it"):
        overwritten_before_read([launch("load:a", "store:a"), launch("load:a", "store:a")], ["a"])


def test_a_needed_input_that_nothing_loads_is_not_judged() -> None:
    with pytest.raises(UnreadableLaunchError, match="no launch loads 'a'"):
        overwritten_before_read([launch("store:a")], ["a"])


def test_an_unknown_access_to_a_needed_input_is_not_judged() -> None:
    with pytest.raises(UnreadableLaunchError, match=r"launch 1 \(f\) does something unknown to 'a'"):
        overwritten_before_read([launch("unknown:a")], ["a"])
    assert overwritten_before_read([launch("unknown:a", "load:b")], ["b"]) == {}


def test_a_kernel_with_matrix_multiplication_stays_unread() -> None:
    (found,) = decode("matmul")
    assert found.accesses is None
    with pytest.raises(UnreadableLaunchError, match="words of an unknown form"):
        overwritten_before_read([found], ["a"])


def test_an_unknown_operation_with_an_address_is_unknown() -> None:
    words = ["0", "10000000400", "777700000000003c", "1", "7f0000000010", "0"]
    record = {"kind": "launch", "function": None, "blocks": 1, "args": words, "allocations": []}
    (found,) = read_launches([json.dumps(record)], {"a": (0x7F0000000000, 32)}, OPERATIONS_OF_2_13)
    assert found.accesses == (Access("unknown", 0x7F0000000010, "a"),)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param([], id="none"),
        pytest.param([0, 0x500, 0x1A8000002004003C, 1, 2, 0], id="count-wrong"),
        pytest.param([0, 0x40A, 0x1A8000002004003C, 1, 2, 0], id="not-a-vector-kernel"),
        pytest.param([0, 0x400, 0x1A8000002004005C, 1, 2, 0], id="instruction-past-the-end"),
        pytest.param([0, 0x400, 0x1A80000020040000, 1, 2, 0], id="no-length"),
        pytest.param([0, 0x300, 0x1A8000002004003C, 1, 2], id="no-end"),
    ],
)
def test_words_of_another_form_are_refused(words: list[int]) -> None:
    assert split_instructions(words) is None


def test_fills_and_copies_are_skipped() -> None:
    assert read_launches(['{"kind": "memset", "n": 0}', "", '{"kind": "memcpy", "n": 1}'], {}, {}) == []


LISTING = """\
// target=0, block_dim=1, ffts_addr=0
vmain.aiv(body_tile=1, tail_tile_diff=0) {
  0: load.u8.4x1 0x200, 0x7f0000000010 //tile_stride(4), pad_size(28), iter_tail(4)
      {load, load_simd_sync(set, 0), simd_load_sync(wait, 0) }
  1: Divs.fp32.8 0x260, 0x200, 32768
      {simd, load_simd_sync(wait, 0) }
  2: store_atomic.u8.4x1 0x7f0000000020, 0x260 //tile_stride(4), iter_tail(4), pad_size(28)
      {store, simd_store_sync(wait, 0) }
}
"""
LOAD, DIVIDE, ATOMIC = (0x59E0 << 48) + 0x3C, (0xD4FC << 48) + 0x101, (0x7248 << 48) + 0x3C


def launched(*, source: int = 0x7F0000000010, header: int = 0x900) -> str:
    words = [0, header, LOAD, 0x200, source, DIVIDE, 0x260, ATOMIC, 0x260, 0x7F0000000020, 0]
    live = {"base": "7f0000000000", "size": 64}
    record = {"kind": "launch", "function": "f", "blocks": 1, "args": [f"{word:x}" for word in words]}
    return json.dumps({**record, "allocations": [live]})


class TestLearningOperations:
    def test_numbers_take_the_meaning_of_the_listed_names(self) -> None:
        assert learn_operations([launched()], [LISTING]) == {0x59E0: "load", 0xD4FC: "unknown", 0x7248: "atomic"}

    def test_what_was_learnt_decodes_the_launch(self) -> None:
        operations = learn_operations([launched()], [LISTING])
        (found,) = read_launches([launched()], {"a": (0x7F0000000010, 4)}, operations)
        assert str(found) == "1 blocks: load a, atomic temporary"

    def test_a_listing_of_other_addresses_teaches_nothing(self) -> None:
        assert learn_operations([launched(source=0x7F0000000030)], [LISTING]) == {}

    def test_a_listing_of_another_length_teaches_nothing(self) -> None:
        assert learn_operations([launched()], [LISTING.replace("  1: Divs", "  Divs")]) == {}

    def test_a_number_with_two_names_is_left_out(self) -> None:
        other = LISTING.replace("load.u8", "store.u8")
        assert learn_operations([launched()], [LISTING, other]) == {0xD4FC: "unknown", 0x7248: "atomic"}

    def test_a_launch_of_unknown_form_teaches_nothing(self) -> None:
        assert learn_operations([launched(header=0x90A)], [LISTING, "vmain.aiv() {\n}\n"]) == {}
