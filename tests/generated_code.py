"""Generated code as Inductor writes it for the DVM backend, made up: kernels, wrappers, and a whole debug tree."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import indent

VENDOR_CALL = "buf9 = torch.ops.cann_ops_transformer.sparse_flash_mla.default(buf0, arg1_1)"

HEAD = """\
from torch_npu._inductor import dvm
from ctypes import c_void_p, c_long
import torch
from torch._inductor.hooks import run_intermediate_hooks
from torch_npu._inductor.codecache import CustomAsyncCompile
from torch._inductor.select_algorithm import extern_kernels

aten = torch.ops.aten
empty_strided_npu = torch.empty_strided
reinterpret_tensor = torch._C._dynamo.guards._reinterpret_tensor
async_compile = CustomAsyncCompile()
"""

TAIL = """\
runner = Runner(partitions=[])
call = runner.call


def get_args():
    from torch._dynamo.testing import rand_strided
    arg0_1 = rand_strided((128, 256), (256, 1), device='npu:0', dtype=torch.float32)
    return [arg0_1]


def benchmark_compiled_module(args, times=10, repeat=10):
    from torch._inductor.utils import print_performance
    fn = lambda: call(list(args))
    return print_performance(fn, times=times, repeat=repeat, device='npu')


if __name__ == "__main__":
    from torch._inductor.wrapper_benchmark import compiled_module_main
    compiled_module_main('None', lambda times, repeat: None)
"""

ADD = ["arg0_1 = k.load([128, 256], dvm.float32)", "add = k.add(arg0_1, 1)", "k.store(add, dvm.float32)"]
"""A program of one stage."""

MEAN_INTO_OLD = [
    "arg0_1 = k.load([128, 256], dvm.float32)",
    "arg1_1 = k.load([], dvm.float32)",
    "mul = k.mul(arg0_1, 2)",
    "sum_1 = k.sum(mul, [0, 1], False)",
    "k.spec_next()",
    "div = k.div(sum_1, 32768.0)",
    "add = k.add(arg1_1, div)",
    "copy = add",
    "k.store(copy, dvm.float32)",
]
"""`old.copy_(old + (x * 2).mean())`: with old as the output, the sum may be kept in it before old is read."""

SUM_INTO_UNUSED = [
    "arg0_1 = k.load([128, 256], dvm.float32)",
    "arg1_1 = k.load([], dvm.float32)",
    "sum_1 = k.sum(arg0_1, [0, 1], False)",
    "k.spec_next()",
    "copy = sum_1",
    "k.store(copy, dvm.float32)",
]
"""`dst.copy_(x.sum())`: dst is loaded and never used."""


KERNEL = '''\
"""
class GraphModule(torch.nn.Module):
    def forward(self, arg0_1: "f32[128, 256]"):
        # No stacktrace found for following nodes
        return (torch.ops.aten.add.Tensor(arg0_1, 1),)

"""
@dvm.kernel(ktype={kind!r}, dyn_shape={is_dynamic})
def {name}_build(k):
{body}
    k.set_kernel_info(
        'dvm_fused',  # kernel_name
        '{name}',  # kernel_fullname
    )

{name} = {name}_build
'''

TRITON_KERNEL = """\
{name} = async_compile.triton('{name}', '''
import triton

@triton_heuristics.pointwise(size_hints={{'x': 8}})
@triton.jit
def {name}(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    pass
''', device_str='npu')
"""

FALLBACK_KERNEL = '''\
"""
class GraphModule(torch.nn.Module):
    pass
"""
{name} = async_compile.import_fx('{name}', kernel_meta={{'num_outputs': 1}})
'''

RUNNER = """\
async_compile.wait(globals())
del async_compile

class Runner:
    def __init__(self, partitions):
        self.partitions = partitions

    def call(self, args):
        {arguments} = args
        args.clear()
        with torch.npu.utils.device(0):
            torch.npu.set_device(0)
{body}
        return (buf0, )

"""


def dvm_kernel(name: str, program: Sequence[str], kind: str = "vector", *, is_dynamic: bool = False) -> str:
    """Write a DVM kernel with the graph that it comes from before it."""
    return KERNEL.format(name=name, kind=kind, is_dynamic=is_dynamic, body=indent("\n".join(program), "    "))


def triton_kernel(name: str) -> str:
    """Write a Triton kernel as a wrapper has it: in a string."""
    return TRITON_KERNEL.format(name=name)


def fallback_kernel(name: str) -> str:
    """Write a kernel that DVM cannot build and that runs operator by operator."""
    return FALLBACK_KERNEL.format(name=name)


def wrapper(kernels: Sequence[str], calls: Sequence[str], arguments: Sequence[str] = ("arg0_1", "arg1_1")) -> str:
    """Write a whole wrapper."""
    runner = RUNNER.format(arguments=", ".join(arguments), body=indent("\n".join(calls), " " * 12))
    return "\n\n".join([HEAD, *kernels, runner + TAIL])


def hazardous(call: str = "dvm_fused_0.run(arg0_1, arg1_1, arg1_1, stream=stream0)", *before: str) -> str:
    """Write a wrapper whose kernel may keep the sum in `old` (arg1_1) while old is still to be read."""
    return wrapper([dvm_kernel("dvm_fused_0", MEAN_INTO_OLD, "spec")], ["stream0 = get_raw_stream(0)", *before, call])


def plain(number: int, *, keeps_vendor: bool = False) -> str:
    """Write a wrapper without anything odd; with `keeps_vendor` it calls the vendor's operator."""
    name = f"dvm_fused_add_{number}"
    calls = [
        "buf0 = empty_strided((128, 256), (256, 1), device='npu', dtype=torch.float32)",
        f"{name}.run(arg0_1, buf0, stream=stream0)",
        "# Topologically Sorted Source Nodes: [mm], Original ATen: [aten.mm]",
        "buf1 = torch.ops.aten.mm.default(buf0, arg1_1)",
        "extern_kernels.mm(buf0, arg1_1, out=buf1)",
    ]
    return wrapper([dvm_kernel(name, ADD)], [*calls, VENDOR_CALL] if keeps_vendor else calls)


def make_debug_tree(root: Path, *, graphs: int = 80, with_vendor: int = 64) -> list[Path]:
    """Make what TORCH_COMPILE_DEBUG=1 leaves: a folder for each graph, with files that are no generated code in it."""
    made = []
    for number in range(graphs):
        folder = root / f"run_{number // 10}" / "torchinductor" / f"model__{number}_inference_{number}.0"
        folder.mkdir(parents=True)
        made.append(folder / "output_code.py")
        made[-1].write_text(plain(number, keeps_vendor=number < with_vendor), encoding="utf-8")
        (folder / "fx_graph_readable.py").write_text("class <lambda>(torch.nn.Module):\n    pass\n", encoding="utf-8")
        (folder / "fx_graph_runnable.py").write_text("import torch\n", encoding="utf-8")
        (folder / "ir_pre_fusion.txt").write_text("op0: SchedulerNode(ComputedBuffer)\n", encoding="utf-8")
    return made
