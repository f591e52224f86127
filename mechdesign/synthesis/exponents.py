"""How large an exponent ln g = ε·d may be before its bound says no more, derived from one number.

Entries of a channel are whole multiples of 2^-k, with k = `mechdesign.model._channel.EXPONENT` = 62, and so at most 2^k
of these units. All limits on ln g follow:

- From g = 2^k on, N_s <= g N_t says one thing only: where N_t is 0, N_s is 0, too. No larger exponent need ever be told
  to anyone: `VACUOUS` = k ln 2, about 43.0. The block method leaves out bounds beyond it, and rounding takes them
  for this much.
- A solver of rows sees both g p_t and p_s in double precision. Rows end four bits below, at 2^(k - 4):
  `LARGEST_ROW_EXPONENT` = 40. Their coefficients √g and 1/√g stay within 5·10^8 of 1, and meeting afterwards a bound
  that got no row moves at most 1/g, about 16 units, of probability.

The verifier knows none of these: it compares the integers themselves (`mechdesign.certify._privacy`).
"""

from __future__ import annotations

import math

from mechdesign.model._channel import EXPONENT

__all__ = ["LARGEST_ROW_EXPONENT", "VACUOUS"]

VACUOUS = EXPONENT * math.log(2)
"""The exponent from which on a bound only says that zero goes with zero."""

LARGEST_ROW_EXPONENT = float(math.floor((EXPONENT - 4) * math.log(2)))
"""The largest exponent of a bound that gets a row of its own."""
