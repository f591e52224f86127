"""A ledger of privacy budgets: what was spent, what it protects, and when, in exact numbers."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from fractions import Fraction
from os import PathLike
from pathlib import Path

from filelock import FileLock

from mechdesign.accounting.ledger_file import Entry, read_ledger, write_ledger
from mechdesign.accounting.policies import APART, PolicyTotals, by_policy
from mechdesign.accounting.totals import Totals, rho_of, totals
from mechdesign.certify.exact import exact, exact_text
from mechdesign.display import card
from mechdesign.errors import BudgetExceededError, InputError, LedgerError

__all__ = ["Entry", "Ledger", "PolicyTotals", "Totals"]


def __dir__() -> list[str]:
    return sorted(__all__)


Number = float | int | str | Fraction


class Ledger:
    """Record what every release spends, and refuse the one that would pass the budget.

    Costs add up (sequential composition). Releases about disjoint parts of the data, named by `part`, cost the largest
    sum of any one part (parallel composition); whether parts may be counted so is decided by whoever names them, see
    `mechdesign.blowfish` for the condition under a policy with constraints.

    The budget limits `spent`, the plain sum over all entries. What protects somebody is in `by_policy`, which keeps
    policies apart: each of its lines is about the releases under one policy, and holds for neighbours under it. Nothing
    is said of releases under several policies together, whose neighbours may be different databases.

    With a `path` the ledger is a file that outlives the process. It is locked, read again and replaced as a whole for
    every entry, so that any number of processes may share it, and a crash loses nothing: an entry is on the disk
    before `spend` returns, and noise is drawn after that.

    Args:
        epsilon: the budget under pure differential privacy, in nats; None for no limit on ε.
        rho: the budget under zero-concentrated differential privacy; None for no limit on ρ.
        path: the file, made when something is first spent. One that exists must have been made with the same budget;
            with neither `epsilon` nor `rho` given, its own applies.

    Raises:
        InputError: a budget is negative or no number.
        LedgerError: the file is damaged, or was made with another budget.

    >>> ledger = Ledger(epsilon=1)
    >>> entry = ledger.spend("a histogram", "one person's value", epsilon="1/2")
    >>> ledger.remaining_epsilon
    Fraction(1, 2)
    >>> ledger.spend("another histogram", "one person's value", epsilon=0.6)
    Traceback (most recent call last):
    ...
    mechdesign.errors.BudgetExceededError: another histogram would spend ε = 0.6, but 0.5 of 1 is left; spend less, \
