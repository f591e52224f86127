"""All errors and warnings that mechdesign raises deliberately.

Each message contains the place of the problem, the invalid value, the accepted values, and a remedy.
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
"""A path as a tuple of steps: names, and indices of lists. Any other text, such as a file name, is a single step."""

_PATH = re.compile(r"[\w-]+(?:\.[\w-]+|\[[^\[\]]*\])*")
_STEP = re.compile(r"\[(?P<index>0|[1-9]\d*)\]|\.?(?P<name>[\w-]+|\[[^\[\]]*\])")
_UNCHANGED: Mapping[str, str] = MappingProxyType({})
# The repr of a NumPy scalar, such as np.float64(0.5) or np.True_, also in a tuple.
_NUMPY_SCALAR = re.compile(r"\bnp\.(?:\w+\(([^()]*)\)|(True|False)_)")

# Number of characters of a value in a message.
_MAX_SHOWN = 120

_WITHHOLDS_VALUES = ContextVar("withholds_values", default=False)


@contextmanager
def withholding_values(below: str = "") -> Iterator[None]:
    """Omit values from errors and warnings of the block, which checks values from a file or counts of data.

    Args:
        below: Only errors whose paths begin with this text lose their value.

    Yields:
        Nothing; warnings show values again at the end of the block, which must not contain a ``yield``.

    >>> with withholding_values():
    ...     raise InputError("counts[3]", "is negative", value=-7, bound=">= 0")
    Traceback (most recent call last):
    mechdesign.errors.InputError: counts[3]: is negative; must be >= 0
    """
    before = _WITHHOLDS_VALUES.set(True)
    try:
        yield
    except InputError as error:
        if error.path.startswith(below):
            error.value = None
            if not isinstance(error.__cause__, OSError):
                # The exception that caused this error may contain the value.
                error.__cause__ = error.__context__ = None
        raise
    finally:
        _WITHHOLDS_VALUES.reset(before)


def values_are_withheld() -> bool:
    """Return whether warnings omit the values of a file, as in a block of `withholding_values`.

    Returns:
        The setting of the current thread or task.

    >>> values_are_withheld()
    False
    """
    return _WITHHOLDS_VALUES.get()


def keys_of(path: str | Keys) -> Keys:
    """Return the steps of a path that is written as a text; `path_of` restores the text.

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
    """Return the text of a path.

    >>> path_of(("privacy", 1, "epsilon"))
    'privacy[1].epsilon'
    """
    steps = (f"[{key}]" if isinstance(key, int) else key if key.startswith("[") else f".{key}" for key in keys)
    return "".join(steps).removeprefix(".")


def move_path(keys: Keys, place: Keys, renamed: Mapping[str, str] = _UNCHANGED) -> Keys:
    """Return `keys` as a path below `place`; `renamed` maps prefixes of `keys` to their names below `place`.

    >>> move_path(("requirements", 0, "epsilon"), (), {"requirements[0]": "privacy[2]"})
    ('privacy', 2, 'epsilon')
    """
    for count in range(len(keys), 0, -1):
        if (name := renamed.get(path_of(keys[:count]))) is not None:
            return (*place, *keys_of(name), *keys[count:])
    return (*place, *keys)


class MechdesignError(Exception):
    """Base class of all errors of this package."""


