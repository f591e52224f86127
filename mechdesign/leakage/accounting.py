"""Ledgers of budgets: begun, spent from, and checked against folders."""

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
from typing import Any

from mechdesign.base import _lazy
from mechdesign.base._display import card
from mechdesign.base._errors import BudgetExceededError, InputError, LedgerError
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
from mechdesign.leakage._exactness import require_together
from mechdesign.leakage._ledger_file import (
    APART,
    NUMBER,
    Entry,
    PolicyTotals,
    Totals,
    by_policy,
    read_ledger,
    rho_of,
    totals,
    write_ledger,
)
from mechdesign.leakage._partition import Partition

__all__ = [
    "MANIFEST",
    "Checked",
    "Entry",
    "Ledger",
    "Partition",
    "PolicyTotals",
    "Totals",
    "begin_ledger",
    "by_policy",
    "check_folders",
    "rho_of",
    "totals",
]
__dir__ = _lazy.listing(__all__)


Number = float | int | str | Fraction


class Ledger:
    """Record what every release spends, and refuse the one that would pass the budget.

    Costs add up (sequential composition). Releases about disjoint parts of the data, named by `part`, cost the largest
    sum of any one part (parallel composition); whether parts may be counted so is decided by whoever names them, see
    `mechdesign.tables` for the condition under a policy with constraints.

    The budget limits `spent`, the plain sum over all entries. What protects somebody is in `by_policy`, which keeps
    policies apart: each of its lines is about the releases under one policy, and holds for neighbours under it. Nothing
    is said of releases under several policies together, whose neighbours may be different databases.

    With a `path` the ledger is a file that outlives the process. It is locked, read again and replaced as a whole for
    every entry, so that any number of processes may share it, and a crash loses nothing: an entry is on the disk
    before `spend` returns, and noise is drawn after that. Copies of such a ledger, pickled ones included, are the same
    ledger, opened again by its path.

    Without a path a ledger is in the memory of one process. A forked process may read it, not spend from it. Its copies
    are the object itself, and it cannot be pickled.

    Args:
        epsilon: the budget under pure differential privacy, in nats; None for no limit on ε.
        rho: the budget under zero-concentrated differential privacy; None for no limit on ρ.
        path: the file, made when something is first to be spent, for its owner only. One that exists must have been
            made with the same budget; with neither `epsilon` nor `rho` given, its own applies. A ledger that was
            removed while its lock still stands, or once this object has seen it, is not made again.
        wait: how long another process that uses the file is waited for, in seconds.

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
        wait: float = WAIT_S,
    ) -> None:
        self._budget_epsilon = None if epsilon is None else _not_negative(epsilon, "epsilon")
        self._budget_rho = None if rho is None else _not_negative(rho, "rho")
        self._path = None if path is None else file_of(path)
        self._wait = as_wait(wait)
        self._lock = ProcessLock()
        self._entries: tuple[Entry, ...] = ()
        self._charging_in: int | None = None
        self._stood = False
        if self._path is not None and exists(self._path):
            self._read(adopt=epsilon is None and rho is None)

    @classmethod
    def existing(cls, path: str | PathLike[str], wait: float = WAIT_S) -> Ledger:
        """Open a ledger that has been made, with its own budget; raise `LedgerError` where there is none."""
        if not exists(file := file_of(path)):
            raise LedgerError(f"{file} does not exist. Begin a ledger with: mechdesign ledger new {file} --epsilon 3")
        return cls(path=path, wait=wait)

    def __copy__(self) -> Ledger:
        return self if self._path is None else _reopened(*self._reopening())

    def __deepcopy__(self, _: dict[int, Any]) -> Ledger:
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        if self._path is None:
            raise LedgerError(
                "a ledger in memory belongs to one process: it cannot be pickled, since each copy would spend the "
                "whole budget. Keep it in a file (path=)"
            )
        return _reopened, self._reopening()

    def _reopening(self) -> tuple[Fraction | None, Fraction | None, Path, float, tuple[Entry, ...]]:
        assert self._path is not None
        return self._budget_epsilon, self._budget_rho, self._path, self._wait, self._entries

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
    def path(self) -> Path | None:
        """The file, by its full path, or None where there is none."""
        return self._path

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

    def begin(self) -> None:
        """Make the file now, empty, where there is none yet, so that others can open it; without a path do nothing.

        Raises what `spend` raises of the file and its lock.
        """
        with self._lock, self._alone(), self._held():
            pass

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
    ) -> Entry:
        """Record a release before it is made.

        Args:
            what: what is released, in words.
            protects: whom the guarantee protects: what neighbouring data are, in words.
            epsilon: its ε in nats, where it is ε-private; 0 for a release without noise, which gives `classes`.
            rho: its ρ, where it satisfies ρ-zCDP; exactly one of the two is given.
            part: the name of a division of the data into disjoint parts, and that of the part which the release uses.
            policy: the name of the policy, the same for all releases under it: `by_policy` adds up those of one name.
                Releases without one are added up where `protects` is the same text.
            domain: the digest of the domain whose values the partitions are of.
            components: the components of the policy; None where they do not say what it protects.
            classes: the classes of values that an answer without noise tells apart.
            together: insist on a release that is exact where an earlier one protects, or the other way round; the entry
                records it.

        Returns:
            The entry, already durable, with a number that the release should repeat.

        Raises:
            BudgetExceededError: the budget would be passed; nothing is recorded, and nothing may be released.
            ExactReleaseError: one of this release and an earlier one is exact and tells apart what the policy of the
                other protects, or may do so; nothing is recorded.
            InputError: a number is not positive, or not exactly one of the two is given.
            LedgerError: the file is damaged, locked for too long, removed, or has a second name (a hard link); or the
                ledger is in the memory of another process.
            ExportError: the file cannot be written; nothing is recorded.
        """
        asked = Entry("", what, protects, None, None, part, policy, None, domain, components, classes, together)
        entry = _as_entry(asked, epsilon, rho)
        self._require_process()
        with self._lock, self._alone(), self._held():
            if self._path is not None:
                require_one_name(self._path, LedgerError)
            self._require_allowed(entry)
            grown = (*self._entries, replace(entry, number=secrets.token_hex(16)))
            if self._path is not None:
                write_ledger(self._path, self._budget_epsilon, self._budget_rho, grown)
            self._entries = grown
            return grown[-1]

    def check(
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
    ) -> None:
        """Raise what `spend` would raise of budget, process and other releases, and record nothing.

        For what should be refused before long computations. Another process may spend in between: only `spend`
        decides. Of several releases, ask for their sum: ε adds up, and a budget in ρ counts ε²/2 of each, not of the
        sum, see `remaining_rho`.
        """
        asked = Entry("", what, protects, None, None, part, policy, None, domain, components, classes, together)
        entry = _as_entry(asked, epsilon, rho)
        self._require_process()
        with self._lock:
            self._refresh()
            self._require_allowed(entry)

    def _require_process(self) -> None:
        if self._path is None and not self._lock.is_at_home():
            raise LedgerError(
                f"a ledger in the memory of process {self._lock.process} cannot be charged in process {os.getpid()}: "
                "each process would spend the whole budget. Keep it in a file (path=), which all of them share"
            )

    def _require_allowed(self, entry: Entry) -> None:
        self._require_within(entry, (*self._entries, entry))
        if not entry.together:
            require_together(entry, self._entries)

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

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Refuse what would be spent while this thread spends, by a handler of a signal: it would not be judged."""
        if self._charging_in == os.getpid():
            raise LedgerError("a release cannot be recorded while the same thread records another. Wait for its end")
        self._charging_in = os.getpid()
        try:
            yield
        finally:
            self._charging_in = None

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Hold the lock of the file, where there is one, with its entries read again; make the file if need be."""
        if self._path is None:
            yield
            return
        require_folder(self._path)
        path = self._path
        with hold_new_lock(path, self._wait, lambda: LedgerError(self._missing(path))):
            if not exists(path) and not self._stood:
                write_ledger(path, self._budget_epsilon, self._budget_rho, ())
            if not exists(path):
                raise LedgerError(self._missing(path))
            self._refresh()
            yield

    def _missing(self, path: Path) -> str:
        budgets = (("--epsilon", self._budget_epsilon), ("--rho", self._budget_rho))
        options = "".join(f" {name} {exact_text(budget)}" for name, budget in budgets if budget is not None)
        return (
            f"{path} is missing, while its lock ({lock_file_of(path).name}) still stands: what was spent there would "
            "be forgotten, and nothing was recorded. Restore it, or begin anew with: mechdesign ledger new "
            f"{path}{options} --again"
        )

    def _refresh(self) -> None:
        if self._path is not None and (self._stood or exists(self._path)):
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
        _require_grown(self._path, self._entries, entries)
        self._entries = entries
        self._stood = True


def _as_entry(asked: Entry, epsilon: Number | None, rho: Number | None) -> Entry:
    """Return an entry with what is spent, as of now; raise `InputError` where anything that was asked for is wrong."""
    for name in ("what", "protects", "policy", "domain"):
        text = getattr(asked, name)
        if text is None and name in ("policy", "domain"):
            continue
        if not isinstance(text, str) or not text.strip():
            raise InputError(name, "must say something", value=text, bound="a text that is not empty")
        _require_characters(text, name)
    if (epsilon is None) == (rho is None):
        raise InputError("epsilon", "and rho: exactly one of the two must be given", value=(epsilon, rho))
    _require_part(asked.part)
    for name in ("components", "classes"):
        partition = getattr(asked, name)
        if partition is not None and not isinstance(partition, Partition):
            raise InputError(name, "is not a Partition", value=type(partition).__name__)
    if not isinstance(asked.together, bool):
        raise InputError("together", "must be True or False", value=asked.together)
    # What is exact costs nothing of either budget; it is kept for what it tells apart.
    number = _not_negative if asked.classes is not None else _positive
    when = datetime.now(UTC).isoformat(timespec="seconds")
    if rho is not None:
        return replace(asked, when=when, rho=_positive(rho, "rho"))
    return replace(asked, when=when, epsilon=number(epsilon, "epsilon"))


def _require_part(part: object) -> None:
    """Raise `InputError` unless a part is None, or the names of a division and of one of its parts."""
    if part is None:
        return
    if not (isinstance(part, tuple) and len(part) == 2 and all(isinstance(name, str) for name in part)):
        raise InputError("part", "must name a division and one of its parts", value=part, bound="a pair of texts")
    for name in part:
        _require_characters(name, "part")


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


def _reopened(
    epsilon: Fraction | None, rho: Fraction | None, path: Path, wait: float, entries: tuple[Entry, ...]
) -> Ledger:
    """Open a ledger again by its path; raise `LedgerError` where it lacks what the first object knew of."""
    ledger = Ledger(path=path, wait=wait) if exists(path) else Ledger(epsilon, rho=rho, path=path, wait=wait)
    _require_grown(path, entries, ledger.entries)
    return ledger


def _require_grown(path: Path, known: tuple[Entry, ...], entries: tuple[Entry, ...]) -> None:
    if entries[: len(known)] != known:
        raise LedgerError(f"{path} no longer holds what was spent before. Restore a copy")


def require_folder(path: Path) -> None:
    """Raise `LedgerError` where there is no folder for a ledger."""
    if not path.parent.is_dir():
        raise LedgerError(f"{path} cannot be kept: {path.parent} is not a folder. Create it first")


def _budgets(epsilon: Fraction | None, rho: Fraction | None) -> str:
    known = [f"{name} = {exact_text(value)}" for name, value in (("ε", epsilon), ("ρ", rho)) if value is not None]
    return ", ".join(known) or "no limit"


MANIFEST = "release.json"
"""The file in which a release repeats the numbers of its entries."""


def begin_ledger(
    path: str | os.PathLike[str],
    epsilon: Any = None,
    rho: Any = None,
    *,
    again: bool = False,
    group: str | None = None,
    wait: float = WAIT_S,
) -> Ledger:
    """Write an empty ledger and its lock.

    Args:
        path: the file; none may stand there.
        epsilon: its budget in ε, or None.
        rho: its budget in ρ, or None.
        again: begin anew where the lock of an earlier ledger still stands. What was spent there is forgotten, and the
            lock gets the mode of a new one.
        group: the name of a group whose members share the ledger: file and lock are then readable and writable for
            them (0660), otherwise for their owner alone (0600). They also need to be able to write its folder, which
            must not be sticky, as temporary folders are.
        wait: how long another process is waited for, in seconds.

    Raises:
        InputError: a budget is negative or no number, there is no such group, or this user is not in it.
        LedgerError: a ledger stands there, or the lock of one that was removed.
        ExportError: the file cannot be written.
    """
    ledger = Ledger(epsilon, rho=rho, wait=wait)
    where = file_of(path)
    number = None if group is None else _group(group)
    require_folder(where)
    lock = lock_file_of(where)
    stood = exists(lock)
    with hold_lock(where, wait):
        if exists(where):
            raise LedgerError(
                f"{where} stands already; nothing was changed. Choose another name, or move it away first"
            )
        if stood and not again:
            raise LedgerError(
                f"the lock of an earlier ledger ({lock}) still stands, and what was spent there would be forgotten. "
                "Restore the ledger, or insist: --again (again=True)"
            )
        write_ledger(where, ledger.epsilon, ledger.rho, ())
        for file in (where, lock):
            _set_mode(file, number)
    return Ledger(path=where, wait=wait)


def _group(name: str) -> int:
    try:
        import grp

        number = grp.getgrnam(name).gr_gid
    except (ImportError, KeyError, TypeError, ValueError) as error:
        raise InputError("group", "is not a group of this system", value=name, bound="the name of a group") from error
    if os.geteuid() != 0 and number not in (os.getegid(), *os.getgroups()):
        raise InputError("group", "is a group that this user is not in", value=name, bound="a group of this user")
    return number


def _set_mode(file: Path, group: int | None) -> None:
    """Share a file with a group, or keep it for its owner."""
    try:
        if group is not None:
            os.chown(file, -1, group)
        file.chmod(0o600 if group is None else 0o660)
    except OSError as error:
        raise LedgerError(
            f"{file} belongs to another user, and its mode stays as it is ({error.strerror}). Remove it as its owner, "
            "and the ledger with it, and begin again"
        ) from error


@dataclass(frozen=True)
class Checked:
    """What a folder says of its entries: `numbers`, and `missing`, those of them that the ledger does not hold."""

    folder: Path
    numbers: tuple[str, ...]
    missing: tuple[str, ...]


def check_folders(ledger: Ledger, folders: Sequence[str | os.PathLike[str]]) -> tuple[Checked, ...]:
    """Return, for folders of releases, which of the numbers that they repeat are not in the ledger.

    A number that is missing shows that the ledger was put back to an older copy, or is another one.

    Raises:
        InputError: a folder holds no release that can be read, or none that was charged to a ledger.
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
        raise InputError(str(file), "names no entry of a ledger", bound="a release of this version or later") from error
    charged = tuple(number for number in entries if number is not None)
    if not charged:
        raise InputError(str(file), "was charged to no ledger", bound="a release that names entries of a ledger")
    return charged
