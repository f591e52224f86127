"""Column generation for parts that a constraint couples."""
