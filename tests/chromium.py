"""A headless Chromium that opens one page from a file: what it draws, measures, prints and complains of."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import zlib
from collections import Counter
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

QUIET = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run", "--no-default-browser-check", "--disable-extensions", "--mute-audio",
    "--hide-scrollbars", "--enable-logging=stderr", "--virtual-time-budget=3000",
)  # fmt: skip

DARK = "--blink-settings=preferredColorScheme=0"
LIGHT = "--blink-settings=preferredColorScheme=1"

MEASURE = """\
<!DOCTYPE html><meta charset="utf-8"><body><iframe id="page" style="border:0;width:{width}px;height:900px"></iframe>
<pre id="measured"></pre><script>
const frame = document.getElementById("page");
frame.srcdoc = {page};
frame.onload = () => {{
  const inside = frame.contentDocument, root = inside.documentElement;
  const clips = node => getComputedStyle(node).overflowX !== "visible";
  const clip = node => node && node !== root && (clips(node) || clip(node.parentNode));
  const wide = [...inside.body.querySelectorAll("*")].filter(
    node => node.getBoundingClientRect().right > root.clientWidth + 1 && !clip(node.parentNode) && !clip(node));
  document.getElementById("measured").textContent = JSON.stringify({{
    width: root.clientWidth, scroll: root.scrollWidth, height: root.scrollHeight,
    background: getComputedStyle(inside.body).backgroundColor, ink: getComputedStyle(inside.body).color,
    wide: wide.slice(0, 5).map(node => node.outerHTML.slice(0, 120)),
  }});
}};
</script>
"""
"""The page inside a frame of the width of a phone, as no window gets that narrow, with a script that looks at it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Picture:
    """A screenshot: its size, and how many pixels of each colour there are."""

    width: int
    height: int
    colours: Counter[bytes]


@dataclass(frozen=True, kw_only=True, slots=True)
class Chromium:
    """One program; every run of it gets a fresh profile below `folder`."""

    program: str
    folder: Path

    def run(self, page: Path, *options: str) -> subprocess.CompletedProcess[str]:
        """Open a page with some options, and return what it printed."""
        profile = self.folder / f"profile-{len(list(self.folder.glob('profile-*')))}"
        words = [self.program, *QUIET, f"--user-data-dir={profile}", *options, page.as_uri()]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
        return done

    def complaints(self, page: Path) -> list[str]:
        """Return what the page's console says."""
        return [line for line in self.run(page, "--dump-dom").stderr.splitlines() if "CONSOLE" in line]

    def picture(self, page: Path, *options: str, width: int, height: int) -> Picture:
        """Draw the top of a page."""
        file = self.folder / "picture.png"
        self.run(page, f"--screenshot={file}", f"--window-size={width},{height}", *options)
        return read_png(file.read_bytes())

    def measure(self, page: str, *options: str, width: int) -> dict[str, Any]:
        """Lay a page out in a width, and return its measures and the first elements that stick out."""
        file = self.folder / "measure.html"
        without_policy = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
        quoted = json.dumps(without_policy).replace("<", "\\u003c")
        file.write_text(MEASURE.format(width=width, page=quoted), encoding="utf-8")
        dom = self.run(file, "--dump-dom", *options).stdout
        found = re.search(r'<pre id="measured">(.*?)</pre>', dom, re.DOTALL)
        assert found is not None, dom[-2000:]
        measures: dict[str, Any] = json.loads(unescape(found[1]))
        return measures

    def sheets(self, page: Path) -> int:
        """Print a page and return how many sheets that takes."""
        file = self.folder / "page.pdf"
        self.run(page, f"--print-to-pdf={file}", "--no-pdf-header-footer")
        raw = file.read_bytes()
        assert raw.startswith(b"%PDF-")
        return len(re.findall(rb"/Type\s*/Page\b", raw))


def find_chromium() -> str | None:
    """Return the path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def read_png(raw: bytes) -> Picture:
    """Read a screenshot, which has 8 bits for each of 3 or 4 channels and is not interlaced."""
    assert raw[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = int.from_bytes(raw[16:20], "big"), int.from_bytes(raw[20:24], "big")
    channels = {2: 3, 6: 4}[raw[25]]
    data, place = b"", 8
    while place < len(raw):
        length = int.from_bytes(raw[place : place + 4], "big")
        if raw[place + 4 : place + 8] == b"IDAT":
            data += raw[place + 8 : place + 8 + length]
        place += length + 12
    colours: Counter[bytes] = Counter()
    above = bytearray(width * channels)
    lines = zlib.decompress(data)
    for row in range(height):
        start = row * (width * channels + 1)
        above = _unfiltered(lines[start], bytearray(lines[start + 1 : start + 1 + width * channels]), above, channels)
        if row % 8 == 0:
            colours.update(bytes(above[at : at + 3]) for at in range(0, len(above), channels))
    return Picture(width=width, height=height, colours=colours)


def _unfiltered(kind: int, line: bytearray, above: bytearray, channels: int) -> bytearray:
    for at in range(len(line)) if kind else ():
        left = line[at - channels] if at >= channels else 0
        corner = above[at - channels] if at >= channels else 0
        line[at] = (line[at] + _predicted(kind, left, above[at], corner)) & 255
    return line


def _predicted(kind: int, left: int, up: int, corner: int) -> int:
    if kind == 4:
        nearness = left + up - corner
        return min((left, up, corner), key=lambda one: abs(nearness - one))
    return {1: left, 2: up, 3: (left + up) // 2}[kind]
