"""The submodules of a patched tree: found in `.gitmodules` and the tree, fetched each into a repository of its own."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import SourceError
from toolkit.files import temporary_directory
from toolkit.git import SYMLINK, Listing, git_in, gitlinks, path_fault, read_blobs, read_settings, read_tree
from toolkit.mirrors import address_fault, addresses, repository_name, without_credentials
from toolkit.model import FetchedBase, PatchedTree, Progress, SourceTree, Submodule
from toolkit.sources.git.caches import PATIENCE, Patience, obtain_commit
from toolkit.sources.git.trees import write_members
from toolkit.store import Store

log = logging.getLogger(__name__)

GITMODULES = ".gitmodules"
UPDATES = ("checkout", "merge", "rebase", "none")


@dataclass(frozen=True, kw_only=True, slots=True)
class Declared:
    """One section of a `.gitmodules` file."""

    name: str
    path: str
    url: str
    is_wanted: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Parent:
    """A repository that has submodules: where it lies in the tree, its own addresses, and those with mirrors."""

    folder: str
    urls: tuple[str, ...]
    places: tuple[str, ...]
    links: Mapping[str, str]
    declared: bytes | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Surroundings:
    """What every fetch of a run shares."""

    what: str
    store: Store
    offline: bool
    env: Mapping[str, str]
    progress: Progress | None
    patience: Patience


def fetch_submodules(
    base: FetchedBase, patched: PatchedTree, *, store: Store, offline: bool, env: Mapping[str, str],
    progress: Progress | None = None, patience: Patience = PATIENCE,
) -> tuple[Submodule, ...]:  # fmt: skip
    """Bring the submodules of a patched tree into the store, nested ones too, parents first.

    None where the recipe wants none; those with `update = none` are left out, as git does. Raises SourceError, naming
    the submodule, for a `.gitmodules` that does not fit the tree or holds what git must not be given; FetchError for
    one that cannot be had.
    """
    if not base.submodules:
        return ()
    entries = read_tree(base.path, base.digest, what=base.file).entries
    top = Parent(
        folder="",
        urls=base.addresses,
        places=addresses(base.component, base.addresses, env),
        links=_patched_links(entries, patched, base.subfolder),
        declared=_patched_declaration(base, entries, patched),
    )
    around = Surroundings(
        what=base.component, store=store, offline=offline, env=env, progress=progress, patience=patience
    )  # fmt: skip
    return tuple(_fetch_below(top, around))


def lay_out_submodules(
    base: FetchedBase, submodules: Sequence[Submodule], paths: Collection[str], into: Path
) -> SourceTree:
    """Write those of `paths` that lie in a submodule below `into`; `members` are all the submodules' files."""
    members: frozenset[str] = frozenset()
    links: dict[str, str] = {}
    into.mkdir(parents=True, exist_ok=True)
    for module in submodules:
        entries = read_tree(module.repository, module.commit, what=f"submodule {module.path!r} of {base.file}").entries
        more, inner = write_members(
            module.repository, entries, prefix=f"{module.path}/", subfolder=base.subfolder, paths=paths, into=into
        )
        members |= more
        links |= inner
    return SourceTree(base=base, root=into, members=members, gitlinks=links)


def _fetch_below(parent: Parent, around: Surroundings) -> Iterator[Submodule]:
    for module in _match(parent, around.what):
        where = f"{parent.folder}{module.path}"
        commit = parent.links[module.path]
        urls = _own_addresses(module, parent.urls, around.what, parent.folder)
        near = _near_addresses(module, parent.places) or urls
        name = repository_name(urls[0])
        repository = obtain_commit(
            commit, near, upstream=urls[0], name=name, what=f"{around.what}: submodule {where!r}",
            store=around.store, offline=around.offline, env=around.env, progress=around.progress,
            patience=around.patience,
        )  # fmt: skip
        yield Submodule(path=where, commit=commit, repository=repository)
        entries = read_tree(repository, commit, what=f"submodule {where!r} of {around.what}").entries
        yield from _fetch_below(
            Parent(
                folder=f"{where}/",
                urls=urls,
                places=addresses(name, near, around.env),
                links=gitlinks(entries),
                declared=_declaration(repository, entries, f"submodule {where!r} of {around.what}"),
            ),
            around,
        )


# --- what a tree says of its submodules ------------------------------------------------------------------------


def _patched_links(entries: Listing, patched: PatchedTree, subfolder: str) -> dict[str, str]:
    moved = {f"{subfolder}/{path}" if subfolder else path: commit for path, commit in patched.gitlinks.items()}
    links: dict[str, str | None] = {**gitlinks(entries), **moved}
    return {path: commit for path, commit in sorted(links.items()) if commit is not None}


