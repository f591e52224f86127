"""Every error and warning that mechdesign raises on purpose.

Each message names where the trouble is, what was found, what would be accepted, and what to do about it.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Self

Keys = tuple[str | int, ...]
"""A path as its steps: names, and numbers of places in lists. What is no such path is one step, such as a file."""

_PATH = re.compile(r"[\w-]+(?:\.[\w-]+|\[[^\[\]]*\])*")
_STEP = re.compile(r"\[(?P<index>0|[1-9]\d*)\]|\.?(?P<name>[\w-]+|\[[^\[\]]*\])")
_AS_THEY_ARE: Mapping[str, str] = MappingProxyType({})

_SHOWS_VALUES = ContextVar("shows_values", default=False)
_WITHHOLDS_VALUES = ContextVar("withholds_values", default=False)


@contextmanager
def showing_values() -> Iterator[None]:
    """Show in errors what stands in the cells of a file, of which else the form alone is shown.

    It holds for the thread, or task, that it is entered in.

    >>> with showing_values():
    ...     values_are_shown()
    True
    """
    before = _SHOWS_VALUES.set(True)
    try:
        yield
    finally:
        _SHOWS_VALUES.reset(before)


def values_are_shown() -> bool:
    """Tell whether errors show what stands in the cells of a file; see `showing_values`."""
    return _SHOWS_VALUES.get()


@contextmanager
def withholding_values() -> Iterator[None]:
    """Leave what came from a file out of warnings in the block, which does not yield, unless values are shown."""
    before = _WITHHOLDS_VALUES.set(True)
    try:
        yield
    finally:
        _WITHHOLDS_VALUES.reset(before)


def values_are_withheld() -> bool:
    """Tell whether a warning leaves values out, as they came from a file; see `showing_values`."""
    return _WITHHOLDS_VALUES.get() and not _SHOWS_VALUES.get()


def keys_of(path: str | Keys) -> Keys:
    """Return the steps of a path that is written as a text; `path_of` writes it again, as it was.

    >>> keys_of("privacy[1].epsilon")
    ('privacy', 1, 'epsilon')
    >>> keys_of("places.csv, row 3")
    ('places.csv, row 3',)
    """
    if isinstance(path, tuple):
        return path
    if not _PATH.fullmatch(path):
        return (path,) if path else ()
    return tuple(each["name"] if each["index"] is None else int(each["index"]) for each in _STEP.finditer(path))


def path_of(keys: Keys) -> str:
    """Return a path as a text.

    >>> path_of(("privacy", 1, "epsilon"))
    'privacy[1].epsilon'
    """
    steps = (f"[{key}]" if isinstance(key, int) else key if key.startswith("[") else f".{key}" for key in keys)
    return "".join(steps).removeprefix(".")


def moved(keys: Keys, place: Keys, renamed: Mapping[str, str] = _AS_THEY_ARE) -> Keys:
    """Return a path below `place`; `renamed` lists beginnings of paths that are called otherwise there.

    >>> moved(("requirements", 0, "epsilon"), (), {"requirements[0]": "privacy[2]"})
    ('privacy', 2, 'epsilon')
    """
    for count in range(len(keys), 0, -1):
        if (name := renamed.get(path_of(keys[:count]))) is not None:
            return (*place, *keys_of(name), *keys[count:])
    return (*place, *keys)


class MechdesignError(Exception):
    """Base of all errors of this package."""


class InputError(MechdesignError, ValueError):
    """An input is wrong; nothing has been computed or written.

    Attributes: `path` (where the input stands, such as ``requirements[1].epsilon``), `keys` (the steps of that path),
    `problem` (what is wrong), `value` (what was found), `bound` (what is accepted) and `remedy` (what to do), the last
    three possibly empty. Of a cell of a file `value` is the form, such as ``9999-9-99 9:99``; see `showing_values`.
    """

    def __init__(
        self, path: str | Keys, problem: str, *, value: object = None, bound: str = "", remedy: str = ""
    ) -> None:
        self.keys = keys_of(path)
        self.problem = problem
        self.value = value
        self.bound = bound
        self.remedy = remedy
        super().__init__(problem)

    @property
    def path(self) -> str:
        """Where the input stands, as a text."""
        return path_of(self.keys)

    def under(self, place: Keys, renamed: Mapping[str, str] = _AS_THEY_ARE) -> SpecificationError:
        """Return the error about a key of a specification, at or below `place`; see `moved`."""
        keys = moved(self.keys, place, renamed)
        return SpecificationError(keys, self.problem, value=self.value, bound=self.bound, remedy=self.remedy)

    def restate(self, value: object) -> None:
        """Name another value in place of the one that was found, such as its form."""
        self.value = value

    def __str__(self) -> str:
        message = f"{self.path}: {self.problem}"
        if self.value is not None:
            message += f"; found {_short(self.value)}"
            if isinstance(self.value, Form) and self.value.reads_as_number:
                message += " (9 stands for any digit)"
        if self.bound:
            message += f"; must be {self.bound}"
        if self.remedy:
            message += f". {self.remedy[0].upper()}{self.remedy[1:]}"
        return message

    def __reduce__(self) -> tuple[object, ...]:
        # A value that cannot go to another process goes as the text that the message shows.
        return _restored, (type(self), self.args, {**vars(self), "value": _crossing(self.value)})


class UnknownNameError(InputError, KeyError):
    """A name that a registry does not hold: a kind of requirement, or a format, that nobody registered."""

    # A KeyError would show its message in quotes.
    __str__ = InputError.__str__


class SpecificationError(InputError):
    """A specification file is wrong; `path` is the path of the key."""


class InfeasibleError(MechdesignError):
    """No channel meets all requirements.

    Attributes: `path` (the input that asks for too much, such as ``requirements[1]``, possibly empty) and `keys` (the
    steps of that path).
    """

    def __init__(self, problem: str, path: str | Keys = ()) -> None:
        self.keys = keys_of(path)
        super().__init__(problem)

    @property
    def path(self) -> str:
        """The input that asks for too much, as a text."""
        return path_of(self.keys)

    def under(self, place: Keys, renamed: Mapping[str, str] = _AS_THEY_ARE) -> Self:
        """Return the error about a key of a specification, at or below `place`; see `moved`."""
        return type(self)(self.args[0], moved(self.keys, place, renamed))

    def __str__(self) -> str:
        return f"{self.path}: {self.args[0]}" if self.keys else str(self.args[0])


class UnboundedError(MechdesignError):
    """The program has no finite optimum."""


class SolverError(MechdesignError):
    """A solver failed, or returned numbers that cannot be made into a certified channel."""


class TooLargeError(SolverError):
    """A problem does not fit into memory; nothing was built. The message says what would fit."""


class TimeLimitError(SolverError):
    """The time limit passed before any channel could be certified."""


class SolverInterruptedError(SolverError):
    """The user stopped the solve before any channel could be certified."""


class CertificateError(MechdesignError):
    """A certificate does not hold.

    Attributes: `reason` (a sentence) and `pair`, the worst pair of secrets ``(s, t)`` or None when no pair is at fault.
    """

    def __init__(self, reason: str, pair: tuple[int, int] | None = None) -> None:
        self.reason = reason
        self.pair = pair
        super().__init__(reason)


class UnverifiedError(CertificateError):
    """Nothing was verified, and nothing is said of a certificate: no export stands there, or it cannot be read."""


class VerifierMemoryError(UnverifiedError):
    """Nothing was verified: reading or proving an export would take more memory than is allowed."""


class BudgetExceededError(MechdesignError):
    """A release would pass the privacy budget; nothing was released and nothing recorded."""


class LedgerError(MechdesignError):
    """A ledger cannot be used: damaged, missing, locked, made with another budget, or copied to another process."""


class LockError(LedgerError):
    """The lock of a ledger or an accountant is refused, by its file system or to this user; nothing was recorded."""


class ExactReleaseError(MechdesignError):
    """A release without noise would tell apart what the policy of another release protects; nothing was released."""


class ExportError(MechdesignError, OSError):
    """Files could not be written; what stood there before is still complete."""


class ClosedPipeError(ExportError):
    """Whoever read a pipe that was named as output has closed it before all was written."""


class ReportError(ExportError):
    """What shows a result could not be made or written; the result is, and what a release costs is spent."""


class RecordsError(MechdesignError):
    """A folder of results cannot be used: it is damaged, of another version, or holds another request's results."""


