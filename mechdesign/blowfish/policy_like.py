"""What computations need to know of a policy."""

from __future__ import annotations

from typing import Protocol

from mechdesign.blowfish.constraints import Constraint
from mechdesign.blowfish.domain import Domain
from mechdesign.blowfish.secret_graphs import SecretGraph
from mechdesign.base._errors import InputError

__all__ = ["PolicyLike"]


class PolicyLike(Protocol):
    """A policy (T, G, Q): the domain, the graph of values that must not be told apart, and counts that are known."""

    @property
    def domain(self) -> Domain:
        """Return the values that a record may have."""

    @property
    def secret_graph(self) -> SecretGraph:
        """Return the graph on their numbers."""

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """Return the count queries whose answers are public."""


def require_policy(policy: object) -> None:
    """Raise `InputError` for what has no domain, secret graph and known counts, which every policy has."""
    if isinstance(policy, type) or not all(hasattr(policy, name) for name in ("domain", "secret_graph", "constraints")):
        raise InputError("policy", "is of another kind", value=type(policy).__name__, bound="a blowfish.Policy")
