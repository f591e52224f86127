"""Take the pictures of reports: ``python docs/screenshots.py [NAME ...]`` writes ``docs/pictures/report_NAME.png``.

A report is made, its sections get numbers, and Chromium (``chromium`` on the path) draws it. Needs the extra ``docs``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

import mechdesign as md

sys.path.append(str(Path(__file__).parent / "_ext"))

from town import first, town

FOLDER = Path(__file__).parent / "pictures"
WIDTH, TALLEST = 960, 4000

CITY = """
title = "A simulated town"
domain.grid = { columns = 8, rows = 6, width = 8.0, height = 6.0, unit = "km" }
prior.simulated = { people = 10_000, background = 0.1, centres = [
    { x = 3.0, y = 3.0, spread = 1.2, weight = 3 },
    { x = 6.5, y = 4.5, spread = 0.8, weight = 1 },
] }
cost.distance = "euclidean"
privacy = [
    { kind = "metric", epsilon = 1, distance = "euclidean" },
    { kind = "distortion", minimum = 1.2, distance = "euclidean" },
]
"""


def design_page(folder: Path) -> Path:
    """Return the page of a design."""
    made = md.specification.parse(CITY).design(tolerance=1e-5)
    md.save(made, folder / "town")
    return folder / "town/report.html"


def page_of(problem: md.Problem) -> Callable[[Path], Path]:
    """Return a function that makes the page of a problem's design."""

    def make(folder: Path) -> Path:
        md.save(md.design(problem), folder / "design")
        return folder / "design/report.html"

    return make


NUMBERED = """
main h1, main section > h2 { counter-increment: part; }
main h1::before, main section > h2::before {
  content: counter(part); display: inline-block; width: 1.6em; margin-right: 0.5em; border-radius: 1em;
  background: #b3261e; color: #fff; text-align: center; font-weight: bold;
}
"""
ANSWERS = "main section:not(:has(#answers)) { display: none; }"
# A page, and the style that selects and numbers its parts.
PICTURES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "top": (
        design_page,
        NUMBERED + "main { counter-reset: part; } main section:nth-of-type(n+3) { display: none; }",
    ),
    "maps": (
        design_page,
        NUMBERED + "main { counter-reset: part 3; } main header, main section:nth-of-type(-n+2), "
        "main section:nth-of-type(n+6) { display: none; }",
    ),
    "town": (page_of(town(1.0)), ANSWERS),
    "first": (page_of(first()), ANSWERS),
}


def screenshot(page: Path, style: str, target: Path) -> None:
    """Draw a page with a further style, without empty rows at its ends."""
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("chromium is not on the path")
    text = page.read_text(encoding="utf-8").replace("</head>", f"<style>{style}</style></head>")
    page.write_text(text, encoding="utf-8")
    size = [f"--window-size={WIDTH},{TALLEST}", f"--screenshot={target}", page.as_uri()]
    command = [chromium, "--headless=new", "--no-sandbox", "--hide-scrollbars", "--disable-gpu", *size]
    subprocess.run(command, check=True, capture_output=True)
    with Image.open(target) as image:
        drawn = image.convert("RGB")
    used = np.flatnonzero((np.asarray(drawn) != 255).any(axis=(1, 2)))
    drawn.crop((0, max(int(used[0]) - 20, 0), WIDTH, int(used[-1]) + 20)).quantize(128).save(target, optimize=True)


def main() -> None:
    """Take the pictures named, or all."""
    for name in sys.argv[1:] or PICTURES:
        make, style = PICTURES[name]
        with tempfile.TemporaryDirectory() as folder:
            screenshot(make(Path(folder)), style, FOLDER / f"report_{name}.png")
        print(name)


if __name__ == "__main__":
    main()
