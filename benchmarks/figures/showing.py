"""Figures: a claim, the rows of an experiment, a picture of them, and a verdict computed from them."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.figure import Figure as Picture

from figures.experiments import Experiment, Rows, Stored
from mechdesign.report._style import report_style

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
            self.draw((stored or self.experiment.stored()).rows).savefig(content, dpi=dpi, metadata={"Software": None})
        return content.getvalue()

    def show(self, stored: Stored | None = None) -> None:
        """Display claim, picture, finding and verdict in a notebook."""
        from IPython.display import Image, display

        stored = stored or self.experiment.stored()
        verdict = self.verdict(stored)
        say(f"**{self.title}.** *The claim:* {self.claim}")
        display(Image(self.png(stored), alt=self.alt))
        say(f"*Found:* {verdict.found}\n\n**Verdict: the claim {verdict.outcome}.**\n\n<small>{stored.origin}</small>")


def say(text: str) -> None:
    """Display a text in Markdown, into which the caller has put numbers."""
    from IPython.display import Markdown, display

    display(Markdown(text))
