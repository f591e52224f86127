"""What commands write for the owner alone is readable by nobody else, and what others can write is not believed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cli_examples import well, write

_TRACE = """
[domain]
grid = { columns = 3, rows = 2, width = 3.0, height = 2.0 }
[prior]
uniform = true
[cost]
distance = "euclidean"
[[privacy]]
kind = "graph"
epsilon = 1
blocks = 3
[release]
mechanism = "lp"
transition = { neighbours = 4 }
"""

posix = pytest.mark.skipif(os.name == "nt", reason="modes are those of POSIX")


def modes(folder: str) -> set[int]:
    return {each.stat().st_mode & 0o777 for each in Path(folder).iterdir()}


@posix
@pytest.mark.usefixtures("blank_pictures")
@pytest.mark.parametrize("umask", [0o000, 0o077], ids=oct)
def test_true_states_and_chains_are_their_owners_alone(umask: int) -> None:
    write(_TRACE)
    write("state\n1\n2\n", "t.csv")
    release = ("release", "s.toml", "t.csv", "-o", "out", "--truth", "in/mine", "--seed", 1)
    before = os.umask(umask)
    try:
        well(*release)
        well("chain", "s.toml", "-o", "chain")
    finally:
        os.umask(before)
    assert len(list(Path("in/mine").iterdir())) > 1
    assert (modes("in"), modes("in/mine")) == ({0o700}, {0o600})
    assert modes("out") == {0o666 & ~umask}
    assert (Path("chain").stat().st_mode & 0o777, modes("chain")) == (0o700, {0o600})
    if umask:
        return
    # Existing files keep their modes, and are named.
    Path("chain").chmod(0o755)
    Path("chain/forward.csv").chmod(0o644)
    said = well("chain", "s.toml", "-o", "chain", "--overwrite").stderr
    assert said.count("chmod 600 chain/forward.csv") == said.count("chmod") == 1
    assert modes("chain") == {0o644, 0o600}
    Path("in/mine/true.csv").chmod(0o644)
    assert well(*release, "--overwrite").stderr.count("chmod 600 in/mine/true.csv") == 1
