"""Solve random problems with rays; count outcomes, and check whether each bracket contains the optimum.

    python benchmarks/attacks/rays_random.py [--problems 250] [--seed 1]

The problems have 1 to 9 secrets at places on a line or in the plane, over distances from 10^-3 to 10^3. Priors span up
to 100 orders of magnitude; costs are random numbers or powers of distances, and ε is from 10^-18 to 10^3. Threshold
privacy bounds all pairs, and floors go up to the largest possible value. The script counts untyped errors and brackets
without the optimum, and exits with 1 if there are any.
"""

from __future__ import annotations

import collections
import sys
import warnings
from pathlib import Path

import numpy as np

import mechdesign as md
from mechdesign.errors import BracketWarning, InputWarning, MechdesignError, MetricWarning, RevealedWarning
from mechdesign.model import Requirement

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import options


def some_problem(random: np.random.Generator) -> md.Problem:
    """Draw a problem."""
    n = int(random.integers(1, 10))
    places = random.uniform(0, 10.0 ** random.uniform(-3, 3), (n, 2))
    if random.random() < 0.3:
        places[:, 1] = 0
    if random.random() < 0.3:
        places = np.round(places)
    distance = (md.distances.euclidean if random.random() < 0.5 else md.distances.manhattan)(places)
    prior = 10.0 ** -random.uniform(0, random.choice([1, 8, 16, 100]), n)
    prior /= prior.sum()
    if random.random() < 0.5:
        cost = random.random((n, int(random.integers(1, n + 2)))) * 10.0 ** random.uniform(-5, 9)
    else:
        cost = distance ** random.choice([1, 2])
    epsilon = float(10.0 ** random.uniform(-18, 3))
    requirements: list[Requirement] = [md.MetricPrivacy(epsilon, distance)]
    if random.random() < 0.2:
        requirements = [md.ThresholdPrivacy(min(epsilon, 100), distance, float(distance.max() * 1.1 + 1))]
    if random.random() < 0.6:
        error = distance if random.random() < 0.5 else 1 - np.eye(n)
        largest = float((error @ prior).min())
        if largest > 1e-99:
            share = float(random.choice([0.01, 0.5, 0.9, 0.999, 1])) * (1 - 1e-9)
            requirements.append(md.DistortionPrivacy(share * largest, error))
    return md.Problem(prior, cost, requirements)


def main() -> None:
    """Print the outcomes of the problems."""
    arguments = options(__doc__, problems=250, seed=1)
    warnings.simplefilter("error")
    for category in (BracketWarning, MetricWarning, InputWarning, RevealedWarning):
        warnings.simplefilter("ignore", category)
    ended: collections.Counter[str] = collections.Counter()
    gaps, wrong = [], 0
    for index in range(arguments.problems):
        problem = some_problem(np.random.default_rng([arguments.seed, index]))
        try:
            found = md.design(problem, rows="rays", tolerance=0.01)
            best = md.design(problem).certificate
        except MechdesignError as error:
            ended[type(error).__name__] += 1
            continue
        except Exception as error:
            wrong += 1
            print(f"problem {index}: {error!r}")
            continue
        certificate = found.certificate
        ended[found.status.name] += 1
        gaps.append(certificate.relative_gap)
        room = 1e-12 * abs(best.expected_cost)
        wrong += not certificate.lower_bound - room <= best.expected_cost
        wrong += not best.lower_bound - room <= certificate.expected_cost
    print(f"{arguments.problems} problems, seed {arguments.seed}, tolerance 0.01: {dict(ended)}")
    quantiles = np.quantile(gaps, [0.5, 0.9, 0.95, 0.99, 1.0])
    print("brackets at 50, 90, 95, 99 and 100 % of the problems:", ", ".join(f"{gap:.2g}" for gap in quantiles))
    print(f"{wrong} errors that are not typed, or brackets without the optimum")
    sys.exit(int(wrong > 0))


if __name__ == "__main__":
    main()
