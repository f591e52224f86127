"""Encode a design as the files of a bundle, and restore the problem from a bundle.

`mechdesign.certify._bundle` defines the bundle. ``channel.npz`` contains the arrays that the proof needs, and arrays
for readers:

- the labels ``secrets`` and ``observables``;
- for places, ``secrets_points`` (n, d) and ``secrets_coordinates`` (n, 2), latitude and longitude in degrees;
- ``observables_points`` and ``observables_coordinates``, if the domain of the observables differs from that of the
  secrets.

``metadata`` in the certificate contains the title, and the unit, grid, bounding box and plane of each domain.
``distances`` names the distance and the unit of each requirement, or null if the library does not define this distance.
``origin`` is the source of the problem, if it is known (see `mechdesign.model._origin`).

``channel.csv`` contains the channel for use in other programs. The first row contains the labels of the observables,
the first column the labels of the secrets. Each entry is the probability N / 2⁶² with all its decimals, so each row
sums to exactly 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.base._errors import CertificateError, InputError, VerifierMemoryError
from mechdesign.certify import _bundle as bundle
from mechdesign.certify._bundle import TABLE, Bundle, exact_lines, lines
from mechdesign.certify._certificate import Certificate
from mechdesign.certify._evidence import Evidence
from mechdesign.certify._stated import Stated
from mechdesign.certify._texts import require_plain, require_plain_texts, to_cell
from mechdesign.certify._verify import prove
from mechdesign.model._channel import EXPONENT, Channel
from mechdesign.model._domain import BoundingBox, Domain, Grid, GridPart
from mechdesign.model._locate import Lattice, Plane
from mechdesign.model._origin import Origin
from mechdesign.model._problem import Problem
from mechdesign.model._requirements._kinds import load_requirements
from mechdesign.model._words import recognise_distance
from mechdesign.synthesis._folders import NO_FILES, Wanted


def describe_domains(problem: Problem, channel: Channel) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the arrays and the metadata from which `restore_domain` rebuilds the domains."""
    arrays: dict[str, NDArray[Any]] = {}
    metadata: dict[str, Any] = {"title": problem.title}
    for name, labels in zip(("secrets", "observables"), (channel.secrets, channel.observables), strict=True):
        domain: Domain | None = getattr(problem, name)
        if domain is not None:
            labels = domain.labels
        if labels:
            arrays[name] = _to_text_array(labels, name)
        if name == "observables" and domain is not None and domain is problem.secrets:
            metadata[name] = "secrets"
            continue
        metadata[name] = None if domain is None else _describe_domain(domain)
        if domain is not None:
            arrays[f"{name}_points"] = domain.points
            if domain.coordinates is not None:
                arrays[f"{name}_coordinates"] = domain.coordinates
    return arrays, metadata


def require_plain_names(problem: Problem, channel: Channel | None = None) -> None:
    """Raise `InputError` if title, units or labels are not plain; see `mechdesign.certify._texts.require_plain`."""
    require_plain(problem.title, "title")
    for name in ("secrets", "observables"):
        domain: Domain | None = getattr(problem, name)
        if domain is not None:
            require_plain(domain.unit, f"{name}.unit")
        own = () if channel is None else getattr(channel, name)
        require_plain_texts(own if domain is None else domain.labels, f"{name}.labels")


def _to_text_array(labels: Sequence[str], path: str) -> NDArray[np.str_]:
    """Return the labels as an array; raise InputError for labels that arrays cannot store."""
    array = np.array(labels, dtype=np.str_)
    for index, (label, kept) in enumerate(zip(labels, array.tolist(), strict=True)):
        try:
            label.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"{path}.labels[{index}]", f"is not a text ({error.reason})", value=label) from error
        if kept != label:
            raise InputError(
                f"{path}.labels[{index}]", "ends in a zero character, which arrays cannot store", value=label
            )
    return array


def _describe_domain(domain: Domain) -> dict[str, Any]:
    """Return the metadata of a domain: unit, grid, bounding box, plane, lattice and surrounding grid."""
    described: dict[str, Any] = {
        "unit": domain.unit,
        "cells": None if domain.cells is None else asdict(domain.cells),
        "geographic": None if domain.geographic is None else asdict(domain.geographic),
        "plane": None if domain.plane is None else asdict(domain.plane),
    }
    if domain.lattice is not None:
        described["lattice"] = asdict(domain.lattice)
    if domain.within is not None:
        part = domain.within
        described["within"] = {
            "cells": asdict(part.cells),
            "members": part.members.tolist(),
            "geographic": None if part.geographic is None else asdict(part.geographic),
        }
    return described


def _restore_lattice(described: Mapping[str, Any]) -> Lattice:
    box = described["box"]
    return Lattice(**{**described, "box": None if box is None else tuple(box)})


def _restore_grid_part(described: Mapping[str, Any]) -> GridPart:
    box = described["geographic"]
    geographic = None if box is None else BoundingBox(**box)
    return GridPart(Grid(**described["cells"]), described["members"], geographic)


def read_labels(found: Bundle, name: str) -> tuple[str, ...]:
    """Return the labels of the secrets or observables of a bundle, or an empty tuple if it has no labels."""
    return tuple(map(str, found.arrays[name].tolist())) if name in found.arrays else ()


