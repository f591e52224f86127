"""Pages and figures for designs, traces and releases from tables.

`save` writes a design, a released trace or a release from a table with its page; `html` returns the page alone.
`figures` contains one function for each figure. A page is one file that loads nothing else. This package imports
`measures`, `traces`, `tables` and the packages below them.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