class InputError(MechdesignError, ValueError):
    """An input is invalid; nothing was computed or written.

    Each argument is also an attribute, and the attribute `keys` contains the steps of the path.

    Args:
        path: The path of the input, such as ``requirements[1].epsilon``, or its steps.
        problem: A description of the problem.
        value: The invalid value; None for a cell of a file, which errors do not show.
        bound: The accepted values; may be empty.
        remedy: The suggested remedy; may be empty.
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
        """The path of the input as a text."""
        return path_of(self.keys)

    def under(self, place: Keys, renamed: Mapping[str, str] = _UNCHANGED) -> SpecificationError:
        """Return a copy of the error whose path is a key of a specification.

        Args:
            place: The path of the table.
            renamed: Maps prefixes of paths to their names in the specification; see `move_path`.

        Returns:
            The error at or below `place`.
        """
        keys = move_path(self.keys, place, renamed)
        return SpecificationError(keys, self.problem, value=self.value, bound=self.bound, remedy=self.remedy)

    def __str__(self) -> str:
        message = f"{self.path}: {self.problem}"
        if self.value is not None:
            message += f"; found {_short(self.value)}"
        if self.bound:
            message += f"; must be {self.bound}"
        if self.remedy:
            message += f". {self.remedy[0].upper()}{self.remedy[1:]}"
        return message

    def __reduce__(self) -> tuple[object, ...]:
        # A value that cannot be pickled is replaced by the text that the message shows.
        return _restore, (type(self), self.args, {**vars(self), "value": _make_picklable(self.value)})


class SpecificationError(InputError):
    """A specification file is invalid; `path` is the path of the key."""


class InfeasibleError(MechdesignError):
    """No channel meets all requirements.

    `path` is also an attribute, and the attribute `keys` contains the steps of the path.

    Args:
        problem: A description of the conflict.
        path: The path of the infeasible input, such as ``requirements[1]``, or its steps; may be empty.
    """

    def __init__(self, problem: str, path: str | Keys = ()) -> None:
        self.keys = keys_of(path)
        super().__init__(problem)

    @property
    def path(self) -> str:
        """The path of the infeasible input as a text."""
        return path_of(self.keys)

    def under(self, place: Keys, renamed: Mapping[str, str] = _UNCHANGED) -> Self:
        """Return a copy of the error whose path is a key of a specification.

        Args:
            place: The path of the table.
            renamed: Maps prefixes of paths to their names in the specification; see `move_path`.

        Returns:
            The error at or below `place`.
        """
        return type(self)(self.args[0], move_path(self.keys, place, renamed))

    def __str__(self) -> str:
        return f"{self.path}: {self.args[0]}" if self.keys else str(self.args[0])


class UnboundedError(MechdesignError):
    """The program has no finite optimum."""


class SolverError(MechdesignError):
    """A solver failed, or returned numbers from which no certified channel can be made."""


class TooLargeError(SolverError):
    """A problem does not fit into memory; nothing was built. The message names a size of the problem that would fit."""


class TimeLimitError(SolverError):
    """The time limit passed before a channel was certified."""


class SolverInterruptedError(SolverError):
    """The user stopped the solve before a channel was certified."""


class CertificateError(MechdesignError):
    """A certificate does not hold. Each argument is also an attribute.

    Args:
        reason: A sentence with the reason.
        pair: The worst pair of secrets ``(s, t)``, or None if the reason is not a pair.
    """

    def __init__(self, reason: str, pair: tuple[int, int] | None = None) -> None:
        self.reason = reason
        self.pair = pair
        super().__init__(reason)


class UnverifiedError(CertificateError):
    """Nothing was verified: the folder contains no bundle, or its files cannot be read."""


class VerifierMemoryError(UnverifiedError):
    """Nothing was verified: reading or proving a bundle would exceed the memory limit."""


class BudgetExceededError(MechdesignError):
    """A release would exceed the privacy budget; nothing was released or recorded."""


class LedgerError(MechdesignError):
    """A ledger cannot be used: it is damaged, missing, locked, has another budget, or was copied to another process."""


class LockError(LedgerError):
    """The file system or the permissions refuse the lock of a ledger; nothing was recorded."""


class ExactReleaseError(MechdesignError):
    """An exact release would reveal data that the policy of another release protects; nothing was released."""


class ExportError(MechdesignError, OSError):
    """Files could not be written; the previous files are still complete."""


class ClosedPipeError(ExportError):
    """The reader of an output pipe closed it before everything was written."""


class ReportError(ExportError):
    """A report could not be made or written; the result itself was written, and its privacy cost is spent."""


class ClusterError(MechdesignError):
    """The connection to a cluster was lost during a computation; finished rows are kept."""


class MissingDependencyError(MechdesignError, ImportError):
    """A feature needs a package that is not installed; the message contains the line that installs it."""


class LeakageExceededError(MechdesignError):
    """A release would make the leakage of some release exceed the limit; nothing was recorded.

    Each of the first three arguments is also an attribute.

    Args:
        step: The release with the largest leakage, counted from 0; in a series of a ledger, its time step.
        leakage: The leakage of this release.
        alpha: The limit.
        remedy: The suggested remedy.
    """

    def __init__(self, step: int | str, leakage: float, alpha: float, remedy: str) -> None:
        self.step = step
        self.leakage = leakage
        self.alpha = alpha
        # As many digits as tell both numbers apart.
        digits = next((count for count in range(6, 17) if f"{leakage:.{count}g}" != f"{alpha:.{count}g}"), 17)
        super().__init__(f"step {step} would leak {leakage:.{digits}g}; must be <= {alpha:.{digits}g}. {remedy}")

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (type(self), self.args, vars(self))


class StateError(MechdesignError, ValueError):
    """A saved state, a folder of results or a trace is damaged, belongs to something else, or is a stale copy."""


class MechdesignWarning(UserWarning):
    """Base class of all warnings of this package."""


class InputWarning(MechdesignWarning):
    """An input is unusual, or parts of it were left out. The result is correct for the rest."""


class BracketWarning(MechdesignWarning):
    """A design ended with a gap above the tolerance and above 2 %; its privacy guarantee still holds."""


class BudgetWarning(MechdesignWarning):
    """Leakage adds up, a budget is zero, or a target is exceeded; the returned numbers are still correct."""


class SpacingWarning(MechdesignWarning):
    """Anchors or cells are far apart for this ε; the result is correct, but a finer grid would be better."""


class OutsideWarning(MechdesignWarning):
    """Places outside the rectangle of anchors were projected onto it; the certificate still holds."""


class RevealedWarning(MechdesignWarning):
    """Answers reveal secrets with (near) certainty, or no pair has a bound; the certificate still holds."""


class CorrelationWarning(MechdesignWarning):
    """A backward and a forward correlation cannot belong to one chain; leakage is computed for both correlations."""


class SmoothedChainWarning(MechdesignWarning):
    """A bound on leakage is too low, because it uses a chain with smoothed instead of observed counts."""


class MetricWarning(MechdesignWarning):
    """Distances are not a metric, or a radius far exceeds them; the result is correct for the given distances."""


class LockWarning(MechdesignWarning):
    """Another process holds the lock of a file; this process waits for it."""


class SynchronisationWarning(MechdesignWarning):
    """Files are complete, but their file system cannot synchronise them: a power failure may undo the write."""


class ExposedFileWarning(MechdesignWarning):
    """Other users can read a private file, such as an old ledger or a private key; its mode is kept."""


class Shown(str):
    """A text that an error shows without quotes.

    >>> print(InputError("path", "is wrong", value=Shown("a b")))
    path: is wrong; found a b
    """


def _restore(sort: type[Exception], arguments: tuple[object, ...], state: dict[str, object]) -> Exception:
    """Return an unpickled error without calling its constructor, whose arguments differ between classes."""
    made = sort.__new__(sort)
    made.args = arguments
    vars(made).update(state)
    return made


def _make_picklable(value: object) -> object:
    """Return a value, or its text if it cannot be pickled and read again."""
    try:
        pickle.loads(pickle.dumps(value))
    except Exception:  # Classes of other packages may raise any exception.
        return Shown(_short(value))
    return value


def _short(value: object) -> str:
    try:
        text = str(value) if isinstance(value, Shown) else _NUMPY_SCALAR.sub(r"\1\2", repr(value))
    except ValueError:
        # Python does not write integers of thousands of digits.
        text = type(value).__name__
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"


# Users catch and pickle errors under their public names.
for _kind in [each for each in globals().values() if isinstance(each, type) and issubclass(each, Exception)]:
    if _kind.__module__ == __name__:
        _kind.__module__ = "mechdesign.errors"
