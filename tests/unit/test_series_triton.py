"""The series of the Triton backend: what they share with the DVM lines, and what must stay on one line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.series_cases import make_source
from toolkit.errors import ApplyError
from toolkit.model import Series
from toolkit.series import Line, apply_series, judge_series, load_series, read_line

PATCHES = Path(__file__).parents[2] / "patches"
SCALAR_LOAD = "0003-triton-integer-index-as-a-scalar-load"
FILE = "torch_npu/_inductor/codegen/triton.py"


def series_of(line: str) -> Series:
    return load_series(PATCHES / "torch_npu" / line, name=f"torch_npu/{line}")


def line_of(line: str) -> Line:
    return read_line(PATCHES / "torch_npu" / line, name=f"torch_npu/{line}")


def changed_lines(patch: Path) -> list[str]:
    text = patch.read_text(encoding="utf-8")
    return re.findall(r"^[+-](?!\+\+ |-- ).*$", text[text.index("\ndiff --git ") :], re.MULTILINE)


def scalar_load() -> Series:
    whole = series_of("2.12-triton")
    (patch,) = [patch for patch in whole.patches if patch.name == SCALAR_LOAD]
    return Series(name=whole.name, patches=(patch,))


def original_lines() -> list[str]:
    """Return the lines that the patch wants to find, which its one hunk shows."""
    (hunk,) = re.split(r"^@@ .*\n", scalar_load().patches[0].path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return [line[1:] for line in hunk.splitlines() if line[:1] in (" ", "-")]


def file_of(lines: list[str]) -> bytes:
    """Return a file that holds these lines in the class that the hunk names, far from where it says they are."""
    head = [*(f"line_{number} = {number}" for number in range(40)), "class NPUIndexTritonKernel(TritonKernel):"]
    return "".join(f"{line}\n" for line in [*head, "    def load(self, name, index):", *lines]).encode()


@pytest.mark.parametrize("line", ["2.12", "2.13"])
def test_the_fallback_order_is_the_dvm_line_s_own_change(line: str) -> None:
    (dvm,) = (PATCHES / "torch_npu" / line).glob("*-user-fallbacks-after-npu-lowerings.patch")
    (triton,) = (PATCHES / "torch_npu" / f"{line}-triton").glob("*-user-fallbacks-after-npu-lowerings.patch")
    assert changed_lines(triton) == changed_lines(dvm)
    said = [
        (patch.subject, patch.body, patch.witness)
        for name, path in ((line, dvm), (f"{line}-triton", triton))
        for patch in series_of(name).patches
        if patch.path == path
    ]
    assert said[0] == said[1]


@pytest.mark.parametrize("line", ["2.12", "2.13"])
def test_a_triton_line_is_diagnostic_and_covers_what_the_dvm_line_covers(line: str) -> None:
    dvm, triton = line_of(line), line_of(f"{line}-triton")
    assert (dvm.diagnostic, triton.diagnostic) == (False, True)
    assert (triton.covers, triton.upstream, triton.subfolder) == (dvm.covers, dvm.upstream, dvm.subfolder)


def test_the_scalar_load_is_on_the_2_12_line_alone() -> None:
    assert [patch.name for patch in series_of("2.12-triton").patches][-1] == SCALAR_LOAD
    assert "integer-scalar-load" not in {patch.witness for patch in series_of("2.13-triton").patches}
    covered = line_of("2.12-triton")
    assert not any(covered.is_for(f"torch_npu=={version}") for version in ("2.13.0", "2.14.0"))


def test_the_scalar_load_goes_to_its_own_lines_wherever_they_are(tmp_path: Path) -> None:
    tree = make_source(tmp_path, {FILE: file_of(original_lines())})
    (verdict,) = judge_series(scalar_load(), tree, scratch=tmp_path)
    assert (verdict.verdict, verdict.reason) == ("offset", "")
    apply_series(scalar_load(), tree, into=tmp_path / "patched", scratch=tmp_path)
    assert b"tl.load({var} + ({original_index}))" in (tmp_path / "patched" / FILE).read_bytes()


@pytest.mark.parametrize("position", [1, 2, 3, 4, 5, 6])
def test_the_scalar_load_is_refused_where_one_line_more_stands_between(tmp_path: Path, position: int) -> None:
    """As in torch_npu 2.13, which has one after `append_broadcast`; GNU patch takes it there with fuzz."""
    lines = original_lines()
    assert len(lines) == 7
    lines.insert(position, "                shape = None")
    tree = make_source(tmp_path, {FILE: file_of(lines)})
    (verdict,) = judge_series(scalar_load(), tree, scratch=tmp_path)
    assert verdict.verdict == "conflict"
    with pytest.raises(ApplyError, match=rf"^patch {SCALAR_LOAD} "):
        apply_series(scalar_load(), tree, into=tmp_path / "patched", scratch=tmp_path)
