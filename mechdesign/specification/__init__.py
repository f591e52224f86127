"""Specifications: TOML files that describe a design or a release.

`mechdesign.read_spec` reads a specification of a design or a trace, and `mechdesign table` one of a release from a
table. A `Specification` builds the problem and the design; errors name the key in the file. This package also contains
the grammar, its JSON schema and the embedded examples. The package imports `traces`, `tables` and lower packages, but
never `report`.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
