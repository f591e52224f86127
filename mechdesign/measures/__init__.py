"""Measures of the privacy and utility of any channel.

`audit` computes the tight ε of a finite channel, the pairs that attain it, and the adversary's error. `attack` contains
the optimal attacks. There are also error measures, and baselines for comparison. The room imports `synthesis`,
`mechanisms`, `graphs` and rooms below them.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
