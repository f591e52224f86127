"""Verify an exported set from its files alone.

Nothing that the files claim is believed: the digests must fit, every requirement is decided again in exact arithmetic,
costs and lower bound are computed again, and each number in the certificate must be the one that comes out. Someone who
changes a file and repairs all digests is caught by the mathematics, unless what they made is a private mechanism with a
true certificate for the requirements that it states. That the stated requirements are the ones that *you* want is for
you to see: read them in the certificate that is returned.
"""

from __future__ import annotations

from pathlib import Path

from mechdesign.certify.bundle import CHANNEL, Bundle, inspect
from mechdesign.certify.certificate import Certificate, certify
from mechdesign.errors import CertificateError

__all__ = ["verify"]


def verify(directory: str | Path) -> Certificate:
    """Return the certificate of the set in `directory`, recomputed.

    Raises `CertificateError` when the set is incomplete or malformed, when digests do not fit, when a requirement does
    not hold (with the worst pair of secrets), or when the certificate claims anything else than what was recomputed.
    Where digests do not fit, the reason also tells whether a requirement is broken.
    """
    bundle = inspect(directory)
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
    return found


def _require_labels(bundle: Bundle) -> None:
    """Labels are not proved, but those that choose a secret must be as many as the secrets, and different."""
    n, m = bundle.evidence.secrets, bundle.evidence.observables
    for name, count in (("secrets", n), ("observables", m)):
        labels = bundle.arrays.get(name)
        if labels is not None and (labels.shape != (count,) or len(set(labels.tolist())) != count):
            raise CertificateError(f"array {name} of {CHANNEL} does not hold {count} different labels")
