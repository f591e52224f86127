"""The registry of queries, by the names that specifications and files use."""

from __future__ import annotations

from typing import Any

from mechdesign.base._registry import Registry
from mechdesign.tables._queries._cumulative import Cumulative, Quantiles, Ranges
from mechdesign.tables._queries._kmeans import KMeans
from mechdesign.tables._queries._linear import Histogram, Linear, Sum
from mechdesign.tables._query import Query
from mechdesign.tables._workload import Workload

QUERIES: Registry[type[Query[Any]]] = Registry("query")
"""Every kind of query by its name; specifications use the same names."""

QUERIES.register("histogram", Histogram)
QUERIES.register("cdf", Cumulative)
QUERIES.register("quantiles", Quantiles)
QUERIES.register("ranges", Ranges)
QUERIES.register("kmeans", KMeans)
QUERIES.register("workload", Workload)
QUERIES.register("sum", Sum)
QUERIES.register("linear", Linear)
