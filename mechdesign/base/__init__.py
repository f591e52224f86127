"""Tools without a subject, which every room may use."""
