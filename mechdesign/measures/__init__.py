"""The guarantees, leakage and cost of any channel.

`audit` finds the tight ε of a finite channel, the pairs that attain it, and the gain of an adversary. `attack` contains
the optimal attacks. This package also contains error measures, and baselines for comparison. It imports `synthesis`,
`mechanisms`, `graphs` and packages that these packages import.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
