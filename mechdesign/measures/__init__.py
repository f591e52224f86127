"""The guarantees, leakage and cost of any channel.

`audit` finds the tight ε of a finite channel, the pairs that attain it, and the gain of an adversary. `attack` contains
the optimal attacks. The room also contains error measures, and baselines for comparison. The room imports `synthesis`,
`mechanisms`, `graphs` and lower rooms.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
