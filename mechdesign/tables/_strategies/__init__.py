"""Strategies: noisy queries from which the answers to a workload are decoded."""
