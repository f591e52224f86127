"""The registry of solvers: one entry for each, with its features.

Each built-in solver has a file in this package and a `Solver` entry here; other packages call `register`.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from mechdesign.base._check import unknown_name
from mechdesign.base._errors import InputError, MissingDependencyError

_RESERVED = "auto"
_CVXPY = "cvxpy-"


@dataclass(frozen=True)
class Solver:
    """A named solver with declared features.

    Attributes:
        name: The name for users, in lower case, such as "highs-simplex".
        load: A function that returns the back end, a `BackEnd` or `BlockBackEnd`. It is called on first use, so it may
            import slow packages.
        package: The package that the solver needs.
        takes: The type of program that the solver accepts: "rows" for a `LinearProgram`, or "blocks" for a
            `BlockProgram`.
        exact: Whether the answers of the solver are vertices, computed to working precision. For such a solver, a
            second solve with a magnified objective gives more accurate multipliers.
        apart: Number of nonzero coefficients from which a solve with a time limit runs in a separate process. The
            process is killed soon after the limit. Such solvers need a `load` function that can be pickled.
        deaf: Whether the solver ignores Ctrl-C. If so, a solve with at least `apart` coefficients runs in a separate
            process even without a time limit.

    >>> find("highs-simplex").exact, find("block").takes
    (True, 'blocks')
    """

    name: str
    load: Callable[[], Any]
    package: str
    takes: Literal["rows", "blocks"] = "rows"
    exact: bool = False
    apart: float = math.inf
    deaf: bool = False

    @property
    def installed(self) -> bool:
        """Whether the package of the solver is installed."""
        return importlib.util.find_spec(self.package) is not None


def _from(module: str, *method: str) -> Callable[[], Any]:
    """Return a picklable function that imports a file of this folder and returns its back end."""
    return functools.partial(_load, module, *method)


def _load(module: str, *method: str) -> Any:
    try:
        file = importlib.import_module(f"mechdesign.solve._{module}")
    except ImportError as error:
        # A compiled package turns Ctrl-C during its initialisation into an ImportError.
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise error.__cause__ from None
        raise
    return file.back_end(*method)


# HiGHS checks the clock only between its steps. With at least this number of coefficients, its presolve may take
# seconds.
_MIN_COEFFICIENTS_APART = 250_000
# The limit for solvers that ignore Ctrl-C: smaller programs take less time than starting a process.
_MIN_COEFFICIENTS_DEAF = 20_000


_SOLVERS: dict[str, Solver] = {
    solver.name: solver
    for solver in (
        Solver("block", _from("block"), "mechdesign", takes="blocks"),
        Solver("highs", _from("highs", "choose"), "highspy", exact=True, apart=_MIN_COEFFICIENTS_APART),
        Solver("highs-simplex", _from("highs", "simplex"), "highspy", exact=True, apart=_MIN_COEFFICIENTS_APART),
        Solver("highs-ipx", _from("highs", "ipx"), "highspy", exact=True, apart=_MIN_COEFFICIENTS_APART),
        Solver("highs-pdlp", _from("highs", "pdlp"), "highspy", apart=0, deaf=True),
        Solver("scipy", _from("scipy"), "scipy", exact=True, apart=_MIN_COEFFICIENTS_DEAF, deaf=True),
        Solver("cvxpy", _from("cvxpy", "CLARABEL"), "cvxpy", apart=_MIN_COEFFICIENTS_DEAF, deaf=True),
    )
}


def register(solver: Solver) -> None:
    """Add a solver of another package, so that its name is accepted by all functions that take the name of a solver.

    Args:
        solver: The solver.

    Raises:
        InputError: The name is taken, reserved, or not in lower case.

    >>> register(Solver("toy-for-this-example", lambda: None, "numpy"))
    >>> available()[-1].name
    'toy-for-this-example'
    """
    name = solver.name
    if name == _RESERVED or name.startswith(_CVXPY) or name in _SOLVERS:
        raise InputError("name", "is taken", value=name, bound=f"none of {_RESERVED}, {_CVXPY}NAME, {_names()}")
    if not name or name != name.lower() or any(character.isspace() for character in name):
        raise InputError("name", "must be in lower case, without spaces", value=name, bound='such as "toy-simplex"')
    _SOLVERS[name] = solver


def solve_here(solver: Solver) -> None:
    """Make a solver known to this process, which solves its programs itself, however large they are."""
    _SOLVERS[solver.name] = replace(solver, apart=math.inf)


def available() -> tuple[Solver, ...]:
    """Return all registered solvers. In addition, `find` accepts ``cvxpy-NAME`` for any installed solver of CVXPY.

    Returns:
        The solvers, in the order of registration.

    >>> available()[0].name
    'block'
    """
    return tuple(_SOLVERS.values())


def find(name: str) -> Solver:
    """Look up a solver by name.

    Args:
        name: The name.

    Returns:
        The solver.

    Raises:
        InputError: The name is unknown.
        MissingDependencyError: The package of the solver is not installed.

    >>> find("scipy").deaf
    True
    """
    if name in _SOLVERS:
        solver = _SOLVERS[name]
    elif name.lower().startswith(_CVXPY) and name.lower() != _CVXPY:
        solver = Solver(
            name.lower(), _from("cvxpy", name[len(_CVXPY) :].upper()), "cvxpy", apart=_MIN_COEFFICIENTS_DEAF, deaf=True
        )
    else:
        raise unknown_name(name, (_RESERVED, *_SOLVERS, f"{_CVXPY}NAME"), "solver")
    if not solver.installed:
        raise MissingDependencyError(
            f"solver {name!r} needs the package {solver.package}: pip install {solver.package}"
        )
    return solver


def choose_installed(*names: str) -> str:
    """Return the first of these solvers whose package is installed; if none is installed, the first of all.

    >>> choose_installed("block", "highs")
    'block'
    """
    return next((name for name in names if _SOLVERS[name].installed), names[0])


def _names() -> str:
    return ", ".join(_SOLVERS)
