"""A file that runs backwards in time gives the chain of the file that runs forwards, also where times are coarse."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_examples import run, well
from rows import each_row

PLACES = ((46.9512, 7.4391), (46.9561, 7.4472), (46.9604, 7.4555))
SPECIFICATION = """
[domain]
grid = { columns = 3, rows = 3, south = 46.95, north = 46.962, west = 7.437, east = 7.457 }
[prior]
checkins = { path = "p.csv", user = "user", latitude = "lat", longitude = "lon", time = "time" }
smoothing = 1
[cost]
distance = "euclidean"
[[privacy]]
kind = "metric"
epsilon = 1
distance = "euclidean"
"""
FORMS = {
    "dates, ten a day": lambda k: f"2023-03-{1 + k // 10:02d}",
    "seconds, two points in each": lambda k: f"2023-03-01T08:00:{k // 2:02d}Z",
}


def write(points: list[str]) -> None:
    Path("p.csv").write_text("user,time,lat,lon\n" + "\n".join(points) + "\n")


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(SPECIFICATION)


@each_row("name", list(FORMS))
def test_equal_times_are_in_the_order_of_the_rows(name: str) -> None:
    points = [
        f"p,{FORMS[name](k)},{PLACES[k % 3][0] + 1e-6 * k:.6f},{PLACES[k % 3][1] + 1e-6 * k:.6f}" for k in range(60)
    ]
    chains = []
    for order in (points, points[::-1]):
        write(order)
        well("chain", "s.toml", "-o", "chain", "--overwrite")
        chains.append((Path("chain/forward.csv").read_text(), Path("chain/backward.csv").read_text()))
    assert chains[0] == chains[1]
    # A file that runs half forwards and half backwards leaves the order open.
    write(points[30:][::-1] + points[:30])
    refused = run("chain", "s.toml", "-o", "chain")
    assert refused.exit_code == 2
    assert "neither ascend nor descend" in refused.output.replace("\n", " ")
