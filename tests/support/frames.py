"""Stand-ins for the frames of other packages, which need not be installed."""

from __future__ import annotations

from typing import Any

import numpy as np


class Axis(list[Any]):
    """The names of an axis, which may have a name itself."""

    name: str | None = None


class Frame:
    """What a series or frame of pandas is to this package: it has an index, a frame also has columns."""

    def __init__(self, values: Any, index: Any = None, columns: Any = None, axes: tuple[Any, Any] = (None, None)):
        self.values = np.asarray(values)
        self.index = Axis(range(len(self.values)) if index is None else index)
        self.index.name = axes[0]
        if self.values.ndim == 2:
            self.columns = Axis(range(self.values.shape[1]) if columns is None else columns)
            self.columns.name = axes[1]

    def to_numpy(self) -> Any:
        return self.values

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.values, dtype=dtype)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Any:
        return iter(self.values)

    @property
    def T(self) -> Frame:  # noqa: N802 - the name of pandas
        return Frame(self.values.T, self.columns, self.index, (self.columns.name, self.index.name))


class Grid:
    """What an array of xarray is to this package: it has dimensions, and coordinates by dimension."""

    def __init__(self, values: Any, **coordinates: Any):
        self.values = np.asarray(values)
        self.dims = tuple(coordinates)
        self.coords = {name: Grid(np.asarray(each)) for name, each in coordinates.items() if each is not None}

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.values, dtype=dtype)


class Table:
    """What a frame of polars is to this package: it has columns, and no index."""

    def __init__(self, values: Any, columns: Any):
        self.values, self.columns = np.asarray(values), list(columns)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, wanted: Any) -> Any:
        if isinstance(wanted, str):
            return self.values[:, self.columns.index(wanted)].tolist()
        values = self.values[:, [self.columns.index(name) for name in wanted]]
        return Table(values.astype(float), wanted)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.values, dtype=dtype)
