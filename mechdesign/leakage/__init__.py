"""How much correlated releases leak, budgets that bound it, and the ledger.

`LossFunction` is the largest leakage that a step of a chain passes on, as pieces of a closed form; `temporal` adds it
up over time, and the budgets keep it below a bound. `cao2019` has the algorithms of the paper, for checks. `accounting`
keeps what was spent. The room imports `data`, `model`, `solve`, `certify` and `base`.
"""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
