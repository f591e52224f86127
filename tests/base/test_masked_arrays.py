"""Masked arrays are refused wherever arrays are taken: what lies under a mask would pass for what was given."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rows import each_row

import mechdesign as md
from mechdesign import tables as blowfish
from mechdesign.base._check import require_unmasked
from mechdesign.errors import InputError
from mechdesign.graphs._builders import delta_set, membership
from mechdesign.graphs._exposure import hull_between, hulls_between
from mechdesign.tables._domain import Domain
from mechdesign.tables._policy import Policy
from mechdesign.tables._sensitivity._sensitivity import sensitivity

masked = np.ma.masked
weights = np.ma.array([0.5, 0.25, 0.25], mask=[0, 1, 0])
square = np.ma.array(np.full((3, 3), 1 / 3), mask=np.eye(3))
numbers = np.ma.array([0, 1, 2], mask=[1, 0, 0])
# Nothing is hidden, and yet something may be: whoever writes it means to hide.
open_mask = np.ma.array(np.eye(3))

cells = md.Domain.grid(3, 1, 3.0, 1.0)
prior = md.Prior.uniform(3)
chain = md.MarkovChain(np.full((3, 3), 1 / 3))
channel = md.Channel.from_matrix(np.full((3, 3), 1 / 3))
policy = Policy.full(Domain({"a": range(3)}))


def trace() -> md.traces.Trace:
    return md.traces.Trace(cells, md.graphs.complete(3), 1.0, chain, prior, mechanism="lp")


def histogram(table: Any) -> object:
    return blowfish.Histogram().release(table, policy, epsilon=1.0)


TAKEN: dict[str, tuple[str, Callable[[], object]]] = {
    "prior": ("prior", lambda: md.Prior(weights)),
    "counts of a prior": ("counts", lambda: md.Prior.from_counts(weights)),
    "chain": ("matrix", lambda: md.MarkovChain(square)),
    "trace of a chain": ("traces[0]", lambda: md.MarkovChain.from_traces([[0, masked, 1]], 3)),
    "initial": ("initial", lambda: chain.reverse(weights)),
    "secrets": ("secret", lambda: channel.sample(numbers)),
    "channel": ("matrix", lambda: md.Channel.from_matrix(square)),
    "numerators": ("numerators", lambda: md.Channel(np.ma.array([[2**62]]))),
    "points": ("points", lambda: md.Domain.from_points(open_mask[:, :2])),
    "place": ("x", lambda: cells.cell_of(weights, weights)),
    "one place": ("y", lambda: cells.cell_of(0.5, masked)),
    "cost": ("cost", lambda: md.Problem(prior, square, [])),
    "distance": ("distance", lambda: md.MetricPrivacy(1.0, square)),
    "error": ("distance", lambda: md.DistortionPrivacy(0.1, square)),
    "belief": ("prior", lambda: md.DistortionPrivacy(0.1, np.ones((3, 3)), prior=weights)),
    "audit": ("matrix", lambda: md.audit(square)),
    "budgets": ("epsilons", lambda: md.leakage.temporal(weights, None, chain)),
    "correlation": ("forward", lambda: md.leakage.constant_budget(1.0, None, square)),
    "one budget": ("epsilon", lambda: md.leakage.Accountant(1.0, None, chain).release(masked)),
    "transition": ("transition", lambda: md.traces.Trace(cells, md.graphs.complete(3), 1.0, square, prior)),
    "initial of a trace": ("initial", lambda: md.traces.Trace(cells, md.graphs.complete(3), 1.0, chain, weights)),
    "likelihood": ("log_likelihood", lambda: trace().observe(weights)),
    "column": ("data['a']", lambda: histogram({"a": numbers})),
    "listed column": ("data['a']", lambda: histogram({"a": [0, masked]})),
    "column of objects": ("data['a']", lambda: histogram({"a": np.array([0, masked, 1], dtype=object)})),
    "records": ("data['a']", lambda: histogram([(0,), (masked,)])),
    "numbers of values": ("data", lambda: histogram(numbers)),
    "structured": ("data['a']", lambda: histogram(np.ma.array([(0,)], dtype=[("a", int)], mask=[(1,)]))),
    "queries": ("queries", lambda: blowfish.Linear(numbers).release({"a": [0, 1]}, policy, epsilon=1.0)),
    "query": ("query", lambda: sensitivity(policy, numbers)),
    "values of a domain": ("domain['a']", lambda: Domain({"a": numbers})),
    "blocks": ("labels", lambda: Policy.partition(Domain({"a": range(3)}), numbers)),
    "known counts": ("counts", lambda: policy.check_counts(numbers)),
    "edges": ("edges", lambda: md.graphs.from_edges(3, np.ma.array([[0, 1]]))),
    "support": ("support", lambda: md.graphs.constrain(md.graphs.complete(3), numbers)),
    "places of hulls": ("places", lambda: hulls_between(square, md.graphs.complete(3))),
    "places of a hull": ("places", lambda: hull_between(square, md.graphs.complete(3))),
    "components": ("parts", lambda: membership([numbers], 3)),
    "correlation of a user": ("backward", lambda: md.leakage.User(backward=square)),
    "budgets of a user": ("epsilons", lambda: md.leakage.User(epsilons=weights)),
    "delta": ("prior", lambda: delta_set(weights, 0.1)),
    "latitude": ("latitude", lambda: md.data.Trajectory("a", weights, [0.0, 0.0, 0.0])),
    "time": ("time", lambda: md.data.Trajectory("a", [0.0], [0.0], np.ma.array(np.array(["2020"], "M8[s]")))),
}


@each_row("name", TAKEN)
def test_a_masked_array_is_refused_by_name(name: str) -> None:
    path, call = TAKEN[name]
    with pytest.raises(
        InputError, match=rf"^{re.escape(path)}: is or contains a masked array.*compressed\(\)"
    ) as caught:
        call()
    # Neither what is hidden nor what is not: it may be private.
    assert caught.value.value in ("numpy.ma.MaskedArray", "numpy.ma.MaskedConstant")


def test_what_is_found_at_any_depth_is_refused_and_nothing_else() -> None:
    held = np.empty(1, dtype=object)
    held[0] = numbers
    for value in ([[1, [masked]]], {"a": ({"b": numbers},)}, held, (0.5, np.ma.array(1))):
        with pytest.raises(InputError, match="masked"):
            require_unmasked(value, "value")
    for value in (None, "masked", [1, "a", None], np.eye(2), {"a": [()]}, np.array([None, 1], dtype=object)):
        require_unmasked(value, "value")
    # Filled or left out, the values are what somebody said they are.
    assert md.Prior.from_counts(numbers.compressed()).probabilities.tolist() == [1 / 3, 2 / 3]
