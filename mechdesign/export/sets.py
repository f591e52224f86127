"""The files of a design as a set, and the problem again from them.

A set is what `mechdesign.certify._bundle` describes. To the arrays that the proof needs, ``channel.npz`` adds what a
person needs: the labels ``secrets`` and ``observables``, and, where there are places, ``secrets_points`` (n, d) and
``secrets_coordinates`` (n, 2), latitude and longitude in degrees, likewise ``observables_points`` and
``observables_coordinates`` where the observables are another domain than the secrets. ``metadata`` in the certificate
holds the title, unit, grid, bounding box and plane of each domain; under ``distances``, for each requirement as
proved, the name and the unit of the distance that its numbers were recognised as, or null where they are none of the
library's; and under ``origin``, where it is known, where the problem comes from (see `mechdesign.model._problem`).

``channel.csv`` is for other programs: the first row has the labels of the observables, the first column those of the
secrets, and each entry is the probability N / 2⁶² written out in full. The decimals are exact, so each row sums to
exactly 1, and N is the decimal times 2⁶².
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from mechdesign.certify import _bundle as bundle
from mechdesign.certify._bundle import TABLE
from mechdesign.certify._certificate import Certificate
from mechdesign.certify._evidence import Evidence
from mechdesign.certify._stated import Stated
from mechdesign.base._errors import CertificateError
from mechdesign.base._errors import InputError
from mechdesign.export.description import described
from mechdesign.export.description import domain_of
from mechdesign.export.description import require_plain_names
from mechdesign.export.files import NO_FILES
from mechdesign.export.table import exact_csv
from mechdesign.model._channel import Channel
from mechdesign.model._problem import STANDS_IN
from mechdesign.model._problem import Origin
from mechdesign.model._problem import Problem
from mechdesign.model._words import measure
from mechdesign.model._requirements._kinds import load_requirements

__all__ = ["encode", "stands_in", "stated_of"]


def encode(
    problem: Problem,
    channel: Channel,
    certificate: Certificate,
    evidence: Evidence,
    origin: Origin | None = None,
    files: Mapping[str, bytes] = NO_FILES,
) -> dict[str, bytes]:
    """Return the files of a set by name, the certificate last; its digests are those of the further `files`, too.

    Raises `InputError` for a title, a unit or a label that hides what it is; see `require_plain_names`.
    """
    require_plain_names(problem, channel)
    arrays, metadata = described(problem, channel)
    metadata["distances"] = [_measured(stated, problem) for stated in problem.stated]
    if origin is not None:
        metadata["origin"] = origin.to_json()
    labels = (tuple(arrays[name].tolist()) if name in arrays else () for name in ("secrets", "observables"))
    table = exact_csv(Channel(channel.numerators, *labels)).encode()
    return bundle.encode(evidence, certificate, metadata=metadata, arrays=arrays, files={TABLE: table, **files})


def _measured(stated: Stated, problem: Problem) -> dict[str, str] | None:
    """Return name and unit of the distance, or the error, in which a requirement is stated."""
    matrix = stated.arrays.get("distance", stated.arrays.get("error"))
    if matrix is None:
        return None
    values = np.asarray(matrix, dtype=np.float64)
    found = measure(values, problem.secrets, problem.secrets, np.isfinite(values))
    return {"name": found.name, "unit": found.unit} if found.name else None


def stated_of(found: bundle.Bundle) -> tuple[Problem, Origin | None]:
    """Return the problem that a set which was read answers, and where it is said to come from.

    Raises `CertificateError` where the files do not describe it.
    """
    return _problem(found), _origin(found)


def stands_in(directory: str | Path) -> bool:
    """Return whether a whole set stands in `directory` whose prior stands in place of a private one."""
    try:
        origin = _origin(bundle.read(directory))
    except CertificateError:
        return False
    return origin is not None and origin.prior == STANDS_IN


def _origin(found: bundle.Bundle) -> Origin | None:
    if "origin" not in found.metadata:
        return None
    try:
        return Origin.from_json(found.metadata["origin"])
    except InputError as error:
        raise CertificateError(f"the files do not say where the problem comes from: {error}") from error


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
