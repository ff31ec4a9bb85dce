"""Whether patched Python files still compile, on a base and without one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.series_cases import Tree, make_series, make_source
from toolkit.model import Series
from toolkit.series.diff import parse_diff
from toolkit.series.mail import parse_mail
from toolkit.series.undone import ReadPatch
from toolkit.upkeep.compiling import faults_alone, faults_on_base

CODE = b"".join(b"def f%d(x):\n    y = x + %d\n    return y\n\n\n" % (number, number) for number in range(6))


def opened(series: Series) -> list[ReadPatch]:
    read = [(patch, patch.path.read_bytes()) for patch in series.patches]
    return [
        ReadPatch(patch=patch, raw=raw, files=tuple(parse_diff(parse_mail(raw, []).diff, []))) for patch, raw in read
    ]


def on_base(tmp_path: Path, *trees: Tree, base: Tree | None = None, is_home: bool = True) -> list[tuple[int, str, str]]:
    """Return the faults of a series on its first tree, or on another base, with the patch file's lines."""
    patches = opened(make_series(tmp_path, *trees))
    source = make_source(tmp_path, base or trees[0])
    found = faults_on_base(patches, source, label="sample==1.0", scratch=tmp_path / "apply", is_home=is_home)
    return [(patch.number, fault.what, line_of(patch.path, fault.line)) for patch, fault in found]


def alone(tmp_path: Path, before: bytes, after: bytes, path: str = "a.py") -> list[tuple[str, str]]:
    """Return the faults of one edit, judged without a base."""
    patches = opened(make_series(tmp_path, {path: before}, {path: after}))
    return [(fault.what, line_of(patch.path, fault.line)) for patch, fault in faults_alone(patches)]


def line_of(path: Path, number: int) -> str:
    return path.read_text(encoding="utf-8").split("\n")[number - 1] if number else ""


def test_a_file_that_no_longer_compiles_is_named_with_the_line_that_does_it(tmp_path: Path) -> None:
    broken = CODE.replace(b"y = x + 3", b"y = x + (3")
    mended = CODE.replace(b"x + 3", b"x + 33")

    assert on_base(tmp_path, {"a.py": CODE}, {"a.py": broken}, {"a.py": mended}) == [
        (1, "a.py does not compile with it: line 17: '(' was never closed: 'y = x + (3'", "+    y = x + (3")
    ]


@pytest.mark.parametrize(
    ("new", "what"),
    [
        pytest.param("try:\n    pass\nexcept* OSError:\n    pass\n", "", id="3.11"),
        pytest.param("type X = int\n", "", id="3.12"),
        pytest.param("return 1\n", "'return' outside function", id="what only the compiler sees"),
    ],
)
def test_what_the_oldest_target_cannot_read_does_not_compile(tmp_path: Path, new: str, what: str) -> None:
    ((number, fault, _),) = on_base(tmp_path, {"a.py": CODE}, {"a.py": CODE, "b.py": new.encode()})

    assert number == 1
    assert fault.startswith("b.py does not compile with it: ")
    assert what in fault


def test_a_file_that_never_compiled_is_no_fault_of_a_patch(tmp_path: Path) -> None:
    old = b"print 'x'\n" + CODE
    assert on_base(tmp_path, {"a.py": old}, {"a.py": old.replace(b"x + 3", b"x + 33")}) == []


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    assert on_base(tmp_path, {"a.cpp": b"int a;\n"}, {"a.cpp": b"int (a;\n"}) == []


def test_a_patch_that_does_not_apply_ends_it(tmp_path: Path) -> None:
    trees = [{"a.py": CODE}, {"a.py": CODE.replace(b"x + 3", b"x + 33")}, {"a.py": CODE.replace(b"x + 3", b"x + (3")}]
    other = {"a.py": CODE.replace(b"x + 3", b"x - 3")}

    assert on_base(tmp_path, *trees, base=other) == [
        (1, "does not apply to sample==1.0: patch failed: a.py:14; see `toolkit patch status`", "")
    ]


@pytest.mark.parametrize(("is_home", "count"), [(True, 1), (False, 0)], ids=["home", "another base"])
def test_a_change_that_another_base_has_already_is_left_out_there(tmp_path: Path, is_home: bool, count: int) -> None:
    trees = [{"a.py": CODE}, {"a.py": CODE.replace(b"x + 3", b"x + 33")}]
    assert len(on_base(tmp_path, *trees, base=trees[1], is_home=is_home)) == count


@pytest.mark.parametrize(
    ("old", "new", "fault", "line"),
    [
        pytest.param(
            b"    y = x + 3\n", b"    y = x + (3\n",
            "hunk #1 of a.py does not compile: '(' was never closed: 'y = x + (3'", "+    y = x + (3",
            id="a bracket",
        ),
        pytest.param(
            b"    y = x + 3\n", b"    y = x +\n", "hunk #1 of a.py does not compile: invalid syntax: 'y = x +'",
            "+    y = x +", id="half a line",
        ),
    ],
)  # fmt: skip
def test_without_a_base_a_hunk_that_stands_alone_is_compiled(
    tmp_path: Path, old: bytes, new: bytes, fault: str, line: str
) -> None:
    assert alone(tmp_path, padded(CODE), padded(CODE).replace(old, new)) == [(fault, line)]


def test_without_a_base_a_hunk_that_begins_with_an_else_is_compiled_too(tmp_path: Path) -> None:
    before = b"if x:\n    a()\nelse:\n    b()\n    c()\n    d()\n"
    assert alone(tmp_path, before, before.replace(b"    d()\n", b"    d(\n")) == [
        ("hunk #1 of a.py does not compile: '(' was never closed: 'd('", "+    d(")
    ]


def test_without_a_base_a_new_file_is_compiled_whole(tmp_path: Path) -> None:
    patches = opened(make_series(tmp_path, {"a.py": CODE}, {"a.py": CODE, "b.py": b"x = 1\nreturn x\n"}))
    ((_, fault),) = faults_alone(patches)
    assert fault.what == "hunk #1 of b.py does not compile: 'return' outside function"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(b"    if x:\n        a()\n", b"    if x:\n        a()\n    elif y:\n        c()\n", id="elif"),
        pytest.param(b"    x = [\n        1,\n    ]\n", b"    x = [\n        1,\n        2,\n    ]\n", id="bracket"),
        pytest.param(b'    """one\n    two"""\n', b'    """one\n    it\'s (\n    two"""\n', id="in a string"),
        pytest.param(b"    a()\n", b"    try:\n        a()\n    except OSError:\n        b()\n", id="try"),
        pytest.param(b"    a()\n", b"    return a()\n", id="return"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("around", [0, 1, 2, 5], ids=lambda count: f"{count} lines around")
def test_without_a_base_what_is_right_is_no_fault(tmp_path: Path, before: bytes, after: bytes, around: int) -> None:
    lines = [b"    z%d = 1\n" % number for number in range(around)]
    head, tail = b"def f(x, y):\n" + b"".join(lines), b"".join(lines) + b"    return 1\n"
    assert alone(tmp_path, head + before + tail, head + after + tail) == []


def padded(code: bytes, lines: Sequence[bytes] = ()) -> bytes:
    """Make every hunk of the code hold one whole function."""
    return code.replace(b"\n\n\n", b"\n\n\n\n\n") + b"".join(lines)
