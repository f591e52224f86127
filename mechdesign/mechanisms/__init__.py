"""Noise whose law is known exactly, and how it is drawn."""
