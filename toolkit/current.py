"""The overlay that a recipe has now: where it lies, whether it still holds, whether there is anything to do.

A no-op build and `toolkit env` go through here and nothing else, so nothing heavy is imported.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from toolkit import __version__, manifest
from toolkit.errors import OverlayError, UsageError
from toolkit.files import sha256_file, swap_symlink, write_atomic
from toolkit.project import Project
from toolkit.trace import Trace, changed_input, read_trace

if TYPE_CHECKING:
    from toolkit.model import Overlay

CURRENT = "current"
GENERATIONS = "generations"
TRACE_FILE = "built.json"
PROOF_FILE = "proof.json"
MANIFEST_FILE = "manifest.json"
REPORT_FILE = "report.html"

RECIPE_FILE = "recipe file"
"""The fact of a trace that says which file the recipe was read from."""

BUILD_ANSWER = "build"
ENV_ANSWER = "env"
"""What a trace's result keeps: what these two commands say while nothing changes."""

PROVE_AGAIN = "prove it again: toolkit verify, or build it again: toolkit build"


class RecipeFolder(NamedTuple):
    """`overlays/<recipe>/`: the generations of one recipe for one target."""

    path: Path

    @property
    def trace(self) -> Path:
        """The trace of the build that `current` points to."""
        return self.path / TRACE_FILE

    @property
    def lock(self) -> Path:
        """Held by whoever builds or proves here."""
        return self.path / ".lock"

    def generation(self, key: str) -> Path:
        """The place of the generation with this key."""
        return self.path / GENERATIONS / key[:16]

    def current(self) -> Path | None:
        """The generation that `current` points to, or None."""
        try:
            return self.path / os.readlink(self.path / CURRENT)
        except OSError:
            return None

    @property
    def report(self) -> Path | None:
        """The current generation's report by its lasting name, where there is one."""
        path = self.path / REPORT_FILE
        return path if os.path.exists(path) else None

    def make_current(self, generation: Path, env_files: Mapping[str, str]) -> None:
        """Point `current` at a finished generation, and the names of its env files and report at the current one's."""
        swap_symlink(self.path / CURRENT, os.path.relpath(generation, self.path))
        for name in (*env_files, *([REPORT_FILE] if (generation / REPORT_FILE).is_file() else [])):
            self.link_to_current(name)

    def link_to_current(self, name: str) -> None:
        """Give the current generation's file of that name a name that lasts."""
        swap_symlink(self.path / name, f"{CURRENT}/{name}")


def recipe_folder(project: Project, recipe: str, *, other_target: str | None = None) -> RecipeFolder:
    """Return a recipe's folder; a build for another machine has its own, so that it never becomes `current` here."""
    name = Path(recipe).stem if _is_file_name(recipe) else recipe
    return RecipeFolder(path=project.overlays / (f"{name}.{other_target}" if other_target else name))


def require_own(folder: RecipeFolder, facts: Mapping[str, str]) -> None:
    """Raise UsageError where a folder's overlay was built from another recipe file of the same name."""
    trace = read_trace(folder.trace)
    theirs, ours = trace.facts.get(RECIPE_FILE, "") if trace else "", facts[RECIPE_FILE]
    if theirs and theirs != ours and os.path.exists(theirs) and os.path.exists(ours):
        raise UsageError(
            f"the overlay in {folder.path} is that of {theirs}, not of {ours}",
            hint="give the recipe another name, or keep its overlays apart with --overlays DIR",
        )


def open_current(folder: RecipeFolder, *, full: bool = False) -> Overlay:
    """Return the current overlay after checking its files; with `full`, every byte is read.

    Raises OverlayError where there is none, or naming the files that are not what the manifest says.
    """
    return manifest.read_overlay(_checked_generation(folder, full=full))


