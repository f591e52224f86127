"""Releases along a trace: a policy graph kept inside a hidden Markov model, and what an adversary learns from it.

After PGLP (Cao et al. 2020, section 5) and DPHMM (Xiao et al. 2017, sections 6 and 7). `Trace` releases state after
state; `compose` adds up what several releases tell; `Adversary` says what somebody with another belief makes of them,
at once and afterwards, from the whole trace; `adversarial_privacy` bounds by how much an output raises a belief.
"""

from __future__ import annotations

from mechdesign.model._markov import VaryingChain as VaryingChain
from mechdesign.traces._adversary import AdversarialPrivacy as AdversarialPrivacy
from mechdesign.traces._adversary import adversarial_level as adversarial_level
from mechdesign.traces._adversary import adversarial_privacy as adversarial_privacy
from mechdesign.traces._adversary import Adversary as Adversary
from mechdesign.traces._adversary import Beliefs as Beliefs
from mechdesign.traces._adversary import degrees_against as degrees_against
from mechdesign.traces._adversary import degrees_of as degrees_of
from mechdesign.traces._adversary import expected_error as expected_error
from mechdesign.traces._adversary import level_against as level_against
from mechdesign.traces._composition import Composition as Composition
from mechdesign.traces._composition import compose as compose
from mechdesign.traces._composition import compose_graphs as compose_graphs
from mechdesign.graphs._exposure import hull_level as hull_level
from mechdesign.traces._composition import stage_level as stage_level
from mechdesign.traces._stage import Release as Release
from mechdesign.traces._stage import Stage as Stage
from mechdesign.traces._trace import Trace as Trace

__all__ = [
    "AdversarialPrivacy",
    "Adversary",
    "Beliefs",
    "Composition",
    "Release",
    "Stage",
    "Trace",
    "VaryingChain",
    "adversarial_level",
    "adversarial_privacy",
    "compose",
    "compose_graphs",
    "degrees_against",
    "degrees_of",
    "expected_error",
    "hull_level",
    "level_against",
    "stage_level",
]


def __dir__() -> list[str]:
    return sorted(__all__)
