"""The story: recipe -> locked bases -> patched trees -> wheels -> overlay -> proof, the stages in order.

This module joins the stages of a recipe; each takes the value that the one before it returned. How one component comes
from its base to its wheel is told by `lanes`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import gettempdir
from textwrap import shorten
from typing import Literal

from toolkit import account, answers, bundle, current, envfile, extensions, lanes, overlay, prove, sources, target
from toolkit.current import PROOF_FILE, RecipeFolder
from toolkit.errors import OverlayError, ProofError, SourceError, UsageError
from toolkit.files import remove_tree, sha256_file, staged_directory, temporary_directory
from toolkit.grounds import obtain_base_site, runtime_variables
from toolkit.model import Overlay, PartResult, Proof
from toolkit.plan import Plan, PlannedComponent, proof_key
from toolkit.store import hold_lock
from toolkit.trace import write_trace
from toolkit.wheels.stored import StoredWheel, read_wheel_record
from toolkit.work import Means, Watcher

log = logging.getLogger(__name__)

LOGS = "logs"
DETAIL_LENGTH = 500
"""Letters of a check's detail in an error: enough for all that a build without DVM lacks, and how training shows it."""

Stage = Literal["fetch", "patch", "wheel", "overlay", "verify"]
ABSENT = "it is not installed here, and optional: left out"

PART_STAGES: tuple[Stage, ...] = ("fetch", "patch", "wheel")
"""The stages that each component goes through by itself."""


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
        wheels = obtain_wheels(plan, means, watcher)
        built, is_new = obtain_overlay(plan, wheels, watcher)
        proof, is_proven_now = obtain_proof(plan, built, means, watcher)
        if is_proven_now:
            watcher.proof(proof)
        page = account.leave_page(built.root, plan.recipe, means.project, is_proven_now=is_proven_now)
        if page and not proof.ok:
            watcher.stage(plan.recipe.name, f"report: {page}")
        require_proof(proof, built.root / PROOF_FILE)
        publish(plan, built, facts)
    did = [name for name, done in (("overlay", is_new), ("proof", is_proven_now)) if done]
    return BuildResult(wheels=tuple(wheels), overlay=built, proof=proof, folder=plan.folder, did=tuple(did))


def build_parts(plan: Plan, means: Means, watcher: Watcher, stage: Stage, names: Sequence[str]) -> list[PartResult]:
    """Take the components, or those of them that are named, as far as a stage; no overlay is made."""
    known = [part.component.name for part in plan.components]
    for name in plan.absent:
        watcher.stage(f"{plan.recipe.name}/{name}", ABSENT)
    if unknown := [name for name in names if name not in (*known, *plan.absent)]:
        raise UsageError(
            f"recipe {plan.recipe.name!r} has no component {unknown[0]!r}", hint=f"it has {', '.join(known)}"
        )
    plan.folder.path.mkdir(parents=True, exist_ok=True)
    with means.store.in_use():
        chosen = [part for part in plan.components if not names or part.component.name in names]
        return [_build_part(part, plan, means, watcher, stage) for part in chosen]


def build_overlay(plan: Plan, means: Means, watcher: Watcher) -> Overlay:
    """Build a recipe's overlay without a proof; it does not become the current one."""
    plan.folder.path.mkdir(parents=True, exist_ok=True)
    with hold_lock(plan.folder.lock, f"the overlay {plan.folder.path.name}"), means.store.in_use():
        wheels = obtain_wheels(plan, means, watcher)
        return obtain_overlay(plan, wheels, watcher)[0]


def _build_part(part: PlannedComponent, plan: Plan, means: Means, watcher: Watcher, stage: Stage) -> PartResult:
    name = part.component.name
    if stage == "wheel":
        stored = lanes.obtain_wheel(part, plan, means, watcher)
        digest = stored.wheel.built.tree if stored.wheel.built else ""
        identity = part.component.base.identity
        return PartResult(component=name, base=identity, applied=stored.applied, digest=digest, wheel=stored.wheel)
    if stage == "fetch":
        return PartResult(component=name, base=lanes.fetch_all(part, plan, means, watcher).file)
    with temporary_directory("toolkit-") as scratch:
        base = lanes.fetch_base(part, plan, means, watcher)
        patched = lanes.patch_base(part, base, plan, means, watcher, scratch)
    for line in lanes.remarks_on_patches(patched.applied):
        watcher.stage(lanes.prefix_of(part, plan), line)
    fitting = sum(one.status != "upstream" for one in patched.applied)
    said = [f"{fitting} of {len(patched.applied)} patches go in, none with fuzz"] if patched.applied else []
    said += [f"the patched tree is {patched.digest}"] if patched.digest else []
    if said:
        watcher.stage(lanes.prefix_of(part, plan), "; ".join(said))
    return PartResult(component=name, base=base.file, applied=patched.applied, digest=patched.digest)


