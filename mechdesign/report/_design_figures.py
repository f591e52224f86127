"""Figures of designs for papers and notebooks, as Matplotlib figures independent of pyplot and the user's settings.

Each function takes a `mechdesign.Design`, or what its figure shows, and returns a `matplotlib.figure.Figure`.
`save_figure` writes a figure in the format of the file's suffix, with reproducible bytes. If the secrets have places,
the figures are maps, and otherwise bars. The report of a design (`mechdesign.save`) contains the same figures
with interactive maps.

>>> import mechdesign as md
>>> distance = md.distances.euclidean(square := md.Domain.grid(2, 2, 2.0, 2.0))
>>> problem = md.Problem([0.25] * 4, distance, [md.MetricPrivacy(1, distance)], secrets=square, observables=square)
>>> md.figures.prior(md.design(problem)).get_suptitle()
'Half of the prior is on 2 of 4 secrets'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import networkx as nx
from numpy.typing import ArrayLike

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import as_indices
from mechdesign.base._check import as_integer, require_kind
from mechdesign.base._errors import InputError
from mechdesign.base._names import named
from mechdesign.model._domain import Domain
from mechdesign.synthesis._result import Design

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@in_own_arithmetic
def prior(design: Design) -> Figure:
    """Show the prior of the secrets, on a map or as bars; secrets of probability 0 are hatched.

    Args:
        design: A design.

    Returns:
        The figure.

    Example:
        >>> import mechdesign as md
        >>> problem = md.Problem([0.75, 0.25], [[0, 1], [1, 0]], [md.MetricPrivacy(1, [[0, 1], [1, 0]])])
        >>> prior(md.design(problem)).get_suptitle()
        'Half of the prior is on 1 of 2 secrets'
    """
    require_kind(design, Design, "design", "a Design")
    from mechdesign.report._channel_figures import prior_picture

    return prior_picture(design.problem.prior, design.problem.secrets)


@in_own_arithmetic
def answers(design: Design, count: int = 6) -> Figure:
    """Show the probability of each answer for the most likely secrets.

    Args:
        design: A design.
        count: Maximal number of secrets shown, at least 1.

    Returns:
        The figure, with one panel for each secret.

    Example:
        >>> import mechdesign as md
        >>> problem = md.Problem([0.75, 0.25], [[0, 1], [1, 0]], [md.MetricPrivacy(1, [[0, 1], [1, 0]])])
        >>> len(answers(md.design(problem), count=1).axes)
        1
    """
    require_kind(design, Design, "design", "a Design")
    count = as_integer(count, "count", 1)
    from mechdesign.report._channel_figures import outputs_picture

    problem = design.problem
    return outputs_picture(design.channel.matrix, problem.prior, problem.secrets, problem.observables, count)


@in_own_arithmetic
def errors(design: Design) -> Figure:
    """Show the expected error of the optimal attack for each secret, on a map or as bars, and against the prior.

    Args:
        design: A design.

    Returns:
        The figure.

    Example:
        >>> import mechdesign as md
        >>> problem = md.Problem([0.75, 0.25], [[0, 1], [1, 0]], [md.MetricPrivacy(1, [[0, 1], [1, 0]])])
        >>> errors(md.design(problem)).get_suptitle()[:34]
        'The best attack is off by 0.25 on '
    """
    require_kind(design, Design, "design", "a Design")
    from mechdesign.measures import attack
    from mechdesign.model._problem_words import attack_measure
    from mechdesign.report._channel_figures import error_picture

    problem, found = design.problem, attack_measure(design.problem)
    best = attack.optimal(design.channel, problem.prior, found.matrix)
    return error_picture(best.per_secret, problem.prior, problem.secrets, found.unit)


@in_own_arithmetic
def costs(design: Design) -> Figure:
    """Show the certified cost, its lower bound, and the costs of reference mechanisms on one axis.

    Args:
        design: A design.

    Returns:
        The figure.

    Example:
        >>> import mechdesign as md
        >>> problem = md.Problem([0.75, 0.25], [[0, 1], [1, 0]], [md.MetricPrivacy(1, [[0, 1], [1, 0]])])
        >>> costs(md.design(problem)).axes[0].get_xlabel()
        'cost'
    """
    require_kind(design, Design, "design", "a Design")
    from mechdesign.measures._baselines import baselines, reference_costs
    from mechdesign.model._problem_words import cost_measure
    from mechdesign.report._channel_figures import cost_picture

    problem, proved = design.problem, design.certificate
    return cost_picture(
        proved.cost,
        proved.lower_bound,
        proved.relative_gap,
        reference_costs(problem, baselines(problem)),
        cost_measure(problem).unit,
        " between these anchors" if problem.point_bounds else "",
    )


@in_own_arithmetic
def requirements(design: Design) -> Figure:
    """Show the realised value of each requirement as a share of its nominal value.

    Args:
        design: A design.

    Returns:
        The figure.

    Example:
        >>> import mechdesign as md
        >>> problem = md.Problem([0.75, 0.25], [[0, 1], [1, 0]], [md.MetricPrivacy(1, [[0, 1], [1, 0]])])
        >>> requirements(md.design(problem)).get_suptitle()
        'The requirement holds with room to spare'
    """
    require_kind(design, Design, "design", "a Design")
    from mechdesign.report._channel_figures import requirements_picture
    from mechdesign.report._design_tables import list_requirement_bars

    return requirements_picture(list_requirement_bars(design.problem, design.certificate))


@in_own_arithmetic
def graph(domain: Domain, edges: ArrayLike) -> Figure:
    """Show a policy graph on a map, with its sensitivity hull if the secrets are in the plane.

    Args:
        domain: The secrets, with places along a line or in the plane.
        edges: Pairs of indices of secrets, shape (k, 2), or a networkx graph of secrets.

    Returns:
        The figure.

    Example:
        >>> import mechdesign as md
        >>> graph(md.Domain.grid(2, 1, 2.0, 1.0), [[0, 1]]).get_suptitle()
        '1 edge between 2 secrets, none of them exposed'
    """
    require_kind(domain, Domain, "domain", "a Domain")
    from mechdesign.graphs._builders import from_edges
    from mechdesign.model._graph_nodes import check_graph

    if isinstance(edges, nx.Graph):
        check_graph(edges, domain.size, "edges")
        pairs = list(edges.edges())
    else:
        pairs = list(from_edges(domain.size, named(edges, "edges")).edges())
    from mechdesign.report._graph_figures import policy_picture

    return policy_picture(domain, pairs)


@in_own_arithmetic
def trace(domain: Domain, released: ArrayLike, truth: ArrayLike | None = None) -> Figure:
    """Show a released trace on a map.

    Args:
        domain: The states, with places in the plane.
        released: Indices of the released states, shape (T,).
        truth: Indices of the true states, shape (T,), shown next to the released states. A figure with true states is
            private.

    Returns:
        The figure.

    Raises:
        InputError: If `truth` has another number of steps than `released`.

    Example:
        >>> import mechdesign as md
        >>> trace(md.Domain.grid(2, 1, 2.0, 1.0), [0, 1]).get_suptitle()
        '2 steps released'
    """
    require_kind(domain, Domain, "domain", "a Domain")
    released = as_indices(released, "released", domain.size)
    if truth is not None:
        truth = as_indices(truth, "truth", domain.size)
        if len(truth) != len(released):
            bound = f"{len(released)}, as in released"
            raise InputError("truth", "has another number of steps", value=len(truth), bound=bound)
    from mechdesign.report._trace_figures import trace_picture

    return trace_picture(domain, released, truth)
