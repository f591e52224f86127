"""Write a design as a set of files, build problem and channel again from them, and write a channel in other formats.

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

import csv
import importlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from mechdesign.certify import bundle
from mechdesign.certify.certificate import Certificate
from mechdesign.certify.claims import Stated
from mechdesign.certify.evidence import Evidence
from mechdesign.errors import CertificateError, InputError, MissingDependencyError
from mechdesign.model.channel import EXPONENT, Channel
from mechdesign.model.domain import BoundingBox, Domain, Grid
from mechdesign.model.problem import Problem
from mechdesign.model.requirements import (
    DistortionPrivacy,
    GraphPrivacy,
    MetricPrivacy,
    Requirement,
    ThresholdPrivacy,
)

__all__ = ["exact_csv", "load", "load_channel", "load_problem", "save", "to_csv", "to_json", "to_parquet"]

# N / 2**62 = N · 5**62 / 10**62.
_FIVES = 5**EXPONENT


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
    arrays, metadata = _described(problem, channel)
    files = {"channel.csv": exact_csv(channel).encode()}
    if report:
        # The report draws on rooms above this one, so it is found by name.
        page = importlib.import_module("mechdesign.report.page").html(problem, channel, certificate)
        files["report.html"] = page.encode()
    bundle.write(directory, bundle.encode(evidence, certificate, metadata=metadata, arrays=arrays, files=files))


def load_problem(directory: str | Path) -> Problem:
    """Return the problem that the set in `directory` answers; see `load`."""
    return _problem(bundle.read(directory))


def load(directory: str | Path) -> tuple[Problem, Channel, Certificate]:
    """Return problem, channel and certificate of the set in `directory`.

    The digests of the files are checked, and nothing else: `mechdesign.verify` recomputes what the certificate claims.
    Raises `CertificateError` for a set that is incomplete or malformed.
    """
    found = bundle.read(directory)
    return _problem(found), _channel(found), found.certificate


def load_channel(directory: str | Path) -> Channel:
    """Return the channel of the set in `directory`; see `load`."""
    return _channel(bundle.read(directory))


def exact_csv(channel: Channel) -> str:
    """Return the channel as text: labels in the first row and column, probabilities as exact decimals."""
    return _table(channel, [[_exact_decimal(number) for number in row] for row in channel.numerators.tolist()])


def to_csv(channel: Channel) -> str:
    """Return the channel as text: labels in the first row and column, probabilities as the nearest float64 numbers."""
    return _table(channel, [[repr(number) for number in row] for row in channel.matrix.tolist()])


def to_json(problem: Problem, channel: Channel, certificate: Certificate) -> str:
    """Return a JSON object with everything that a program needs in order to use the channel.

    ``numerators`` are texts, since many readers lose digits of JSON numbers of 62 bits; ``matrix`` holds numerators
    over 2 to the power of ``exponent``, rounded to float64.
    """
    arrays, metadata = _described(problem, channel)
    secrets, observables = _names(channel)
    return json.dumps(
        {
            **metadata,
            "labels": {"secrets": secrets, "observables": observables},
            "points": {
                name: arrays[f"{name}_points"].tolist()
                for name in ("secrets", "observables")
                if f"{name}_points" in arrays
            },
            "prior": problem.prior.tolist(),
            "exponent": EXPONENT,
            "numerators": [[str(number) for number in row] for row in channel.numerators.tolist()],
            "matrix": channel.matrix.tolist(),
            "certificate": certificate.to_json(),
        },
        indent=1,
    )


def to_parquet(channel: Channel) -> bytes:
    """Return the channel as a Parquet file with a line for each pair: labels, indices, numerator and probability.

    Raises `MissingDependencyError` without the package pyarrow.
    """
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingDependencyError("Parquet needs the package pyarrow: pip install 'mechdesign[parquet]'") from error
    n, m = channel.numerators.shape
    names = _names(channel)
    secret, observable = np.repeat(np.arange(n, dtype=np.int32), m), np.tile(np.arange(m, dtype=np.int32), n)
    table = arrow.table(
        {
            "secret": arrow.DictionaryArray.from_arrays(secret, list(names[0])),
            "observable": arrow.DictionaryArray.from_arrays(observable, list(names[1])),
            "secret_index": secret,
            "observable_index": observable,
            "numerator": channel.numerators.ravel(),
            "probability": channel.matrix.ravel(),
        }
    ).replace_schema_metadata({"denominator": str(channel.denominator)})
    target = arrow.BufferOutputStream()
    parquet.write_table(table, target)
    content: bytes = target.getvalue().to_pybytes()
    return content


def _exact_decimal(numerator: int) -> str:
    if numerator == 1 << EXPONENT:
        return "1"
    return f"0.{numerator * _FIVES:0{EXPONENT}d}".rstrip("0").rstrip(".") if numerator else "0"


def _table(channel: Channel, rows: Sequence[Sequence[str]]) -> str:
    secrets, observables = _names(channel)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["secret", *observables])
    writer.writerows([label, *row] for label, row in zip(secrets, rows, strict=True))
    return text.getvalue()


def _names(channel: Channel) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the labels of secrets and observables, which are their indices when the channel has none."""
    n, m = channel.numerators.shape
    return channel.secrets or tuple(map(str, range(n))), channel.observables or tuple(map(str, range(m)))


