"""How a release under a policy is entered in a ledger: its budget, what its policy joins, what is exact in it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign import interrupts
from mechdesign.accounting.ledger import Partition
from mechdesign.blowfish.budget import Budget, LedgerLike, require_ledger
from mechdesign.blowfish.policy import Policy
from mechdesign.blowfish.policy_words import name_policy
from mechdesign.errors import InputError
from mechdesign.validation import Integers

__all__ = ["Exact", "charge", "columns", "enter", "everything", "labelled"]


def __dir__() -> list[str]:
    return sorted(__all__)


@dataclass(frozen=True)
class Exact:
    """What is released without noise.

    Attributes:
        classes: labels of the |T| values and of no record, shape (|T| + 1,): an exact answer tells apart those of
            different labels.
        decided: whether these classes are what the answers tell apart; False where that depends on the data.
    """

    classes: Integers
    decided: bool = True


def columns(rows: ArrayLike) -> Exact:
    """Return what exact answers to queries tell apart: values of unequal columns; rows have shape (q, |T|)."""
    weights = np.asarray(rows)
    padded = np.concatenate([weights, np.zeros((len(weights), 1), dtype=weights.dtype)], axis=1)
    return Exact(np.unique(padded, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64))


def labelled(labels: ArrayLike) -> Exact:
    """Return what exact counts of records with each label tell apart; labels of the values have shape (|T|,)."""
    own = np.asarray(labels, dtype=np.int64)
    return Exact(np.append(own, own.max(initial=0) + 1))


def everything(size: int) -> Exact:
    """Return what an answer from which every value may be read tells apart."""
    return Exact(np.arange(size + 1), decided=False)


def charge(
    ledger: LedgerLike | None,
    budget: Budget,
    what: str,
    policy: Policy,
    *,
    exact: Exact | None = None,
    together: bool = False,
) -> str | None:
    """Enter a release in a ledger where there is one; return the number of the entry, or None.

    A release without noise spends nothing and is an entry all the same: together with one under another policy it may
    tell apart what that policy protects, see `mechdesign.Ledger.spend`, which refuses then.
    """
    if not isinstance(together, bool):
        raise InputError("together", "must be True or False", value=together)
    if ledger is None:
        return None
    require_ledger(ledger)
    free = not (budget.epsilon or budget.rho)
    entry = enter(
        ledger,
        what,
        policy,
        0 if free else budget.epsilon,
        None if free else budget.rho,
        decided=exact is None or exact.decided,
        classes=None if exact is None else Partition.of(exact.classes),
        together=together,
    )
    return getattr(entry, "number", None)


def enter(
    ledger: Any,
    what: str,
    policy: Policy,
    epsilon: object,
    rho: object,
    *,
    decided: bool,
    classes: Partition | None,
    together: bool,
) -> object:
    """Enter a release under a policy in a ledger of any kind; return the entry."""
    # What is paid for must not be lost: where a scope is open, Ctrl-C is only noted from here on.
    interrupts.defer()
    if not hasattr(type(ledger), "by_policy"):
        return ledger.spend(what, policy.neighbours, epsilon=epsilon, rho=rho) if epsilon or rho else None
    return ledger.spend(
        what,
        policy.neighbours,
        epsilon=epsilon,
        rho=rho,
        policy=name_policy(policy),
        domain=_digest(policy) if decided else None,
        components=_components(policy),
        classes=classes,
        together=together,
    )


def _components(policy: Policy) -> Partition | None:
    """Return the components of a policy's graph, with no record as a value; None where known counts join more."""
    if policy.constraints:
        return None
    graph = policy.secret_graph
    labels: NDArray[np.int64] = graph.components()
    if not graph.has_null:
        labels = np.append(labels, labels.max(initial=0) + 1)
    return Partition.of(labels)


def _digest(policy: Policy) -> str:
    """Return the digest of a domain: the names of its attributes and their values, in order."""
    parts = [(attribute.name, attribute.values) for attribute in policy.domain.attributes]
    return hashlib.sha256(repr(parts).encode()).hexdigest()
