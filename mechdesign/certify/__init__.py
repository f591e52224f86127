"""The trusted kernel: what decides, in exact arithmetic, whether a mechanism keeps its promises.

It needs Python and NumPy, and of the rest of the package only the errors, the checks of arrays and the writing of
files: no solver, no formulation, no rounding. Read it in this order: `exact` and `exponential` (numbers), `claims`
(what is to be shown), `stated` (how it is written down), `evidence` (what it is shown with), `privacy`, `costs` and
`bracket` (the three questions: is it private, what does it cost, how much less could it cost), `certificate` (the
answers together), `bundle` (the files) and `verify` (the files alone, taken at nobody's word).
"""
