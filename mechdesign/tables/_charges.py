"""The terms of a release and its ledger entry: budget, policy, and the values that exact answers distinguish.

The nodes of a policy's graph are the values of the domain; the last node represents an absent record. An absent record
adds nothing to any answer, so its column of weights is 0.

Releases on disjoint groups of people compose in parallel if no known count links the groups; each group may have a
ledger of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base._arrays import Integers
from mechdesign.base._check import as_generator, as_truth
from mechdesign.base._deadline import keep
from mechdesign.base._errors import BudgetExceededError, InputError
from mechdesign.certify._exact import exact, exact_text
from mechdesign.leakage._entries import Entry, TimeStep
from mechdesign.leakage._judgement import say_plan, say_used
from mechdesign.leakage._partition import LARGEST_LISTED, UNKNOWN, Partition
from mechdesign.leakage._series import require_kind_of
from mechdesign.leakage.accounting import Ledger, LedgerSeries
from mechdesign.mechanisms._discrete import as_confidence
from mechdesign.tables._budget import Budget
from mechdesign.tables._domain import Attribute, Domain
from mechdesign.tables._known_counts import kinds_of
from mechdesign.tables._line_graphs import AttributeGraph, CompleteGraph, block_numbers
from mechdesign.tables._policy import Policy, as_policy, describe_policy, name_policy
from mechdesign.tables._release import Description, Release
from mechdesign.tables._secret_graphs import Edge, UnboundedGraph


@dataclass(frozen=True)
class ParallelComposition:
    """The result of `parallel_composition`: whether ε-private releases on disjoint parts are jointly ε-private.

    Attributes:
        allowed: whether the releases compose in parallel, by Theorem 4.2 of Blowfish (He et al. 2014); if not, their
            budgets add up.
        reason: a sentence that gives the reason.
        constraint: the index of a constraint that prevents parallel composition, or None.
        edge: an edge of the secret graph that is a counterexample, or None.

    >>> from mechdesign.tables import Domain
    >>> bool(parallel_composition(Policy.full(Domain({"age": range(100)}))))
    True
    """

    allowed: bool
    reason: str
    constraint: int | None = None
    edge: Edge | None = None

    def __bool__(self) -> bool:
        return self.allowed


def parallel_composition(policy: Policy, parts: ArrayLike | None = None) -> ParallelComposition:
    """Decide whether releases on disjoint groups of people compose in parallel.

    Without known counts, neighbouring databases differ in one record, which affects only one of the releases. Known
    counts may link a change in one group to a change in another. An edge is critical to a constraint if a move along it
    changes the constraint's count. A move of another record, in any group and between any two values, may then restore
    the count. Releases therefore compose in parallel only if no edge is critical to any constraint. (Theorem 4.3 of
    Blowfish also allows critical edges in one group, but it ignores moves between values without an edge.)

    Args:
        policy: the policy.
        parts: the part of each value, shape (|T|,), if the value of a record determines the group. With `parts`, no
            edge may join two parts, so the group of a record is not protected. By default the groups are chosen
            independently of the data, and any person may be in any group.

    Returns:
        Whether the releases compose in parallel, with the reason.

    Raises:
        InputError: `policy` is not a policy, or `parts` has the wrong length.

    >>> from mechdesign.tables import Domain
    >>> domain = Domain({"age": range(4)})
    >>> parallel_composition(Policy.threshold(domain, 1), parts=[0, 0, 1, 1]).edge
    (1, 2)
    """
    graph = as_policy(policy).secret_graph
    labels = None if parts is None else np.append(block_numbers(policy.domain, parts, "parts"), -1)
    if labels is not None and (edge := graph.crossing(labels[:-1])) is not None:
        return ParallelComposition(
            False, "A record may move from one part to another, and this changes both parts.", None, edge
        )
    kinds, counted = kinds_of(policy.constraints, graph.size, null=graph.has_null)
    joined = graph.joined(kinds[: graph.size])
    critical = counted[kinds[joined[:, 0]]] != counted[kinds[joined[:, 1]]]
    for index in np.flatnonzero(critical.any(axis=0)).tolist():
        x, y = joined[np.argmax(critical[:, index])].tolist()
        where = "groups" if labels is None else "parts"
        reason = (
            f"A record in one of the {where} may change the count of constraints[{index}], "
            "and a record in another one may restore it."
        )
        return ParallelComposition(False, reason, index, (x, y))
    if not policy.constraints:
        return ParallelComposition(True, "Two neighbouring databases differ in a single record.")
    return ParallelComposition(True, "No move along an edge changes a publicly known count.")


@dataclass(frozen=True)
class LedgerPart:
    """A ledger, created by `part_of`, for releases about one of several disjoint groups of people.

    Attributes:
        ledger: the ledger for all groups.
        division: the name of the division into groups.
        part: the name of the group.
        policy: the name of the policy whose releases compose in parallel. Releases under other policies are refused.
        by_value: whether the value of a record determines its group, so that several records of one person may be in
            several groups.

    >>> import mechdesign as md
    >>> policy = Policy.full(md.tables.Domain({"age": range(100)}))
    >>> north = part_of(md.Ledger(epsilon=1), policy, "clinics", part="north")
    >>> north.division, north.part
    ('clinics', 'north')
    """

    ledger: Ledger
    division: str
    part: str
    policy: str
    by_value: bool = False

    @property
    def series(self) -> LedgerSeries | None:
        """Return the series of the ledger, which plans budgets for this group; None without a series."""
        part = self.division, self.part
        return None if self.ledger.series is None else LedgerSeries(self.ledger, part)

    def promises(self, entry: Entry) -> tuple[str, ...]:
        """Return the sentences of `mechdesign.Ledger.promises`.

        Args:
            entry: an entry of the ledger.

        Returns:
            The sentences; empty without a series.
        """
        return self.ledger.promises(entry)

    def spend(
        self,
        what: str,
        protects: str,
        epsilon: Any = None,
        rho: Any = None,
        *,
        policy: str | None = None,
        **exact: Any,
    ) -> Entry:
        """Record the spending of a release about this group.

        Args:
            what: the released quantity, in words.
            protects: the definition of neighbouring databases, in words.
            epsilon: the ε that is spent, or None.
            rho: the ρ that is spent, or None.
            policy: the name of the release's policy; by default the policy of this ledger.
            **exact: further keywords of `mechdesign.Ledger.spend`.

        Returns:
            The entry in the ledger.

        Raises:
            InputError: The release is under another policy.
            BudgetExceededError: the ledger has too little budget left.
        """
        part = self._find_part(policy)
        return self.ledger.spend(what, protects, epsilon=epsilon, rho=rho, part=part, policy=self.policy, **exact)

    def check(self, what: str, protects: str, *costs: Any, policy: str | None = None, **exact: Any) -> None:
        """Raise the errors that `spend` would raise, without recording an entry.

        Args:
            what: the released quantity, in words.
            protects: the definition of neighbouring databases, in words.
            *costs: ε, or None and ρ, as in `spend`.
            policy: the name of the release's policy; by default the policy of this ledger.
            **exact: further keywords of `spend`.
        """
        self.ledger.check(what, protects, *costs, part=self._find_part(policy), policy=self.policy, **exact)

    def _find_part(self, policy: str | None) -> tuple[str, str]:
        """Return the names of the division and the group; raise `InputError` for a release under another policy."""
        if policy is not None and policy != self.policy:
            raise InputError(
                "ledger",
                "belongs to a group under another policy; only releases under that policy compose in parallel",
                value=policy,
                bound=self.policy,
                remedy="create a ledger of the group for this policy with part_of, or charge the ledger for all groups",
            )
        return self.division, self.part


def part_of(ledger: Ledger, policy: Policy, division: str, *, part: str, parts: ArrayLike | None = None) -> LedgerPart:
    """Return a ledger for releases about one group, if releases about all groups of the division compose in parallel.

    The caller guarantees that no person is in two groups of the division: all records of a person are in one group. A
    release that is charged to a group must use only the records of this group. If the value of a record determines the
    group, releases of tables with several rows of a person are refused: such rows may lie in several groups.

    >>> import mechdesign as md
    >>> ledger = md.Ledger(epsilon=1)
    >>> policy = md.tables.Policy.full(md.tables.Domain({"age": range(100)}))
    >>> for clinic in ("north", "south"):
    ...     part = part_of(ledger, policy, "clinics", part=clinic)
    ...     release = md.tables.Histogram().release([30, 41], policy, epsilon=1, ledger=part, rng=1)
    >>> ledger.spent.epsilon
    Fraction(1, 1)

    Args:
        ledger: a `mechdesign.Ledger`.
        policy: the policy of all these releases; a release under another policy is refused.
        division: the name of the division of the people into groups, such as "clinics".
        part: the name of the group, such as "north".
        parts: the group of each value, shape (|T|,), if the value of a record determines the group. No edge of the
            policy may join two groups, so the group of a record is not protected.

    Returns:
        The ledger for this group.

    Raises:
        InputError: The releases do not compose in parallel; the message contains the reason.
    """
    found = parallel_composition(policy, parts)
    if not found:
        raise InputError(
            "division",
            f"does not let budgets compose in parallel. {found.reason}",
            value=division,
            remedy="charge the ledger itself, where budgets add up",
        )
    return LedgerPart(ledger, division, part, name_policy(policy), parts is not None)


Rng = np.random.Generator | int | None

CONFIDENCE = Fraction(19, 20)
"""The default confidence level of the intervals of a release."""

EXACT = "The policy leaves these answers exact: no two neighbouring databases differ in them."
UNBIASED = "The answers are unbiased and are not rounded to possible values: counts may be negative."

# A partition with more runs than this bound would require a file of several megabytes.
_MOST_RUNS = 2**20


@dataclass(frozen=True)
class Time:
    """The place of a release in the series of a ledger: arguments of `mechdesign.Ledger.spend`.

    Attributes:
        step: the time step, or None.
        gap: whether time steps may be left out.
        series: False for a release outside the series, else None.
        planned: whether ε is the remaining planned budget.
    """

    step: TimeStep | None = None
    gap: bool = False
    series: Literal[False] | None = None
    planned: bool = False


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms of a release: the policy, the budget and the source of the noise.

    Attributes:
        policy: the Blowfish policy that the release must satisfy.
        budget: the budget for the noise.
        rng: a NumPy generator or a seed, for rehearsals only; None means the operating system's randomness.
        ledger: the ledger that is charged before any noise is drawn, or None.
        confidence: the confidence level of each answer's interval, in (0, 1).
        together: whether to permit a conflict with an earlier release: one of the two is exact on values that the
            policy of the other protects. See `mechdesign.Ledger.spend`.
        finish: a function that is applied to the release, and to its rehearsal before the ledger is charged.
        rows: the largest number of rows of one person, by which the cost in the ledger grows.
        checked: whether the rows of each person were counted.
        time: the place of the release in the series of the ledger.
        level: the confidence level as a fraction.
        generator: the generator of a rehearsal, or None.
    """

    policy: Policy
    budget: Budget
    rng: Rng = None
    ledger: Ledger | LedgerPart | None = None
    confidence: object = CONFIDENCE
    together: bool = False
    finish: Callable[[Any], Any] = lambda found: found
    rows: int = 1
    checked: bool = False
    time: Time = Time()
    level: Fraction = field(init=False)
    generator: np.random.Generator | None = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", as_confidence(self.confidence))
        object.__setattr__(self, "generator", None if self.rng is None else as_generator(self.rng))

    def describe(
        self, what: str, mechanism: str, remarks: Sequence[str], *, step: Fraction = Fraction(1), noisy: bool = True
    ) -> Description:
        """Return the description of a release on these terms; a release without noise spends nothing."""
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
            rows_per_person=self.rows,
            people_checked=self.checked,
        )

    def release(
        self,
        what: str,
        draw: Callable[[], Release],
        rehearse: Callable[[], Release] | None,
        classes: Callable[[], Partition] | None = None,
    ) -> Any:
        """Record a release in the ledger, if one is given, and return the release with the number of its entry.

        Every step that can fail runs before the ledger is charged: exact answers are computed, or `rehearse` is called.

        Args:
            what: the released quantity, in words.
            draw: a function that returns the release.
            rehearse: a function that returns a release as `draw` does, of public data and without noise; None for
                exact answers.
            classes: a function that returns the classes of values that exact answers distinguish; None if all answers
                are noisy.

        Returns:
            The release with the number of its entry.

        Raises:
            InputError: `ledger` is not a ledger, or `together` is not a Boolean.
            BudgetExceededError: the ledger has too little budget left.
            ExactReleaseError: this release or an earlier one is exact on values that the policy of the other one
                protects.
        """
        if rehearse is None:
            found = self.finish(draw())
            return self._entered(found, self._charge(what, self.budget.nothing(), classes))
        self.finish(rehearse())
        entry = self._charge(what, self.budget, classes)
        return self._entered(self.finish(draw()), entry)

    def _entered(self, found: Release, entry: Entry | None) -> Release:
        if entry is None or self.ledger is None:
            return found
        return found.entered(entry.number, self.ledger.promises(entry))

    def check(self, what: str) -> None:
        """Raise the errors about the ledger that `release` would raise if all answers have noise."""
        if self.ledger is not None:
            self.ledger.check(what, **self._arguments(self.budget, None))

    def _charge(self, what: str, budget: Budget, classes: Callable[[], Partition] | None) -> Entry | None:
        """Charge the ledger and return the entry, or None if no entry is made."""
        as_truth(self.together, "together")
        if self.ledger is None:
            return None
        arguments = self._arguments(budget, None if classes is None else _limit_runs(classes()))
        # From here on interrupts are delayed, because a charged release must not be lost.
        keep()
        return self.ledger.spend(what, **arguments)

    def _arguments(self, budget: Budget, classes: Partition | None) -> dict[str, Any]:
        """Return the further arguments of `Ledger.spend`."""
        cost, time = budget.of_person(self.rows), self.time
        free = not (cost.epsilon or cost.rho)
        return {
            "protects": neighbours_of_person(self.policy, self.rows),
            # A cost of zero is recorded in ε: an entry in ρ would prevent the ledger from adding up its entries in ε.
            "epsilon": Fraction(0) if free else cost.epsilon,
            "rho": None if free else cost.rho,
            "policy": name_policy(self.policy),
            "domain": digest_of_domain(self.policy.domain),
            "components": components(self.policy),
            "classes": classes,
            "together": self.together,
            "step": time.step,
            "gap": time.gap,
            "series": time.series,
            "planned": time.planned and not free,
            "complete": None if time.step is None else count_complete(self.policy),
        }


