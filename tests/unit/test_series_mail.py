"""Taking the mail of `git format-patch` apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.series_cases import TRAILERS, edit_diff, patch_text, write_patches
from toolkit.series.mail import is_mangled, parse_mail, parse_trailers


def test_a_long_subject_is_unfolded(tmp_path: Path) -> None:
    subject = "refuse what cannot be right " * 6
    (path,) = write_patches(
        tmp_path / "repo", tmp_path / "out", {"a": b"1\n"}, {"a": b"2\n"}, message=f"{subject.strip()}\n\nBody."
    )
    assert path.read_bytes().count(b"\n refuse") + path.read_bytes().count(b"\n what") > 0
    assert parse_mail(path.read_bytes(), []).subject == subject.strip()


def test_an_encoded_subject_is_decoded(tmp_path: Path) -> None:
    subject = "Größenänderung ohne Wächter: 形状 " * 4
    (path,) = write_patches(
        tmp_path / "repo", tmp_path / "out", {"a": b"1\n"}, {"a": b"2\n"}, message=f"{subject.strip()}\n\nKörper."
    )
    assert b"=?UTF-8?" in path.read_bytes()
    faults: list[str] = []
    mail = parse_mail(path.read_bytes(), faults)
    assert (mail.subject, mail.body, faults) == (subject.strip(), "Körper.", [])


def test_patch_numbers_are_cut_from_the_subject() -> None:
    raw = patch_text("", subject="x").replace("[PATCH] x", "[PATCH v2 3/4] [RFC] keep [this]").encode()
    assert parse_mail(raw, []).subject == "keep [this]"


def test_notes_and_the_diffstat_are_no_part_of_the_body() -> None:
    raw = patch_text(edit_diff("a.py")).replace("---\n a | 1 +", "---\nNote: for reviewers\n a | 1 +", 1).encode()
    mail = parse_mail(raw, [])
    assert mail.body == f"It fails without it.\n\n{TRAILERS}"
    assert mail.diff.startswith(b"diff --git a/a.py b/a.py\n")


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        pytest.param(
            "From: A. Author <author@example.org>\n", "",
            "has no `From:` header; write patches with `git format-patch`", id="no sender",
        ),
        pytest.param(
            "Date: Fri, 2 Jan 2026 03:04:05 +0000\n", "",
            "has no `Date:` header; write patches with `git format-patch`", id="no date",
        ),
        pytest.param(
            "Subject: [PATCH] change\n", "Subject:\n",
            "has no `Subject:` header; write patches with `git format-patch`", id="empty subject",
        ),
        pytest.param(
            "\n\nIt", "\nContent-Transfer-Encoding: quoted-printable\n\nIt",
            "is encoded as 'quoted-printable', as a mail program does; take the file that `git format-patch` wrote",
            id="quoted-printable",
        ),
        pytest.param(
            "\n\nIt", '\nContent-Type: text/plain; charset="iso-8859-1"\n\nIt',
            "its message is in 'iso-8859-1', expected UTF-8", id="latin-1",
        ),
        pytest.param(
            "[PATCH] change", "=?utf-16?q?=D8?=",
            "its subject '=?utf-16?q?=D8?=' cannot be decoded: 'utf-16-le' codec can't decode byte 0xd8 in position 0:"
            " truncated data", id="undecodable subject",
        ),
    ],
)  # fmt: skip
def test_a_header_that_git_would_not_write_is_a_fault(old: str, new: str, fault: str) -> None:
    faults: list[str] = []
    parse_mail(patch_text(edit_diff("a.py")).replace(old, new, 1).encode(), faults)
    assert faults == [fault]


def test_a_message_that_is_not_utf8_is_a_fault() -> None:
    faults: list[str] = []
    raw = patch_text(edit_diff("a.py")).replace("It fails", "It f\udce4ils").encode("utf-8", "surrogateescape")
    parse_mail(raw, faults)
    assert faults == [f"its message is not UTF-8 (byte {raw.index(0xE4)})"]


@pytest.mark.parametrize(
    ("body", "trailers"),
    [
        pytest.param("Text.\n\nA: 1\nB: 2", [("A", "1"), ("B", "2")], id="last paragraph"),
        pytest.param("Text.\n\nA: 1\n  and more\nB: 2", [("A", "1 and more"), ("B", "2")], id="folded"),
        pytest.param("A: 1\n\nText.", [], id="not in the last paragraph"),
        pytest.param("Text.\n\nA: 1\nsome prose", [], id="among prose"),
        pytest.param("", [], id="no body"),
    ],
)
def test_trailers_stand_in_the_last_paragraph(body: str, trailers: list[tuple[str, str]]) -> None:
    assert list(parse_trailers(body)) == trailers


def test_trailer_names_are_found_in_any_case() -> None:
    mail = parse_mail(patch_text("", trailers="upstream-status: Pending [x]\nFIXES: 1\nFixes: 2").encode(), [])
    assert (mail.values("Upstream-Status"), mail.values("Fixes")) == (["Pending [x]"], ["1", "2"])


def test_a_patch_file_that_was_converted_to_crlf_is_mangled() -> None:
    assert is_mangled(patch_text(edit_diff("a.py")).replace("\n", "\r\n").encode())


def test_a_diff_that_was_converted_to_crlf_is_mangled() -> None:
    assert is_mangled(patch_text(edit_diff("a.py").replace("\n", "\r\n")).encode())


def test_crlf_inside_hunks_alone_is_not_mangled(tmp_path: Path) -> None:
    (path,) = write_patches(tmp_path / "repo", tmp_path / "out", {"a": b"1\r\n2\r\n"}, {"a": b"1\r\n3\r\n"})
    assert b"-2\r\n+3\r\n" in path.read_bytes()
    assert not is_mangled(path.read_bytes())
