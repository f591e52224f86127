"""Releases along a trace: a policy kept inside a hidden Markov model, and what an adversary learns from it."""
