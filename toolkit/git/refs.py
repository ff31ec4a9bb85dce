"""What the refs of a repository name: a branch, a tag or a pull request at an address, as full commit ids.

A folder's clone is read as a fetch reads one: its objects and its refs, never its configuration.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from toolkit.errors import CommandError, FetchError
from toolkit.files import temporary_directory
from toolkit.git.command import require_git
from toolkit.git.fetching import (
    LASTING,
    REMOTE,
    Limits,
    Refusal,
    folder_of,
    git_folder,
    is_folder,
    network_environment,
    reading,
    reason_of,
)
from toolkit.git.repository import git_in, make_repository
from toolkit.process import run

LIMITS = Limits(whole=300, silence=60)
"""A list of refs is short beside a commit's files."""

COMMIT = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64})\Z")
SHORT_ID = re.compile(r"[0-9a-f]{7,63}\Z")
LOOSE = re.compile(rb"(?:([0-9a-f]{40}|[0-9a-f]{64})|ref: (refs/[^\s]+))\n?\Z")
PACKED = re.compile(rb"^([0-9a-f]{40}|[0-9a-f]{64}) (refs/\S+)$", re.MULTILINE)
RULES = ("{}", "refs/{}", "refs/heads/{}", "refs/tags/{}")
"""Where a short name is looked for; what is at one of the first two is meant, and no other."""

NOTHING_NEW = "no commits selected for shallow requests"
"""What a server says where one ref has nothing that another lacks."""

PEELED = "^{}"
SHOWN = 5


def resolve_ref(address: str, ref: str, *, env: Mapping[str, str], limits: Limits = LIMITS) -> str:
    """Return the full id of the commit that a ref names at an address, or in a folder with a clone.

    `ref` is a branch, a tag, a whole name such as `refs/pull/7/head`, or a full commit id, which is returned as it is
    without a look. Raises FetchError where the repository cannot be read or has no such ref, or a branch and a tag of
    that name which differ.
    """
    return ref if COMMIT.match(ref) else find_ref(ref, list_refs(address, env=env, limits=limits), address)


def find_ref(ref: str, refs: Mapping[str, str], address: str) -> str:
    """Return what a branch, a tag or a whole name names among `refs`, which `list_refs` has read at an address."""
    return refs[find_name(ref, refs, address)]


def find_name(ref: str, refs: Mapping[str, str], address: str) -> str:
    """Return the whole name of a branch or a tag among `refs`, as `resolve_ref` has it."""
    found = [name for rule in RULES if (name := rule.format(ref)) in refs]
    if not found:
        raise FetchError(f"{shown_address(address)} has no ref {ref!r}", hint=_near(ref, refs))
    if found[0] in (ref, f"refs/{ref}") or len({refs[name] for name in found}) == 1:
        return found[0]
    raise FetchError(
        f"{ref!r} is a branch and a tag of {shown_address(address)}, and they differ",
        hint="name the one that is meant in full",
        details=[f"{name} {refs[name]}" for name in found],
    )


def list_refs(address: str, *, env: Mapping[str, str], limits: Limits = LIMITS) -> dict[str, str]:
    """Return the commit of every ref at an address, by its whole name; a tag's is the commit that it stands for."""
    with temporary_directory("toolkit-refs-") as scratch, repository_at(address, scratch) as place:
        folder = scratch / "asking"
        make_repository(folder, "")
        printed = _run_git(folder, place, env, limits, "ls-remote", REMOTE)
    if isinstance(printed, Refusal):
        raise _unreadable("the refs", address, printed)
    pairs = (line.split("\t", 1) for line in printed.splitlines() if "\t" in line)
    listed = {name: found for found, name in pairs}
    return {name: listed.get(name + PEELED, found) for name, found in listed.items() if not name.endswith(PEELED)}


def list_unmerged(
    address: str, head: str, target: str, *, env: Mapping[str, str], scratch: Path, limits: Limits = LIMITS
) -> list[str]:  # fmt: skip
    """Return the ids of the commits that one ref has and another lacks, oldest first; both are whole names.

    A merge among them is the first that is listed: what is behind it is cut off. Little but the commits themselves is
    fetched where the server can do with that. Raises FetchError where the repository cannot be read.
    """
    folder = scratch / "history"
    make_repository(folder, "")
    with repository_at(address, scratch) as place:
        words = ("--no-tags", "--no-auto-maintenance", "--filter=tree:0", f"--shallow-exclude={target}")
        refusal = _run_git(folder, place, env, limits, "fetch", *words, REMOTE, f"+{head}:refs/heads/request")
    if isinstance(refusal, Refusal):
        if NOTHING_NEW in refusal.why:
            return []
        raise _unreadable(f"the commits of {head}", address, refusal)
    printed = git_in(folder).output("rev-list", "--reverse", "--topo-order", "refs/heads/request")
    return printed.decode().split()


