"""`toolkit lint model` as it is called: its text, its document, its exit codes."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.lint_sample import write_sample
from toolkit import cli

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
NORM = """
class Query(nn.Module):
    def forward(self, q):
        q = q * torch.rsqrt(q.square().mean(-1, keepdim=True) + self.eps)
        print(q.shape)  # toolkit: allow[log-in-forward] for the demo
        return q
    def other(self, q):
        return q * torch.rsqrt(q.square().mean(-1, keepdim=True) + self.eps)
"""


def lint(*words: object) -> int:
    """Run the command in this process and return its exit code."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["lint", "model", *map(str, words)])
    return int(ended.value.code or 0)


def test_findings_are_shown_with_their_lines_and_end_with_23(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_sample(tmp_path, NORM, "model.py")
    (tmp_path / "broken.py").write_text("def f(:\n")
    monkeypatch.chdir(tmp_path)

    assert lint(".") == 23

    shown = capsys.readouterr()
    right = (
        "  right: `torch.nn.functional.rms_norm(x, (x.shape[-1],), weight, eps)`: float32 from the load to one cast\n"
    )
    line = "q * torch.rsqrt(q.square().mean(-1, keepdim=True) + self.eps)\n"
    assert shown.out == (
        "model.py:8: hand-written-rms-norm: an RMS norm of `q` by hand in Query.forward\n"
        f"    q = {line}"
        "  why: in bfloat16 each of its operations rounds, and a compiler that fuses them rounds at other places: "
        "compiled and\n       eager runs differ, and the mean goes on in bfloat16\n"
        f"{right}"
        "model.py:12: hand-written-rms-norm: an RMS norm of `q` by hand in Query.other\n"
        f"    return {line}"
        f"{right}"
        f"broken.py: not judged: it cannot be parsed: invalid syntax in line 1 (as Python {PYTHON} reads it)\n"
        "1 file: hand-written-rms-norm 2; 1 allowed; 1 file not judged\n"
    )
    assert shown.err == (
        "error: 2 findings, 1 file could not be judged\n"
        "hint: mend them, or allow one with `# toolkit: allow[ID] reason` on its line; docs/lint.md tells each check\n"
    )


def test_the_document_has_all_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_sample(tmp_path, NORM, "model.py")

    assert lint(path, "--json") == 23

    document = json.loads(capsys.readouterr().out)
    first = document["findings"][0]
    assert list(document) == ["schema", "verdict", "files", "findings", "allowed", "skipped"]
    assert (document["schema"], document["verdict"], document["files"]) == (1, "findings", 1)
    assert (len(document["findings"]), document["skipped"]) == (
        2, [],
    )  # fmt: skip
    assert list(first) == ["check", "file", "line", "text", "what", "why", "right"]
    assert (first["check"], first["file"], first["line"]) == ("hand-written-rms-norm", str(path), 8)
    assert (document["allowed"][0]["check"], document["allowed"][0]["reason"]) == ("log-in-forward", "for the demo")


def test_without_findings_it_ends_with_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_sample(tmp_path, NORM)

    assert lint(path, "--ignore", "hand-written-rms-norm") == 0
    assert capsys.readouterr().out == "1 file: no findings; 1 allowed\n"


def test_a_file_that_cannot_be_judged_is_no_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broken.py"
    path.write_bytes(b"\xff\n")

    assert lint(path) == 23
    shown = capsys.readouterr()
    assert shown.out == f"{path}: not judged: not UTF-8: byte 0xff at offset 0\nno file was judged\n"
    assert shown.err.splitlines()[0] == "error: 1 file could not be judged"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(["nowhere"], "error: cannot look at 'nowhere': No such file or directory", id="no such path"),
        pytest.param(["."], "error: there is no Python file in '.'", id="an empty folder"),
        pytest.param([".", "--select", "x"], "error: --select 'x': there is no such check", id="no such check"),
        pytest.param([""], "error: Invalid value for 'PATH…': a PATH is empty: name the folder of the code base, or its files",  # noqa: E501
                     id="an empty word"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_ends_with_2(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert lint(*words) == 2
    assert message in capsys.readouterr().err


def test_names_that_are_no_text_are_shown_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/mod\xffel.py"))
    write_sample(tmp_path, NORM).rename(path)

    assert lint(tmp_path) == 23
    assert capsys.readouterr().out.startswith(f"{tmp_path}/mod\\udcffel.py:8: hand-written-rms-norm: ")
    assert lint(tmp_path, "--json") == 23
    assert json.loads(capsys.readouterr().out)["findings"][0]["file"] == str(path)
