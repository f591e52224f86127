"""Whether a ledger accepts an entry: its budgets, the leakage and the plan of its series, and exact answers.

An exact answer must not distinguish values that another policy protects. It preserves an edge of a policy if and only
if the columns of its two values are equal. Therefore an exact release is compatible with a policy on the same domain if
each component of the policy lies in one class of answers. Checking pairs of releases is enough: several releases
preserve an edge if each of them does.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from mechdesign.base._errors import BudgetExceededError, ExactReleaseError, InputError, LeakageExceededError
from mechdesign.certify._exact import exact_text, nearest
from mechdesign.leakage._contents import Contents
from mechdesign.leakage._entries import Entry, TimeStep, are_apart, cost, epsilon_of, rho_of, totals
from mechdesign.leakage._partition import Partition
from mechdesign.leakage._series import LONGEST, Series, place_of, require_kind_of
from mechdesign.leakage._upwards import as_float

_OTHER_VALUES = (
    "release the values of the chain in their order, or another table with a stated ε beside the series (--no-series, "
    "series=False)"
)


def judge(contents: Contents, entry: Entry, complete: int | None, planned: bool, gap: bool) -> Entry:
    """Return the entry with its turn under the plan; raise an error if the ledger does not accept it.

    Args:
        contents: The contents of the ledger.
        entry: The entry, without its turn.
        complete: The number of values if the policy joins every two values in one edge, else None.
        planned: Whether the ε was read from the plan.
        gap: Whether time steps without an entry may lie between this one and the others.

    Returns:
        The entry.
    """
    series = contents.series
    _require_place(contents, entry, {"planned": planned, "gap": gap})
    if series is not None and entry.step is not None:
        _require_member(contents, series, entry, complete, gap)
        entry = _take_turn(contents, entry, planned)
    _require_within(contents, entry)
    if series is not None and entry.step is not None:
        _require_leakage(contents, series, entry)
    if not entry.together:
        _require_together(entry, contents.entries)
    return entry


def _require_place(contents: Contents, entry: Entry, stated: Mapping[str, bool]) -> None:
    """Raise `InputError` unless a release states its time step, or is outside the series by consent."""
    if entry.step is None:
        if contents.series is not None and entry.series is None:
            raise InputError(
                "step",
                "is missing: the ledger has a series, and a release beside it may tell the same values",
                remedy="state the step of a table, such as 11 or 2026-11. A trace has none: state that the leakage of "
                "the series does not count it (--no-series, series=False)",
            )
        for name, is_given in stated.items():
            if is_given:
                raise InputError(name, "is given without a step", value=True, bound="a release of a time step")
    elif contents.series is None:
        raise InputError(
            "step",
            "is given, but the ledger has no series",
            value=entry.step,
            remedy="state no step, or add a series with mechdesign ledger series or ledger.add_series",
        )
    elif entry.series is False:
        raise InputError(
            "series", "is False, but a step is given", value=False, bound="None for a release of the series"
        )


def _require_member(contents: Contents, series: Series, entry: Entry, complete: int | None, gap: bool) -> None:
    """Raise `InputError` unless a release can be part of the series at its time step."""
    assert entry.step is not None
    if steps := list(contents.steps):
        _require_step(entry.step, steps, gap)
    if entry.epsilon is None:
        bound = "ε: leakage judges ε, and a budget in ρ counts ε²/2 of each release"
        raise InputError("rho", "is no cost of a series", value=exact_text(entry.rho or Fraction(0)), bound=bound)
    if complete is None:
        raise InputError(
            "policy",
            "does not join every two values, but the leakage bounds all pairs of values",
            value=entry.policy,
            bound="a full policy, without known counts and without absence",
            remedy="take Policy.full, with a value such as absent; Ledger.spend needs complete=, the number of values",
        )
    if complete != series.size:
        raise InputError(
            "complete",
            "is not the number of values of the chain",
            value=complete,
            bound=f"{series.size}, as in the chain of the series",
            remedy=_OTHER_VALUES,
        )
    first = next((each for each in contents.entries if each.step is not None), None)
    domain = series.domain or (first.domain if first is not None else entry.domain)
    if entry.domain != domain:
        raise InputError(
            "domain",
            "has other values than the series, or the same in another order",
            remedy=_OTHER_VALUES if domain else "state the domain of the series: domain= of Ledger.add_series",
        )
    if entry.classes is not None and not _joins_values(entry.classes):
        bound = "noisy answers, or one class of all values"
        raise InputError("classes", "of an exact answer tell values apart, which no ε bounds", bound=bound)


def _require_step(step: TimeStep, steps: list[TimeStep], gap: bool) -> None:
    require_kind_of(steps, step)
    place, places = place_of(step), list(map(place_of, steps))
    if max(*places, place) - min(*places, place) >= LONGEST:
        bound = f"within {LONGEST} steps of all others"
        raise InputError("step", "is too far from the steps of the series", value=step, bound=bound)
    if not gap and min(abs(place - other) for other in places) > 1:
        nearest = min(steps, key=lambda other: abs(place_of(other) - place))
        raise InputError(
            "step",
            f"leaves out steps ({abs(place - place_of(nearest)) - 1}): the nearest one with an entry is {nearest}",
            value=step,
            bound="a step beside one with an entry",
            remedy="number the steps without holes; if nothing was released at these steps, say so (--gap, gap=True)",
        )


def _take_turn(contents: Contents, entry: Entry, planned: bool) -> Entry:
    """Return the entry with its turn; raise `BudgetExceededError` if the planned budget does not allow it."""
    assert entry.step is not None
    assert entry.epsilon is not None
    left = contents.planned(entry.step, entry.part)
    if left is None:
        if planned:
            raise BudgetExceededError(
                f"{entry.what} would spend a planned ε, but the series has no plan now; nothing was recorded. State ε"
            )
        return entry
    if entry.epsilon == 0:
        return entry
    if planned and entry.epsilon != left:
        raise BudgetExceededError(
            f"{entry.what} would spend the planned ε = {exact_text(entry.epsilon)} of step {entry.step}, but now "
            f"{exact_text(left)} is planned{_spent_by(contents.entries, entry.step)}; nothing was recorded. Try again"
        )
    if entry.epsilon > left:
        raise BudgetExceededError(
            f"{entry.what} would spend ε = {exact_text(entry.epsilon)} at step {entry.step}, but {exact_text(left)} is "
            f"left of its planned budget{say_used(contents.entries, entry.step, entry.part, contents.path)}"
        )
    return replace(entry, turn=contents.turn_of(entry.step))


def _require_within(contents: Contents, entry: Entry) -> None:
    """Raise `BudgetExceededError` if an entry exceeds the total budget."""
    after = totals((*contents.entries, entry))
    if contents.epsilon is not None:
        if after.epsilon is None:
            raise BudgetExceededError(
                f"{entry.what} satisfies zCDP only, and has no finite ε of pure differential privacy; the budget "
                f"is ε = {exact_text(contents.epsilon)}. Keep a ledger with a budget in ρ"
            )
        if after.epsilon > contents.epsilon:
            raise BudgetExceededError(_excess(entry, "ε", epsilon_of(entry), contents.left[0], contents.epsilon))
    if contents.rho is not None and after.rho > contents.rho:
        raise BudgetExceededError(_excess(entry, "ρ", rho_of(entry), contents.left[1], contents.rho))


def _require_leakage(contents: Contents, series: Series, entry: Entry) -> None:
    """Raise `LeakageExceededError`, without a remedy, if a release of the series would leak more than α."""
    assert entry.step is not None
    now = [*contents.steps.get(entry.step, []), entry]
    found = series.leakages({**contents.spent, place_of(entry.step): cost(now, epsilon_of)})
    worst = max(found, key=lambda place: found[place])
    if found[worst] > series.alpha:
        step = next(step for step in (*contents.steps, entry.step) if place_of(step) == worst)
        raise LeakageExceededError(step, as_float(found[worst]), nearest(series.alpha), "")


def with_remedy(error: LeakageExceededError, contents: Contents, entry: Entry) -> LeakageExceededError:
    """Return the error that states the largest ε that fits. This may take seconds, so no lock may be held."""
    assert entry.step is not None
    assert contents.series is not None
    most = exact_text(contents.series.publishable(contents.largest(entry.step, entry.part)))
    remedy = f"At step {entry.step} at most ε = {most} fits{_spent_by(contents.entries, error.step)}"
    return LeakageExceededError(error.step, error.leakage, error.alpha, remedy)


def say_plan(path: Path | None, steps: str = "") -> str:
    """Return how to plan so many steps, or none: the command for a file, or the statement for a ledger in memory."""
    if path is None:
        return f'ledger.series.plan = ("equal", {steps})' if steps else "ledger.series.plan = None"
    return f"mechdesign ledger plan {shlex.quote(str(path))} " + (f"--steps {steps}" if steps else "none")


def say_used(entries: Sequence[Entry], step: TimeStep, part: tuple[str, str] | None, path: Path | None) -> str:
    """Name the entry that used the planned budget of a part at a time step, and say what can be done."""
    same = [entry for entry in entries if not are_apart(entry.part, part)]
    more = say_plan(path, "M")
    if not any(entry.step == step for entry in same):
        return f". For more steps or other budgets replace the plan: {more}"
    return (
        f"{_spent_by(same, step)}. Publish only that release. To correct or repeat it, remove the plan "
        f"({say_plan(path)}), release it with a stated ε, and plan the steps that remain ({more})"
    )


def _spent_by(entries: Sequence[Entry], step: TimeStep) -> str:
    """Name the last entry of a time step, or the last one of the series; empty if there is none."""
    of_series = [entry for entry in entries if entry.step is not None]
    known = [entry for entry in of_series if entry.step == step] or of_series
    if not known:
        return ""
    last = known[-1]
    return f"; the last entry of step {last.step} is {last.number} of {last.when} by {last.who} ({last.what})"


def _excess(entry: Entry, name: str, asked: Fraction, left: Fraction | None, budget: Fraction) -> str:
    return (
        f"{entry.what} would spend {name} = {exact_text(asked)}, but {exact_text(left or Fraction(0))} of "
        f"{exact_text(budget)} is left; spend less: the budget of a ledger is a promise, and does not grow"
    )


def _require_together(entry: Entry, earlier: Iterable[Entry]) -> None:
    """Raise `ExactReleaseError` if an exact entry distinguishes values that the policy of another entry protects.

    The new entry is compared with each earlier entry, in both directions. If a comparison is undecidable, an exact
    release is refused and a noisy release is allowed.
    """
    for old in earlier:
        if are_apart(entry.part, old.part) or (entry.policy is not None and entry.policy == old.policy):
            continue
        for exact, other in ((entry, old), (old, entry)):
            if exact.classes is None:
                continue
            if (reason := _doubt(exact, other)) is None:
                assert other.components is not None
                if exact.classes.splits(other.components):
                    raise ExactReleaseError(_refusal(entry, old, exact))
            elif not _may_be_in_doubt(entry, exact, other):
                raise ExactReleaseError(_doubtful(entry, old, reason))


def _doubt(exact: Entry, other: Entry) -> str | None:
    """Return the reason why the exact answers of one entry cannot be compared with another's policy, or None.

    Under known counts, the components of a policy are not sufficient, because several records change at once.
    """
    for each in (exact, other):
        if each.domain is None:
            return f"the entry of {_name(each)} does not name its domain"
    if exact.domain != other.domain:
        return "their domains differ"
    for each in (exact, other):
        if each.components is None:
            return f"{_name(each)} is under known counts, or its domain is too large to be compared"
    assert exact.classes is not None
    assert other.components is not None
    if len(exact.classes) != len(other.components):
        return f"the values that {_name(exact)} distinguishes are unknown"
    return None


def _may_be_in_doubt(entry: Entry, exact: Entry, other: Entry) -> bool:
    """Return whether a release is allowed although it cannot be compared with another release.

    Noisy releases are always allowed. The number of records is the only exact answer that does not distinguish any two
    values. This number is compatible with noisy releases, and with every policy under which nobody can be absent.
    """
    if entry.classes is None:
        return True
    counts_records = _joins_values(entry.classes) and (entry is exact or entry.epsilon != 0)
    nobody_absent = other.components is not None and _keeps_absence_apart(other.components)
    return counts_records and (entry.epsilon != 0 or nobody_absent)


def _joins_values(classes: Partition) -> bool:
    """Return whether all values except absence are in one class."""
    nodes = len(classes)
    return nodes > 1 and classes in (Partition.of_lengths([nodes]), Partition.of_lengths([nodes - 1, 1]))


def _keeps_absence_apart(components: Partition) -> bool:
    """Return whether absence, the last value, is alone in its component."""
    first, lengths, steps = components.runs.T
    ends = first + steps * (lengths - 1)
    alone = lengths[-1] == 1 or steps[-1] == 1
    return bool(alone and ends[-1] == components.count - 1 and (ends[:-1] < ends[-1]).all())


_REMEDY = (
    "Leave out one of them, or release both under one policy that protects what either of them protects. together=True "
    "in Python, or --together on the command line, releases it nevertheless; the entry records this"
)


def _refusal(entry: Entry, old: Entry, exact: Entry) -> str:
    which, other = ("new", "earlier") if exact is entry else ("earlier", "new")
    return (
        f"{_name(entry)} was not released: it conflicts with {_name(old)} of {old.when}. The {which} release is "
        f"exact and distinguishes values that the policy of the {other} release protects. {_REMEDY}"
    )


def _doubtful(entry: Entry, old: Entry, reason: str) -> str:
    return (
        f"{_name(entry)} was not released: it may conflict with {_name(old)} of {old.when}. An exact release must "
        f"not distinguish values that the other policy protects. This cannot be decided, because {reason}. {_REMEDY}"
    )


def _name(entry: Entry) -> str:
    return f'"{entry.what}" ({entry.policy or entry.protects})'
