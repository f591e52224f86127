"""Export formats for other programs: CSV, JSON, NPZ, Parquet, MPS, GeoJSON and JavaScript.

A `Format` writes a design to a file; `register` adds further formats.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
