"""Policy graphs: which secrets must not be told apart, whom that leaves exposed, and the problem under a graph.

Builders such as `blocks` and `threshold` return networkx graphs on the numbers of the secrets. `exposed` and `repair`
find and protect secrets that constraints leave alone, by sensitivity hulls. `problem` states the least-cost problem
under a graph, which `mechdesign.design` solves. The room imports `model`, `certify` and `base`.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
