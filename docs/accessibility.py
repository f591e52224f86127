"""Check pages with axe-core in headless Chromium, in light and in dark mode.

    python docs/accessibility.py SITE [PAGE ...]     one page of each kind of the site, and other pages
    python docs/accessibility.py --all SITE          every page of the site
    python docs/accessibility.py --reports FOLDER    write a report of each kind into FOLDER, and check them

Each serious or critical finding is printed, and any finding ends with status 1. First a page with planted faults is
checked: if one of them is not found, the check itself is broken, and the status is 2.

It needs playwright (pip), axe-core (npm) and Chromium. AXE names the file axe.min.js, and CHROMIUM the browser.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SERIOUS = ("serious", "critical")
MODES = ("light", "dark")
WIDTH_PX, HEIGHT_PX = 1280, 900
# Rules whose findings are errors in every guideline; axe has others for best practices alone.
TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
SHOWN_NODES = 4
TIMEOUT_MS = 120_000
INDICES = ("genindex.html", "py-modindex.html")
"""Long lists of links, which are checked with `--all` alone."""

PLANTED = """<!DOCTYPE html><html><head><title>Planted faults</title></head><body><main><h1>Faults</h1>
<p style="color: #aaa; background: #fff">Words that are too pale.</p>
<img src="data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA="><input type="text"><button></button>
<div style="height: 3em; overflow: auto"><p style="height: 20em">A region that the keyboard cannot scroll.</p></div>
<ul><p>No item of a list.</p></ul></main></body></html>"""
FAULTS = {"html-has-lang", "color-contrast", "image-alt", "label", "button-name", "list"}
"""The rules that the planted page breaks."""


@dataclass(frozen=True)
class Finding:
    """A rule that a page breaks in a mode, with the elements that break it."""

    page: str
    mode: str
    rule: str
    impact: str
    elements: tuple[str, ...]

    def __str__(self) -> str:
        named = "\n".join(f"    {each}" for each in self.elements[:SHOWN_NODES])
        return f"{self.page}, {self.mode}: {self.rule} ({self.impact}), {len(self.elements)} elements\n{named}"


class Checker:
    """A browser with axe-core."""

    def __init__(self, browser: Any, axe: str) -> None:
        self._browser, self._axe = browser, axe

    def check(self, address: str, name: str, modes: Iterable[str] = MODES) -> Iterator[Finding]:
        """Yield the serious and critical findings of a page."""
        # No page has frames.
        options = {"runOnly": {"type": "tag", "values": list(TAGS)}, "iframes": False, "resultTypes": ["violations"]}
        context = self._browser.new_context(viewport={"width": WIDTH_PX, "height": HEIGHT_PX}, bypass_csp=True)
        try:
            page = context.new_page()
            page.set_default_timeout(TIMEOUT_MS)
            page.goto(address)
            page.evaluate(self._axe)
            for mode in modes:
                page.emulate_media(color_scheme=mode)
                found = page.evaluate("options => axe.run(document, options)", options)
                for each in found["violations"]:
                    if each["impact"] in SERIOUS:
                        yield Finding(name, mode, each["id"], each["impact"], tuple(map(_describe, each["nodes"])))
        finally:
            context.close()


def _describe(node: Any) -> str:
    """Return the place of an element, and the reason of the finding."""
    reason = " ".join(node.get("failureSummary", "").split()).partition(": ")[2]
    return f"{' '.join(map(str, node['target']))}: {reason}"[:300]


def find_axe() -> Path | None:
    """Return the file of axe-core: that of the variable AXE, or that in build/axe."""
    found = Path(os.environ.get("AXE", "build/axe/node_modules/axe-core/axe.min.js"))
    return found if found.is_file() else None


def find_chromium() -> str | None:
    """Return the program of the browser."""
    names = (os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome")
    return next(filter(None, (shutil.which(name) for name in names if name)), None)


@contextmanager
def open_checker() -> Iterator[Checker]:
    """Open the browser; raise `SystemExit` with a sentence if something is not installed."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise SystemExit("playwright is not installed: pip install playwright") from None
    axe, chromium = find_axe(), find_chromium()
    if axe is None:
        raise SystemExit("axe-core is not installed: npm install --prefix build/axe axe-core@4, or name it in AXE")
    if chromium is None:
        raise SystemExit("Chromium is not installed: install it, or name it in CHROMIUM")
    with sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield Checker(browser, axe.read_text(encoding="utf-8"))
        finally:
            browser.close()