class ClusterError(MechdesignError):
    """A cluster of machines was lost during a computation; what was finished is kept."""


class MissingDependencyError(MechdesignError, ImportError):
    """A feature needs a package that is not installed; the message names the extra that brings it."""


class LeakageExceededError(MechdesignError):
    """A release would make some release leak more than was promised; nothing was recorded.

    Attributes: `step` (the release that would leak most, from 0), `leakage` (how much), `alpha` (the promise).
    """

    def __init__(self, step: int, leakage: float, alpha: float, remedy: str) -> None:
        self.step = step
        self.leakage = leakage
        self.alpha = alpha
        super().__init__(f"release {step} would leak {leakage:.6g}; must be <= {alpha:.6g}. {remedy}")

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (type(self), self.args, vars(self))


class StateError(MechdesignError, ValueError):
    """A saved accountant cannot be trusted: it is damaged, incomplete, or of another version."""


class TraceError(MechdesignError):
    """A trace is a copy of one that has released a state, and does not know what that one releases meanwhile."""


class BracketWarning(UserWarning):
    """A design ended with a wider bracket than was asked for, and than 2 %; what it guarantees still holds."""


class BudgetWarning(UserWarning):
    """A budget is zero, or a leakage target is passed; the numbers returned are still correct."""


class PriorWarning(UserWarning):
    """A prior gives weight to what another excludes; the result is still correct for the priors as given."""


