"""The story: recipe -> locked bases -> patched trees -> wheels -> overlay -> proof, the stages in order.

This module alone joins the stages; each takes the value that the one before it returned.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import gettempdir
from textwrap import shorten

from toolkit import answers, bundle, current, envfile, overlay, prove, repack, series, target
from toolkit.current import PROOF_FILE, RecipeFolder
from toolkit.errors import OverlayError, ProofError, UsageError
from toolkit.files import remove_tree, sha256_file, staged_directory, temporary_directory
from toolkit.grounds import fetch_base, obtain_base_site, runtime_variables
from toolkit.model import Overlay, Proof
from toolkit.plan import Plan, PlannedComponent, proof_key
from toolkit.store import hold_lock
from toolkit.trace import write_trace
from toolkit.wheels.stored import StoredWheel, read_wheel_record, write_wheel_record
from toolkit.work import Means, Watcher

log = logging.getLogger(__name__)

LOGS = "logs"
DETAIL_LENGTH = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildResult:
    """The overlay with its proof; `did` names the stages that had work to do, none where all stood already."""

    wheels: tuple[StoredWheel, ...]
    overlay: Overlay
    proof: Proof
    folder: RecipeFolder
    did: tuple[str, ...]


def build(plan: Plan, means: Means, watcher: Watcher, *, facts: Mapping[str, str]) -> BuildResult:
    """Build, prove and publish a recipe's overlay; `current` moves only to a generation whose proof holds.

    `facts` are what no input file holds and a later run must find unchanged to have nothing to do.
    """
    require_provable(plan, means)
    plan.folder.path.mkdir(parents=True, exist_ok=True)
    with hold_lock(plan.folder.lock, f"the overlay {plan.folder.path.name}"), means.store.in_use():
        wheels = [obtain_wheel(part, plan, means, watcher) for part in plan.components]
        built, is_new = obtain_overlay(plan, wheels, watcher)
        proof, is_proven_now = obtain_proof(plan, built, means, watcher)
        if is_proven_now:
            watcher.proof(proof)
        require_proof(proof, built.root / PROOF_FILE)
        publish(plan, built, facts)
    did = [name for name, done in (("overlay", is_new), ("proof", is_proven_now)) if done]
    return BuildResult(wheels=tuple(wheels), overlay=built, proof=proof, folder=plan.folder, did=tuple(did))


def verify(plan: Plan, means: Means, watcher: Watcher, *, checks: tuple[str, ...] = ()) -> tuple[Overlay, Proof]:
    """Prove the current overlay again, every byte of it read; a whole proof replaces the one on disk."""
    current.require_generation(plan.folder)
    require_provable(plan, means)
    with hold_lock(plan.folder.lock, f"the overlay {plan.folder.path.name}"), means.store.in_use():
        standing = current.open_current(plan.folder, full=True)
        if standing.key != plan.key.digest:
            log.warning("the overlay is of key %.16s, its inputs now give %.16s; take them in with `toolkit build`",
                        standing.key, plan.key.digest)  # fmt: skip
        proof = make_proof(plan, standing, means, watcher, checks=checks)
        if not checks:
            prove.write_proof(proof, standing.root / PROOF_FILE)
    watcher.proof(proof)
    return standing, proof


def require_provable(plan: Plan, means: Means) -> None:
    """Raise, before any work, what would make the proof impossible: a torch that is missing or another, a bad place.

    A place with a colon is a UsageError: what a proof imports from it could not stand in PYTHONPATH.
    """
    if plan.can_load:
        target.require_torch(plan.interpreter, plan.recipe.contract)
    places = [
        ("the overlays' folder", plan.folder.path, "--overlays DIR"),
        ("the store", means.store.root, "--store DIR or TOOLKIT_STORE"),
        ("the temporary folder", Path(gettempdir()), "TMPDIR"),
    ]
    for what, place, option in places:
        if ":" in str(place):
            raise UsageError(
                f"{what} {str(place)!r} has a colon, which PYTHONPATH cannot hold",
                hint=f"choose another place with {option}",
            )


# --- wheels ----------------------------------------------------------------------------------------------------


def obtain_wheel(part: PlannedComponent, plan: Plan, means: Means, watcher: Watcher) -> StoredWheel:
    """Return the component's patched wheel from the store, made there if need be."""

    def make(folder: Path) -> None:
        made = make_wheel(part, plan, means, watcher, folder)
        write_wheel_record(made, folder)
        for line in remarks_on(made):
            watcher.stage(f"{plan.recipe.name}/{part.component.name}", line)

    return read_wheel_record(means.store.obtain("wheel", part.key.digest, make))


def remarks_on(stored: StoredWheel) -> list[str]:
    """Say what a person should know of how a wheel was made: patches that moved or were skipped, a wrong RECORD."""
    moved = [f"{one.name} went in at another line: {'; '.join(one.offsets)}" for one in stored.applied if one.offsets]
    skipped = [f"{one.name} is skipped, the base has it already" for one in stored.applied if one.status == "upstream"]
    return [*moved, *skipped, *stored.findings]


def make_wheel(part: PlannedComponent, plan: Plan, means: Means, watcher: Watcher, folder: Path) -> StoredWheel:
    """Fetch the base, apply the series to it, and write the patched wheel into `folder`."""
    prefix = f"{plan.recipe.name}/{part.component.name}"
    base = fetch_base(part, plan, means, watcher)
    watcher.stage(prefix, f"apply {len(part.series.patches)} patches to {base.file}")
    with temporary_directory("toolkit-") as scratch:
        tree = part.source.lay_out(base, part.series.paths, scratch / "base")
        patched = series.apply_series(
            part.series,
            tree,
            into=scratch / "patched",
            accept_upstream=part.component.accept_upstream,
            scratch=scratch,
        )
        watcher.stage(prefix, "write the patched wheel")
        return repack.repack_wheel(patched, key=part.key, import_name=part.component.import_name, into=folder)


