from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("mechdesign", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("mechdesign")

# Shells start what runs in the background with Ctrl-C ignored, children included: here it is tested.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Give the folder of real data sets, which are not part of the project."""
    named = os.environ.get("MECHDESIGN_DATA")
    folder = Path(named) if named else Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("real data not found: set MECHDESIGN_DATA to the folder that holds geolife_trackintel and others")
    return folder
