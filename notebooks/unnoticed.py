# %% [markdown]
# # What the papers did not know
#
# Five papers on privacy mechanisms, and what becomes of them once optimal channels can be computed and proved: how far noise
# is from the optimum, what happens when bounds are dropped, why temporal leakage has so simple a structure, and which
# statements do not survive a computation.

# %%
import sys

sys.path.insert(0, "../benchmarks")

import numpy as np

import mechdesign as md
from papers import experiment, figure, say

# %% [markdown]
# The small settings of all experiments, computed again and compared with what is stored:

# %%
for name in ("noise", "bounds", "hull", "points", "errata"):
    print(f"{name}: {experiment(f'unnoticed_{name}').checked()}")

# %% [markdown]
# ## Noise and the least-cost channel
#
# PGLP and DPHMM draw noise from the sensitivity hull of the policy graph. Here each cell of a block must be
# indistinguishable from every other cell of it. As drawn, the noise leaves the block most of the time, and an answer outside
# helps nobody: snapped to the nearest cell of the block it is as private and errs much less. The linear program errs least,
# and proves it.

# %%
block = md.Domain.grid(columns=3, rows=3, width=3.0, height=3.0)
graph = md.graphs.complete(9)
distance = md.distances.euclidean(block)
snapped = md.mechanisms.PlanarIsotropic(1, block, graph).channel(block).matrix
best = md.design(md.Problem(md.Prior.uniform(9), distance, [md.GraphPrivacy(1, graph)])).certificate
say(
    f"On 3 × 3 cells with ε = 1 snapped noise errs by **{(snapped * distance).sum(axis=1).mean():.3f}** cells, the "
    f"least-cost channel by **{best.cost:.3f}**, and no private channel by less than {best.lower_bound:.3f}."
)

# %%
figure("unnoticed_noise").show()

# %% [markdown]
# ## Exact and approximate
#
# Privacy Games removes the bounds of places farther apart than a radius. What is left holds ε between neighbours, but an
# optimal channel then has every reason to answer some cells never where they would betray nothing *near*: zeros, and
# with them no differential privacy at all. A spanner keeps enough pairs to imply all others, at an ε divided by its
# dilation (Bordenabe, Chatzikokolakis and Palamidessi 2014); the result is private as asked, with a bracket.

# %%
figure("unnoticed_bounds").show()

# %% [markdown]
# ## The hull of a loss function
#
# The leakage of two rows q and d of a transition matrix is ln[(QA + 1)/(DA + 1)] with A = e^α − 1 and sums (D, Q) over a set
# of columns: a prefix of the order of q_j/d_j. So the exponential of the loss is the slope of the line from
# (−1/A, −1/A) to the point (D, Q), and the steepest of them touches the upper left hull of all points. Its corners are
# the pieces of the loss function, for all α at once.

# %%
figure("unnoticed_points").show()

# %%
figure("unnoticed_hull").show()

# %% [markdown]
# ## Errata found by running
#
# Each of these is computed anew when the notebook runs (above), by a function that does what the paper says and one
# that does not trust it.

# %%
figure("unnoticed_errata").show()

# %% [markdown]
# The leakage that "still climbs" shows best in a series: iterating until nothing seems to move stops far from the limit.

# %%
loss = md.leakage.LossFunction([[0.8, 0.2], [0.0, 1.0]])
series = md.leakage.backward(np.full(3000, 0.2231), loss)
for steps in (10, 100, 1000, 3000):
    print(f"after {steps:5} releases {series[steps - 1]:.3f}")
print(f"supremum {loss.supremum(0.2231):17.3f}")
