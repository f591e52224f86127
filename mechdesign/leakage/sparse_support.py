"""Support queries for large sparse matrices: one unit for all pairs with the same row d."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sparse

from mechdesign.leakage.lines import Line
from mechdesign.leakage.lines import line_of
from mechdesign.leakage.support import LARGEST_SLOPE
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers

__all__ = ["SparseRows"]


class SparseRows:
    """The support functions max over q of E_qd(μ), one for each row d of a sparse matrix, m in all.

    E_qd(μ) = Σ q − Σ_j min(q_j, (1 + μ) d_j), and the second sum runs over the columns that both rows have. A query of
    all units takes time in the number of pairs that share a column, counted once for each shared column, and memory
    in m: a column that all m rows have costs m² steps. Values are exact to an absolute 1e-15 or so.
    """

    def __init__(self, rows: sparse.csr_array) -> None:
        self.rows = rows
        self.count = rows.shape[0]
        self._columns = rows.tocsc()
        self._sums = np.asarray(rows.sum(axis=1)).ravel()
        largest = 1.0
        for column in range(rows.shape[1]):
            entries = self._columns.data[self._columns.indptr[column] : self._columns.indptr[column + 1]]
            if len(entries):
                largest = max(largest, float(entries.max() / entries.min()))
        self.largest = min(largest, LARGEST_SLOPE)

    def _heights(self, unit: int, mu: float) -> Floats:
        """Return E_qd(μ) for all q, with d = row `unit`."""
        shared = np.zeros(self.count)
        columns = self._columns
        for place in range(self.rows.indptr[unit], self.rows.indptr[unit + 1]):
            column = self.rows.indices[place]
            part = slice(columns.indptr[column], columns.indptr[column + 1])
            if np.isinf(mu):
                shared[columns.indices[part]] += columns.data[part]
            else:
                shared[columns.indices[part]] += np.minimum(columns.data[part], (1.0 + mu) * self.rows.data[place])
        return self._sums - shared

    def screen(self, mu: float, height: float) -> tuple[Floats, bool]:
        """Bound or evaluate all support functions; see `Support`."""
        return self.values(np.arange(self.count), mu), True

    def values(self, units: Integers, mu: float) -> Floats:
        """Evaluate the support functions of `units`; see `Support`."""
        return np.array([self._heights(unit, mu).max() for unit in units.tolist()])

    def gains(self, units: Integers, values: Floats, mu: float) -> Floats:
        """Return G at `mu`; see `Support`."""
        # Rounding is that of sums of whole rows.
        return np.ones(len(units))

    def limits(self) -> Floats:
        """Return the support functions where only d_j = 0 counts; see `Support`."""
        return self.values(np.arange(self.count), np.inf)

    def line(self, unit: int, mu: float) -> Line:
        """Return a line that touches at `mu`; see `Support`."""
        q = int(np.argmax(self._heights(unit, mu)))
        return line_of(self.rows[[q]].toarray()[0], self.rows[[unit]].toarray()[0], mu)
