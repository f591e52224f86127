"""Figures of designs, for papers and notebooks: plain Matplotlib figures, apart from pyplot and the user's settings.

Each function takes a `mechdesign.Design`, or anything with its `problem`, `channel` and `certificate`, and returns a
`matplotlib.figure.Figure`; `save_figure` writes one in the format that the ending of a file name says, the same bytes
every time. Where secrets have places the figures are maps, else bars. The report of a design shows the same, and its
maps can be asked (`mechdesign.Design.save`).

>>> import mechdesign as md
>>> distance = md.distances.euclidean(square := md.Domain.grid(2, 2, 2.0, 2.0))
>>> problem = md.Problem([0.25] * 4, distance, [md.MetricPrivacy(1, distance)], secrets=square, observables=square)
>>> md.figures.prior(md.design(problem)).get_suptitle()
'Half of the prior is on 2 of 4 secrets'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import networkx as nx
from numpy.typing import ArrayLike

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import as_array, as_indices
from mechdesign.base._check import as_integer, require_kind
from mechdesign.base._errors import InputError
from mechdesign.model._domain import Domain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mechdesign.certify._certificate import Certificate
    from mechdesign.model._channel import Channel
    from mechdesign.model._problem import Problem


class Designed(Protocol):
    """What the figures show of a design."""

    @property
    def problem(self) -> Problem: ...
    @property
    def channel(self) -> Channel: ...
    @property
    def certificate(self) -> Certificate: ...


def _require_design(design: object) -> None:
    """Raise `InputError` for what has no problem, channel and certificate, such as a channel alone."""
    if isinstance(design, type) or not all(hasattr(design, name) for name in ("problem", "channel", "certificate")):
        bound = "a Design, or what has its problem, channel and certificate"
        raise InputError("design", "is of another kind", value=type(design).__name__, bound=bound)


@in_own_arithmetic
def prior(design: Designed) -> Figure:
    """Show where secrets are likely, unlikely, and impossible."""
    _require_design(design)
    from mechdesign.report._channel_figures import prior_picture

    return prior_picture(design.problem.prior, design.problem.secrets)


@in_own_arithmetic
def answers(design: Designed, count: int = 6) -> Figure:
    """Show how probable each answer is for the `count` most likely secrets."""
    _require_design(design)
    count = as_integer(count, "count", 1)
    from mechdesign.model._problem_words import answers
    from mechdesign.report._channel_figures import outputs_picture

    problem = design.problem
    return outputs_picture(design.channel.matrix, problem.prior, problem.secrets, answers(problem), count)


@in_own_arithmetic
def errors(design: Designed) -> Figure:
    """Show the expected error of the best attack for each secret, and against the prior."""
    _require_design(design)
    from mechdesign.measures import attack
    from mechdesign.model._problem_words import attack_measure
    from mechdesign.report._channel_figures import error_picture

    problem, found = design.problem, attack_measure(design.problem)
    best = attack.optimal(design.channel, problem.prior, found.matrix)
    return error_picture(best.per_secret, problem.prior, problem.secrets, found.unit)


@in_own_arithmetic
def costs(design: Designed) -> Figure:
    """Show the certified cost between its lower bound and the costs of other mechanisms."""
    _require_design(design)
    from mechdesign.measures._baselines import baselines, reference_costs
    from mechdesign.model._problem_words import cost_measure
    from mechdesign.report._channel_figures import cost_picture

    problem, proved = design.problem, design.certificate
    return cost_picture(
        proved.cost,
        proved.lower_bound,
        proved.relative_gap,
        reference_costs(problem, baselines(problem)),
        proved.objective,
        cost_measure(problem).unit,
    )


@in_own_arithmetic
def requirements(design: Designed) -> Figure:
    """Show what was realised of each requirement, as a part of what was asked for."""
    _require_design(design)
    from mechdesign.report._channel_figures import requirements_picture
    from mechdesign.report._design_tables import met

    return requirements_picture(met(design.problem, design.certificate))


@in_own_arithmetic
def graph(domain: Domain, edges: ArrayLike) -> Figure:
    """Show a policy graph on the map: its edges, an array (k, 2) or a networkx graph, join secrets of `domain`."""
    require_kind(domain, Domain, "domain", "a Domain")
    from mechdesign.graphs._builders import from_edges

    listed = list(getattr(edges, "edges", edges) if isinstance(edges, nx.Graph) else as_array(edges, "edges"))
    pairs = list(from_edges(domain.size, listed).edges())
    from mechdesign.report._graph_figures import policy_picture

    return policy_picture(domain, pairs)


@in_own_arithmetic
def trace(domain: Domain, released: ArrayLike, truth: ArrayLike | None = None) -> Figure:
    """Show a released trace on the map, states (T,) of `domain`; with the true one it is for its owner only."""
    require_kind(domain, Domain, "domain", "a Domain")
    released = as_indices(released, "released", domain.size)
    if truth is not None:
        truth = as_indices(truth, "truth", domain.size)
        if len(truth) != len(released):
            bound = f"{len(released)}, as there are in released"
            raise InputError("truth", "has another number of steps", value=len(truth), bound=bound)
    from mechdesign.report._trace_figures import trace_picture

    return trace_picture(domain, released, truth)
