"""Files as lines: the quick way and the parser say the same, and nothing passes that is not Python."""

from __future__ import annotations

import ast
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.generated_code import (
    ADD,
    MEAN_INTO_OLD,
    dvm_kernel,
    fallback_kernel,
    hazardous,
    plain,
    triton_kernel,
    wrapper,
)
from toolkit.scan import outline
from toolkit.scan.lines import words_of
from toolkit.scan.outline import Outline, outline_by_parsing, outline_of

MIXED = wrapper(
    [
        dvm_kernel("dvm_fused_add_0", ADD),
        triton_kernel("triton_poi_fused_1"),
        fallback_kernel("dvm_fused_sort_2"),
        dvm_kernel("dvm_fused_mean_3", MEAN_INTO_OLD, "spec", is_dynamic=True),
    ],
    [
        "arg0_1 = copy_if_misaligned(arg0_1)",
        "buf0 = empty_strided((128, 256), (256, 1), device='npu', dtype=torch.float32)",
        "# Topologically Sorted Source Nodes: [x], Original ATen: [aten.mm]",
        "buf1 = torch.ops.aten.mm.default(arg0_1, reinterpret_tensor(buf0, (4, 4), (4, 1), 0))",
        "buf2 = buf1[0]; del buf1  # reuse",
        "dvm_fused_mean_3.run(arg0_1, arg1_1, buf2, stream=stream0)",
        "if buf0 is not None:\n    extern_kernels.mm(buf0, buf0, out=buf2)\nelse:\n    del buf0",
        "buf3 = 1e-05",
        "buf4 = torch.ops.mylib.several.default(\n    buf0,\n    [1, (2, buf1)],\n    key='a',\n)",
        "buf5 = reinterpret_tensor(\n    buf4, (4, ),\n\n    (1, ), 0)",
    ],
)
SAMPLES = {"plain": plain(7, keeps_vendor=True), "hazardous": hazardous(), "mixed": MIXED}


def said(read: Outline) -> list[tuple[object, ...]]:
    """Return all that the lines say, in names, with the numbers of the lines."""
    found: list[tuple[object, ...]] = []
    for index, facts in read.facts:
        words, number = [*words_of(read.lines[index]), ""], read.numbers[index]
        found += [(number, "bind", words[one.word], words[one.source.word], one.source.view) for one in facts.binds]
        found += [(number, "alias", words[one.word]) for one in facts.aliases]
        found += [
            (number, "launch", words[one.word], *(words[to.word] for to in one.arguments)) for one in facts.launches
        ]
        found += [(number, "call", *words[one.word : one.word + one.words]) for one in facts.calls]
        found += [(number, "compiled", one.method, words[one.word]) for one in facts.compiled]
    return sorted(found, key=str)


def read_quickly(text: str) -> Outline | None:
    """Return the outline if the quick way takes the text."""
    try:
        return outline._by_lines(text)
    except (outline._UnusualError, SyntaxError):
        return None