def verify(plan: Plan, means: Means, watcher: Watcher, *, checks: tuple[str, ...] = ()) -> tuple[Overlay, Proof]:
    """Prove the current overlay again, every byte of it read; a whole proof replaces the one on disk."""
    current.require_generation(plan.folder)
    require_provable(plan, means)
    with hold_lock(plan.folder.lock, f"the overlay {plan.folder.path.name}"), means.store.in_use():
        standing = current.open_current(plan.folder, full=True)
        if standing.key != plan.key.digest:
            log.warning(
                "the overlay is of key %.16s, its inputs now give %.16s; take them in with `toolkit build --recipe %s`",
                standing.key, plan.key.digest, plan.recipe.name,
            )  # fmt: skip
        proof = make_proof(plan, standing, means, watcher, checks=checks)
        if not checks:
            prove.write_proof(proof, standing.root / PROOF_FILE)
            account.leave_page(standing.root, plan.recipe, means.project, is_proven_now=True)
    watcher.proof(proof)
    for line in extensions.describe_findings(standing.root):
        log.warning("%s", line)
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


def obtain_wheels(plan: Plan, means: Means, watcher: Watcher) -> list[StoredWheel]:
    """Return the patched wheel of every component that there is; say which optional ones there are not."""
    for name in plan.absent:
        watcher.stage(f"{plan.recipe.name}/{name}", ABSENT)
    if not plan.components:
        raise SourceError(
            f"recipe {plan.recipe.name!r} has nothing to build: none of its components is installed here",
            hint="source CANN's set_env.sh, or name the interpreter that has them with --python",
        )
    return [lanes.obtain_wheel(part, plan, means, watcher) for part in plan.components]


# --- overlay ---------------------------------------------------------------------------------------------------


def obtain_overlay(plan: Plan, wheels: Sequence[StoredWheel], watcher: Watcher) -> tuple[Overlay, bool]:
    """Return the generation with the plan's key and whether it was made now.

    One that no longer holds is made anew, and one that tells of other builds of the same wheels.
    """
    generation = plan.folder.generation(plan.key.digest)
    if generation.exists() and not (_still_holds(generation) and _tells_of(generation, wheels)):
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
                diagnostic=plan.recipe.diagnostic,
                absent=plan.absent,
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


def _tells_of(generation: Path, wheels: Sequence[StoredWheel]) -> bool:
    told = {package.component: package.built for package in overlay.read_overlay(generation).packages}
    return told == {stored.wheel.component: stored.wheel.built for stored in wheels}


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
            upstream=plan.upstream_witnesses(built),
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
    entries = [entry for part in plan.components for entry in _bundle_entries(part, means)]
    lock = means.project.lock_path(plan.recipe.files[0])
    manifest = plan.folder.generation(plan.key.digest) / "manifest.json"
    extra = {f"lock/{lock.name}": lock} | ({"manifest.json": manifest} if manifest.is_file() else {})
    with means.store.in_use():
        return bundle.export_bundle(
            means.store, file, recipe=plan.recipe.name, key=plan.key.digest, entries=entries, extra=extra
        )


def _bundle_entries(part: PlannedComponent, means: Means) -> list[tuple[str, str]]:
    """List the store entries that a component's next build takes; of a source tree the wheels, not the sources."""
    if sources.is_machines(part.source):
        return [("wheel", part.key.digest)]
    if part.spec is None:
        return [("wheel", part.key.digest), ("base", part.digest)]
    wheels = [("wheel", part.key.digest), ("wheel", part.base_key.digest)]
    found = [entry for kind, key in wheels if (entry := means.store.find(kind, key))]
    built = [read_wheel_record(entry).wheel.built for entry in found]
    native = dict.fromkeys(facts.native for facts in built if facts)
    return [*dict.fromkeys(wheels), *((lanes.NATIVE, key) for key in native)]
