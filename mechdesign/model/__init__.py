"""Classes for design problems: domains, priors, requirements, problems and channels.

A `Problem` has a prior, costs and requirements; each requirement states the bounds that a channel must keep.
`distances` computes distances between places, and `_words` names and formats them. This package imports `base` and
`certify`; `certify` defines the meaning of a stated requirement.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
