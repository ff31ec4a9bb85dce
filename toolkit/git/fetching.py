"""Bringing one commit from an address into a bare repository of ours.

What can hang, or has to end when the user says so, runs through `toolkit.process`: GitPython leaves git's children
behind after an interrupt. No address stands on a command line, where a log or a list of processes would show it.
"""

from __future__ import annotations

import contextlib
import os
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from toolkit.errors import CommandError
from toolkit.files import remove_tree
from toolkit.git.command import base_environment, refuse_full_disk, require_git
from toolkit.git.repository import make_repository, mark, missing_part
from toolkit.process import run

FROM_CALLER = ("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY",
               "GIT_SSL_CAINFO", "SSH_AUTH_SOCK")  # fmt: skip
"""The caller's variables that git needs to reach the user's network; no others get to it."""

SSH = "ssh -o BatchMode=yes -o ConnectTimeout=15 -o ServerAliveInterval=15 -o ServerAliveCountMax=4"
TRANSPORTS = "file:https:ssh"
REMOTE = "mirror"
ALL_OF_IT = ("+refs/heads/*:refs/upstream/heads/*", "+refs/tags/*:refs/upstream/tags/*")

HARMLESS = (
    *("badDate", "badDateOverflow", "badEmail", "badName", "badTimezone", "missingEmail", "missingNameBeforeEmail"),
    *("missingSpaceBeforeDate", "missingSpaceBeforeEmail", "zeroPaddedDate", "zeroPaddedFilemode", "nullSha1"),
    *("emptyName", "fullPathname", "hasDot", "hasDotdot", "hasDotgit", "badFilemode"),
    *("gitmodulesName", "gitmodulesParse", "gitmodulesPath", "gitmodulesSymlink", "gitmodulesUpdate", "gitmodulesUrl"),
)
"""Faults of git's own check that stop no fetch: old histories have the first of them, and the others are looked for
where the tree and its `.gitmodules` are read, with an error that names the path."""

BY_ID = re.compile(r"unadvertised object|does not support shallow|\bnot valid\b")
"""How servers, or git for them, refuse to send a commit by its id, known or not; `not our ref` is an unknown one."""

LASTING = re.compile(
    r"not our ref|returned error: 4\d\d|authentication failed|could not read (username|password)|permission denied"
    r"|host key verification failed|not allowed|certificate|does not appear to be a git|repository .*not found"
    r"|no such file|did not send all necessary objects",
    re.IGNORECASE,
)
"""What another try from the same address will not mend."""

