"""Strategies: what to measure in place of a query."""
