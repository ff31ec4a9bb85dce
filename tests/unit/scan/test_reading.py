"""One file: what is counted in it, and what is said of one that cannot be read."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.generated_code import (
    ADD,
    MEAN_INTO_OLD,
    VENDOR_CALL,
    dvm_kernel,
    fallback_kernel,
    hazardous,
    plain,
    triton_kernel,
    wrapper,
)
from toolkit.scan import reading
from toolkit.scan.reading import read_file
from toolkit.scan.values import FileReport

PLAIN = plain(1).encode("utf-8")
PLAIN_LINES = PLAIN.count(b"\n")
VENDOR = "torch.ops.cann_ops_transformer.sparse_flash_mla.default"


def read(folder: Path, text: str | bytes, *, is_named: bool = True) -> FileReport:
    file = folder / "output_code.py"
    file.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
    return read_file(str(file), is_named=is_named)


def test_everything_is_counted_by_name(tmp_path: Path) -> None:
    text = wrapper(
        [
            dvm_kernel("dvm_fused_add_0", ADD),
            dvm_kernel("dvm_fused_add_1", ADD, "vector:opt_fractal"),
            dvm_kernel("dvm_fused_mean_2", MEAN_INTO_OLD, "spec", is_dynamic=True),
            dvm_kernel("dvm_fused_mm_3", ADD, "mix"),
            dvm_kernel("dvm_fused_graph_4", ADD).replace("ktype='vector', dyn_shape=False", ""),
            triton_kernel("triton_poi_fused_5"),
            fallback_kernel("dvm_fused_sort_6"),
            "cpp_fused_7 = async_compile.cpp_pybinding(['const float*', 'float*'], r'''\nvoid kernel() { }\n''')",
            "pl_8 = async_compile.pallas('pl_8', r'''\n@pl.kernel\ndef pl_8(x):\n    pass\n''')",
            "catlass_9 = async_compile.catlass(r'''\n#include <a>\n''', 'so', '')",
            "multi = async_compile.multi_kernel('multi', [triton_poi_fused_5])",
            "@pl.jit\ndef pl_10(x):\n    pass",
            "@functools.cache\ndef helper(x):\n    pass",
        ],
        [
            VENDOR_CALL,
            VENDOR_CALL,
            "torch.ops.mylib.conv2d_v3.default(buf0)",
            "buf1 = torch.ops.aten.log1p.default(buf0)",
            "buf2 = aten.log1p.default(buf0)",
            "extern_kernels.addmm(buf0, arg1_1, arg0_1, alpha=1, beta=1, out=buf2)",
            "assert_alignment(buf1, 16, 'torch.ops.elsewhere.in_a_string.default()')",
            "# torch.ops.elsewhere.in_a_comment.default()",
        ],
    )
    report = read(tmp_path, text)

    assert (report.state, report.why) == ("wrapper", "")
    assert report.kernels == {"dvm": 5, "pl": 2, "triton": 1, "fallback": 1, "cpp": 1, "catlass": 1}
    assert report.types == {"vector": 1, "vector:opt_fractal": 1, "spec": 1, "mix": 1, "split": 1}
    assert report.decorators == {
        "dvm.kernel": 5, "pl.jit": 1, "triton_heuristics.pointwise": 1, "triton.jit": 1, "pl.kernel": 1,
        "functools.cache": 1,
    }  # fmt: skip
    assert report.custom == {VENDOR: 2, "torch.ops.mylib.conv2d_v3.default": 1}
    assert report.extern == {"torch.ops.aten.log1p.default": 2, "extern_kernels.addmm": 1}
    assert report.fallbacks == {"dvm_fused_sort_6": 1}


def test_nothing_is_executed(tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    text = plain(1) + f"\n__import__('pathlib').Path({str(mark)!r}).touch()\nraise SystemExit(3)\n"
    decorated = text + f"\n@dvm.kernel(ktype=open({str(mark)!r}, 'w'))\ndef x(k):\n    pass\n"

    assert read(tmp_path, text).kernels == {"dvm": 1}
    assert read(tmp_path, decorated).kernels == {"dvm": 2}
    assert not mark.exists()


@pytest.mark.parametrize("is_named", [True, False])
def test_a_wrapper_is_told_by_what_it_holds(tmp_path: Path, is_named: bool) -> None:
    assert read(tmp_path, plain(1), is_named=is_named).state == "wrapper"


def test_kernels_without_a_wrapper_are_told(tmp_path: Path) -> None:
    text = "import triton\n\n@triton_heuristics.pointwise(size_hints={'x': 8})\n@triton.jit\ndef poi_0(x):\n    pass\n"
    report = read(tmp_path, text, is_named=False)

    assert (report.state, report.kernels) == ("kernels", {"triton": 1})
    assert report.decorators == {"triton_heuristics.pointwise": 1, "triton.jit": 1}


def test_a_wrapper_of_another_backend_is_read(tmp_path: Path) -> None:
    report = read(tmp_path, wrapper([triton_kernel("triton_poi_0")], ["triton_poi_0.run(arg0_1, arg0_1, 8)"]))

    assert (report.state, report.kernels, report.types) == ("wrapper", {"triton": 1}, {})


@pytest.mark.parametrize("text", ["import torch\n", "", "\0", "def f(:", b"\xff"], ids=repr)
def test_other_python_files_are_left_alone(tmp_path: Path, text: str | bytes) -> None:
    assert read(tmp_path, text, is_named=False).state == "other"


@pytest.mark.parametrize(
    ("text", "state"),
    [("import torch\n", "other"), (b"", "unreadable"), (b"\0", "unreadable"), ("import (", "unreadable"),
     (b"\xff", "unreadable"), (plain(1), "wrapper")],
    ids=["another of the cache's files", "empty", "NUL", "cut", "not UTF-8", "a wrapper"],
)  # fmt: skip
def test_a_file_that_the_cache_has_named_was_whole_once(tmp_path: Path, text: str | bytes, state: str) -> None:
    file = tmp_path / f"c{'ab2' * 17}.py"
    file.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)

    assert read_file(str(file), is_named=False).state == state


def test_lines_may_end_as_on_windows_and_begin_with_a_mark(tmp_path: Path) -> None:
    raw = "\ufeff" + hazardous().replace("\n", "\r\n")

    assert len(read(tmp_path, raw).hazards) == 1


def broken_link(folder: Path) -> Path:
    (folder / "output_code.py").symlink_to("nowhere")
    return folder / "output_code.py"


def link_to_itself(folder: Path) -> Path:
    (folder / "output_code.py").symlink_to("output_code.py")
    return folder / "output_code.py"


def pipe(folder: Path) -> Path:
    os.mkfifo(folder / "output_code.py")
    return folder / "output_code.py"


def a_socket(folder: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(folder / "s"))
    return folder / "s"


def device(folder: Path) -> Path:
    (folder / "output_code.py").symlink_to("/dev/zero")
    return folder / "output_code.py"


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (broken_link, "No such file or directory"),
        (link_to_itself, "Too many levels of symbolic links"),
        (pipe, "not a plain file"),
        (a_socket, "No such device or address"),
        (device, "not a plain file"),
        (lambda folder: folder, "not a plain file"),
    ],
    ids=["broken link", "link to itself", "pipe", "socket", "device", "folder"],
)
def test_what_is_no_plain_file_is_told(tmp_path: Path, make: Callable[[Path], Path], why: str) -> None:
    report = read_file(str(make(tmp_path)), is_named=True)

    assert (report.state, report.why) == ("unreadable", why)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(b"", "empty", id="empty"),
        pytest.param(b" \n\n", "empty", id="blank"),
        pytest.param(b"\x7fELF\0\0", "not text: it has NUL bytes", id="binary"),
        pytest.param(PLAIN[:400] + b"\xff\xfe", "not UTF-8 from byte 400 on", id="not UTF-8"),
        pytest.param(
            b"import torch\n", "not code that Inductor has generated: no `async_compile`, no kernel", id="foreign"
        ),
    ],
)
def test_what_is_no_generated_code_is_told(tmp_path: Path, text: bytes, why: str) -> None:
    report = read(tmp_path, text)

    assert (report.state, report.why) == ("unreadable", why)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        pytest.param(b"<html>\n", " in line 1", id="another language"),
        pytest.param(PLAIN.partition(b"_build(k)")[0], " in line 22", id="cut"),
        pytest.param(PLAIN.partition(b"128, 256")[0], " in line 14", id="cut in a string"),
        pytest.param(PLAIN + b"x = " + b"(" * 900, f" in line {PLAIN_LINES + 1}", id="brackets"),
        pytest.param(PLAIN + b"x = " + b"-" * 100_000 + b"1\n", r"( in line \d+)?", id="signs"),
    ],
)
def test_what_is_no_python_is_told_with_its_line_in_the_parser_s_words(tmp_path: Path, text: bytes, place: str) -> None:
    report = read(tmp_path, text)

    assert report.state == "unreadable"
    assert re.fullmatch(rf"not Python{place}: .+", report.why)


def test_a_file_without_permission_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_words: object, **_options: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)  # Nobody refuses root anything.

    assert read_file(str(tmp_path / "output_code.py"), is_named=True).why == "Permission denied"


def test_a_huge_file_is_told_without_reading_it(tmp_path: Path) -> None:
    file = tmp_path / "output_code.py"
    with file.open("wb") as stream:
        stream.truncate(reading.MOST_BYTES + 1)

    report = read_file(str(file), is_named=True)
    assert report.why == "too large: 67108865 bytes, at most 67108864 are read"


def test_a_long_wrapper_with_an_unknown_form_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolkit.scan.outline.MOST_WHOLE", 100)
    text = plain(1) + "x = [  # 1\n    1,\n]\n"

    assert read(tmp_path, plain(1)).state == "wrapper"
    why = f"not Python: not of the form of generated code, and too long to be parsed: {len(text)} characters"
    assert read(tmp_path, text).why == why


def test_a_wrapper_that_is_cut_where_a_statement_ends_is_no_whole_graph(tmp_path: Path) -> None:
    lines = plain(1).splitlines(keepends=True)
    head = next(at for at, line in enumerate(lines) if "def call(" in line)
    last = next(at for at, line in enumerate(lines) if "return (" in line and at > head)
    found = {}
    for end in range(head + 2, last + 2):
        report = read(tmp_path, "".join(lines[:end]))
        assert report.state == "unreadable"
        if report.why.startswith("cut off"):
            found[end] = report.why

    ends_with_no_return = f"cut off: `call` of line {head + 1} does not end with a return"
    assert found.pop(last + 1) == f"cut off: the module does not go on after `call` of line {head + 1}"
    assert set(found.values()) == {ends_with_no_return}
    assert len(found) > 3


def test_a_wrapper_without_its_call_is_cut(tmp_path: Path) -> None:
    report = read(tmp_path, PLAIN.decode().partition("class Runner")[0])
    assert (report.state, report.why) == ("unreadable", "cut off: it defines no `call`")


@pytest.mark.parametrize("separator", [",", ",\n"], ids=["one line", "many lines"])
def test_a_statement_that_would_fill_the_memory_is_not_parsed(tmp_path: Path, separator: str) -> None:
    statement = f"x = [{separator.join(['1'] * 200_000)}]"
    report = read(tmp_path, PLAIN.decode().replace("async_compile = ", f"{statement}\nasync_compile = ", 1))

    assert (report.state, report.why) == (
        "unreadable",
        f"a statement of {len(statement)} characters: at most 262144 are parsed",
    )


def test_a_long_list_in_an_unknown_form_is_not_parsed(tmp_path: Path) -> None:
    report = read(tmp_path, PLAIN + b"x = [" + b"1,\\\n" * 200_000 + b"]\n")

    assert report.state == "unreadable"
    assert report.why.startswith("not Python: not of the form of generated code, and too long to be parsed: 20")
