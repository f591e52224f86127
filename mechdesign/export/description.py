"""What a person needs beside the proof: titles, labels, units and maps, as arrays and metadata of a set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.certify._bundle import Bundle
from mechdesign.certify._texts import require_plain
from mechdesign.certify._texts import require_plain_texts
from mechdesign.base._errors import CertificateError
from mechdesign.base._errors import InputError
from mechdesign.model._channel import Channel
from mechdesign.model._domain import BoundingBox
from mechdesign.model._domain import Domain
from mechdesign.model._domain import Grid
from mechdesign.model._domain import GridPart
from mechdesign.model._locate import Lattice
from mechdesign.model._plane import Plane
from mechdesign.model._problem import Problem

__all__ = ["described", "domain_of", "labels_of", "require_plain_names"]


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
