"""A training command and an overlay to hold it against, made on disk in small."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from toolkit.launch import Launch, read_command, read_command_text
from toolkit.model import Contract, Observation, Overlay, OverlayPackage, Target
from toolkit.preflight import Subject, make_subject
from toolkit.preflight.acceptance import read_acceptance


@dataclass(frozen=True, kw_only=True)
class Room:
    """A folder to start in and an overlay; `environ` is the caller's."""

    folder: Path
    overlay: Path
    environ: Mapping[str, str] = field(default_factory=lambda: {"PATH": "/usr/bin:/bin"})

    @property
    def site(self) -> Path:
        return self.overlay / "site"

    def subject(
        self,
        line: str,
        *,
        environ: Mapping[str, str] | None = None,
        text: bool = False,
        changes: Path | None = None,
        env: Mapping[str, str] | None = None,
        misfit: tuple[str, str] | None = None,
        interpreter: Path = Path(sys.executable),
    ) -> Subject:
        """Read a line as words, or with `text` as a run script's, `{site}` and `{overlay}` filled in."""
        filled = line.replace("{site}", str(self.site)).replace("{overlay}", str(self.overlay))

        def read(given: Mapping[str, str]) -> Launch:
            if text:
                return read_command_text(filled, environ=given, folder=self.folder)
            return read_command(shlex.split(filled), environ=given, folder=self.folder)

        return make_subject(
            read, environ={**self.environ, **(environ or {})}, folder=self.folder, overlay=self.described(env),
            interpreter=interpreter, acceptance=read_acceptance(changes), misfit=misfit,
        )  # fmt: skip

    def described(self, env: Mapping[str, str] | None = None) -> Overlay:
        """Return the overlay's value."""
        package = OverlayPackage(
            component="sample_npu", import_name="sample_npu", distribution="sample-npu", version="1.0+p1.k1",
            base_version="1.0", wheel="w", wheel_sha256="0", patches=(),
        )  # fmt: skip
        return Overlay(
            recipe="sample", key="0" * 64, root=self.overlay,
            target=Target(python_tag="cp311", platform="manylinux_2_28_x86_64"),
            contract=Contract(python_tags=("cp311",), platforms=("manylinux_2_28_x86_64",), torch="2.13.0"),
            packages=(package,), env={"TORCHINDUCTOR_NPU_BACKEND": "dvm"} if env is None else env,
        )  # fmt: skip


def make_room(root: Path) -> Room:
    """Make the folders."""
    room = Room(folder=root / "run", overlay=root / "overlays/sample/generations/1")
    for folder in (room.folder, room.site / "sample_npu", room.overlay / "torch_extensions"):
        folder.mkdir(parents=True)
    (room.overlay / "manifest.json").touch()
    (room.overlay / "env.sh").write_text("export PYTHONPATH=x\n")
    return room


def lines(observations: list[Observation], name: str) -> list[tuple[str, str]]:
    """Return grade and text of the lines of a name."""
    return [(one.grade, one.seen) for one in observations if one.name == f"preflight.{name}"]
