"""An account of one overlay for its report, gathered from what lies in its folder and in the project.

What a build left behind is all that is looked at: manifest, proof, logs, and the patches by their hashes. Nothing is
planned, fetched or run. What is not at hand any more is said in the account, it does not stop it.
"""

from __future__ import annotations

import contextlib
import logging
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from toolkit import manifest, prove
from toolkit.account.document import facts_document
from toolkit.account.evidence import read_graphs, read_numbers, read_programs
from toolkit.account.origins import describe_components, read_recipe_table
from toolkit.current import MANIFEST_FILE, PROOF_FILE, REPORT_FILE
from toolkit.errors import OverlayError, ToolkitError
from toolkit.files import sha256_file, write_atomic
from toolkit.model import CheckResult, Overlay, Proof, Recipe
from toolkit.page import Account, CheckAccount, render_html
from toolkit.project import Project

__all__ = ["facts_document", "gather_account", "leave_page", "write_page"]

log = logging.getLogger(__name__)

LOGS = "logs"


def gather_account(generation: Path, *, project: Project, recipe: str, notices: Sequence[str] = ()) -> Account:
    """Gather what there is to tell of a generation; `recipe` is what --recipe takes for it.

    Raises OverlayError for a manifest, and ProofError for a proof, that cannot be read.
    """
    overlay = manifest.read_overlay(generation)
    proof = prove.read_proof(generation / PROOF_FILE)
    numbers, unread_numbers = read_numbers(proof.results)
    programs, unread_programs = read_programs(proof.results)
    graphs, left_out = read_graphs(proof.results, generation / LOGS)
    told = [*notices, *_notices(overlay, proof), *unread_numbers, *unread_programs, *left_out]
    table = read_recipe_table(project, recipe)
    return Account(
        overlay=overlay,
        proof=proof,
        description=str(table.get("description", "")),
        notices=tuple(told),
        components=describe_components(overlay, project, recipe),
        checks=_checks(proof, project, generation, _options(overlay, generation, recipe)),
        numbers=numbers,
        programs=programs,
        graphs=graphs,
        commands=_commands(proof, _options(overlay, generation, recipe)),
    )


def write_page(generation: Path, *, project: Project, recipe: str) -> Path:
    """Write a generation's page beside its proof and return its path."""
    page = generation / REPORT_FILE
    write_atomic(page, render_html(gather_account(generation, project=project, recipe=recipe)))
    return page


def leave_page(generation: Path, recipe: Recipe, project: Project, *, is_proven_now: bool) -> Path | None:
    """Return the page of a generation that was built, written for a new proof or where it is missing.

    An overlay is no worse for a page that cannot be written: that is said, one of an older proof does not stay, and
    None is returned.
    """
    page = generation / REPORT_FILE
    if page.is_file() and not is_proven_now:
        return page
    file = recipe.files[0]
    name = recipe.name if file.parent in project.recipes else str(file)
    try:
        return write_page(generation, project=project, recipe=name)
    except Exception as fault:  # whatever is wrong with the page, the overlay and its proof stand
        log.warning("the report %s could not be written: %s", page, fault)
        with contextlib.suppress(OSError):
            page.unlink(missing_ok=True)
        return None


def _notices(overlay: Overlay, proof: Proof) -> Iterator[str]:
    if overlay.diagnostic:
        yield f"for diagnosis only: {overlay.diagnostic}"
    try:
        manifest.verify_site(overlay.root)
    except OverlayError as fault:
        yield f"{fault.message}. What the proof says is not true of these files any more."
    if proof.overlay != overlay.key:
        yield f"the proof is of another overlay, {proof.overlay[:16]}: prove this one with `toolkit verify`"
    elif proof.environment.get("manifest") != sha256_file(overlay.root / MANIFEST_FILE):
        yield "the proof is of other files than this overlay has now: prove it again with `toolkit verify`"
    if idle := [result for result in proof.results if not result.required]:
        reasons = ", ".join(dict.fromkeys(result.detail for result in idle))
        yield f"{len(idle)} of {len(proof.results)} results are not required, as they could not be had: {reasons}"
    if not (overlay.root / LOGS).is_dir():
        yield "the overlay's logs were removed: there is no generated code to show, and no log that the proof names"


# --- checks ----------------------------------------------------------------------------------------------------


def _checks(proof: Proof, project: Project, generation: Path, options: str) -> tuple[CheckAccount, ...]:
    summaries = _summaries(project)
    return tuple(
        CheckAccount(
            name=name,
            summary=summaries.get(name, ""),
            results={result.side: result for result in proof.results if result.name == name},
            files=tuple(_files([result for result in proof.results if result.name == name], generation)),
            command=f"toolkit verify{options} --check {shlex.quote(name)}",
        )
        for name in dict.fromkeys(result.name for result in proof.results)
    )


def _summaries(project: Project) -> dict[str, str]:
    try:
        return {name: check.summary for name, check in prove.load_catalogue(project.verify).items()}
    except ToolkitError:  # a catalogue that is being edited is no reason to show no report
        return {}


def _files(results: Sequence[CheckResult], generation: Path) -> Iterator[str]:
    """List what the checks' processes left that is still there, as paths from the overlay's folder."""
    for log in dict.fromkeys(Path(result.log).name for result in results if result.log):
        path = generation / LOGS / log
        if path.is_file():
            yield f"{LOGS}/{log}"
        folder = path.with_suffix("")
        if folder.is_dir() and any(folder.iterdir()):
            yield f"{LOGS}/{folder.name}/"


# --- commands --------------------------------------------------------------------------------------------------


def _options(overlay: Overlay, generation: Path, recipe: str) -> str:
    """Return the options that name a recipe, and the target of a build for another machine."""
    options = f" --recipe {shlex.quote(recipe)}"
    if generation.parent.parent.name.endswith(f".{overlay.target}"):
        options += f" --python-tag {overlay.target.python_tag} --platform {overlay.target.platform}"
    return options


def _commands(proof: Proof, options: str) -> tuple[tuple[str, str], ...]:
    host = " --host" if proof.runtime == "host" else ""
    return (
        ("Build the overlay from the same bases and patches", f"toolkit build{options}"),
        ("Prove it again, every check", f"toolkit verify{options}"),
        ("Run a program of your own on it", f"toolkit run{options}{host} -- python program.py"),
        ("Say what went into its key", f"toolkit key explain{options}"),
        ("Write this page again", f"toolkit report{options} -o report.html"),
    )
