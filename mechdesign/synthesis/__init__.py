"""From a problem to a certified design: the main road."""
