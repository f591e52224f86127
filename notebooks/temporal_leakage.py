# %% [markdown]
# # Temporal leakage: what correlated releases tell
#
# *Quantifying Differential Privacy in Continuous Data Release Under Temporal Correlations* (Cao, Yoshikawa, Xiao and Xiong
# 2019) asks how much a release leaks when the data of one time tell those of another: **backward** leakage (BPL), of all
# releases so far, **forward** leakage (FPL), of those to come, and **temporal** leakage (TPL), of both. Its Figures 3 to 9
# are recomputed here with the exact loss function of mechdesign. They come from stored results of the full setting, and all
# that they say is computed from them. A small setting is computed again below.

# %%
import sys

sys.path.insert(0, "../benchmarks")

import numpy as np

from mechdesign import leakage
from papers import experiment, figure, say

# %% [markdown]
# ## One loss function for all α
#
# What a previous leakage of α adds is L(α), the largest ln(q·x / d·x) over pairs of rows q, d of the transition matrix and
# vectors x whose entries differ by at most a factor e^α. It is found once, as the pieces of a function.

# %%
L = leakage.LossFunction([[0.8, 0.2], [0.0, 1.0]])
print("pieces:", *(f"from α = {piece[2]:.4f}" for piece in zip(*L.pieces, strict=True)))
for alpha in (0.1, 1.0, 10.0):
    print(f"L({alpha:g}) = {L(alpha):.6f}")
print(f"ten releases of ε = 0.1: {leakage.temporal(np.full(10, 0.1), backward=L).max():.4f} nats instead of 0.1")

# %% [markdown]
# It agrees with the linear-fractional program of the paper, solved afresh for each α:

# %%
for alpha in (0.1, 1.0, 10.0):
    program = leakage.fractional([0.0, 1.0], [0.8, 0.2], alpha), leakage.fractional([0.8, 0.2], [0.0, 1.0], alpha)
    assert abs(max(program) - L(alpha)) < 1e-7 * max(1, L(alpha))
    print(f"α = {alpha:g}: {max(program):.6f}")

# %% [markdown]
# ## Are the stored results those of this program?

# %%
for name in ("over_time", "loss", "suprema", "runtime", "smoothed", "allocation", "utility"):
    print(f"{name}: {experiment(f'temporal_leakage_{name}').checked()}")

# %% [markdown]
# ## Leakage over time

# %%
figure("temporal_leakage_3").show()

# %% [markdown]
# ## The loss function

# %%
figure("temporal_leakage_4").show()

# %% [markdown]
# ## Where leakage ends
#
# The supremum exists or not by a strict inequality: with q = 0.8 and d = 0 it does below ε = ln(1/0.8), and not from there
# on.

# %%
figure("temporal_leakage_5").show()

# %%
border = np.log(1 / 0.8)
below, above = (L.supremum(border * (1 + shift)) for shift in (-1e-9, 1e-9))
say(f"Supremum a billionth below ln(1/0.8): **{below:.2f}**. A billionth above: **{above}**.")

# %% [markdown]
# ## How long it takes
#
# Times are those of the processor, on random matrices as in the paper; CPLEX is replaced by HiGHS.

# %%
figure("temporal_leakage_6").show()

# %% [markdown]
# ## How strong correlation must be

# %%
figure("temporal_leakage_7").show()

# %% [markdown]
# ## Budgets that keep a promise

# %%
figure("temporal_leakage_8").show()

# %%
figure("temporal_leakage_9").show()
