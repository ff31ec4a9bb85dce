"""What a line of generated code may say, in the places of its words instead of their names."""

from __future__ import annotations

from typing import NamedTuple


class Source(NamedTuple):
    """Where a tensor comes from: the place of the word that names it, -1 for what is new or no tensor.

    `view` is "same" for the very tensor, "part" for a view whose reach is unknown, "placed" and "pooled" for those that
    say it, "item" and "item from the end" for one of several, whose number is the next word. `others` are the places of
    all names that something may be made of where that cannot be followed.
    """

    word: int
    view: str = "same"
    others: tuple[int, ...] = ()


class Bind(NamedTuple):
    """A name that is bound to a tensor."""

    word: int
    source: Source


class Launch(NamedTuple):
    """A kernel that is run on tensors, some of them its outputs; `is_plain` where each stands in its place."""

    word: int
    arguments: tuple[Source, ...]
    is_plain: bool = True


class Call(NamedTuple):
    """A call by a dotted name: the place of its first word, how many words it has, and the name of what is called.

    The name is empty where it has numbers, which only the real line can tell.
    """

    word: int
    words: int
    name: str


class Compiled(NamedTuple):
    """A kernel that `async_compile` makes: by which method, and the place of its name (-1 where it has none)."""

    method: str
    word: int


class Facts(NamedTuple):
    """All that a line says; `aliases` are those of `binds` that give a tensor another name."""

    binds: tuple[Bind, ...]
    aliases: tuple[Bind, ...]
    launches: tuple[Launch, ...]
    calls: tuple[Call, ...]
    compiled: tuple[Compiled, ...]


NOTHING = Facts((), (), (), (), ())


class Line(NamedTuple):
    """A line without its names: `shape` is what it stands for in the outline, empty for a blank one or a comment."""

    shape: str
    facts: Facts


NO_STATEMENT = Line("?", NOTHING)
"""What stands for a line that is no statement by itself."""
