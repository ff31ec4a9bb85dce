"""Variables that change how torch_npu runs: the backend, queues, blocking launches, determinism."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from toolkit.doctor.asked import Asked
from toolkit.doctor.observed import bad, doubtful, good
from toolkit.doctor.places import how_to_activate
from toolkit.model import Observation
from toolkit.schema import did_you_mean

BACKEND = "TORCHINDUCTOR_NPU_BACKEND"
LOADERS = "_BACKEND_LOADERS"
BACKENDS = ("mlir", "dvm", "ascendc", "default", "triton_experimental")
"""What torch_npu 2.13.0 knows, for where the one that is here cannot be read."""

QUEUE = "TASK_QUEUE_ENABLE"
BLOCKING = "ASCEND_LAUNCH_BLOCKING"

DETERMINISM = {"HCCL_DETERMINISTIC": (("true", "strict"), ("false",)), "LCCL_DETERMINISTIC": (("1",), ("0",))}
"""For each variable: the values that ask for it, and those that do not."""


def examine_switches(asked: Asked) -> list[Observation]:
    """Look at the switches that are set, and at the backend that is not."""
    return [*_examine_backend(asked), *_examine_queue(asked), *_examine_blocking(asked), *_examine_determinism(asked)]


def _examine_backend(asked: Asked) -> Iterator[Observation]:
    """Yield whether the backend is one that torch_npu has, and the recipe's."""
    named = asked.environ.get(BACKEND)
    wanted = asked.wanted.env.get(BACKEND) if asked.wanted else None
    known = _known_backends(asked)
    if named and named not in known:
        yield bad(
            "switch.backend",
            f"{BACKEND}={named} is none of torch_npu's{did_you_mean(named, known)}: unless patched, it silently takes "
            "Triton",
            f"export {BACKEND}={wanted or 'dvm'}",
        )
    elif wanted and named != wanted:
        mark = bad if named else doubtful
        has = f"is {named}" if named else "is not set, and the default backend is taken"
        yield mark(
            "switch.backend",
            f"{BACKEND} {has}; the recipe {asked.recipe} asks for {wanted}",
            f"{how_to_activate(asked)}, or: export {BACKEND}={wanted}",
        )
    elif named:
        yield good("switch.backend", f"{BACKEND}={named}")


def _known_backends(asked: Asked) -> tuple[str, ...]:
    """Return the backends that the torch_npu here has loaders for, read from its source."""
    package = asked.packages.get("torch_npu")
    if package is None:
        return BACKENDS
    try:
        tree = ast.parse((package / "_inductor/__init__.py").read_bytes())
    except (OSError, SyntaxError, ValueError):
        return BACKENDS
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict) and _is_named(node, LOADERS):
            return tuple(str(key.value) for key in node.value.keys if isinstance(key, ast.Constant))
    return BACKENDS


def _is_named(node: ast.Assign, name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in node.targets)


def _examine_queue(asked: Asked) -> Iterator[Observation]:
    value = asked.environ.get(QUEUE)
    if value is None:
        return
    if value not in ("0", "1", "2"):
        yield bad("switch.queue", f"{QUEUE}={value!r}: torch_npu takes 0, 1 or 2 and ends", f"unset {QUEUE}")
    elif value == "0":
        yield doubtful(
            "switch.queue", f"{QUEUE}=0: launches wait for each other, which is slow", f"unset {QUEUE} after debugging"
        )
    else:
        yield good("switch.queue", f"{QUEUE}={value}")


def _examine_blocking(asked: Asked) -> Iterator[Observation]:
    value = asked.environ.get(BLOCKING)
    if value is None or value == "0":
        return
    if value == "1":
        seen = f"{BLOCKING}=1: each operator is waited for, which is slow" + (
            f", and {QUEUE} is without effect" if asked.environ.get(QUEUE) in ("1", "2") else ""
        )
        yield doubtful("switch.blocking", seen, f"unset {BLOCKING} after debugging")
    else:
        yield doubtful("switch.blocking", f"{BLOCKING}={value!r}: torch_npu takes 0 or 1", f"unset {BLOCKING}")


def _examine_determinism(asked: Asked) -> Iterator[Observation]:
    """Yield values that no library takes, and determinism that only one of the two is asked for."""
    asked_for: dict[str, bool] = {}
    for variable, (on, off) in DETERMINISM.items():
        value = asked.environ.get(variable)
        if value is None:
            continue
        if value.lower() not in (*on, *off):
            yield doubtful(
                "switch.determinism",
                f"{variable}={value!r}, which is not known: expected {', '.join((*on, *off))}",
                f"export {variable}={on[0]}",
            )
            continue
        asked_for[variable] = value.lower() in on
    if asked_for and not any(asked_for.values()):
        return
    lacking = [name for name in DETERMINISM if not asked_for.get(name)]
    if asked_for and lacking == ["HCCL_DETERMINISTIC"]:
        yield doubtful(
            "switch.determinism",
            "LCCL_DETERMINISTIC is on and HCCL_DETERMINISTIC is not: reductions across NPUs differ from run to run",
            "export HCCL_DETERMINISTIC=true",
        )
    elif asked_for:
        shown = " and ".join(f"{name}={asked.environ[name]}" for name, is_on in asked_for.items() if is_on)
        yield good("switch.determinism", f"{shown}: collectives are deterministic, and slower")
