"""The figures of the papers, computed with mechdesign: experiments, their results, and the pictures.

Each module named in `MODULES` has a tuple EXPERIMENTS and a tuple FIGURES. An experiment computes rows of a table:
within seconds in the setting `small`, and completely in the setting `full`. `python benchmarks/run.py` stores the rows
in ``notebooks/results``. A figure draws stored rows, quotes the paper's claim and judges the claim by the rows.
Notebooks and the gallery of the site show figures by name.
"""

from __future__ import annotations

import importlib
from typing import TypeVar

from papers.experiments import Comparison, Experiment, MovedError, Row, Rows, StaleResultError, Stored
from papers.showing import Figure, Verdict, say

__all__ = [
    "MODULES", "Comparison", "Experiment", "Figure", "MovedError", "Row", "Rows", "StaleResultError", "Stored",
    "Verdict", "all_experiments", "all_figures", "experiment", "figure", "say",
]  # fmt: skip

MODULES = ("privacy_games", "temporal_leakage", "pglp", "dphmm", "blowfish", "unnoticed")

_Named = TypeVar("_Named", Experiment, Figure)


def all_experiments() -> dict[str, Experiment]:
    """Return the experiments of all modules by name."""
    return {entry.name: entry for module in MODULES for entry in _module(module).EXPERIMENTS}


def all_figures() -> dict[str, Figure]:
    """Return the figures of all modules by name, in the order of the gallery."""
    return {entry.name: entry for module in MODULES for entry in _module(module).FIGURES}


def experiment(name: str) -> Experiment:
    """Return the experiment called `name`."""
    return _found(all_experiments(), name)


def figure(name: str) -> Figure:
    """Return the figure called `name`."""
    return _found(all_figures(), name)


def _module(name: str):
    return importlib.import_module(f"papers.{name}")


def _found(entries: dict[str, _Named], name: str) -> _Named:
    if name not in entries:
        raise KeyError(f"there is no {name!r}; there are {', '.join(entries)}")
    return entries[name]
