"""Compute budgets of least cost, and write chain files, from a specification."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from msgspec import structs
from numpy.typing import ArrayLike

from mechdesign.base._arrays import as_nonnegative
from mechdesign.base._errors import SmoothedChainWarning, SpecificationError
from mechdesign.base._values import ReadOnlyMapping
from mechdesign.base._warnings import warn
from mechdesign.certify._exact import exact, exact_text
from mechdesign.certify._texts import csv_text
from mechdesign.data._chain_counts import CHAIN_COUNTS, counts_file
from mechdesign.leakage._best_budgets import BestBudgets, best_budgets
from mechdesign.leakage._correlations import Correlation
from mechdesign.leakage._estimate import Correlations
from mechdesign.leakage._transitions import as_target
from mechdesign.model._domain import Domain
from mechdesign.model._grammar import ChainTable, Checkins, PriorTable
from mechdesign.model._markov import MarkovChain
from mechdesign.model._open_chain import OpenChain
from mechdesign.specification._chains import build_correlations
from mechdesign.specification._designs import design_problem
from mechdesign.specification._read import Source
from mechdesign.specification._specification import Specification, beyond_budgets


def chain_files(
    given: Specification,
    every: str | None = None,
    gap: str | None = None,
    smoothing: float | None = None,
    ends: str | None = None,
    border: str | None = None,
    *,
    times: Mapping[str, object] | None = None,
) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Return the files of a chain, and notes for the user.

    The files are ``forward.csv``, ``backward.csv``, ``states.csv`` and, for a chain counted from data,
    ``chain-counts.json``. The chain comes from ``[release]``, or is counted from the data of the prior. The arguments
    `every`, `gap`, `smoothing`, `ends` and `border` override keys of the chain. `times` overrides keys of the table of
    check-ins: "time", "date", "time_format", "time_zone" and "missing". An unknown row is written as the word of
    `ends`, except that "stay" gives a row with a 1 on the diagonal.
    """
    stated = given.document.release.transition
    source = Source(("release", "transition"), given.folder)
    options = {"every": every, "gap": gap, "smoothing": smoothing, "ends": ends, "border": border}
    changed = {name: value for name, value in options.items() if value is not None}
    chain: ChainTable = structs.replace(stated or ChainTable(estimated=True), **changed)
    prior = given.document.prior
    if time_keys := {name: value for name, value in (times or {}).items() if value is not None}:
        chain, prior = _with_times(chain, prior, time_keys)
    domain = given.domain
    try:
        found, notes = build_correlations(chain, source, domain, prior)
    except SpecificationError as error:
        if stated is not None or error.keys != (source / "estimated").path or "prior" not in error.problem:
            raise
        raise SpecificationError(
            "prior", "does not come from data in order of time", remedy="add [release] with transition = { … }"
        ) from error
    files = {
        "forward.csv": _matrix(found.forward),
        "backward.csv": _matrix(found.backward),
        "states.csv": _states(found, domain),
    }
    smoothing = chain.smoothing or 0.0
    if isinstance(found.forward, MarkovChain) and found.forward.counts is not None:
        files[CHAIN_COUNTS] = counts_file(found.forward, files)
    if smoothing:
        _warn_of_smoothing(smoothing)
    return files, (*notes, *_ends(found, domain, smoothing, chain.ends or "stay"), *_private(found))


def _warn_of_smoothing(smoothing: float) -> None:
    """Warn with `SmoothedChainWarning` that files contain a smoothed chain."""
    warn(
        f"the matrices were counted with smoothing {smoothing:g}, so leakage computed from them is smaller than for "
        f"the observed steps. `leakage` and `budget` also show results for the counts alone, from {CHAIN_COUNTS}",
        SmoothedChainWarning,
        stacklevel=3,
    )


def _private(found: Correlations) -> Iterator[str]:
    if found.steps:
        yield (
            f"the matrices were counted from data: these files are private, because every count of {found.steps} steps "
            "can be read from them exactly"
        )


