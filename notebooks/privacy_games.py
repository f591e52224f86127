# %% [markdown]
# # Privacy Games: three requirements on ten users
#
# *Privacy Games: Optimal User-Centric Data Obfuscation* (Shokri 2015) designs, for each user, the channel from true to
# reported cell that costs least under **differential** privacy (an answer shifts the odds of two cells x km apart by at
# most exp(ε·x)), under **distortion** privacy (the best attack errs by at least d_m km on average), or under both
# (**joint**). Its Figures 2 to 8 compare the three on ten users of the Lausanne data collection, in 20 × 15 cells.
#
# Here are the same figures for ten users drawn at random from check-ins in New York, in 8 × 6 cells of 15 × 8 km, with the
# paper's distances (Euclidean), cost (0 if the answer is the truth, else 1), values of ε, and priors. Every channel is
# certified; costs carry a proven lower bound. The figures come from stored results of the full setting, and all that they
# say is computed from them. A small setting is computed again below, where the data are at hand.

# %%
import sys
import warnings

sys.path.insert(0, "../benchmarks")

import numpy as np

import mechdesign as md
from papers import experiment, figure, say

# %% [markdown]
# ## One user, in the open
#
# What happens for each user and each pair of requirements is this. The user below is made up: three places on a line, one
# km apart. Distortion privacy alone bounds no pair of places, and an answer may tell the place for certain: a
# `RevealedWarning` would say so.

# %%
prior, line = np.array([0.5, 0.3, 0.2]), np.arange(3.0)
distance, hamming = abs(line[:, None] - line), 1 - np.eye(3)
differential, distortion = md.MetricPrivacy(1, distance), md.DistortionPrivacy("0.55", distance)

made = {}
for name, asked in (
    ("differential", [differential]),
    ("distortion", [distortion]),
    ("joint", [differential, distortion]),
):
    with warnings.catch_warnings(action="ignore", category=md.errors.RevealedWarning):
        made[name] = md.design(md.Problem(prior, hamming, asked))
    attack = md.attack.optimal(made[name].channel, prior, distance)
    certificate = made[name].certificate
    print(
        f"{name:13} costs {certificate.cost:.5f} (no channel less than {certificate.lower_bound:.5f}); "
        f"the optimal attack errs by {attack.distortion:.3f} km"
    )

# %% [markdown]
# The abstract says that joint mechanisms cost "not larger than what either of the differential or distortion mechanisms
# imposes". Already here they do: the lower bound of the joint cost lies above both others.

# %%
costs = {name: found.certificate for name, found in made.items()}
dearer = max(costs["differential"].cost, costs["distortion"].cost)
assert costs["joint"].lower_bound > dearer
say(
    f"The joint mechanism costs at least **{100 * (costs['joint'].lower_bound / dearer - 1):.1f} %** more than the dearer."
)

# %% [markdown]
# ## Are the stored results those of this program?
#
# The small settings, two users on 3 × 4 cells, take seconds.

# %%
for number in (1, 2, 3):
    print(f"Scenario {number}: {experiment(f'privacy_games_scenario_{number}').checked()}")
print(f"Approximation: {experiment('privacy_games_approximation').checked()}")

# %% [markdown]
# ## Scenario 1: the same distortion for all three
#
# For each user and each ε the differential mechanism is designed first. The error of the optimal attack on it becomes the
# floor of the other two.

# %%
figure("privacy_games_2a").show()

# %%
figure("privacy_games_2b").show()

# %%
figure("privacy_games_3").show()

# %%
figure("privacy_games_4").show()

# %% [markdown]
# ## Scenario 2: more distortion than the differential mechanism gives
#
# The floor is set a quarter, half, or three quarters of the way from what the differential mechanism reaches to the largest
# distortion there is, that of an adversary who sees nothing.

# %%
figure("privacy_games_5").show()

# %% [markdown]
# ## Better informed adversaries
#
# The mechanisms of Scenario 1, attacked by adversaries who have further evidence for the user's two most visited cells: a
# quarter, half, or three quarters of their belief in all other cells has moved there.

# %%
figure("privacy_games_6").show()

# %% [markdown]
# ## Scenario 3: any ε with any floor
#
# Where "the larger of the two" holds, and where it does not.

# %%
figure("privacy_games_7").show()

# %% [markdown]
# Where the differential mechanism reaches the floor by itself, the second requirement costs nothing, for the same channel
# meets both. Its privacy may still differ from the joint mechanism's, as optimal channels are not unique, and how far
# an attack errs beyond what was asked for depends on which of them was found. Where the floor lies above, it binds: the
# privacy is then the floor, and the cost is above both others, because what is best for the floor is not
# differentially private and what is best for ε does not reach the floor.

# %% [markdown]
# ## Appendix C: dropping bounds
#
# To save time the paper drops the bounds between cells, and between cell and answer, that are farther apart than a radius.

# %%
figure("privacy_games_8").show()

# %% [markdown]
# Nothing needs to be dropped: the exact program of 300 cells, the size of the paper's, is solved within minutes on two
# cores (the README has the times). And where bounds are left out to save time, `md.design(..., rows="near")` solves the near pairs at an ε divided by
# their dilation, so that the result is private as asked and says how far from optimal it can be.
