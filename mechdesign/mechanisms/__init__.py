"""Mechanisms that add noise: density, exact sampling, and their exact channels."""
