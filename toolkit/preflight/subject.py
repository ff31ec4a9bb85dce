"""What a look at a training command starts from: gathered once, handed to every group of checks."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.envfile import PYTHONPATH, Activation, activate, activation_of
from toolkit.launch import Launch
from toolkit.model import Overlay

if TYPE_CHECKING:
    from toolkit.preflight.acceptance import Acceptance

BACKEND = "TORCHINDUCTOR_NPU_BACKEND"
EXTENSIONS = "TORCH_EXTENSIONS_DIR"

LARGEST = 1 << 20
"""How many bytes of a sourced file are looked at."""

Reader = Callable[[Mapping[str, str]], Launch]
"""Reads the command as it would be in an environment."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """A training command, and what it is held against.

    `environ` is what it would be started in, its own variables aside. `launch` is the command as read in that. Where
    `stands_alone` is true, the caller's variables or the command's have the overlay on the import path already: then
    they are taken as they are, and what they lack is a fault; otherwise the overlay's are put over the caller's, and
    `replaced` are those of the caller that are lost by that. `given` is the command as read without the overlay's.
    `misfit` says why the overlay does not fit the interpreter, and what to do. `started` are the words that start the
    file which the command was read from.
    """

    launch: Launch
    given: Launch
    environ: Mapping[str, str]
    stands_alone: bool
    replaced: tuple[str, ...]
    overlay: Overlay
    activation: Activation
    interpreter: Path
    acceptance: Acceptance
    folder: Path
    misfit: tuple[str, str] | None = None
    started: tuple[str, ...] = ()

    @property
    def argv(self) -> tuple[str, ...]:
        """The words that are started."""
        return self.started or self.launch.argv

    @property
    def own(self) -> Mapping[str, str]:
        """The variables that go in front of them; those in the text of a file are its own affair."""
        return {} if self.started else self.launch.own

    @property
    def site(self) -> str:
        """The overlay's site, links followed."""
        return os.path.realpath(self.activation.site)

    @property
    def backend(self) -> str:
        """The backend that the model must be compiled with."""
        return self.overlay.env.get(BACKEND) or self.acceptance.compile.backend

    def variable(self, name: str) -> str | None:
        """Return what training would find in a variable: "" where it is unset, None where nobody can know.

        Of a command that stands alone, that is what it has without the overlay's.
        """
        return self._told(self.given if self.stands_alone else self.launch, name)

    def effective(self, name: str) -> str | None:
        """Return what training would find in a variable with the overlay's filled in; None where nobody can know."""
        return self._told(self.launch, name)

    def _told(self, launch: Launch, name: str) -> str | None:
        """Return a variable of a launch; one that no sourced file mentions is not set by them."""
        value = launch.variable(name)
        if value is not None or name in launch.unknown or not launch.sourced:
            return value
        texts = [read_sourced(self.place(one)) for one in launch.sourced]
        return None if any(text is None or name.encode() in text for text in texts) else ""

    def place(self, path: str) -> Path:
        """Return a path as the command means it, from the folder where it starts."""
        return (self.launch.folder or self.folder) / path


def make_subject(
    read: Reader,
    *,
    environ: Mapping[str, str],
    folder: Path,
    overlay: Overlay,
    interpreter: Path,
    acceptance: Acceptance,
    misfit: tuple[str, str] | None = None,
    started: Sequence[str] = (),
) -> Subject:
    """Read the command with and without the overlay's variables, and say which of them count."""
    activation = activation_of(overlay)
    given = read(environ)
    stands_alone = is_listed(activation.site, given.variable(PYTHONPATH) or "", folder)
    if stands_alone:
        filled = {**activation.variables, **environ}
        replaced: tuple[str, ...] = ()
    else:
        filled = activate(environ, activation)
        replaced = _replaced(environ, activation)
    bin_folder = str(interpreter.absolute().parent)
    filled["PATH"] = f"{bin_folder}{os.pathsep}{filled.get('PATH', os.defpath)}"
    return Subject(
        launch=read(filled),
        given=given,
        environ=filled,
        stands_alone=stands_alone,
        replaced=replaced,
        overlay=overlay,
        activation=activation,
        interpreter=interpreter,
        acceptance=acceptance,
        folder=folder,
        misfit=misfit,
        started=tuple(started),
    )


def read_sourced(path: Path) -> bytes | None:
    """Return what a file that a script takes in says, None where it cannot be read whole."""
    try:
        with path.open("rb") as stream:
            text = stream.read(LARGEST + 1)
    except OSError:
        return None
    return text if len(text) <= LARGEST else None


def is_listed(site: str, python_path: str, folder: Path) -> bool:
    """Whether an overlay's site is one of PYTHONPATH's entries, under whatever name."""
    real = os.path.realpath(site)
    return any(os.path.realpath(folder / entry) == real for entry in python_path.split(":") if entry)


def _replaced(environ: Mapping[str, str], activation: Activation) -> tuple[str, ...]:
    """Name the caller's variables that the overlay's replace, but for those that another overlay had set."""
    other = environ.get("TOOLKIT_OVERLAY")
    return tuple(
        name
        for name, value in activation.variables.items()
        if name in environ and environ[name] != value and not (other and environ[name].startswith(other))
    )
