"""Hash the tensors that runs of a command have saved, and compare run with run.

    python -m verify.saved_tensors RESULT RUN...

Each RUN is what one run has saved: a folder, searched with all below it, or a single file. What `torch.save` wrote is
loaded to the CPU with `weights_only`, so that no code in it is executed; `.npy` and `.safetensors` are read here.
RESULT becomes a JSON document:

    {"schema": 1,
     "runs": [{"tensors": [{"file", "name", "dtype", "shape", "sha256"}], "left_out": [{"file", "name", "why"}]}],
     "differences": [{"file", "name", "run", "against", "elements", "differing", "maximum_absolute_error"}],
     "faults": [{"run", "file", "why"}]}

`name` is the way through nested dicts, lists and tuples (`model/0.weight`, `state[2]/exp_avg`), empty for a file that
is one tensor. `sha256` is over the elements' bytes in C order. A difference is told of a tensor whose bytes are not
those of the first run that has it, against that run, where dtype and shape are the same; its error is null where an
element is infinite or no number, or for a type without differences. Runs are counted from 1. A file that cannot be
read is a fault, and the others are read all the same: the exit code is 0.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from verify import tensor_files

SCHEMA = 1


@dataclass(frozen=True)
class SavedTensor:
    """One tensor of one file."""

    file: str
    name: str
    dtype: str
    shape: list[int]
    sha256: str


@dataclass(frozen=True)
class LeftOut:
    """What is in a file and not compared, and why."""

    file: str
    name: str
    why: str


def main(arguments: Sequence[str]) -> int:
    """Read every run and write the result."""
    if len(arguments) < 2:
        sys.exit("usage: python -m verify.saved_tensors RESULT RUN...")
    result, *runs = map(Path, arguments)
    result.write_text(json.dumps(compare_runs(runs), indent=1), encoding="utf-8")
    return 0


def compare_runs(runs: Sequence[Path]) -> dict[str, Any]:
    """Return the document of this module's docstring."""
    faults: list[dict[str, Any]] = []
    told = [_read_run(run, number, faults) for number, run in enumerate(runs, start=1)]
    return {
        "schema": SCHEMA,
        "runs": [
            {"tensors": [asdict(one) for one in tensors], "left_out": [asdict(one) for one in left_out]}
            for tensors, left_out in told
        ],
        "differences": list(_find_differences(runs, [tensors for tensors, _ in told])),
        "faults": faults,
    }