def _described(problem: Problem, channel: Channel) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the arrays and the metadata from which `load` builds the domains again."""
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
    return {
        "unit": domain.unit,
        "cells": None if domain.cells is None else asdict(domain.cells),
        "geographic": None if domain.geographic is None else asdict(domain.geographic),
    }


def _labels(found: bundle.Bundle, name: str) -> tuple[str, ...]:
    return tuple(map(str, found.arrays[name].tolist())) if name in found.arrays else ()


def _channel(found: bundle.Bundle) -> Channel:
    if found.evidence.exponent != EXPONENT:
        raise CertificateError(f"the channel's rows sum to 2**{found.evidence.exponent}, and not to 2**{EXPONENT}")
    try:
        return Channel(found.evidence.numerators, _labels(found, "secrets"), _labels(found, "observables"))
    except InputError as error:
        raise CertificateError(f"the files hold no channel: {error}") from error


def _problem(found: bundle.Bundle) -> Problem:
    evidence = found.evidence
    try:
        secrets = _domain(found, "secrets", found.metadata.get("secrets"))
        described = found.metadata.get("observables")
        observables = secrets if described == "secrets" else _domain(found, "observables", described)
        requirements = [_requirement(stated, evidence.secrets) for stated in evidence.requirements]
        title = str(found.metadata.get("title", ""))
        return Problem(
            evidence.prior, evidence.cost, requirements, evidence.objective, secrets, observables, title=title
        )
    except InputError as error:
        raise CertificateError(f"the files describe no problem: {error}") from error


def _domain(found: bundle.Bundle, name: str, described: object) -> Domain | None:
    if described is None:
        return None
    if not isinstance(described, Mapping) or f"{name}_points" not in found.arrays:
        raise CertificateError(f"the files do not describe the domain of the {name}")
    try:
        return Domain(
            found.arrays[f"{name}_points"],
            _labels(found, name),
            described["unit"],
            None if described["cells"] is None else Grid(**described["cells"]),
            None if described["geographic"] is None else BoundingBox(**described["geographic"]),
            found.arrays.get(f"{name}_coordinates"),
        )
    except (KeyError, TypeError) as error:
        raise CertificateError(f"the files do not describe the domain of the {name}: {error}") from error


def _requirement(stated: Stated, secrets: int) -> Requirement:
    if stated.kind == "distortion":
        return DistortionPrivacy(stated.numbers["minimum"], stated.array)
    epsilon = stated.numbers["epsilon"]
    if stated.kind == "graph":
        graph = nx.empty_graph(secrets)
        graph.add_edges_from(stated.array.tolist())
        return GraphPrivacy(epsilon, graph)
    if stated.kind == "threshold":
        return ThresholdPrivacy(epsilon, stated.array, stated.numbers["radius"])
    return MetricPrivacy(epsilon, stated.array)
