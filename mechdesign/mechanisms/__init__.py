"""Noise: laws, exact sampling, and exact channels of them.

Each mechanism has a `matrix` of its law in floats, a `channel` that is exact, and draws by `sample`. K-norm mechanisms
fit their noise to a policy graph. The discrete laws add noise to counts without any rounding. The room imports
`graphs`, `model`, `certify` and `base`.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
