"""Make the gallery: ``python docs/gallery.py`` writes ``docs/gallery.md`` and its pictures from stored results.

The figures, what they claim and what was found are those of the notebooks (``benchmarks/figures``).
"""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.append(str(DOCS.parent / "benchmarks"))

from figures import Figure, all_figures  # noqa: E402
from mechdesign.base._atomic import write_file  # noqa: E402

PICTURES = DOCS / "pictures" / "gallery"
SOURCE = "../notebooks"

HEAD = """# Gallery

The figures of five papers that show measurements, computed with mechdesign, and figures of our own: what is claimed,
what was found, and a verdict that is computed from the numbers. Drawings of worked examples and Figure 15 of DPHMM
are left out, and some settings are smaller than in the papers; the notebooks say which. The notebooks are percent
scripts in the folder `notebooks` of the source (open them with Jupytext); `python benchmarks/run.py` computes
everything again and says what has moved.

% Written by docs/gallery.py: do not edit.
"""


def markdown() -> str:
    """Return the page."""
    parts = [HEAD]
    notebook = ""
    for figure in all_figures().values():
        if figure.notebook != notebook:
            notebook = figure.notebook
            parts.append(f"## {title(notebook)}\n\nNotebook: `notebooks/{notebook}.py`\n")
        parts.append(entry(figure))
    return "\n".join(parts)


def title(notebook: str) -> str:
    """Return the heading of a notebook."""
    for text in (DOCS.parent / "notebooks" / f"{notebook}.py").read_text(encoding="utf-8").splitlines():
        if text.startswith("# # "):
            return text.removeprefix("# # ")
    raise ValueError(f"{notebook}.py has no heading")


def entry(figure: Figure) -> str:
    """Return claim, picture, finding and verdict of a figure."""
    verdict = figure.verdict()
    return f"""### {figure.title}

*Claim:* {figure.claim}

```{{figure}} pictures/gallery/{figure.name}.png
:alt: {figure.alt}
:width: 100%

**The claim {verdict.outcome}.** {verdict.found[:1].upper()}{verdict.found[1:]}
```
"""


def main() -> None:
    """Write the page and the pictures."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    figures = all_figures()
    for name, figure in figures.items():
        write_file(PICTURES / f"{name}.png", [figure.png(dpi=90)])
    for path in PICTURES.glob("*.png"):
        if path.stem not in figures:
            path.unlink()
    write_file(DOCS / "gallery.md", [markdown().encode()])
    print(f"{len(figures)} figures")


if __name__ == "__main__":
    main()
