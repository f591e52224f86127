"""The trusted kernel: it decides in exact arithmetic whether a bundle keeps its promises.

`verify` reads a folder and proves its claims again; `certify` does so for arrays in memory. The proofs use integers and
fractions alone, and every bound is rounded to the safe side. The room imports a few files of `base`, and NumPy, so that
it can be read and run on its own. `second_verifier` shares no code with it.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
