"""Figures: a claim, the rows of an experiment, a picture of them, and a verdict computed from them."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.figure import Figure as Picture
from matplotlib.text import Text

from mechdesign.report._style import figure_bytes, report_style
from papers.experiments import Experiment, Rows, Stored

__all__ = ["Figure", "Verdict", "say"]


@dataclass(frozen=True)
class Verdict:
    """The verdict on a claim: the number of cases in which it holds, and sentences with these numbers."""

    held: int
    cases: int
    found: str

    @property
    def outcome(self) -> str:
        """Return "holds", "holds in part" or "does not come out here"."""
        if self.held == self.cases:
            return "holds"
        return "holds in part" if self.held else "does not come out here"


@dataclass(frozen=True)
class Figure:
    """A figure of a paper, or a figure that no paper contains.

    Attributes:
        name: Name of the figure and of its picture.
        title: The paper, and the number of the figure in it.
        claim: The claim of the paper, quoted or paraphrased.
        experiment: The experiment that computes the rows.
        draw: Function that draws the picture from rows.
        judge: Function that computes the verdict from rows.
        notebook: The notebook that shows the figure.
        alt: Description of the picture for readers who cannot see it.
    """

    name: str
    title: str
    claim: str
    experiment: Experiment
    draw: Callable[[Rows], Picture]
    judge: Callable[[Rows], Verdict]
    notebook: str
    alt: str

    def verdict(self, stored: Stored | None = None) -> Verdict:
        """Return the verdict on the given rows, by default on the stored rows."""
        return self.judge((stored or self.experiment.stored()).rows)

    def png(self, stored: Stored | None = None, dpi: int = 110) -> bytes:
        """Return the picture of the given rows, by default of the stored rows."""
        with report_style():
            content = io.BytesIO()
            picture = write_subscripts(self.draw((stored or self.experiment.stored()).rows))
            picture.savefig(content, dpi=dpi, metadata={"Software": None})
        return content.getvalue()

    def svg(self) -> bytes:
        """Return the picture of the stored rows as SVG, with the same bytes every time."""
        with report_style():
            return figure_bytes(write_subscripts(self.draw(self.experiment.stored().rows)))

    def show(self, stored: Stored | None = None) -> None:
        """Display claim, picture, finding and verdict in a notebook."""
        from IPython.display import Image, display

        stored = stored or self.experiment.stored()
        verdict = self.verdict(stored)
        say(f"**{self.title}.** *The claim:* {self.claim}")
        display(Image(self.png(stored), alt=self.alt))
        say(f"*Found:* {verdict.found}\n\n**Verdict: the claim {verdict.outcome}.**\n\n<small>{stored.origin}</small>")


# Subscripts of the names of errors and policies, such as E_eu and G_k9.
_SUBSCRIPTS = str.maketrans("0123456789aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ")
_NAME = re.compile(r"\b([EG])_([0-9a-z]+)\b")


def write_subscripts(picture: Picture) -> Picture:
    """Replace names such as E_eu by letters with subscripts, in all texts of a picture."""
    for text in picture.findobj(Text):
        text.set_text(_NAME.sub(lambda name: name[1] + name[2].translate(_SUBSCRIPTS), text.get_text()))
    return picture


def typeset(text: str) -> str:
    r"""Return a text with names such as E_eu as formulas.

    >>> typeset("the error E_eu falls")
    'the error $E_{\\mathrm{eu}}$ falls'
    """
    return _NAME.sub(r"$\1_{\\mathrm{\2}}$", text)


def say(text: str) -> None:
    """Display a text in Markdown, into which the caller has put numbers."""
    from IPython.display import Markdown, display

    display(Markdown(text))
