"""Frames whose names are the labels of the domain in another order give the result of the arrays in order, everywhere.

The order of the labels is that of a file; pivots and crosstabs of pandas sort their names.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sparse
from frames import Frame, Grid, Table
from refusals import Mistake, assert_refused

import mechdesign as md
from mechdesign.data import Named
from mechdesign.errors import CorrelationWarning, InputError, InputWarning
from mechdesign.graphs._builders import delta_set
from mechdesign.model._markov import VaryingChain, smooth
from mechdesign.model._problem import largest_distortion

NAMES = ("home", "work", "gym", "pub")
AT = np.array([0.0, 1.0, 5.0, 9.0])
APART = np.abs(AT[:, None] - AT)
PLACES = np.column_stack((AT, AT / 4))
WEIGHTS = np.array([0.4, 0.3, 0.2, 0.1])
COUNTS = np.array([8.0, 6.0, 4.0, 2.0])
KINDS = np.array(["private", "office", "leisure", "leisure"], dtype=object)
STEPS = np.array([[6.0, 2, 1, 1], [3, 5, 1, 1], [1, 1, 7, 1], [2, 1, 3, 4]])
CHAIN = STEPS / STEPS.sum(axis=1, keepdims=True)
TOWN = md.Domain.from_labels(NAMES)
MAP = md.Domain.from_points(PLACES, NAMES)
PRIOR = md.Prior(WEIGHTS)
CHANNEL = md.Channel.from_matrix(np.exp(-APART) / np.exp(-APART).sum(axis=1, keepdims=True), NAMES, NAMES)
# Sorted, as pandas sorts: gym, home, pub, work.
ORDER = [NAMES.index(name) for name in sorted(NAMES)]
SORTED = tuple(sorted(NAMES))

Take = Callable[[Any, Any, Any], Any]


def in_order(values: Any, rows: bool, columns: bool) -> Any:
    return np.asarray(values)


def _moved(values: Any, rows: bool, columns: bool) -> Any:
    values = np.asarray(values)
    values = values[ORDER] if rows else values
    return values[:, ORDER] if columns else values


def framed(values: Any, rows: bool, columns: bool) -> Any:
    return Frame(_moved(values, rows, columns), SORTED if rows else None, SORTED if columns else None)


def declared(values: Any, rows: bool, columns: bool) -> Any:
    return Named(_moved(values, rows, columns), SORTED if rows else (), SORTED if columns else ())


def positioned(values: Any, rows: bool, columns: bool) -> Any:
    return Frame(_moved(values, rows, columns), ORDER if rows else None, ORDER if columns else None)


def with_dimensions(values: Any, rows: bool, columns: bool) -> Any:
    taken = (("here", rows), ("there", columns))
    dimensions = {name: SORTED if known else None for name, known in taken[: np.ndim(values)]}
    return Grid(_moved(values, rows, columns), **dimensions)


def uneven(values: np.ndarray) -> np.ndarray:
    """Return values that are not symmetric, so that an exchange of rows and columns would be seen."""
    return values + np.arange(values.size).reshape(values.shape) / 8 * (values > 0)


def designed(*requirements: Any, prior: Any = PRIOR, cost: Any = APART, secrets: Any = TOWN, **more: Any) -> Any:
    problem = md.Problem(prior, cost, [*requirements], secrets=secrets, observables=TOWN, **more)
    return md.design(problem).channel.matrix


def required(requirement: md.model.Requirement) -> list[Any]:
    problem = md.Problem(PRIOR, APART, [requirement], secrets=TOWN, observables=TOWN)
    return [array for stated in problem.stated for _, array in sorted(stated.arrays.items())]


def problem_of(**given: Any) -> list[Any]:
    found = md.Problem(
        given.get("prior", PRIOR), given.get("cost", APART), given.get("asked", []), secrets=TOWN, observables=TOWN
    )
    return [found.prior, found.cost]


def audited(channel: Any, **given: Any) -> list[Any]:
    found = md.audit(channel, **given)
    return [found.epsilon, found.cost, found.matrix, found.prior, found.error, found.bound.weights]


def traced(**given: Any) -> list[Any]:
    asked = {"transition": CHAIN, "initial": WEIGHTS, "cost": APART} | given
    made = md.traces.Trace(TOWN, nx.complete_graph(4), 1, mechanism="exponential", **asked)
    return [made.transition.matrix, made.initial.probabilities, made.table(1)[0].channel.matrix]


def related(forward: Any, backward: Any) -> list[Any]:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = md.leakage.temporal([0.1, 0.2, 0.1], backward, forward)
    return [found, [each.category for each in said]]


def regional(graph: nx.Graph, **given: Any) -> md.Problem:
    return md.graphs.problem(graph=graph, epsilon=1, domain=TOWN, **given)


def observed(take: Take) -> list[Any]:
    trace = md.traces.Trace(TOWN, nx.complete_graph(4), 1, CHAIN, WEIGHTS, mechanism="exponential", cost=APART, rng=1)
    trace.observe(take(np.log(WEIGHTS), True, False))
    return [trace.table(1)[0].prior]


ATTACKS = ("optimal", "bayes", "prior_free", "minimax")
GROUP = nx.path_graph([0, 2, 3])

# Each door is called with `take`, which passes an array in the order of the labels, or gives it names.
DOORS: dict[str, Callable[[Take], Any]] = {
    "metric privacy": lambda take: designed(md.MetricPrivacy(1, take(APART, True, True))),
    "metric privacy, not symmetric": lambda take: required(md.MetricPrivacy(1, take(uneven(APART), True, True))),
    "threshold privacy": lambda take: required(md.ThresholdPrivacy(1, take(APART, True, True), radius=1.5)),
    "distortion privacy": lambda take: required(md.DistortionPrivacy(0.5, take(uneven(APART), True, True))),
    "distortion of two estimates": lambda take: required(md.DistortionPrivacy(0.1, take(APART[:2], False, True))),
    "an adversary's prior": lambda take: required(
        md.DistortionPrivacy(0.5, take(APART, True, True), prior=take(WEIGHTS, True, False))
    ),
    "an adversary's prior alone": lambda take: required(
        md.DistortionPrivacy(0.5, APART, prior=take(WEIGHTS, True, False))
    ),
    "adversaries' priors": lambda take: required(
        md.DistortionPrivacy(0.1, take(APART, True, True), [take(WEIGHTS, True, False), take(COUNTS / 20, True, False)])
    ),
    "largest distortion": lambda take: float(
        largest_distortion(take(WEIGHTS, True, False), take(uneven(APART), True, True))
    ),
    "cost": lambda take: problem_of(cost=take(uneven(APART), True, True)),
    "rows of the cost": lambda take: (
        md.Problem(PRIOR, take(APART[:, :2], True, False), [], secrets=TOWN, observables=TOWN.part([0, 1])).cost
    ),
    "cost without a domain of answers": lambda take: (
        md.Problem(PRIOR, take(uneven(APART), True, True), [], secrets=TOWN).cost
    ),
    "prior": lambda take: problem_of(prior=take(WEIGHTS, True, False)),
    "a prior of its own": lambda take: problem_of(prior=md.Prior(take(WEIGHTS, True, False))),
    "counts": lambda take: problem_of(prior=md.Prior.from_counts(take(COUNTS, True, False))),
    "smoothed counts": lambda take: problem_of(prior=md.Prior.from_counts(take(COUNTS, True, False), 0.5)),
    "all of a problem": lambda take: designed(
        md.MetricPrivacy(1, take(APART, True, True)),
        md.DistortionPrivacy(0.5, take(APART, True, True)),
        prior=take(WEIGHTS, True, False),
        cost=take(APART, True, True),
    ),
    "channel": lambda take: md.Channel.from_matrix(take(CHANNEL.matrix, True, True), NAMES, NAMES).numerators,
    "audit: distances": lambda take: audited(CHANNEL, distance=take(uneven(APART), True, True)),
    "audit: channel": lambda take: audited(take(CHANNEL.matrix, True, False), distance=APART, secrets=TOWN),
    "audit: all": lambda take: audited(
        take(CHANNEL.matrix, True, True),
        distance=take(APART, True, True),
        prior=take(WEIGHTS, True, False),
        cost=take(uneven(APART), True, True),
        error=take(uneven(APART), True, True),
        secrets=TOWN,
    ),
    **{
        f"attack: {name}": lambda take, name=name: [
            getattr(md.attack, name)(
                CHANNEL,
                take(WEIGHTS, True, False),
                take(uneven(APART), True, True),
                truth=take(COUNTS / 20, True, False),
            ).per_secret
        ]
        for name in ATTACKS
    },
    "Euclidean error": lambda take: md.measures.euclidean_error(
        CHANNEL, take(WEIGHTS, True, False), take(PLACES, True, False)
    ),
    "mismatch": lambda take: md.measures.mismatch_error(CHANNEL, PRIOR, take(KINDS, True, False)),
    "mismatch of answers": lambda take: md.measures.mismatch_error(
        CHANNEL, PRIOR, KINDS.tolist(), observables=take(KINDS, True, False)
    ),
    "graphs.problem": lambda take: [
        (found := regional(GROUP, prior=take(WEIGHTS, True, False), cost=take(APART, True, True))).prior,
        found.cost,
    ],
    "graphs.problem with a requirement": lambda take: (
        regional(
            nx.complete_graph(4), prior=PRIOR, cost=APART, requirements=[md.MetricPrivacy(1, take(APART, True, True))]
        )
        .requirements[0]
        .distance
    ),
    "chain of a trace": lambda take: traced(transition=take(CHAIN, True, True)),
    "counted chain of a trace": lambda take: traced(
        transition=md.MarkovChain.from_counts(take(STEPS, True, True), ends="stay")
    ),
    "varying chain of a trace": lambda take: [
        md.traces.Trace(
            TOWN,
            nx.complete_graph(4),
            1,
            VaryingChain.of([take(CHAIN, True, True), take(CHAIN, True, True)]),
            PRIOR,
            mechanism="exponential",
            cost=APART,
        )
        .transition.at(1)
        .matrix
    ],
    "first state of a trace": lambda take: traced(initial=take(WEIGHTS, True, False)),
    "cost of a trace": lambda take: traced(cost=take(APART, True, True)),
    "what a trace observes": observed,
    "a reversed chain": lambda take: traced(
        transition=md.MarkovChain(take(CHAIN, True, True)).reverse(take(WEIGHTS, True, False))
    ),
}


def same(found: Any, right: Any) -> bool:
    if isinstance(right, list | tuple):
        return len(found) == len(right) and all(same(one, other) for one, other in zip(found, right, strict=True))
    if right is None or isinstance(right, type):
        return found is right
    # Sums in another order round differently.
    return bool(np.allclose(found, right, rtol=1e-12, atol=1e-300))


@pytest.mark.filterwarnings("ignore::mechdesign.errors.InputWarning", "ignore::mechdesign.errors.MetricWarning")
@pytest.mark.parametrize("take", [framed, declared, positioned, with_dimensions])
def test_names_in_another_order_change_nothing(take: Take) -> None:
    for name, door in DOORS.items():
        assert same(door(take), door(in_order)), name


def named(rows: Any, columns: Any = None) -> Take:
    """Return a function that gives arrays these names, without moving them."""
    of_columns = rows if columns is None else columns
    return lambda values, by_row, by_column: Frame(values, rows if by_row else None, of_columns if by_column else None)


FOREIGN: dict[str, Take] = {
    "another spelling": named(["home", "work", "Gym", "pub"]),
    "padded": named(["home", "work", "gym ", "pub"]),
    "a name twice": named(["home", "work", "gym", "gym"]),
    "other names": named(["a", "b", "c", "d"]),
    "counted from 1": named([1, 2, 3, 4]),
    "identifiers": named([7, 11, 13, 17]),
    "a position twice": named([0, 1, 1, 3]),
    "numbers": named([0.5, 1.5, 2.5, 3.5]),
    "a name missing": named(["home", "work", "gym", None]),
    "two levels": named([("a", "home"), ("a", "work"), ("b", "gym"), ("b", "pub")]),
}


@pytest.mark.parametrize("wrong", FOREIGN)
def test_names_that_are_no_labels_are_refused(wrong: str) -> None:
    assert_refused(
        Mistake(f"{wrong}: {name}", lambda door=door: door(FOREIGN[wrong]), error=InputError)
        for name, door in DOORS.items()
        if name != "largest distortion"
    )


def test_names_of_one_axis_in_another_order_are_refused() -> None:
    """A pivot without its index, or a frame that was written without it."""
    for take in (named(SORTED, range(4)), named(range(4), SORTED)):
        rows = {
            "metric": lambda take=take: required(md.MetricPrivacy(1, take(APART, True, True))),
            "threshold": lambda take=take: required(md.ThresholdPrivacy(1, take(APART, True, True), radius=2)),
            "distortion": lambda take=take: required(md.DistortionPrivacy(0.5, take(APART, True, True))),
            "cost": lambda take=take: problem_of(cost=take(APART, True, True)),
            "cost alone": lambda take=take: md.Problem(PRIOR, take(APART, True, True), [], secrets=TOWN),
            "distances of an audit": lambda take=take: audited(CHANNEL, distance=take(APART, True, True)),
            "errors": lambda take=take: md.attack.optimal(CHANNEL, PRIOR, take(APART, True, True)),
            "chain": lambda take=take: traced(transition=take(CHAIN, True, True)),
            "counts": lambda take=take: md.MarkovChain.from_counts(take(STEPS, True, True)),
            "loss": lambda take=take: md.leakage.LossFunction(take(CHAIN, True, True)),
        }
        assert_refused(Mistake(name, make, error=InputError) for name, make in rows.items())


def test_names_without_labels_to_match_are_refused() -> None:
    """Where nothing tells the labels, names are no use, and positions may be wrong."""
    unnamed = md.Channel.from_matrix(CHANNEL.matrix)
    grid = md.Domain.grid(2, 2, 2.0, 2.0)
    frame, series = framed(APART, True, True), framed(WEIGHTS, True, False)
    calls: dict[str, Callable[[], object]] = {
        "errors": lambda: md.attack.optimal(unnamed, WEIGHTS, frame),
        "belief": lambda: md.attack.optimal(unnamed, series, APART),
        "distances of an audit": lambda: md.audit(unnamed, distance=frame),
        "places": lambda: md.measures.euclidean_error(unnamed, WEIGHTS, framed(PLACES, True, False)),
        "kinds": lambda: md.measures.mismatch_error(unnamed, WEIGHTS, framed(KINDS, True, False)),
        "likely secrets": lambda: delta_set(series, 0.1),
        "threshold": lambda: md.graphs.threshold(distance=frame, radius=2),
        "transitions": lambda: md.graphs.transitions(framed(CHAIN, True, True)),
        "categories": lambda: md.graphs.categories(framed(KINDS, True, False)),
        "regions": lambda: md.graphs.categories(KINDS.tolist(), framed(KINDS, True, False)),
        "a grid": lambda: md.Problem(WEIGHTS, frame, [], secrets=grid),
        "distances on a grid": lambda: md.Problem(WEIGHTS, APART, [md.MetricPrivacy(1, frame)], secrets=grid),
        "a prior on a grid": lambda: md.Problem(series, APART, [], secrets=grid),
        "a channel on a grid": lambda: md.audit(framed(CHANNEL.matrix, True, False), distance=APART, secrets=grid),
        "distances": lambda: md.distances.matrix(frame),
        "exponential mechanism": lambda: md.mechanisms.Exponential(1, frame),
        "expected errors": lambda: md.traces.Adversary(CHAIN, WEIGHTS).watch([]).expected_error(frame),
    }
    assert_refused(Mistake(name, make, error=InputError) for name, make in calls.items())


def test_integers_are_refused_where_they_may_be_labels_in_another_order() -> None:
    """A pivot of identifiers sorts them, and a file has them in its own order."""
    shops = md.Domain.from_labels(["3", "1", "0", "2"])
    for index in (range(4), [2, 0, 3, 1], ORDER):
        frame, series = Frame(APART, index, index), Frame(WEIGHTS, index)
        calls: dict[str, Callable[[], object]] = {
            "cost": lambda frame=frame: md.Problem(PRIOR, frame, [], secrets=shops),
            "metric": lambda frame=frame: md.Problem(PRIOR, APART, [md.MetricPrivacy(1, frame)], secrets=shops),
            "threshold": lambda frame=frame: md.Problem(
                PRIOR, APART, [md.ThresholdPrivacy(1, frame, radius=2)], secrets=shops
            ),
            "distortion": lambda frame=frame: md.Problem(PRIOR, APART, [md.DistortionPrivacy(1, frame)], secrets=shops),
            "prior": lambda series=series: md.Problem(md.Prior(series), APART, [], secrets=shops),
            "counts": lambda series=series: md.Problem(md.Prior.from_counts(series), APART, [], secrets=shops),
            "audit": lambda frame=frame: md.audit(CHANNEL.matrix, distance=frame, secrets=shops),
        }
        assert_refused(Mistake(name, make, says="another order", error=InputError) for name, make in calls.items())
    as_texts = Frame(APART[np.ix_(ORDER, ORDER)], list("0213"), list("0213"))
    asked = md.Problem(PRIOR, as_texts, [md.MetricPrivacy(1, as_texts)], secrets=shops)
    assert (asked.cost == asked.requirements[0].distance).all()
    assert (asked.cost == as_texts.values[np.ix_([3, 2, 0, 1], [3, 2, 0, 1])]).all()


def test_positions_in_another_order_are_positions_of_graphs() -> None:
    near = md.graphs.threshold(distance=positioned(APART, True, True), radius=2)
    assert nx.utils.graphs_equal(near, md.graphs.threshold(distance=APART, radius=2))
    steps = md.graphs.transitions(positioned(CHAIN, True, True))
    assert nx.utils.graphs_equal(steps, md.graphs.transitions(CHAIN))
    alike = md.graphs.categories(positioned(KINDS, True, False))
    assert nx.utils.graphs_equal(alike, md.graphs.categories(KINDS.tolist()))


@pytest.mark.filterwarnings("ignore::mechdesign.errors.InputWarning", "ignore::mechdesign.errors.MetricWarning")
def test_without_a_domain_names_are_matched_with_each_other() -> None:
    """The first names count: of the prior, of the cost, or of a requirement."""
    found = md.Problem(
        Frame(WEIGHTS, NAMES), framed(APART, True, True), [md.MetricPrivacy(1, framed(uneven(APART), True, True))]
    )
    assert (found.cost == APART).all()
    assert (found.requirements[0].distance == uneven(APART)).all()
    by_cost = md.Problem(WEIGHTS, Frame(APART, NAMES, NAMES), [md.MetricPrivacy(1, framed(uneven(APART), True, True))])
    assert (by_cost.requirements[0].distance == uneven(APART)).all()
    other = Frame(APART, ["a", "b", "c", "d"], ["a", "b", "c", "d"])
    with pytest.raises(InputError, match="is no label"):
        md.Problem(Frame(WEIGHTS, NAMES), other, [])


def test_places_take_their_labels_from_a_frame() -> None:
    found = md.Domain.from_points(framed(PLACES, True, False))
    assert found.labels == SORTED
    assert (found.points == PLACES[ORDER]).all()
    assert md.Domain.from_coordinates(framed(AT, True, False), Frame(AT, NAMES)).labels == SORTED
    assert (md.Domain.from_points(framed(PLACES, True, False), NAMES).points == PLACES).all()
    for names in (["home", "work", "gym", "Pub"], ["home", "work", "gym", None], ["home", "home", "gym", "pub"]):
        with pytest.raises(InputError, match="points"):
            md.Domain.from_points(Frame(PLACES, names), NAMES)
    # Rows that were selected keep their numbers in pandas.
    assert md.Domain.from_points(Frame(PLACES, [3, 7, 9, 12])).labels == ("0", "1", "2", "3")


def test_the_place_of_a_requirement_is_named() -> None:
    wrong = md.MetricPrivacy(1, Frame(APART, "abcd", "abcd"))
    with pytest.raises(InputError) as caught:
        md.Problem(PRIOR, APART, [md.MetricPrivacy(1, APART), wrong], secrets=TOWN, observables=TOWN)
    assert caught.value.path == "requirements[1].distance"


def test_a_channel_takes_its_labels_from_a_frame() -> None:
    found = md.Channel.from_matrix(framed(CHANNEL.matrix, True, True))
    assert found.secrets == found.observables == SORTED
    assert same(found.matrix, CHANNEL.matrix[np.ix_(ORDER, ORDER)])
    # Its labels are then those of the secrets for everything that meets it.
    audited = md.audit(found, distance=Frame(APART, NAMES, NAMES))
    assert same(audited.epsilon, md.audit(CHANNEL, distance=APART).epsilon)
    assert md.attack.optimal(found, Frame(WEIGHTS, NAMES), Frame(APART, NAMES, NAMES)).distortion == pytest.approx(
        md.attack.optimal(CHANNEL, WEIGHTS, APART).distortion, rel=1e-12
    )


def test_a_channel_with_labels_is_matched_with_the_domain() -> None:
    found = md.Channel.from_matrix(framed(CHANNEL.matrix, True, True))
    assert same(md.audit(found, distance=APART, secrets=TOWN).epsilon, md.audit(CHANNEL, distance=APART).epsilon)
    assert md.measures.euclidean_error(found, Frame(WEIGHTS, NAMES), MAP) == pytest.approx(
        md.measures.euclidean_error(CHANNEL, PRIOR, MAP), rel=1e-12
    )
    with pytest.raises(InputError, match="is no label"):
        md.audit(CHANNEL, distance=APART, secrets=md.Domain.from_labels(list("abcd")))


def test_forward_and_backward_chains_are_matched_with_each_other() -> None:
    chain = md.MarkovChain(CHAIN)
    backward = chain.reverse(chain.stationary()).matrix
    right = related(CHAIN, backward)
    assert right[1] == []
    assert related(framed(CHAIN, True, True), Frame(backward, NAMES, NAMES)) == [pytest.approx(right[0]), []]
    assert related(framed(CHAIN, True, True), backward)[1] == [CorrelationWarning]
    with pytest.raises(InputError, match="forward: has a name that is no label"):
        related(Frame(CHAIN, "abcd", "abcd"), Frame(backward, NAMES, NAMES))


@pytest.mark.filterwarnings("ignore::mechdesign.errors.InputWarning")
def test_names_of_a_chain_follow_it() -> None:
    chain = md.MarkovChain.from_counts(framed(STEPS, True, True), smoothing=1)
    for each in (chain, chain.unsmoothed(), chain.reverse(framed(WEIGHTS, True, False)), smooth(chain, 0.1)):
        assert each.names == SORTED
    assert chain.stationary().names == SORTED


def test_names_beside_an_array_are_its_names() -> None:
    """They travel with `dataclasses.replace`, and are neither too few nor those of another order."""
    values = {"prior": WEIGHTS, "chain": CHAIN, "distance": APART, "floor": APART}
    makes: dict[str, Callable[..., Any]] = {
        "prior": md.Prior, "chain": md.MarkovChain, "distance": partial(md.MetricPrivacy, 1),
        "floor": partial(md.ThresholdPrivacy, 1, radius=2),
    }  # fmt: skip
    wrong: dict[str, Callable[[], object]] = {}
    for name, make in makes.items():
        plain = values[name]
        frame = Frame(plain[ORDER], SORTED) if plain.ndim == 1 else framed(plain, True, True)
        assert (make(plain, names=NAMES).names, make(frame, names=SORTED).names) == (NAMES, SORTED)
        for other in (NAMES[:3], (2, 0, 1, 3), (7, 8, 9, 10), ("home",) * 4):
            wrong[f"{name}: {other}"] = lambda make=make, plain=plain, other=other: make(plain, names=other)
        wrong[f"{name}: another order"] = lambda make=make, frame=frame: make(frame, names=NAMES)
    assert_refused(Mistake(name, make, error=InputError) for name, make in wrong.items())
    counts = Frame(CHAIN[np.ix_(ORDER, ORDER)], SORTED, SORTED)
    found = replace(md.MarkovChain(Frame(CHAIN, NAMES, NAMES), counts=counts), smoothing=1.0)
    assert same(found.counts, CHAIN)
    assert found.reverse(WEIGHTS).names == found.stationary().names == found.unsmoothed().names == NAMES


def test_a_note_is_given_once_where_an_exchange_of_rows_and_columns_would_not_be_seen() -> None:
    cost = uneven(APART)
    for given, notes in (
        (framed(cost, True, True), 1),
        (declared(cost, True, True), 1),
        (framed(APART, True, True), 0),
        (Frame(cost, NAMES, NAMES, ("secret", "observable")), 0),
        (Grid(cost, secret=NAMES, observable=NAMES), 0),
        (cost, 0),
    ):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            md.Problem(PRIOR, given, [], secrets=TOWN, observables=TOWN)
        assert [each.category for each in said] == [InputWarning] * notes
    exchanged = md.Problem(PRIOR, Grid(cost.T, observable=NAMES, secret=NAMES), [], secrets=TOWN, observables=TOWN)
    assert (exchanged.cost == cost).all()


SPARSE: dict[str, Callable[[Any], object]] = {
    "chain": lambda given: md.MarkovChain(given),
    "counts of a chain": lambda given: md.MarkovChain.from_counts(given),
    "audit": lambda given: md.audit(given, distance=APART),
    "distances of an audit": lambda given: md.audit(CHANNEL, distance=given),
    "channel": lambda given: md.Channel.from_matrix(given),
    "metric": lambda given: md.MetricPrivacy(1, given),
    "threshold": lambda given: md.ThresholdPrivacy(1, given, radius=1),
    "distortion": lambda given: md.DistortionPrivacy(0.1, given),
    "cost": lambda given: md.Problem(PRIOR, given, []),
    "attack": lambda given: md.attack.optimal(given, PRIOR, APART),
    "errors": lambda given: md.attack.optimal(CHANNEL, PRIOR, given),
    "places": lambda given: md.Domain.from_points(given),
    "transition of a trace": lambda given: traced(transition=given),
    "exponential": lambda given: md.mechanisms.Exponential(1, given),
}


def test_sparse_arrays_are_taken_or_refused_with_the_way_out() -> None:
    for kind in (sparse.csr_array, sparse.coo_matrix):
        given = kind(CHAIN)
        assert_refused(
            Mistake(name, partial(call, given), says="toarray()", error=InputError) for name, call in SPARSE.items()
        )
        assert md.leakage.LossFunction(kind(CHAIN))(1.0) == md.leakage.LossFunction(CHAIN)(1.0)
        assert nx.utils.graphs_equal(md.graphs.transitions(kind(CHAIN)), md.graphs.transitions(CHAIN))


def test_a_frame_with_a_column_of_names_is_refused_with_the_way_out() -> None:
    cells = np.column_stack((np.array(SORTED, dtype=object), APART[np.ix_(ORDER, ORDER)]))
    with pytest.raises(InputError, match="set_index"):
        md.MetricPrivacy(1, Table(cells, ["place", *SORTED]))


def test_a_requirement_keeps_its_names_until_it_meets_the_labels() -> None:
    asked = md.MetricPrivacy(1, framed(APART, True, True))
    assert asked.names == SORTED
    assert asked.restrict(np.array([0, 2])).names == ("gym", "pub")
    given = md.Problem(PRIOR, APART, [asked], secrets=TOWN, observables=TOWN)
    assert (given.requirements[0].distance == APART).all()
    # The requirement itself is unchanged, and fits another domain.
    assert (asked.distance == APART[np.ix_(ORDER, ORDER)]).all()
    again = md.Problem(WEIGHTS[ORDER], APART, [asked], secrets=md.Domain.from_labels(SORTED))
    assert (again.requirements[0].distance == asked.distance).all()


@pytest.mark.filterwarnings("ignore::mechdesign.errors.InputWarning")
def test_an_own_prior_of_a_floor_follows_its_errors() -> None:
    """A prior that was sorted like the errors is sorted again where both meet the domain."""
    right = required(md.DistortionPrivacy(0.1, uneven(APART), prior=WEIGHTS))
    for take in (framed, declared):
        for prior in (WEIGHTS, take(WEIGHTS, True, False), Frame(WEIGHTS, NAMES)):
            found = required(md.DistortionPrivacy(0.1, take(uneven(APART), True, True), prior=prior))
            assert all(same(one, other) for one, other in zip(found, right, strict=True))


def test_a_belief_follows_its_chain() -> None:
    belief = md.traces.Adversary(framed(CHAIN, True, True), Frame(WEIGHTS, NAMES)).initial
    assert belief.names == SORTED
    assert same(belief.probabilities, WEIGHTS[ORDER])


def test_answers_that_are_secrets_follow_the_rows_of_an_audited_channel() -> None:
    matrix, cost = CHANNEL.matrix, uneven(APART)
    right = md.audit(matrix, APART, cost=cost, prior=WEIGHTS).cost
    for channel in (framed(matrix, True, True), md.Channel.from_matrix(framed(matrix, True, True))):
        assert same(md.audit(channel, APART, cost=cost, prior=WEIGHTS, secrets=TOWN).cost, right)
    rows = framed(matrix, True, False)
    by_name = {"distance": Frame(APART, NAMES, NAMES), "cost": Frame(APART, NAMES, NAMES)}
    calls: dict[str, Callable[[], object]] = {
        "costs": lambda: md.audit(rows, APART, cost=cost, secrets=TOWN),
        "costs by name": lambda: md.audit(rows, **by_name),
        "lengths": lambda: md.measures.euclidean_error(rows, WEIGHTS, MAP),
    }
    assert_refused(Mistake(name, make, says="names for one axis", error=InputError) for name, make in calls.items())
    assert same(md.audit(rows, APART, secrets=TOWN).epsilon, md.audit(matrix, APART).epsilon)


def test_kinds_follow_the_columns_of_a_channel() -> None:
    right = md.measures.mismatch_error(CHANNEL.matrix, WEIGHTS, NAMES)
    for rows, columns in ((NAMES, SORTED), (SORTED, NAMES), (SORTED, SORTED)):
        places = [[NAMES.index(name) for name in names] for names in (rows, columns)]
        channel = Frame(CHANNEL.matrix[np.ix_(*places)], rows, columns)
        assert md.measures.mismatch_error(channel, Frame(WEIGHTS, NAMES), rows) == pytest.approx(right, rel=1e-12)


def test_names_stay_with_the_result_without_a_domain() -> None:
    frame = Frame(uneven(APART), SORTED, ["a", "b", "c", "d"])
    problem = md.Problem(Frame(WEIGHTS, NAMES), frame, [])
    assert (problem.secrets.labels, problem.observables.labels) == (NAMES, ("a", "b", "c", "d"))
    assert md.Problem(WEIGHTS, APART, []).secrets is None


def test_places_and_priors_of_one_frame_have_one_order() -> None:
    places = md.Domain.from_points(Frame(PLACES[ORDER], ORDER))
    assert (places.points == PLACES).all()
    assert same(md.Prior(Frame(WEIGHTS[ORDER], ORDER)).probabilities, WEIGHTS)


def test_names_within_lists_are_refused() -> None:
    rows = [Frame(row, NAMES) for row in APART]
    calls: dict[str, Callable[[], object]] = {
        "cost": lambda: md.Problem(PRIOR, rows, []),
        "distance": lambda: md.MetricPrivacy(1, rows),
        "channel": lambda: md.audit(rows, APART),
        "chain": lambda: md.MarkovChain(rows),
        "tuple": lambda: md.attack.optimal(CHANNEL, PRIOR, tuple(rows)),
    }
    assert_refused(Mistake(name, make, says="within a list", error=InputError) for name, make in calls.items())


def test_pairs_of_arrays_with_names_in_two_orders_are_refused() -> None:
    """Numbers of selected rows are no names, so nothing pairs two series that have them in two orders."""
    north, east = np.array([46.0, 46.1, 46.2]), np.array([7.0, 7.1, 7.2])
    right = md.Domain.from_coordinates(north, east).coordinates
    for index in ([2, 1, 0], [5, 7, 9], list("abc")):
        found = md.Domain.from_coordinates(Frame(north, index), Frame(east, index)).coordinates
        assert sorted(map(tuple, found)) == list(map(tuple, right))
    calls: dict[str, Callable[[], object]] = {
        str(pair): lambda pair=pair: md.Domain.from_coordinates(Frame(north, pair[0]), Frame(east, pair[1]))
        for pair in (([5, 7, 9], [9, 7, 5]), ([1, 2, 3], [0, 1, 2]), ([2, 1, 0], [5, 7, 9]))
    }
    assert_refused(Mistake(name, make, says="has another index", error=InputError) for name, make in calls.items())


def test_visits_weights_and_costs_have_one_index() -> None:
    box = md.Domain.anchors(columns=2, rows=2, width=1.0, height=1.0)
    near, weights = [md.ContinuousPrivacy(1, box)], [0.5, 0.3, 0.2]
    visits = Frame(np.array([[0.0, 0.5], [0.25, 1.0], [1.0, 0.5]]), "abc")
    right = md.Problem.from_visits(visits, box, near, weights=weights).prior
    assert same(md.Problem.from_visits(visits, box, near, weights=Frame(weights, "abc")).prior, right)
    calls: dict[str, Callable[[], object]] = {
        "weights": lambda: md.Problem.from_visits(visits, box, near, weights=Frame(weights, "bac")),
        "rows": lambda: md.Problem.from_visits(Frame(visits.values, [0, 2, 1]), box, near, weights=Frame(weights)),
        "cost": lambda: md.Problem.from_visits(visits, box, near, cost=Frame(np.ones((3, 4)), "cba")),
        "floor": lambda: md.DistortionPrivacy.from_visits(1, visits, box, weights=Frame(weights, "acb"), believed=True),
    }
    assert_refused(Mistake(name, make, says="has another index", error=InputError) for name, make in calls.items())


def test_kinds_do_not_follow_a_channel_that_names_its_rows_only() -> None:
    rows = framed(CHANNEL.matrix, True, False)
    labels = Frame(KINDS, NAMES)
    calls: dict[str, Callable[[], object]] = {
        "labels": lambda: md.measures.mismatch_error(rows, WEIGHTS, labels),
        "prior": lambda: md.measures.mismatch_error(rows, Frame(WEIGHTS, NAMES), KINDS),
    }
    assert_refused(Mistake(name, make, says="names for one axis", error=InputError) for name, make in calls.items())
    same_order = Frame(CHANNEL.matrix, NAMES)
    right = md.measures.mismatch_error(CHANNEL.matrix, WEIGHTS, KINDS)
    assert same(md.measures.mismatch_error(same_order, Frame(WEIGHTS, NAMES), labels), right)


def test_names_behind_the_first_of_a_list_are_refused() -> None:
    plain, turned = APART.tolist(), Frame(APART[1][ORDER], SORTED)
    calls: dict[str, Callable[[], object]] = {
        "second": lambda: md.Problem(PRIOR, [plain[0], turned, *plain[2:]], []),
        "named": lambda: md.Problem(PRIOR, [Named(row, NAMES) for row in APART], []),
        "distance": lambda: md.MetricPrivacy(1, (*plain[:3], turned)),
    }
    assert_refused(Mistake(name, make, says="within a list", error=InputError) for name, make in calls.items())


def test_names_of_xarray_count_by_dimension() -> None:
    """A variable has dimensions only; texts along a dimension that are not its own coordinate are refused."""
    cost, channel = uneven(APART), Grid(np.asarray(uneven(APART)).T, observable=None, secret=None)
    del channel.coords
    assert (md.Problem(PRIOR, channel, [], secrets=TOWN).cost == cost).all()
    beside = Grid(WEIGHTS[ORDER], secret=None)
    beside.coords = {"name": Grid(np.array(SORTED, dtype=object), secret=None)}
    calls = {"prior": lambda: md.Prior(beside)}
    assert_refused(Mistake(name, make, says="swap_dims", error=InputError) for name, make in calls.items())
