"""Convex bodies and plane cells: sensitivity hulls, K-norms, Voronoi diagrams."""
