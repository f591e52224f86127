"""Mechanisms from anywhere: what a finite channel really guarantees, computed from its numbers as they are."""
