"""Write the files of a chain from a specification."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import structs

from mechdesign.base._errors import SmoothedChainWarning, SpecificationError
from mechdesign.base._warnings import warn
from mechdesign.certify._texts import csv_text
from mechdesign.data._chain_counts import CHAIN_COUNTS, counts_file
from mechdesign.leakage._estimate import Correlations
from mechdesign.model._domain import Domain
from mechdesign.model._grammar import ChainTable, Checkins, PriorTable
from mechdesign.model._markov import MarkovChain
from mechdesign.model._open_chain import OpenChain
from mechdesign.specification._chains import build_correlations
from mechdesign.specification._specification import Specification


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
    source = given.source / "release" / "transition"
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
