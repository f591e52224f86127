"""Rays of the cone of private columns: channels for thousands of secrets, private between all pairs by construction.

Under metric privacy every column of a channel lies in the cone {x >= 0 : x_s <= e^(ε·d(s,t)) x_t}. Mixtures of
functions from this cone are in it, so that a linear program over a list of them has one row for each secret and none
for the pairs. New functions come from column generation, and the lower bound from a small transport problem for every
observable.
"""