def facts_of(
    project: Project, folder: RecipeFolder, recipe: str, interpreter: str, environ: Mapping[str, str]
) -> dict[str, str]:
    """Return what no input file holds and a later run must find unchanged to have nothing to do."""
    return {
        "toolkit": __version__,
        "project": str(project.root),
        "folder": str(folder.path),
        "recipe": recipe,
        RECIPE_FILE: _recipe_file(project, recipe),
        "python": os.path.abspath(interpreter),
        "ASCEND_HOME_PATH": environ.get("ASCEND_HOME_PATH", ""),
        "ASCEND_TOOLKIT_HOME": environ.get("ASCEND_TOOLKIT_HOME", ""),
    }


def _recipe_file(project: Project, recipe: str) -> str:
    if _is_file_name(recipe):
        return os.path.realpath(recipe)
    files = (folder / f"{recipe}.toml" for folder in project.recipes)
    return next((os.path.realpath(file) for file in files if file.is_file()), "")


def _is_file_name(recipe: str) -> bool:
    return "/" in recipe or recipe.endswith(".toml")


def up_to_date(
    folder: RecipeFolder, facts: Mapping[str, str], environ: Mapping[str, str] = os.environ
) -> Trace | None:  # fmt: skip
    """Return the trace of the current overlay where a build would have nothing to do, else None.

    That is: nothing that it was made from was changed, its files hold, and so does its proof.
    """
    try:
        return unchanged(folder, facts, environ) if _checked_generation(folder) else None
    except OverlayError:
        return None


def unchanged(
    folder: RecipeFolder, facts: Mapping[str, str], environ: Mapping[str, str] = os.environ
) -> Trace | None:  # fmt: skip
    """Return the current overlay's trace where all that it was made from is as it was, the interpreter included."""
    trace, generation = read_trace(folder.trace), folder.current()
    if trace is None or generation is None or generation.name != trace.result.get("generation"):
        return None
    return trace if changed_input(trace, facts, environ) is None else None


def changed_since(folder: RecipeFolder, facts: Mapping[str, str]) -> str | None:
    """Name the first input file that is not as it was when the current overlay was built by this same project."""
    trace = read_trace(folder.trace)
    if trace is None or any(trace.facts.get(name) != facts[name] for name in ("project", "folder")):
        return None
    return changed_input(trace, {})


def require_generation(folder: RecipeFolder) -> Path:
    """Return the generation that `current` points to; OverlayError where there is none."""
    generation = folder.current()
    if generation is None or not generation.is_dir():
        recipe, dot, target = folder.path.name.rpartition(".cp")
        tag, _, platform = target.partition("-")
        asked = f"{recipe} --python-tag cp{tag} --platform {platform}" if dot else folder.path.name
        raise OverlayError(f"there is no overlay in {folder.path}", hint=f"build it: toolkit build --recipe {asked}")
    return generation


def _checked_generation(folder: RecipeFolder, *, full: bool = False) -> Path:
    generation = require_generation(folder)
    manifest.verify_site(generation, full=full)
    if not full:
        _require_own_proof(generation)
    return generation


def _require_own_proof(generation: Path) -> None:
    """Raise OverlayError unless the proof is there, holds, and is one of the files that the manifest lists now."""
    try:
        proof = json.loads((generation / PROOF_FILE).read_bytes())
        proven, holds = proof["environment"]["manifest"], proof["ok"]
    except (OSError, ValueError, KeyError, TypeError) as fault:
        raise OverlayError(f"the overlay at {generation} has no proof that can be read", hint=PROVE_AGAIN) from fault
    if proven != sha256_file(generation / MANIFEST_FILE):
        raise OverlayError(f"the proof of the overlay at {generation} is one of other files", hint=PROVE_AGAIN)
    if holds is not True:
        raise OverlayError(f"the last proof of the overlay at {generation} failed", hint=PROVE_AGAIN)


def write_env_files(generation: Path, env_files: Mapping[str, str]) -> None:
    """Write a generation's env files, each in one step, only where they differ: they name its absolute place."""
    for name, content in env_files.items():
        path = generation / name
        if not path.is_file() or path.read_text(encoding="utf-8") != content:
            write_atomic(path, content)