or give the ledger that the data deserve a larger budget
    """

    def __init__(
        self,
        epsilon: Number | None = None,
        *,
        rho: Number | None = None,
        path: str | PathLike[str] | None = None,
    ) -> None:
        self._budget_epsilon = None if epsilon is None else _not_negative(epsilon, "epsilon")
        self._budget_rho = None if rho is None else _not_negative(rho, "rho")
        self._path = None if path is None else _file(path)
        self._lock = threading.RLock()
        self._entries: tuple[Entry, ...] = ()
        if self._path is not None and self._path.exists():
            self._read(adopt=epsilon is None and rho is None)

    def __repr__(self) -> str:
        budgets = [
            f"{name}={exact_text(budget)}"
            for name, budget in (("epsilon", self.epsilon), ("rho", self.rho))
            if budget is not None
        ]
        policies = len(by_policy(self._entries))
        said = f"{len(self._entries)} entries" + f" under {policies} policies" * (policies > 1)
        return f"Ledger({', '.join([*budgets, said])})" + f". {APART}." * (policies > 1)

    def __str__(self) -> str:
        """Say what was spent under each policy, and what the budget limits."""
        lines = self.by_policy
        return "\n".join(
            [
                f"Ledger with {_budgets(self.epsilon, self.rho).replace('no limit', 'no budget')}",
                *(f"- {line}" for line in lines),
                *([f"{APART}."] if len(lines) > 1 else []),
                f"What the budget limits is the plain sum: {self.spent}.",
            ]
        )

    def _repr_html_(self) -> str:
        """Show what `str` says."""
        lines = self.by_policy
        facts = [(str(line.spent), line.policy) for line in lines]
        if len(lines) > 1:
            facts.append(("", f"{APART}."))
        return card(f"Ledger, {_budgets(self.epsilon, self.rho)}", [*facts, ("plain sum", str(self.spent))])

    @property
    def epsilon(self) -> Fraction | None:
        """The budget under pure differential privacy, exact, or None."""
        return self._budget_epsilon

    @property
    def rho(self) -> Fraction | None:
        """The budget under zero-concentrated differential privacy, exact, or None."""
        return self._budget_rho

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Everything that was spent so far, in order; a shared file is read again."""
        with self._lock:
            self._refresh()
            return self._entries

    @property
    def spent(self) -> Totals:
        """The plain sum of what was spent so far, which the budget limits; see `by_policy` for whom it protects."""
        return totals(self.entries)

    @property
    def by_policy(self) -> tuple[PolicyTotals, ...]:
        """What was spent under each policy so far.

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
        """What is left of the budget in ε, exact, or None without one."""
        spent = self.spent.epsilon
        return None if self._budget_epsilon is None or spent is None else self._budget_epsilon - spent

    @property
    def remaining_rho(self) -> Fraction | None:
        """What is left of the budget in ρ, exact, or None without one."""
        return None if self._budget_rho is None else self._budget_rho - self.spent.rho

    def spend(
        self,
        what: str,
        protects: str,
        epsilon: Number | None = None,
        rho: Number | None = None,
        part: tuple[str, str] | None = None,
        policy: str | None = None,
    ) -> Entry:
        """Record a release before it is made.

        Args:
            what: what is released, in words.
            protects: whom the guarantee protects: what neighbouring data are, in words.
            epsilon: its ε in nats, where it is ε-private.
            rho: its ρ, where it satisfies ρ-zCDP; exactly one of the two is given.
            part: the name of a division of the data into disjoint parts, and that of the part which the release uses.
            policy: the name of the policy, the same for all releases under it: `by_policy` adds up those of one name.
                Releases without one are added up where `protects` is the same text.

        Returns:
            The entry, already durable.

        Raises:
            BudgetExceededError: the budget would be passed; nothing is recorded, and nothing may be released.
            InputError: a number is not positive, or not exactly one of the two is given.
            LedgerError: the file is damaged, or has a second name (a hard link).
            ExportError: the file cannot be written; nothing is recorded.
        """
        entry = _entry(what, protects, epsilon, rho, part, policy)
        with self._lock, self._file_lock():
            self._refresh()
            self._require_one_name()
            grown = (*self._entries, entry)
            self._require_within(entry, grown)
            if self._path is not None:
                write_ledger(self._path, self._budget_epsilon, self._budget_rho, grown)
            self._entries = grown
        return entry

    def check(
        self,
        what: str,
        protects: str,
        epsilon: Number | None = None,
        rho: Number | None = None,
        part: tuple[str, str] | None = None,
        policy: str | None = None,
    ) -> None:
        """Raise what `spend` would raise about the budget, and record nothing."""
        entry = _entry(what, protects, epsilon, rho, part, policy)
        self._require_within(entry, (*self.entries, entry))

    def _require_within(self, entry: Entry, entries: Sequence[Entry]) -> None:
        before, after = totals(entries[:-1]), totals(entries)
        if self._budget_epsilon is not None:
            if after.epsilon is None:
                raise BudgetExceededError(
                    f"{entry.what} satisfies zCDP only, which no ε of pure differential privacy bounds; the budget is "
                    f"ε = {exact_text(self._budget_epsilon)}. Keep a ledger with a budget in ρ"
                )
            if after.epsilon > self._budget_epsilon:
                asked, left = entry.epsilon or Fraction(0), self._budget_epsilon - (before.epsilon or 0)
                raise BudgetExceededError(_excess(entry.what, "ε", asked, left, self._budget_epsilon))
        if self._budget_rho is not None and after.rho > self._budget_rho:
            left = self._budget_rho - before.rho
            raise BudgetExceededError(_excess(entry.what, "ρ", rho_of(entry), left, self._budget_rho))

    def _file_lock(self) -> FileLock | nullcontext[None]:
        if self._path is None:
            return nullcontext()
        folder = self._path.absolute().parent
        if not folder.is_dir():
            raise LedgerError(f"{self._path} cannot be kept: {folder} is not a folder. Create it first")
        return FileLock(folder / f".{self._path.name}.lock")

    def _require_one_name(self) -> None:
        """Raise `LedgerError` where a hard link would go on as a second ledger when the file is replaced."""
        if self._path is not None and self._path.exists() and self._path.stat().st_nlink > 1:
            raise LedgerError(
                f"{self._path} has another name as well, a hard link, which would keep what is left now: nothing was "
                "recorded. Remove the other name, or copy the ledger to a file of its own and go on with that alone"
            )

    def _refresh(self) -> None:
        if self._path is not None and (self._entries or self._path.exists()):
            self._read(adopt=False)

    def _read(self, *, adopt: bool) -> None:
        assert self._path is not None
        epsilon, rho, entries = read_ledger(self._path)
        if adopt:
            self._budget_epsilon, self._budget_rho = epsilon, rho
        elif (epsilon, rho) != (self._budget_epsilon, self._budget_rho):
            raise LedgerError(
                f"{self._path} was made with another budget ({_budgets(epsilon, rho)}, not "
                f"{_budgets(self._budget_epsilon, self._budget_rho)}). Open it without a budget to go on with its own"
            )
        if entries[: len(self._entries)] != self._entries:
            raise LedgerError(f"{self._path} no longer holds what was spent before. Restore a copy")
        self._entries = entries


def _entry(
    what: str,
    protects: str,
    epsilon: Number | None,
    rho: Number | None,
    part: tuple[str, str] | None,
    policy: str | None,
) -> Entry:
    for name, text in (("what", what), ("protects", protects), ("policy", policy)):
        if text is None and name == "policy":
            continue
        if not isinstance(text, str) or not text.strip():
            raise InputError(name, "must say something", value=text, bound="a text that is not empty")
        _require_characters(text, name)
    if (epsilon is None) == (rho is None):
        raise InputError("epsilon", "and rho: exactly one of the two must be given", value=(epsilon, rho))
    if part is not None and not (
        isinstance(part, tuple) and len(part) == 2 and all(isinstance(name, str) for name in part)
    ):
        raise InputError("part", "must name a division and one of its parts", value=part, bound="a pair of texts")
    for name in part or ():
        _require_characters(name, "part")
    when = datetime.now(UTC).isoformat(timespec="seconds")
    if rho is None:
        return Entry(when, what, protects, _positive(epsilon, "epsilon"), None, part, policy)
    return Entry(when, what, protects, None, _positive(rho, "rho"), part, policy)


def _require_characters(text: str, path: str) -> None:
    """Raise `InputError` for what a file cannot hold: halves of characters, such as names read wrongly have."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        problem = f"is not a text at character {error.start} ({error.reason})"
        raise InputError(path, problem, value=text[error.start : error.end], bound="whole characters") from None


def _positive(value: object, path: str) -> Fraction:
    number = exact(value, path)
    if number <= 0:
        raise InputError(path, "must be positive", value=value, bound="greater than 0")
    return number


def _not_negative(value: object, path: str) -> Fraction:
    number = exact(value, path)
    if number < 0:
        raise InputError(path, "must not be negative", value=value, bound="at least 0")
    return number


def _excess(what: str, name: str, asked: Fraction, left: Fraction, budget: Fraction) -> str:
    return (
        f"{what} would spend {name} = {exact_text(asked)}, but {exact_text(left)} of {exact_text(budget)} is left; "
        "spend less, or give the ledger that the data deserve a larger budget"
    )


def _file(path: str | PathLike[str]) -> Path:
    """Return the one name of a file: through a link or from another folder it must not be a second ledger."""
    try:
        return Path(path).resolve()
    except (TypeError, ValueError, OSError, RuntimeError) as error:
        raise InputError("path", f"does not name a file ({error})", value=path, bound="the path of a file") from error


def _budgets(epsilon: Fraction | None, rho: Fraction | None) -> str:
    known = [f"{name} = {exact_text(value)}" for name, value in (("ε", epsilon), ("ρ", rho)) if value is not None]
    return ", ".join(known) or "no limit"
