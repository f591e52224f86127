"""Design certified channels, write them as bundles, and export them to other formats.

`design` splits a problem into parts and tries formulations and solvers in order. It rounds every candidate to integers,
certifies it, and keeps the best. `write_design` writes a design as a bundle, and `Design.load` reads it. `formats`
contains the export formats; other packages can register further formats. This package imports `data`, `model`, `solve`,
`certify` and `base`.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
