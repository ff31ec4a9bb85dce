"""Asking for a backend that this build lacks is an error that names those it has.

Unpatched, a mistyped name silently becomes Triton, and so does `dvm` in a build without it. Both ways of asking end
in the same loader: the environment variable when torch_npu's inductor package is imported, and the option `npu_backend`
when something is compiled. The names that the build has are read from its source, not from what it says of itself.
"""

from __future__ import annotations

import ast
import importlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from verify import host
from verify.contract import Outcome, Request, broke, failed, passed

LOADERS = "_BACKEND_LOADERS"
MISTYPED = "dmv"


def check(request: Request) -> Outcome:
    """Ask by the variable, which holds the mistyped name, then by the option alone, and judge the two answers."""
    host.prepare(request.runtime)
    asked = os.environ.get(host.BACKEND_VARIABLE)
    if asked != MISTYPED:
        return broke(f"{host.BACKEND_VARIABLE} is {asked!r}, expected {MISTYPED!r}")
    answers = {f"{host.BACKEND_VARIABLE}={MISTYPED}": _answer_of(_import_inductor)}
    del os.environ[host.BACKEND_VARIABLE]
    answers[f"options={{'npu_backend': {MISTYPED!r}}}"] = _answer_of(_compile_with_option)
    return judge(answers, read_backends(_inductor_source()))


def judge(answers: dict[str, BaseException | str], backends: Sequence[str]) -> Outcome:
    """Judge the answers, each the error raised or what was loaded instead; `backends` are those that there are."""
    told = {way: _describe(answer) for way, answer in answers.items()}
    evidence = {**told, "backends": list(backends)}
    known = ", ".join(sorted(backends))
    for way, answer in answers.items():
        if isinstance(answer, str):
            return failed(f"{way} raised nothing and loaded {answer}", **evidence)
        if MISTYPED not in str(answer):
            return broke(f"{way} raised an error about something else: {_describe(answer)}", **evidence)
        if known not in str(answer):
            return failed(f"{way} was refused without naming {known}", **evidence)
    return passed("; ".join(f"{way}: {text}" for way, text in told.items()), **evidence)


def read_backends(source: str) -> list[str]:
    """Return the keys of the table of loaders in torch_npu's inductor package."""
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Dict):
            targets = [target.id for target in statement.targets if isinstance(target, ast.Name)]
            if LOADERS in targets:
                return [str(key.value) for key in statement.value.keys if isinstance(key, ast.Constant)]
    raise LookupError(f"torch_npu's inductor package has no table {LOADERS}")


def _describe(answer: BaseException | str) -> str:
    if isinstance(answer, str):
        return answer
    # The first paragraph, on one line: what follows it is torch's advice on logging.
    return " ".join(f"{type(answer).__name__}: {answer}".split("\n\n")[0].split())


def _answer_of(ask: Callable[[], None]) -> BaseException | str:
    try:
        ask()
    except Exception as fault:  # the answer itself is an error, and judge() looks at its words
        return fault
    common = importlib.import_module("torch._inductor.codegen.common")
    scheduling = common.get_scheduling_for_device("npu")
    # Triton's loader registers nothing where triton-ascend is missing.
    return "no scheduling" if scheduling is None else f"{scheduling.__module__}.{scheduling.__qualname__}"


def _import_inductor() -> None:
    importlib.import_module("torch_npu._inductor")


def _compile_with_option() -> None:
    torch = importlib.import_module("torch")
    torch.compile(_double, options={"npu_backend": MISTYPED})(torch.ones(8).npu())


def _double(x: Any) -> Any:
    return x * 2


def _inductor_source() -> str:
    torch_npu = importlib.import_module("torch_npu")
    return (Path(str(torch_npu.__file__)).parent / "_inductor" / "__init__.py").read_text(encoding="utf-8")