def planned_epsilon(ledger: Ledger | LedgerPart | None, step: TimeStep | None) -> Fraction:
    """Return the remaining planned budget of a time step; raise an error if no plan exists or nothing remains."""
    series = None if ledger is None else ledger.series
    whole = ledger.ledger if isinstance(ledger, LedgerPart) else ledger
    left = None if series is None or step is None else series.planned(step)
    if series is not None and step is not None:
        require_kind_of(series.steps, step)
    if left is None:
        if whole is None or series is None:
            why, remedy = "no ledger has a series", "or add one with mechdesign ledger series"
        elif step is None:
            why, remedy = "no step is given", "with --no-series; or state the step, such as --step 2026-11"
        else:
            why, remedy = "there is no plan", f"or make one: {say_plan(whole.path, '12')}"
        raise InputError("epsilon", f"cannot be planned: {why}", value="planned", remedy=f"state ε, {remedy}")
    if left == 0:
        assert whole is not None
        assert step is not None
        in_part = (ledger.division, ledger.part) if isinstance(ledger, LedgerPart) else None
        used = say_used(whole.entries, step, in_part, whole.path)
        raise BudgetExceededError(f"nothing is left of the planned budget of step {step}{used}")
    return left


def count_complete(policy: Policy) -> int | None:
    """Return the number of values if a policy joins every two of them in one edge, without known counts and absence.

    >>> domain = Domain({"age": range(100)})
    >>> count_complete(Policy.full(domain)), count_complete(Policy.threshold(domain, 1))
    (100, None)
    """
    graph, size = policy.secret_graph, policy.domain.size
    if policy.constraints or graph.has_null:
        return None
    return size if graph.edge_count == size * (size - 1) // 2 else None


