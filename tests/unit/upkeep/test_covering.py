"""Other bases in a series.toml, and nothing else changed there."""

from __future__ import annotations

import pytest

from toolkit.errors import SeriesError
from toolkit.upkeep.covering import with_covers

LONG = [f"git:{digit * 40}" for digit in "12"]


@pytest.mark.parametrize(
    ("text", "covers", "expected"),
    [
        ('schema = 1\n# Why.\ncovers = ["a==1"]\nupstream = ["u"]\n', ["b==2"],
         'schema = 1\n# Why.\ncovers = ["b==2"]\nupstream = ["u"]\n'),
        ('covers = [\n  "a==1", # [no] more\n]\n', ["b==2"], None),
        ('covers = [\n  "a==1", # first\n  "a==2",\n]\nschema = 1\n', ["a==2", "b==2"],
         'covers = ["a==2", "b==2"]\nschema = 1\n'),
        ('covers=["a==1"]\n', LONG, f'covers = [\n  "{LONG[0]}",\n  "{LONG[1]}",\n]\n'),
    ],
    ids=["one", "a bracket in a comment", "several lines", "long"],
)  # fmt: skip
def test_only_the_list_changes(text: str, covers: list[str], expected: str | None) -> None:
    if expected is not None:
        assert with_covers(text, covers) == expected
        return
    with pytest.raises(SeriesError) as caught:
        with_covers(text, covers)
    assert caught.value.message == "`covers` of series.toml cannot be written anew"
