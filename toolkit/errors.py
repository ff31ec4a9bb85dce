"""Every expected failure, one class and one exit code each.

Rooms raise these; only `toolkit.cli.main` catches them and exits. `docs/exit-codes.md` is generated from here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar


class ToolkitError(Exception):
    """Base of all expected failures: what failed, what was expected, and in `hint` what to do next."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str = "", details: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = tuple(details)


class UsageError(ToolkitError):
    """The command line asks for something that does not exist or does not fit together."""

    exit_code = 2


class RecipeError(ToolkitError):
    """A recipe cannot be read: every fault is in `details`, each with its path and line."""

    exit_code = 3


class LockError(ToolkitError):
    """A lock is missing, unreadable, does not belong to its recipe, or cannot be resolved."""

    exit_code = 4


class FetchError(ToolkitError):
    """A pinned artifact cannot be had: not in the store when offline, not at the registry, or cut short."""

    exit_code = 5


WRONG_BYTES_HINT = (
    "do not use the file; if the pin is what is wrong, run `toolkit lock --upgrade` and review the change"
)


class HashMismatchError(FetchError):
    """Bytes arrived whose sha256 is not the pinned one; nothing was kept."""

    exit_code = 6

    def __init__(self, *, what: str, expected: str, actual: str, origin: str, hint: str = WRONG_BYTES_HINT) -> None:
        super().__init__(f"{what} from {origin} has sha256 {actual}, expected {expected}", hint=hint)
        self.expected = expected
        self.actual = actual


class SourceError(ToolkitError):
    """A base is not what it says: a broken archive, an unsafe member, a RECORD that does not hold."""

    exit_code = 7


class SeriesError(ToolkitError):
    """A patch file or its place in the series is wrong: header, trailers, numbers, unsafe paths."""

    exit_code = 8


class ApplyError(ToolkitError):
    """A patch does not apply strictly to its base; the tree is as it was."""

    exit_code = 9


class RepackError(ToolkitError):
    """A patched tree cannot become a wheel, a native change on a release wheel among the reasons."""

    exit_code = 10


class StoreError(ToolkitError):
    """The store cannot be used: not writable, a damaged entry, a lock that is never given back."""

    exit_code = 11


class StorageError(ToolkitError):
    """The file system refused: full, read-only or not permitted; what was being made is gone again."""

    exit_code = 12


class OverlayError(ToolkitError):
    """An overlay is missing, or its files no longer are what its manifest says."""

    exit_code = 13


class ContractMismatchError(ToolkitError):
    """An overlay does not fit the target: Python tag, platform, torch, or on a device CANN and SoC."""

    exit_code = 14


class SysrootError(ToolkitError):
    """The host sysroot cannot be generated: no compiler, or a wheel that it does not understand."""

    exit_code = 15


class ProofError(ToolkitError):
    """A required check did not come out as required; the proof file holds the evidence."""

    exit_code = 16


class TargetError(ToolkitError):
    """The target interpreter cannot be used: missing, not Python, or without torch."""

    exit_code = 17


class ArchiveError(ToolkitError):
    """An exported cache archive cannot be imported; only what is whole and right was kept of it."""

    exit_code = 18


class CommandError(ToolkitError):
    """A child process failed; `details` holds its last lines, the hint its log's path."""

    exit_code = 19

    def __init__(
        self, message: str, *, argv: Sequence[str], returncode: int | None, hint: str = "", details: Sequence[str] = ()
    ) -> None:
        super().__init__(message, hint=hint, details=details)
        self.argv = tuple(argv)
        self.returncode = returncode


class BuildError(ToolkitError):
    """A source tree does not become a wheel: the first real cause is in the message, the build's folder is kept."""

    exit_code = 20


class SandboxError(ToolkitError):
    """A build was to be shut off from the network, and this machine has nothing that can do it."""

    exit_code = 21


class WorkTreeError(ToolkitError):
    """A patch's work tree waits for a person: a conflict, changes that are in no commit, or work not finished."""

    exit_code = 22


class FindingsError(ToolkitError):
    """A look at patches, a machine, a command, code or a log found what a person has to mend; the report says what."""

    exit_code = 23


class LogError(ToolkitError):
    """Nothing that was named is a log that can be read: empty, binary, not to be opened."""

    exit_code = 24


INTERNAL_ERROR = 70
"""Exit code of an unexpected exception: a bug of ours, with its traceback in a log file (sysexits.h: EX_SOFTWARE)."""

INTERRUPTED = 130
"""Exit code after an interrupt from the keyboard (128 + SIGINT)."""


def all_errors() -> list[type[ToolkitError]]:
    """List the error classes by exit code."""
    found: list[type[ToolkitError]] = []
    pending: list[type[ToolkitError]] = [ToolkitError]
    while pending:
        parent = pending.pop()
        children = parent.__subclasses__()
        found.extend(children)
        pending.extend(children)
    return sorted(found, key=lambda error: error.exit_code)
