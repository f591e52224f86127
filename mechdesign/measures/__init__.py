"""What any channel guarantees, leaks and costs.

`audit` finds the tight ε of a finite channel, the pairs that attain it, and what an adversary gains. `attack` has the
optimal attacks. Error measures and baselines for comparison stand beside them. The room imports `synthesis`,
`mechanisms`, `graphs` and what is below them.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
