"""True answers from a table, and what is refused before any: nothing here tells two neighbouring tables apart.

Where records may be added or removed, their number is private, and so is whether there are any. Such a table is never
refused for its number of records: answers too large for the noise are clipped instead. Clipping brings no two answers
further apart, so that sensitivities stay what they are.
"""

from __future__ import annotations

import numpy as np

from mechdesign.base._arrays import Integers
from mechdesign.base._errors import InputError
from mechdesign.mechanisms._discrete import LARGEST_VALUE
from mechdesign.tables._policy import Policy


def check_table(policy: Policy, counts: Integers, largest: int = 1, path: str = "data") -> None:
    """Raise `InputError` for a table that is not released under a policy.

    Args:
        policy: what is protected.
        counts: the histogram of the table, shape (|T|,); where no counts are known, any counts with its sum.
        largest: by how many steps one record changes an answer at most.
        path: what holds these steps.

    Raises:
        InputError: known counts do not hold; or, where the number of records is public, there is none, or so many that
            answers may pass 2^61 steps.
    """
    if policy.constraints:
        policy.check_counts(counts)
    if policy.unbounded:
        return
    records = int(counts.sum())
    if records == 0:
        raise InputError(
            "data",
            "holds no record, and the number of records is public under this policy",
            bound="at least one record",
            remedy="say unbounded=True if records may be added or removed",
        )
    if largest * records > LARGEST_VALUE:
        steps = largest * records
        raise InputError(path, "may have answers that are too large", value=steps, bound="at most 2^61 steps")


def true_answers(rows: Integers, counts: Integers) -> Integers:
    """Return rows @ counts, computed exactly and clipped to ±2^61, int64 of shape (q,).

    Args:
        rows: integers of shape (q, n).
        counts: how many records each column stands for, shape (n,).
    """
    largest = max(int(rows.max(initial=0)), -int(rows.min(initial=0)))
    if largest * int(counts.sum()) <= LARGEST_VALUE:
        answers: Integers = rows @ counts
        return answers
    columns = np.flatnonzero(counts)
    sums = [sum(int(row[x]) * int(counts[x]) for x in columns) for row in rows]
    return np.array([min(max(total, -LARGEST_VALUE), LARGEST_VALUE) for total in sums], dtype=np.int64)
