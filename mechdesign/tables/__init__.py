"""Release of tables: policies, queries and strategies.

A `Policy` defines which values of a record must stay indistinguishable, and which counts are publicly known. The
sensitivity of a query under the policy determines the noise that the query needs. Histograms, sums, ranges, clusterings
and workloads are released with exact discrete noise. A `Strategy` chooses the queries that are measured with noise.
This package imports `synthesis`, `mechanisms`, `leakage` and the packages that they import.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
