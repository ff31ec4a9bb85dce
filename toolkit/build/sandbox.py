"""Shut a build off from the network, and where bubblewrap is installed from the rest of the machine's files too."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from toolkit.errors import CommandError, SandboxError
from toolkit.model import SandboxKind, SandboxMode
from toolkit.process import describe_code, last_lines, run

log = logging.getLogger(__name__)

# Processes end with bubblewrap itself, so that nothing outlives an interrupted build. Without capabilities root cannot
# mount its way out. The host's name would get into what is built.
BUBBLEWRAP = ("--die-with-parent", "--unshare-user-try", "--unshare-pid", "--unshare-net", "--unshare-ipc",
              "--unshare-uts", "--hostname", "build", "--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev",
              "--proc", "/proc")  # fmt: skip

WAYS: tuple[tuple[SandboxKind, str, tuple[str, ...]], ...] = (
    ("bubblewrap", "bwrap", BUBBLEWRAP),
    ("network namespace", "unshare",
     ("--map-current-user", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "--")),
    ("network namespace", "unshare", ("--map-root-user", "--net", "--")),
)  # fmt: skip
"""Kinds of sandbox, the best first: the program, and what each call of it begins with."""

PROBE_LIMIT = 10.0

HIDDEN = (Path("/home"), Path("/root"), Path("/run"))
"""Where secrets lie, and the sockets of daemons that would do what a build asks of them."""

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/etc", "/opt", "/var", "/dev", "/proc", "/sys", "/tmp")
"""What no home may hide."""

TEMPORARY = Path("/tmp")


@dataclass(frozen=True, kw_only=True, slots=True)
class Sandbox:
    """A way that works on this machine: what a command begins with, before what it may see and write."""

    kind: SandboxKind
    prefix: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """What a command in a sandbox has of the machine's files, all of which it may read unless they lie in a home.

    `writable` are the only folders that it may write, `readable` stay visible wherever they lie, `temporary` takes the
    place of /tmp, and `home` is the caller's.
    """

    writable: Sequence[Path]
    readable: Sequence[Path]
    temporary: Path
    home: Path | None


def choose_sandbox(mode: SandboxMode, *, path: str) -> Sandbox:
    """Return the best sandbox that works here; `path` is where its programs are looked up.

    Raises SandboxError, saying what was tried, where one is required and none works.
    """
    if mode == "off":
        return Sandbox(kind="none")
    reasons: list[str] = []
    for kind, program, options in WAYS:
        prefix, reason = _try_way(program, options, path)
        if prefix:
            return Sandbox(kind=kind, prefix=prefix)
        reasons.append(f"{kind}: {reason}")
    reasons = list(dict.fromkeys(reasons))
    if mode == "require":
        raise SandboxError(
            f"a build cannot be shut off from the network on this machine: {'; '.join(reasons)}",
            hint="install bubblewrap (Debian: `apt install bubblewrap`), or build with --sandbox auto",
        )
    log.warning("the build is not shut off from the network: %s", "; ".join(reasons))
    return Sandbox(kind="none")


def seen_temporary(sandbox: Sandbox, temporary: Path) -> Path:
    """Return the name that a view's temporary folder has inside: a short one, as sockets need, where that can be."""
    return TEMPORARY if sandbox.kind == "bubblewrap" else temporary


def enter_sandbox(sandbox: Sandbox, view: View) -> tuple[str, ...]:
    """Return what stands before a command so that it runs in the sandbox."""
    if sandbox.kind == "bubblewrap":
        return (*sandbox.prefix, *_mounts(view), "--")
    return sandbox.prefix


def hidden_folder(sandbox: Sandbox, view: View, path: Path) -> Path | None:
    """Return the folder of the machine that a view hides and that an unseen path lies in; None for a seen one."""
    if sandbox.kind != "bubblewrap" or any(path.is_relative_to(seen) for seen in (*view.writable, *view.readable)):
        return None
    return next((folder for folder in (*_hidden(view.home), TEMPORARY) if path.is_relative_to(folder)), None)


@cache
def _try_way(program: str, options: tuple[str, ...], path: str) -> tuple[tuple[str, ...], str]:
    """Run a sandbox once; return how a call of it begins where that worked, else the reason."""
    found = shutil.which(program, path=path)
    if found is None:
        return (), f"`{program}` is not on PATH"
    try:
        done = run([found, *options, "true"], cwd=Path("/"), env={"PATH": os.defpath}, check=False, timeout=PROBE_LIMIT)
    except CommandError as fault:
        return (), fault.message
    if done.returncode == 0:
        return (found, *options), ""
    said = " ".join(last_lines(done.stdout, done.stderr)[-1:])
    return (), said or f"{program} ended with {describe_code(done.returncode)}"


def _mounts(view: View) -> list[str]:
    """List bubblewrap's options for a view: hide, then show again what is needed, parents first."""
    hidden = _hidden(view.home)
    covered = [TEMPORARY.resolve(), *hidden]
    words: list[str] = []
    for folder in hidden:
        words += ["--tmpfs", str(folder)]
    words += ["--bind", str(view.temporary), str(covered[0])]
    for path in _shown(view.readable, covered):
        words += ["--ro-bind", str(path), str(path)]
    for path in view.writable:
        words += ["--bind", str(path), str(path)]
    for folder in hidden:
        words += ["--remount-ro", str(folder)]
    return words


def _hidden(home: Path | None) -> list[Path]:
    """List the folders that are hidden, none inside another or around the system's."""
    wanted = [path.resolve() for path in (*HIDDEN, *([home] if home else [])) if path.is_dir()]
    kept = [path for path in wanted if not any(Path(part).resolve().is_relative_to(path) for part in SYSTEM)]
    kept = [path for path in dict.fromkeys(kept) if not path.is_relative_to(TEMPORARY.resolve())]
    return [path for path in kept if not any(path != other and path.is_relative_to(other) for other in kept)]


def _shown(paths: Iterable[Path], covered: Sequence[Path]) -> list[Path]:
    """List those of `paths` that lie in a covered folder, by every name that they have; never the folder itself.

    None lies inside another: what is mounted read-only has no room for a mount.
    """
    names = {name for path in paths if path.exists() for name in (path, path.resolve())}
    kept: list[Path] = []
    for name in sorted(names, key=lambda name: (len(name.parts), name)):
        inside = any(name != folder and name.is_relative_to(folder) for folder in covered)
        if inside and not any(name.is_relative_to(above) for above in kept):
            kept.append(name)
    return kept
