"""Specifications: TOML files that say what to design or to release.

`read_spec` reads one for designs and traces, `read` one for tables. A `Specification` makes the problem and the design;
paths in errors are those of the file. The grammar, its schema and the embedded examples stand here. The room imports
`traces`, `tables` and what is below them, and never `report`.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