class SpacingWarning(UserWarning):
    """Anchors are far apart for the ε asked for; the result is still correct, but finer anchors cost less."""


class OutsideWarning(UserWarning):
    """Places lie outside the rectangle of anchors and were projected onto it; what is certified still holds."""


class RevealedWarning(UserWarning):
    """Answers reveal secrets for certain, or all but, or no pair of them is bounded; what is certified still holds."""


class CorrelationWarning(UserWarning):
    """A backward and a forward correlation cannot belong to one chain; leakage is computed for both as given."""


class SmoothedChainWarning(UserWarning):
    """A bound on leakage rests on a chain whose counts were smoothed, which makes it smaller than what was seen."""


class SizeWarning(UserWarning):
    """A design is likely to take longer than an hour."""


class MetricWarning(UserWarning):
    """Distances are no metric, or a radius is far beyond them; the result is still correct for them as given."""


class UnsoundWarning(UserWarning):
    """A release that was made earlier protects less than its policy says; it still opens."""


class GraphWarning(UserWarning):
    """A policy graph has no edge, so that nothing is protected; the graph is the one asked for."""


class StepWarning(UserWarning):
    """The steps of a Markov chain and those of a trace are of different lengths."""


class LockWarning(UserWarning):
    """The lock of a file is held by another process and is waited for."""


class SynchronisationWarning(UserWarning):
    """Files are whole, on a file system that cannot synchronise them: a loss of power may undo what was written."""


class LeftOutWarning(UserWarning):
    """Rows of a table cannot be counted and are left out; the result is correct for the others."""


class MissingTimeWarning(LeftOutWarning):
    """Rows of a table have no time and are left out; the result is correct for the others."""


class InterchangedWarning(UserWarning):
    """Latitude and longitude look interchanged, or the sides of a box are in another order: where it lies tells."""


class RecognisedWarning(UserWarning):
    """How a file is written was recognised, and not said: its encoding, its delimiter, its decimals, or its times."""


class StateWarning(UserWarning):
    """A saved accountant is of an earlier version and does not say which ledger it had; it still opens."""


class HistoryWarning(UserWarning):
    """What is known of a trace was counted in data that may hold the trace itself; public files depend on them."""


class CacheWarning(UserWarning):
    """The cache can be written by others and is left alone; results are computed instead."""


class ExposedFileWarning(UserWarning):
    """A file that is its owner's alone can be read by others, as those of earlier versions can; it keeps its mode."""


class ExtensionWarning(UserWarning):
    """A requirement that another package offers cannot be loaded and is left out."""


class SerialWarning(UserWarning):
    """Processes cannot work together on this machine, and rows of a sweep are solved one after the other."""


class Shown(str):
    """A text that an error shows as it is, without quotes."""


class Form(Shown):
    """The form of a cell of a file, in which 9 stands for any digit and a for any letter."""

    @property
    def reads_as_number(self) -> bool:
        """Tell whether the form could be taken for a number that stands there."""
        return "9" in self and not set(self) - set("9.,-+ ")


class Total(float):
    """A sum over numbers of a file, which an error shows although it does not show the numbers."""


def _restored(sort: type[Exception], arguments: tuple[object, ...], state: dict[str, object]) -> Exception:
    """Return an error as it was in the process that it comes from, whatever its constructor asks for."""
    made = sort.__new__(sort)
    made.args = arguments
    vars(made).update(state)
    return made


def _crossing(value: object) -> object:
    """Return a value, or the text that stands for it where it cannot be pickled, or not be read again."""
    try:
        pickle.loads(pickle.dumps(value))
    except Exception:  # What is not ours raises whatever it likes.
        return Shown(_short(value))
    return value


def _short(value: object, limit: int = 120) -> str:
    text = str(value) if isinstance(value, Shown) else repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


# Users catch and pickle them by the door.
for _kind in [each for each in globals().values() if isinstance(each, type) and issubclass(each, Exception)]:
    if _kind.__module__ == __name__:
        _kind.__module__ = "mechdesign.errors"
