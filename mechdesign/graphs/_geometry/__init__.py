"""Convex bodies and Voronoi cells in the plane: sensitivity hulls, K-norms, Voronoi diagrams."""