def neighbours_of_person(policy: Policy, rows: int) -> str:
    """Return the definition of neighbours and, for several rows of a person, how often an entry counts it."""
    if rows == 1:
        return policy.neighbours
    return f"{policy.neighbours} A person has at most {rows:,} records, and the entry covers as many such changes."


def components(policy: Policy) -> Partition | None:
    """Return the connected components of a policy's graph; the last node of the graph represents an absent record.

    Returns None if there are too many components to list. Also returns None under known counts, where the components do
    not describe the protected values.

    >>> components(Policy.full(Domain({"age": range(100)}))).text()
    '0*100 1'
    """
    graph, size = policy.secret_graph, policy.domain.size
    if policy.constraints:
        return None
    if isinstance(graph, UnboundedGraph):
        return Partition.of_lengths([size + 1])
    if isinstance(graph, CompleteGraph) or (isinstance(graph, AttributeGraph) and graph.connected):
        return Partition.of_lengths([size, 1])
    if size >= LARGEST_LISTED:
        return None
    labels = graph.components()
    found = Partition.of(labels if graph.has_null else np.append(labels, labels.max() + 1))
    return found if len(found.runs) <= _MOST_RUNS else None


def classes_of_values(size: int) -> Partition:
    """Return the partition into single values, which exact counts of all values distinguish."""
    return Partition.of_each(size + 1)


