"""Linear programs as values, apart from what they mean and from who solves them."""