def _ends(found: Correlations, domain: Domain, smoothing: float, ends: str) -> Iterator[str]:
    """Yield notes about states that are left out, and about states whose rows are unknown."""
    left_out = domain.size - int((found.states < domain.size).sum())
    if left_out:
        yield f"{left_out} of {domain.size} states were never visited, and are left out"
    if found.leaving and found.states[-1] < domain.size:
        yield "--border state keeps the steps that leave the box"
    counts = [(len(found.never_left), "leave", "forward.csv"), (len(found.never_entered), "enter", "backward.csv")]
    for count, verb, name in counts:
        if not count:
            continue
        if smoothing:
            row = f"their rows in {name} come from smoothing = {smoothing:g} alone, and are uniform"
        elif ends == "stay":
            row = f"{name} has a 1 on their diagonal (--ends stay); mixture and any are other assumptions"
        else:
            row = f"{name} has the word {ends} instead of their rows"
        yield f"nobody was seen to {verb} {count} of {len(found.states)} states: {row}"


def _with_times(chain: ChainTable, prior: PriorTable, times: Mapping[str, object]) -> tuple[ChainTable, PriorTable]:
    """Return the tables of the chain and of the prior, with the keys `times` added to the table of the data."""
    counted = chain.checkins or chain.plt
    table: ChainTable | PriorTable = chain if counted is not None else prior
    data = counted or (prior.checkins or prior.plt if chain.estimated else None)
    if isinstance(data, Checkins) or (data is not None and set(times) == {"missing"}):
        changed = structs.replace(table, **{table.form: structs.replace(data, **times)})
        return (changed, prior) if isinstance(changed, ChainTable) else (chain, changed)
    key, value = next(iter(times.items()))
    problem = "applies to check-ins only, but this chain is not counted from check-ins"
    raise SpecificationError(f"--{key.replace('_', '-')}", problem, value=value, remedy="remove it")


def _matrix(chain: MarkovChain | OpenChain) -> bytes:
    words = {} if isinstance(chain, MarkovChain) else dict.fromkeys(chain.missing.tolist(), chain.ends)
    rows = (words.get(place) or ",".join(map(repr, row)) for place, row in enumerate(chain.matrix.tolist()))
    return "".join(f"{row}\n" for row in rows).encode()


def _states(found: Correlations, domain: Domain) -> bytes:
    degrees = domain.degrees
    rows: list[list[object]] = [["row", "state", "label", *(("latitude", "longitude") if degrees is not None else ())]]
    for row, state in enumerate(found.states.tolist()):
        if state == domain.size:
            rows.append([row, state, "outside", *(() if degrees is None else ("", ""))])
            continue
        place = [] if degrees is None else [repr(value) for value in degrees[state].tolist()]
        rows.append([row, state, domain.labels[state], *place])
    return csv_text(rows).encode()


# The ε of the first designs, as shares of α.
_SHARES = (Fraction(1, 16), Fraction(1, 8), Fraction(1, 4), Fraction(1, 2), Fraction(1))
# Each further round makes up to this number of designs.
_DESIGNS_PER_ROUND = 6
_MAX_ROUNDS = 5
# Budgets are rounded down to a power of ten that is at most α divided by this number.
_MIN_LEVELS = 200


@dataclass(frozen=True, eq=False)
class PricedBudgets:
    """Budgets for the releases of a specification, with the certified costs from which they follow.

    Attributes:
        best: The budgets; each ε is a key of `costs`. The lower bound assumes costs that are linear between designs.
        costs: The certified cost of one release for each designed ε, and for the key 0 the cost without a release.
        notes: Sentences for the user, for example that a release may leak more than its ε.
    """

    best: BestBudgets
    costs: Mapping[Fraction, float]
    notes: tuple[str, ...]


