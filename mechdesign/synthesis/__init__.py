"""From a problem to a certified design, its bundle and its exports.

`design` splits a problem into parts, tries formulations and solvers in order, rounds the best answer to integers and
certifies it. A `Design` is written as a bundle by `save`, and read by `load`. `formats` holds the exports, and other
packages add theirs. The room imports `data`, `model`, `solve`, `certify` and `base`.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
