"""Temporal privacy leakage: how much a sequence of releases leaks when the data are correlated in time.

After Cao, Yoshikawa, Xiao and Xiong, Quantifying Differential Privacy in Continuous Data Release Under Temporal
Correlations (2019). `LossFunction` is exact for every α; `backward`, `forward` and `temporal` give the leakage of each
release, `supremum` what it tends to, `constant_budget`, `allocate_budget` and `best_budgets` the budgets that bound it,
`window` and `guarantees` what several releases leak together, and `Accountant` keeps a running system within its
promise. The algorithms of the paper are in `mechdesign.leakage.cao2019`, where they serve with `fractional` as
independent checks. Figures are in `mechdesign.figures`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from mechdesign.data._budgets import read_budgets
from mechdesign.data._budgets import write_budgets
from mechdesign.base._errors import BudgetWarning
from mechdesign.base._errors import CorrelationWarning
from mechdesign.base._errors import LeakageExceededError
from mechdesign.base._errors import StateError
from mechdesign.base._errors import StateWarning
from mechdesign.leakage._accountant import Accountant
from mechdesign.leakage._budgets import allocate_budget
from mechdesign.leakage._budgets import constant_budget
from mechdesign.leakage._recursion import Guarantees
from mechdesign.leakage._recursion import guarantees
from mechdesign.leakage._recursion import window
from mechdesign.leakage._recursion import windows
from mechdesign.leakage._correlations import Candidates
from mechdesign.leakage._correlations import Varying
from mechdesign.leakage._budget_program import CostCurve
from mechdesign.leakage._estimate import Correlations
from mechdesign.leakage._estimate import correlations_from_traces
from mechdesign.model._markov import smooth
from mechdesign.leakage._best_budgets import BestBudgets
from mechdesign.leakage._best_budgets import best_budgets
from mechdesign.leakage._loss import LossFunction
from mechdesign.leakage._loss import Pieces
from mechdesign.leakage._recursion import User
from mechdesign.leakage._recursion import UsersLeakage
from mechdesign.leakage._recursion import users
from mechdesign.leakage._recursion import backward
from mechdesign.leakage._recursion import forward
from mechdesign.leakage._recursion import supremum
from mechdesign.leakage._recursion import temporal
from mechdesign.leakage._row_pair import fractional
from mechdesign.leakage._row_pair import row_pair_program
from mechdesign.model._markov import OpenChain

if TYPE_CHECKING:
    from mechdesign.leakage import cao2019

__all__ = [
    "Accountant",
    "BestBudgets",
    "BudgetWarning",
    "Candidates",
    "CorrelationWarning",
    "Correlations",
    "CostCurve",
    "Guarantees",
    "LeakageExceededError",
    "LossFunction",
    "OpenChain",
    "Pieces",
    "StateError",
    "StateWarning",
    "User",
    "UsersLeakage",
    "Varying",
    "allocate_budget",
    "backward",
    "best_budgets",
    "cao2019",
    "constant_budget",
    "correlations_from_traces",
    "forward",
    "fractional",
    "guarantees",
    "read_budgets",
    "row_pair_program",
    "smooth",
    "supremum",
    "temporal",
    "users",
    "window",
    "windows",
    "write_budgets",
]


def __getattr__(name: str) -> object:
    if name == "cao2019":
        return importlib.import_module("mechdesign.leakage.cao2019")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
