"""The page's colours: whatever is to be read stands out from its ground, by day, by night and on paper."""

from __future__ import annotations

import re

import pytest

from toolkit.page.style import STYLE

READABLE = 4.5
"""The contrast that WCAG 2 asks of text at level AA."""

INKS = ("ink", "soft", "good", "bad", "link", "base", "overlay")
GROUNDS = {
    "page": INKS,
    "panel": INKS,
    "ins": ("ink",),
    "del": ("ink",),
    "mark": ("ink",),
    "warn": ("ink", "good", "bad"),
}


def palettes() -> dict[str, dict[str, str]]:
    found = [
        dict(re.findall(r"--([a-z-]+): (#[0-9a-f]+)", rule)) for rule in re.findall(r":root \{(.*?)\}", STYLE, re.S)
    ]
    light, dark, paper = found
    return {"light": light, "dark": {**light, **dark}, "paper": {**light, **paper}}


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", ["light", "dark", "paper"])
def test_text_can_be_read_on_every_ground(name: str) -> None:
    palette = palettes()[name]
    faint = {
        f"{ink} on {ground}": round(contrast(palette[ink], palette[ground]), 1)
        for ground, inks in GROUNDS.items()
        for ink in inks
        if contrast(palette[ink], palette[ground]) < READABLE
    }

    assert faint == {}


def test_every_colour_that_is_used_is_in_the_palette() -> None:
    assert set(re.findall(r"var\(--([a-z-]+)\)", STYLE)) == set(palettes()["light"])
