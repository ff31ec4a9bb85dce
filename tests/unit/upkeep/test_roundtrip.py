"""From patch files to commits and back, byte for byte."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.personal import make_personal_git
from toolkit.git import WorkTree
from toolkit.model import FetchedBase, Series, SourceTree, Target
from toolkit.series import load_series
from toolkit.series.write import file_name, message_faults, slug_of
from toolkit.upkeep.roundtrip import commit_patches, read_again, round_trip_faults

ANN = "Ann <ann@example.org>"
DAY = "1788220800 +0200"
TRAILERS = "Upstream-Status: Pending [not sent]\nWitness: some-witness"
BODY = f"It fails without it.\n\n{TRAILERS}"
BASE = {
    "pkg/a.py": b"".join(b"line %d\n" % number for number in range(1, 31)),
    "pkg/dos.txt": b"one\r\ntwo\r\nthree\r\n",
    "pkg/end.txt": b"one\ntwo",
    "pkg/old name.txt": b"".join(b"kept %d\n" % number for number in range(1, 11)),
    "pkg/gone.py": b"1\n2\n",
}

Edit = Mapping[str, "bytes | None"]


def make_tree(folder: Path, files: Mapping[str, bytes] = BASE) -> SourceTree:
    for name, raw in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(raw)
    base = FetchedBase(
        component="sample", kind="wheel", digest="0" * 64, path=folder, file="sample-1.0", distribution="sample",
        version="1.0", target=Target(python_tag="any", platform="any"),
    )  # fmt: skip
    return SourceTree(base=base, root=folder, members=frozenset(files))


def write_series(
    scratch: Path, folder: Path, *edits: Edit, message: str = f"change\n\n{BODY}\n", author: str = ANN, context: int = 3
) -> Series:
    """Write a series in normal form, one patch for each edit of the base."""
    worktree = WorkTree(scratch / "made")
    worktree.start(files=BASE, has_modes=False)
    folder.mkdir(parents=True)
    for number, edit in enumerate(edits, 1):
        for name, raw in edit.items():
            path = worktree.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink() if raw is None else path.write_bytes(raw)
        worktree.stage_all()
        commit = worktree.commit(message, author=author, date=DAY)
        name = file_name(number, slug_of(message.partition("\n")[0]))
        (folder / name).write_bytes(worktree.export(commit, context))
    return load_series(folder, name="sample/1.0")


def edited(name: str, old: bytes, new: bytes) -> dict[str, bytes | None]:
    return {name: BASE[name].replace(old, new)}


LONG = "a subject that goes on for so long that git has to fold it in the header of a mail, and on and on it goes"

CASES: dict[str, tuple[list[Edit], dict[str, str]]] = {
    "one line": ([edited("pkg/a.py", b"line 15\n", b"other\n")], {}),
    "two patches of a file": (
        [
            edited("pkg/a.py", b"line 5\n", b"5\n"),
            {"pkg/a.py": BASE["pkg/a.py"].replace(b"line 5\n", b"5\n") + b"31\n"},
        ],
        {},
    ),
    "CRLF": ([edited("pkg/dos.txt", b"two\r\n", b"2\r\n")], {}),
    "no newline at the end": ([edited("pkg/end.txt", b"two", b"2")], {}),
    "a newline at the end": ([edited("pkg/end.txt", b"two", b"two\n")], {}),
    "new": ([{"pkg/new.py": b"1\n"}], {}),
    "new and empty": ([{"pkg/empty.py": b"", "pkg/new.py": b"1\n"}], {}),
    "deleted": ([{"pkg/gone.py": None}], {}),
    "renamed": ([{"pkg/old name.txt": None, "pkg/new name.txt": BASE["pkg/old name.txt"] + b"more\n"}], {}),
    "moved as it is": ([{"pkg/old name.txt": None, "pkg/new name.txt": BASE["pkg/old name.txt"]}], {}),
    "a name that git quotes": ([{"pkg/grün \"x\".py": b"1\n"}], {}),
    "binary": ([{"pkg/a.bin": bytes(range(256))}], {}),
    "encoded subject": ([edited("pkg/a.py", b"line 9\n", b"9\n")], {"message": f"größer: 形状 {LONG}\n\n{BODY}\n"}),
    "folded subject": ([edited("pkg/a.py", b"line 9\n", b"9\n")], {"message": f"{LONG}\n\n{BODY}\n"}),
    "subject in brackets": ([edited("pkg/a.py", b"line 9\n", b"9\n")], {"message": f"[dvm] change\n\n{BODY}\n"}),
    "encoded author": ([edited("pkg/a.py", b"line 9\n", b"9\n")], {"author": "Jörg Ünï <joerg@example.org>"}),
    "quoted author": ([edited("pkg/a.py", b"line 9\n", b"9\n")], {"author": 'A. "Al" Author, Jr. <a@example.org>'}),
    "no body but trailers": ([edited("pkg/a.py", b"line 9\n", b"9\n")], {"message": f"change\n\n{TRAILERS}\n"}),
    "a body that looks like a mail": (
        [edited("pkg/a.py", b"line 9\n", b"9\n")],
        {"message": f"change\n\nFrom here on:\n\n ---\n >From me\n  diff --git a/x b/x\n\n\n  -- \n\nEnde: ü\n{BODY}"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_series_in_normal_form_has_no_fault(tmp_path: Path, case: str) -> None:
    edits, options = CASES[case]
    series = write_series(tmp_path, tmp_path / "series", *edits, **options)  # type: ignore[arg-type]

    assert round_trip_faults(series, make_tree(tmp_path / "base")) == []
    assert round_trip_faults(series, None) == []


@pytest.mark.parametrize("context", [1, 2, 8])
def test_the_context_of_a_patch_is_kept(tmp_path: Path, context: int) -> None:
    edit = edited("pkg/a.py", b"line 15\n", b"other\n")
    series = write_series(tmp_path, tmp_path / "series", edit, context=context)

    assert round_trip_faults(series, make_tree(tmp_path / "base")) == []


def test_a_user_configuration_full_of_options_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edits = [
        {"pkg/a.py": BASE["pkg/a.py"].replace(b"line 15\n", b"15 \n\t15\n"), "pkg/new.txt": b"$Id$ \n"},
        {"pkg/dos.txt": b"one\r\n2\r\n", "pkg/old name.txt": None, "pkg/new name.txt": BASE["pkg/old name.txt"]},
    ]
    series = write_series(tmp_path, tmp_path / "plain", *edits, message=f"größer\n\n{BODY}\n")
    plain = [patch.path.read_bytes() for patch in series.patches]
    for name, value in make_personal_git(tmp_path / "home").items():
        monkeypatch.setenv(name, value)
    again = write_series(tmp_path / "again", tmp_path / "personal", *edits, message=f"größer\n\n{BODY}\n")

    assert [patch.path.read_bytes() for patch in again.patches] == plain
    assert round_trip_faults(again, make_tree(tmp_path / "base")) == []
    assert round_trip_faults(again, None) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (b"0" * 40, b"1" * 40, f"0001-change.patch:1: it is 'From {'1' * 40} Mon Sep 17 00:00:00 2001', "
         f"in normal form 'From {'0' * 40} Mon Sep 17 00:00:00 2001'"),
        (b"[PATCH]", b"[PATCH 1/2]", "0001-change.patch:4: it is 'Subject: [PATCH 1/2] change', "
         "in normal form 'Subject: [PATCH] change'"),
        (b" pkg/a.py | 2 +-", b" pkg/a.py |    2 +-", "0001-change.patch:11: it is ' pkg/a.py |    2 +-', "
         "in normal form ' pkg/a.py | 2 +-'"),
        (b"change\n\nIt", b"change\nX-Mailer: none\n\nIt", "0001-change.patch:5: it is 'X-Mailer: none', "
         "in normal form ''"),
        (b"---\n pkg", b"---\nNot for the log.\n\n pkg", "0001-change.patch:11: it is 'Not for the log.', "
         "in normal form ' pkg/a.py | 2 +-'"),
    ],
    ids=["an id", "a number", "another width", "a header", "a note"],
)  # fmt: skip
def test_what_git_would_write_otherwise_is_a_fault_with_its_line(
    tmp_path: Path, old: bytes, new: bytes, fault: str
) -> None:
    series = write_series(tmp_path, tmp_path / "series", edited("pkg/a.py", b"line 15\n", b"other\n"))
    path = series.patches[0].path
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    series = load_series(path.parent, name="sample/1.0")

    assert round_trip_faults(series, make_tree(tmp_path / "base")) == [fault]
    assert round_trip_faults(series, None) == [fault]


def test_a_signature_at_the_end_is_a_fault(tmp_path: Path) -> None:
    series = write_series(tmp_path, tmp_path / "series", edited("pkg/a.py", b"line 15\n", b"other\n"))
    path = series.patches[0].path
    path.write_bytes(path.read_bytes() + b"-- \n2.39.5\n\n")

    series = load_series(path.parent, name="sample/1.0")

    assert round_trip_faults(series, make_tree(tmp_path / "base")) == [
        "0001-change.patch:27: it is '-- ', in normal form ''"
    ]
    assert round_trip_faults(series, None) == ["0001-change.patch: has '-- ' after its diff"]


def test_a_line_of_context_that_lost_its_blank_is_a_fault(tmp_path: Path) -> None:
    files = BASE | {"pkg/a.py": BASE["pkg/a.py"].replace(b"line 14\n", b"\n")}
    worktree = WorkTree(tmp_path / "made")
    worktree.start(files=files)
    (worktree.folder / "pkg/a.py").write_bytes(files["pkg/a.py"].replace(b"line 15\n", b"15\n"))
    worktree.stage_all()
    raw = worktree.export(worktree.commit(f"change\n\n{BODY}\n", author=ANN, date=DAY))
    (tmp_path / "series").mkdir()
    (tmp_path / "series/0001-change.patch").write_bytes(raw.replace(b"\n \n-line 15", b"\n\n-line 15"))
    series = load_series(tmp_path / "series", name="sample/1.0")

    assert round_trip_faults(series, None) == [
        "0001-change.patch: hunk #1 of pkg/a.py has an empty line that lost its blank"
    ]


def test_a_patch_that_goes_in_at_another_line_is_a_fault_on_that_base(tmp_path: Path) -> None:
    series = write_series(tmp_path, tmp_path / "series", edited("pkg/a.py", b"line 15\n", b"other\n"))
    moved = make_tree(tmp_path / "base", BASE | {"pkg/a.py": b"a line before\n" + BASE["pkg/a.py"]})
    index = b"\nindex "
    first = next(line for line in series.patches[0].path.read_bytes().split(b"\n") if line.startswith(index.strip()))

    (fault,) = round_trip_faults(series, moved)
    assert fault.startswith(f"0001-change.patch:15: it is {first.decode()!r}, in normal form 'index ")


def test_a_patch_that_does_not_apply_is_the_last_that_is_looked_at(tmp_path: Path) -> None:
    series = write_series(tmp_path, tmp_path / "series", edited("pkg/a.py", b"line 15\n", b"other\n"))
    tree = make_tree(tmp_path / "base", BASE | {"pkg/a.py": b"all is new\n"})

    assert round_trip_faults(series, tree) == ["0001-change.patch: error: patch failed: pkg/a.py:12"]


LETTERS = st.text(
    alphabet=st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="\x85\u2028\u2029"), max_size=30
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(subject=LETTERS, lines=st.lists(LETTERS, max_size=5))
def test_any_message_that_a_patch_file_can_carry_comes_back(
    tmp_path_factory: pytest.TempPathFactory, subject: str, lines: list[str]
) -> None:
    subject = " ".join(subject.split())
    body = "\n".join(line.rstrip() for line in lines).strip("\n")
    if list(message_faults(subject, body)):
        return
    scratch = tmp_path_factory.mktemp("any")
    edit = edited("pkg/a.py", b"line 15\n", b"other\n")
    series = write_series(scratch, scratch / "series", edit, message=f"{subject}\n\n{body}\n\n{TRAILERS}\n")
    worktree = WorkTree(scratch / "again")
    worktree.start(files=BASE, has_modes=False)
    (one,) = [read_again(patch) for patch in series.patches]
    (commit,) = commit_patches([one], worktree)

    assert worktree.export(commit) == one.raw