def is_python(text: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Odd escapes are Python still.
        try:
            ast.parse(text)
        except (SyntaxError, ValueError):
            return False
    return True


@pytest.mark.parametrize("text", SAMPLES.values(), ids=SAMPLES)
def test_both_ways_say_the_same_of_each_line(text: str) -> None:
    quick, parsed = read_quickly(text), outline_by_parsing(text)

    assert quick is not None
    assert said(quick) == said(parsed)
    assert [string for _, string in quick.strings] == [string for _, string in parsed.strings]


@pytest.mark.parametrize("text", SAMPLES.values(), ids=SAMPLES)
def test_numbers_are_those_of_the_file(text: str) -> None:
    read = outline_of(text)
    lines = text.split("\n")
    wrong = [index for index, _ in read.facts
             if words_of(lines[read.numbers[index] - 1])[:2] != words_of(read.lines[index])[:2]]  # fmt: skip

    assert wrong == []


@pytest.mark.parametrize("text", SAMPLES.values(), ids=SAMPLES)
def test_a_text_that_is_cut_off_passes_only_where_it_is_still_python(text: str) -> None:
    passed = [end for end in range(0, len(text), 5) if read_quickly(text[:end]) is not None]

    assert len(passed) > 20
    assert [end for end in passed if not is_python(text[:end])] == []


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_a_text_that_is_damaged_passes_only_where_it_is_still_python(data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(MIXED)))
    end = min(len(MIXED), start + data.draw(st.integers(0, 60)))
    put = data.draw(
        st.text("abk10\"'\\#:()[]{},;=@ \n\t", max_size=6)
        | st.sampled_from(['"""', "'''", "\n    ", "\nelse:", "0123", "0b2", "\\\n", "# '''", '\'"""\'', '"""\n"""'])
    )
    damaged = MIXED[:start] + put + MIXED[end:]

    if (quick := read_quickly(damaged)) is not None:
        assert is_python(damaged)
        assert said(quick) == said(outline_by_parsing(damaged))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('x = \'"""\'\ntorch.ops.a.hidden()\ny = \'"""\'\n', id="quotes in a string"),
        pytest.param("# '''\ntorch.ops.a.hidden()\n# '''\n", id="quotes in a comment"),
        pytest.param('"""a\\"""\ntorch.ops.a.b()\n"""\ntorch.ops.a.hidden()\n', id="an escaped quote"),
        pytest.param('""""a"""\ntorch.ops.a.hidden()\n', id="four quotes"),
        pytest.param("x = (\n    torch.ops.a.hidden())\n", id="a call over lines"),
        pytest.param("x = \\\n  torch.ops.a.hidden()\n", id="a line that goes on"),
        pytest.param("if x: torch.ops.a.hidden()\n", id="a block in a line"),
        pytest.param("while torch.ops.a.hidden():\n\tpass\n", id="tabs, and a call in a head"),
        pytest.param("try:\n    pass\nexcept torch.ops.a.hidden():\n    pass\n", id="a call in a handler"),
        pytest.param("def f(x=torch.ops.a.hidden()):\n    pass\n", id="a call in a default"),
        pytest.param("@f(torch.ops.a.hidden())\ndef g():\n    pass\n", id="a call in a decorator"),
        pytest.param("class A(torch.ops.a.hidden()):\n    pass\n", id="a call among bases"),
        pytest.param("f = lambda: torch.ops.a.hidden()\n", id="a call in a lambda"),
        pytest.param("match x:\n    case 1:\n        torch.ops.a.hidden()\n", id="a match"),
    ],
)
def test_no_call_is_hidden(text: str) -> None:
    read = outline_of(text)
    names = [
        words_of(read.lines[index])[call.word :][: call.words] for index, facts in read.facts for call in facts.calls
    ]

    assert ["torch", "ops", "a", "hidden"] in names


@pytest.mark.parametrize(
    "text",
    [
        "def f(:\n",
        "x = 0123\n",
        "(" * 500,
        "    x = 1\n",
        '"""a\n',
        "x = 1\n  y = 2\n",
        "if x:\ny = 1\n",
        "else:\n",
        "f('a\nb')\n",
    ],
)
def test_what_is_not_python_is_refused(text: str) -> None:
    with pytest.raises(SyntaxError):
        outline_of(text)


def test_a_long_text_of_no_known_form_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outline, "MOST_WHOLE", 10)
    with pytest.raises(SyntaxError) as fault:
        outline_of("x = (  # 1\n    1,\n)\n")
    assert fault.value.msg == "not of the form of generated code, and too long to be parsed: 20 characters"


def test_what_is_remembered_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    from toolkit.scan import lines

    monkeypatch.setattr(lines, "MOST_LINES", 50)
    monkeypatch.setattr(outline, "MOST_SHAPES", 1)
    for number in range(5):
        outline_of("".join(f"{'ab' * number}x{'c' * at} = 1\n" for at in range(40)) + f"def f{number}a():\n    pass\n")

    assert len(lines._LINES) <= 50 + 45
    assert len(outline._SHAPES) == 1
