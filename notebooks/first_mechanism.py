# %% [markdown]
# # A first mechanism: from check-ins to a certified channel
#
# Someone checks in at places. An application needs to know roughly where they are, and they would rather not say
# exactly. A *mechanism* answers in their place: for every true cell of a map (the *secret*) it draws another cell (the
# *answer*) at random. Which probabilities p(answer | secret) protect the secret as required and still give the most useful
# answers? `mechdesign` computes them, proves that they keep the requirement, and proves that no others are more useful.
#
# The notebook runs on real check-ins in New York if it finds them (set `MECHDESIGN_DATA` to the folder that holds
# `foursquare_nyc_marc`), and on simulated ones if not. Run the cells in order; all of them take well under a minute.

# %%
import csv
import os
import tempfile
from pathlib import Path

import numpy as np

import mechdesign as md

# %matplotlib inline

# %% [markdown]
# ## 1. Read check-ins
#
# A table with a line for each check-in, in which columns name the user, the latitude and the longitude. The simulated user
# has a home, a workplace, a gym and friends, and is now and then anywhere in between.

# %%
table = Path(os.environ.get("MECHDESIGN_DATA", "../../shared/data")) / "foursquare_nyc_marc" / "specific_train.csv"

if not table.exists():
    rng = np.random.default_rng(2024)
    favourites = np.array([[40.726, -73.984], [40.755, -73.977], [40.741, -74.001], [40.783, -73.951]])
    places = favourites[rng.choice(4, size=400, p=[0.45, 0.35, 0.12, 0.08])] + rng.normal(scale=0.006, size=(400, 2))
    table = Path(tempfile.mkdtemp()) / "simulated.csv"
    with table.open("w", newline="") as file:
        csv.writer(file).writerows([("label", "lat", "lon"), *(("someone", *place) for place in places)])

traces = md.data.read_checkins(table, user="label", latitude="lat", longitude="lon")
print(f"{sum(map(len, traces))} check-ins of {len({trace.user for trace in traces})} users in {table.name}")

# %% [markdown]
# ## 2. Cut the map into cells
#
# The grid covers Manhattan between 40.70° and 40.80° north. Check-ins outside are counted, not moved. We protect whoever
# checked in most often inside.

# %%
domain = md.Domain.geographic_grid(columns=6, rows=7, south=40.70, north=40.80, west=-74.02, east=-73.92)
visits = md.data.to_grid(traces, domain)
user = max(sorted(set(visits.users)), key=lambda name: visits.counts(name).sum())
counts = visits.counts(user)
print(f"{visits.inside} check-ins inside the map, {visits.outside} outside")
print(f"user {user!r} has {counts.sum()} inside, in {np.count_nonzero(counts)} of {domain.size} cells")

# %% [markdown]
# ## 3. What an adversary knows: the prior
#
# Assume the worst: the adversary knows how often this user is where. The *smoothing* adds a tenth of a visit to every cell,
# so that a cell never visited so far is unlikely rather than impossible.

# %%
prior = md.Prior.from_counts(counts, smoothing=0.1)
prior

# %% [markdown]
# ## 4. Say what is wanted
#
# * **Metric privacy** with ε = 0.8 per km: an answer may shift the odds between two places x km apart by a factor of at
#   most exp(0.8·x), whatever the adversary knows. Places 500 m apart stay nearly alike (factor 1.5), places 5 km apart need not.
# * **Distortion privacy**: an adversary who knows the prior, sees the answer and guesses as well as possible is still wrong
#   by 1.2 km on average.
# * **Cost**: the distance from the true place to the answer. We want it small on average.

# %%
distance = md.distances.euclidean(domain)  # in km
problem = md.Problem(
    prior=prior,
    cost=distance,
    requirements=[
        md.MetricPrivacy(epsilon=0.8, distance=distance),
        md.DistortionPrivacy(minimum=1.2, distance=distance),
    ],
    secrets=domain,
    title="A first mechanism",
)
problem

# %% [markdown]
# ## 5. Design
#
# One call. It solves a linear program, turns the result into a channel of integers (each row sums to exactly 2⁶²), checks
# the requirements on those integers in exact arithmetic, and brackets the cost: the true optimum lies between `lower_bound`
# and `cost`. The solver is never trusted. The map shows the prior of the design.

# %%
design = md.design(problem, tolerance=1e-7)
certificate = design.certificate
print(f"certificate holds: {certificate.holds}")
print(f"cost:              {certificate.cost:.6f} km, relative gap {certificate.relative_gap:.1e}")
print(f"achieved ε:        {certificate.epsilon[0]:.6f} per km")
print(f"best attack errs:  {certificate.distortion[0]:.6f} km on average")
md.figures.prior(design)

# %% [markdown]
# ## 6. Is that good?
#
# Compare with mechanisms that you may know, on the same answers: planar Laplace noise, the exponential mechanism at the ε
# that it really has, both also remapped to the answers that are then best, and the same answer always.

# %%
md.figures.costs(design)

# %% [markdown]
# ## 7. Look at the answers
#
# For the user's most likely cells (outlined), how likely is each answer? Where cells are hatched they are
# never answered: it costs least to keep to few answers in well chosen places.

# %%
md.figures.answers(design)

# %% [markdown]
# ## 8. Attack it
#
# Play the adversary: for each answer, guess the cell with the least expected error. Where does the adversary still err?

# %%
best = md.attack.optimal(design.channel, prior, distance)
print(f"the best attack errs by {best.distortion:.3f} km on average")
md.figures.errors(design)

# %% [markdown]
# ## 9. Export, verify, sample
#
# `md.save` writes the channel, the multipliers that prove the lower bound, a report to open in a browser, and the certificate.
# `md.verify` checks the files again without any solver; it would raise an error that names the worst pair of cells if
# someone had changed a single number. Sampling uses the operating system's randomness and is exact: what is drawn is
# what was certified.

# %%
folder = Path(tempfile.mkdtemp()) / "mechanism"
md.save(design, folder)
print(f"verified: {md.verify(folder).holds}")
print(*sorted(f"{path.name} ({path.stat().st_size / 1000:.0f} kB)" for path in folder.iterdir()), sep="\n")

channel = md.Channel.load(folder)
home = int(np.argmax(prior))
print(f"ten answers for cell {home}: {channel.sample(home, size=10).tolist()}")
