"""NPZ: arrays for NumPy, the exact integers among them."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np

from mechdesign.export.description import described
from mechdesign.formats.format import Exported
from mechdesign.formats.format import Format
from mechdesign.model._channel import EXPONENT

__all__ = ["NPZ"]


def _contents(exported: Exported) -> Iterator[bytes]:
    """Yield an archive of ``numerators``, ``exponent``, ``matrix``, ``prior``, ``cost``, labels and points."""
    channel, problem = exported.channel, exported.problem
    arrays, _ = described(problem, channel)
    content = io.BytesIO()
    np.savez_compressed(
        content,
        allow_pickle=False,
        numerators=channel.numerators,
        exponent=np.int64(EXPONENT),
        matrix=channel.matrix,
        prior=problem.prior,
        cost=problem.cost,
        **arrays,
    )
    yield content.getvalue()


NPZ = Format("npz", "arrays for NumPy, with the exact integers", (".npz",), _contents, text=False)
