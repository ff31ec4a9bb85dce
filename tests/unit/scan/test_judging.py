"""Requirements: how they come out, and what files that cannot be read leave undecided."""

from __future__ import annotations

import pytest

from toolkit.errors import UsageError
from toolkit.model import EvidenceKept, EvidenceWanted
from toolkit.scan import FileReport, Hazard, add_up, judge, overall, require_patterns
from toolkit.scan.judging import Judgement

HAZARD = Hazard(
    kernel="k", line=1, value="v", made=0, used=1, output="a", input="a", buffer="a", read=1, certainty="possible"
)
DVM = FileReport(path="dvm", state="wrapper", kernels={"dvm": 2}, types={"spec": 2}, decorators={"dvm.kernel": 2})
VENDOR = FileReport(
    path="vendor", state="wrapper", kernels={"dvm": 1}, decorators={"dvm.kernel": 1},
    custom={"torch.ops.cann_ops_transformer.sparse_flash_mla.default": 3}, extern={"extern_kernels.mm": 1},
)  # fmt: skip
TRITON = FileReport(
    path="triton",
    state="wrapper",
    kernels={"triton": 1},
    decorators={"triton.jit": 1, "triton_heuristics.pointwise": 1},
)
ALONE = FileReport(path="alone", state="kernels", kernels={"triton": 1}, decorators={"triton.jit": 1})
UNREAD = FileReport(path="unread", state="unreadable", why="empty")
OTHER = FileReport(path="other", state="other")
HAZARDOUS = FileReport(path="hazardous", state="wrapper", hazards=(HAZARD, HAZARD))
DOUBTFUL = FileReport(path="doubtful", state="wrapper", doubts=("why",))


def one(wanted: EvidenceWanted, *reports: FileReport) -> Judgement:
    (judged,) = judge(reports, wanted)
    return judged


@pytest.mark.parametrize(
    ("reports", "in_all", "outcome", "figures"),
    [
        ((DVM, VENDOR, OTHER), True, "passed", "2 of 2 files"),
        ((DVM, TRITON), True, "failed", "1 of 2 files"),
        ((DVM, UNREAD), True, "undecided", "1 of 1 files, 1 not read"),
        ((DVM, TRITON, UNREAD), True, "failed", "1 of 2 files, 1 not read"),
        ((ALONE,), True, "failed", "0 of 0 files"),
        ((DVM, TRITON, UNREAD), False, "passed", "1 of 2 files, 1 not read"),
        ((TRITON,), False, "failed", "0 of 1 files"),
        ((TRITON, UNREAD), False, "undecided", "0 of 1 files, 1 not read"),
        ((), False, "failed", "0 of 0 files"),
    ],
)
def test_what_is_required(reports: tuple[FileReport, ...], in_all: bool, outcome: str, figures: str) -> None:
    judged = one(EvidenceWanted(require=("@dvm.kernel",), in_all=in_all), *reports)

    assert (judged.outcome, judged.figures) == (outcome, figures)


@pytest.mark.parametrize(
    ("reports", "outcome", "figures", "files"),
    [
        ((DVM, VENDOR), "passed", "0 of 2 files", []),
        ((DVM, TRITON, ALONE, UNREAD), "failed", "2 of 3 files, 1 not read", ["triton", "alone"]),
        ((DVM, UNREAD), "undecided", "0 of 1 files, 1 not read", []),
        ((OTHER,), "undecided", "0 of 0 files", []),
    ],
)
def test_what_is_forbidden(reports: tuple[FileReport, ...], outcome: str, figures: str, files: list[str]) -> None:
    judged = one(EvidenceWanted(forbid=("@triton.jit",)), *reports)

    assert (judged.outcome, judged.figures, list(judged.files)) == (outcome, figures, files)


