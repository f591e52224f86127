"""Every solver by name: one line each, with what it takes and what can be relied on.

A solver is a file of its own and a `Solver` here, or, from outside the package, one that is given to `register`.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import importlib.util
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from mechdesign.base._errors import InputError, MissingDependencyError

_RESERVED = "auto"
_CVXPY = "cvxpy-"


@dataclass(frozen=True)
class Solver:
    """A named way to solve, with declared features.

    Attributes:
        name: What users call it: lower case, such as "highs-simplex".
        load: Returns the function that solves, a `mechdesign.solve.BackEnd` or `mechdesign.solve.BlockBackEnd`. It
            is called when the solver is first used, and so may import what is slow to load.
        package: The package that it needs.
        takes: "rows", a `LinearProgram`; or "blocks", a `BlockProgram`, which holds all pairs and needs no rows.
        exact: Whether its answers are vertices, computed to working precision: then a second solve, with the objective
            magnified, gives better multipliers.
        warm: Whether it starts from an earlier answer of its own, also when rows were added since.
        apart: The number of nonzero coefficients from which on, given a time limit, it runs in a process of its own,
            which is ended soon after that limit. `load` must then be a function that can be imported.
        deaf: Whether it does not hear Ctrl-C; from `apart` on it then runs in such a process without a limit, too.

    >>> find("highs-simplex").exact, find("block").takes
    (True, 'blocks')
    """

    name: str
    load: Callable[[], Any]
    package: str
    takes: Literal["rows", "blocks"] = "rows"
    exact: bool = False
    warm: bool = False
    apart: float = math.inf
    deaf: bool = False

    @property
    def installed(self) -> bool:
        """Whether the package can be imported."""
        return importlib.util.find_spec(self.package) is not None


def _from(module: str, *method: str) -> Callable[[], Any]:
    """Return what imports a file of this folder and asks it for its back end, here or in another process."""
    return functools.partial(_load, module, *method)


def _load(module: str, *method: str) -> Any:
    return importlib.import_module(f"mechdesign.solve._{module}").back_end(*method)


# HiGHS looks at the clock between its steps; with so many coefficients, the presolve alone may take seconds.
_LARGE = 250_000
# With fewer, solvers that do not hear Ctrl-C take about as long as a process takes to start.
_SMALL = 20_000


_SOLVERS: dict[str, Solver] = {
    solver.name: solver
    for solver in (
        Solver("block", _from("block"), "mechdesign", takes="blocks"),
        Solver("highs", _from("highs", "choose"), "highspy", exact=True, warm=True, apart=_LARGE),
        Solver("highs-simplex", _from("highs", "simplex"), "highspy", exact=True, warm=True, apart=_LARGE),
        Solver("highs-ipx", _from("highs", "ipx"), "highspy", exact=True, apart=_LARGE),
        Solver("highs-pdlp", _from("highs", "pdlp"), "highspy", apart=0, deaf=True),
        Solver("scipy", _from("scipy", "highs"), "scipy", exact=True, apart=_SMALL, deaf=True),
        Solver("scipy-ds", _from("scipy", "highs-ds"), "scipy", exact=True, apart=_SMALL, deaf=True),
        Solver("scipy-ipm", _from("scipy", "highs-ipm"), "scipy", exact=True, apart=_SMALL, deaf=True),
        Solver("cvxpy", _from("cvxpy", "CLARABEL"), "cvxpy", apart=_SMALL, deaf=True),
    )
}


def register(solver: Solver) -> None:
    """Add a solver from outside the package; from then on its name is accepted wherever solvers are named.

    Raises:
        InputError: The name is taken, reserved, or not in lower case.
    """
    name = solver.name
    if name == _RESERVED or name.startswith(_CVXPY) or name in _SOLVERS:
        raise InputError("name", "is taken", value=name, bound=f"none of {_RESERVED}, {_CVXPY}NAME, {_names()}")
    if not name or name != name.lower() or any(character.isspace() for character in name):
        raise InputError("name", "must be in lower case, without spaces", value=name, bound='such as "toy-simplex"')
    _SOLVERS[name] = solver


def available() -> tuple[Solver, ...]:
    """Return every named solver; ``cvxpy-NAME`` further reaches any solver that CVXPY has installed."""
    return tuple(_SOLVERS.values())


def find(name: str) -> Solver:
    """Look up a solver by name.

    Raises:
        InputError: There is no such name.
        MissingDependencyError: Its package is not installed.
    """
    if name.lower().startswith(_CVXPY) and name.lower() != _CVXPY:
        solver = Solver(name.lower(), _from("cvxpy", name[len(_CVXPY) :].upper()), "cvxpy", apart=_SMALL, deaf=True)
    elif name in _SOLVERS:
        solver = _SOLVERS[name]
    else:
        close = difflib.get_close_matches(name, [_RESERVED, *_SOLVERS], n=1)
        remedy = f"did you mean {close[0]}?" if close else ""
        bound = f"one of {_RESERVED}, {_names()}, {_CVXPY}NAME"
        raise InputError("solver", "is not known", value=name, bound=bound, remedy=remedy)
    if not solver.installed:
        raise MissingDependencyError(
            f"solver {name!r} needs the package {solver.package}: pip install {solver.package}"
        )
    return solver


def _names() -> str:
    return ", ".join(_SOLVERS)
