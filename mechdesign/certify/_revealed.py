"""The secrets that a channel reveals with certainty, by an observable that only one secret can give."""

from __future__ import annotations

import numpy as np

from mechdesign.base._arrays import Floats, Integers


def revealed(numerators: Integers | Floats) -> tuple[int, ...]:
    """Return the secrets s with an observable o such that N[s,o] > 0 and N[t,o] = 0 for all other t.

    Such an observable o identifies the secret s under every prior. A single secret is always revealed.

    Args:
        numerators: N (n, m), or any numbers that are positive exactly where N is positive.

    Returns:
        The secrets, ascending.

    >>> import numpy as np
    >>> revealed(np.array([[3, 1, 0], [2, 1, 1]]))
    (1,)
    """
    given = numerators > 0
    alone = np.count_nonzero(given, axis=0) == 1
    return tuple(np.flatnonzero(given[:, alone].any(axis=1)).tolist())
