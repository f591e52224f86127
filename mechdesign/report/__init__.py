"""Pages and figures for every value below this room.

`save` writes a design, a released trace or a release from a table with its page; `html` returns the page alone.
`figures` holds the pictures, one function each. A page is one file without scripts from elsewhere. The room imports
`measures`, `traces`, `tables` and what is below them.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
