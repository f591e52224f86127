# %% [markdown]
# # DPHMM: policy graphs inside a hidden Markov model
#
# *DPHMM: Customizable Data Release with Differential Privacy via Hidden Markov Model* (Xiao, Shen, Liu, Xiong, Jin and
# Xu 2017)
# protects the state of a Markov chain at each step among those that are still possible. Its Figures 10 to 13 compare two
# policies, **G_util** (near cells) and **G_trs** (cells reached from one cell in one step), with **DPLS**, the complete graph
# on a δ-location set. They are computed here on GeoLife and on check-ins in New York, which take the place of Gowalla's. The
# figures come from stored results of the full setting, and all that they say is computed from them. A small setting is
# computed again below, where the data are at hand.

# %%
import sys

sys.path.insert(0, "../benchmarks")

import numpy as np

import mechdesign as md
from papers import experiment, figure, say

# %% [markdown]
# ## A trace, in the open
#
# Four states in a row, and a walk that stays or moves to a neighbour. What must not be told apart are neighbours.

# %%
domain = md.Domain.grid(4, 1, 4.0, 1.0)
walk = np.array([[0.75, 0.25, 0, 0], [0.25, 0.5, 0.25, 0], [0, 0.25, 0.5, 0.25], [0, 0, 0.25, 0.75]])
trace = md.traces.Trace(domain, md.graphs.line(4), 1, walk, np.full(4, 0.25), rng=1)
for state in (0, 1, 1, 2):
    release = trace.step(state)
    raised = md.traces.adversarial_level(release.stage, release.stage.prior)
    print(
        f"released {release.output} for {state}; belief before {np.round(release.stage.prior, 2)}, after "
        f"{np.round(release.posterior, 2)}; no output could have raised it by more than a factor {np.exp(raised):.2f}"
    )

# %% [markdown]
# ## Are the stored results those of this program?

# %%
for name in ("traces", "adversaries"):
    print(f"{name}: {experiment(f'dphmm_{name}').checked()}")

full = experiment("dphmm_traces").full
say(
    f"The figures of traces are means over {full['trajectories']} trajectories of {full['steps']} steps on each data set, where "
    "the paper has 20 of 100: single steps are noisy."
)

# %% [markdown]
# ## Time

# %%
figure("dphmm_10").show()

# %% [markdown]
# ## Protection and error over time

# %%
figure("dphmm_11").show()

# %% [markdown]
# ## What ε does, and what the radius does

# %%
figure("dphmm_12").show()

# %%
figure("dphmm_13").show()

# %% [markdown]
# ## What an adversary gains
#
# Constrained adversarial privacy (section 10.6 of the paper) bounds how far an output may raise what somebody believes. It is
# exact for channels, `md.traces.adversarial_privacy`, and has a closed form for planar isotropic noise: the worst output is
# the place of the state itself, where every other state is as unlikely as it can be.

# %%
figure("dphmm_adversaries").show()
