from mechdesign.model._markov import VaryingChain as VaryingChain

from ._adversary import AdversarialPrivacy as AdversarialPrivacy
from ._adversary import Adversary as Adversary
from ._adversary import Beliefs as Beliefs
from ._adversary import adversarial_level as adversarial_level
from ._adversary import adversarial_privacy as adversarial_privacy
from ._composition import Composition as Composition
from ._composition import compose as compose
from ._published import PublishedTrace as PublishedTrace
from ._released import ReleasedTrace as ReleasedTrace
from ._stage import Release as Release
from ._stage import Stage as Stage
from ._trace import Trace as Trace
