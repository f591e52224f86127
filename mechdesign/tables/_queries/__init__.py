"""Queries: what is released of a table."""
