"""The running example of DPHMM (Xiao et al. 2017), which PGLP shares, and independent checks."""

from __future__ import annotations

import networkx as nx
import numpy as np
from scipy.optimize import linprog

import mechdesign as md

# Example 3.2: temperature and noise level of the states s1, …, s6. A state s_k is node k − 1.
ANSWERS = np.array([[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]], dtype=float)

# Figure 3(b): every two states of one category, cafeteria, school or grocery.
POLICY = md.graphs.categories(["cafeteria", "school", "school", "grocery", "grocery", "grocery"])


def states(*numbers: int) -> list[int]:
    """Return the nodes of the states s_k."""
    return [number - 1 for number in numbers]


def under(*numbers: int) -> nx.Graph:
    """Return the running example's policy graph under the constraint {s_k}."""
    return md.graphs.constrain(POLICY, states(*numbers))


def norm_by_program(differences: np.ndarray, v: np.ndarray) -> float:
    """Return the K-norm of v by its definition: the least Σλ with Σλ_k(±d_k) = v and λ ≥ 0; inf where there is none."""
    generators = np.concatenate((differences, -differences))
    found = linprog(np.ones(len(generators)), A_eq=generators.T, b_eq=v, method="highs")
    return float(found.fun) if found.status == 0 else np.inf