def restore_domain(found: Bundle, name: str, described: object) -> Domain | None:
    """Rebuild the domain of the secrets or observables of a bundle; return None if the bundle has no domain.

    Raises `CertificateError` if the description is malformed.
    """
    if described is None:
        return None
    if not isinstance(described, Mapping) or f"{name}_points" not in found.arrays:
        raise CertificateError(f"the files do not describe the domain of the {name}")
    try:
        return Domain(
            found.arrays[f"{name}_points"],
            read_labels(found, name),
            described["unit"],
            None if described["cells"] is None else Grid(**described["cells"]),
            None if described["geographic"] is None else BoundingBox(**described["geographic"]),
            found.arrays.get(f"{name}_coordinates"),
            None if described["plane"] is None else Plane(**described["plane"]),
            None if described.get("lattice") is None else _restore_lattice(described["lattice"]),
            None if described.get("within") is None else _restore_grid_part(described["within"]),
        )
    except (KeyError, TypeError) as error:
        raise CertificateError(f"the files do not describe the domain of the {name}: {error}") from error


def exact_csv(channel: Channel) -> str:
    """Return the channel as CSV: labels in the first row and column, and probabilities as exact decimals."""
    return "".join(exact_lines(channel.numerators, EXPONENT, *_label_cells(channel)))


def to_csv(channel: Channel) -> str:
    """Return the channel as CSV: labels in the first row and column, and probabilities as the nearest float64."""
    return "".join(lines((map(repr, row) for row in channel.matrix.tolist()), *_label_cells(channel)))


def label_names(channel: Channel) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the labels of secrets and observables, or their indices if the channel has no labels."""
    n, m = channel.numerators.shape
    return channel.secrets or tuple(map(str, range(n))), channel.observables or tuple(map(str, range(m)))


def _label_cells(channel: Channel) -> tuple[tuple[str, ...], tuple[str, ...]]:
    secrets, observables = label_names(channel)
    return tuple(map(to_cell, secrets)), tuple(map(to_cell, observables))


def encode(
    problem: Problem,
    channel: Channel,
    certificate: Certificate,
    evidence: Evidence,
    origin: Origin | None = None,
    files: Mapping[str, bytes] = NO_FILES,
) -> dict[str, bytes]:
    """Return the files of a bundle by name; the last one is the certificate, which also contains digests of `files`.

    Raises `InputError` for a title, a unit or a label that is not plain; see `require_plain_names`.
    """
    require_plain_names(problem, channel)
    arrays, metadata = describe_domains(problem, channel)
    metadata["distances"] = [_name_distance(stated, problem) for stated in problem.stated]
    if origin is not None:
        metadata["origin"] = origin.to_json()
    labels = (tuple(arrays[name].tolist()) if name in arrays else () for name in ("secrets", "observables"))
    table = exact_csv(Channel(channel.numerators, *labels)).encode()
    return bundle.encode(evidence, certificate, metadata=metadata, arrays=arrays, files={TABLE: table, **files})


def _name_distance(stated: Stated, problem: Problem) -> dict[str, str] | None:
    """Return the name and the unit of the distance or error of a requirement, or None."""
    matrix = stated.arrays.get("distance", stated.arrays.get("error"))
    if matrix is None:
        return None
    values = np.asarray(matrix, dtype=np.float64)
    found = recognise_distance(values, problem.secrets, problem.secrets, np.isfinite(values))
    return {"name": found.name, "unit": found.unit} if found.name else None


def restore_problem(found: bundle.Bundle) -> tuple[Problem, Origin | None]:
    """Return the problem of a bundle, and its stated origin.

    Raises `CertificateError` if the files do not describe a problem.
    """
    return _restore_problem(found), _restore_origin(found)


def find_design(folder: Path, wanted: Wanted) -> tuple[Certificate | None, str]:
    """Return the certificate of the wanted design, proved as `verify` proves it; or None, and why it is not done."""
    # Imported late, because verifying needs no solver.
    from mechdesign.solve._contract import Status

    try:
        found = bundle.read(folder)
        made, origin = found.certificate.provenance, _restore_origin(found) or Origin()
        why = wanted.difference({**origin.to_json(), "version": made.get("mechdesign")})
        if why or made.get("status") == Status.INTERRUPTED:
            return None, why or "it was interrupted"
        return prove(found).certificate, ""
    except VerifierMemoryError:
        raise
    except CertificateError as error:
        return None, f"it could not be verified: {error.reason}"


def _restore_origin(found: bundle.Bundle) -> Origin | None:
    if "origin" not in found.metadata:
        return None
    try:
        return Origin.from_json(found.metadata["origin"])
    except InputError as error:
        raise CertificateError(f"the files do not describe the origin of the problem: {error}") from error


def _restore_problem(found: bundle.Bundle) -> Problem:
    evidence = found.evidence
    try:
        secrets = restore_domain(found, "secrets", found.metadata.get("secrets"))
        described = found.metadata.get("observables")
        observables = secrets if described == "secrets" else restore_domain(found, "observables", described)
        requirements = load_requirements(evidence.requirements, evidence.secrets)
        title = str(found.metadata.get("title", ""))
        return Problem(
            evidence.prior, evidence.cost, requirements, evidence.objective, secrets, observables, title=title
        )
    except InputError as error:
        raise CertificateError(f"the files do not describe a problem: {error}") from error
