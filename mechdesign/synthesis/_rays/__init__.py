"""Design channels for thousands of secrets from rays, private columns of a cone (docs/theory/rays.md).

Under metric privacy every column of a channel lies in the cone {x >= 0 : x_s <= e^(ε·d(s,t)) x_t}. Mixtures of rays
from this cone stay in the cone. A linear program over a list of rays therefore has one row for each secret, and no rows
for pairs. Column generation adds rays, and a small transport problem for each observable proves the lower bound.
"""
