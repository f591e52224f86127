"""Make the gallery: ``python docs/gallery.py`` writes ``docs/gallery.md``, a page for each notebook, and the pictures.

Figures, claims and findings are those of the notebooks (``benchmarks/papers``), and all numbers are stored results.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.append(str(DOCS.parent / "benchmarks"))

from mechdesign.base._atomic import write_file  # noqa: E402
from mechdesign.certify._texts import csv_text  # noqa: E402
from mechdesign.cli._citation import CITATION  # noqa: E402
from papers import Figure, Rows, all_figures  # noqa: E402
from papers.showing import typeset  # noqa: E402

PICTURES = DOCS / "pictures" / "gallery"
PAGES = DOCS / "gallery"
# The paper of each notebook, by its key in `mechdesign --cite`.
PAPERS = {
    "privacy_games": "shokri2015",
    "temporal_leakage": "cao2019",
    "pglp": "cao2020",
    "dphmm": "xiao2016",
    "blowfish": "he2014",
}
GENERATED = "% Written by docs/gallery.py: do not edit."

HEAD = f"""# Gallery

The experimental figures of five papers, computed with mechdesign, and figures of our own. Each has its claim, its
result, and a verdict that is computed from the numbers. Drawings of worked examples and Figure 15 of DPHMM are left
out. Some settings are smaller than in the papers: scenario 1 of Privacy Games, for example, has 48 instead of 300
cells. Each picture has its data: the rows that an experiment computed. The notebooks are percent scripts in the
folder `notebooks` of the source (open them with Jupytext). `python benchmarks/run.py` computes everything again and
lists the differences.

{GENERATED}

## Verdicts
"""


def pages() -> dict[str, str]:
    """Return the Markdown of the pages, by their names in the folder of the documentation."""
    notebooks = {
        name: list(figures)
        for name, figures in itertools.groupby(all_figures().values(), key=lambda figure: figure.notebook)
    }
    first = "\n".join([HEAD, verdicts(), contents(notebooks)])
    return {"gallery.md": first} | {f"gallery/{name}.md": page(name, own) for name, own in notebooks.items()}


def page(notebook: str, figures: list[Figure]) -> str:
    """Return the page with the figures of a notebook."""
    source = f"{{download}}`notebooks/{notebook}.py <../../notebooks/{notebook}.py>`"
    head = f"# {title(notebook)}\n\nNotebook: {source}. [All verdicts](../gallery.md)\n\n{GENERATED}\n"
    return "\n".join([head, *map(entry, figures), cite(PAPERS.get(notebook))])


def cite(paper: str | None) -> str:
    """Return the section with the citations of the software and, if any, of the paper, as BibTeX."""
    every = re.finditer(r"^@\w+\{(\w+),\n.*?^\}\n", CITATION, re.DOTALL | re.MULTILINE)
    named = {found[1]: found[0] for found in every}
    entries = "\n".join(named[key] for key in ("mechdesign", paper) if key is not None)
    return f"## Cite\n\n```bibtex\n{entries}```\n"


def contents(notebooks: Iterable[str]) -> str:
    """Return the table of contents of the gallery."""
    return "\n".join(["```{toctree}", ":hidden:", "", *(f"gallery/{name}" for name in notebooks), "```", ""])


def verdicts() -> str:
    """Return the table of all figures with their claims and verdicts."""
    lines = ["| figure | claim | verdict |", "|---|---|---|"]
    for figure in all_figures().values():
        claim = typeset(figure.claim).replace("|", "\\|")
        target = f"gallery/{figure.notebook}.md#{anchor(figure)}"
        lines.append(f"| [{figure.title}]({target}) | {claim} | {figure.verdict().outcome} |")
    return "\n".join(lines) + "\n"


def anchor(figure: Figure) -> str:
    """Return the target of links to a figure."""
    return f"gallery-{figure.name.replace('_', '-')}"


def title(notebook: str) -> str:
    """Return the heading of a notebook."""
    for text in (DOCS.parent / "notebooks" / f"{notebook}.py").read_text(encoding="utf-8").splitlines():
        if text.startswith("# # "):
            return text.removeprefix("# # ")
    raise ValueError(f"{notebook}.py has no heading")


def entry(figure: Figure) -> str:
    """Return claim, picture, finding, verdict and downloads of a figure."""
    verdict = figure.verdict()
    picture, data = (f"../pictures/gallery/{name}" for name in (f"{figure.name}.svg", f"{figure.experiment.name}.csv"))
    return f"""({anchor(figure)})=
## {figure.title}

*Claim:* {typeset(figure.claim)}

```{{figure}} {picture}
:alt: {figure.alt}

**The claim {verdict.outcome}.** {typeset(verdict.found[:1].upper() + verdict.found[1:])}
```

Download: {{download}}`picture (SVG) <{picture}>` · {{download}}`data (CSV) <{data}>`
"""


def data_csv(rows: Rows) -> bytes:
    """Return rows as CSV; lists are JSON texts, and missing values are empty."""
    heads = list(dict.fromkeys(name for row in rows for name in row))
    return csv_text([heads, *([write_cell(row.get(name)) for name in heads] for row in rows)]).encode()


def write_cell(value: object) -> object:
    """Return a value as the content of a cell."""
    if value is None:
        return ""
    return repr(value) if isinstance(value, float) else json.dumps(value) if isinstance(value, list | dict) else value


def files() -> dict[str, bytes]:
    """Return pictures and data by the names of their files."""
    figures = all_figures().values()
    pictures = {f"{figure.name}.svg": figure.svg() for figure in figures}
    experiments = {figure.experiment.name: figure.experiment for figure in figures}
    return pictures | {f"{name}.csv": data_csv(each.stored().rows) for name, each in experiments.items()}


def main() -> None:
    """Write the pages, the pictures and their data."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    written = files()
    for name, content in written.items():
        write_file(PICTURES / name, [content])
    for path in PICTURES.iterdir():
        if path.name not in written:
            path.unlink()
    PAGES.mkdir(exist_ok=True)
    for name, text in pages().items():
        write_file(DOCS / name, [text.encode()])
    print(f"{len(written)} files")


if __name__ == "__main__":
    main()
