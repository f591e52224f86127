"""Benchmark solvers on families of mechanism design problems."""
