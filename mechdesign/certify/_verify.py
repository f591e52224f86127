"""Verification of a bundle from its files alone.

Verification trusts no claim of the files. The digests must match, every requirement is decided again in exact
arithmetic, and costs and lower bound are recomputed. Each number of the certificate must equal the recomputed number. A
changed file with repaired digests therefore fails, unless the bundle still has a private channel and a true
certificate. The returned certificate lists the stated requirements: check yourself that these are the requirements
*you* want. ``channel.csv``, from which people sample, is compared with the channel. The remaining content is for human
readers and is not verified; `examine` lists it. With a public key, the bundle must also be signed with this key.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._errors import CertificateError
from mechdesign.certify._bundle import CERTIFICATE, CHANNEL, DUAL, TABLE, Bundle, inspect
from mechdesign.certify._certificate import Certificate, certify
from mechdesign.certify._evidence import Evidence
from mechdesign.certify._keys import VerifyingKey, read_public_key
from mechdesign.certify._memory import MEMORY_GIB, as_bytes, proving, require_room
from mechdesign.certify._statement import describe_statement, require_signed
from mechdesign.certify._table import exact_lines
from mechdesign.certify._texts import to_cell

# Maximal number of names in a description.
_MAX_NAMED = 5


@dataclass(frozen=True)
class Verified:
    """The result of verifying a bundle.

    Attributes:
        certificate: The recomputed certificate.
        unproved: Descriptions of the contents that are not proved.
        signature: A phrase on the signature of the bundle, such as ``none`` or ``by the key 3f…``.

    >>> import tempfile
    >>> import mechdesign as md
    >>> from mechdesign.certify import examine
    >>> problem = md.Problem([0.5, 0.5], [[0, 1], [1, 0]], [md.MetricPrivacy("1", [[0, 1], [1, 0]])])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = md.design(problem).save(f"{folder}/two")
    ...     examine(f"{folder}/two").unproved[-1]
    'provenance: the maker of the channel and the method'
    """

    certificate: Certificate
    unproved: tuple[str, ...]
    signature: str = "none"


@in_own_arithmetic
def verify(folder: str | Path, memory: float = MEMORY_GIB, *, key: str | os.PathLike[str] | None = None) -> Certificate:
    """Verify a bundle and return the certificate that the verification computes.

    Args:
        folder: The folder of the bundle.
        memory: Memory limit in GiB, above 0; the memory is estimated in advance.
        key: A file with the Ed25519 public key of the signer. Without a key, signatures are not checked.

    Returns:
        The certificate.

    Raises:
        CertificateError: The bundle is incomplete, malformed, or does not match its digests. A requirement is violated;
            the error contains the worst pair of secrets. A number differs from the recomputed number, or
            ``channel.csv`` contains another channel.
        SignatureError: A key is given, and the bundle is not signed with it.
        UnverifiedError: There is no bundle, or its files cannot be opened.
        VerifierMemoryError: Verification would take more memory than the limit.
        InputError: `memory` is not above 0, or `key` does not contain an Ed25519 public key.
        MissingDependencyError: A key is given, and the package `cryptography` is not installed.

    >>> import tempfile
    >>> import mechdesign as md
    >>> problem = md.Problem([0.5, 0.5], [[0, 1], [1, 0]], [md.MetricPrivacy("1", [[0, 1], [1, 0]])])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = md.design(problem).save(f"{folder}/two")
    ...     md.verify(f"{folder}/two").holds
    True
    """
    return examine(folder, memory, key=key).certificate


@in_own_arithmetic
def examine(folder: str | Path, memory: float = MEMORY_GIB, *, key: str | os.PathLike[str] | None = None) -> Verified:
    """Verify a bundle, and list its contents that are not proved.

    Args:
        folder: The folder of the bundle.
        memory: Memory limit in GiB, above 0.
        key: A file with the public key of the signer, or None.

    Returns:
        The recomputed certificate and the unproved contents.

    Raises:
        CertificateError: As in `verify`.

    >>> import tempfile
    >>> import mechdesign as md
    >>> from mechdesign.certify import examine
    >>> problem = md.Problem([0.5, 0.5], [[0, 1], [1, 0]], [md.MetricPrivacy("1", [[0, 1], [1, 0]])])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = md.design(problem).save(f"{folder}/two")
    ...     examine(f"{folder}/two").certificate.holds
    True
    """
    signer = None if key is None else read_public_key(key)
    return prove(inspect(folder, memory), memory, signer)


def prove(bundle: Bundle, memory: float = MEMORY_GIB, signer: VerifyingKey | None = None) -> Verified:
    """Verify a bundle that has been read; no file is opened again.

    Args:
        bundle: The bundle.
        memory: Memory limit in GiB, above 0.
        signer: The public key of the signer, or None if signatures are not checked.

    Returns:
        The recomputed certificate and the unproved contents.

    Raises:
        CertificateError: As in `verify`.

    >>> import tempfile
    >>> import mechdesign as md
    >>> from mechdesign.certify import prove, read
    >>> problem = md.Problem([0.5, 0.5], [[0, 1], [1, 0]], [md.MetricPrivacy("1", [[0, 1], [1, 0]])])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = md.design(problem).save(f"{folder}/two")
    ...     prove(read(f"{folder}/two")).certificate.holds
    True
    """
    if signer is not None:
        require_signed(bundle.statement, CERTIFICATE, bundle.sha256, signer)
        signature = f"by the key {signer.identifier}"
    else:
        signature = describe_statement(bundle.statement, CERTIFICATE, bundle.sha256)
    table = 0 if bundle.table is None else len(bundle.table)
    require_room(proving(bundle.evidence) + table, as_bytes(memory), "verifying this bundle")
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
    unproved = [*_list_unproved(bundle), *(_list_unsigned(bundle) if signer is not None else ())]
    return Verified(found, tuple(unproved), signature)


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
    labels = [
        list(map(str, bundle.arrays[name].tolist() if name in bundle.arrays else range(count)))
        for name, count in (("secrets", evidence.secrets), ("observables", evidence.observables))
    ]
    cells = [list(map(to_cell, each)) for each in labels]
    problem = _difference(bundle.table, evidence, cells)
    # Earlier versions did not add apostrophes to labels.
    if problem and (cells == labels or _difference(bundle.table, evidence, labels)):
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


def _list_unsigned(bundle: Bundle) -> Iterator[str]:
    """Yield descriptions of the entries of the folder that no signature covers."""
    if bundle.unlisted:
        named = ", ".join(bundle.unlisted[:_MAX_NAMED]) + (", …" if len(bundle.unlisted) > _MAX_NAMED else "")
        yield f"not signed, because {CERTIFICATE} does not list them: {named}"
