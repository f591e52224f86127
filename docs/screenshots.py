"""Make the pictures of reports: ``python docs/screenshots.py`` writes ``docs/pictures/report_*.png``.

It needs Chromium: the program ``chromium``, or another one that the environment variable CHROMIUM names.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import mechdesign as md

DOCS = Path(__file__).parent
sys.path.append(str(DOCS / "_ext"))

from town import first, town  # noqa: E402


def photograph(problem: md.Problem, target: Path, height: int, section: str = "") -> None:
    """Write a picture of the report of a design, from the top or from a section."""
    with tempfile.TemporaryDirectory() as folder:
        md.report.save(md.design(problem), f"{folder}/design")
        page = Path(folder, "design", "report.html").as_uri() + section
        options = ["--headless=new", "--no-sandbox", "--hide-scrollbars", f"--window-size=1280,{height}"]
        browser = os.environ.get("CHROMIUM", "chromium")
        subprocess.run([browser, *options, f"--screenshot={target}", page], check=True, capture_output=True)


if __name__ == "__main__":
    photograph(town(1.0), DOCS / "pictures" / "report_town.png", 640, "#answers")
    photograph(first(), DOCS / "pictures" / "report_first.png", 760)
