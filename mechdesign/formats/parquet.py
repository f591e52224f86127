"""Parquet: a line for each pair of a secret and an observable."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mechdesign.export.table import names
from mechdesign.formats.format import Exported
from mechdesign.formats.format import Format

__all__ = ["PARQUET"]


def _contents(exported: Exported) -> Iterator[bytes]:
    """Yield a table of labels, indices, numerators and probabilities; its metadata holds the denominator."""
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    channel = exported.channel
    n, m = channel.numerators.shape
    secrets, observables = names(channel)
    secret, observable = np.repeat(np.arange(n, dtype=np.int32), m), np.tile(np.arange(m, dtype=np.int32), n)
    table = arrow.table(
        {
            "secret": arrow.DictionaryArray.from_arrays(secret, list(secrets)),
            "observable": arrow.DictionaryArray.from_arrays(observable, list(observables)),
            "secret_index": secret,
            "observable_index": observable,
            "numerator": channel.numerators.ravel(),
            "probability": channel.matrix.ravel(),
        }
    ).replace_schema_metadata({"denominator": str(channel.denominator)})
    target = arrow.BufferOutputStream()
    parquet.write_table(table, target)
    yield target.getvalue().to_pybytes()


PARQUET = Format(
    "parquet", "a line for each pair", (".parquet",), _contents, text=False, package="pyarrow", extra="parquet"
)
