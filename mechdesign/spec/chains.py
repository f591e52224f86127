"""Build the Markov chain, or the steps that it can take, that a specification describes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mechdesign.data.matrices import read_matrix
from mechdesign.data.tables import ChainTable, Raw
from mechdesign.data.traces import Visits
from mechdesign.errors import SpecificationError
from mechdesign.graphs import builders as graphs
from mechdesign.graphs.check import edge_array
from mechdesign.model.domain import Domain
from mechdesign.model.markov import MarkovChain
from mechdesign.spec.priors import PriorTable, read_visits
from mechdesign.spec.tables import at, convert, in_file, one_of

_DATA = ("checkins", "plt")


def build_chain(raw: Raw, path: str, domain: Domain, folder: Path, prior: Raw) -> tuple[MarkovChain, tuple[str, ...]]:
    """Return the chain over `domain` that the table at `path` describes, and notes for the user.

    `prior` is the table of the prior, whose data serve where the table says ``estimated = true``.
    """
    table = convert(raw, ChainTable, path)
    form = one_of(table, path)
    if form in ("path", "neighbours"):
        if table.smoothing is not None:
            raise SpecificationError(f"{path}.smoothing", f"does not go with {form}", remedy="leave it out")
        return (_read(table, path, domain, folder) if form == "path" else _walk(table, path, domain)), ()
    visits = _visits(table, form, path, domain, folder, prior)
    steps = sum(len(cells) - 1 for cells in visits.cells)
    with at(path, {"traces": form}):
        chain = MarkovChain.from_traces(visits.cells, domain.size, table.smoothing or 0.0)
    return chain, (f"{path}: {steps} steps of {len(dict.fromkeys(visits.users))} user(s) counted",)


def possible_steps(raw: Raw, path: str, domain: Domain, folder: Path, prior: Raw) -> sparse.csr_array:
    """Return a matrix (n, n) that is positive where a step is possible; no step leads from a state never left."""
    table = convert(raw, ChainTable, path)
    form = one_of(table, path)
    if table.smoothing is not None:
        raise SpecificationError(
            f"{path}.smoothing", "would make every step possible, and join all secrets", remedy="leave it out"
        )
    if form in ("path", "neighbours"):
        chain = _read(table, path, domain, folder) if form == "path" else _walk(table, path, domain)
        return sparse.csr_array(chain.matrix)
    cells = _visits(table, form, path, domain, folder, prior).cells
    ends = [np.concatenate([stretch[part] for stretch in cells]) for part in (slice(None, -1), slice(1, None))]
    return sparse.csr_array((np.ones(len(ends[0])), tuple(ends)), shape=(domain.size, domain.size))


def _read(table: ChainTable, path: str, domain: Domain, folder: Path) -> MarkovChain:
    with in_file(path):
        matrix: NDArray[np.float64] = read_matrix(folder / str(table.path), table.delimiter)
    if matrix.shape != (domain.size, domain.size):
        raise SpecificationError(
            f"{path}.path",
            "has the wrong shape",
            value=matrix.shape,
            bound=f"{domain.size} rows and {domain.size} columns, as the domain has members",
        )
    with at(path, {"matrix": "path"}):
        return MarkovChain(matrix)


def _walk(table: ChainTable, path: str, domain: Domain) -> MarkovChain:
    """Return the chain that stays, or steps to any of the neighbours of a cell, all with the same probability."""
    near = neighbours(domain, int(table.neighbours or 0), f"{path}.neighbours")
    matrix = np.eye(domain.size)
    matrix[near[:, 0], near[:, 1]] = matrix[near[:, 1], near[:, 0]] = 1.0
    return MarkovChain(matrix / matrix.sum(axis=1, keepdims=True))


def neighbours(domain: Domain, count: int, path: str) -> NDArray[np.int64]:
    """Return the pairs of neighbouring cells of a grid, shape (k, 2); `count` is 4 or 8 for each cell."""
    if count not in (4, 8):
        raise SpecificationError(path, "is not a neighbourhood", value=count, bound="4 or 8")
    cells = domain.cells
    if cells is None:
        raise SpecificationError(path, "needs a grid", bound="a domain with grid = { … }", remedy="use edges")
    pairs = edge_array(graphs.neighbours8(cells))
    rows, columns = np.divmod(pairs, cells.columns)
    beside = (rows[:, 0] == rows[:, 1]) | (columns[:, 0] == columns[:, 1])
    return pairs if count == 8 else pairs[beside]


def _visits(table: ChainTable, form: str, path: str, domain: Domain, folder: Path, prior: Raw) -> Visits:
    if form != "estimated":
        return read_visits(getattr(table, form), form, f"{path}.{form}", domain, folder)
    if not table.estimated:
        raise SpecificationError(f"{path}.estimated", "cannot be false", value=False, bound="true")
    known = convert(prior, PriorTable, "prior")
    given = [name for name in _DATA if getattr(known, name) is not None]
    if not given:
        raise SpecificationError(
            f"{path}.estimated",
            "needs data in order of time, and the prior comes from none",
            bound="true beside a prior with checkins or plt",
            remedy="name a file instead: path, checkins or plt",
        )
    return read_visits(getattr(known, given[0]), given[0], f"prior.{given[0]}", domain, folder)
