"""What goes into keys: every input that can change a wheel or an overlay, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from toolkit import build, overlay, repack, series
from toolkit.model import BuildSpec, Component, Interpreter, Key, Recipe, Series, Target
from toolkit.trace import digest_variable

Inputs = Iterator[tuple[str, str]]

REPORT_ROOMS = frozenset({"account", "page"})
"""Rooms of toolkit that a build uses for its report alone, after the overlay stands."""

OTHER_ROOMS = frozenset(
    {
        "cachekeys", "diagnosing", "doctor", "evidencing", "groups", "keyfile", "launch", "lint", "patching",
        "preflight", "repeats", "reporting", "runs", "scan", "triage", "upkeep", "witnessing",
    }
)  # fmt: skip
"""Rooms of toolkit that neither build nor prove, nor are imported by what does."""


def own_sources() -> Iterator[Path]:
    """Yield toolkit's sources that take part in a build or proof: an overlay is not doubted for any other."""
    own = Path(__file__).parent
    for path in sorted(own.glob("**/*.py")):
        room = path.relative_to(own).parts[0].removesuffix(".py")
        if room not in REPORT_ROOMS | OTHER_ROOMS:
            yield path
    yield from sorted(own.glob("sysroot/*.c"))


def component_inputs(part: Component, base: str, chosen: Target) -> Inputs:
    """List what every wheel of a component has, whatever its patches; `base` names the artifact with its kind."""
    yield "component", part.name
    yield "import_name", part.import_name
    yield "base", base
    yield "python_tag", chosen.python_tag
    yield "platform", chosen.platform
    yield "logic/repack", repack.LOGIC_VERSION


def series_inputs(part: Component, patches: Series) -> Inputs:
    """List a component's patches."""
    yield from series.series_key_inputs(patches)
    for name in part.accept_upstream:
        yield f"accept_upstream/{name}", "true"


def build_inputs(
    spec: BuildSpec, interpreter: Interpreter, chosen: Target, environ: Mapping[str, str]
) -> Inputs:  # fmt: skip
    """List what decides, beside the tree, what a build makes of it.

    The caller's variables are named by their hash: keys are written down, and what is passed on may be a secret.
    """
    yield "build/backend", spec.backend
    yield "build/subfolder", spec.subfolder
    yield "build/submodules", "yes" if spec.submodules else "no"
    yield "build/python", f"{interpreter.version} {chosen}"
    yield "build/compiler", build.compiler_digest(spec, environ)
    for requirement in spec.requirements:
        yield f"build/requirement/{requirement.distribution}", f"{requirement.file} {requirement.sha256}"
    for name, value in spec.env.items():
        yield f"build/env/{name}", value
    for name in spec.pass_env:
        yield f"build/pass_env/{name}", digest_variable(environ, name)
    yield "logic/build", build.LOGIC_VERSION


def overlay_inputs(wanted: Recipe, chosen: Target, wheels: Mapping[str, Key]) -> Inputs:
    """List all that goes into an overlay; `wheels` are its components' keys."""
    for component, key in wheels.items():
        for name, value in key.inputs:
            yield f"{component}/{name}", value
    for name, value in wanted.env.items():
        yield f"env/{name}", value
    if wanted.diagnostic:
        yield "diagnostic", wanted.diagnostic
    contract = wanted.contract
    yield "contract/torch", contract.torch
    yield "contract/cann", contract.cann or ""
    yield "contract/soc", ",".join(contract.soc)
    yield "contract/python", ",".join(contract.python_tags)
    yield "contract/platforms", ",".join(contract.platforms)
    yield "target", str(chosen)
    yield "logic/overlay", overlay.LOGIC_VERSION
