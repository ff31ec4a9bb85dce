"""What the stages stand on: bases in the store, the unpatched base laid out, and the runtime that lets them load."""

from __future__ import annotations

from pathlib import Path

from toolkit import lanes, overlay, sysroot
from toolkit.errors import OverlayError, StoreError
from toolkit.model import make_key
from toolkit.plan import Plan
from toolkit.process import compose_env
from toolkit.work import Means, Watcher

SYSROOT = "sysroot"
DEVICE_VARIABLES = ("ASCEND_", "ATB_", "HCCL_", "LD_LIBRARY_PATH", "TOOLCHAIN_HOME")
"""What CANN's own set_env.sh sets and a process on a device needs, by name or prefix."""


def obtain_base_site(plan: Plan, means: Means, watcher: Watcher) -> Path:
    """Return the unpatched bases, laid out in the store as an overlay of their own: the negative control's ground."""
    digests = [(part.component.name, part.base_key.digest) for part in plan.components]
    key = make_key([*digests, ("logic/overlay", overlay.LOGIC_VERSION)])

    def make(folder: Path) -> None:
        bases = [lanes.obtain_base_wheel(part, plan, means, watcher) for part in plan.components]
        watcher.stage(plan.recipe.name, "lay out the unpatched base")
        overlay.build_overlay(
            folder,
            recipe=f"{plan.recipe.name} (unpatched)",
            key=key,
            wheels=bases,
            target=plan.target,
            contract=plan.recipe.contract,
            env={},
        )

    entry = means.store.obtain("base-site", key.digest, make)
    try:
        overlay.verify_site(entry)
    except OverlayError as fault:
        raise StoreError(f"store entry {entry} is damaged: {fault.message}", hint="remove that folder") from fault
    return entry / "site"


def runtime_variables(plan: Plan, means: Means, watcher: Watcher) -> dict[str, str]:
    """Return the variables that let the packages load here: the device's own, or the host sysroot's."""
    if means.runtime == "device":
        return {name: value for name, value in means.environ.items() if name.startswith(DEVICE_VARIABLES)}
    if not sysroot.is_needed(obtain_base_site(plan, means, watcher)):
        return {}
    return sysroot.sysroot_variables(obtain_sysroot(plan, means, watcher))


def obtain_sysroot(plan: Plan, means: Means, watcher: Watcher) -> Path:
    """Return the host sysroot of the recipe's bases, generated in the store if need be."""
    site = obtain_base_site(plan, means, watcher)
    environ = compose_env(means.environ)
    identity = sysroot.compiler_identity("cc", env=environ, cwd=site)

    def make(folder: Path) -> None:
        watcher.stage(plan.recipe.name, "generate the host sysroot")
        sysroot.build_sysroot(site=site, into=folder / SYSROOT, env=environ)

    key = make_key([("site", site.parent.name), ("logic/sysroot", sysroot.SYSROOT_VERSION), ("compiler", identity)])
    return means.store.obtain(SYSROOT, key.digest, make) / SYSROOT
