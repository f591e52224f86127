"""A primal-dual interior-point method for block-angular programs, with all ratio rows at once.

`column_generation.py` solves with few columns, `interior_point.py` holds the iteration, `step.py` one iteration, `newton.py` the linear algebra, `kernels/` the array libraries.
"""
