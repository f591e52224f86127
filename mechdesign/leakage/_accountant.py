"""An accountant for releases over time, which computes the leakage of each release and the largest next budget."""

from __future__ import annotations

import copy
import secrets
from contextlib import nullcontext
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats
from mechdesign.base._check import as_truth
from mechdesign.base._errors import (
    BudgetWarning,
    ExportError,
    InputError,
    LeakageExceededError,
    LedgerError,
    StateError,
)
from mechdesign.base._locks import (
    WAIT_S,
    ProcessLock,
    as_wait,
    file_of,
    hold_lock,
    hold_new_lock,
    lock_file_of,
    require_one_name,
)
from mechdesign.base._warnings import warn
from mechdesign.leakage._accountant_file import (
    AccountantState,
    Charged,
    check_losses,
    describe_ledger,
    ledger_of,
    parse_state,
    read_content,
    require_ledger,
    write_state,
)
from mechdesign.leakage._correlations import Correlation, functions_of_both
from mechdesign.leakage._history import ReleaseHistory
from mechdesign.leakage._transitions import as_not_negative, as_target
from mechdesign.leakage.accounting import Ledger


class _Kept(NamedTuple):
    """The present content of an accountant: its state, the resulting history, and the bytes of its file."""

    state: AccountantState
    history: ReleaseHistory
    content: bytes | None = None


