"""Ledgers of privacy budgets: create one, charge it, and check folders of releases against it."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from mechdesign.base import _lazy
from mechdesign.base._check import as_integer, as_truth
from mechdesign.base._errors import InputError, LeakageExceededError, LedgerError
from mechdesign.base._files import read_regular
from mechdesign.base._locks import (
    WAIT_S,
    ProcessLock,
    as_wait,
    exists,
    file_of,
    hold_lock,
    hold_new_lock,
    lock_file_of,
    require_one_name,
)
from mechdesign.certify._exact import exact, exact_text
from mechdesign.leakage._contents import NUMBER, Contents, read_ledger, write_ledger
from mechdesign.leakage._correlations import Correlation, functions_of_both
from mechdesign.leakage._entries import (
    APART,
    Entry,
    PolicyTotals,
    TimeStep,
    Totals,
    by_policy,
    read_cost,
    totals,
)
from mechdesign.leakage._judgement import judge, with_remedy
from mechdesign.leakage._partition import Partition
from mechdesign.leakage._plans import assumptions, make_plan, promises
from mechdesign.leakage._series import Series, as_step, place_of
from mechdesign.leakage._upwards import as_float

__all__ = ["Entry", "Ledger", "LedgerSeries"]
__dir__ = _lazy.listing(__all__)


Number = float | int | str | Fraction

_LEAST_ALPHA = Fraction(1, 10**9)


class Ledger:
    """Record the cost of every release, and refuse a release that exceeds the budget.

    Costs add up (sequential composition). Releases about disjoint parts of the data, named by `part`, together cost the
    largest sum of any part (parallel composition). The caller must make sure that the parts are disjoint. For policies
    with constraints, `mechdesign.tables` states when parallel composition holds.

    The budget limits `spent`, the plain sum over all entries. The guarantees are in `by_policy`, which keeps policies
    apart: each line covers the releases under one policy, and holds for neighbours under this policy. A ledger makes no
    statement about releases under several policies together, because their neighbouring databases may differ.

    With a `path` the ledger is a file that outlives the process. For every entry, the file is locked, read again and
    replaced as a whole, so that any number of processes may share it. A crash loses nothing: an entry is on the disk
    before `spend` returns, and the caller draws noise after that. Copies of the ledger, including pickled ones, reopen
    the same file.

    Without a `path` the ledger is in the memory of one process. A forked process may read the ledger, but cannot spend
    from it. Copying a ledger in memory returns the same object, and pickling it fails.

    Args:
        epsilon: Budget under pure differential privacy, in nats, at least 0; None for no limit on ε.
        rho: Budget under zero-concentrated differential privacy, at least 0; None for no limit on ρ.
        path: The file of the ledger, which is created at the first charge and readable only by its owner. An existing
            file must have the same budget; without `epsilon` and `rho` the budget of the file applies. A removed file
            is not created again while its lock exists, or after this object has read the file.
        wait: Longest time in seconds to wait for another process that uses the file.

    Raises:
        InputError: A budget is negative or not a number.
        LedgerError: The file is damaged, or was created with another budget.

    >>> ledger = Ledger(epsilon=1)
    >>> entry = ledger.spend("a histogram", "one person's value", epsilon="1/2")
    >>> ledger.remaining_epsilon
    Fraction(1, 2)
    >>> ledger.spend("another histogram", "one person's value", epsilon=0.6)
    Traceback (most recent call last):
    ...
    mechdesign.errors.BudgetExceededError: another histogram would spend ε = 0.6, but 0.5 of 1 is left; spend less: \
