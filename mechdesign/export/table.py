"""A channel in the formats of other programs: CSV, JSON and Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence

import numpy as np

from mechdesign.certify.certificate import Certificate
from mechdesign.errors import MissingDependencyError
from mechdesign.export.description import described
from mechdesign.model.channel import EXPONENT, Channel
from mechdesign.model.problem import Problem

__all__ = ["exact_csv", "to_csv", "to_json", "to_parquet"]

# N / 2**62 = N · 5**62 / 10**62.
_FIVES = 5**EXPONENT


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
    arrays, metadata = described(problem, channel)
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
