"""Where a patch comes from that is imported: a commit, a pull request or a file, read as changes with their message."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import FetchError, UsageError
from toolkit.git import git_in
from toolkit.git.refs import find_name, find_ref, list_refs, list_unmerged, shown_address
from toolkit.mirrors import address_fault, addresses, repository_name
from toolkit.series import Line
from toolkit.sources.git.caches import obtain_commit
from toolkit.upkeep.sent import Incoming, read_mails
from toolkit.work import Means

COMMIT = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64})\Z")
SHORT_ID = re.compile(r"[0-9a-f]{7,39}\Z")
REQUEST = re.compile(r"(?P<repository>.+?)/(?:-/)?(?P<kind>pulls?|merge_requests)/(?P<number>\d+)(?:/.*)?\Z")
EXPECTED = "expected a file, a full commit id, URL@COMMIT or URL@REF, or the address of a pull request"

REQUEST_REFS = {
    "pull": ("refs/pull/{}/head", "refs/merge-requests/{}/head", "refs/merge_requests/{}/head"),
    "merge_requests": ("refs/merge-requests/{}/head", "refs/merge_requests/{}/head", "refs/pull/{}/head"),
}
"""Where hosts keep the last commit of a request, by what its address says; not every host keeps it where it says."""

READ_DIFF = (
    "diff-tree", "-r", "-p", "--root", "--no-commit-id", "--binary", "--full-index", "--find-renames", "-U3",
    "--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short", "--src-prefix=a/", "--dst-prefix=b/",
    "--diff-algorithm=myers",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class FromCommit:
    """One commit: of the repository at `url`, or without it of the line's upstream."""

    url: str
    ref: str


@dataclass(frozen=True, kw_only=True, slots=True)
class FromRequest:
    """A pull or merge request; `refs` are where its last commit may be found."""

    repository: str
    address: str
    refs: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class FromFile:
    """A mail, several, or a diff."""

    path: Path


Origin = FromCommit | FromRequest | FromFile


def parse_origin(word: str) -> Origin:
    """Read what is to be imported; UsageError for what names nothing."""
    if Path(word).is_file():
        return FromFile(path=Path(word))
    if request := REQUEST.match(word):
        refs = REQUEST_REFS["pull" if request["kind"].startswith("pull") else "merge_requests"]
        return FromRequest(
            repository=_address(request["repository"]),
            address=shown_address(word),
            refs=tuple(ref.format(request["number"]) for ref in refs),
        )
    if COMMIT.match(word):
        return FromCommit(url="", ref=word)
    url, mark, ref = word.removeprefix("git:").rpartition("@")
    host = url.partition("://")[2]  # Without a path after it, the last @ stands behind a password, not before a ref.
    if mark and ref and "/" in (host or url) and ":" not in ref and not ref.startswith("-"):
        return FromCommit(url=_address(url), ref=ref)
    hint = "a commit is named by its full id of 40 digits" if SHORT_ID.match(word) else EXPECTED
    raise UsageError(f"{shown_address(word)!r} names nothing that can be imported", hint=hint)


def read_origin(
    origin: Origin, line: Line, *, component: str, target: str, means: Means, scratch: Path
) -> list[Incoming]:
    """Return the changes that an origin has, in the order in which they were made.

    Of a request they are the commits that are not in its `target`, a branch. Raises FetchError for what cannot be
    had, UsageError for a merge, and for a commit that changes nothing.
    """
    if isinstance(origin, FromFile):
        return read_mails(origin.path, scratch)
    if isinstance(origin, FromRequest):
        return _read_request(origin, component, target, means, scratch)
    urls = (origin.url,) if origin.url else _upstream(line, origin.ref)
    commit = origin.ref if COMMIT.match(origin.ref) else _resolve(origin.ref, urls, component, means)
    return [_read_commit(commit, urls, component, means)]


def _address(url: str) -> str:
    """Return a repository's address as git takes it: a folder by its whole path."""
    address = str(Path(url).absolute()) if Path(url).is_dir() else url
    if why := address_fault(address):
        raise UsageError(f"{shown_address(url)!r} is no address of a repository: {why}", hint=EXPECTED)
    return address


