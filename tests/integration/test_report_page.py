"""The report as a browser shows it: on a phone, on a wide screen, in the dark and on paper."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.chromium import DARK, LIGHT, Chromium, find_chromium
from tests.report_sample import RECIPE, Wanted, all_results, make_place, plain_results, result
from toolkit.account import gather_account
from toolkit.page import render_html

PROGRAM = find_chromium()
PHONE = 390

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="needs chromium: apt-get install chromium")

LONG = "x" * 500
WANTED = {
    "whole": Wanted(results=[*all_results(), result("long", detail=LONG, evidence={LONG: LONG})]),
    "without numbers or logs": Wanted(results=plain_results(), logs=False),
    "red": Wanted(
        results=[result("a", status="error", ok=False, detail=LONG)], overlay_in_proof="f" * 64, env={"A": LONG}
    ),
}


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Chromium:
    return Chromium(program=str(PROGRAM), folder=tmp_path_factory.mktemp("chromium"))


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    found = {}
    for name, wanted in WANTED.items():
        place = make_place(tmp_path_factory.mktemp("place"), wanted)
        account = gather_account(place.generation, project=place.project, recipe=RECIPE)
        found[name] = place.generation / "report.html"
        found[name].write_text(render_html(account), encoding="utf-8")
    return found


def unfolded(page: str) -> str:
    """Return a page with every part unfolded, the widest that it can get."""
    return re.sub(r"<details( class=\"\w+\")?( open)?>", r"<details\1 open>", page)


@pytest.mark.parametrize("name", WANTED)
def test_no_page_is_wider_than_a_phone(chromium: Chromium, pages: dict[str, Path], name: str) -> None:
    measured = chromium.measure(unfolded(pages[name].read_text(encoding="utf-8")), width=PHONE)

    assert measured["wide"] == []
    assert (measured["width"], measured["scroll"]) == (PHONE, PHONE)
    assert measured["height"] > 1000


def test_what_sticks_out_would_be_seen(chromium: Chromium) -> None:
    measured = chromium.measure('<!DOCTYPE html><body><p style="width:600px">wide', width=PHONE)

    assert measured["scroll"] > PHONE
    assert measured["wide"] == ['<p style="width:600px">wide</p>']


def test_the_console_stays_silent(chromium: Chromium, pages: dict[str, Path]) -> None:
    assert chromium.complaints(pages["whole"]) == []


def test_a_complaint_would_be_seen(chromium: Chromium, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text("<!DOCTYPE html><script>undefined_name()</script>", encoding="utf-8")

    (complaint,) = chromium.complaints(bad)
    assert "undefined_name is not defined" in complaint


def test_light_and_dark_are_two_pages_that_are_not_empty(chromium: Chromium, pages: dict[str, Path]) -> None:
    light = chromium.picture(pages["whole"], LIGHT, width=600, height=400)
    dark = chromium.picture(pages["whole"], DARK, width=600, height=400)

    for picture, ground in ((light, b"\xff\xff\xff"), (dark, b"\x0f\x13\x18")):
        assert (picture.width, picture.height) == (600, 400)
        ((most, number), *_) = picture.colours.most_common()
        assert most == ground
        assert 0.5 < number / picture.colours.total() < 0.99
        assert len(picture.colours) > 20


@pytest.mark.parametrize(("scheme", "is_dark"), [(LIGHT, False), (DARK, True)], ids=["light", "dark"])
def test_text_stands_out_from_its_ground(
    chromium: Chromium, pages: dict[str, Path], scheme: str, is_dark: bool
) -> None:
    measured = chromium.measure(pages["whole"].read_text(encoding="utf-8"), scheme, width=PHONE)
    ground, ink = luminance(measured["background"]), luminance(measured["ink"])

    assert (ground < ink) is is_dark
    assert (max(ground, ink) + 0.05) / (min(ground, ink) + 0.05) > 12


def test_paper_has_what_the_screen_folds_away(chromium: Chromium, pages: dict[str, Path], tmp_path: Path) -> None:
    page = pages["whole"].read_text(encoding="utf-8")
    folded = tmp_path / "folded.html"
    folded.write_text(page.replace("section:not(#code) details::details-content", "details::none"), encoding="utf-8")

    assert chromium.sheets(pages["whole"]) > chromium.sheets(folded) + 1


def luminance(colour: str) -> float:
    """Return the relative luminance of `rgb(r, g, b)`, as WCAG defines it."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
