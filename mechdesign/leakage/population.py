"""Several users, each with correlations and budgets of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._errors import InputError
from mechdesign.leakage.correlation import Correlation
from mechdesign.leakage.recursion import temporal
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers
from mechdesign.base._arrays import as_budgets
from mechdesign.base._check import as_list
from mechdesign.base._arrays import read_only
from mechdesign.base._check import require_kind

__all__ = ["User", "UsersLeakage", "users"]


def __dir__() -> list[str]:
    return sorted(__all__)


@dataclass(frozen=True, eq=False)
class User:
    """A user: what the adversary knows of the user's movement, and the user's own budgets if they differ.

    `backward` and `forward` are correlations or None; `epsilons` has shape (T,) for personalised differential privacy
    (section 3.5 of the paper), or is None for the budgets of everybody.
    """

    backward: Correlation = None
    forward: Correlation = None
    epsilons: ArrayLike | None = None
    name: str = ""


@dataclass(frozen=True, eq=False)
class UsersLeakage:
    """The leakage of several users: read-only arrays, in nats.

    `of_user` has shape (users, T); `overall`, shape (T,), is its maximum over users, and `worst`, shape (T,), the
    index of a user who attains it.
    """

    of_user: Floats
    overall: Floats
    worst: Integers


def users(epsilons: ArrayLike | None, population: Sequence[User]) -> UsersLeakage:
    """Return the leakage of each user by Equation (10), and the largest at every release.

    Equation (11) of the paper adds the largest backward leakage of one user to the largest forward leakage of another,
    and overstates. `epsilons` may be None if every user has budgets of their own.
    """
    population = as_list(population, "users", "a list of User")
    for index, user in enumerate(population):
        require_kind(user, User, f"users[{index}]", "a User")
    if not population:
        raise InputError("users", "are empty", bound="at least one user")
    common = None if epsilons is None else as_budgets(epsilons)
    rows: list[Floats] = []
    for index, user in enumerate(population):
        where = f"users[{index}]" + (f" ({user.name})" if user.name else "")
        if user.epsilons is None and common is None:
            raise InputError(f"{where}.epsilons", "are missing", bound="budgets for the user or for everybody")
        budgets = common if user.epsilons is None else as_budgets(user.epsilons, f"{where}.epsilons")
        assert budgets is not None
        if rows and len(budgets) != len(rows[0]):
            raise InputError(
                f"{where}.epsilons", "differ in length", value=len(budgets), bound=f"{len(rows[0])} budgets"
            )
        rows.append(temporal(budgets, user.backward, user.forward))
    of_user = np.array(rows)
    leakage = UsersLeakage(of_user, of_user.max(axis=0), of_user.argmax(axis=0).astype(np.int64))
    for array in (leakage.of_user, leakage.overall, leakage.worst):
        read_only(array)
    return leakage