def _upstream(line: Line, commit: str) -> Sequence[str]:
    if not line.upstream:
        raise UsageError(
            f"nothing says where commit {commit} is",
            hint="name its repository, URL@COMMIT, or write `upstream` into the series' series.toml",
        )
    return line.upstream


# --- commits ---------------------------------------------------------------------------------------------------


def _resolve(ref: str, urls: Sequence[str], component: str, means: Means) -> str:
    address, refs = _list_refs(urls, component, means)
    return find_ref(ref, refs, address)


def _list_refs(urls: Sequence[str], component: str, means: Means) -> tuple[str, dict[str, str]]:
    """Read the refs of the first address that answers, the user's mirrors first."""
    places = addresses(component, urls, means.environ)
    if means.offline:
        places = tuple(place for place in places if place.startswith(("/", "file://")))
    reasons = []
    for address in places:
        try:
            return address, list_refs(address, env=means.environ)
        except FetchError as fault:
            reasons.append(fault.message)
    raise FetchError(
        f"the refs of {shown_address(urls[0])} cannot be had",
        hint=f"name another place with `--mirror {component}=URL`; a folder with a clone will do, offline too",
        details=reasons,
    )


def _read_commit(commit: str, urls: Sequence[str], component: str, means: Means) -> Incoming:
    repository = _obtain(commit, urls, component, means)
    parents = _parents(repository, commit)
    if len(parents) > 1:
        raise UsageError(
            f"commit {commit[:12]} is a merge of {len(parents)} lines of commits, and no one change",
            hint="import the commits that it brought in, each by its id, or the pull request that they came in",
            details=[f"parent {parent}" for parent in parents],
        )
    for parent in parents:
        _obtain(parent, urls, component, means)
    git = git_in(repository)
    diff = git.output(*READ_DIFF, *parents, commit)
    if not diff:
        raise UsageError(f"commit {commit[:12]} changes no file", hint="there is nothing to import in it")
    words = ("show", "--no-patch", "--no-show-signature", "--encoding=UTF-8", "--date=raw")
    raw = git.output(*words, "--format=tformat:%an <%ae>%n%ad%n%B", commit)
    author, date, message = raw.decode("utf-8", "replace").split("\n", 2)
    return Incoming(
        author=author, date=date, message=message.strip("\n") + "\n", diff=diff, address=_name_of(urls[0]),
        commit=commit, what=f"commit {commit[:12]}",
        parent="".join(parents), repository=repository,
    )  # fmt: skip


def _obtain(commit: str, urls: Sequence[str], component: str, means: Means) -> Path:
    return obtain_commit(
        commit, urls, upstream=urls[0], name=component, what=component, store=means.store, offline=means.offline,
        env=means.environ,
    )  # fmt: skip


def _parents(repository: Path, commit: str) -> list[str]:
    """Return a commit's parents as it names them itself: what was fetched has no history."""
    head = git_in(repository).output("cat-file", "commit", commit).partition(b"\n\n")[0]
    return [line[7:].decode() for line in head.split(b"\n") if line.startswith(b"parent ")]


def _name_of(address: str) -> str:
    """Return how a repository is named in a patch: no folder of this machine means anything to others."""
    return repository_name(address) if address.startswith(("/", "file://")) else shown_address(address)


# --- requests --------------------------------------------------------------------------------------------------


def _read_request(
    request: FromRequest, component: str, target: str, means: Means, scratch: Path
) -> list[Incoming]:  # fmt: skip
    urls = (request.repository,)
    address, refs = _list_refs(urls, component, means)
    head = next((ref for ref in request.refs if ref in refs), None)
    if head is None:
        raise FetchError(
            f"{shown_address(address)} has no request {request.address}: no ref {', '.join(request.refs)}",
            hint="see that the number is right; a host may drop the commits of a closed request",
        )
    branch = find_name(target, refs, address)
    commits = list_unmerged(address, head, branch, env=means.environ, scratch=scratch)
    if not commits:
        raise UsageError(
            f"all commits of {request.address} are in {target!r} already",
            hint=f"import them by their ids: its last one is {refs[head]}; or name the branch it is for with --target",
        )
    return [_read_commit(commit, urls, component, means) for commit in commits]
