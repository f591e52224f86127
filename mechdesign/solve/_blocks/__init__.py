"""A primal-dual interior-point method for block-angular programs, with all ratio rows at once.

`column_generation.py` solves with all columns or with few, `interior_point.py` iterates, `step.py` is one iteration,
`newton.py` the linear algebra, and `kernels/` the array libraries. `tuning.py` states the constants.
"""
