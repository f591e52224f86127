"""Noise mechanisms: noise distributions, exact sampling, and exact channels.

Each mechanism has three methods: `matrix` returns its probabilities as floats, `channel` returns them as certified
integers, and `sample` draws answers. K-norm mechanisms fit their noise to a policy graph. The discrete noise
distributions add noise to counts without any rounding. This subpackage imports `graphs`, `model`, `certify` and `base`.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
