"""How much correlated releases leak, budgets that bound the leakage, and the ledger.

`LossFunction` gives the largest leakage that one step of a chain passes on to the next release, in closed form.
`temporal` adds up the leakage over time, and `constant_budget` and `allocate_budget` keep it below a bound. `cao2019`
contains the algorithms of the paper, for checks. `accounting` records the budgets spent. The room imports `data`,
`model`, `solve`, `certify` and `base`.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
