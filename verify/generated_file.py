"""Run generated code from disk on the CPU by reference: one `output_code.py` of any run, or its kernels alone.

    module = load_generated("output_code.py")       # on the host sysroot, with torch_npu of the run's version
    with on_cpu.operators():
        results = module.call(module.get_args())    # npu tensors in host memory
    kernels = load_kernels("output_code.py")        # with torch alone: {name: kernel of verify.dvm_reference}
    kernels["dvm_fused_add_0"](x, y)                # CPU tensors

`python -m verify.generated_file FILE` runs a file with arguments that its own `get_args` makes, from a fixed seed, and
prints shape and hash of what comes out. `load_generated` executes the file, so give it none that you would not run;
`load_kernels` executes the builders of its kernels and nothing else of it. Whatever is wrong with a file is one
GeneratedFileError that says what and where. A file whose kernels fall back to FX graphs needs the Inductor cache of its
run as TORCHINDUCTOR_CACHE_DIR: the graphs are not in it.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import sys
import traceback
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from verify import dvm_reference, host, on_cpu
from verify.generated import Kernel, by_reference

OTHER_BACKENDS = {
    "@triton.jit": "Triton",
    "@pl": "Pallas",
    "async_compile.triton": "Triton",
    "async_compile.cpp": "C++",
}
SEED = 0
INTERRUPTED = 130
"""The exit code of a process that is interrupted, as shells have it."""


class GeneratedFileError(ValueError):
    """A file of generated code cannot be read, loaded or run."""


def main(arguments: Sequence[str]) -> int:
    """Run each file and print what comes out of it; return 1 where one could not be run, 130 after an interruption."""
    host.prepare("host")
    host.load_backend("dvm")
    status = 0
    for path in map(Path, arguments):
        try:
            print(f"{path}: {run_file(path)}")  # noqa: T201  # what this command is for
        except GeneratedFileError as fault:
            print(f"{path}: {fault}", file=sys.stderr)  # noqa: T201  # likewise
            status = 1
        except KeyboardInterrupt as fault:
            print(f"{path}: {_place_of(path, fault)}: interrupted", file=sys.stderr)  # noqa: T201  # likewise
            return INTERRUPTED
    return status


def run_file(path: Path) -> str:
    """Run a file with its own arguments and return a line for each tensor that comes out: type, shape and hash."""
    torch = importlib.import_module("torch")
    module = load_generated(path)
    if not hasattr(module, "get_args"):
        raise GeneratedFileError("it defines no get_args(): load_generated(FILE).call takes arguments of your own")
    torch.manual_seed(SEED)
    with on_cpu.operators():
        given = module.get_args()
        results = module.call(list(given))
    if not isinstance(results, (tuple, list)):
        raise GeneratedFileError(f"call(args) returns {type(results).__name__}, expected a tuple of results")
    lines = [f"{len(module.kernels)} kernels ran"]
    for name, values in (("result", results), ("argument", given)):
        lines += [_tell(f"{name} {number}", one) for number, one in enumerate(values)]
    return "\n  ".join(lines)


def load_generated(path: str | Path, *, hazards: str = "separate") -> types.ModuleType:
    """Execute a file with the reference in place of DVM and return it as a module: `call`, `get_args`, `kernels`.

    `kernels` lists the kernels that have run so far. Needs torch_npu, which `verify.host` has brought up.
    """
    path = Path(path)
    tree = read_generated(path)
    kernels: list[Kernel] = []
    module = types.ModuleType(path.stem)
    module.__file__ = str(path)
    with by_reference(kernels, hazards):
        _execute(tree, module.__dict__, path)
    if not callable(getattr(module, "call", None)):
        raise GeneratedFileError("it defines no call(args): cut short, or no code of Inductor's")
    for name in ("call", "get_args"):
        if hasattr(module, name):
            vars(module)[name] = functools.partial(_told, path, getattr(module, name))
    vars(module)["kernels"] = kernels
    return module


def load_kernels(path: str | Path) -> dict[str, Any]:
    """Return the DVM kernels of a file by name, built by reference, without executing anything else of it."""
    path = Path(path)
    kept = [node for node in read_generated(path).body if isinstance(node, ast.FunctionDef) and _is_kernel(node)]
    names: dict[str, Any] = {"dvm": dvm_reference, "inf": float("inf"), "nan": float("nan")}
    _execute(ast.Module(body=list(kept), type_ignores=[]), names, path)
    return {node.name.removesuffix("_build"): names[node.name] for node in kept}


def read_generated(path: Path) -> ast.Module:
    """Parse a file and return its tree; raise GeneratedFileError where it is no code with DVM kernels."""
    try:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text, str(path))
    except (OSError, UnicodeDecodeError) as fault:
        raise GeneratedFileError(f"it cannot be read: {fault}") from fault
    except (SyntaxError, ValueError) as fault:
        line = getattr(fault, "lineno", None)
        where = f" in line {line}" if line else ""
        raise GeneratedFileError(f"it is not Python, or cut short: {getattr(fault, 'msg', fault)}{where}") from fault
    if not any(isinstance(node, ast.FunctionDef) and _is_kernel(node) for node in tree.body):
        others = sorted({name for mark, name in OTHER_BACKENDS.items() if mark in text})
        of = f": its kernels are of {' and '.join(others)}" if others else ""
        raise GeneratedFileError(f"it has no @dvm.kernel{of}")
    return tree


def _is_kernel(node: ast.FunctionDef) -> bool:
    return any(ast.unparse(one).startswith("dvm.kernel") for one in node.decorator_list)


def _execute(tree: ast.Module, names: dict[str, Any], path: Path) -> None:
    code = compile(tree, str(path), "exec")
    _told(path, lambda: exec(code, names))


def _told(path: Path, call: Callable[..., Any], *arguments: Any) -> Any:
    """Call, and say of an error where in the file it came from. An interruption by the user is none."""
    try:
        return call(*arguments)
    except SystemExit as fault:
        what = f"it ends the process, by SystemExit({'' if fault.code is None else repr(fault.code)})"
        raise GeneratedFileError(f"{_place_of(path, fault)}: {what}") from fault
    except Exception as fault:  # whatever generated code raises is told in one way
        told = f"{_place_of(path, fault)}: {type(fault).__name__}: {fault}"
        raise GeneratedFileError(told + _hint(path, fault)) from fault


def _place_of(path: Path, fault: BaseException) -> str:
    frames = _frames_in(path, fault)
    return f"line {frames[-1].lineno} in {frames[-1].name}" if frames else "outside the file"


def _frames_in(path: Path, fault: BaseException) -> list[traceback.FrameSummary]:
    return [frame for frame in traceback.extract_tb(fault.__traceback__) if frame.filename == str(path)]


def _hint(path: Path, fault: Exception) -> str:
    frame = next(reversed(_frames_in(path, fault)), None)
    if frame is None:
        return ""
    if isinstance(fault, ImportError) and "import_fx(" in (frame.line or ""):
        return "; the FX graph that it falls back to is not in TORCHINDUCTOR_CACHE_DIR"
    if isinstance(fault, (ImportError, AttributeError)) and frame.name == "<module>":
        return f"; it was written by another version than torch {importlib.import_module('torch').__version__}"
    return ""


def _tell(name: str, one: Any) -> str:
    if not hasattr(one, "untyped_storage"):
        return f"{name}: {one!r}"
    torch = importlib.import_module("torch")
    held = (on_cpu.to_cpu(one) if one.device.type == "npu" else one).contiguous()
    digest = hashlib.sha256(held.reshape(-1).view(torch.uint8).numpy().tobytes()).hexdigest()
    return f"{name}: {str(held.dtype).removeprefix('torch.')} {list(held.shape)} sha256 {digest[:16]}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
