"""The built site, at `MECHDESIGN_SITE`: names lead to the reference."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SITE = Path(os.environ.get("MECHDESIGN_SITE", ""))

pytestmark = pytest.mark.skipif("MECHDESIGN_SITE" not in os.environ, reason="set MECHDESIGN_SITE to a built site")


def test_objects_are_found_by_every_name_and_exist_once():
    from sphinx.util.inventory import InventoryFile

    with (SITE / "objects.inv").open("rb") as file:
        inventory = InventoryFile.load(file, "", lambda base, uri: uri)
    names = {
        name: entry for kind, entries in inventory.items() if kind.startswith("py:") for name, entry in entries.items()
    }
    for name in ("mechdesign.Problem", "mechdesign.model._problem.Problem"):
        assert names[name].uri.startswith("reference/python/mechdesign.Problem.html")
    for name in ("mechdesign.leakage.LossFunction", "mechdesign.figures.answers", "mechdesign.report.figures.answers"):
        assert name in names
    assert len({entry.uri for name, entry in names.items()}) < len(names)