# --- overlay ---------------------------------------------------------------------------------------------------


def obtain_overlay(plan: Plan, wheels: Sequence[StoredWheel], watcher: Watcher) -> tuple[Overlay, bool]:
    """Return the generation with the plan's key and whether it was made now; one that no longer holds is made anew."""
    generation = plan.folder.generation(plan.key.digest)
    if generation.exists() and not _still_holds(generation):
        remove_tree(generation)
    if is_new := not generation.exists():
        watcher.stage(plan.recipe.name, "lay out the overlay")
        generation.parent.mkdir(parents=True, exist_ok=True)
        with staged_directory(generation) as aside:
            overlay.build_overlay(
                aside,
                recipe=plan.recipe.name,
                key=plan.key,
                wheels=[stored.wheel for stored in wheels],
                target=plan.target,
                contract=plan.recipe.contract,
                env=plan.recipe.env,
            )
    built = overlay.read_overlay(generation)
    current.write_env_files(generation, envfile.render_all(built))
    return built, is_new


def _still_holds(generation: Path) -> bool:
    try:
        overlay.verify_site(generation)
    except OverlayError as fault:
        log.warning("%s; building it again", fault.message)
        return False
    return True


def publish(plan: Plan, built: Overlay, facts: Mapping[str, str]) -> None:
    """Make a proven generation the current one; note what it was made from, and what to say while that stands."""
    plan.folder.make_current(built.root, envfile.render_all(built))
    result = {
        "generation": built.root.name,
        current.BUILD_ANSWER: answers.describe_overlay(built, plan.folder.path, did=(), proof=None).text,
        current.ENV_ANSWER: envfile.render("sh", envfile.activation_of(built)),
    }
    write_trace(plan.trace._replace(facts=facts, result=result), plan.folder.trace)


# --- proof -----------------------------------------------------------------------------------------------------


def obtain_proof(plan: Plan, built: Overlay, means: Means, watcher: Watcher) -> tuple[Proof, bool]:
    """Return the generation's proof and whether it was made now; only one that holds is used again."""
    standing = _standing_proof(plan, built, means)
    if standing is not None:
        return standing, False
    proof = make_proof(plan, built, means, watcher)
    prove.write_proof(proof, built.root / PROOF_FILE)
    return proof, True


def make_proof(plan: Plan, built: Overlay, means: Means, watcher: Watcher, *, checks: tuple[str, ...] = ()) -> Proof:
    """Run the checks in fresh interpreters, each witness on the unpatched base as well; `checks` narrows them."""
    witnesses = tuple(name for name in plan.witnesses if not checks or name in checks)
    base_site = obtain_base_site(plan, means, watcher) if plan.can_load and (witnesses or checks) else built.site
    variables = runtime_variables(plan, means, watcher) if plan.can_load else {}
    watcher.stage(plan.recipe.name, "prove it in fresh interpreters")
    with temporary_directory("toolkit-proof-") as scratch:
        proof = prove.prove(
            overlay=built,
            base_site=base_site,
            verify_folder=means.project.verify,
            interpreter=plan.interpreter,
            runtime=means.runtime,
            runtime_env=variables,
            wanted=checks or plan.recipe.checks,
            witnesses=witnesses,
            upstream=plan.upstream_witnesses,
            can_load=plan.can_load,
            scratch=scratch,
            logs=built.root / LOGS,
            environ=means.environ,
            timeout=means.time_limit,
            jobs=means.jobs,
            on_result=lambda result: watcher.check(plan.recipe.name, result),
        )
    wanted = proof_key(plan, means.project, means.runtime, plan.recipe.checks).digest
    facts = {"proof_key": wanted, "manifest": sha256_file(built.manifest)}
    return replace(proof, environment={**proof.environment, **facts})


def require_proof(proof: Proof, path: Path) -> None:
    """Raise ProofError naming the required checks that did not come out as wanted."""
    if proof.ok:
        return
    wrong = [result for result in proof.results if result.required and not result.ok]
    raise ProofError(
        f"{len(wrong)} required check(s) of {proof.recipe!r} did not come out as required",
        details=[
            f"{one.name} on the {one.side}: {one.status}, wanted {one.wanted}: {shorten(one.detail, DETAIL_LENGTH)}"
            for one in wrong
        ],
        hint=f"the evidence is in {path}",
    )


def _standing_proof(plan: Plan, built: Overlay, means: Means) -> Proof | None:
    try:
        proof = prove.read_proof(built.root / PROOF_FILE)
    except ProofError:
        return None
    wanted = proof_key(plan, means.project, means.runtime, plan.recipe.checks).digest
    is_of_these_files = proof.environment.get("manifest") == sha256_file(built.manifest)
    return proof if proof.ok and is_of_these_files and proof.environment.get("proof_key") == wanted else None


# --- a bundle for CI caches ------------------------------------------------------------------------------------


def export_cache(plan: Plan, means: Means, file: Path) -> bundle.Index:
    """Write what a build of the recipe takes from the store to one file: bases and patched wheels."""
    entries = [("wheel", part.key.digest) for part in plan.components]
    entries += [("base", part.source.artifact_digest(part.locked, plan.target)) for part in plan.components]
    lock = means.project.lock_path(plan.recipe.files[0])
    manifest = plan.folder.generation(plan.key.digest) / "manifest.json"
    extra = {f"lock/{lock.name}": lock} | ({"manifest.json": manifest} if manifest.is_file() else {})
    with means.store.in_use():
        return bundle.export_bundle(
            means.store, file, recipe=plan.recipe.name, key=plan.key.digest, entries=entries, extra=extra
        )