def find_missed(checker: Checker, folder: Path) -> set[str]:
    """Return the planted faults that the checker does not find."""
    path = folder / "planted.html"
    path.write_text(PLANTED, encoding="utf-8")
    try:
        return FAULTS - {each.rule for each in checker.check(path.absolute().as_uri(), path.name, ["light"])}
    finally:
        path.unlink()


def choose_pages(site: Path) -> list[Path]:
    """Return a page of each kind of a site: the first one, that of the search, and the largest of each folder."""
    pages = [path for path in sorted(site.rglob("*.html")) if path.name not in INDICES]
    # Sources have a page for each module, in folders of rooms.
    kinds = [site / "_modules" if site / "_modules" in path.parents else path.parent for path in pages]
    by_size = sorted(zip(kinds, pages, strict=True), key=lambda each: (each[1].stat().st_size, each[1].name))
    largest = dict(by_size)
    first = {path for path in pages if path.parent == site and path.name in ("index.html", "search.html")}
    return sorted({*largest.values(), *first})


def write_reports(folder: Path) -> list[Path]:
    """Write a small report of each kind, and return the pages."""
    import mechdesign as md
    from mechdesign.report import _audit_page

    folder.mkdir(parents=True, exist_ok=True)
    domain = md.Domain.grid(4, 3, 4.0, 3.0, unit="km")
    km = md.distances.euclidean(domain)
    prior = md.Prior.from_counts(range(1, 13))
    requirements = [md.MetricPrivacy(0.8, km), md.DistortionPrivacy("0.2", km)]
    problem = md.Problem(prior, km, requirements, secrets=domain, title="A small city")
    made = md.design(problem)
    md.save(made, folder / "design")
    ages = md.tables.Policy.threshold(md.tables.Domain({"age": range(30)}), 5)
    md.save(md.tables.Histogram().release([3, 4, 4, 20], ages, epsilon=1), folder / "table")
    md.save(md.tables.Cumulative().release([3, 4, 4, 20], ages, epsilon=1), folder / "cumulative")
    (folder / "states.csv").write_text("state\n0\n1\n2\n5\n")
    walk = md.specification.parse(_WALK)
    md.save(walk.release(folder / "states.csv", seed=1), folder / "trace")
    found = md.audit(made.channel, distance=km, cost=km, secrets=domain)
    (folder / "audit.html").write_text(_audit_page.html(found, "0.7"), encoding="utf-8")
    return sorted(folder.rglob("*.html"))


_WALK = """
domain.grid = { columns = 3, rows = 2, width = 3.0, height = 2.0 }
prior.uniform = true
cost.distance = "euclidean"
privacy = [{ kind = "graph", epsilon = "0.5", neighbours = 4 }]
release = { mechanism = "lp", transition = { neighbours = 4 } }
"""


def main(arguments: list[str]) -> int:
    """Check the pages, print the findings, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=Path, help="a folder with a site, or pages")
    parser.add_argument("--all", action="store_true", help="check every page of the site")
    parser.add_argument("--reports", metavar="FOLDER", type=Path, help="write a report of each kind, and check them")
    asked = parser.parse_args(arguments)
    pages: list[Path] = [] if asked.reports is None else write_reports(asked.reports)
    for path in asked.pages:
        inside = sorted(path.rglob("*.html")) if asked.all else choose_pages(path) if path.is_dir() else [path]
        pages += inside
    if not pages:
        parser.error("there is no page to check")
    findings: list[Finding] = []
    with open_checker() as checker:
        if missed := find_missed(checker, Path(pages[0]).parent):
            print(f"the check is broken: it does not find {', '.join(sorted(missed))}", file=sys.stderr)
            return 2
        for page in pages:
            found = list(checker.check(page.absolute().as_uri(), str(page)))
            findings += found
            for each in found:
                print(each, flush=True)
    print(f"{len(pages)} pages, each in {len(MODES)} modes: {len(findings)} serious findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
