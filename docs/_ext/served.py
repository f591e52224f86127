"""Files that the site serves: a wheel of the package, and the report of a design.

Both are made when the site is built, and only if they are older than the package. ``{wheel}`` shows the lines that
install from the wheel. ``{sample-report}`` shows a picture that links to the report; its argument is the picture.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.util.osutil import relative_uri

PROJECT = Path(__file__).parents[2]
WHEELS = "downloads"
REPORT = "downloads/sample_report.html"

_LOG = logging.getLogger(__name__)


def make_files(app: Sphinx) -> None:
    """Make wheel and report in the output folder; without hatchling one line says that there is no wheel."""
    if app.builder.format != "html":
        return
    folder = Path(app.outdir, WHEELS)
    folder.mkdir(parents=True, exist_ok=True)
    newest = max(path.stat().st_mtime for path in (PROJECT / "mechdesign").rglob("*") if path.suffix != ".pyc")
    old = [path for path in folder.iterdir() if path.stat().st_mtime < newest]
    for path in old:
        path.unlink()
    if not (wheel_of(app) or build_wheel(folder)):
        _LOG.info("no wheel: install hatchling (the extra docs) to let the site serve one")
    if not Path(app.outdir, REPORT).exists():
        save_report(Path(app.outdir, REPORT))


def build_wheel(folder: Path) -> bool:
    """Build the wheel without network, and return whether there is one."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder.resolve())]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, check=False).returncode == 0


def wheel_of(app: Sphinx) -> Path | None:
    """Return the wheel in the output folder, if there is one."""
    return next(Path(app.outdir, WHEELS).glob("*.whl"), None)


def save_report(path: Path) -> None:
    """Design the mechanism of the landing page, and write its report."""
    from town import town

    import mechdesign as md

    with tempfile.TemporaryDirectory() as folder:
        md.save(md.design(town(1.0)), f"{folder}/town")
        path.write_bytes(Path(folder, "town", "report.html").read_bytes())


class Wheel(SphinxDirective):
    """``{wheel}`` shows how to install the wheel that the site serves, or nothing if there is none."""

    def run(self) -> list[nodes.Node]:
        """Return a sentence with a link, and the lines for a shell."""
        found = wheel_of(self.env.app) if self.env.app.builder.format == "html" else None
        if found is None:
            return []
        uri = relative_uri(self.env.app.builder.get_target_uri(self.env.docname), f"{WHEELS}/{found.name}")
        sentence = nodes.paragraph("", "Or download the wheel ")
        sentence += nodes.reference("", found.name, refuri=uri)
        sentence += nodes.Text(" and install that file; its dependencies come from the package index:")
        lines = f"python3 -m venv .venv\n.venv/bin/pip install ./{found.name}\n"
        return [sentence, nodes.literal_block(lines, lines, language="bash")]


class SampleReport(SphinxDirective):
    """``{sample-report} PICTURE`` shows a picture of the report, which links to it; the content is the caption."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the figure."""
        uri = relative_uri(self.env.app.builder.get_target_uri(self.env.docname), REPORT)
        picture = nodes.image(uri=self.arguments[0], alt="The report of a design in a browser; opens the report")
        link = nodes.reference("", "", picture, refuri=uri)
        caption = self.parse_text_to_nodes("\n".join(self.content))
        figure = nodes.figure("", link, nodes.caption("", "", *caption[0].children))
        return [figure]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives, and make the files before pages are read."""
    app.add_directive("wheel", Wheel)
    app.add_directive("sample-report", SampleReport)
    app.connect("builder-inited", make_files)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