def read_values(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield what a file holds by its name in it, tensors and whatever else; ValueError where it cannot be read."""
    if path.suffix == ".npy":
        yield "", tensor_files.read_npy(path)
    elif path.suffix == ".safetensors":
        yield from tensor_files.read_safetensors(path)
    else:
        yield from _numbered(_leaves(_load(path), ""))


def hash_tensor(tensor: Any) -> str:
    """Return the sha256 of a tensor's bytes in C order."""
    plain = _plain(tensor)
    digest = hashlib.sha256()
    if size := plain.numel() * plain.element_size():
        digest.update((ctypes.c_char * size).from_address(plain.data_ptr()))
    return digest.hexdigest()


# --- one run -----------------------------------------------------------------------------------------------------


def _read_run(
    run: Path, number: int, faults: list[dict[str, Any]]
) -> tuple[list[SavedTensor], list[LeftOut]]:  # fmt: skip
    tensors: list[SavedTensor] = []
    left_out: list[LeftOut] = []
    for path in _files(run):
        file = _name_of(path, run)
        try:
            for name, value in read_values(path):
                if why := _why_not(value):
                    left_out.append(LeftOut(file, name, why))
                else:
                    tensors.append(SavedTensor(file, name, *_facts(value)))
        except (OSError, ValueError, MemoryError) as fault:
            faults.append({"run": number, "file": file, "why": str(fault) or type(fault).__name__})
    return tensors, left_out


def _files(run: Path) -> list[Path]:
    return sorted(path for path in run.rglob("*") if path.is_file()) if run.is_dir() else [run]


def _name_of(path: Path, run: Path) -> str:
    return path.relative_to(run).as_posix() if run.is_dir() else path.name


def _facts(value: Any) -> tuple[str, list[int], str]:
    if isinstance(value, tensor_files.RawArray):
        return value.dtype, list(value.shape), hashlib.sha256(value.raw).hexdigest()
    return str(value.dtype).removeprefix("torch."), list(value.shape), hash_tensor(value)


def _why_not(value: Any) -> str:
    """Say why a value is not compared; nothing where it is."""
    torch = importlib.import_module("torch")
    if isinstance(value, tensor_files.RawArray):
        return ""
    if not isinstance(value, torch.Tensor):
        return f"of type {type(value).__name__}, not a tensor"
    if value.is_quantized:
        return "a quantized tensor"
    if value.is_nested:
        return "a nested tensor"
    if value.layout is not torch.strided:
        return f"a tensor of layout {str(value.layout).removeprefix('torch.')}, not of plain elements"
    return "a tensor without data" if value.device.type == "meta" else ""


# --- what torch.save wrote ---------------------------------------------------------------------------------------


def _load(path: Path) -> Any:
    torch = importlib.import_module("torch")
    try:
        return torch.load(path, weights_only=True, map_location="cpu")
    except OSError:
        raise
    except Exception as fault:  # torch raises by what it stumbles over: pickle, zip, runtime and end-of-file errors.
        first = (str(fault).splitlines() or [""])[0]
        raise ValueError(f"torch.load(weights_only=True) refuses it: {type(fault).__name__}: {first}") from fault


def _leaves(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Walk nested containers without recursion: a hostile file may nest deeper than the interpreter's stack."""
    pending = [(name, value)]
    while pending:
        name, value = pending.pop()
        if isinstance(value, Mapping):
            inner = [(_below(name, key), item) for key, item in value.items()]
        elif isinstance(value, (list, tuple)):
            inner = [(f"{name}[{index}]", item) for index, item in enumerate(value)]
        else:
            yield name, value
            continue
        pending.extend(reversed(inner))


def _below(name: str, key: object) -> str:
    if not isinstance(key, str):
        return f"{name}[{key!r}]"
    return f"{name}/{key}" if name else key


def _numbered(values: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Tell values apart whose ways read the same, such as the keys 'a/b' and 'a' with 'b' in it."""
    seen: dict[str, int] = {}
    for name, value in values:
        seen[name] = seen.get(name, 0) + 1
        yield (name if seen[name] == 1 else f"{name} #{seen[name]}"), value


# --- run against run ---------------------------------------------------------------------------------------------


def _find_differences(runs: Sequence[Path], told: Sequence[list[SavedTensor]]) -> Iterator[dict[str, Any]]:
    first: dict[tuple[str, str], tuple[int, SavedTensor]] = {}
    for number, tensors in enumerate(told, start=1):
        wanted: dict[str, list[tuple[int, SavedTensor]]] = {}
        for one in tensors:
            against, other = first.setdefault((one.file, one.name), (number, one))
            if (one.dtype, one.shape) == (other.dtype, other.shape) and one.sha256 != other.sha256:
                wanted.setdefault(one.file, []).append((against, one))
        for file, pairs in wanted.items():
            yield from _measure_file(runs, number, file, pairs)


def _measure_file(
    runs: Sequence[Path], number: int, file: str, pairs: Sequence[tuple[int, SavedTensor]]
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Measure the differing tensors of one file, with one file of an earlier run in memory beside it at a time."""
    here = dict(read_values(_path_of(runs[number - 1], file)))
    for against in sorted({against for against, _ in pairs}):
        there = dict(read_values(_path_of(runs[against - 1], file)))
        for one in (one for other, one in pairs if other == against):
            yield {
                "file": file,
                "name": one.name,
                "run": number,
                "against": against,
                **_measure(here[one.name], there[one.name]),
            }


def _path_of(run: Path, file: str) -> Path:
    return run / file if run.is_dir() else run


def _measure(actual: Any, expected: Any) -> dict[str, Any]:
    """Count the elements that differ and give the greatest difference; the sign of a zero differs and is 0 off."""
    torch = importlib.import_module("torch")
    if isinstance(actual, tensor_files.RawArray):
        return {"elements": actual.elements, "differing": None, "maximum_absolute_error": None}
    here, there = _plain(actual).reshape(-1), _plain(expected).reshape(-1)
    as_bytes = [one.view(torch.uint8).reshape(here.numel(), -1) for one in (here, there)]
    differs = (as_bytes[0] != as_bytes[1]).any(dim=1)
    wide = torch.complex128 if here.is_complex() else torch.float64
    greatest = float((here[differs].to(wide) - there[differs].to(wide)).abs().max())
    return {
        "elements": here.numel(),
        "differing": int(differs.sum()),
        "maximum_absolute_error": greatest if greatest < float("inf") else None,
    }


def _plain(tensor: Any) -> Any:
    return tensor.detach().resolve_conj().resolve_neg().contiguous()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
