"""The trusted kernel: it decides in exact arithmetic whether the claims of a bundle are true.

`verify` proves the claims of a bundle in a folder again; `certify` computes a certificate from arrays in memory. The
proofs use only integers and fractions, and every bound is rounded to the safe side. The package imports only NumPy and
a few files of `base`, so that it can be read and run independently. `second_verifier` shares no code with this package.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
