"""The trusted kernel: what decides, in exact arithmetic, whether a mechanism keeps its promises.

It imports nothing of the rest of the package but its errors: no solver, no formulation, no rounding. Read it in this
order: `exact` and `exponential` (numbers), `claims` (what is to be shown), `evidence` (what it is shown with),
`privacy`, `costs` and `bracket` (the three questions: is it private, what does it cost, how much less could it cost),
`certificate` (the answers together), `bundle` (the files) and `verify` (the files alone, taken at nobody's word).
"""
