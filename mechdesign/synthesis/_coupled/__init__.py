"""Column generation for parts that share distortion floors."""
