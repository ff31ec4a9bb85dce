"""Both compile switches, and determinism: what works only together, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from toolkit.doctor.observed import bad, doubtful, good
from toolkit.model import Observation
from toolkit.preflight.options import UNSEEN, said, unseen
from toolkit.preflight.subject import BACKEND

if TYPE_CHECKING:
    from toolkit.preflight.subject import Subject

COMPILE, FRAMEWORK, COMPONENTS = "compile.enable", "compile.backend", "compile.components"
STRICT, WARNS, ATTENTION = "debug.deterministic", "debug.deterministic_warn_only", "model.attention_backend"


def examine_switches(subject: Subject) -> list[Observation]:
    """Look at what compiles, with which backend, and whether determinism goes with the rest."""
    return [
        _examine_compile(subject),
        *_examine_backend(subject),
        *_examine_parts(subject),
        _examine_determinism(subject),
    ]


def _examine_compile(subject: Subject) -> Observation:
    name, launch = "preflight.compile", subject.launch
    enabled, backend = launch.option(COMPILE), subject.variable(BACKEND)
    if enabled is None:
        return doubtful(name, unseen(launch, COMPILE), UNSEEN)
    if enabled == "true":
        return good(name, said(launch, COMPILE))
    off = said(launch, COMPILE) if enabled else f"--{COMPILE} is not given"
    sets = f"{BACKEND}={backend} alone compiles nothing" if backend else "the model is not compiled"
    return bad(name, f"{off}: {sets}, and every step runs in eager", f"add --{COMPILE}")


def _examine_backend(subject: Subject) -> Iterator[Observation]:
    name, wanted = "preflight.backend", subject.backend
    backend, do = subject.variable(BACKEND), f"set {BACKEND}={wanted}"
    if backend is None:
        yield doubtful(name, f"what {BACKEND} will be cannot be known from the command's text", UNSEEN)
    elif backend == "":
        enabled = subject.launch.option(COMPILE) == "true"
        what = f"--{COMPILE} compiles with the default backend, not with {wanted}" if enabled else f"not {wanted}"
        yield bad(name, f"{BACKEND} is not set: {what}", do)
    elif backend != wanted:
        yield bad(name, f"{BACKEND}={backend}, the recipe {subject.overlay.recipe} is for {wanted}", do)
    else:
        yield good(name, f"{BACKEND}={backend}{_origin(subject, BACKEND)}")


def _origin(subject: Subject, variable: str) -> str:
    """Say that a variable is none of the command's own."""
    return "" if subject.given.variable(variable) else ", from the overlay"


def _examine_parts(subject: Subject) -> Iterator[Observation]:
    """Yield what is given of the options that say with what, and what of the model, is compiled."""
    launch, wanted = subject.launch, subject.acceptance.compile.framework
    framework, components = launch.option(FRAMEWORK), launch.option(COMPONENTS)
    if framework and framework != wanted:
        seen = f"{said(launch, FRAMEWORK)}, expected {wanted}, which has the NPU backends"
        yield bad("preflight.backend", seen, f"leave it out, or make it --{FRAMEWORK}={wanted}")
    if components and "model" not in components.replace(",", " ").split() + list(launch.positionals):
        seen = f"{said(launch, COMPONENTS)}: the model itself is not compiled"
        yield doubtful("preflight.compile", seen, f"make it --{COMPONENTS}=model,loss")


def _examine_determinism(subject: Subject) -> Observation:
    name, launch = "preflight.determinism", subject.launch
    strict, warns, attention = (launch.option(option) for option in (STRICT, WARNS, ATTENTION))
    refusing = subject.acceptance.determinism.refused_by
    if warns == "true":
        return bad(
            name,
            f"{said(launch, WARNS)}: operators without a deterministic form run all the same, so nothing is promised, "
            "while DVM takes it for the strict form",
            f"leave it out; to compare runs, repeat them: toolkit evidence repeat (or --{STRICT} with an attention "
            "backend that has it)",
        )
    if strict is None or (warns is None and (not strict or WARNS in launch.options)):
        return doubtful(name, unseen(launch, WARNS if warns is None else STRICT), UNSEEN)
    if strict != "true":
        return good(name, said(launch, STRICT) if strict else f"--{STRICT} is not given")
    if attention in refusing:
        return bad(
            name,
            f"{said(launch, STRICT)} with {said(launch, ATTENTION)}: the backward of the vendor's attention refuses "
            "strict determinism",
            f"leave --{STRICT} out, or take an attention backend that is none of {', '.join(refusing)}",
        )
    if not attention:
        seen = f"{said(launch, STRICT)}, and the configuration chooses the attention backend"
        return doubtful(name, seen, f"name it: the backward of {' and of '.join(refusing)} refuses strict determinism")
    return good(name, f"{said(launch, STRICT)}, which the trainer sets before it compiles")