NOISE = (
    "askpass response",
    "Please make sure you have",
    "and the repository exists",
    "Could not read from remote",
    "hint:",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How long a fetch may take, and how long a server may be silent or slow, in seconds."""

    whole: float = 7200
    silence: int = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """Why a commit did not come from an address; `passing` if another try may go better, and soon."""

    why: str
    passing: bool = False


def fetch_commit(
    folder: Path, commit: str, address: str, *, env: Mapping[str, str], limits: Limits
) -> Refusal | None:  # fmt: skip
    """Bring one commit with its whole tree into a repository of ours, and mark it; return why it did not come.

    The caller holds the repository's lock. Nothing but the commit is asked for, and the history only of a server
    that refuses to send a commit by its id. Raises StorageError where the disk is full.
    """
    clear_leftovers(folder)
    with _reachable(folder, commit, address) as place:
        if place is None:
            return Refusal(why="there is no git repository there")
        refusal = _fetch(folder, [commit], place, "--depth=1", env=env, limits=limits)
        if refusal is not None and BY_ID.search(refusal.why):
            # What came by its id has no history here, and a server sends none behind what it takes for known.
            whole = ["--unshallow"] if (folder / "shallow").exists() else []
            refusal = _fetch(folder, ALL_OF_IT, place, "--prune", *whole, env=env, limits=limits)
    if refusal is not None:
        return refusal
    if why := missing_part(folder, commit):
        return Refusal(why=f"what it sent is not the commit: {why}")
    mark(folder, commit)
    return None


def copy_commit(source: Path, commit: str, into: Path) -> None:
    """Bring a commit that one repository of ours has into another; CommandError where it does not come."""
    with reading(into, commit, source / "objects") as place:
        refusal = _fetch(into, [commit], place, "--depth=1", env=os.environ, limits=Limits())
    if refusal is not None:
        raise CommandError(
            f"{source} does not give out commit {commit}: {refusal.why}", argv=("git", "fetch"), returncode=None,
            hint="remove that folder; it is fetched again",
        )  # fmt: skip


def clear_leftovers(folder: Path) -> None:
    """Remove what a killed fetch leaves behind: locks, which stop every later one, and half a pack."""
    for path in (*folder.glob("*.lock"), *folder.glob("refs/**/*.lock"), *folder.glob("objects/**/tmp_*")):
        remove_tree(path)
    remove_tree(folder / "reading")


def network_environment(folder: Path, caller: Mapping[str, str], address: str, limits: Limits) -> dict[str, str]:
    """Compose the environment of a git that fetches into a repository of ours."""
    passed = {name: caller[name] for name in FROM_CALLER if caller.get(name)}
    if caller.get("SSL_CERT_FILE"):
        passed = {"GIT_SSL_CAINFO": caller["SSL_CERT_FILE"], **passed}
    address, authorization = _split_credentials(address)
    settings = [
        (f"remote.{REMOTE}.url", address),
        *([(f"http.{address}.extraHeader", authorization)] if authorization else []),
        ("core.hooksPath", os.devnull),
        ("credential.helper", ""),
        ("fetch.fsckObjects", "true"),
        *((f"fetch.fsck.{name}", "warn") for name in HARMLESS),
        ("fetch.unpackLimit", "1"),
        ("gc.auto", "0"),
        ("http.followRedirects", "initial"),
        ("http.lowSpeedLimit", "1"),
        ("http.lowSpeedTime", str(limits.silence)),
    ]
    return {
        **base_environment(caller, folder / "home"),
        **passed,
        "GIT_DIR": str(folder),
        "GIT_ALLOW_PROTOCOL": TRANSPORTS,
        "GIT_ASKPASS": "/bin/false",
        "SSH_ASKPASS": "/bin/false",
        "GIT_SSH_COMMAND": SSH,
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_CONFIG_COUNT": str(len(settings)),
        **{f"GIT_CONFIG_KEY_{number}": name for number, (name, _) in enumerate(settings)},
        **{f"GIT_CONFIG_VALUE_{number}": value for number, (_, value) in enumerate(settings)},
    }


def _split_credentials(address: str) -> tuple[str, str]:
    """Take the user and password out of an https address, and return the header that says the same.

    The program that git starts for https has the address among its words, which every user of the machine may read.
    """
    found = re.fullmatch(r"(https://)(\S*)@([^@]+)", address)
    if found is None:
        return address, ""
    user, _, password = found[2].partition(":")
    pair = f"{unquote(user)}:{unquote(password)}"
    return f"{found[1]}{found[3]}", f"Authorization: Basic {b64encode(pair.encode()).decode()}"


def _fetch(
    folder: Path, wanted: Sequence[str], address: str, *options: str, env: Mapping[str, str], limits: Limits
) -> Refusal | None:
    argv = [require_git(), "fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head",
            "--no-auto-maintenance", *options, REMOTE, *wanted]  # fmt: skip
    environment = network_environment(folder, env, address, limits)
    try:
        done = run(argv, cwd=folder, env=environment, timeout=limits.whole, check=False)
    except CommandError as fault:
        if isinstance(fault.__cause__, OSError):  # It could not be started, which no other address mends.
            raise
        return Refusal(why=f"it did not end within {limits.whole:g} s")
    if done.returncode == 0:
        return None
    refuse_full_disk(done.stderr, folder)
    return Refusal(why=reason_of(done.stderr), passing=not LASTING.search(done.stderr))


def reason_of(stderr: str) -> str:
    """Return what git says at its end, in its own words."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    telling = [line for line in lines if not any(noise in line for noise in NOISE)] or lines or ["git did not say why"]
    faults = [line for line in telling if line.startswith(("fatal: ", "error: "))][-2:] or telling[-1:]
    return "; ".join(line.removeprefix("fatal: ").removeprefix("error: ") for line in faults)


# --- repositories on this machine ------------------------------------------------------------------------------


@contextlib.contextmanager
def _reachable(folder: Path, commit: str, address: str) -> Iterator[str | None]:
    """Yield what git is to fetch from: the address, or for a folder something of ours that reads its objects."""
    if not is_folder(address):
        yield address
        return
    source = git_folder(folder_of(address))
    if source is None:
        yield None
        return
    with reading(folder, commit, source / "objects") as place_of_ours:
        yield place_of_ours


@contextlib.contextmanager
def reading(folder: Path, commit: str, objects: Path) -> Iterator[str]:
    """Yield an empty repository of ours that borrows another's objects.

    Git would refuse to serve a repository that is not the caller's own, and would obey its configuration otherwise;
    of this one nothing but objects is read.
    """
    place = folder / "reading"
    remove_tree(place)
    make_repository(place, commit)
    (place / "objects" / "info").mkdir(exist_ok=True)
    (place / "objects" / "info" / "alternates").write_bytes(os.fsencode(objects.absolute()) + b"\n")
    try:
        yield str(place)
    finally:
        remove_tree(place)


def is_folder(address: str) -> bool:
    """Whether an address is a place on this machine."""
    return address.startswith(("/", "file://"))


def folder_of(address: str) -> Path:
    """Return the folder that an address on this machine names."""
    return Path(unquote(address.removeprefix("file://")) if address.startswith("file://") else address)


def git_folder(place: Path) -> Path | None:
    """Find a repository's own folder: the place itself, `.git` in it, or where a worktree's `.git` file leads."""
    dot_git = place / ".git"
    if dot_git.is_file():
        lead = dot_git.read_text(encoding="utf-8", errors="surrogateescape").strip().removeprefix("gitdir: ")
        common = place / lead / "commondir"
        lead_back = common.read_text(encoding="utf-8", errors="surrogateescape").strip() if common.is_file() else ""
        dot_git = place / lead / lead_back
    return next((found for found in (dot_git, place) if (found / "objects").is_dir()), None)
