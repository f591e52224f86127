"""Pages and figures for designs, traces and releases from tables.

`html` returns the page on a design, a released trace or a release from a table; `mechdesign.save` writes it.
`figures` contains one function for each figure. A page is one file that loads nothing else. This package imports
`measures`, `traces`, `tables` and the packages below them.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
