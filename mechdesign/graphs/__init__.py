"""Policy graphs: pairs of secrets that must be indistinguishable, exposed secrets, and problems under a graph.

Builders such as `blocks` and `threshold` return networkx graphs on the indices of the secrets. `exposed` and `repair`
use sensitivity hulls to find and protect secrets without possible neighbours. `problem` returns the least-cost problem
under a graph, which `mechdesign.design` solves. This package imports `model`, `certify` and `base`.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
