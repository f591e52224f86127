"""How much a query changes between neighbouring tables."""