the budget of a ledger is a promise, and does not grow
    """

    def __init__(
        self,
        epsilon: Number | None = None,
        *,
        rho: Number | None = None,
        path: str | PathLike[str] | None = None,
        wait: float = WAIT_S,
    ) -> None:
        self._path = None if path is None else file_of(path)
        budgets = _as_cost(epsilon, "epsilon", zero=True), _as_cost(rho, "rho", zero=True)
        self._contents = Contents(*budgets, path=self._path)
        self._wait = as_wait(wait)
        self._lock = ProcessLock()
        self._charging_in: int | None = None
        self._stood = False
        if self._path is not None and exists(self._path):
            self._read(adopt=epsilon is None and rho is None)

    @classmethod
    def existing(cls, path: str | PathLike[str]) -> Ledger:
        """Open an existing ledger; its file determines the budget.

        Args:
            path: The file of the ledger.

        Returns:
            The ledger.

        Raises:
            LedgerError: The file does not exist, or is damaged.
        """
        if not exists(file := file_of(path)):
            raise LedgerError(f"{file} does not exist. Begin a ledger with: mechdesign ledger new {file} --epsilon 3")
        return cls(path=path)

    def __copy__(self) -> Ledger:
        return self if self._path is None else _reopen(self._contents, self._path, self._wait)

    def __deepcopy__(self, _: dict[int, Any]) -> Ledger:
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        if self._path is None:
            raise LedgerError(
                "a ledger in memory belongs to one process: it cannot be pickled, since each copy would spend the "
                "whole budget. Keep it in a file (path=)"
            )
        return _reopen, (self._contents, self._path, self._wait)

    def __repr__(self) -> str:
        budgets = [
            f"{name}={exact_text(budget)}"
            for name, budget in (("epsilon", self.epsilon), ("rho", self.rho))
            if budget is not None
        ]
        entries = self._contents.entries
        policies = len(by_policy(entries))
        said = f"{len(entries)} entries" + f" under {policies} policies" * (policies > 1)
        return f"Ledger({', '.join([*budgets, said])})" + f". {APART}." * (policies > 1)

    def __str__(self) -> str:
        """Return a line for each policy, and the plain sum that the budget limits."""
        lines = self.by_policy
        return "\n".join(
            [
                f"Ledger with {_budgets(self.epsilon, self.rho).replace('no limit', 'no budget')}",
                *(f"- {line}" for line in lines),
                *([f"{APART}."] if len(lines) > 1 else []),
                f"The budget limits the plain sum: {self.spent}.",
            ]
        )

    @property
    def path(self) -> Path | None:
        """The full path of the file, or None for a ledger in memory."""
        return self._path

    @property
    def epsilon(self) -> Fraction | None:
        """The exact budget under pure differential privacy, or None."""
        return self._contents.epsilon

    @property
    def rho(self) -> Fraction | None:
        """The exact budget under zero-concentrated differential privacy, or None."""
        return self._contents.rho

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries so far, in order; a shared file is read again."""
        return self._now().entries

    @property
    def series(self) -> LedgerSeries | None:
        """The series of the ledger, see `add_series`; None without one."""
        return None if self._now().series is None else LedgerSeries(self)

    @property
    def spent(self) -> Totals:
        """The plain sum of all entries, which the budget limits; `by_policy` has the guarantees."""
        return totals(self.entries)

    @property
    def by_policy(self) -> tuple[PolicyTotals, ...]:
        """The entries and their total cost under each policy.

        >>> ledger = Ledger(epsilon=1)
        >>> entry = ledger.spend("ages", "one person's age", epsilon="0.5")
        >>> entry = ledger.spend("incomes", "one person's income", epsilon="0.25")
        >>> for line in ledger.by_policy:
        ...     print(line)
        ε = 0.5 in 1 entry under: one person's age
        ε = 0.25 in 1 entry under: one person's income
        """
        return by_policy(self.entries)

    @property
    def remaining_epsilon(self) -> Fraction | None:
        """The exact remaining budget in ε, or None without a budget in ε."""
        return self._now().left[0]

    @property
    def remaining_rho(self) -> Fraction | None:
        """The exact remaining budget in ρ, or None without a budget in ρ."""
        return self._now().left[1]

    def promises(self, entry: Entry) -> tuple[str, ...]:
        """Return the promises and assumptions of a release as sentences, without reading the file again.

        Args:
            entry: An entry of the ledger.

        Returns:
            Sentences about the release, about all releases of the ledger so far, about each value given all releases
            and the correlation, and the assumptions; empty without a series.
        """
        return () if self._contents.series is None else promises(self._contents, entry)

    def spend(
        self,
        what: str,
        protects: str,
        epsilon: Number | None = None,
        rho: Number | None = None,
        part: tuple[str, str] | None = None,
        policy: str | None = None,
        *,
        domain: str | None = None,
        components: Partition | None = None,
        classes: Partition | None = None,
        together: bool = False,
        step: TimeStep | None = None,
        complete: int | None = None,
        planned: bool = False,
        gap: bool = False,
        series: Literal[False] | None = None,
    ) -> Entry:
        """Record a release before it is made.

        If the ledger has a series, a release states its time step, or `series=False`.

        Args:
            what: Description of the release.
            protects: Description of the neighbouring databases, for example "one person's value".
            epsilon: ε in nats of a release that is ε-private; 0 for a release without noise, which needs `classes`.
            rho: ρ of a release that satisfies ρ-zCDP. Exactly one of `epsilon` and `rho` must be given.
            part: Name of a division of the data into disjoint parts, and name of the part that the release uses.
            policy: Name of the policy. `by_policy` adds up all releases with the same name. Releases without a name
                are added up if they have the same text in `protects`.
            domain: Digest of the domain of `components` and `classes`.
            components: Components of the policy; None if the components do not determine the policy's protection.
            classes: Classes of values that an answer without noise distinguishes.
            together: Whether to allow an exact release that distinguishes values that an earlier policy protects, or
                vice versa. The entry records this choice.
            step: Time step of a release of the series: an integer, or an ISO month such as "2026-11".
            complete: Number of values if the policy joins every two values in one edge, without known counts and
                absence; else None. A series accepts only such policies.
            planned: Whether `epsilon` was read from the plan of the series. It must then still be the planned budget.
            gap: Whether time steps without an entry may lie between this step and the others. Steps that are left out
                in error make the computed leakage too small.
            series: False for a release outside the series, which its leakage does not count; the entry records it.

        Returns:
            The entry, already on the disk, with a number that the release should repeat.

        Raises:
            BudgetExceededError: The release exceeds the budget or the planned budget. Nothing is recorded, and nothing
                may be released.
            LeakageExceededError: A release of the series would leak more than α. Nothing is recorded.
            ExactReleaseError: This release or an earlier one is exact and distinguishes values that the policy of the
                other one protects, or this cannot be excluded. Nothing is recorded.
            InputError: An argument is invalid, or the release does not fit the series.
            LedgerError: The file is damaged, locked for too long, removed, or has a second name (a hard link). This
                error also reports a ledger in the memory of another process.
            ExportError: The file cannot be written. Nothing is recorded.
        """
        if series is not None and series is not False:
            raise InputError("series", "is neither False nor None", value=series, bound="False or None")
        if (epsilon is None) == (rho is None):
            raise InputError(
                "epsilon", "and rho are both given or both missing", value=(epsilon, rho), bound="one of the two"
            )
        entry = Entry(
            _present(),
            _as_text(what, "what"),
            _as_text(protects, "protects"),
            # An exact release costs nothing of either budget; its classes are recorded.
            _as_cost(epsilon, "epsilon", zero=classes is not None),
            _as_cost(rho, "rho"),
            as_part(part),
            None if policy is None else _as_text(policy, "policy"),
            domain=None if domain is None else _as_text(domain, "domain"),
            components=_as_partition(components, "components"),
            classes=_as_partition(classes, "classes"),
            together=as_truth(together, "together"),
            step=None if step is None else as_step(step),
            series=series,
            who=_user(),
        )
        size = None if complete is None else as_integer(complete, "complete", 1)
        asked = entry, size, as_truth(planned, "planned"), as_truth(gap, "gap")
        contents = self._contents
        try:
            if step is not None and contents.series is None:
                # The error of a ledger without a series makes no file.
                judge(contents := self._now(), *asked)
            with self._changing():
                contents = self._contents
                made = replace(judge(contents, *asked), number=secrets.token_hex(16))
                self._keep(replace(contents, entries=(*contents.entries, made)))
                return made
        except LeakageExceededError as error:
            raise with_remedy(error, contents, entry) from None

    def check(self, what: str, protects: str, *arguments: Any, **keywords: Any) -> None:
        """Raise the errors of `spend` about the budget, the process and earlier releases, but record nothing.

        Use this check before a long computation. Another process may spend in the meantime, so only `spend` gives the
        final decision. To check several releases, pass their sum: ε adds up, while a budget in ρ counts ε²/2 of each
        release.

        Args:
            what: Description of the release.
            protects: Description of the neighbouring databases.
            *arguments: Further arguments of `spend`.
            **keywords: Keywords of `spend`.
        """
        self._require_process()
        trial = Ledger()
        trial._contents = self._now()
        trial.spend(what, protects, *arguments, **keywords)

    def add_series(
        self,
        *,
        alpha: Number,
        backward: Correlation,
        forward: Correlation,
        plan: Any = None,
        history: Literal["others", "own"],
        domain: str | None = None,
    ) -> LedgerSeries:
        """Promise a limit of the leakage of each value, given all releases of a series and the correlation.

        A series consists of releases about the same people at time steps, under full policies. For each of them
        TPL_t = BPL_t + FPL_t − ε_t ≤ α must hold (Equation (10) of Cao et al. 2019), also after later releases. The
        correlation must hold for each person and at every step. A series without entries may be given anew.

        Args:
            alpha: Largest leakage of each value, in nats, from 1e-9 to 1e9.
            backward: Pr(state before | state now): a matrix, a `LossFunction`, `Candidates` or None. None means that no
                adversary knows this direction. `Candidates` bound an adversary who knows which one is true.
            forward: Pr(next state | state now), in the same forms. At least one direction must be known.
            plan: Budgets of the time steps: ("equal", 12) for the largest equal budget of 12 steps, "constant" for the
                largest budget without an end (Algorithm 7), ("allocated", 12) for Algorithm 8, a list of budgets, or
                None. The k-th step that has a release spends at most the k-th budget.
            history: "others" if the correlation was counted from other people, or "own" if it was counted from the
                people of the series. The bound does not cover what a plan then tells about them: its computed budgets
                have four significant digits, while a list is kept as given.
            domain: Digest of the domain of the matrices; by default that of the first entry.

        Returns:
            The series.

        Raises:
            InputError: An argument is invalid, or the plan has a budget of 0.
            BudgetExceededError: The sum of the plan exceeds the total budget.
            LeakageExceededError: The plan leaks more than α.
            LedgerError: The ledger has a series with entries, or entries that the series would not count.

        >>> ledger = Ledger(epsilon=2)
        >>> flows = [[0.9, 0.1], [0.1, 0.9]]
        >>> series = ledger.add_series(alpha=1, backward=flows, forward=flows, plan=("equal", 12), history="others")
        >>> round(float(series.planned("2026-11")), 6)
        0.152842
        """
        promise = _as_series(alpha, backward, forward, history, domain)
        with self._changing():
            if self._contents.steps:
                raise LedgerError(
                    "the ledger has a series with entries, which cannot be given anew. Replace its plan, or begin a "
                    "ledger with what is left of the budget"
                )
            if any(entry.series is None for entry in self._contents.entries):
                raise LedgerError(
                    "the ledger has entries that a series would not count. Begin a new ledger with what is left of the "
                    "budget"
                )
            first = make_plan(self._contents, promise, plan, _present())
            self._keep(replace(self._contents, series=replace(promise, plans=(first,))))
        return LedgerSeries(self)

    def _replan(self, plan: Any) -> None:
        """Replace the plan of the series."""
        with self._changing():
            series = self._contents.series
            assert series is not None
            new = make_plan(self._contents, series, plan, _present())
            self._keep(replace(self._contents, series=replace(series, plans=(*series.plans, new))))

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Hold all locks, and read the file again, if there is one; the contents may be changed in the block."""
        self._require_process()
        with self._lock, self._alone(), self._hold_file():
            yield

    def _keep(self, contents: Contents) -> None:
        """Write and keep new contents."""
        if self._path is not None:
            write_ledger(self._path, contents)
        self._contents = contents

    def _require_process(self) -> None:
        if self._path is None and not self._lock.is_at_home():
            raise LedgerError(
                f"a ledger in the memory of process {self._lock.process} cannot be charged in process {os.getpid()}: "
                "each process would spend the whole budget. Keep the ledger in a file (path=) that all processes share"
            )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """While this thread records an entry, refuse charges by signal handlers, which could exceed the budget."""
        if self._charging_in == os.getpid():
            raise LedgerError(
                "a release cannot be recorded while the same thread records another one. Wait for its end"
            )
        self._charging_in = os.getpid()
        try:
            yield
        finally:
            self._charging_in = None

    @contextmanager
    def _hold_file(self) -> Iterator[None]:
        """Hold the lock of the file, if any, and read its entries again; create the file if needed."""
        if self._path is None:
            yield
            return
        require_folder(self._path)
        path = self._path
        with hold_new_lock(path, self._wait, self._missing(path)):
            if not exists(path) and not self._stood:
                write_ledger(path, self._contents)
            if not exists(path):
                raise LedgerError(self._missing(path))
            self._refresh()
            require_one_name(path)
            yield

    def _missing(self, path: Path) -> str:
        budgets = (("--epsilon", self.epsilon), ("--rho", self.rho))
        options = "".join(f" {name} {exact_text(budget)}" for name, budget in budgets if budget is not None)
        return (
            f"{path} is missing, but its lock ({lock_file_of(path).name}) still exists: earlier charges would be "
            "forgotten, and nothing was recorded. Restore the file, or begin anew with: mechdesign ledger new "
            f"{path}{options} --again"
        )

    def _now(self) -> Contents:
        """Return the present contents; a file is read again."""
        with self._lock:
            self._refresh()
            return self._contents

    def _refresh(self) -> None:
        if self._path is not None and (self._stood or exists(self._path)):
            self._read(adopt=False)

    def _read(self, *, adopt: bool) -> None:
        assert self._path is not None
        found, known = read_ledger(self._path), self._contents
        if not adopt and (found.epsilon, found.rho) != (known.epsilon, known.rho):
            raise LedgerError(
                f"{self._path} was created with another budget ({_budgets(found.epsilon, found.rho)}, not "
                f"{_budgets(known.epsilon, known.rho)}). To use its own, state no budget"
            )
        _require_grown(self._path, known, found)
        self._contents = found
        self._stood = True


class LedgerSeries:
    """The series of a ledger at present; its methods read the file of the ledger again.

    `Ledger.series` and `Ledger.add_series` return it.

    Args:
        ledger: A ledger with a series.
        part: The part of a division to which `planned` and `largest` refer if they name none, or None.

    >>> ledger = Ledger(epsilon=2)
    >>> same = [[1, 0], [0, 1]]
    >>> series = ledger.add_series(alpha=1, backward=None, forward=same, plan=("equal", 4), history="others")
    >>> series.planned(1)
    Fraction(1, 4)
    >>> entry = ledger.spend("a count", "one person's value", epsilon=0.25, step=1, complete=2)
    >>> series.steps, series.leakage, series.largest(2)
    ({1: Fraction(1, 4)}, {1: 0.25}, Fraction(1, 4))
    """

    def __init__(self, ledger: Ledger, part: tuple[str, str] | None = None) -> None:
        self._ledger, self._part = ledger, as_part(part)

    def __repr__(self) -> str:
        return f"LedgerSeries(alpha={exact_text(self.alpha)}, {len(self.steps)} steps)"

    @property
    def _now(self) -> tuple[Contents, Series]:
        contents = self._ledger._now()
        if contents.series is None:
            raise LedgerError("the ledger no longer has a series. Restore a copy")
        return contents, contents.series

    @property
    def alpha(self) -> Fraction:
        """The exact limit of the leakage of each value, in nats."""
        return self._now[1].alpha

    @property
    def history(self) -> str:
        """Whose data determined the correlations: "others" or "own"."""
        return self._now[1].history

    @property
    def steps(self) -> dict[TimeStep, Fraction]:
        """The exact ε of each time step that has an entry, in the order of time."""
        contents, _ = self._now
        return dict(zip(contents.steps, contents.spent.values(), strict=True))

    @property
    def leakage(self) -> dict[TimeStep, float]:
        """The leakage of each time step that has an entry, rounded up, in nats."""
        contents, series = self._now
        found = series.leakages(contents.spent)
        return {step: as_float(found[place_of(step)]) for step in contents.steps}

    @property
    def plan(self) -> Any:
        """The plan, in the form that `Ledger.add_series` accepts; a new one holds from the next time step on.

        A new plan begins after the latest time step with an entry: ("equal", m) is what m more steps can spend. A time
        step that spent something before has nothing left.
        """
        return self._now[1].plan.asked

    @plan.setter
    def plan(self, plan: Any) -> None:
        self._ledger._replan(plan)

    @property
    def budgets(self) -> tuple[Fraction, ...]:
        """The exact planned budgets, one for a constant plan; empty without a plan."""
        return self._now[1].plan.budgets

    @property
    def used(self) -> int:
        """The number of planned budgets that time steps have used since the plan was made."""
        return len(self._now[0].turns)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Sentences about what the limit α assumes."""
        return assumptions(self._now[1])

    def planned(self, step: TimeStep, part: tuple[str, str] | None = None) -> Fraction | None:
        """Return what is left of the planned budget of a time step; α and the total budget are still judged.

        Args:
            step: The time step.
            part: A part of a division, which may spend what does not raise the budget of the step above the plan.

        Returns:
            The exact ε; 0 if it is used up, or if the step had an entry before this plan. None without a plan.
        """
        return self._now[0].planned(as_step(step), as_part(part) or self._part)

    def largest(self, step: TimeStep, part: tuple[str, str] | None = None) -> Fraction:
        """Return the largest ε that `Ledger.spend` accepts now at a time step, rounded down.

        Args:
            step: The time step; steps may be left out, as with ``gap=True``.
            part: The part of a division that the release uses, or None.

        Returns:
            The ε, 0 if nothing fits.
        """
        return self._now[0].largest(as_step(step), as_part(part) or self._part)


