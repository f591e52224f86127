"""The terms of a release, and what it enters in a ledger: its budget, its policy, and what exact answers tell apart.

Nodes are the values of the domain and, last, absence. An absent record adds nothing to any answer: its column is 0.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mechdesign.base._arrays import Integers
from mechdesign.base._check import as_generator, as_truth, require_kind
from mechdesign.base._deadline import keep
from mechdesign.base._errors import InputError
from mechdesign.certify._exact import exact, exact_text
from mechdesign.leakage._partition import LARGEST_LISTED, UNKNOWN, Partition
from mechdesign.mechanisms._discrete import as_confidence
from mechdesign.tables._budget import Budget, LedgerLike
from mechdesign.tables._domain import Attribute, Domain
from mechdesign.tables._policies._cliques import AttributeGraph, CompleteGraph
from mechdesign.tables._policies._graphs import SecretGraph, UnionGraph
from mechdesign.tables._policy import Policy, as_policy, describe_policy, name_policy
from mechdesign.tables._release import Description, Release

R = TypeVar("R", bound=Release)
Rng = np.random.Generator | int | None

CONFIDENCE = Fraction(19, 20)
"""Of the intervals of a release, unless another is given."""

EXACT = "The policy leaves these answers exact: no two neighbouring databases differ in them."
UNBIASED = "The answers are unbiased and are not rounded to what is possible: counts may be negative."

# A partition in more runs than this would make a file of more than some megabytes.
_MOST_RUNS = 2**20


@dataclass(frozen=True, eq=False)
class Terms:
    """On which terms a release is made: what is protected, what may be spent, and where the noise comes from.

    Attributes:
        policy: what is protected.
        budget: what the noise may spend.
        rng: for rehearsals only, a NumPy generator or a seed; None for the operating system's randomness.
        ledger: what is charged before any noise is drawn, or None.
        confidence: of the interval of each answer.
        together: insist on the release beside others, see `mechdesign.Ledger.spend`.
        level: the confidence as a fraction.
        generator: the generator of a rehearsal, or None.
    """

    policy: Policy
    budget: Budget
    rng: Rng = None
    ledger: LedgerLike | None = None
    confidence: object = CONFIDENCE
    together: bool = False
    level: Fraction = field(init=False)
    generator: np.random.Generator | None = field(init=False)

    def __post_init__(self) -> None:
        as_policy(self.policy)
        require_kind(self.budget, Budget, "budget", "a Budget")
        object.__setattr__(self, "level", as_confidence(self.confidence))
        object.__setattr__(self, "generator", None if self.rng is None else as_generator(self.rng))

    def describe(
        self, what: str, mechanism: str, remarks: Sequence[str], *, step: Fraction = Fraction(1), noisy: bool = True
    ) -> Description:
        """Return what a release on these terms says of itself; one without noise spends nothing."""
        spent = self.budget if noisy else self.budget.nothing()
        return Description(
            what=what,
            policy=describe_policy(self.policy),
            neighbours=self.policy.neighbours,
            definition=self.policy.definition,
            mechanism=mechanism,
            epsilon=spent.epsilon,
            rho=spent.rho,
            step=step,
            confidence=self.level,
            rehearsal=self.rng is not None,
            remarks=tuple(remarks),
        )

    def release(
        self,
        what: str,
        draw: Callable[[], R],
        rehearse: Callable[[], object] | None,
        classes: Callable[[], Partition] | None = None,
    ) -> R:
        """Enter a release in the ledger, where there is one, and return it with the number of the entry.

        All that can fail is computed before the entry is made: answers without noise, or else what `rehearse` does.

        Args:
            what: what is released, in words.
            draw: returns the release.
            rehearse: does all that `draw` does, on public data and without noise; None where the answers have none.
            classes: returns the classes of values that exact answers tell apart; None where all answers are noisy.

        Raises:
            InputError: the ledger is none, or `together` no truth value.
            BudgetExceededError: the ledger refuses.
            ExactReleaseError: an earlier release, or this one, is exact where the policy of the other protects.
        """
        if rehearse is None:
            found = draw()
            return found.entered(self._charge(what, self.budget.nothing(), classes))
        rehearse()
        number = self._charge(what, self.budget, classes)
        return draw().entered(number)

    def _charge(self, what: str, budget: Budget, classes: Callable[[], Partition] | None) -> str | None:
        """Return the number of the entry, or None where none is made."""
        as_truth(self.together, "together")
        if self.ledger is None:
            return None
        if isinstance(self.ledger, type) or not callable(getattr(self.ledger, "spend", None)):
            raise InputError("ledger", "is not a ledger", value=self.ledger, bound="a mechdesign.Ledger")
        free = not (budget.epsilon or budget.rho)
        # Nothing is nothing of either budget: an entry in ρ would keep a ledger from a sum in ε.
        given: dict[str, Any] = {
            "epsilon": Fraction(0) if free else budget.epsilon,
            "rho": None if free else budget.rho,
        }
        if hasattr(type(self.ledger), "by_policy"):
            given |= {
                "policy": name_policy(self.policy),
                "domain": digest_of_domain(self.policy.domain),
                "components": components(self.policy),
                "classes": None if classes is None else _limit_runs(classes()),
                "together": self.together,
            }
        elif free:
            return None
        # What is paid for must not be lost.
        keep()
        return getattr(self.ledger.spend(what, self.policy.neighbours, **given), "number", None)


def components(policy: Policy) -> Partition | None:
    """Return the components of a policy's graph: values that a chain of edges joins, and absence.

    Returns None where they do not say what the policy protects, as under known counts, and where they would have to be
    listed and are too many.

    >>> components(Policy.line(Domain({"age": range(100)}))).text()
    '0*100 1'
    """
    graph, size = policy.secret_graph, policy.domain.size
    if policy.constraints:
        return None
    if _joins_absence(graph):
        return Partition.of_lengths([size + 1])
    if isinstance(graph, CompleteGraph | AttributeGraph):
        return Partition.of_lengths([size, 1])
    if size >= LARGEST_LISTED:
        return None
    labels = graph.components()
    found = Partition.of(labels if graph.has_null else np.append(labels, labels.max() + 1))
    return found if len(found.runs) <= _MOST_RUNS else None


def _joins_absence(graph: SecretGraph) -> bool:
    """Tell whether every value is joined to absence by a graph that says so."""
    parts = graph.parts if isinstance(graph, UnionGraph) else (graph,)
    return any(part.kind == "null" for part in parts)


def classes_of_values(size: int) -> Partition:
    """Return the classes of exact counts of all values."""
    return Partition.of_each(size + 1)


def number_of_records(size: int) -> Partition:
    """Return the classes of the exact number of records, which tells no two values apart."""
    return Partition.of_lengths([size, 1])


def classes_of_blocks(blocks: Integers) -> Partition:
    """Return the classes of exact counts of blocks of values, numbers of shape (|T|,)."""
    if len(blocks) >= LARGEST_LISTED:
        return UNKNOWN
    return Partition.of(np.append(blocks, blocks.max() + 1))


def classes_of_attribute(domain: Domain, name: str) -> Partition:
    """Return the classes of the exact sum of a numeric attribute: the values of one number, absence among those of 0.

    >>> classes_of_attribute(Domain({"sex": ["f", "m"], "dose": [0, 1]}), "dose").text()
    '0..1 0..1 0'
    """
    if domain.size >= LARGEST_LISTED:
        return UNKNOWN
    axis = domain.names.index(name)
    positions = domain.attributes[axis].positions
    codes = np.unique(np.append(positions, 0), return_inverse=True)[1]
    table = np.broadcast_to(codes[:-1].reshape([-1] + [1] * (len(domain.shape) - axis - 1)), domain.shape)
    return Partition.of(np.append(table.ravel(), codes[-1]))


def classes_of_rows(rows: NDArray[Any]) -> Partition:
    """Return the classes of exact linear queries (q, |T|): values of equal columns."""
    columns = np.ascontiguousarray(np.column_stack((rows, np.zeros((len(rows), 1), dtype=rows.dtype))).T)
    if len(columns) > LARGEST_LISTED:
        return UNKNOWN
    # Equal numbers have equal bytes: −0 is made 0.
    columns += 0
    whole = columns.view(np.dtype((np.void, columns.dtype.itemsize * columns.shape[1]))).ravel()
    return Partition.of(np.unique(whole, return_inverse=True)[1])


def digest_of_domain(domain: Domain) -> str:
    """Return a digest that two domains share if the names and the values of their attributes are the same, in order.

    Numbers are taken by their value: a range and the list of its numbers are the same.
    """
    digest = hashlib.sha256()
    for attribute in domain.attributes:
        digest.update(repr((attribute.name, attribute.size)).encode())
        for part in _contents(attribute):
            digest.update(part)
    return digest.hexdigest()[:32]


def _contents(attribute: Attribute) -> Iterator[bytes]:
    values = attribute.values
    if isinstance(values, range):
        yield repr(("steps", str(values[0]), str(values.step if len(values) > 1 else 0))).encode()
        return
    if not attribute.numeric:
        yield repr(("values", [(type(value).__name__, str(value)) for value in values])).encode()
        return
    try:
        positions, unit = attribute.positions, attribute.unit
    except InputError:
        # Too many digits for a lattice.
        yield repr(("numbers", [exact_text(exact(value)) for value in values])).encode()
        return
    steps = np.diff(positions)
    if not len(steps) or (steps == steps[0]).all():
        ends = int(positions[0]) * unit, int(steps[0] if len(steps) else 0) * unit
        yield repr(("steps", *map(exact_text, ends))).encode()
    else:
        yield repr(("lattice", exact_text(unit))).encode()
        yield positions.astype("<i8").tobytes()


def _limit_runs(classes: Partition) -> Partition:
    return classes if len(classes.runs) <= _MOST_RUNS else UNKNOWN
