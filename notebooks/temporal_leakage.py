# %% [markdown]
# # Temporal leakage: what correlated releases tell
#
# *Quantifying Differential Privacy in Continuous Data Release Under Temporal Correlations* (Cao, Yoshikawa, Xiao and Xiong
# 2019) asks how much a release leaks when the data of one time tell those of another: **backward** leakage (BPL), of all
# releases so far, **forward** leakage (FPL), of those to come, and **temporal** leakage (TPL), of both. Its Figures 3 to 9
# and its Example 1 are recomputed here with the exact loss function of mechdesign. They come from stored results of the
# full setting, and all that they say is computed from them. A small setting is computed again below, where the data are at
# hand.

# %%
import sys

sys.path.insert(0, "../benchmarks")

import numpy as np

import mechdesign as md
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
for name in ("over_time", "loss", "suprema", "runtime", "smoothed", "allocation", "utility", "counts", "pairs"):
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

# %% [markdown]
# ## Example 1: the same counts, again and again
#
# A server counts the people at each place every hour. Here 1,000 simulated people move between nine places, and mostly stay.
# A ledger with a series promises that no hour tells more than α about where a person is, given all hours. Its plan says how
# much each release may spend. The ledger refuses what would leak more, also about earlier hours.

# %%
hours, alpha = 24, 1
chain = leakage.smooth(np.eye(9), 0.01)
rng = np.random.default_rng(3)
people = [rng.integers(9, size=1000)]
for _ in range(hours - 1):
    people.append(np.array([rng.choice(9, p=chain.matrix[place]) for place in people[-1]]))

everywhere = md.tables.Policy.full(md.tables.Domain({"place": range(9)}))
counts = md.tables.Histogram()
for name, plan in (("equal", ("equal", hours)), ("Algorithm 7", "constant"), ("Algorithm 8", ("allocated", hours))):
    ledger = md.Ledger()
    series = ledger.add_series(alpha=alpha, backward=chain, forward=chain, plan=plan, history="others")
    for hour, places in enumerate(people):
        counts.release(policy=everywhere, positions=places, epsilon="planned", ledger=ledger, step=hour)
    budgets, leaks = map(float, series.steps.values()), series.leakage.values()
    error = np.mean([counts.plan(everywhere, epsilon=epsilon).taken.error for epsilon in budgets])
    print(f"{name:11}  error of a count {error:4.1f}; releases leak {min(leaks):.3f} to {max(leaks):.3f}")
    assert len(leaks) == hours
    assert max(leaks) <= alpha

# %% [markdown]
# Without a series, each of these releases could spend ε = α. They would leak more, and the series refuses the second one:

# %%
assert max(leakage.temporal(np.full(hours, float(alpha)), chain, chain)) > 8 * alpha
ledger = md.Ledger()
ledger.add_series(alpha=alpha, backward=chain, forward=chain, history="others")
counts.release(policy=everywhere, positions=people[0], epsilon=alpha, ledger=ledger, step=0)
try:
    counts.release(policy=everywhere, positions=people[1], epsilon=alpha, ledger=ledger, step=1)
except md.errors.LeakageExceededError as refusal:
    print(refusal)
else:
    raise AssertionError("the second release leaks more than α")

# %% [markdown]
# The full setting counts check-ins in New York on 9 and on 25 cells during the 168 hours of a week: the last place is kept,
# and before the first one a person is elsewhere. A week of a user counts as a person; other weeks of the same users
# determine the chain. It holds for everybody and for all hours, which is a simplification: people sleep. The simulated
# people have the paper's chain with 50 states.

# %%
figure("temporal_leakage_counts").show()

# %%
rows = [row for row in experiment("temporal_leakage_counts").stored().rows if row["TPL"] is not None]
independent = [row for row in rows if row["plan"] == "ε = α each time"]
assert all(row["TPL"] > alpha for row in independent)
assert all(row["TPL"] <= alpha for row in rows if row not in independent)
assert all(abs(row["measured"] / row["mean"] - 1) < 0.1 for row in rows)