@contextlib.contextmanager
def repository_at(address: str, scratch: Path) -> Iterator[str]:
    """Yield what git is to read from: the address, or for a folder a repository of ours with its objects and refs."""
    if not is_folder(address):
        yield address
        return
    source = git_folder(folder_of(address))
    if source is None:
        raise FetchError(
            f"{shown_address(address)} has no git repository", hint="name a folder with a clone, or an address"
        )
    loose, links = _loose_refs(source)
    refs = {**_packed_refs(source), **loose}
    with reading(scratch, next(iter(refs.values()), ""), source / "objects") as place:
        listed = "".join(f"{commit} {name}\n" for name, commit in sorted(refs.items()) if name != "HEAD")
        git_in(Path(place)).output("config", "uploadpack.allowFilter", "true")
        Path(place, "packed-refs").write_text(listed, encoding="utf-8", errors="surrogateescape")
        if "HEAD" in refs:
            links["HEAD"] = refs["HEAD"]
        for name, target in links.items():
            path = Path(place, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{target}\n", encoding="utf-8", errors="surrogateescape")
        yield place


def shown_address(address: str) -> str:
    """Return an address as it may be shown and written down: without a user, a password or a query."""
    scheme, mark, rest = address.partition("://")
    if not mark or scheme == "file":
        return address
    rest = rest.partition("?")[0]
    host, slash, path = rest.partition("/")
    whole = rest if scheme == "https" else host
    return f"{scheme}://{whole.rpartition('@')[2]}{'' if scheme == 'https' else slash + path}"


def objects_folder(place: Path) -> Path | None:
    """Return where the objects of a clone in a folder are; None for a folder without one."""
    source = git_folder(place)
    return source / "objects" if source else None


def _run_git(
    folder: Path, place: str, env: Mapping[str, str], limits: Limits, command: str, *words: str
) -> str | Refusal:  # fmt: skip
    argv = [require_git(), command, "--quiet", *words]
    try:
        done = run(
            argv, cwd=folder, check=False, timeout=limits.whole, env=network_environment(folder, env, place, limits)
        )
    except CommandError as fault:
        if isinstance(fault.__cause__, OSError):  # It could not be started.
            raise
        return Refusal(why=f"it did not end within {limits.whole:g} s", passing=True)
    if done.returncode == 0:
        return done.stdout
    return Refusal(why=reason_of(done.stderr), passing=not LASTING.search(done.stderr))


def _unreadable(what: str, address: str, refusal: Refusal) -> FetchError:
    shown = shown_address(address)
    return FetchError(
        f"{what} of {shown} cannot be read: {refusal.why.replace(address, shown)}",
        hint=f"{'try again' if refusal.passing else 'mend the address'}, or name a folder with a clone",
    )


def _near(ref: str, refs: Mapping[str, str]) -> str:
    """Say which refs are called like one that is not there."""
    import difflib

    if SHORT_ID.match(ref):
        return "a commit is named by its full id of 40 digits"
    if not refs:
        return "it has no refs at all"
    shown = {re.sub(r"^refs/(heads/|tags/)?", "", name): name for name in refs}
    near = difflib.get_close_matches(ref, shown, n=SHOWN, cutoff=0.5)
    if near:
        return f"near it are {', '.join(near)}"
    heads = [name.removeprefix("refs/heads/") for name in sorted(refs) if name.startswith("refs/heads/")]
    more = f" and {len(heads) - SHOWN} more" if len(heads) > SHOWN else ""
    return f"nothing there is called like that; its branches are {', '.join(heads[:SHOWN]) or 'none'}{more}"


# --- a clone's own refs -----------------------------------------------------------------------------------------


def _packed_refs(source: Path) -> dict[str, str]:
    with contextlib.suppress(OSError):
        return {_name(name): commit.decode() for commit, name in PACKED.findall((source / "packed-refs").read_bytes())}
    return {}


def _loose_refs(source: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return the commits and the symbolic refs that stand in files of their own, by name."""
    commits, links = {}, {}
    for path in (source / "HEAD", *_files_below(source / "refs")):
        with contextlib.suppress(OSError):
            if found := LOOSE.match(path.read_bytes()[:1024]):
                name = _name(os.fsencode(path.relative_to(source)))
                if found[1]:
                    commits[name] = found[1].decode()
                else:
                    links[name] = f"ref: {_name(found[2])}"
    return commits, links


def _files_below(root: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(root):
        yield from (path for name in names if not (path := Path(folder, name)).is_symlink())


def _name(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
