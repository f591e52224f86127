"""A design as a bundle and back.

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

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.base._errors import CertificateError, InputError
from mechdesign.certify import _bundle as bundle
from mechdesign.certify._bundle import TABLE, Bundle
from mechdesign.certify._certificate import Certificate
from mechdesign.certify._evidence import Evidence
from mechdesign.certify._stated import Stated
from mechdesign.certify._table import exact_lines, lines
from mechdesign.certify._texts import require_plain, require_plain_texts, to_cell
from mechdesign.model._channel import EXPONENT, Channel
from mechdesign.model._domain import BoundingBox, Domain, Grid, GridPart
from mechdesign.model._locate import Lattice
from mechdesign.model._origin import STANDS_IN, Origin
from mechdesign.model._plane import Plane
from mechdesign.model._problem import Problem
from mechdesign.model._requirements._kinds import load_requirements
from mechdesign.model._words import recognise_distance
from mechdesign.synthesis._folders import NO_FILES


def described(problem: Problem, channel: Channel) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the arrays and the metadata from which `domain_of` builds the domains again."""
    arrays: dict[str, NDArray[Any]] = {}
    metadata: dict[str, Any] = {"title": problem.title}
    for name, labels in zip(("secrets", "observables"), (channel.secrets, channel.observables), strict=True):
        domain: Domain | None = getattr(problem, name)
        if domain is not None:
            labels = domain.labels
        if labels:
            arrays[name] = _texts(labels, name)
        if name == "observables" and domain is not None and domain is problem.secrets:
            metadata[name] = "secrets"
            continue
        metadata[name] = None if domain is None else _description(domain)
        if domain is not None:
            arrays[f"{name}_points"] = domain.points
            if domain.coordinates is not None:
                arrays[f"{name}_coordinates"] = domain.coordinates
    return arrays, metadata


def require_plain_names(problem: Problem, channel: Channel | None = None) -> None:
    """Raise `InputError` where title, units or labels hold what `mechdesign.certify._texts.require_plain` refuses."""
    require_plain(problem.title, "title")
    for name in ("secrets", "observables"):
        domain: Domain | None = getattr(problem, name)
        if domain is not None:
            require_plain(domain.unit, f"{name}.unit")
        own = () if channel is None else getattr(channel, name)
        require_plain_texts(own if domain is None else domain.labels, f"{name}.labels")


def _texts(labels: Sequence[str], path: str) -> NDArray[np.str_]:
    array = np.array(labels, dtype=np.str_)
    for index, (label, kept) in enumerate(zip(labels, array.tolist(), strict=True)):
        try:
            label.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"{path}.labels[{index}]", f"is not a text ({error.reason})", value=label) from error
        if kept != label:
            raise InputError(
                f"{path}.labels[{index}]", "ends in a zero character, which arrays do not keep", value=label
            )
    return array


def _description(domain: Domain) -> dict[str, Any]:
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


def _lattice(described: Mapping[str, Any]) -> Lattice:
    box = described["box"]
    return Lattice(**{**described, "box": None if box is None else tuple(box)})


def _within(described: Mapping[str, Any]) -> GridPart:
    box = described["geographic"]
    geographic = None if box is None else BoundingBox(**box)
    return GridPart(Grid(**described["cells"]), described["members"], geographic)


def labels_of(found: Bundle, name: str) -> tuple[str, ...]:
    """Return the labels of the secrets or observables of a set, empty where there are none."""
    return tuple(map(str, found.arrays[name].tolist())) if name in found.arrays else ()


def domain_of(found: Bundle, name: str, described: object) -> Domain | None:
    """Build the domain of the secrets or observables of a set again; None where the set has none.

    Raises `CertificateError` where the description is malformed.
    """
    if described is None:
        return None
    if not isinstance(described, Mapping) or f"{name}_points" not in found.arrays:
        raise CertificateError(f"the files do not describe the domain of the {name}")
    try:
        return Domain(
            found.arrays[f"{name}_points"],
            labels_of(found, name),
            described["unit"],
            None if described["cells"] is None else Grid(**described["cells"]),
            None if described["geographic"] is None else BoundingBox(**described["geographic"]),
            found.arrays.get(f"{name}_coordinates"),
            # Older sets were measured by their points, in a projection true to scale at the middle latitude.
            None if described.get("plane") is None else Plane(**described["plane"]),
            None if described.get("lattice") is None else _lattice(described["lattice"]),
            # Older sets do not say which cells of a grid their places are: a reach about each one is inside.
            None if described.get("within") is None else _within(described["within"]),
        )
    except (KeyError, TypeError) as error:
        raise CertificateError(f"the files do not describe the domain of the {name}: {error}") from error


def exact_csv(channel: Channel) -> str:
    """Return the channel as text: labels in the first row and column, probabilities as exact decimals."""
    return "".join(exact_lines(channel.numerators, EXPONENT, *_cells(channel)))


def to_csv(channel: Channel) -> str:
    """Return the channel as text: labels in the first row and column, probabilities as the nearest float64 numbers."""
    return "".join(lines((map(repr, row) for row in channel.matrix.tolist()), *_cells(channel)))


def names(channel: Channel) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the labels of secrets and observables, which are their indices when the channel has none."""
    n, m = channel.numerators.shape
    return channel.secrets or tuple(map(str, range(n))), channel.observables or tuple(map(str, range(m)))


def _cells(channel: Channel) -> tuple[tuple[str, ...], tuple[str, ...]]:
    secrets, observables = names(channel)
    return tuple(map(to_cell, secrets)), tuple(map(to_cell, observables))


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
    found = recognise_distance(values, problem.secrets, problem.secrets, np.isfinite(values))
    return {"name": found.name, "unit": found.unit} if found.name else None


def stated_of(found: bundle.Bundle) -> tuple[Problem, Origin | None]:
    """Return the problem that a set which was read answers, and where it is said to come from.

    Raises `CertificateError` where the files do not describe it.
    """
    return _problem(found), _origin(found)


def stands_in(folder: str | Path) -> bool:
    """Return whether a whole set stands in `folder` whose prior stands in place of a private one."""
    try:
        origin = _origin(bundle.read(folder))
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
