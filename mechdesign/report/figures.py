"""Figures of designs, graphs, traces, tables and leakage: each function returns a Matplotlib figure.

`save_figure` writes a figure; equal figures give equal bytes.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
