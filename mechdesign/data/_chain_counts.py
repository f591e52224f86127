"""A file with the step counts from which a chain was estimated; digests link it to the matrix files."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mechdesign.base._arrays import Floats
from mechdesign.base._errors import InputError
from mechdesign.model._markov import MarkovChain

CHAIN_COUNTS = "chain-counts.json"
_SCHEMA = "mechdesign-chain-counts/1"
_DIRECTIONS = ("forward", "backward")
_MAX_FILE_BYTES = 2**28
# A dense matrix with 20,000 states takes 3 GB. Larger matrices are sparse, and `mechdesign chain` does not write sparse
# matrices.
_MAX_STATES = 20_000
_COUNTS_REMEDY = f"estimate the chain again, or move {CHAIN_COUNTS} to another folder"


class Counted(NamedTuple):
    """Step counts from which a transition matrix was estimated, shape (n, n), and the smoothing that was added."""

    counts: Floats
    smoothing: float

    def chain(self, matrix: Floats) -> MarkovChain:
        """Return the chain with transition matrix `matrix`, shape (n, n), with these counts and this smoothing."""
        return MarkovChain(matrix, smoothing=self.smoothing, counts=self.counts)


def counts_file(chain: MarkovChain, files: Mapping[str, bytes]) -> bytes:
    """Return the content of the counts file for a forward chain.

    `files` contains ``forward.csv`` and ``backward.csv``. Raises `InputError` if the chain has no counts.
    """
    if chain.counts is None:
        raise InputError("chain", "has no counts", bound="a chain with step counts")
    rows, columns = np.nonzero(chain.counts)
    steps = zip(rows.tolist(), columns.tolist(), chain.counts[rows, columns].tolist(), strict=True)
    document = {
        "schema": _SCHEMA,
        "smoothing": chain.smoothing,
        "states": chain.size,
        "matrices": {name: hashlib.sha256(files[f"{name}.csv"]).hexdigest() for name in _DIRECTIONS},
        "steps": [list(step) for step in steps],
    }
    return (json.dumps(document, sort_keys=True) + "\n").encode()


def counts_of(path: Path) -> Counted | None:
    """Return the counts for the matrix file at `path`, or None if no counts file in its folder belongs to it.

    Raises `InputError` if the counts file is malformed or cannot be read.
    """
    # If `path` is a link, the counts may be in the folder of its target.
    places = (path.parent, path.resolve().parent)
    source = next((place / CHAIN_COUNTS for place in places if (place / CHAIN_COUNTS).exists()), None)
    if source is None:
        return None
    try:
        if source.stat().st_size > _MAX_FILE_BYTES:
            raise InputError(str(source), "is too large", bound=f"{_MAX_FILE_BYTES} bytes", remedy=_COUNTS_REMEDY)
        document = json.loads(source.read_bytes())
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(str(source), "cannot be read", bound=f"a file of {_SCHEMA}", remedy=_COUNTS_REMEDY) from error
    if not isinstance(document, dict) or document.get("schema") != _SCHEMA:
        raise InputError(str(source), "has another schema", bound=_SCHEMA, remedy=_COUNTS_REMEDY)
    counts, smoothing, matrices = _check_document(document, source)
    for name in _DIRECTIONS:
        if matrices[name] == digest:
            return Counted(counts if name == "forward" else counts.T.copy(), smoothing)
    return None


def direction_of(path: Path) -> str:
    """Return "forward" or "backward" for the matrix file at `path`, according to its counts file; "" if unknown.

    Raises `InputError` as `counts_of` does.
    """
    if counts_of(path) is None:
        return ""
    places = (path.parent, path.resolve().parent)
    source = next(place / CHAIN_COUNTS for place in places if (place / CHAIN_COUNTS).exists())
    matrices = json.loads(source.read_bytes())["matrices"]
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    found = [name for name in _DIRECTIONS if matrices[name] == digest]
    return found[0] if len(found) == 1 else ""


def _check_document(document: Mapping[str, Any], source: Path) -> tuple[Floats, float, Mapping[str, str]]:
    try:
        n, smoothing, matrices = document["states"], document["smoothing"], document["matrices"]
        steps = np.array(document["steps"], dtype=np.float64).reshape(-1, 3)
        texts = all(type(matrices[name]) is str for name in _DIRECTIONS)
        places = steps[:, :2].astype(np.int64)
        inside = type(n) is int and ((places >= 0) & (places < n)).all() and (places == steps[:, :2]).all()
        number = type(smoothing) in (int, float) and 0 <= smoothing < math.inf
        positive = bool((np.isfinite(steps[:, 2]) & (steps[:, 2] > 0)).all())
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise InputError(str(source), "is malformed", bound=f"a file of {_SCHEMA}", remedy=_COUNTS_REMEDY) from error
    if not (texts and inside and number and positive and 1 <= n <= _MAX_STATES):
        raise InputError(str(source), "is malformed", bound=f"a file of {_SCHEMA}", remedy=_COUNTS_REMEDY)
    counts = np.zeros((n, n))
    np.add.at(counts, (places[:, 0], places[:, 1]), steps[:, 2])
    return counts, float(smoothing), matrices
