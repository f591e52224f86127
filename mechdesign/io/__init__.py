"""Reading and writing: specifications, movement data, exports."""
