"""Strategies: noisy queries from which a workload is decoded."""
