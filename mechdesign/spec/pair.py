"""The forward and the backward correlation that a specification describes, as files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mechdesign.certify._texts import csv_text
from mechdesign.data._matrices import CHAIN_COUNTS
from mechdesign.data._matrices import counts_file
from mechdesign.model._grammar import Raw
from mechdesign.base._errors import SmoothedChainWarning
from mechdesign.base._errors import SpecificationError
from mechdesign.leakage._estimate import Correlations
from mechdesign.model._domain import Domain
from mechdesign.model._markov import MarkovChain
from mechdesign.model._markov import OpenChain
from mechdesign.spec.chains import build_correlations
from mechdesign.spec.specification import Specification
from mechdesign.base._warnings import warn

__all__ = ["chain_files"]


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
    """Return ``forward.csv``, ``backward.csv``, ``states.csv`` and, of data, ``chain-counts.json``, and notes.

    The chain is that of ``[release]``, or is counted in the data of the prior; `every`, `gap`, `smoothing`, `ends` and
    `border` count more than what stands there. So do `times`, keys of the table of check-ins: "time", "date",
    "time_format", "time_zone" and "missing". A row that nobody saw is the word that `ends` says, unless people stay.
    """
    release = given.document.release
    path = "release.transition"
    raw: Raw = dict(release["transition"]) if "transition" in release else {"estimated": True}
    asked = {"every": every, "gap": gap, "smoothing": smoothing, "ends": ends, "border": border}
    raw |= {name: value for name, value in asked.items() if value is not None}
    prior = given.document.prior
    if said := {name: value for name, value in (times or {}).items() if value is not None}:
        raw, prior = _with_times(raw, prior, said)
    domain = given.domain
    try:
        found, notes = build_correlations(raw, path, domain, given.folder, prior)
    except SpecificationError as error:
        if "transition" in release or error.path != f"{path}.estimated" or "prior" not in error.problem:
            raise
        raise SpecificationError(
            "prior", "comes from no data in order of time", remedy="add [release] with transition = { … }"
        ) from error
    files = {
        "forward.csv": _matrix(found.forward),
        "backward.csv": _matrix(found.backward),
        "states.csv": _states(found, domain),
    }
    smoothing = raw.get("smoothing") or 0.0
    if isinstance(found.forward, MarkovChain) and found.forward.counts is not None:
        files[CHAIN_COUNTS] = counts_file(found.forward, files)
    if smoothing:
        _warn_of_smoothing(smoothing)
    return files, (*notes, *_ends(found, domain, smoothing, raw.get("ends") or "stay"), *_private(found))


def _warn_of_smoothing(smoothing: float) -> None:
    """Warn with `SmoothedChainWarning` that files hold a chain that was smoothed."""
    warn(
        f"the matrices were counted with smoothing {smoothing:g}, which makes leakage that is computed from them "
        f"smaller than what was seen. `leakage` and `budget` show what the counts alone give, from {CHAIN_COUNTS}",
        SmoothedChainWarning,
        stacklevel=3,
    )


def _private(found: Correlations) -> Iterator[str]:
    if found.steps:
        yield (
            f"the matrices were counted in data: these files are private, and tell every count of {found.steps} steps "
            "exactly to everyone who gets them"
        )


def _ends(found: Correlations, domain: Domain, smoothing: float, ends: str) -> Iterator[str]:
    """Say which states have no row of their own, and what stands there."""
    left_out = domain.size - int((found.states < domain.size).sum())
    if left_out:
        yield f"{left_out} of {domain.size} states, which nobody visited, are left out"
    if found.leaving and found.states[-1] < domain.size:
        yield "--border state keeps the steps that leave the box"
    counts = [(len(found.never_left), "leave", "forward.csv"), (len(found.never_entered), "enter", "backward.csv")]
    for count, verb, name in counts:
        if not count:
            continue
        if smoothing:
            row = f"smoothing = {smoothing:g} alone makes their rows in {name}, all alike"
        elif ends == "stay":
            row = f"{name} has a 1 on their diagonal (--ends stay); mixture and any suppose something else"
        else:
            row = f"{name} has the word {ends} in place of their rows"
        yield f"nobody was seen to {verb} {count} of {len(found.states)} states: {row}"


def _with_times(raw: Raw, prior: Raw, times: Mapping[str, object]) -> tuple[Raw, Raw]:
    """Return the tables of the chain and of the prior with other keys about times in that of the data."""
    for form in ("checkins", "plt"):
        if form == "plt" and set(times) != {"missing"}:
            continue
        if isinstance(raw.get(form), dict):
            return {**raw, form: {**raw[form], **times}}, prior
        if raw.get("estimated") and isinstance(prior.get(form), dict):
            return raw, {**prior, form: {**prior[form], **times}}
    key, value = next(iter(times.items()))
    problem = "goes with check-ins only, in which this chain is not counted"
    raise SpecificationError(f"--{key.replace('_', '-')}", problem, value=value, remedy="leave it out")


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
