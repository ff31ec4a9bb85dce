"""Digests over named inputs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """A digest over named inputs, with the inputs kept so that it can be explained and compared."""

    digest: str
    inputs: tuple[tuple[str, str], ...]

    @property
    def short(self) -> str:
        """The eight digits that stand in a version."""
        return self.digest[:8]


def make_key(inputs: Iterable[tuple[str, str]]) -> Key:
    """Digest named inputs, sorted by name; names and values are framed by length so that no two lists collide.

    Raises ValueError for a name that stands twice: `key_difference` could not tell the two apart.
    """
    ordered = tuple(sorted(inputs))
    if len({name for name, _ in ordered}) < len(ordered):
        raise ValueError("a name stands twice among a key's inputs")
    return Key(digest=framed_digest(part for pair in ordered for part in pair), inputs=ordered)


def framed_digest(parts: Iterable[str | bytes]) -> str:
    """Return the sha256 of the parts, each preceded by its length in bytes."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode("utf-8") if isinstance(part, str) else part
        digest.update(b"%d:" % len(raw))
        digest.update(raw)
    return digest.hexdigest()


def key_difference(old: Key, new: Key) -> list[tuple[str, str | None, str | None]]:
    """List the inputs that differ as (name, old value, new value); None where one side lacks it."""
    before, after = dict(old.inputs), dict(new.inputs)
    names: Sequence[str] = sorted(before.keys() | after.keys())
    return [(n, before.get(n), after.get(n)) for n in names if before.get(n) != after.get(n)]
