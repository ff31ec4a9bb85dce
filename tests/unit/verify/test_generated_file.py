"""Files of generated code, their kernels computed with torch alone; whole files run in tests/e2e/test_reference.py."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from verify.generated_file import GeneratedFileError, load_kernels, read_generated

CODE = '''\
import torch_npu_of_another_machine
from torch_npu._inductor import dvm

raise SystemExit("a builder is all that is executed")

"""
class GraphModule(torch.nn.Module):
    def forward(self, arg0_1: "f32[2, 3]"): ...
"""
@dvm.kernel(ktype='vector', dyn_shape=False)
def dvm_fused_relu_0_build(k):
    arg0_1 = k.load([2, 3], dvm.float32)
    relu = k.maximum(arg0_1, 0)
    add = k.add(relu, -inf)
    k.store(relu, dvm.float32)
    k.store(add, dvm.float32)
    k.set_kernel_info(
        'dvm_fused_relu',  # kernel_name
        'dvm_fused_relu_0',  # kernel_fullname
    )

dvm_fused_relu_0 = dvm_fused_relu_0_build

@dvm.kernel(ktype='split', dyn_shape=True)
def dvm_graph_fused_1(k):
    arg0_1 = k.load([-1], dvm.bfloat16)
    k.store(k.mul(arg0_1, 2), dvm.bfloat16)

class Runner:
    def call(self, args):
        return (dvm_fused_relu_0.run(*args), )
'''


def write(folder: Path, text: str) -> Path:
    """Write a file of generated code."""
    path = folder / "output_code.py"
    path.write_text(text, encoding="utf-8")
    return path


def test_kernels_are_computed_without_the_file_being_executed(tmp_path: Path) -> None:
    kernels = load_kernels(write(tmp_path, CODE))
    assert list(kernels) == ["dvm_fused_relu_0", "dvm_graph_fused_1"]
    x = torch.tensor([[1.0, -1.0, torch.nan], [0.0, 2.0, -torch.inf]])
    relu, lowest = kernels["dvm_fused_relu_0"](x)
    torch.testing.assert_close(relu, x.relu(), equal_nan=True)
    torch.testing.assert_close(lowest, x.relu() - torch.inf, equal_nan=True)
    half = torch.tensor([1.5, -2.0]).bfloat16()
    assert torch.equal(kernels["dvm_graph_fused_1"](half), half * 2)


BAD = {
    "cut within a text": (
        CODE[: CODE.index("def forward")],
        "it is not Python, or cut short: unterminated triple-quoted string literal (detected at line 8) in line 6",
    ),
    "cut before the kernels": (CODE[: CODE.index('"""')], "it has no @dvm.kernel"),
    "not Python": ("<html>", "it is not Python, or cut short: invalid syntax in line 1"),
    "zeros": ("\0", "it is not Python, or cut short: source code string cannot contain null bytes"),
    "Triton": ("@triton.jit\ndef f(x): ...\n", "it has no @dvm.kernel: its kernels are of Triton"),
    "nothing": ("", "it has no @dvm.kernel"),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD.keys())
def test_a_file_without_kernels_says_why(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(GeneratedFileError) as caught:
        read_generated(write(tmp_path, text))
    assert str(caught.value) == message


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(GeneratedFileError, match=r"^it cannot be read: \[Errno 2\] No such file or directory"):
        read_generated(tmp_path / "nowhere.py")
    (tmp_path / "latin.py").write_bytes(b"# \xe9\n")
    with pytest.raises(GeneratedFileError, match=r"^it cannot be read: 'utf-8' codec can't decode byte 0xe9"):
        read_generated(tmp_path / "latin.py")


def test_a_builder_that_raises_says_where(tmp_path: Path) -> None:
    with pytest.raises(GeneratedFileError) as caught:
        load_kernels(write(tmp_path, CODE.replace("k.maximum(arg0_1, 0)", "k.is_finite(arg0_1)")))
    assert str(caught.value) == (
        "line 13 in dvm_fused_relu_0_build: UnknownOperationError: "
        "the builder has no operation 'is_finite' that is known here"
    )


@pytest.mark.parametrize(
    ("ending", "message"),
    [
        ("raise SystemExit(5)", "it ends the process, by SystemExit(5)"),
        ("__import__('sys').exit()", "it ends the process, by SystemExit()"),
        ("exit('so far')", "it ends the process, by SystemExit('so far')"),
    ],
)
def test_a_builder_that_ends_the_process_says_where(tmp_path: Path, ending: str, message: str) -> None:
    with pytest.raises(GeneratedFileError) as caught:
        load_kernels(write(tmp_path, CODE.replace("relu = k.maximum(arg0_1, 0)", ending)))
    assert str(caught.value) == f"line 13 in dvm_fused_relu_0_build: {message}"


def test_an_interruption_is_not_taken_for_an_error_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        load_kernels(write(tmp_path, CODE.replace("relu = k.maximum(arg0_1, 0)", "raise KeyboardInterrupt")))
