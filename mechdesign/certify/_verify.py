"""Verify an exported set from its files alone.

Nothing that the files claim is believed: the digests must fit, every requirement is decided again in exact arithmetic,
costs and lower bound are computed again, and each number in the certificate must be the one that comes out. Someone who
changes a file and repairs all digests is caught by the mathematics, unless what they made is a private mechanism with a
true certificate for the requirements that it states. That the stated requirements are the ones that *you* want is for
you to see: read them in the certificate that is returned. ``channel.csv``, from which people sample, is compared with
the channel. What else stands in the files for people is not proved, and `examine` says what that is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._errors import CertificateError
from mechdesign.certify._bundle import CERTIFICATE, CHANNEL, DUAL, TABLE, Bundle, inspect
from mechdesign.certify._certificate import Certificate, certify
from mechdesign.certify._evidence import Evidence
from mechdesign.certify._memory import MEMORY_GIB, as_bytes, proving, require_room
from mechdesign.certify._table import exact_lines
from mechdesign.certify._texts import to_cell


@dataclass(frozen=True)
class Verified:
    """A set that was proved: its `certificate`, recomputed, and in words the parts of it that are `unproved`."""

    certificate: Certificate
    unproved: tuple[str, ...]


@in_own_arithmetic
def verify(folder: str | Path, memory: float = MEMORY_GIB) -> Certificate:
    """Return the certificate of the set in `folder`, recomputed.

    What that takes is estimated beforehand: a set that needs more than `memory` GiB is refused.

    Raises `CertificateError` when the set is incomplete or malformed, when digests do not fit, when a requirement does
    not hold (with the worst pair of secrets), when the certificate claims anything else than what was recomputed, or
    when ``channel.csv`` holds another channel. Where digests do not fit, the reason also tells whether a requirement is
    broken. Raises `InputError` for a `memory` that is not above 0.
    """
    return examine(folder, memory).certificate


@in_own_arithmetic
def examine(folder: str | Path, memory: float = MEMORY_GIB) -> Verified:
    """Verify the set in `folder`, and say what it holds beside what was proved; raises as `verify` does."""
    return prove(inspect(folder, memory), memory)


def prove(bundle: Bundle, memory: float = MEMORY_GIB) -> Verified:
    """Verify a set that `inspect` has read, as `examine` does; no file is opened again."""
    table = 0 if bundle.table is None else len(bundle.table)
    require_room(proving(bundle.evidence) + table, as_bytes(memory), "verifying this")
    try:
        found = certify(bundle.evidence, bundle.certificate.provenance)
    except CertificateError as error:
        raise CertificateError("; ".join([*bundle.problems, error.reason]), error.pair) from error
    if bundle.problems:
        broken = (found.reason,) if found.reason else ()
        raise CertificateError("; ".join([*bundle.problems, *broken]), found.pair)
    found.require()
    _require_labels(bundle)
    differences = found.differences(bundle.certificate)
    if differences:
        name = differences[0]
        claimed, true = getattr(bundle.certificate, name), getattr(found, name)
        raise CertificateError(f"the certificate claims {name} = {claimed!r}, but the files prove {true!r}")
    _require_table(bundle)
    return Verified(found, tuple(_unproved(bundle)))


def _require_labels(bundle: Bundle) -> None:
    """Labels are not proved, but those that choose a secret must be as many as the secrets, and different."""
    n, m = bundle.evidence.secrets, bundle.evidence.observables
    for name, count in (("secrets", n), ("observables", m)):
        labels = bundle.arrays.get(name)
        if labels is not None and labels.dtype.kind != "U" and labels.dtype.str != "<i8":
            raise CertificateError(f"array {name} of {CHANNEL} holds {labels.dtype}, and neither texts nor int64")
        if labels is not None and (labels.shape != (count,) or len(set(labels.tolist())) != count):
            raise CertificateError(f"array {name} of {CHANNEL} does not hold {count} different labels")


def _require_table(bundle: Bundle) -> None:
    """Compare ``channel.csv``, from which people sample, with the channel that was proved, line by line."""
    if bundle.table is None:
        return
    evidence = bundle.evidence
    labels = [
        list(map(str, bundle.arrays[name].tolist() if name in bundle.arrays else range(count)))
        for name, count in (("secrets", evidence.secrets), ("observables", evidence.observables))
    ]
    cells = [list(map(to_cell, each)) for each in labels]
    problem = _difference(bundle.table, evidence, cells)
    # Earlier versions wrote all labels as they are.
    if problem and (cells == labels or _difference(bundle.table, evidence, labels)):
        raise CertificateError(problem)


def _difference(table: bytes, evidence: Evidence, labels: list[list[str]]) -> str:
    """Say where a table is not that of a channel under these labels; return nothing where it is."""
    start = 0
    for row, line in enumerate(exact_lines(evidence.numerators, evidence.exponent, *labels)):
        content = line.encode()
        if not table.startswith(content, start):
            return f"line {row + 1} of {TABLE} is not that of the channel in {CHANNEL}"
        start += len(content)
    return "" if start == len(table) else f"{TABLE} goes on after the last line of the channel in {CHANNEL}"


def _unproved(bundle: Bundle) -> Iterator[str]:
    """Yield what people read in the set and nothing proves."""
    if bundle.arrays:
        yield f"labels and places in {CHANNEL}: {', '.join(sorted(bundle.arrays))}"
    if bundle.metadata:
        yield f"metadata: {', '.join(sorted(bundle.metadata))}"
    if bundle.certificate.provenance:
        yield "provenance: who made the channel, and how"
    if bundle.unknown:
        yield f"unknown keys of {CERTIFICATE}: {', '.join(bundle.unknown)}"
    yield from (name for name in bundle.files if name not in (CHANNEL, DUAL, TABLE))
