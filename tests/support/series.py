"""A stand-in for a series of pandas: values, an index with the names of its levels, and a name."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np


class Index(tuple[Hashable, ...]):
    """Labels; `names` are those of the levels."""

    names: list[str | None]

    @property
    def name(self) -> str | None:
        return self.names[0] if len(self.names) == 1 else None


class Series:
    """What this package reads of a series."""

    def __init__(
        self,
        values: Any,
        index: Sequence[Hashable] = (),
        name: str | None = None,
        names: Sequence[str | None] = (None,),
    ) -> None:
        self.values, self.name = np.asarray(values), name
        self.index = Index(index if len(index) else range(len(self.values)))
        self.index.names = list(names)

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self.values, dtype=dtype)

    def to_numpy(self) -> np.ndarray[Any, Any]:
        return self.values