def _as_series(alpha: Number, backward: Correlation, forward: Correlation, history: str, domain: str | None) -> Series:
    """Return a series without a plan; raise `InputError` for an invalid argument."""
    if history not in ("others", "own"):
        raise InputError(
            "history",
            "must be stated",
            value=history,
            bound='"others" or "own"',
            remedy="say whether the correlation was counted from other people, or from those of the series",
        )
    limit = exact(alpha, "alpha")
    if not _LEAST_ALPHA <= limit <= 1 / _LEAST_ALPHA:
        bound = "from 1e-9 to 1e9 nats, where floats bound a leakage"
        raise InputError("alpha", "is out of range", value=alpha, bound=bound)
    before, after = functions_of_both(backward, forward)
    if not any((*before, *after)):
        raise InputError(
            "backward",
            "is none, and so is forward",
            bound="a matrix in at least one direction",
            remedy="a ledger without a series bounds the releases without a correlation",
        )
    domain = None if domain is None else _as_text(domain, "domain")
    return Series(limit, tuple(before), tuple(after), history, domain)


def _present() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _user() -> str:
    """Return the name of the user of this process, or the number of a user without a name, as in containers."""
    try:
        import pwd
    except ImportError:
        return "unknown"
    try:
        # Not by the environment, which a change of user may keep.
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"user {os.geteuid()}"


