"""The leakage of correlated releases, budgets that bound it, and ledgers of spent budgets.

`LossFunction` gives the largest leakage that one step of a chain passes on to the next release, in closed form.
`temporal` adds up the leakage over time, and `constant_budget` and `allocate_budget` keep it below a bound. `cao2019`
implements the algorithms of Cao et al. (2019) as references for checks. `accounting` records spent budgets in a ledger.
This package imports `data`, `model`, `solve`, `certify` and `base`.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
