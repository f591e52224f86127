"""The values that state a design problem: domains, priors, requirements, problems and channels.

A `Problem` has a prior, costs and requirements; each requirement states the bounds that a channel must keep. Distances
between places are in `distances`, and the words for them in `_words`. Other packages add kinds of requirements by
`register`. The room imports `certify`, which defines the meaning of a stated requirement, and `base`.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
