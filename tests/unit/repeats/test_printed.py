"""Which lines are hashes, and what they are called."""

from __future__ import annotations

import re
import time

import pytest

from toolkit.repeats.printed import find_hashes

HASH = "810ddc00cbca1ac2cfb3832da4cffc107d4338a2edeb983a3be86206f6615000"


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (f"loss: {HASH}", "loss"),
        (f"loss={HASH}", "loss"),
        (f"loss = {HASH.upper()}", "loss"),
        (f"sha256(out.w) = {HASH}", "out.w"),
        (f"SHA256 (a/b.bin) = {HASH}", "a/b.bin"),
        (f"sha256(f(x)[0]): {HASH}", "f(x)[0]"),
        (f"norm(w): {HASH}", "norm(w)"),
        (f"grad of w: sha256:{HASH}", "grad of w"),
        (f"w: 0x{HASH}", "w"),
        (f"{HASH}  out/a.pt", "out/a.pt"),
        (f"{HASH} *out/a.pt", "out/a.pt"),
        (f"a: b: {HASH}", "a: b"),
        (f"  loss: {HASH}  ", "loss"),
        (f"md5(x)={HASH[:32]}", "x"),
        (f"[rank0]: loss = {HASH}", "rank 0: loss"),
        (f"[default1]:loss = {HASH}", "rank 1: loss"),
        (f"[Rank 12] loss = {HASH}", "rank 12: loss"),
        (f"rank 3: loss = {HASH}", "rank 3: loss"),
        (f"[2]: loss: {HASH}", "rank 2: loss"),
        (f"rank0_loss: {HASH}", "rank0_loss"),
        (f"2026-11-30 07:28:05,762 - INFO - loss: {HASH}", "loss"),
        (f"INFO:root:loss: {HASH}", "loss"),
        (f"[rank1]: [2026-11-30T07:28:05.762Z] [WARNING] loss: {HASH}", "rank 1: loss"),
    ],
)
def test_a_line_that_is_a_hash_with_its_name(line: str, name: str) -> None:
    value = re.sub(r".*?([0-9a-fA-F]{32,}).*", r"\1", line).lower()

    assert find_hashes(line) == {name: value}


@pytest.mark.parametrize(
    "line",
    [
        "",
        "pid: 12345678",
        f"loss {HASH}",
        f"loss: {HASH[:-1]}",
        f"loss: {HASH} and more",
        f": {HASH}",
        HASH,
        f"loss: {HASH}{HASH}0",
    ],
)
def test_any_other_line_is_none(line: str) -> None:
    assert find_hashes(line) == {}


def test_a_name_that_comes_again_is_counted() -> None:
    text = f"loss: {'1' * 64}\n[rank1]: loss: {'2' * 64}\nloss: {'3' * 64}\n"

    assert find_hashes(text) == {"loss": "1" * 64, "rank 1: loss": "2" * 64, "loss #2": "3" * 64}


def test_a_pattern_of_ones_own_is_searched_in_each_line() -> None:
    found = find_hashes("[rank2]: w 12AB, b 34cd", re.compile("([a-z]) ([0-9a-fA-F]{4})"))

    assert found == {"rank 2: w": "12ab", "rank 2: b": "34cd"}


@pytest.mark.parametrize("line", ["a" * 200_000, "a: " * 60_000, f"sha256({'(' * 100_000}", "sha(a(" * 30_000])
def test_long_lines_are_read_in_no_time(line: str) -> None:
    began = time.monotonic()
    assert find_hashes(line) == {}
    assert time.monotonic() - began < 2
