"""Release of traces in a hidden Markov model, step by step.

A `Trace` stores the belief of an adversary who knows the Markov chain. Each step fixes the graph, the repair and the
mechanism before it reads the true state. The step then charges the ledger, draws an answer and updates the belief.
`ReleasedTrace` writes the released trace to files. This package imports `synthesis`, `mechanisms`, `leakage`, `graphs`
and the packages on which these depend.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
