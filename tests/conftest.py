from __future__ import annotations

import os

# Workers share the processors: each computes on one thread, but where a test asks for more. NumPy reads it on import.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import signal
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("mechdesign", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("mechdesign")

# Shells start what runs in the background with Ctrl-C ignored, children included: here it is tested.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Processor time that a fast test and its children take at most [s].
FAST_S = 0.5


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Give the folder of real data sets, which are not part of the project."""
    named = os.environ.get("MECHDESIGN_DATA")
    folder = Path(named) if named else Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("real data not found: set MECHDESIGN_DATA to the folder that holds geolife_trackintel and others")
    return folder


def pytest_addoption(parser: pytest.Parser) -> None:
    text = f"list tests that take {FAST_S} s of processor time"
    parser.addoption("--list-seconds", action="store_true", help=text)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--list-seconds") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Clock())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    return (yield from _measure(item, "setup"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    return (yield from _measure(item, "call"))


def _measure(item: pytest.Item, phase: str) -> Generator[None, Any, Any]:
    began = sum(os.times()[:4])
    try:
        return (yield)
    finally:
        item.user_properties.append((f"seconds of {phase}", sum(os.times()[:4]) - began))


class Clock:
    """Reports which tests are not fast; it fails none, since a busy or slow machine is no fault of a test."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the processor time of a test that has ended, and that of its fixtures."""
        if report.when == "teardown":
            for name, seconds in report.user_properties:
                if name.startswith("seconds of "):
                    self.seconds[f"{report.nodeid} ({name.removeprefix('seconds of ')})"] = float(seconds)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """List the tests that are not fast, the slowest first."""
        terminalreporter.section(f"processor seconds: {sum(self.seconds.values()):.0f} in tests and fixtures")
        for name, seconds in sorted(self.seconds.items(), key=lambda each: -each[1]):
            if seconds > FAST_S and name.endswith("(call)"):
                terminalreporter.line(f"{seconds:6.2f} {name}")
