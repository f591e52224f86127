"""Check how a design is asked for, before anything is solved."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from mechdesign.certify.exact import exact
from mechdesign.errors import InputError
from mechdesign.solvers import Options, Report

__all__ = ["positive_number", "settings_of"]


def settings_of(
    time_limit: float | None,
    options: Mapping[str, object] | None,
    threads: int | None,
    report: Report | None,
) -> Options:
    """Return the arguments of `mechdesign.design` as options, `options` as their `extra`.

    Raises InputError for numbers that are not positive and finite, and for arguments of another kind.
    """
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1):
        raise InputError("threads", "is no number of threads", value=threads, bound="an integer >= 1")
    options = {} if options is None else options
    if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
        raise InputError(
            "options", "is no mapping of names to values", value=options, bound='such as {"symmetry": False}'
        )
    if report is not None and not callable(report):
        raise InputError("report", "cannot be called", value=report, bound="a function of a Progress")
    return Options(
        time_limit=None if time_limit is None else positive_number("time_limit", time_limit),
        threads=None if threads is None else int(threads),
        extra=dict(options),
        report=report,
    )


def positive_number(path: str, value: float) -> float:
    """Return a number above 0 as a float, at most the largest; raise InputError, with its path, for anything else."""
    number = exact(value, path)
    if not number > 0:
        raise InputError(path, "must be positive", value=value, bound="greater than 0")
    return float(min(number, Fraction(sys.float_info.max)))