def number_of_records(size: int) -> Partition:
    """Return the partition for an exact number of records: one class for all values, and one for absence."""
    return Partition.of_lengths([size, 1])


def classes_of_blocks(blocks: Integers) -> Partition:
    """Return the partition for exact counts of blocks of values, from each value's block, shape (|T|,)."""
    if len(blocks) >= LARGEST_LISTED:
        return UNKNOWN
    return Partition.of(np.append(blocks, blocks.max() + 1))


def classes_of_sum(domain: Domain, name: str) -> Partition:
    """Return the partition for an exact sum of an attribute: one class for each number; absence counts as 0.

    >>> classes_of_sum(Domain({"sex": ["f", "m"], "dose": [0, 1]}), "dose").text()
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
    """Return the partition for exact linear queries of shape (q, |T|); values in a class have equal columns."""
    columns = np.ascontiguousarray(np.column_stack((rows, np.zeros((len(rows), 1), dtype=rows.dtype))).T)
    if len(columns) > LARGEST_LISTED:
        return UNKNOWN
    # Columns are compared by their bytes, so −0 must become 0.
    columns += 0
    whole = columns.view(np.dtype((np.void, columns.dtype.itemsize * columns.shape[1]))).ravel()
    return Partition.of(np.unique(whole, return_inverse=True)[1])


def digest_of_domain(domain: Domain) -> str:
    """Return a digest that is equal for two domains with the same attributes and values in the same order.

    Numbers are compared by value, so a range and the list of its numbers have the same digest.
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
        # The values have too many digits for a lattice.
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
