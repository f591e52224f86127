"""Secret graphs and known counts."""
