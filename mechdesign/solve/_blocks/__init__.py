"""A primal-dual interior-point method for block-angular programs, with all ratio rows at once.

`solve.py` holds the loop, `step.py` one iteration, `newton.py` the linear algebra, `kernels/` the array libraries.
"""
