"""The shipped rules: each finds its samples, whole logs around them or not, and none takes another's."""

from __future__ import annotations

import random
from collections import Counter as Count
from functools import lru_cache
from pathlib import Path

import pytest

import toolkit
from toolkit.triage import Finding, rule_faults, shipped_rules
from toolkit.triage.judging import judge
from toolkit.triage.samples import Counter, Sample, shipped_samples
from toolkit.triage.walking import read_log

CHECKOUT = Path(toolkit.__file__).parents[1]
BOOK = shipped_rules()
FILES = shipped_samples()
SAMPLES = [one for file in FILES.values() for one in file.sample]
NOTES = {rule.cause for rule in BOOK.rules if rule.kind == "note"}
FOUND = [one for one in SAMPLES if one.cause not in NOTES]
BY_STEP = {rule.cause for rule in BOOK.rules if any("last_step" in when.where for when in rule.when)}
COUNTERS = [one for file in FILES.values() for one in file.counter]
NOISE_LINES = 200_000
WITHOUT_SAMPLES = ("wrapper",)


@lru_cache(maxsize=1)
def healthy_log() -> bytes:
    """Make a training log of eight ranks in which nothing failed."""
    chance = random.Random(7)
    lines = []
    for at in range(NOISE_LINES):
        rank, step = at % 8, at // 8 + 1
        stamp = f"2026-08-20 {step // 3600 % 24:02d}:{step // 60 % 60:02d}:{step % 60:02d},{chance.randrange(1000):03d}"
        if at % 97 == 5:
            lines.append(f"[rank{rank}]:{stamp} - root - DEBUG - saved 0 failed uploads, next check in {step} s")
        elif at % 1013 == 7:
            lines.append(
                f"[rank{rank}]:[W820 11:00:00.{at % 1000:03d} NPUCachingAllocator.cpp:168] Warning: 32 padding size"
            )
        else:
            loss = chance.uniform(2, 12)
            lines.append(
                f"[rank{rank}]:{stamp} - root - INFO - step: {step:5d}  loss: {loss:8.5f}  grad_norm: 2.1  tps: 911"
            )
    return ("\n".join(lines) + "\n").encode()


def first_finding(*pieces: bytes) -> Finding:
    log = read_log("train.log", None, pieces, BOOK)
    return judge([log], BOOK, {})[0][0]


def as_bytes(log: str) -> bytes:
    return log.lstrip("\n").encode()


def name_of(one: Sample | Counter) -> str:
    return one.cause


def test_the_rules_are_whole() -> None:
    patches = [
        str(path.relative_to(CHECKOUT / "patches").with_suffix("")) for path in CHECKOUT.glob("patches/*/*/*.patch")
    ]
    recipes = [path.stem for path in CHECKOUT.glob("recipes/*.toml")]

    assert rule_faults(BOOK, patches, recipes) == []


def test_every_rule_has_samples_and_a_counter_sample() -> None:
    wanted = {rule.cause for rule in BOOK.rules if any(when.is_of_item for when in rule.when)} - set(WITHOUT_SAMPLES)

    assert {cause for cause in wanted if cause not in {one.cause for one in SAMPLES}} == set()
    assert {cause for cause in wanted if cause not in {one.cause for one in COUNTERS}} == set()
    assert {one.cause for one in (*SAMPLES, *COUNTERS)} <= {rule.cause for rule in BOOK.rules} | {"unrecognized"}
    fewest = Count(one.cause for one in SAMPLES)
    assert {cause: fewest[cause] for cause in wanted if fewest[cause] < 3} == {}


@pytest.mark.parametrize("sample", [one for one in SAMPLES if one.cause in NOTES], ids=name_of)
def test_a_note_is_noted_and_is_no_failure(sample: Sample) -> None:
    findings, notes = judge([read_log("train.log", None, [as_bytes(sample.log)], BOOK)], BOOK, {})

    assert [one.cause for one in findings] == ["nothing-failed"]
    assert notes


@pytest.mark.parametrize("sample", FOUND, ids=name_of)
def test_a_sample_is_found(sample: Sample) -> None:
    finding = first_finding(as_bytes(sample.log))

    assert finding.cause == sample.cause, finding
    told = f"{finding.summary} {finding.fix} {finding.command}"
    assert [word for word in sample.says if word not in told] == []
    assert "?" not in finding.summary or "?" in sample.log, "a name in the template has no group"
    assert finding.evidence


@pytest.mark.parametrize("sample", FOUND, ids=name_of)
def test_a_sample_is_found_in_a_healthy_log(sample: Sample) -> None:
    """The first sample of each cause in all of the log, the others in its first few thousand lines."""
    noise = healthy_log()
    if sample is not next(one for one in FOUND if one.cause == sample.cause):
        noise = noise[: noise.find(b"\n", 400_000) + 1]
    middle = noise.find(b"\n", len(noise) // 2) + 1
    alone = first_finding(as_bytes(sample.log))

    buried = first_finding(noise[:middle], as_bytes(sample.log), noise[middle:])

    assert buried.layer == alone.layer
    assert buried.cause == alone.cause or buried.cause in BY_STEP, "only the steps before may make another cause of it"


@pytest.mark.parametrize("counter", COUNTERS, ids=name_of)
def test_a_counter_sample_is_something_else(counter: Counter) -> None:
    assert first_finding(as_bytes(counter.log)).cause == counter.found


def test_a_healthy_log_is_healthy() -> None:
    assert first_finding(healthy_log()).cause == "nothing-failed"
