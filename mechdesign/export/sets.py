"""Write a design as a set of files, and build problem, channel and certificate again from them.

A set is what `mechdesign.certify.bundle` describes. To the arrays that the proof needs, ``channel.npz`` adds what a
person needs: the labels ``secrets`` and ``observables``, and, where there are places, ``secrets_points`` (n, d) and
``secrets_coordinates`` (n, 2), latitude and longitude in degrees, likewise ``observables_points`` and
``observables_coordinates`` where the observables are another domain than the secrets. ``metadata`` in the certificate
holds the title, and unit, grid and bounding box of each domain.

``channel.csv`` is for other programs: the first row has the labels of the observables, the first column those of the
secrets, and each entry is the probability N / 2⁶² written out in full. The decimals are exact, so each row sums to
exactly 1, and N is the decimal times 2⁶².
"""

from __future__ import annotations

from pathlib import Path

from mechdesign.certify import bundle
from mechdesign.certify.bundle import TABLE
from mechdesign.certify.certificate import Certificate
from mechdesign.certify.evidence import Evidence
from mechdesign.errors import CertificateError, InputError
from mechdesign.export.description import described, domain_of
from mechdesign.export.table import exact_csv
from mechdesign.model.channel import Channel
from mechdesign.model.problem import Problem
from mechdesign.requirements.kinds import load_requirements

__all__ = ["encode", "load", "load_problem", "save"]


def save(
    problem: Problem,
    channel: Channel,
    certificate: Certificate,
    evidence: Evidence,
    directory: Path,
    report: bool = True,
) -> None:
    """Write ``channel.npz``, ``dual.npz``, ``channel.csv``, ``report.html`` and, last, ``certificate.json``.

    Everything is computed before the first file is touched. An older set in the directory is replaced, without its
    report when `report` is false. Raises `ExportError` when the files cannot be written.
    """
    bundle.write(directory, encode(problem, channel, certificate, evidence, report))


def encode(
    problem: Problem, channel: Channel, certificate: Certificate, evidence: Evidence, report: bool = True
) -> dict[str, bytes]:
    """Return the files of a set by name, the certificate last: what `save` writes."""
    arrays, metadata = described(problem, channel)
    labels = (tuple(arrays[name].tolist()) if name in arrays else () for name in ("secrets", "observables"))
    files = {TABLE: exact_csv(Channel(channel.numerators, *labels)).encode()}
    if report:
        # Drawing takes a second to load.
        from mechdesign.report.page import html

        files["report.html"] = html(problem, channel, certificate).encode()
    return bundle.encode(evidence, certificate, metadata=metadata, arrays=arrays, files=files)


def load_problem(directory: str | Path) -> Problem:
    """Return the problem that the set in `directory` answers; see `load`."""
    return _problem(bundle.read(directory))


def load(directory: str | Path) -> tuple[Problem, Channel, Certificate]:
    """Return problem, channel and certificate of the set in `directory`.

    The digests of the files are checked, and nothing else: `mechdesign.verify` recomputes what the certificate claims.
    Raises `CertificateError` for a set that is incomplete or malformed.
    """
    found = bundle.read(directory)
    channel = Channel.from_arrays(found.evidence.numerators, found.evidence.exponent, found.arrays)
    return _problem(found), channel, found.certificate


def _problem(found: bundle.Bundle) -> Problem:
    evidence = found.evidence
    try:
        secrets = domain_of(found, "secrets", found.metadata.get("secrets"))
        described = found.metadata.get("observables")
        observables = secrets if described == "secrets" else domain_of(found, "observables", described)
        requirements = load_requirements(evidence.requirements, evidence.secrets)
        title = str(found.metadata.get("title", ""))
        return Problem(
            evidence.prior, evidence.cost, requirements, evidence.objective, secrets, observables, title=title
        )
    except InputError as error:
        raise CertificateError(f"the files describe no problem: {error}") from error
