"""The pictures of a report on a channel: prior, answers, one secret at a time, and what the adversary does not know."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.data._maps import Outline
from mechdesign.model._channel import Channel
from mechdesign.model._domain import Domain
from mechdesign.model._problem import Problem
from mechdesign.report.charts import Panel
from mechdesign.report.charts import framed
from mechdesign.report.charts import key
from mechdesign.report.charts import panel
from mechdesign.report.charts import panels
from mechdesign.report.explorer import Explored
from mechdesign.report.explorer import data_block
from mechdesign.report.explorer import explore
from mechdesign.report.explorer import explorer
from mechdesign.report.outlines import outline_path
from mechdesign.report.plot import _own_place
from mechdesign.report.plot import error_finding
from mechdesign.report.plot import most_likely
from mechdesign.report.plot import outputs_finding
from mechdesign.report.plot import prior_finding
from mechdesign.report.scales import error_scale
from mechdesign.model._words import percent
from mechdesign.report.scales import probability_scale
from mechdesign.report.scatter import against_prior
from mechdesign.report.views import View
from mechdesign.report.views import name_of
from mechdesign.report.views import view
from mechdesign.model._words import answers
from mechdesign.model._words import plain
from mechdesign.base._arrays import Floats

__all__ = ["Pictures", "pictures"]


@dataclass(frozen=True, eq=False)
class Pictures:
    """The figures of one page; each method takes the caption and returns HTML."""

    problem: Problem
    matrix: Floats
    error: Floats
    unit: str
    secrets: View
    observables: View
    explored: Explored
    outlines: tuple[str, str]
    data: str = field(repr=False)

    def prior(self, caption: str) -> str:
        """Return the map, or the bars, of the prior."""
        prior, shown = self.problem.prior, self.secrets
        scale = probability_scale(prior, "prior probability")
        zero = "prior of exactly 0" if (prior == 0).any() else ""
        picture = Panel(shown, prior, scale, "prior probability", shows="prior", outline=self.outlines[0])
        return framed("prior", prior_finding(prior), [panel(picture), *_key(shown, picture, zero)], caption)

    def answers(self, caption: str) -> str:
        """Return a picture of the answers of each of the most likely secrets, all on one scale."""
        prior, secrets = self.problem.prior, self.problem.secrets
        chosen = most_likely(prior)
        rows = self.matrix[chosen]
        scale = probability_scale(rows, "probability of the answer, p(o|s)")
        shown = [
            Panel(
                self.observables,
                self.matrix[index],
                scale,
                "probability of each answer",
                f"{_title(secrets, index)}, prior {percent(prior[index])}",
                f"row {index}",
                "secrets" if self.explored.same else "answers",
                _own_place(secrets, self.observables.domain, index) if not self.explored.same else index,
                self._cross(index),
                self.outlines[1],
            )
            for index in chosen.tolist()
        ]
        zero = "never answered" if (rows == 0).any() else ""
        return framed(
            "answers", outputs_finding(rows), [panels(shown), *_key(self.observables, shown[0], zero)], caption
        )

    def explorer(self) -> str:
        """Return the pictures of a chosen secret."""
        return explorer(self.explored, self.outlines)

    def errors(self, caption: str) -> str:
        """Return where the adversary still errs: for each secret, and against the prior."""
        prior = self.problem.prior
        label = "adversary’s expected error" + (f" ({plain(self.unit)})" if self.unit else "")
        scale = error_scale(self.error, label)
        picture = Panel(self.secrets, self.error, scale, label, shows="error", outline=self.outlines[0])
        left = "\n".join([panel(picture), *_key(self.secrets, picture, "")])
        right = against_prior(self.error, prior, scale, self.unit)
        body = ['<div class="pair">', f"<div>\n{left}\n</div>", right, "</div>"]
        return framed("error", error_finding(self.error, prior, self.unit), body, caption)

    def _cross(self, index: int) -> tuple[float, float] | None:
        """Return the place of a secret on a map of other observables, where both are in the same plane."""
        secrets, observables = self.problem.secrets, self.observables.domain
        if self.explored.same or secrets is None or observables is None or not self.observables.is_map:
            return None
        if _own_place(secrets, observables, index) is not None or not _one_plane(secrets, observables):
            return None
        ((x, y),) = self.observables.onto(secrets.points[[index]]).tolist()
        return x, y


def pictures(
    problem: Problem, channel: Channel, error: ArrayLike, unit: str, outline: Outline | None = None
) -> Pictures:
    """Return the pictures of a channel; `error` (n,) is that of the best attack for each secret, in `unit`.

    An `outline` is drawn on every map.
    """
    n, m = channel.numerators.shape
    domain = answers(problem)
    secrets, observables = view(problem.secrets, n), view(domain, m)
    same = domain is problem.secrets if problem.secrets is not None else domain is None and n == m
    errors = np.asarray(error, dtype=np.float64)
    first = int(most_likely(problem.prior, 1)[0])
    explored = explore(secrets, observables, channel.matrix, problem.prior, first, same)
    paths = {"outline-secrets": outline_path(outline, secrets), "outline-answers": outline_path(outline, observables)}
    drawn = "".join(
        f'<path id="{name}" vector-effect="non-scaling-stroke" d="{path}"/>' for name, path in paths.items() if path
    )
    names = tuple(name if path else "" for name, path in paths.items())
    data = (f'<svg class="defs" aria-hidden="true"><defs>{drawn}</defs></svg>\n' if drawn else "") + data_block(
        explored, {"prior": (problem.prior, "%"), "error": (errors, plain(unit))}
    )
    return Pictures(problem, channel.matrix, errors, unit, secrets, observables, explored, (names[0], names[1]), data)


def _key(shown: View, picture: Panel, zero: str) -> list[str]:
    return [key(picture.scale, zero, shown.form == "points")] if shown.is_map else []


def _title(domain: Domain | None, index: int) -> str:
    name = name_of(domain, index)
    return f"{name[0].upper()}{name[1:]}" if name.startswith("cell ") else f"Secret {name}"


def _one_plane(first: Domain, second: Domain) -> bool:
    return first.points.shape[1] == 2 and first.unit == second.unit and first.geographic == second.geographic
