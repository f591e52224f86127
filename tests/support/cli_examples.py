"""What tests of commands share: a small specification, and how a command is run."""

from __future__ import annotations

import subprocess
import sys

from click.testing import CliRunner, Result

from mechdesign.cli import main

SPECIFICATION = """
title = "A line"
[domain]
points = [[0, 0], [1, 0], [2, 0], [3, 1]]
unit = "km"
labels = ["home", "work", "pub", "gym"]
[prior]
counts = [4, 3, 2, 1]
[cost]
distance = "euclidean"
[[privacy]]
kind = "metric"
epsilon = 0.7
distance = "euclidean"
[[privacy]]
kind = "distortion"
minimum = 0.2
distance = "hamming"
"""


def run(*arguments: object) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def command(*arguments, **options):
    """Run a command in a process of its own."""
    line = [sys.executable, "-m", "mechdesign", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, timeout=100, **options)
