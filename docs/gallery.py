"""Make the gallery: ``python docs/gallery.py`` writes ``docs/gallery.md``, a page for each notebook, and the pictures.

Figures, claims and findings are those of the notebooks (``benchmarks/papers``), and all numbers are stored results.
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.append(str(DOCS.parent / "benchmarks"))

from mechdesign.base._atomic import write_file  # noqa: E402
from papers import Figure, all_figures  # noqa: E402
from papers.showing import typeset  # noqa: E402

PICTURES = DOCS / "pictures" / "gallery"
PAGES = DOCS / "gallery"
GENERATED = "% Written by docs/gallery.py."

HEAD = f"""# Gallery

The experimental figures of five papers, computed with mechdesign, and figures of our own. Each verdict is computed
from the numbers. Drawings of worked examples and Figure 15 of DPHMM are left out. Some settings are smaller than in
the papers: scenario 1 of Privacy Games has 48 instead of 300 cells.

The folder `notebooks` of the source has percent scripts (open them with Jupytext) and their results. `python
benchmarks/run.py` computes everything again and lists the differences.

{GENERATED}
"""
OUTCOMES = ("holds", "holds in part", "does not come out here")


def pages() -> dict[str, str]:
    """Return the Markdown of the pages, by their names in the folder of the documentation."""
    notebooks = {
        name: list(figures)
        for name, figures in itertools.groupby(all_figures().values(), key=lambda figure: figure.notebook)
    }
    contents = "\n".join(["```{toctree}", ":hidden:", "", *(f"gallery/{name}" for name in notebooks), "```", ""])
    first = "\n".join([HEAD, verdicts(notebooks), contents])
    return {"gallery.md": first} | {f"gallery/{name}.md": page(name, own) for name, own in notebooks.items()}


def page(notebook: str, figures: list[Figure]) -> str:
    """Return the page with the figures of a notebook."""
    heading = title(notebook)
    return "\n".join(
        [f"# {heading}\n\n{GENERATED}\n", *(entry(figure, heading.partition(":")[0]) for figure in figures)]
    )


def verdicts(notebooks: dict[str, list[Figure]]) -> str:
    """Return how many claims of each paper hold."""
    lines = [f"| | {' | '.join(OUTCOMES)} |", "|---" * (1 + len(OUTCOMES)) + "|"]
    for name, figures in notebooks.items():
        found = Counter(figure.verdict().outcome for figure in figures)
        lines.append(f"| [{title(name)}](gallery/{name}.md) | {' | '.join(str(found[each]) for each in OUTCOMES)} |")
    return "\n".join(lines) + "\n"


def title(notebook: str) -> str:
    """Return the heading of a notebook."""
    for text in (DOCS.parent / "notebooks" / f"{notebook}.py").read_text(encoding="utf-8").splitlines():
        if text.startswith("# # "):
            return text.removeprefix("# # ")
    raise ValueError(f"{notebook}.py has no heading")


def entry(figure: Figure, paper: str) -> str:
    """Return claim, picture and verdict of a figure of a paper."""
    verdict = figure.verdict()
    outcome = verdict.outcome[:1].upper() + verdict.outcome[1:]
    return f"""## {figure.title.removeprefix(f"{paper}, ")}

*Claim:* {typeset(figure.claim)}

```{{figure}} ../pictures/gallery/{figure.name}.svg
:alt: {figure.alt}

**{outcome}.** {typeset(verdict.found[:1].upper() + verdict.found[1:])}
```
"""


def main() -> None:
    """Write the pages and the pictures."""
    written = {PICTURES / f"{figure.name}.svg": figure.svg() for figure in all_figures().values()}
    written |= {DOCS / name: text.encode() for name, text in pages().items()}
    for path, content in written.items():
        path.parent.mkdir(exist_ok=True)
        write_file(path, [content])
    for path in (*PICTURES.iterdir(), *PAGES.iterdir()):
        if path not in written:
            path.unlink()
    print(f"{len(written)} files")


if __name__ == "__main__":
    main()
