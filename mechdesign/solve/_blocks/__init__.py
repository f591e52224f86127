"""A primal-dual interior-point method for block programs, with all ratio rows in memory.

`column_generation.py` chooses between all columns and column generation. `interior_point.py` iterates, `step.py` takes
one step, and `newton.py` solves the linear systems. `kernels/` contains one implementation for each array library, and
`tuning.py` contains the constants. docs/theory/block_method.md derives the method, and each file names its section.
"""
