"""Release of tables: policies, queries and strategies.

A `Policy` says which values of a record must not be told apart, and which counts are known; its sensitivities say how
much noise a query needs. Histograms, sums, ranges, clusterings and workloads are released with exact discrete noise. A
`Strategy` chooses what to measure. The room imports `synthesis`, `mechanisms`, `leakage` and what is below them.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
