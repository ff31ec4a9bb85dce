"""Which of the bases that a line covers can be had on this machine, to look at its series on.

Releases come from the store or through pip; commits only from the store or from a clone on this machine that a mirror
names: looking at patches is no reason to fetch a repository.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

from toolkit.errors import FetchError, ToolkitError
from toolkit.git.fetching import is_folder
from toolkit.mirrors import addresses
from toolkit.model import Interpreter
from toolkit.series import Line
from toolkit.upkeep.bases import BaseTree, Commit, Ref, Word, obtain_tree, parse_against
from toolkit.work import Means, Watcher

SHORT = len("git:") + 12
"""Letters of a commit's name that are shown."""


def nearest_base(
    line: Line, paths: Collection[str], *, means: Means, watcher: Watcher, interpreter: Interpreter, scratch: Path
) -> tuple[BaseTree | None, tuple[str, ...]]:
    """Return the first covered base that can be had, its home first, and why those before it cannot."""
    component, refusals = line.name.partition("/")[0], []
    for number, (covered, word) in enumerate(_places(line, component, means)):
        # A commit may be asked for in the store only, whatever else is allowed.
        allowed = replace(means, offline=True) if isinstance(word, Commit) else means
        try:
            with watcher.download(line.name, covered) as progress:
                found = obtain_tree(
                    word, line, paths, component=component, means=allowed, interpreter=interpreter,
                    into=scratch / f"base-{number}", progress=progress,
                )  # fmt: skip
        except ToolkitError as fault:
            refusals.append(_refusal(covered, fault))
        else:
            return found, tuple(dict.fromkeys(refusals))
    return None, tuple(dict.fromkeys(refusals))


def _places(line: Line, component: str, means: Means) -> Iterator[tuple[str, Word]]:
    """Yield each covered base with a word for each place where it may be."""
    for covered in line.covers:
        word = parse_against(covered)
        if isinstance(word, Commit):
            for address in filter(is_folder, addresses(component, line.upstream, means.environ)):
                yield covered, Ref(url=address, ref=word.id)
        yield covered, word


def _refusal(covered: str, fault: ToolkitError) -> str:
    """Say why a base cannot be had; of a commit, that was not fetched, there is no more to say."""
    if covered.startswith("git:") and isinstance(fault, FetchError):
        return f"{covered[:SHORT]} is not on this machine"
    return f"{covered}: {fault.message}"