def _patched_declaration(base: FetchedBase, entries: Listing, patched: PatchedTree) -> bytes | None:
    for file in patched.changed:
        if not base.subfolder and file.path == GITMODULES:
            return (patched.root / GITMODULES).read_bytes() if file.sha256 is not None else None
    return _declaration(base.path, entries, base.file)


def _declaration(repository: Path, entries: Listing, what: str) -> bytes | None:
    entry = entries.get(GITMODULES)
    if entry is None:
        return None
    if entry.mode == SYMLINK:
        raise SourceError(f"{what}: its {GITMODULES} is a symlink")
    return read_blobs(git_in(repository), [entry.id])[entry.id]


def _match(parent: Parent, what: str) -> list[Declared]:
    """Pair the tree's submodules with their sections; SourceError for one that has no other half."""
    folder = f"{parent.folder}{GITMODULES}"
    declared = {module.path: module for module in _read_declared(parent.declared, f"{what}: {folder}")}
    for path, module in declared.items():
        if module.is_wanted and path not in parent.links:
            raise SourceError(
                f"{what}: {folder} has submodule {module.name!r} at {path!r}, where the tree has none",
                hint=f"patch {GITMODULES}, or say `submodules = false` in the recipe if the build needs none",
            )
    for path in parent.links:
        if path not in declared:
            raise SourceError(
                f"{what}: the tree has a submodule at {parent.folder + path!r}, but {folder} does not say from where",
                hint=f"patch {GITMODULES}, or say `submodules = false` in the recipe if the build needs none",
            )
    return [declared[path] for path in sorted(parent.links) if declared[path].is_wanted]


def _read_declared(text: bytes | None, what: str) -> list[Declared]:
    if text is None:
        return []
    with temporary_directory("toolkit-gitmodules-") as scratch:
        (scratch / "gitmodules").write_bytes(text)
        settings = read_settings(scratch / "gitmodules", what=what)
    sections: dict[str, dict[str, str]] = {}
    for key, value in settings:
        section, _, rest = key.partition(".")
        name, _, field = rest.rpartition(".")
        if section == "submodule" and name:
            sections.setdefault(name, {})[field] = value
    return [_checked(name, fields, what) for name, fields in sections.items()]


def _checked(name: str, fields: Mapping[str, str], what: str) -> Declared:
    path, url, update = fields.get("path", ""), fields.get("url", ""), fields.get("update", "checkout")
    if why := _declaration_fault(path, url, update):
        raise SourceError(
            f"{what}: submodule {name!r} {without_credentials(why)}",
            hint=f"patch {GITMODULES}, or say `submodules = false` in the recipe if the build needs none",
        )
    return Declared(name=name, path=path, url=url, is_wanted=update != "none")


def _declaration_fault(path: str, url: str, update: str) -> str:
    if path.startswith("-"):
        return f"has the path {path!r}: it looks like an option"
    if why := path_fault(path):
        return f"has the path {path!r}: {why}"
    if update not in UPDATES:
        return f"has `update = {update}`, which is none of {', '.join(UPDATES)}"
    if not _is_relative(url) and (why := address_fault(url)):
        return f"has the url {url!r}: {why}"
    return ""


# --- addresses -------------------------------------------------------------------------------------------------


def _is_relative(url: str) -> bool:
    return url.startswith(("./", "../"))


def _own_addresses(module: Declared, parents: Sequence[str], what: str, folder: str) -> tuple[str, ...]:
    """Return a submodule's addresses: its url, which may be relative to its parent's addresses."""
    if not _is_relative(module.url):
        return (module.url,)
    found = []
    for parent in parents:
        address = resolve_address(parent, module.url)
        if address is None or address_fault(address):
            raise SourceError(
                f"{what}: {folder}{GITMODULES}: submodule {module.name!r} has the url {module.url!r}, which leads out "
                f"of {without_credentials(parent)}"
            )
        found.append(address)
    return tuple(found)


def _near_addresses(module: Declared, places: Sequence[str]) -> tuple[str, ...]:
    """Return where a submodule with a relative url lies beside its parent's mirrors, as far as it can."""
    if not _is_relative(module.url):
        return ()
    found = (resolve_address(place, module.url) for place in places)
    return tuple(address for address in found if address is not None and not address_fault(address))


def resolve_address(parent: str, url: str) -> str | None:
    """Resolve a relative url as git does: `../` takes off the parent's last part, be it after a slash or a colon.

    Unlike git, never more than that of its host or file system: then None.
    """
    base, separator = parent.rstrip("/"), "/"
    host = parent.find("://") + 3 if "://" in parent else 0
    root = parent.find("/", host) if "://" in parent or parent.startswith("/") else parent.find(":")
    while url.startswith(("./", "../")):
        step, _, url = url.partition("/")
        if step == "..":
            cut = max(base.rfind("/"), base.rfind(":"))
            if cut < root or cut < 0:
                return None
            base, separator = base[:cut], base[cut]
    return f"{base}{separator}{url}".rstrip("/")
