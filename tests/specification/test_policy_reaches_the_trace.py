"""Every key of a policy that a trace takes is the trace's."""

from __future__ import annotations

import numpy as np
import pytest

import mechdesign as md
from mechdesign.specification import _traces as traces

SPEC = """
domain.grid = { columns = 3, rows = 2, width = 3.0, height = 2.0 }
prior.uniform = true
cost.distance = "euclidean"
privacy = [{ kind = "graph", epsilon = "0.7", neighbours = 4 }]
policy = { delta = 0.25, repair = "nearest", repaired = "all", hull = "graph", within = "map" }
release = { mechanism = "exponential", transition = { neighbours = 4 } }
"""


def test_keys_are_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {}

    def capture(*given: object, **named: object) -> None:
        asked.update(named, epsilon=given[2], mechanism=given[5])
        raise KeyError("captured")

    monkeypatch.setattr(traces, "Trace", capture)
    with pytest.raises(KeyError, match="captured"):
        md.specification.parse(SPEC).release([0, 1], seed=1)
    assert float(asked["delta"]) == 0.25
    assert {key: asked[key] for key in ("repair", "repaired", "hull", "within", "snap", "mechanism")} == {
        "repair": "nearest", "repaired": "all", "hull": "graph", "within": "map", "snap": True,
        "mechanism": "exponential",
    }  # fmt: skip
    assert float(asked["epsilon"]) == 0.7
    assert np.shape(asked["cost"]) == (6, 6)
