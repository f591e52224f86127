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
from typing import Any

from mechdesign.base import _lazy
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
        """Open an existing ledger; its file determines the budget.

        Args:
            path: The file of the ledger.
            wait: Longest time in seconds to wait for another process that uses the file.

        Returns:
            The ledger.

        Raises:
            LedgerError: The file does not exist, or is damaged.
        """
        if not exists(file := file_of(path)):
            raise LedgerError(f"{file} does not exist. Begin a ledger with: mechdesign ledger new {file} --epsilon 3")
        return cls(path=path, wait=wait)

    def __copy__(self) -> Ledger:
        return self if self._path is None else _reopen(*self._reopening())

    def __deepcopy__(self, _: dict[int, Any]) -> Ledger:
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        if self._path is None:
            raise LedgerError(
                "a ledger in memory belongs to one process: it cannot be pickled, since each copy would spend the "
                "whole budget. Keep it in a file (path=)"
            )
        return _reopen, self._reopening()

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
        return self._budget_epsilon

    @property
    def rho(self) -> Fraction | None:
        """The exact budget under zero-concentrated differential privacy, or None."""
        return self._budget_rho

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries so far, in order; a shared file is read again."""
        with self._lock:
            self._refresh()
            return self._entries

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
        spent = self.spent.epsilon
        return None if self._budget_epsilon is None or spent is None else self._budget_epsilon - spent

    @property
    def remaining_rho(self) -> Fraction | None:
        """The exact remaining budget in ρ, or None without a budget in ρ."""
        return None if self._budget_rho is None else self._budget_rho - self.spent.rho

    def begin(self) -> None:
        """Create an empty file unless it exists, so that other processes can open it; without a path do nothing.

        Raises:
            LedgerError: The file is damaged, locked for too long or removed.
            ExportError: The file cannot be written.
        """
        with self._lock, self._alone(), self._hold_file():
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

        Returns:
            The entry, already on the disk, with a number that the release should repeat.

        Raises:
            BudgetExceededError: The release exceeds the budget. Nothing is recorded, and nothing may be released.
            ExactReleaseError: This release or an earlier one is exact and distinguishes values that the policy of the
                other one protects, or this cannot be excluded. Nothing is recorded.
            InputError: A number is not positive, or not exactly one of `epsilon` and `rho` is given.
            LedgerError: The file is damaged, locked for too long, removed, or has a second name (a hard link). This
                error also reports a ledger in the memory of another process.
            ExportError: The file cannot be written. Nothing is recorded.
        """
        asked = Entry("", what, protects, None, None, part, policy, None, domain, components, classes, together)
        entry = _as_entry(asked, epsilon, rho)
        self._require_process()
        with self._lock, self._alone(), self._hold_file():
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
        """Raise the errors of `spend` about the budget, the process and earlier releases, but record nothing.

        Use this check before a long computation. Another process may spend in the meantime, so only `spend` gives the
        final decision. To check several releases, pass their sum: ε adds up, while a budget in ρ counts ε²/2 of each
        release.

        Args:
            what: Description of the release.
            protects: Description of the neighbouring databases.
            epsilon: ε in nats, or None.
            rho: ρ, or None. Exactly one of `epsilon` and `rho` must be given.
            part: Name of a division of the data, and name of the part that the release uses.
            policy: Name of the policy, or None.
            domain: Digest of the domain of `components` and `classes`.
            components: Components of the policy, or None.
            classes: Classes of values that an answer without noise distinguishes, or None.
            together: Allow an exact release in spite of a conflict, as in `spend`.

        Raises:
            BudgetExceededError: The release exceeds the budget.
            ExactReleaseError: An exact release would undo the protection of another policy.
            InputError: An argument is not valid.
            LedgerError: The file is damaged or removed, or the ledger is in the memory of another process.
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
                "each process would spend the whole budget. Keep the ledger in a file (path=) that all processes share"
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
                    f"{entry.what} satisfies zCDP only, and has no finite ε of pure differential privacy; the budget "
                    f"is ε = {exact_text(self._budget_epsilon)}. Keep a ledger with a budget in ρ"
                )
            if after.epsilon > self._budget_epsilon:
                asked, left = entry.epsilon or Fraction(0), self._budget_epsilon - (before.epsilon or 0)
                raise BudgetExceededError(_excess(entry.what, "ε", asked, left, self._budget_epsilon))
        if self._budget_rho is not None and after.rho > self._budget_rho:
            left = self._budget_rho - before.rho
            raise BudgetExceededError(_excess(entry.what, "ρ", rho_of(entry), left, self._budget_rho))

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
            f"{path} is missing, but its lock ({lock_file_of(path).name}) still exists: earlier charges would be "
            "forgotten, and nothing was recorded. Restore the file, or begin anew with: mechdesign ledger new "
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
                f"{self._path} was created with another budget ({_budgets(epsilon, rho)}, not "
                f"{_budgets(self._budget_epsilon, self._budget_rho)}). Open it without a budget to use its own"
            )
        _require_grown(self._path, self._entries, entries)
        self._entries = entries
        self._stood = True


def _as_entry(asked: Entry, epsilon: Number | None, rho: Number | None) -> Entry:
    """Return an entry with its cost and the present time; raise `InputError` for an invalid argument."""
    for name in ("what", "protects", "policy", "domain"):
        text = getattr(asked, name)
        if text is None and name in ("policy", "domain"):
            continue
        if not isinstance(text, str) or not text.strip():
            raise InputError(name, "must not be empty", value=text, bound="a text that is not empty")
        _require_characters(text, name)
    if (epsilon is None) == (rho is None):
        raise InputError(
            "epsilon", "and rho are both given or both missing", value=(epsilon, rho), bound="one of the two"
        )
    _require_part(asked.part)
    for name in ("components", "classes"):
        partition = getattr(asked, name)
        if partition is not None and not isinstance(partition, Partition):
            raise InputError(name, "is not a Partition", value=type(partition).__name__, bound="a Partition or None")
    if not isinstance(asked.together, bool):
        raise InputError("together", "is not a truth value", value=asked.together, bound="True or False")
    # An exact release costs nothing of either budget; its classes are recorded.
    number = _not_negative if asked.classes is not None else _positive
    when = datetime.now(UTC).isoformat(timespec="seconds")
    if rho is not None:
        return replace(asked, when=when, rho=_positive(rho, "rho"))
    return replace(asked, when=when, epsilon=number(epsilon, "epsilon"))


def _require_part(part: object) -> None:
    """Raise `InputError` unless a part is None, or a pair of the names of a division and one of its parts."""
    if part is None:
        return
    if not (isinstance(part, tuple) and len(part) == 2 and all(isinstance(name, str) for name in part)):
        raise InputError("part", "must name a division and one of its parts", value=part, bound="a pair of texts")
    for name in part:
        _require_characters(name, "part")


def _require_characters(text: str, path: str) -> None:
    """Raise `InputError` for text that UTF-8 cannot encode, such as lone surrogates from wrongly decoded names."""
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


def _reopen(
    epsilon: Fraction | None, rho: Fraction | None, path: Path, wait: float, entries: tuple[Entry, ...]
) -> Ledger:
    """Open a ledger again by its path; raise `LedgerError` if it lacks entries that the original object had."""
    ledger = Ledger(path=path, wait=wait) if exists(path) else Ledger(epsilon, rho=rho, path=path, wait=wait)
    _require_grown(path, entries, ledger.entries)
    return ledger


def _require_grown(path: Path, known: tuple[Entry, ...], entries: tuple[Entry, ...]) -> None:
    if entries[: len(known)] != known:
        raise LedgerError(f"{path} no longer holds the earlier entries. Restore a copy")


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
    group: str | None = None,
    wait: float = WAIT_S,
) -> Ledger:
    """Create an empty ledger and its lock.

    Args:
        path: The file, which must not exist.
        epsilon: Budget in ε, in nats, or None.
        rho: Budget in ρ, or None.
        again: Create the ledger even if the lock of an earlier ledger exists. The new ledger does not contain earlier
            charges, and the lock gets the file mode of a new lock.
        group: Name of a group whose members share the ledger. File and lock are then readable and writable for the
            group (mode 0660), otherwise only for their owner (0600). Members must also be able to write the folder,
            which must not be sticky, as temporary folders are.
        wait: Longest time in seconds to wait for another process.

    Returns:
        The ledger, opened by its path.

    Raises:
        InputError: A budget is negative or not a number, the group does not exist, or this user is not in it.
        LedgerError: The ledger exists, or the lock of a removed ledger exists.
        ExportError: The file cannot be written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     begin_ledger(f"{folder}/ledger.json", epsilon=3)
    Ledger(epsilon=3, 0 entries)
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
                f"{where} exists already; nothing was changed. Choose another name, or move it away first"
            )
        if stood and not again:
            raise LedgerError(
                f"the lock of an earlier ledger ({lock}) still exists, and earlier charges would be forgotten. "
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
            f"{file} belongs to another user, and its mode cannot be changed ({error.strerror}). Let its owner remove "
            "it together with the ledger, and begin again"
        ) from error


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
