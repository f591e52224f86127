"""Policy graphs: builders, constrained domains, who is exposed, and repair."""
