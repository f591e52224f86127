"""Make the pictures of reports: ``python docs/screenshots.py`` writes ``docs/pictures/report_*.png``.

It needs Chromium: the program ``chromium``, or another one that the environment variable CHROMIUM names.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import mechdesign as md

DOCS = Path(__file__).parent
sys.path.append(str(DOCS / "_ext"))

from town import first, town  # noqa: E402


def photograph(problem: md.Problem, target: Path, height: int) -> None:
    """Write a picture of the verdict and the answers in the report of a design; the other sections are left out."""
    with tempfile.TemporaryDirectory() as folder:
        md.report.save(md.design(problem), f"{folder}/design")
        page = Path(folder, "design", "report.html")
        text = page.read_text(encoding="utf-8")
        found = re.findall(r"<section>.*?</section>", text, flags=re.S)
        for section in found:
            if 'id="answers"' not in section:
                text = text.replace(section, "")
        assert len(found) > text.count("<section>") == 1
        page.write_text(text, encoding="utf-8")
        options = ["--headless=new", "--no-sandbox", "--hide-scrollbars", f"--window-size=1280,{height}"]
        browser = os.environ.get("CHROMIUM", "chromium")
        subprocess.run([browser, *options, f"--screenshot={target}", page.as_uri()], check=True, capture_output=True)


if __name__ == "__main__":
    photograph(town(1.0), DOCS / "pictures" / "report_town.png", 880)
    photograph(first(), DOCS / "pictures" / "report_first.png", 810)
