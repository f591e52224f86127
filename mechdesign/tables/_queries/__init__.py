"""Queries on tables."""
