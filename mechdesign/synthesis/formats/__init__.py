"""Formats in which a design is handed to other programs.

A `Format` makes files of a design; `register` adds one. CSV, JSON, NPZ, Parquet, MPS, GeoJSON and JavaScript are here.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
