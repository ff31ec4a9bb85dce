"""`toolkit evidence scan` on whole trees: the acceptance that it serves, planted hazards, and every bad input."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.generated_code import dvm_kernel, hazardous, make_debug_tree, plain, triton_kernel, wrapper
from tests.sample import make_sample
from toolkit import cli

ACCEPTANCE = (
    "--require", "@dvm.kernel", "--all", "--forbid", "@triton.jit",
    "--keep", "cann_ops_transformer|sparse_flash_mla", "--at-least", "64", "--no-alias-hazard",
)  # fmt: skip
VENDOR = "torch.ops.cann_ops_transformer.sparse_flash_mla.default"


@pytest.fixture(scope="module")
def debug_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a debug tree of 80 graphs, 64 of which call the vendor's operator."""
    root = tmp_path_factory.mktemp("run") / "torch_compile_debug"
    make_debug_tree(root)
    return root


def scan(*words: object) -> int:
    """Run the command in this process and return its exit code."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["evidence", "scan", *map(str, words)])
    return int(ended.value.code or 0)


def scan_document(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, dict[str, Any]]:
    """Run the command with --json; return its exit code and its document."""
    code = scan(*words, "--json")
    return code, json.loads(capsys.readouterr().out)


def outcomes(document: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["outcome"], one["figures"]) for one in document["requirements"]]


# --- the acceptance ----------------------------------------------------------------------------------------------


def test_eighty_of_eighty_none_and_sixty_four(debug_tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scan(debug_tree, *ACCEPTANCE) == 0
    shown = capsys.readouterr()
    assert shown.out == (
        "80 graphs, 0 files of kernels alone, 160 other Python files, 0 not read\n"
        "kernels: dvm 80\n"
        "types: vector 80\n"
        f"custom operators: {VENDOR} 64\n"
        "extern calls: extern_kernels.mm 80, torch.ops.aten.mm.default 80\n"
        "fallbacks: none\n"
        "passed: @dvm.kernel in every file: 80 of 80 files\n"
        "passed: @triton.jit in no file: 0 of 80 files\n"
        "passed: cann_ops_transformer|sparse_flash_mla in at least 64 files: 64 of 80 files\n"
        "passed: no alias hazard: 0 in 0 of 80 files\n"
    )
    assert shown.err == ""


def test_the_document_has_every_file(debug_tree: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, document = scan_document(capsys, debug_tree, *ACCEPTANCE, "-o", tmp_path / "scan.json")

    assert (code, document["verdict"]) == (0, "passed")
    assert document["sum"]["files"] == {"wrapper": 80, "other": 160}
    assert len(document["files"]) == 80
    assert sum(VENDOR in one["custom"] for one in document["files"]) == 64
    assert outcomes(document) == [
        ("passed", "80 of 80 files"), ("passed", "0 of 80 files"), ("passed", "64 of 80 files"),
        ("passed", "0 in 0 of 80 files"),
    ]  # fmt: skip
    assert json.loads((tmp_path / "scan.json").read_text(encoding="utf-8")) == document


def test_an_inductor_cache_is_read_by_what_its_files_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(6):
        folder = tmp_path / "torchinductor_user" / f"{number:02}"
        folder.mkdir(parents=True)
        (folder / f"c{number:051}.py").write_text(plain(number, keeps_vendor=number < 4), encoding="utf-8")
    (folder / f"c{'k' * 51}.py").write_text("@triton.jit\ndef f(x):\n    pass\n", encoding="utf-8")
    (folder / "helper.py").write_text("x = 1\n", encoding="utf-8")
    code, document = scan_document(capsys, tmp_path, "--require", "@dvm.kernel", "--all", "--forbid", "@triton.jit",
                                   "--keep", "sparse_flash", "--at-least", 5)  # fmt: skip

    assert code == 23
    assert document["sum"]["files"] == {"wrapper": 6, "kernels": 1, "other": 1}
    assert outcomes(document) == [("passed", "6 of 6 files"), ("failed", "1 of 7 files"), ("failed", "4 of 6 files")]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--require", "@triton.jit"), "@triton.jit in at least one file: 0 of 80 files"),
        (("--require", VENDOR, "--all"), f"{VENDOR} in every file: 64 of 80 files"),
        (("--forbid", "@dvm"), "@dvm in no file: 80 of 80 files"),
        (("--keep", "sparse", "--at-least", "65"), "sparse in at least 65 files: 64 of 80 files"),
    ],
)
def test_what_is_not_met_is_told(
    debug_tree: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
) -> None:
    assert scan(debug_tree, *words) == 23
    assert capsys.readouterr().err == (
        f"error: 1 of 1 requirements not met: {message}\nhint: `-v` shows every file, `--json` all of it\n"
    )


# --- hazards -----------------------------------------------------------------------------------------------------


def test_planted_hazards_are_found_with_file_kernel_value_input_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = make_debug_tree(tmp_path, graphs=5, with_vendor=0)
    made[1].write_text(hazardous(), encoding="utf-8")
    made[3].write_text(
        hazardous(
            "dvm_fused_0.run(arg0_1, arg1_1, buf5, stream=stream0)", "buf5 = reinterpret_tensor(arg1_1, (), (), 0)"
        ),
        encoding="utf-8",
    )
    made[4].write_text(
        hazardous(
            "dvm_fused_0.run(arg0_1, arg1_1, buf5, stream=stream0)", "buf5 = empty_strided((), (), device='npu')"
        ),
        encoding="utf-8",
    )
    lines = [next(at for at, line in enumerate(made[i].read_text(encoding="utf-8").split("\n"), 1) if ".run(" in line)
             for i in (1, 3)]  # fmt: skip

    assert scan(tmp_path, "--no-alias-hazard") == 23
    shown = capsys.readouterr()
    said = "certain alias hazard in dvm_fused_0: sum_1 of stage 0 is kept in the output"
    assert [line for line in shown.out.splitlines() if "hazard in" in line] == [
        f"{made[1]}:{lines[0]}: {said} arg1_1 until stage 1, and stage 1 reads the input arg1_1 (the same name)",
        f"{made[3]}:{lines[1]}: {said} buf5 until stage 1, and stage 1 reads the input arg1_1 (both are arg1_1)",
    ]
    assert shown.out.endswith(f"failed: no alias hazard: 2 in 2 of 5 files\n  {made[1]}\n  {made[3]}\n")
    assert shown.err.startswith("error: 1 of 1 requirements not met: no alias hazard: 2 in 2 of 5 files\n")


@pytest.mark.parametrize(
    ("program", "call", "said"),
    [
        (
            ["arg0_1 = k.load([128, 256], dvm.float32)", "arg1_1 = k.load([256], dvm.float32)",
             "sum_1 = k.sum(arg0_1, [0], False)", "k.spec_next()", "mul = k.mul(arg1_1, sum_1)", "copy = arg0_1",
             "mul_1 = k.mul(arg0_1, 2)", "k.spec_next()", "sub = k.sub(arg1_1, mul)", "k.store(mul_1, dvm.float32)",
             "k.store(mul, dvm.float32)", "k.store(sub, dvm.float32)"],
            "dvm_fused_0.run(arg0_1, arg1_1, buf1, arg1_1, buf2, stream=stream0)",
            ["certain alias hazard in dvm_fused_0: mul of stage 1 is kept in the output arg1_1 until stage 3, and "
             "stage 3 reads the input arg1_1 (the same name)"],
        ),
        (
            ["arg0_1 = k.load([128, 256], dvm.float32)", "arg1_1 = k.load([128, 256], dvm.float32)",
             "sum_1 = k.sum(arg0_1, [0, 1], False)", "exp = k.exp(arg0_1)", "k.spec_next()",
             "mul = k.mul(arg1_1, sum_1)", "k.store(exp, dvm.float32)", "k.store(mul, dvm.float32)"],
            "dvm_fused_0.run(arg0_1, arg1_1, arg1_1, buf1, stream=stream0)",
            ["certain alias hazard in dvm_fused_0: exp of stage 0 is stored in the output arg1_1, and stage 1 reads "
             "the input arg1_1 (the same name)"],
        ),
        (
            ["arg0_1 = k.load([256], dvm.float32)", "arg1_1 = k.load([3, 128, 256], dvm.float32)",
             "expand = k.broadcast(arg0_1, [3, 128, 256])", "mul = k.mul(expand, arg1_1)",
             "sum_1 = k.sum(mul, [1], False)", "k.store(sum_1, dvm.float32)"],
            "dvm_fused_0.run(arg0_1, arg1_1, arg0_1, stream=stream0)",
            ["possible alias hazard in dvm_fused_0: sum_1 of stage 0 may be added up in the output arg0_1, which is "
             "cleared before, and stage 0 reads the input arg0_1 (the same name)"],
        ),
    ],
    ids=["kept", "stored", "cleared"],
)  # fmt: skip
def test_a_hazard_is_told_by_what_comes_in_between(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], program: list[str], call: str, said: list[str]
) -> None:
    path = tmp_path / "output_code.py"
    path.write_text(wrapper([dvm_kernel("dvm_fused_0", program, "spec")], [call]), encoding="utf-8")
    line = next(at for at, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1) if ".run(" in line)

    assert scan(tmp_path) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [one for one in shown if "hazard in" in one] == [f"{path}:{line}: {one}" for one in said]


def test_hazards_alone_fail_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "output_code.py").write_text(hazardous(), encoding="utf-8")
    code, document = scan_document(capsys, tmp_path)

    assert (code, document["verdict"]) == (0, "passed")
    assert [(one["kernel"], one["value"], one["input"], one["certainty"]) for one in document["hazards"]] == [
        ("dvm_fused_0", "sum_1", "arg1_1", "certain")
    ]


# --- bad input ---------------------------------------------------------------------------------------------------


def test_files_that_cannot_be_read_are_never_passed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = make_debug_tree(tmp_path, graphs=6, with_vendor=6)
    made[0].write_bytes(made[0].read_bytes()[:900])
    made[1].write_bytes(b"\x7fELF\0")
    made[2].write_text("no code at all\n", encoding="utf-8")
    made[3].unlink()
    os.mkfifo(made[3])
    made[4].unlink()
    made[4].symlink_to("output_code.py")

    assert scan(tmp_path, "--require", "@dvm.kernel", "--all", "--keep", "sparse", "--at-least", 1) == 23
    shown = capsys.readouterr()
    first, *others = [line for line in shown.out.splitlines() if ": not read: " in line]
    assert first.startswith(f"{made[0]}: not read: not Python in line ")
    assert others == [
        f"{made[1]}: not read: not text: it has NUL bytes",
        f"{made[2]}: not read: not Python in line 1: invalid syntax",
        f"{made[3]}: not read: not a plain file",
        f"{made[4]}: not read: Too many levels of symbolic links",
    ]
    assert "undecided: @dvm.kernel in every file: 1 of 1 files, 5 not read\n" in shown.out
    assert "passed: sparse in at least 1 files: 1 of 1 files, 5 not read\n" in shown.out
    assert shown.err == (
        "error: 5 files could not be read, so the rest decides nothing\n"
        "hint: make them readable, or leave them out and name the files that count\n"
    )


def test_another_backend_s_files_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = wrapper([triton_kernel("triton_poi_fused_0")], ["triton_poi_fused_0.run(arg0_1, arg1_1, 8)"])
    (tmp_path / "output_code.py").write_text(text, encoding="utf-8")
    code, document = scan_document(capsys, tmp_path, "--require", "@dvm.kernel")

    assert (code, document["verdict"], document["sum"]["kernels"]) == (23, "failed", {"triton": 1})


@pytest.mark.parametrize("others", [(), ("notes.txt", "setup.py")], ids=["empty", "other files"])
def test_a_folder_without_generated_code_is_never_passed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], others: tuple[str, ...]
) -> None:
    for name in others:
        (tmp_path / name).write_text("x = 1\n", encoding="utf-8")

    assert scan(tmp_path) == 23
    assert capsys.readouterr().err == (
        "error: there is no generated code in the given places\n"
        "hint: expected output_code.py (TORCH_COMPILE_DEBUG=1), or the folder of TORCHINDUCTOR_CACHE_DIR\n"
    )


def test_loops_of_links_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_debug_tree(tmp_path, graphs=1, with_vendor=1)
    (tmp_path / "run_0/again").symlink_to("..")

    assert scan(tmp_path, "-v") == 0
    said = "1 links to, or copies of, what was seen already: not counted again"
    assert capsys.readouterr().out.endswith(f"{said}\n  {tmp_path}/run_0/again\n")


def test_hostile_code_is_not_executed(tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    text = f"import pathlib\npathlib.Path({str(mark)!r}).touch()\n" + plain(1)
    (tmp_path / "output_code.py").write_text(text, encoding="utf-8")

    assert scan(tmp_path, "--require", "@dvm.kernel") == 0
    assert not mark.exists()


def test_names_of_files_reach_no_terminal_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in (b"a\x1b[31m\n.py", b"b\xff.py"):
        (tmp_path / os.fsdecode(name)).write_text(plain(1), encoding="utf-8")

    assert scan(tmp_path, "--forbid", "extern") == 23
    shown = capsys.readouterr().out.splitlines()
    assert [line for line in shown if ".py: kernels" in line] == [
        f"{tmp_path}/a\\x1b[31m\\n.py: kernels dvm 1", f"{tmp_path}/b\\udcff.py: kernels dvm 1"
    ]  # fmt: skip
    assert shown[-1] == f"  {tmp_path}/b\\udcff.py"


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (("gone",), "there is no 'gone'", "name folders of a run, or files of generated code"),
        ((".", "--keep", "a"), "--keep is given 1 times, --at-least 0 times",
         "write a pair for each: --keep REGEX --at-least N"),
        ((".", "--require", "@dvm.kernel("), "'@dvm.kernel(' is not the name of a decorator, as '@dvm.kernel' is",
         "@name is a decorator; anything else a regular expression for operators' names"),
        ((".", "--forbid", "["), "'[' is no regular expression: unterminated character set at position 0",
         "@name is a decorator; anything else a regular expression for operators' names"),
    ],
)  # fmt: skip
def test_a_command_that_makes_no_sense_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...],
    message: str, hint: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)

    assert scan(*words) == 2
    assert capsys.readouterr().err == f"error: {message}\nhint: {hint}\n"


# --- the recipe --------------------------------------------------------------------------------------------------

EVIDENCE = """
[evidence]
require = ["@dvm.kernel"]
all = true
forbid = ["@triton.jit"]
no_alias_hazard = true
keep = [{ pattern = "sparse_flash_mla", at_least = 64 }]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a project with a recipe that says what the code must hold."""
    sample = make_sample(tmp_path)
    sample.recipe.write_text(sample.recipe.read_text(encoding="utf-8") + EVIDENCE, encoding="utf-8")
    return sample.root


def test_a_recipe_says_what_is_required(debug_tree: Path, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, document = scan_document(
        capsys, debug_tree, "--project", project, "--recipe", "sample", "--forbid", "extern_kernels"
    )

    assert code == 23
    assert [(one["wanted"], one["outcome"]) for one in document["requirements"]] == [
        ("@dvm.kernel in every file", "passed"),
        ("@triton.jit in no file", "passed"),
        ("extern_kernels in no file", "failed"),
        ("sparse_flash_mla in at least 64 files", "passed"),
        ("no alias hazard", "passed"),
    ]


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ("", "it has no [evidence]"),
        ("\n[evidence]\n", "it has no [evidence]"),
        ("\n[evidence]\nall = true\n", "its [evidence] has only `all`"),
    ],
    ids=["no table", "an empty table", "only all"],
)
def test_a_recipe_that_requires_nothing_is_not_passed_by_every_run(
    debug_tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], table: str, why: str
) -> None:
    sample = make_sample(tmp_path)
    sample.recipe.write_text(sample.recipe.read_text(encoding="utf-8") + table, encoding="utf-8")
    named = ("--project", sample.root, "--recipe", "sample")

    assert scan(debug_tree, *named) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == (
        "",
        f"error: sample requires nothing: {why}\n"
        "hint: write the table into it, add --require, --forbid, --keep or --no-alias-hazard, or leave --recipe out\n",
    )
    assert scan(debug_tree, *named, "--all") == 2
    for words in (("--require", "@dvm.kernel"), ("--forbid", "@triton.jit"), ("--no-alias-hazard",)):
        assert scan(debug_tree, *named, *words) == 0


def test_a_recipe_of_the_environment_may_require_nothing(
    debug_tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = make_sample(tmp_path)
    monkeypatch.setenv("TOOLKIT_RECIPE", "sample")
    assert scan(debug_tree, "--project", sample.root) == 0


def test_a_recipe_with_patterns_that_are_none_is_refused(
    debug_tree: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = project / "recipes/sample.toml"
    text = (
        recipe.read_text(encoding="utf-8")
        .replace('"@triton.jit"', '"@triton."')
        .replace("at_least = 64", "at_least = 0")
    )
    recipe.write_text(text, encoding="utf-8")

    assert scan(debug_tree, "--project", project, "--recipe", "sample") == 3
    shown = capsys.readouterr().err
    assert "evidence.forbid[0]: '@triton.' is not the name of a decorator, as '@dvm.kernel' is" in shown
    assert "evidence.keep[0].at_least: expected integer >= 1" in shown


@pytest.mark.parametrize("name", ["output_code.py", "other.py", "link.json"])
def test_no_scanned_file_is_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    folder = tmp_path / "scanned"
    folder.mkdir()
    (folder / "output_code.py").write_text(plain(1), encoding="utf-8")
    (folder / "link.json").symlink_to("output_code.py")

    assert scan(folder, "-o", folder / name) == 2
    assert capsys.readouterr().err == (
        f"error: -o {str(folder / name)!r} is one of the files that are scanned, or would be taken for one\n"
        "hint: write the document elsewhere, or as .json\n"
    )
    assert (folder / "output_code.py").read_text(encoding="utf-8") == plain(1)
    assert not (folder / "other.py").exists()


def test_an_empty_place_is_not_the_current_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert scan("") == 2
    assert "a DIR is empty: name folders of a run, or files of generated code" in capsys.readouterr().err


def test_a_current_folder_that_is_gone_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    assert scan(".") == 2
    assert capsys.readouterr().err == ("error: the current folder is no longer there\nhint: change to one that is\n")
