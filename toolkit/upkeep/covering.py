"""Which bases a line is for: whether a series stands on one, and the line's own file with others written into it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolkit.errors import ApplyError, SeriesError
from toolkit.files import temporary_directory
from toolkit.model import Series
from toolkit.schema import TomlError, parse_toml
from toolkit.series import LINE_FILE, apply_series
from toolkit.upkeep.bases import FoundBase, lay_out_base

COVERS = re.compile(r"^covers[ \t]*=[ \t]*\[[^\]]*\]", re.MULTILINE)
WIDTH = 100


def stands_on(series: Series, found: FoundBase) -> str:
    """Say why a series does not apply strictly to a base, or nothing where it does."""
    with temporary_directory("toolkit-stands-") as scratch:
        tree = lay_out_base(found, series.paths, scratch / "base").tree
        try:
            apply_series(series, tree, into=scratch / "patched", scratch=scratch)
        except ApplyError as fault:
            return fault.message
    return ""


def with_covers(text: str, covers: Sequence[str]) -> str:
    """Return the text of a series.toml with other bases in `covers`; all that is said outside of the list stays.

    The text is one that `read_line` can read. Raises SeriesError where the list cannot be told from what is around it.
    """
    quoted = [f'"{one}"' for one in covers]
    listed = f"covers = [{', '.join(quoted)}]"
    if len(listed) > WIDTH:
        listed = "covers = [\n" + "".join(f"  {one},\n" for one in quoted) + "]"
    written = COVERS.sub(lambda _: listed, text, count=1)
    try:
        found = parse_toml(written.encode())[1].get("covers")
    except TomlError:
        found = None
    if found != list(covers):
        raise SeriesError(
            f"`covers` of {LINE_FILE} cannot be written anew", hint="take comments with a ] in them out of the list"
        )
    return written
