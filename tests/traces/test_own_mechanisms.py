"""A function builds a mechanism of one's own in a trace, whose channels are proved before any state is read."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pytest
from refusals import Mistake, assert_refused
from trace_examples import ring, strip

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.mechanisms import Exponential, Laplace, Mechanism, PlanarIsotropic, RandomisedResponse
from mechdesign.mechanisms._kinds import MECHANISMS
from mechdesign.model._channel import Channel
from mechdesign.traces import Trace, compose

HALF = 2**61


def walk(mechanism: Any, **changed: Any) -> Trace:
    model = {"domain": strip(4), "graph": md.graphs.line(4), "epsilon": 1, "transition": ring(4)}
    return Trace(**(model | {"initial": np.full(4, 0.25), "mechanism": mechanism} | changed))


def scaled(factor: Fraction) -> Callable[..., Mechanism]:
    return lambda epsilon, domain, graph, hull: RandomisedResponse.of_graph(epsilon * factor, graph)


class Boast(Mechanism):
    """A mechanism that claims more than its channel keeps, and may have any channel."""

    def __init__(self, channel: Any) -> None:
        self.made, self.epsilon, self.graph, self.nodes = channel, Fraction(1, 100), nx.path_graph(2), np.arange(2)

    def channel(self, observables: Any, within: Any = "map") -> Any:
        return self.made

    def degrees(self) -> dict[int, int]:
        return dict.fromkeys(range(4), 4)

    def level(self) -> float:
        return 0.0


def test_a_function_that_builds_what_a_name_stands_for_gives_the_same_stages() -> None:
    plane = md.Domain.grid(3, 3, 3.0, 3.0)
    for name in ("planar-isotropic", "laplace", "exponential", "geometric", "randomised-response"):
        graph = md.graphs.line(4) if name == "geometric" else md.graphs.complete(9)
        model: dict[str, Any] = {"domain": strip(4), "transition": ring(4), "initial": [0.4, 0.3, 0.2, 0.1]}
        if name != "geometric":
            model = {"domain": plane, "transition": ring(9, 0.2), "initial": np.arange(1, 10) / 45, "delta": 0.2}
        named, own = (
            Trace(graph=graph, epsilon=1, mechanism=given, rng=3, **model) for given in (name, MECHANISMS[name])
        )
        for state in (0, 1, 1, 2):
            one, other = named.step(state), own.step(state)
            assert (one.stage.channel.numerators == other.stage.channel.numerators).all(), name
            assert nx.utils.graphs_equal(one.stage.graph, other.stage.graph), name
            assert one.certificate == other.certificate, name
            assert one.output == other.output, name
            np.testing.assert_array_equal(one.posterior, other.posterior)


def test_a_mechanism_may_use_all_of_epsilon_and_no_more() -> None:
    assert walk(scaled(Fraction(1))).table(1)[0].certificate.epsilon[0] <= 1
    assert walk(scaled(Fraction(1, 2))).table(1)[0].certificate.epsilon[0] <= 0.5
    with pytest.raises(InputError, match="breaks the policy graph"):
        walk(scaled(1 + Fraction(1, 10**10)))


def test_only_the_policy_graph_is_claimed() -> None:
    numerators = np.full((4, 2), HALF)
    (stage,) = walk(PlanarIsotropic).table(1)
    assert stage.degrees.tolist() == [2, 3, 3, 2]
    boast = walk(lambda *_: Boast(Channel(np.hstack([numerators, 0 * numerators]))), epsilon=2)
    (stage,) = boast.table(1)
    assert stage.degrees.tolist() == [2, 3, 3, 2]
    assert compose([stage]).level == 2 * 3
    assert compose([stage]).realised == 0


def test_functions_that_do_not_keep_the_policy_are_refused_before_any_state_is_read() -> None:
    def fails(*_: Any) -> Mechanism:
        raise ZeroDivisionError("no noise")

    whole = np.full((4, 4), 2**60)
    identity = np.diag(np.full(4, 2**62))
    rows: list[tuple[str, Any, str]] = [
        ("another type", lambda *_: np.eye(4), "returns a value of the type ndarray"),
        ("nothing", lambda *_: None, "returns a value of the type NoneType"),
        ("a class", lambda *_: RandomisedResponse, "returns a value of the type ABCMeta"),
        ("raises", fails, "ZeroDivisionError: no noise"),
        ("no arguments", lambda: None, "TypeError"),
        ("no channel", lambda *_: Boast(whole), "has the type ndarray"),
        ("rows", lambda *_: Boast(Channel(whole[:3])), "the shape (3, 4) instead of (4, 4)"),
        ("columns", lambda *_: Boast(Channel(np.full((4, 2), HALF))), "the shape (4, 2) instead of (4, 4)"),
        ("no noise", lambda *_: Boast(Channel(identity)), "breaks the policy graph"),
        ("ε", scaled(Fraction(2)), "breaks the policy graph"),
        ("a number", 3, "or a function"),
        ("a mechanism", RandomisedResponse(1, 4), "or a function"),
    ]
    assert_refused(Mistake(name, lambda given=given: walk(given), "mechanism", says) for name, given, says in rows)
    for given in (Laplace, scaled(Fraction(1))):
        assert_refused([Mistake("coordinates", lambda given=given: walk(given, snap=False), "snap", "a function")])


def test_a_function_that_fails_later_is_refused_before_the_charge() -> None:
    def whole_only(epsilon: Fraction, domain: md.Domain, graph: nx.Graph, hull: Any) -> Mechanism:
        if len(graph) < domain.size:
            raise ValueError("a part")
        return Exponential.of_graph(epsilon, graph)

    ledger = md.Ledger(10)
    ends = np.array([[0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0]])
    trace = walk(whole_only, transition=ends, ledger=ledger)
    trace.step(0)
    spent, belief = ledger.spent, trace.belief
    with pytest.raises(InputError, match="a part"):
        trace.step(1)
    assert ledger.spent == spent
    np.testing.assert_array_equal(trace.belief, belief)


def test_the_name_of_a_function_shows() -> None:
    assert "Laplace" in repr(walk(Laplace))
