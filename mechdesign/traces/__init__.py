"""Release of traces in a hidden Markov model, step by step.

A `Trace` holds the belief of an adversary who knows the chain. Each step fixes graph, repair and mechanism before the
true state is read, draws an answer, spends its budget and updates the belief. `ReleasedTrace` is the result, as files.
The room imports `synthesis`, `mechanisms`, `leakage`, `graphs` and what is below them.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
