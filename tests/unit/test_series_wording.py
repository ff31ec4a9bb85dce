"""What a patch's message has to say."""

from __future__ import annotations

import pytest

from tests.series_cases import TRAILERS, edit_diff, patch_text
from toolkit.series.mail import parse_mail
from toolkit.series.wording import wording_faults

BODY = "It fails without it.\n"
GOOD = "Without it answer() gives 41, which is wrong.\n\nAsk for it again. Proven on 1.0.\n"
COMMIT = "deaff7cff952d11ff5bd81e070f1ba2ad7d1a7b9"
NOTHING = "its body says nothing: expected what fails without it, why, and how that was proven, in 2 sentences or more"
NO_FAULT = "its body has no line that tells what fails without it: expected the error's text, or the wrong value"
NO_LINK = "has no link: expected upstream's commit, as an address or its full id"


def faults_of(*, subject: str = "change", body: str = GOOD, trailers: str = TRAILERS, edit: tuple[str, str] = ("", ""),
              ) -> list[tuple[str, str]]:  # fmt: skip
    text = patch_text(edit_diff("a.py"), trailers=trailers, subject=subject).replace(BODY, body).replace(*edit)
    lines = text.split("\n")
    return [
        (fault.what, lines[fault.line - 1]) for fault in wording_faults(text.encode(), parse_mail(text.encode(), []))
    ]


def test_a_message_that_says_what_fails_is_right() -> None:
    assert faults_of() == []


@pytest.mark.parametrize(
    ("subject", "fault"),
    [
        pytest.param(
            "x" * 73, "its subject has 73 letters, expected 72 at most; the body has room for more", id="long"
        ),
        pytest.param("x" * 72, "", id="just short enough"),
        pytest.param("mend it.", "its subject ends with a dot, expected none: it is a title", id="dot"),
    ],
)
def test_a_subject_is_a_title(subject: str, fault: str) -> None:
    assert faults_of(subject=subject) == ([(fault, f"Subject: [PATCH] {subject}")] if fault else [])


def test_a_subject_is_needed() -> None:
    assert faults_of(edit=("[PATCH] change", "[PATCH]")) == [
        ("its subject is empty; expected what it does, in a few words", "Subject: [PATCH]")
    ]


@pytest.mark.parametrize(
    ("body", "faults"),
    [
        pytest.param("", [NOTHING], id="nothing"),
        pytest.param("It fails without it.\n", [NOTHING], id="one sentence"),
        pytest.param("Rename the function.\n\nIt reads better. We like it so.\n", [NO_FAULT], id="no fault"),
        pytest.param(
            "Guards on data:\n\n    GuardOnDataDependentSymNode: Could not guard. Eq(u0, 1). x.\n",
            [NOTHING],
            id="quoted",
        ),
        pytest.param("Adding fails in lowering:\n\n    ValueError: no\n\nAsk elsewhere.\n", [], id="an error's text"),
        pytest.param("Two keys come to one score.\n\nIt is off by 2.1e-03 against FP64.\n", [], id="how far it is off"),
        pytest.param("It is 41, and\nshould be 42 instead of that.\n\nProven: yes.\n", [], id="a wrong value"),
    ],
)
def test_a_body_says_what_fails(body: str, faults: list[str]) -> None:
    assert faults_of(body=body) == [(fault, "Subject: [PATCH] change") for fault in faults]


@pytest.mark.parametrize(
    ("status", "is_linked"),
    [
        ("Backport [https://example.org/commit/12]", True),
        (f"Backport [{COMMIT}, 2026-07-21]", True),
        ("Backport [deaff7cff]", False),
        ("Backport [from master]", False),
        ("Pending [not sent yet]", True),
    ],
)
def test_a_backport_says_which_commit_it_is(status: str, is_linked: bool) -> None:
    line = f"Upstream-Status: {status}"
    faults = faults_of(trailers=f"{line}\nWitness: a")
    assert faults == ([] if is_linked else [(f"`{line}` {NO_LINK}", line)])


@pytest.mark.parametrize(
    ("edit", "fault", "line"),
    [
        pytest.param(
            ("A. Author <author@example.org>", "author@example.org"), "its `From:` is not `Name <address>`",
            "From: author@example.org", id="no name",
        ),
        pytest.param(
            ("Fri, 2 Jan 2026 03:04:05 +0000", "2026-01-02"),
            "its `Date: 2026-01-02` is no date of a mail, expected one such as `Tue, 1 Sep 2026 00:00:00 +0000`",
            "Date: 2026-01-02", id="no date of a mail",
        ),
    ],
)  # fmt: skip
def test_author_and_date_are_those_of_a_mail(edit: tuple[str, str], fault: str, line: str) -> None:
    assert faults_of(edit=edit) == [(fault, line)]
