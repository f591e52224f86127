"""What an adversary may know of how secrets follow one another: nothing, a chain, a chain a step, or one of several."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from mechdesign.base._errors import InputError
from mechdesign.leakage.loss import LossFunction

__all__ = [
    "Candidates",
    "Correlation",
    "Varying",
    "as_loss",
    "candidate_functions",
    "require_same_states",
    "step_functions",
]


def __dir__() -> list[str]:
    return sorted(__all__)


# A matrix (array, MarkovChain, OpenChain, SciPy sparse), LossFunction, Varying, Candidates, or None: no correlation.
Correlation: TypeAlias = Any


@dataclass(frozen=True, eq=False, init=False)
class Varying:
    """Correlations that change: entry t is that between the releases t and t + 1, counted from 0; None means none.

    For T releases there are T − 1 entries, in order of time for backward and for forward correlations alike. They are
    matrices or loss functions; equal ones share their precomputation.
    """

    steps: tuple[LossFunction | None, ...]

    def __init__(self, steps: Iterable[Any]) -> None:
        object.__setattr__(self, "steps", _functions(steps, "steps"))


@dataclass(frozen=True, eq=False, init=False)
class Candidates:
    """Correlations of which the adversary knows one, nobody knows which: leakage is that of the worst.

    Entries are matrices, loss functions, `Varying` or None; at least one.
    """

    options: tuple[LossFunction | Varying | None, ...]

    def __init__(self, options: Iterable[Any]) -> None:
        functions: list[LossFunction | Varying | None] = []
        if isinstance(options, str) or not isinstance(options, Iterable):
            raise InputError("candidates", "are not several", value=options, bound="a list of matrices, or of None")
        for index, option in enumerate(options):
            known = isinstance(option, Varying)
            functions.append(option if known else as_loss(option, f"candidates[{index}]"))
        if not functions:
            raise InputError("candidates", "are empty", bound="at least one correlation", remedy="give None for none")
        object.__setattr__(self, "options", tuple(functions))


def as_loss(correlation: Any, path: str) -> LossFunction | None:
    """Return the loss function of one matrix, or None for None, whose loss is 0."""
    if correlation is None or isinstance(correlation, LossFunction):
        return correlation
    if isinstance(correlation, Varying | Candidates):
        raise InputError(path, "is not a single matrix", value=type(correlation).__name__, bound="a matrix or None")
    return LossFunction(correlation, path=path)


def step_functions(correlation: Correlation, steps: int, path: str) -> list[list[LossFunction | None]]:
    """Return, for each candidate, the loss functions between `steps` releases, steps − 1 in all.

    Raises `InputError` when a `Varying` has another number of entries.
    """
    options = correlation.options if isinstance(correlation, Candidates) else (correlation,)
    chains = []
    for option in options:
        if isinstance(option, Varying):
            if len(option.steps) != steps - 1:
                raise InputError(
                    path,
                    "differs in length",
                    value=len(option.steps),
                    bound=f"{steps - 1} matrices for {steps} releases",
                    remedy="give one matrix for each step from a release to the next",
                )
            chains.append(list(option.steps))
        else:
            chains.append([as_loss(option, path)] * (steps - 1))
    return chains


def candidate_functions(correlation: Correlation, path: str) -> list[LossFunction | None]:
    """Return the loss functions that must hold for ever; raise `InputError` for `Varying`, whose future is unknown."""
    options = correlation.options if isinstance(correlation, Candidates) else (correlation,)
    for option in options:
        if isinstance(option, Varying):
            raise InputError(
                path,
                "changes with time, and no end is given",
                bound="a matrix, Candidates or None",
                remedy="give Candidates of the matrices that may occur: what holds for them holds in any order",
            )
    return [as_loss(option, path) for option in options]


def require_same_states(backward: Iterable[LossFunction | None], forward: Iterable[LossFunction | None]) -> None:
    """Raise `InputError` unless all correlations, of whatever direction, are about the same number of states."""
    known: tuple[str, int] | None = None
    for path, functions in (("backward", backward), ("forward", forward)):
        for loss in functions:
            if loss is None:
                continue
            if known is not None and loss.n != known[1]:
                raise InputError(
                    path,
                    "is about another number of states",
                    value=loss.n,
                    bound=f"{known[1]}, as in {known[0]}",
                    remedy="give correlations of the same chain",
                )
            known = path, loss.n


def _functions(steps: Iterable[Any], path: str) -> tuple[LossFunction | None, ...]:
    known: dict[int, LossFunction | None] = {}
    functions = []
    if isinstance(steps, str) or not isinstance(steps, Iterable):
        raise InputError(path, "are not several matrices", value=steps, bound="a list of matrices, or of None")
    # The list keeps every matrix alive, so that no two of them share an id.
    for index, step in enumerate(list(steps)):
        if id(step) not in known:
            known[id(step)] = as_loss(step, f"{path}[{index}]")
        functions.append(known[id(step)])
    return tuple(functions)