class Accountant:
    """Keep the leakage of every release at or below a promised α.

    A release raises the leakage of all earlier releases through the forward correlation. Therefore a new release must
    keep the leakage of all releases below α. The promise covers the releases made so far: every later release must be
    recorded here, too. Leakages are rounded up. If a loss function is 0 or the identity, the leakages are exact sums of
    the budgets as printed in decimals. For example, three budgets of 0.1 keep a promise of 0.3.

    With a `path`, the accountant keeps its state in a file that outlives the process. Each release locks the file,
    reads it again and replaces it as a whole, so that any number of threads and processes share one promise. A crash
    loses nothing. An existing file must contain the same promise, and the accountant continues with its releases.
    Without a `path`, only the threads of one process can use the accountant.

    Args:
        alpha: Largest leakage of each release, in nats, greater than 0.
        backward: Pr(state before | state now): a matrix, a `LossFunction`, `Candidates` or None.
        forward: Pr(next state | state now), in the same forms as `backward`.
        on_excess: "refuse" raises `LeakageExceededError` and records nothing if a release breaks the promise. "warn"
            records the release with a `BudgetWarning`.
        ledger: A ledger that also records every ε. The sum of all ε is the leakage of the whole sequence (user-level
            privacy, Theorem 3). The ledger refuses releases beyond its own budget. `save` does not write the ledger.
        path: The file of the accountant, or None.
        wait: Longest time in seconds to wait for another process that uses the file. After this time `LedgerError` is
            raised.

    Raises:
        InputError: An argument is not valid.
        StateError: The file contains another promise or names another ledger, is damaged, or was removed.
        ExportError: The file cannot be written.

    >>> accountant = Accountant(1.0, backward=[[0.8, 0.2], [0.2, 0.8]])
    >>> round(accountant.release(0.5), 6)
    0.5
    >>> round(accountant.release(0.5), 6)
    0.796046
    >>> round(accountant.largest(), 6)
    0.538049
    """

    def __init__(
        self,
        alpha: float,
        backward: Correlation = None,
        forward: Correlation = None,
        on_excess: str = "refuse",
        ledger: Ledger | None = None,
        *,
        path: str | PathLike[str] | None = None,
        wait: float = WAIT_S,
    ) -> None:
        source = None if path is None else file_of(path)
        if ledger is not None and not isinstance(ledger, Ledger):
            raise InputError(
                "ledger", "is not a Ledger", value=type(ledger).__name__, bound="a mechdesign.leakage.Ledger"
            )
        if on_excess not in ("refuse", "warn"):
            raise InputError("on_excess", "is not known", value=on_excess, bound='"refuse" or "warn"')
        alpha = as_target(alpha)
        before, after = functions_of_both(backward, forward)
        _require_apart(source, ledger)
        state = AccountantState(alpha, on_excess, (tuple(before), tuple(after)), ledger=describe_ledger(ledger))
        self._start(_Kept(state, ReleaseHistory.of(*state.losses)), ledger, source, as_wait(wait))
        if source is not None:
            self._begin(source)

    def _start(
        self, kept: _Kept, ledger: Ledger | None, path: Path | None, wait: float, what_if: Path | None = None
    ) -> None:
        self._kept = kept
        self._ledger = ledger
        self._path = path
        self._wait = wait
        self._what_if = what_if
        self._lock = ProcessLock()

    @property
    def path(self) -> Path | None:
        """The full path of the accountant's file, or None. `release` writes each release to it before returning."""
        return self._path

    @property
    def alpha(self) -> float:
        """The largest leakage of each release, in nats."""
        return self._kept.state.alpha

    @property
    def epsilons(self) -> Floats:
        """The budgets spent so far, shape (T,)."""
        return np.array(self._now().history.epsilons)

    @property
    def backward_leakage(self) -> Floats:
        """The backward leakage of every release, shape (T,), the largest over candidates."""
        return self._now().history.backward

    @property
    def forward_leakage(self) -> Floats:
        """The present forward leakage of every release, shape (T,), the largest over candidates."""
        return self._now().history.forward

    @property
    def leakage(self) -> Floats:
        """The present temporal leakage of every release, shape (T,)."""
        return self._now().history.leakages

    def __len__(self) -> int:
        return len(self._now().history)

    def preview(self, epsilon: float) -> Floats:
        """Return the leakages of all releases if the next release spends `epsilon`, without recording it.

        Args:
            epsilon: Budget of the next release, in nats, at least 0.

        Returns:
            The leakage of every release, shape (T + 1,).
        """
        return self._now().history.extend(as_not_negative(epsilon, "epsilon")).leakages

    def largest(self) -> float:
        """Return the largest budget that the next release may spend, rounded down; it may be 0.0."""
        return self._now().history.largest(self.alpha)

    @in_own_arithmetic
    def release(self, epsilon: float) -> float:
        """Record a release, and return its leakage through its own budget and through earlier releases.

        With a path, the release is on the disk before this method returns: draw the noise after that. The ledger is
        charged before the file is written. After a crash between these two steps, the ledger records more than was
        released, never less.

        Args:
            epsilon: Budget of the release, in nats, at least 0.

        Returns:
            The leakage of the new release, in nats.

        Raises:
            LeakageExceededError: Some release would leak more than α. Nothing is recorded.
            BudgetExceededError: The budget of the ledger would be exceeded. Nothing is recorded.
            LedgerError: The accountant has no path and belongs to another process.
            StateError: The file was damaged or lost.
            ExportError: The file cannot be written. The release is then recorded only in the ledger.
        """
        epsilon = as_not_negative(epsilon, "epsilon")
        self._require_process()
        with self._lock, hold_lock(self._path, self._wait) if self._path is not None else nullcontext():
            kept = self._now()
            if self._path is not None:
                require_one_name(self._path, StateError)
            history = kept.history.extend(epsilon)
            self._judge(kept.history, history)
            charged = self._charge(epsilon, len(kept.history))
            # An accountant without a ledger keeps the name of the ledger that the file contains.
            named = kept.state.ledger
            if self._ledger is not None:
                named = describe_ledger(self._ledger)
            state = replace(kept.state, releases=(*kept.state.releases, charged), ledger=named)
            content = None
            if self._path is not None:
                try:
                    content = write_state(self._path, state)
                except ExportError as error:
                    if not charged.in_ledger:
                        raise
                    raise ExportError(
                        f"{error}. Nothing may be released, although the ledger has recorded ε = {epsilon!r}"
                    ) from error
            self._kept = _Kept(state, history, content)
        return history.latest

    def save(self, path: str | PathLike[str]) -> None:
        """Write the state to a JSON file, which is replaced as a whole or not at all.

        Loss functions are stored as pieces with the digests of the matrices, so that `load` needs no matrix. If `path`
        is the accountant's own file, nothing is written, because this file is always up to date. An existing file of
        another accountant is replaced only if this accountant contains all of its releases.

        Args:
            path: The file.

        Raises:
            StateError: The file holds other releases, another promise or other content, or this accountant was loaded
                from it with ``bound=False``.
            ExportError: The file cannot be written.
        """
        target = file_of(path)
        if target == self._what_if:
            raise StateError(
                f"{target} was loaded as a copy (bound=False) and was not changed. Load it without bound=False to "
                "release, or save to another file"
            )
        if target == self._path:
            self._now()
            return
        kept = self._now()
        if self._ledger is not None:
            self._ledger.begin()
        _require_folder(target)
        with hold_lock(target, self._wait):
            if target.exists():
                _require_grown(target, parse_state(target, read_content(target)), kept.state)
                require_one_name(target, StateError)
            write_state(target, kept.state)

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        *,
        bound: bool = True,
        ledger: Ledger | Literal["saved"] | None = "saved",
        backward: Correlation = "saved",
        forward: Correlation = "saved",
        wait: float = WAIT_S,
    ) -> Accountant:
        """Open an accountant by its file, and compute its leakages again.

        Args:
            path: The file, made by ``Accountant(…, path=)`` or by `save`.
            bound: False loads a copy for experiments: no release is written to the file or charged to a ledger.
            ledger: The ledger to charge. By default, the ledger named in the state is opened by its path. A ledger in
                memory has no path, so it must be passed here. With None no ledger is charged, and the file keeps the
                name of the ledger.
            backward: The expected backward matrices, in the forms that `Accountant` accepts. The loss functions in the
                file are checked against these matrices. Pass them for a file from another source, because its loss
                functions are otherwise not checked.
            forward: The expected forward matrices, in the same forms.
            wait: Longest time in seconds to wait for another process that uses the file.

        Returns:
            The accountant.

        Raises:
            StateError: The file is damaged, was changed by hand, is writable for other users, or has another version or
                other matrices. This error also reports a ledger that is missing or lacks the releases of the state.
        """
        bound = as_truth(bound, "bound")
        source = file_of(path)
        content = read_content(source)
        state = parse_state(source, content)
        if not isinstance(ledger, Ledger) and ledger is not None and ledger != "saved":
            raise InputError(
                "ledger", "is not a Ledger", value=type(ledger).__name__, bound="a mechdesign.leakage.Ledger"
            )
        if not bound and isinstance(ledger, Ledger):
            raise InputError("ledger", "cannot be charged with bound=False", bound="None, or left out")
        found = ledger_of(source, state, ledger) if bound else None
        _require_apart(source, found)
        losses = check_losses(source, state.losses, (backward, forward))
        history = _history(replace(state, losses=losses))
        worst = history.worst
        if state.on_excess == "refuse" and worst is not None and worst.leakage > state.alpha:
            raise StateError(f"{source}: the releases leak more than the promised {state.alpha:.6g}")
        made = cls.__new__(cls)
        kept = _Kept(replace(state, losses=losses), history, content)
        made._start(kept, found, source if bound else None, as_wait(wait), None if bound else source)
        return made

    def __copy__(self) -> Accountant:
        """Reopen the accountant by its path; without a path, return the accountant itself."""
        return self if self._path is None else _reopen(type(self), self._path, self._ledger, self._wait)

    def __deepcopy__(self, memo: dict[int, Any]) -> Accountant:
        """Reopen the accountant with a deep copy of its ledger; without a path, return the accountant itself."""
        return (
            self
            if self._path is None
            else _reopen(type(self), self._path, copy.deepcopy(self._ledger, memo), self._wait)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path. Without a path raise `LedgerError`, because copies together could leak more than α."""
        if self._path is None:
            raise LedgerError(
                "an accountant without a path belongs to its process and cannot be pickled: each copy would spend the "
                "whole promise. Give it a file (path=)"
            )
        return _reopen, (type(self), self._path, self._ledger, self._wait)

    def __repr__(self) -> str:
        worst = self._kept.history.worst
        said = "" if worst is None else f", largest leakage {worst.leakage:.6g}"
        return f"Accountant(alpha={self.alpha!r}, {len(self._kept.history)} releases{said})"

    def _begin(self, path: Path) -> None:
        """Create the file of the releases, or continue with an existing one."""
        if self._ledger is not None:
            # Create the file of the ledger first, because the state contains the path of this file.
            self._ledger.begin()
        _require_folder(path)
        with hold_new_lock(path, self._wait, lambda: _missing(path)):
            if path.exists():
                require_one_name(path, StateError)
                content = read_content(path)
                there = parse_state(path, content)
                if not there.same_promise(self._kept.state):
                    raise StateError(
                        f"{path} holds another promise or other matrices. Open it with Accountant.load, or choose "
                        "another path"
                    )
                require_ledger(path, there, self._ledger)
                state = replace(there, losses=self._kept.state.losses)
                self._kept = _Kept(state, _history(state), content)
            else:
                self._kept = self._kept._replace(content=write_state(path, self._kept.state))

    def _now(self) -> _Kept:
        """Return the present content; with a path, read the file again to include releases of other processes."""
        kept = self._kept
        if self._path is None:
            return kept
        content = read_content(self._path)
        if content == kept.content:
            return kept
        there = parse_state(self._path, content)
        if not there.same_promise(kept.state):
            raise StateError(f"{self._path} contains a different promise than when it was last read. Restore a copy")
        known = len(kept.state.releases)
        if there.releases[:known] != kept.state.releases:
            raise StateError(f"{self._path} no longer holds the earlier releases. Restore a copy")
        history = kept.history
        for charged in there.releases[known:]:
            history = history.extend(charged.epsilon)
        self._kept = kept = _Kept(replace(there, losses=kept.state.losses), history, content)
        return kept

    def _require_process(self) -> None:
        """Raise `LedgerError` if the accountant has no file and another process created it."""
        if self._path is None and not self._lock.is_at_home():
            raise LedgerError(
                "an accountant without a path belongs to the process that created it: another process would spend the "
                "same budget again. Give it a file (path=)"
            )

    def _judge(self, before: ReleaseHistory, after: ReleaseHistory) -> None:
        """Raise `LeakageExceededError`, or warn, if a release leaks more than the promise."""
        worst = after.worst
        assert worst is not None
        if worst.leakage <= self.alpha:
            return
        if self._kept.state.on_excess == "refuse":
            raise LeakageExceededError(*worst, self.alpha, _remedy(before, after.epsilons[-1], self.alpha))
        message = f"release {worst.step} now leaks {worst.leakage:.6g}, more than the promised {self.alpha:.6g}"
        warn(message, BudgetWarning, stacklevel=3)

    def _charge(self, epsilon: float, index: int) -> Charged:
        """Charge the ledger, if any, and return the release with its entry number."""
        if self._ledger is None or epsilon == 0:
            return Charged(epsilon, secrets.token_hex(16))
        entry = self._ledger.spend(f"release {index} of a sequence", "any two values at that time", epsilon=epsilon)
        return Charged(epsilon, entry.number, in_ledger=True)


def _require_folder(path: Path) -> None:
    if not path.parent.is_dir():
        raise ExportError(f"{path} could not be written: {path.parent} is not a folder. Create it first")


def _missing(path: Path) -> StateError:
    return StateError(
        f"{path} is missing, but its lock {lock_file_of(path)} shows that it existed: a new file would spend the "
        "promise again. Restore it, or also remove the lock to forget its releases"
    )


def _require_apart(path: Path | None, ledger: Ledger | None) -> None:
    if path is not None and ledger is not None and ledger.path == path:
        raise InputError("path", "is the file of the ledger", value=str(path), bound="a separate file")


def _reopen(kind: type[Accountant], path: Path, ledger: Ledger | None, wait: float) -> Accountant:
    return kind.load(path, ledger=ledger, wait=wait)


def _history(state: AccountantState) -> ReleaseHistory:
    history = ReleaseHistory.of(*state.losses)
    for charged in state.releases:
        history = history.extend(charged.epsilon)
    return history


def _require_grown(path: Path, there: AccountantState, ours: AccountantState) -> None:
    """Raise `StateError` if the file contains releases that the new state lacks."""
    if not there.same_promise(ours):
        raise StateError(f"{path} holds another promise or other matrices and was not changed. Save to another file")
    if there.releases != ours.releases[: len(there.releases)]:
        raise StateError(
            f"{path} holds releases that this accountant lacks, and was not changed: saving would delete them. "
            "Open the file with Accountant.load, which shares it"
        )


def _remedy(history: ReleaseHistory, epsilon: float, alpha: float) -> str:
    if epsilon > alpha:
        return f"This release alone costs its budget {epsilon:.6g}: spend less, or promise a larger alpha"
    most = history.largest(alpha)
    return f"Spend at most {most:.6g}" if most > 0 else "Nothing more can be released from these data"
