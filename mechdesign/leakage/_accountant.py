"""An accountant for releases as they happen: what each one leaks by now, and whether the next one may be made."""

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
    StateWarning,
)
from mechdesign.base._files import readers_of
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
    Charged,
    State,
    checked_losses,
    ledger_of,
    parse_state,
    read_content,
    require_ledger,
    said_of,
    write_state,
)
from mechdesign.leakage._correlations import Correlation, functions_of_both
from mechdesign.leakage._history import History
from mechdesign.leakage._transitions import as_not_negative, as_target
from mechdesign.leakage.accounting import Ledger

# By how much a state may pass its promise and still open: earlier versions rounded leakages to nearest.
_ROUNDING = 1e-9


class _Kept(NamedTuple):
    """What an accountant knows: its state, the history that follows from it, and the bytes of the file that hold it."""

    state: State
    history: History
    content: bytes | None = None


class Accountant:
    """Keep every release at or below the promised leakage α, in nats.

    `backward` and `forward` are matrices, loss functions, `Candidates` or None. A release raises the leakage of all
    earlier ones through the forward correlation, so that each is judged by what all of them would leak after it. The
    promise covers the releases made so far: whatever comes later has to pass here too. With `on_excess` "refuse" a
    release that breaks the promise raises `LeakageExceededError` and is not recorded; with "warn" it is recorded, with
    a `BudgetWarning`. A `ledger` also records every budget ε, which add up to what the whole sequence leaks (user-level
    privacy, Theorem 3), and refuses beyond its own budget; it is a file of its own, which `save` leaves alone.

    Leakages are rounded up. Where nothing is lost between releases, because L is 0 or the identity, they are the exact
    sums of the decimals that budgets print: three of 0.1 keep a promise of 0.3.

    With a `path` the accountant is a file that outlives the process. Each release locks it, reads it again and replaces
    it as a whole before it returns, so that any number of threads and processes share one promise, and a crash forgets
    nothing. Where the file exists it must hold the same promise, and its releases count. Another process that uses it
    is waited for, `wait` seconds at most; then `LedgerError` names the lock. Without a path, the accountant serves the
    threads of the process that made it, and no other process.

    Raises:
        InputError: an argument is wrong.
        StateError: the file holds another promise or ledger, is damaged, or was there before and is gone.
        ExportError: the file cannot be written.

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
            raise InputError("ledger", "is not a Ledger", value=type(ledger).__name__)
        if on_excess not in ("refuse", "warn"):
            raise InputError("on_excess", "is not known", value=on_excess, bound='"refuse" or "warn"')
        alpha = as_target(alpha)
        before, after = functions_of_both(backward, forward)
        _require_apart(source, ledger)
        state = State(alpha, on_excess, (tuple(before), tuple(after)), ledger=said_of(ledger))
        self._start(_Kept(state, History.of(*state.losses)), ledger, source, as_wait(wait))
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
        """The file that holds every release before `release` returns, by its full path, or None."""
        return self._path

    @property
    def alpha(self) -> float:
        """What each release may leak."""
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
        """The forward leakage of every release by now, shape (T,), the largest over candidates."""
        return self._now().history.forward

    @property
    def leakage(self) -> Floats:
        """The temporal leakage of every release by now, shape (T,)."""
        return self._now().history.leakages

    def __len__(self) -> int:
        return len(self._now().history)

    def preview(self, epsilon: float) -> Floats:
        """Return what every release would leak, shape (T + 1,), if the next one spent `epsilon`; record nothing."""
        return self._now().history.extended(as_not_negative(epsilon, "epsilon")).leakages

    def largest(self) -> float:
        """Return the largest budget that the next release may spend, rounded down; 0.0 if there is none."""
        return self._now().history.largest(self.alpha)

    @in_own_arithmetic
    def release(self, epsilon: float) -> float:
        """Record a release with budget `epsilon` and return what it leaks by itself and through the past.

        It is on the disk before this returns, where there is a path: draw the noise after that. The ledger is charged
        first, so that a crash in between leaves more recorded there than was released, and never less.

        Raises `LeakageExceededError`, recording nothing, when some release would leak more than α, and
        `BudgetExceededError` when the ledger's budget would be passed; `LedgerError` in another process than that which
        made an accountant without a path; `StateError` where the file was damaged or lost; `ExportError` where it
        cannot be written, which leaves the release in the ledger alone.
        """
        epsilon = as_not_negative(epsilon, "epsilon")
        self._require_process()
        with self._lock, hold_lock(self._path, self._wait) if self._path is not None else nullcontext():
            kept = self._now()
            if self._path is not None:
                require_one_name(self._path, StateError)
            history = kept.history.extended(epsilon)
            self._judge(kept.history, history)
            charged = self._charged(epsilon, len(kept.history))
            # Whoever goes on without a ledger does so alone: the file names it still.
            named = kept.state.ledger
            if self._ledger is not None or named == "unsaid":
                named = said_of(self._ledger)
            state = replace(kept.state, releases=(*kept.state.releases, charged), ledger=named)
            content = None
            if self._path is not None:
                try:
                    content = write_state(self._path, state)
                except ExportError as error:
                    if not charged.in_ledger:
                        raise
                    raise ExportError(
                        f"{error}. Nothing may be released; the ledger has recorded ε = {epsilon!r} all the same"
                    ) from error
            self._kept = _Kept(state, history, content)
        return history.latest

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything needed to go on to a JSON file, which is replaced as a whole or not at all.

        Loss functions are stored as their pieces, with the digests of the matrices, so that no matrix is needed later.
        An accountant with a path is on the disk already: nothing more is written there. A file that exists is replaced
        only where this accountant has all of its releases.

        Raises `StateError` where the file holds releases that this accountant does not know, another promise or
        anything else, and where this accountant was loaded from it with ``bound=False``.
        """
        target = file_of(path)
        if target == self._what_if:
            raise StateError(
                f"{target} was loaded to see what would be, with bound=False, and is left as it is. Load it without to "
                "release, or save elsewhere"
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
        """Open an accountant by its file, where each release is written before it returns; leakages are computed anew.

        Args:
            path: the file, made by ``Accountant(…, path=)`` or by `save`.
            bound: False reads it once, to see what would be: no release is written to the file or to a ledger.
            ledger: the ledger to charge. The one that the state names by its path is opened again unless another is
                given; one that was in memory must be given. With None this object goes on without, and the file names
                the ledger still.
            backward: the matrices that the state must be about, in any form that `Accountant` takes. Its pieces are
                checked against them: a state that comes from elsewhere is only as good as its pieces.
            forward: likewise.
            wait: how long another process that uses the file is waited for, in seconds.

        Raises `StateError` for a file that is damaged, was changed by hand, can be written by others, is of another
        version, is about other matrices, or whose ledger is missing or lacks its releases. Warns with `StateWarning`
        where a state of version 1, which does not say which ledger it had, is opened without `ledger`.
        """
        bound = as_truth(bound, "bound")
        source = file_of(path)
        content = read_content(source)
        state = parse_state(source, content)
        if not isinstance(ledger, Ledger) and ledger is not None and ledger != "saved":
            raise InputError("ledger", "is not a Ledger", value=type(ledger).__name__)
        if not bound and isinstance(ledger, Ledger):
            raise InputError("ledger", "is not charged by an accountant that is not bound", bound="None, or left out")
        found = ledger_of(source, state, ledger) if bound else None
        if bound and state.ledger == "unsaid" and ledger == "saved":
            _note_unsaid(source, "Give ledger=, or ledger=None")
        _require_apart(source, found)
        losses = checked_losses(source, state.losses, (backward, forward))
        history = _history(replace(state, losses=losses))
        worst = history.worst
        if state.on_excess == "refuse" and worst is not None and worst.leakage > state.alpha * (1 + _ROUNDING):
            raise StateError(f"{source}: the releases leak more than the promised {state.alpha:.6g}")
        made = cls.__new__(cls)
        kept = _Kept(replace(state, losses=losses), history, content)
        made._start(kept, found, source if bound else None, as_wait(wait), None if bound else source)
        return made

    def __copy__(self) -> Accountant:
        """Return the same accountant, opened again by its path, or itself where it has none."""
        return self if self._path is None else _opened(type(self), self._path, self._ledger, self._wait)

    def __deepcopy__(self, memo: dict[int, Any]) -> Accountant:
        """Return what `copy` returns, with a copy of the ledger, which is the same ledger."""
        return (
            self
            if self._path is None
            else _opened(type(self), self._path, copy.deepcopy(self._ledger, memo), self._wait)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path; raise `LedgerError` where there is none: two would keep one promise."""
        if self._path is None:
            raise LedgerError(
                "an accountant without a path belongs to its process, and is not pickled: a copy of it would promise "
                "the same once more. Give it a file by path="
            )
        return _opened, (type(self), self._path, self._ledger, self._wait)

    def __repr__(self) -> str:
        worst = self._kept.history.worst
        said = "" if worst is None else f", the worst leaks {worst.leakage:.6g}"
        return f"Accountant(alpha={self.alpha!r}, {len(self._kept.history)} releases{said})"

    def _begin(self, path: Path) -> None:
        """Write the file that is to hold the releases, or go on with the one that exists."""
        if self._ledger is not None:
            # What the file names can be opened again.
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
                if there.ledger == "unsaid" and self._ledger is None:
                    _note_unsaid(path, "Give ledger=, or open it with Accountant.load(…, ledger=None)", stacklevel=5)
                state = replace(there, losses=self._kept.state.losses)
                self._kept = _Kept(state, _history(state), content)
            else:
                self._kept = self._kept._replace(content=write_state(path, self._kept.state))

    def _now(self) -> _Kept:
        """Return what is known by now: a file is read again, and what others released is added."""
        kept = self._kept
        if self._path is None:
            return kept
        content = read_content(self._path)
        if content == kept.content:
            return kept
        there = parse_state(self._path, content)
        if not there.same_promise(kept.state):
            raise StateError(f"{self._path} holds another promise than before. Restore a copy")
        known = len(kept.state.releases)
        if there.releases[:known] != kept.state.releases:
            raise StateError(f"{self._path} no longer holds what was released before. Restore a copy")
        history = kept.history
        for charged in there.releases[known:]:
            history = history.extended(charged.epsilon)
        self._kept = kept = _Kept(replace(there, losses=kept.state.losses), history, content)
        return kept

    def _require_process(self) -> None:
        """Raise `LedgerError` in another process than the one that made this, where no file is shared with it."""
        if self._path is None and not self._lock.is_at_home():
            raise LedgerError(
                "an accountant without a path belongs to the process that made it: another one would spend the same "
                "budget once more. Give it a file by path="
            )

    def _judge(self, before: History, after: History) -> None:
        """Raise `LeakageExceededError`, or warn, where releases would leak too much."""
        worst = after.worst
        assert worst is not None
        if worst.leakage <= self.alpha:
            return
        if self._kept.state.on_excess == "refuse":
            raise LeakageExceededError(*worst, self.alpha, _remedy(before, after.epsilons[-1], self.alpha))
        message = f"release {worst.step} now leaks {worst.leakage:.6g}, more than the promised {self.alpha:.6g}"
        warn(message, BudgetWarning, stacklevel=3)

    def _charged(self, epsilon: float, index: int) -> Charged:
        """Charge the ledger and return the release that it holds."""
        if self._ledger is None or epsilon == 0:
            return Charged(epsilon, secrets.token_hex(16))
        entry = self._ledger.spend(f"release {index} of a sequence", "any two values at that time", epsilon=epsilon)
        return Charged(epsilon, entry.number, in_ledger=True)


def _require_folder(path: Path) -> None:
    if not path.parent.is_dir():
        raise ExportError(f"{path} could not be written: {path.parent} is not a folder. Create it first")


def _missing(path: Path) -> StateError:
    return StateError(
        f"{path} was there before, as its lock {lock_file_of(path)} says, and is gone: a new one would promise the "
        "same once more. Restore it, or remove the lock, too, to forget what was released"
    )


def _require_apart(path: Path | None, ledger: Ledger | None) -> None:
    if path is not None and ledger is not None and ledger.path == path:
        raise InputError("path", "is that of the ledger", value=str(path), bound="a file of its own")


def _opened(kind: type[Accountant], path: Path, ledger: Ledger | None, wait: float) -> Accountant:
    return kind.load(path, ledger=ledger, wait=wait)


def _history(state: State) -> History:
    history = History.of(*state.losses)
    for charged in state.releases:
        history = history.extended(charged.epsilon)
    return history


def _require_grown(path: Path, there: State, ours: State) -> None:
    """Raise `StateError` where a state would be replaced by one that lacks some of its releases."""
    if not there.same_promise(ours):
        raise StateError(f"{path} holds another promise or other matrices, and is left as it is. Save to another file")
    if there.releases != ours.releases[: len(there.releases)]:
        raise StateError(
            f"{path} holds releases that this accountant does not know, and is left as it is: saving would forget "
            "them. Go on with Accountant.load, which shares the file"
        )


def _note_unsaid(path: Path, remedy: str, stacklevel: int = 3) -> None:
    said = f"{path} does not say which ledger it had, and goes on without one. {remedy}"
    if readers := readers_of(path):
        said += f"; {readers}"
    warn(said, StateWarning, stacklevel=stacklevel)


def _remedy(history: History, epsilon: float, alpha: float) -> str:
    if epsilon > alpha:
        return f"One release alone costs its budget {epsilon:.6g}: spend less, or promise a larger alpha"
    most = history.largest(alpha)
    return f"Spend at most {most:.6g}" if most > 0 else "Nothing more can be released from these data"
