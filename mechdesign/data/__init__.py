"""Readers for tables, traces, matrices and schedules."""
