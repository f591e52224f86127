"""Sensitivities: the largest change of a query between neighbouring tables."""
