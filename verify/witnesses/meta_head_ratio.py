"""The Meta function of sparse_flash_mla gives whole numbers for sizes.

Unpatched, it divides the numbers of heads with `/` for the shape of softmax_lse, which makes a float of a size:
`TypeError: empty(): argument 'size' failed to unpack the object at pos 4 with error "type must be tuple of ints,but got
float"`. So nothing that calls the operator with `return_softmax_lse=True` can be traced. It is called here under
FakeTensorMode on fake npu tensors, in both layouts; shape, dtype, device and stride of both results must be those of
what the operator itself returns.

Which copy of cann_ops_transformer answers is decided by who registers with torch first, not by what is imported last,
so the file of the function that was really called is looked at, and must be the site's. Extensions that modules of the
package compile while they are imported (mega_moe, about 80 seconds) have no part in this and are left out.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verify import host
from verify.contract import Outcome, Request, broke, failed, passed
from verify.loaded import is_below

PACKAGE = "cann_ops_transformer"
FAULT = re.compile(r"TypeError: empty\(\): argument 'size'.*must be tuple of ints, ?but got float")
RATIOS = (1, 4, 64, 128)
SEQUENCES, TOKENS, HEAD_SIZE, PAGES = 2, 128, 512, 4

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Call:
    """One call of the operator: the layouts, and the shapes of q, ori_kv and the softmax_lse that is due."""

    layout_q: str
    layout_kv: str
    q: Shape
    kv: Shape
    lse: Shape

    def __str__(self) -> str:
        return f"{self.layout_q}, {self.layout_kv}, q {self.q}, ori_kv {self.kv}"


@dataclass(frozen=True)
class Tensor:
    """What a tensor looks like from outside."""

    shape: Shape
    dtype: str
    device: str
    stride: Shape

    def __str__(self) -> str:
        return f"{self.shape} {self.dtype} on {self.device} with stride {self.stride}"


@dataclass(frozen=True)
class Answer:
    """What one call came to: its results or an error, and the files of the functions that answered it."""

    call: Call
    error: str
    results: tuple[Tensor, ...]
    files: tuple[str, ...]

    @property
    def told(self) -> str:
        """The results in words."""
        return " and ".join(map(str, self.results))


def check(request: Request) -> Outcome:
    """Call sparse_flash_mla in both layouts at each ratio and judge the answers."""
    return check_operator(request, "sparse_flash_mla", [*bsnd_calls(), *tnd_calls()], {})


def check_operator(request: Request, operator: str, calls: Sequence[Call], options: Mapping[str, Any]) -> Outcome:
    """Make these calls under FakeTensorMode, with these further arguments, and judge the answers."""
    host.prepare(request.runtime)
    with _no_extensions():
        package = importlib.import_module(PACKAGE)
    torch = importlib.import_module("torch")
    function = getattr(getattr(torch.ops, PACKAGE), operator).default
    answers = [_ask(function, call, options) for call in calls]
    return judge(answers, request.site, package=str(package.__file__), registered=_registration(operator))


def judge(answers: Sequence[Answer], site: Path, **evidence: Any) -> Outcome:
    """Judge by the fault's own words and by what the results look like, if it is the site's function that answered."""
    evidence = {**evidence, "calls": {str(answer.call): answer.error or answer.told for answer in answers}}
    files = sorted({file for answer in answers for file in answer.files})
    if len(files) != 1:
        return broke(f"functions of {len(files)} files answered: {', '.join(files) or 'none'}", **evidence)
    evidence["won"] = files[0]
    if not is_below(Path(files[0]), site):
        return broke(f"the function that answered is in {files[0]}, expected one below {site}", **evidence)
    faults = [f"{answer.call}: {answer.error}" for answer in answers if FAULT.search(answer.error)]
    if faults:
        return failed(f"{len(faults)} of {len(answers)} calls, the first {faults[0]}", **evidence)
    stuck = [f"{answer.call}: {answer.error}" for answer in answers if answer.error]
    if stuck or not answers:
        return broke("; ".join(stuck), **evidence)
    wrong = [f"{answer.call}: {difference}" for answer in answers if (difference := _difference(answer))]
    if wrong:
        return failed("; ".join(wrong), **evidence)
    return passed(f"{len(answers)} calls give the operator's own shapes, by {files[0]}", **evidence)


def bsnd_calls() -> Iterator[Call]:
    """Yield the calls with a batch of sequences of one length."""
    for ratio in RATIOS:
        q, kv = (SEQUENCES, TOKENS, ratio, HEAD_SIZE), (SEQUENCES, TOKENS, 1, HEAD_SIZE)
        yield Call("BSND", "BSND", q, kv, (SEQUENCES, 1, TOKENS, ratio))


def tnd_calls() -> Iterator[Call]:
    """Yield the calls with sequences packed end to end."""
    for ratio in RATIOS:
        yield Call("TND", "TND", (TOKENS, ratio, HEAD_SIZE), (TOKENS, 1, HEAD_SIZE), (1, TOKENS, ratio))


def paged_calls() -> Iterator[Call]:
    """Yield the calls with packed queries and keys in pages."""
    for ratio in RATIOS:
        q, kv = (TOKENS, ratio, HEAD_SIZE), (PAGES, TOKENS, 1, HEAD_SIZE)
        yield Call("TND", "PA_BBND", q, kv, (1, TOKENS, ratio))


def _difference(answer: Answer) -> str:
    call = answer.call
    expected = (_contiguous(call.q, "torch.bfloat16"), _contiguous(call.lse, "torch.float32"))
    return "" if answer.results == expected else f"gives {answer.told}, expected {' and '.join(map(str, expected))}"


def _contiguous(shape: Shape, dtype: str) -> Tensor:
    strides = [1]
    for size in reversed(shape[1:]):
        strides.append(strides[-1] * size)
    return Tensor(shape, dtype, "npu:0", tuple(reversed(strides)))


def _ask(function: Any, call: Call, options: Mapping[str, Any]) -> Answer:
    torch = importlib.import_module("torch")
    fake_mode = importlib.import_module("torch._subclasses.fake_tensor").FakeTensorMode
    error: str = ""
    results: tuple[Any, ...] = ()
    with fake_mode(), _answering_files() as files:
        q, kv = (torch.empty(shape, dtype=torch.bfloat16, device="npu:0") for shape in (call.q, call.kv))
        layouts = {"layout_q": call.layout_q, "layout_kv": call.layout_kv}
        try:
            results = function(q, ori_kv=kv, return_softmax_lse=True, **layouts, **options)
        except Exception as fault:  # whichever it is, judge() looks at its words
            error = f"{type(fault).__name__}: {fault}"
    return Answer(call, error, tuple(_describe(result) for result in results), tuple(sorted(files)))


def _describe(tensor: Any) -> Tensor:
    return Tensor(tuple(tensor.shape), str(tensor.dtype), str(tensor.device), tuple(tensor.stride()))


@contextlib.contextmanager
def _answering_files() -> Iterator[set[str]]:
    """Collect the files of the Python functions outside torch that calling an operator leads to directly."""
    torch = importlib.import_module("torch")
    folder = Path(str(torch.__file__)).parent
    operator_call = (str(importlib.import_module("torch._ops").__file__), "__call__")
    files: set[str] = set()

    def note(frame: types.FrameType, event: str, _argument: object) -> None:
        caller = None if frame.f_back is None else frame.f_back.f_code
        if event == "call" and caller is not None and (caller.co_filename, caller.co_name) == operator_call:
            files.add(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield files
    finally:
        sys.setprofile(before)
        files.difference_update(
            [file for file in files if not Path(file).is_absolute() or is_below(Path(file), folder)]
        )


@contextlib.contextmanager
def _no_extensions() -> Iterator[None]:
    """Let modules that compile an extension while they are imported go without it."""
    extensions: Any = importlib.import_module("torch.utils.cpp_extension")
    load = extensions.load
    extensions.load = lambda *_args, **_options: types.SimpleNamespace()
    try:
        yield
    finally:
        extensions.load = load


def _registration(operator: str) -> list[str]:
    """Return what torch says of where the operator was registered."""
    dump = importlib.import_module("torch")._C._dispatch_dump(f"{PACKAGE}::{operator}")
    return [line for line in dump.splitlines() if "registered at" in line]
