"""Temporal privacy leakage: how much a sequence of releases leaks when the data are correlated in time.

After Cao, Yoshikawa, Xiao and Xiong, Quantifying Differential Privacy in Continuous Data Release Under Temporal
Correlations (2019). `LossFunction` is exact for every α; `backward`, `forward` and `temporal` give the leakage of each
release, `supremum` what it tends to, `constant_budget` and `allocate_budget` the budgets that bound it, `window` and
`guarantees` what several releases leak together, and `Accountant` keeps a running system within its promise. The
algorithms of the paper, `algorithm1` to `algorithm8`, and `fractional` are independent checks. Figures are in
`mechdesign.leakage.plots`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from mechdesign.data.budgets import read_budgets, write_budgets
from mechdesign.errors import BudgetWarning, LeakageExceededError, StateError
from mechdesign.leakage.accountant import Accountant
from mechdesign.leakage.budgets import allocate_budget, constant_budget
from mechdesign.leakage.composition import Guarantees, guarantees, window, windows
from mechdesign.leakage.correlation import Candidates, Varying
from mechdesign.leakage.estimate import Correlations, correlations_from_traces, smooth
from mechdesign.leakage.loss import LossFunction, Pieces
from mechdesign.leakage.oracle import algorithm1, algorithm2, algorithm3, algorithm4, algorithm5, algorithm6
from mechdesign.leakage.oracle_budgets import algorithm7, algorithm8
from mechdesign.leakage.population import User, UsersLeakage, users
from mechdesign.leakage.recursion import backward, forward, supremum, temporal
from mechdesign.leakage.row_pair import fractional, row_pair_program

if TYPE_CHECKING:
    from mechdesign.leakage import plots as plots

__all__ = [
    "Accountant",
    "BudgetWarning",
    "Candidates",
    "Correlations",
    "Guarantees",
    "LeakageExceededError",
    "LossFunction",
    "Pieces",
    "StateError",
    "User",
    "UsersLeakage",
    "Varying",
    "algorithm1",
    "algorithm2",
    "algorithm3",
    "algorithm4",
    "algorithm5",
    "algorithm6",
    "algorithm7",
    "algorithm8",
    "allocate_budget",
    "backward",
    "constant_budget",
    "correlations_from_traces",
    "forward",
    "fractional",
    "guarantees",
    "plots",
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
    # Matplotlib takes a second to load.
    if name == "plots":
        return importlib.import_module("mechdesign.leakage.plots")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
