"""What of generated code is shown and how it is marked."""

from __future__ import annotations

import pytest

from toolkit.page.compare import MOST_LINES, are_equal, code_lines, mark_differences, stage_lines


@pytest.mark.parametrize(
    ("line", "marked"),
    [
        ("@dvm.kernel(ktype='spec', dyn_shape=False)", True),
        ("@triton.jit", True),
        ("@pl.jit", True),
        ("    k.spec_next()", True),
        ("            dvm_fused_add_0.run(arg0_1, stream=stream0)", True),
        ("            extern_kernels.mm(arg0_1, arg1_1, out=buf0)", True),
        ("            buf0 = torch.ops.aten.max.dim(arg0_1, -1)", True),
        ("triton_per_fused_0 = async_compile.triton('name', '''", True),
        ("aten = torch.ops.aten", False),
        ("async_compile.wait(globals())", False),
        ("runner = Runner(partitions=[])", False),
        ("    x = k.load([4], dvm.float32)", False),
    ],
)
def test_a_line_that_defines_divides_or_calls_a_kernel_is_marked(line: str, marked: bool) -> None:
    assert [one.is_kernel for one in code_lines(line)] == [marked]


def test_the_graph_in_a_docstring_calls_nothing() -> None:
    lines = code_lines('"""\nx = torch.ops.aten.sum(y)\n"""\nx = torch.ops.aten.sum(y)')

    assert [line.is_kernel for line in lines] == [False, False, False, True]


def test_imports_and_the_benchmark_are_left_out() -> None:
    source = "\n".join(["import a"] * 5 + ["@dvm.kernel()"] + ["def get_args():"] + ["    pass"] * 4)

    assert [line.text for line in code_lines(source)] == [
        "… 5 lines left out: imports and names", "@dvm.kernel()", "… 5 lines left out: a benchmark of it",
    ]  # fmt: skip


@pytest.mark.parametrize("source", ["", "one line", "def get_args():\n" * 9, "not python at all (\n\x00"])
def test_other_text_is_shown_as_it_is(source: str) -> None:
    shown = code_lines(source)

    assert len(shown) <= len(source.splitlines()) or shown[-1].is_remark


def test_a_long_file_is_cut_and_says_so() -> None:
    shown = stage_lines("x {\n" * (MOST_LINES + 3))

    assert len(shown) == MOST_LINES + 1
    assert shown[-1].text == "… 3 lines left out: the whole is in the file"


def test_only_what_the_other_side_lacks_is_marked() -> None:
    before, after = mark_differences(stage_lines("a\nb {\nc"), stage_lines("a\nc\nd"))

    assert [line.is_own for line in before] == [False, True, False]
    assert [line.is_own for line in after] == [False, False, True]


def test_addresses_are_no_difference() -> None:
    before, after = stage_lines("load 0x200, 0x7fc02c0b9200"), stage_lines("load 0x200, 0x7f66401d7600")

    assert are_equal(before, after)
    assert not are_equal(before, stage_lines("load 0x240, 0x7f66401d7600"))
    assert [line.is_own for side in mark_differences(before, after) for line in side] == [False, False]