def _as_text(text: object, path: str) -> str:
    if not isinstance(text, str) or not text.strip():
        raise InputError(path, "must not be empty", value=text, bound="a text that is not empty")
    _require_characters(text, path)
    return text


def _as_partition(partition: object, path: str) -> Partition | None:
    if not isinstance(partition, Partition | None):
        raise InputError(path, "is not a Partition", value=type(partition).__name__, bound="a Partition or None")
    return partition


def as_part(part: object) -> tuple[str, str] | None:
    """Return None, or the names of a division and one of its parts; raise `InputError` for anything else."""
    if part is None:
        return None
    if not (isinstance(part, tuple) and len(part) == 2 and all(isinstance(name, str) for name in part)):
        raise InputError("part", "must name a division and one of its parts", value=part, bound="a pair of texts")
    for name in part:
        _require_characters(name, "part")
    return part


def _require_characters(text: str, path: str) -> None:
    """Raise `InputError` for text that UTF-8 cannot encode, such as lone surrogates from wrongly decoded names."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        problem = f"is not a text at character {error.start} ({error.reason})"
        raise InputError(path, problem, value=text[error.start : error.end], bound="whole characters") from None


def _as_cost(value: object, path: str, *, zero: bool = False) -> Fraction | None:
    if value is None:
        return None
    number = read_cost(value, path)
    if number < 0 or (number == 0 and not zero):
        problem, bound = ("must not be negative", "at least 0") if zero else ("must be positive", "greater than 0")
        raise InputError(path, problem, value=value, bound=bound)
    return number


def _reopen(contents: Contents, path: Path, wait: float) -> Ledger:
    """Open a ledger again by its path; raise `LedgerError` if it lacks entries that the original object had."""
    budgets = {} if exists(path) else {"epsilon": contents.epsilon, "rho": contents.rho}
    ledger = Ledger(**budgets, path=path, wait=wait)
    _require_grown(path, contents, ledger._now())
    return ledger


def _require_grown(path: Path, known: Contents, found: Contents) -> None:
    if not found.continues(known):
        raise LedgerError(f"{path} no longer holds the earlier entries and the series. Restore a copy")


def require_folder(path: Path) -> None:
    """Raise `LedgerError` unless the folder of a ledger exists."""
    if not path.parent.is_dir():
        raise LedgerError(f"{path} cannot be kept: {path.parent} is not a folder. Create it first")


def _budgets(epsilon: Fraction | None, rho: Fraction | None) -> str:
    known = [f"{name} = {exact_text(value)}" for name, value in (("ε", epsilon), ("ρ", rho)) if value is not None]
    return ", ".join(known) or "no limit"


MANIFEST = "release.json"
"""Name of the file in which a release repeats the numbers of its entries."""


def begin_ledger(
    path: str | os.PathLike[str],
    epsilon: Any = None,
    rho: Any = None,
    *,
    again: bool = False,
) -> Ledger:
    """Create an empty ledger and its lock.

    In a folder with the setgid bit that its group may write (``chmod 2770 folder``), the group shares both files (mode
    0660). Everywhere else only their owner may read them (0600).

    Args:
        path: The file, which must not exist.
        epsilon: Budget in ε, in nats, or None.
        rho: Budget in ρ, or None.
        again: Create the ledger even if the lock of an earlier ledger exists. The new ledger does not contain earlier
            charges.

    Returns:
        The ledger, opened by its path.

    Raises:
        InputError: A budget is negative or not a number.
        LedgerError: The ledger exists, or the lock of a removed ledger exists.
        ExportError: The file cannot be written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     begin_ledger(f"{folder}/ledger.json", epsilon=3)
    Ledger(epsilon=3, 0 entries)
    """
    ledger = Ledger(epsilon, rho=rho)
    where = file_of(path)
    require_folder(where)
    _require_new(where)
    lock = lock_file_of(where)
    stood = exists(lock)
    with hold_lock(where):
        _require_new(where)
        if stood and not again:
            raise LedgerError(
                f"the lock of an earlier ledger ({lock}) still exists, and earlier charges would be forgotten. "
                "Restore the ledger, or insist: --again (again=True)"
            )
        write_ledger(where, ledger._contents)
    return Ledger(path=where)


def _require_new(path: Path) -> None:
    """Raise `LedgerError` if a file exists; asked before a lock is made beside it, and again under the lock."""
    if exists(path):
        raise LedgerError(f"{path} exists already; nothing was changed. Choose another name, or move it away first")


@dataclass(frozen=True)
class Checked:
    """The numbers of the entries that a release folder names, compared with a ledger.

    Attributes:
        folder: The folder of the release.
        numbers: The numbers of the entries that the folder names.
        missing: Entry numbers that are missing from the ledger.

    >>> Checked(Path("release"), ("0" * 32,), ()).missing
    ()
    """

    folder: Path
    numbers: tuple[str, ...]
    missing: tuple[str, ...]


def check_folders(ledger: Ledger, folders: Sequence[str | os.PathLike[str]]) -> tuple[Checked, ...]:
    """Return, for each folder of a release, the entry numbers that are missing from the ledger.

    A missing number shows that the ledger was replaced by an older copy, or is another ledger.

    Args:
        ledger: The ledger.
        folders: Folders of releases.

    Returns:
        One result for each folder, in order.

    Raises:
        InputError: A folder does not contain a readable release, or its release was not charged to a ledger.

    >>> check_folders(Ledger(epsilon=1), [])
    ()
    """
    known = {entry.number for entry in ledger.entries}
    found = []
    for folder in map(Path, folders):
        numbers = _numbers(folder)
        found.append(Checked(folder, numbers, tuple(each for each in numbers if each not in known)))
    return tuple(found)


def _numbers(folder: Path) -> tuple[str, ...]:
    file = folder / MANIFEST
    try:
        document = json.loads(read_regular(file).decode("utf-8"))
        entries = document["entries"] if "entries" in document else [document["entry"]]
        if not isinstance(entries, list) or not all(number is None or NUMBER.fullmatch(number) for number in entries):
            raise ValueError("numbers of entries are 32 hexadecimal digits")
    except OSError as error:
        reason = error.strerror or error
        raise InputError(str(file), f"cannot be read ({reason})", bound="the folder of a release") from error
    except (ValueError, RecursionError, LookupError, TypeError) as error:
        raise InputError(
            str(file), "does not name an entry of a ledger", bound="a release of this version or later"
        ) from error
    charged = tuple(number for number in entries if number is not None)
    if not charged:
        raise InputError(str(file), "was not charged to a ledger", bound="a release that names entries of a ledger")
    return charged