def price_budgets(
    specification: Specification,
    alpha: float,
    weights: ArrayLike,
    backward: Correlation = None,
    forward: Correlation = None,
    *,
    window: int = 1,
    tolerance: float = 0.01,
    told: Callable[[str], None] | None = None,
    **changed: Any,
) -> PricedBudgets:
    """Return budgets of least cost for releases of a specification; see `mechdesign.leakage.best_budgets`.

    The function first certifies designs at a few ε, then at the ε that the best budgets use. The search stops when
    every budget has a design, or when the total cost is within `tolerance` of the cost predicted by the curve. Every ε
    is a multiple of a power of ten, at most α/200, and rounded down to it.

    Args:
        specification: A specification with one ``epsilon``, which is varied.
        alpha: The largest leakage of each release, or window, in nats.
        weights: The weight of each release, shape (T,).
        backward: Pr(state before | state now), or None.
        forward: Pr(next state | state now), or None.
        window: The number of successive releases whose leakage is bounded together.
        tolerance: Relative difference in cost at which to stop.
        told: Called with a sentence before each design.
        **changed: Fields of `SolveSettings`, as for `Specification.design`.

    Returns:
        The budgets and costs.

    Raises:
        SpecificationError: The specification has no ε, or several.
    """
    alpha, counts = as_target(alpha), as_nonnegative(weights, "weights", 1)
    place = _place(specification)
    costs: dict[Fraction, float] = {Fraction(0): _cost_without_release(specification, place, alpha)}
    quantum = Fraction(10) ** math.floor(math.log10(alpha / _MIN_LEVELS))
    wanted = sorted({max(math.floor(exact(alpha) * share / quantum), 1) * quantum for share in _SHARES})
    found: BestBudgets | None = None
    for _ in range(_MAX_ROUNDS):
        for epsilon in wanted:
            if told is not None:
                told(f"design {len(costs)}, ε = {exact_text(epsilon)}")
            costs[epsilon] = _at(specification, place, epsilon, changed).certificate.cost
        known = sorted(costs)
        # A channel for a smaller ε is also valid for a larger ε.
        falling = np.minimum.accumulate([costs[epsilon] for epsilon in known])
        axis = np.array([float(epsilon) for epsilon in known])
        curves = [(axis, weight * falling) for weight in counts]
        best = best_budgets(alpha, curves, backward, forward, window=window, tolerance=tolerance)
        places = np.searchsorted(axis, best.epsilons, side="right") - 1
        total = math.fsum((counts * falling[places]).tolist()) * (1 + 2.0**-44)
        if found is None or total < found.cost:
            found = replace(best, epsilons=axis[places], cost=total)
        found = replace(found, lower_bound=min(best.lower_bound, found.cost))
        missing = sorted(
            {math.floor(exact(value) / quantum) * quantum for value in best.epsilons.tolist()} - set(costs)
        )
        if not missing or found.cost <= best.cost * (1 + tolerance):
            break
        spread = np.unique(np.linspace(0, len(missing) - 1, _DESIGNS_PER_ROUND).round().astype(int))
        wanted = [missing[index] for index in spread.tolist()]
    assert found is not None
    notes = beyond_budgets(
        _with_epsilon(specification, place, Fraction(1)).problem().requirements[place], f"privacy[{place}]"
    )
    return PricedBudgets(found, ReadOnlyMapping(dict(sorted(costs.items()))), notes)


def _place(specification: Specification) -> int:
    """Return the index of the ``[[privacy]]`` table with the ε."""
    places = [place for place, table in enumerate(specification.document.privacy) if hasattr(table, "epsilon")]
    if len(places) != 1:
        raise SpecificationError(
            "privacy", f"has {len(places)} tables with epsilon", bound="one, whose epsilon the budgets vary"
        )
    return places[0]


def _with_epsilon(specification: Specification, place: int, epsilon: Fraction) -> Specification:
    tables = [*specification.document.privacy]
    tables[place] = structs.replace(tables[place], epsilon=epsilon)
    varied = replace(specification, document=structs.replace(specification.document, privacy=tables))
    return varied.with_data_of(specification)


def _at(specification: Specification, place: int, epsilon: Fraction, changed: Mapping[str, Any]) -> Any:
    varied = _with_epsilon(specification, place, epsilon)
    return design_problem(varied.problem(), varied.policy_settings, replace(specification.settings, **changed), changed)


def _cost_without_release(specification: Specification, place: int, alpha: float) -> float:
    """Return the cost without a release, which is the cost of the best constant answer."""
    problem = _with_epsilon(specification, place, Fraction(alpha)).problem()
    each = problem.cost.max(axis=0) if problem.objective == "worst" else problem.prior @ problem.cost
    return float(each.min()) * (1 + 2.0**-40)
