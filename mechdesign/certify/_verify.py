"""Verification of a bundle from its files alone.

Verification trusts no claim of the files. The digests must match, every requirement is decided again in exact
arithmetic, and costs and lower bound are recomputed. Each number of the certificate must equal the recomputed number. A
changed file with repaired digests therefore fails, unless the bundle still has a private channel and a true
certificate. The returned certificate lists the stated requirements: check yourself that these are the requirements
*you* want. ``channel.csv``, from which people sample, is compared with the channel. The remaining content is for human
readers and is not verified; `examine` lists it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._errors import CertificateError
from mechdesign.certify._bundle import CERTIFICATE, CHANNEL, DUAL, TABLE, Bundle, exact_lines, inspect
from mechdesign.certify._certificate import Certificate, certify
from mechdesign.certify._evidence import Evidence
from mechdesign.certify._memory import proving, require_room
from mechdesign.certify._texts import to_cell


@dataclass(frozen=True)
class Verified:
    """The result of verifying a bundle.

    Attributes:
        certificate: The recomputed certificate.
        unproved: Descriptions of the contents that are not proved.

    >>> import tempfile
    >>> import mechdesign as md
    >>> problem = md.Problem([0.5, 0.5], [[0, 1], [1, 0]], [md.MetricPrivacy("1", [[0, 1], [1, 0]])])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     md.save(md.design(problem), f"{folder}/two", report=False)
    ...     examine(f"{folder}/two").unproved[-1]
    'provenance: the maker of the channel and the method'
    """

    certificate: Certificate
    unproved: tuple[str, ...]


@in_own_arithmetic
def verify(folder: str | Path) -> Certificate:
    """Verify a bundle and return the certificate that the verification computes.

    Args:
        folder: The folder of the bundle.

    Returns:
        The certificate.

    Raises:
        CertificateError: The bundle is incomplete, malformed, or does not match its digests. A requirement is violated;
            the error contains the worst pair of secrets. A number differs from the recomputed number, or
            ``channel.csv`` contains another channel.
        UnverifiedError: There is no bundle, or its files cannot be opened.
        VerifierMemoryError: Verification would take more memory than it may, by an estimate in advance: 2 GiB, or 100
            times the size of the files, within the free memory. The environment variable MECHDESIGN_MEMORY allows
            more, in GiB.

    >>> import tempfile
    >>> import mechdesign as md
    >>> problem = md.Problem([0.5, 0.5], [[0, 1], [1, 0]], [md.MetricPrivacy("1", [[0, 1], [1, 0]])])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     md.save(md.design(problem), f"{folder}/two", report=False)
    ...     md.verify(f"{folder}/two").holds
    True
    """
    return examine(folder).certificate


@in_own_arithmetic
def examine(folder: str | Path) -> Verified:
    """Verify a bundle, and list its contents that are not proved.

    Args:
        folder: The folder of the bundle.

    Returns:
        The recomputed certificate and the unproved contents.

    Raises:
        CertificateError: As in `verify`.

    >>> import tempfile
    >>> import mechdesign as md
    >>> problem = md.Problem([0.5, 0.5], [[0, 1], [1, 0]], [md.MetricPrivacy("1", [[0, 1], [1, 0]])])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     md.save(md.design(problem), f"{folder}/two", report=False)
    ...     examine(f"{folder}/two").certificate.holds
    True
    """
    return prove(inspect(folder))


def prove(bundle: Bundle) -> Verified:
    """Verify a bundle that has been read; no file is opened again.

    Args:
        bundle: The bundle.

    Returns:
        The recomputed certificate and the unproved contents.

    Raises:
        CertificateError: As in `verify`.

    >>> import tempfile
    >>> import mechdesign as md
    >>> from mechdesign.certify._bundle import read
    >>> problem = md.Problem([0.5, 0.5], [[0, 1], [1, 0]], [md.MetricPrivacy("1", [[0, 1], [1, 0]])])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     md.save(md.design(problem), f"{folder}/two", report=False)
    ...     prove(read(f"{folder}/two")).certificate.holds
    True
    """
    table = 0 if bundle.table is None else len(bundle.table)
    require_room(proving(bundle.evidence) + table, bundle.size, "verifying this bundle")
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
    return Verified(found, tuple(_list_unproved(bundle)))


def _require_labels(bundle: Bundle) -> None:
    """Check that every secret and every observable has its own label, if there are labels."""
    n, m = bundle.evidence.secrets, bundle.evidence.observables
    for name, count in (("secrets", n), ("observables", m)):
        labels = bundle.arrays.get(name)
        if labels is not None and labels.dtype.kind != "U" and labels.dtype.str != "<i8":
            raise CertificateError(f"array {name} of {CHANNEL} contains {labels.dtype}, not texts or int64")
        if labels is not None and (labels.shape != (count,) or len(set(labels.tolist())) != count):
            raise CertificateError(f"array {name} of {CHANNEL} does not contain {count} different labels")


def _require_table(bundle: Bundle) -> None:
    """Compare ``channel.csv``, from which people sample, with the proved channel, line by line."""
    if bundle.table is None:
        return
    evidence = bundle.evidence
    cells = [
        [to_cell(str(label)) for label in (bundle.arrays[name].tolist() if name in bundle.arrays else range(count))]
        for name, count in (("secrets", evidence.secrets), ("observables", evidence.observables))
    ]
    if problem := _difference(bundle.table, evidence, cells):
        raise CertificateError(problem)


def _difference(table: bytes, evidence: Evidence, labels: list[list[str]]) -> str:
    """Describe the first difference between a table and the channel under these labels, or return an empty text."""
    start = 0
    for row, line in enumerate(exact_lines(evidence.numerators, evidence.exponent, *labels)):
        content = line.encode()
        if not table.startswith(content, start):
            return f"line {row + 1} of {TABLE} does not match the channel in {CHANNEL}"
        start += len(content)
    return "" if start == len(table) else f"{TABLE} has more lines than the channel in {CHANNEL}"


def _list_unproved(bundle: Bundle) -> Iterator[str]:
    """Yield descriptions of the contents that are not proved."""
    if bundle.arrays:
        yield f"labels and places in {CHANNEL}: {', '.join(sorted(bundle.arrays))}"
    if bundle.metadata:
        yield f"metadata: {', '.join(sorted(bundle.metadata))}"
    if bundle.certificate.provenance:
        yield "provenance: the maker of the channel and the method"
    if bundle.unknown:
        yield f"unknown keys of {CERTIFICATE}: {', '.join(bundle.unknown)}"
    yield from (name for name in bundle.files if name not in (CHANNEL, DUAL, TABLE))