@pytest.mark.parametrize(
    ("reports", "outcome"),
    [((VENDOR, VENDOR, DVM), "passed"), ((VENDOR, VENDOR, UNREAD), "passed"), ((VENDOR, UNREAD), "undecided"),
     ((VENDOR, DVM), "failed")],
)  # fmt: skip
def test_what_is_to_be_kept(reports: tuple[FileReport, ...], outcome: str) -> None:
    keep = EvidenceKept(pattern="cann_ops_transformer|sparse_flash_mla", at_least=2)
    judged = one(EvidenceWanted(keep=(keep,)), *reports)

    assert (judged.outcome, judged.wanted) == (outcome, "cann_ops_transformer|sparse_flash_mla in at least 2 files")


@pytest.mark.parametrize(
    ("reports", "outcome", "figures"),
    [
        ((DVM, ALONE), "passed", "0 in 0 of 2 files"),
        ((DVM, HAZARDOUS), "failed", "2 in 1 of 2 files"),
        ((DVM, UNREAD), "undecided", "0 in 0 of 1 files, 1 not read"),
        ((DVM, DOUBTFUL), "undecided", "0 in 0 of 2 files, 1 files with calls that cannot be judged"),
    ],
)
def test_alias_hazards(reports: tuple[FileReport, ...], outcome: str, figures: str) -> None:
    judged = one(EvidenceWanted(no_alias_hazard=True), *reports)

    assert (judged.outcome, judged.figures) == (outcome, figures)


@pytest.mark.parametrize(
    ("pattern", "reports", "count"),
    [
        ("@dvm", (DVM, VENDOR, TRITON), 2),
        ("@dvm.kern", (DVM,), 0),
        ("@triton_heuristics", (TRITON,), 1),
        (r"extern_kernels\.mm$", (VENDOR, DVM), 1),
        ("sparse.*default", (VENDOR, DVM), 1),
        ("dvm", (DVM,), 0),
        ("dvm.kernel", (DVM,), 1),
    ],
)
def test_a_pattern_is_a_decorator_or_an_operator(pattern: str, reports: tuple[FileReport, ...], count: int) -> None:
    assert one(EvidenceWanted(require=(pattern,)), *reports).figures == f"{count} of {len(reports)} files"


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("", "an empty pattern, which everything would match"),
        ("@", "'@' is not the name of a decorator, as '@dvm.kernel' is"),
        (
            "@dvm.kernel(ktype='spec')",
            "\"@dvm.kernel(ktype='spec')\" is not the name of a decorator, as '@dvm.kernel' is",
        ),
        ("a(", "'a(' is no regular expression: missing ), unterminated subpattern at position 1"),
    ],
)
@pytest.mark.parametrize("where", ["require", "forbid", "keep"])
def test_what_is_no_pattern_is_refused(pattern: str, message: str, where: str) -> None:
    given = {where: (EvidenceKept(pattern=pattern, at_least=1),) if where == "keep" else (pattern,)}
    with pytest.raises(UsageError) as fault:
        require_patterns(EvidenceWanted(**given))  # type: ignore[arg-type]

    assert fault.value.message == message


@pytest.mark.parametrize(
    ("reports", "outcome"),
    [((DVM,), "passed"), ((DVM, UNREAD), "undecided"), ((OTHER,), "undecided"), ((), "undecided"), ((ALONE,), "failed"),
     ((TRITON, UNREAD), "failed")],
)  # fmt: skip
def test_what_could_not_be_read_is_never_passed(reports: tuple[FileReport, ...], outcome: str) -> None:
    assert overall(reports, judge(reports, EvidenceWanted(forbid=("@triton.jit",)))) == outcome


def test_counts_are_added_up_the_most_first() -> None:
    total = add_up([DVM, VENDOR, TRITON, ALONE, UNREAD, OTHER])

    assert total.files == {"wrapper": 3, "kernels": 1, "unreadable": 1, "other": 1}
    assert list(total.kernels.items()) == [("dvm", 3), ("triton", 2)]
    assert total.types == {"spec": 2}
    assert total.custom == {"torch.ops.cann_ops_transformer.sparse_flash_mla.default": 3}