# %% [markdown]
# Is it useful? The noise does not depend on how many people are counted.

# %%
city = {row["plan"]: row for row in rows if row["chain"] == "check-ins, 9 cells"}
equal, guess = city["equal plan"], city["no release (equal counts)"]
needed = 10 * equal["states"] * equal["mean"]
say(
    f"On 9 cells the best plan errs by {equal['mean']:.0f}, and Algorithms 7 and 8 err by "
    f"{city['Algorithm 7']['mean']:.0f} and {city['Algorithm 8']['mean']:.0f}. Whoever takes all counts of these "
    f"{equal['people']:,} people as equal, without any release, errs by {guess['mean']:.0f}. Hourly counts for a week under "
    f"α = {alpha} are useful for more people: the equal plan errs by a tenth of the mean count if there are {needed:,.0f}."
)
assert equal["mean"] < city["group privacy (α/T)"]["mean"] < city["Algorithm 8"]["mean"] < city["Algorithm 7"]["mean"]

# %% [markdown]
# ## A day of location reports, pair by pair
#
# One ε for all pairs says little of locations: near places are protected well, far ones hardly. A budget may be a matrix with
# a bound for each pair. Six places in a row are protected by ε = 0.5 per cell, and a walk stays with probability ½ (2/3 at the
# ends) or moves to a neighbour. What do 13 reports tell about any one of the places?

# %%
cells = np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
beside = cells == 1
walk = md.MarkovChain.from_counts(2 * np.eye(6) + beside)
back = walk.reverse(walk.stationary())
report = leakage.pairs(md.MetricPrivacy(0.5, cells))
one = leakage.temporal([report.max()] * 13, back, walk).max()
pairs = leakage.temporal([report] * 13, back, walk).max(axis=0)
print(f"from the largest bound of a report, for every pair: {one:.2f} nats")
print(f"pair by pair, neighbours: {pairs[beside].max():.2f} nats, both ends: {pairs[0, 5]:.2f} nats")
assert pairs[beside].max() < 13 * 0.5 < pairs[0, 5] < one

# %% [markdown]
# The other way round: which ε per cell keeps all 13 reports below 2 nats per cell?

# %%
most = leakage.largest_scale(cells, alpha=2, releases=13, backward=back, forward=walk)
print(f"ε = {most:.4f} per cell")
kept = leakage.temporal([leakage.pairs(md.MetricPrivacy(most, cells))] * 13, back, walk)
assert (kept <= 2 * cells * (1 + 1e-9)).all()

# %% [markdown]
# In New York, with a chain counted from check-ins on 4 × 4 cells:

# %%
figure("temporal_leakage_pairs").show()

# %%
rows = experiment("temporal_leakage_pairs").stored().rows
last = max(row["report"] for row in rows)
found = {(row["chain"], row["epsilon"]): row for row in rows if row["report"] == last}
daily_four = next(r["present"] for r in rows if (r["chain"], r["epsilon"], r["report"]) == ("every day", 0.3, 4))
daily, hourly, slow = (found[name, 0.3] for name in ("every day", "every hour", "a walk, every hour"))
say(
    f"With ε = 0.3 per km, {last} reports a day apart bound the present cell by {daily['present']:.2f} per km, and the "
    f"{daily['report'] - 4} last of them add {daily['present'] - daily_four:.2f}: people have mixed between reports. A chain "
    f"that mixes less gains less: {last} hourly reports give {hourly['present']:.2f} per km, where their sum is "
    f"{last * 0.3:.1f}, and those of a walk {slow['present']:.2f}. About any of the {last} hours they tell up to "
    f"{max(row['any'] for row in rows if row['chain'] == 'every hour' and row['epsilon'] == 0.3):.2f} per km. The largest "
    f"bound of a report, taken for all pairs, gives {hourly['diameter']:.1f} per km for the nearest cells."
)
assert daily["present"] < hourly["present"] < slow["present"] < hourly["diameter"]
