"""What a policy is called: in a few words, and by a name that no other policy has."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import fields
from fractions import Fraction

import numpy as np

from mechdesign.blowfish.policy import Policy
from mechdesign.blowfish.secret_graphs import SecretGraph

__all__ = ["describe_policy", "name_policy"]


# What a graph is called and how it is worded do not say which values it joins.
_WORDS = ("kind", "phrase")
_DIGITS = 16


def describe_policy(policy: Policy) -> str:
    """Say which policy it is, in a few words."""
    kind = {"graph": "explicit graph", "full": "full domain"}.get(policy.secret_graph.kind, policy.secret_graph.kind)
    values = [f"{each.size:,} value{'s' * (each.size > 1)} of {each.name}" for each in policy.domain.attributes]
    text = f"Blowfish policy ({kind}) on {' × '.join(values)}"
    if policy.unbounded:
        text += ", with records added or removed"
    if policy.constraints:
        number = len(policy.constraints)
        text += f", with {number} publicly known count{'s' if number > 1 else ''}"
    return text


def name_policy(policy: Policy) -> str:
    """Return the name of a policy in a ledger: a few words, and the digest of its domain, edges and known counts.

    Two policies of one name have the same neighbours. Two ways to state the same edges may have different names.

    >>> from mechdesign.blowfish import Domain
    >>> name_policy(Policy.full(Domain({"age": range(100)})))
    'Blowfish policy (full domain) on 100 values of age [37f2d9499c6ae21e]'
    """
    parts: list[object] = [(attribute.name, attribute.values) for attribute in policy.domain.attributes]
    known = sorted((each.counted.tobytes().hex(), repr(each.known)) for each in policy.constraints)
    parts += [_content(policy.secret_graph), known, policy.unbounded]
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()[:_DIGITS]
    return f"{describe_policy(policy)} [{digest}]"


def _content(graph: SecretGraph) -> tuple[object, ...]:
    """Return what says which values a graph joins, as plain values whose text is the same for the same content."""
    return type(graph).__name__, *_fields(graph)


def _fields(graph: SecretGraph) -> Iterator[object]:
    for each in fields(graph):  # type: ignore[arg-type]
        if each.name in _WORDS:
            continue
        value = getattr(graph, each.name)
        parts = value if isinstance(value, tuple) else (value,)
        found = [_plain(part) for part in parts]
        # In a union the order of the parts says nothing.
        yield each.name, sorted(map(repr, found)) if isinstance(parts[0], SecretGraph) else found


def _plain(value: object) -> object:
    if isinstance(value, SecretGraph):
        return _content(value)
    if isinstance(value, np.ndarray):
        return hashlib.sha256(value.astype("<i8").tobytes()).hexdigest()
    assert value is None or isinstance(value, bool | int | Fraction)
    return value
