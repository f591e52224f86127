"""Compute true answers from a table, after checks that do not distinguish two neighbouring tables.

If records may be added or removed, the number of records is private. Empty and very large tables are accepted if the
number of records is private, and answers too large for the noise are clipped. Clipping never increases the distance
between two answers, so the sensitivities remain valid.
"""

from __future__ import annotations

import numpy as np

from mechdesign.base._arrays import Integers
from mechdesign.base._errors import InputError
from mechdesign.mechanisms._discrete import LARGEST_VALUE
from mechdesign.tables._policy import Policy


def check_table(policy: Policy, counts: Integers, largest: int = 1, path: str = "data", name: str = "data") -> None:
    """Raise `InputError` if a table may not be released under a policy.

    Args:
        policy: the Blowfish policy that the release must satisfy.
        counts: the histogram of the table, shape (|T|,). Without known counts, only the sum of the histogram is used.
        largest: the largest number of steps by which one record changes an answer.
        path: the path that an error names if the answers are too large.
        name: the path that an error names if the table is empty.

    Raises:
        InputError: The table violates a known count. Or the number of records is public, and the table is empty or has
            answers that may exceed 2^61 steps.
    """
    if policy.constraints:
        policy.check_counts(counts)
    if policy.unbounded:
        return
    records = int(counts.sum())
    if records == 0:
        raise InputError(
            name,
            "contains no record, and the number of records is public under this policy",
            bound="at least one record",
            remedy="set unbounded of the policy if records may be added or removed",
        )
    if largest * records > LARGEST_VALUE:
        steps = largest * records
        raise InputError(path, "may have answers that are too large", value=steps, bound="at most 2^61 steps")


def true_answers(rows: Integers, counts: Integers) -> Integers:
    """Return rows @ counts, computed exactly and clipped to ±2^61, int64 of shape (q,).

    Args:
        rows: integers of shape (q, n).
        counts: the number of records for each column, shape (n,).

    Returns:
        The answers.
    """
    largest = max(int(rows.max(initial=0)), -int(rows.min(initial=0)))
    if largest * int(counts.sum()) <= LARGEST_VALUE:
        answers: Integers = rows @ counts
        return answers
    columns = np.flatnonzero(counts)
    sums = [sum(int(row[x]) * int(counts[x]) for x in columns) for row in rows]
    return np.array([min(max(total, -LARGEST_VALUE), LARGEST_VALUE) for total in sums], dtype=np.int64)
