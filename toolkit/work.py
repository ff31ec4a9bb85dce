"""What the stages work with and whom they tell: the two values that a run's every stage is given."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from toolkit import prove, sysroot
from toolkit.model import CheckResult, Progress, Proof, Runtime, SandboxMode
from toolkit.project import Project
from toolkit.store import Store


class Watcher(Protocol):
    """Who is told how the work goes; `prefix` is the recipe, or recipe/component."""

    def stage(self, prefix: str, text: str) -> None:
        """A stage begins."""

    def download(self, prefix: str, name: str) -> AbstractContextManager[Progress]:
        """Bytes are about to arrive, perhaps."""

    def steps(self, prefix: str, name: str) -> AbstractContextManager[Progress]:
        """Work that counts its steps begins, perhaps."""

    def check(self, prefix: str, result: CheckResult) -> None:
        """A check came to its end."""

    def proof(self, proof: Proof) -> None:
        """All checks came to their end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Means:
    """What a build works with. `environ` is the caller's environment, of which children see only what they must.

    `time_limit` is in seconds for each checking process; `jobs` are checking processes side by side. `build_jobs` are
    the compilers side by side in a source build, None to choose by the machine; `sandbox` is how it is shut off.
    """

    project: Project
    store: Store
    environ: Mapping[str, str]
    offline: bool = False
    time_limit: float = prove.TIME_LIMIT
    jobs: int = prove.JOBS
    build_jobs: int | None = None
    sandbox: SandboxMode = "auto"

    @property
    def runtime(self) -> Runtime:
        """Whether this is a machine with CANN, or one that gets the host sysroot."""
        return "device" if sysroot.is_device(self.environ) else "host"
