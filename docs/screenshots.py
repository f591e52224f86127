"""Take the pictures of reports: ``python docs/screenshots.py [NAME ...]`` writes ``docs/pictures/report_NAME.png``.

A report is made, and Chromium (``chromium`` on the path) draws its verdict and its answers.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import mechdesign as md

sys.path.append(str(Path(__file__).parent / "_ext"))

from town import first, town

FOLDER = Path(__file__).parent / "pictures"
WIDTH, TALLEST = 960, 4000


# Hides all parts of a page but the verdict and the answers.
STYLE = "main section:not(:has(#answers)), #error, #explorer { display: none; }"
PICTURES = {"town": town(1.0), "first": first()}


def screenshot(page: Path, target: Path) -> None:
    """Draw a page, without empty rows at its ends."""
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("chromium is not on the path")
    text = page.read_text(encoding="utf-8").replace("</head>", f"<style>{STYLE}</style></head>")
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
        with tempfile.TemporaryDirectory() as folder:
            md.save(md.design(PICTURES[name]), f"{folder}/design")
            screenshot(Path(folder, "design", "report.html"), FOLDER / f"report_{name}.png")
        print(name)


if __name__ == "__main__":
    main()
