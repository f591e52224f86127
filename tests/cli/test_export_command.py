"""`mechdesign export`."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import pytest
from cli_examples import assert_wrong_usage, well, write

import mechdesign as md

STARTS = {
    "csv": b"secret,home,work,pub,gym\n",
    "json": b'{\n "title": "A line"',
    "npz": b"PK",
    "parquet": b"PAR1",
    "mps": b"* the objective is the cost times 1 ",
    "js": b"// A certified privacy mechanism",
}
TOWN = """
title = "Tokyo"
domain.grid = { columns = 4, rows = 3, south = 35.6, north = 35.8, west = 139.6, east = 139.9 }
prior.uniform = true
cost.distance = "euclidean"
privacy = [{ kind = "metric", epsilon = 0.5, distance = "euclidean" }]
"""


def test_files_and_standard_output_hold_the_same(made: Path) -> None:
    for form, start in STARTS.items():
        if form == "parquet":
            pytest.importorskip("pyarrow")
        printed = well("export", made, "--format", form).stdout_bytes
        well("export", made, "--format", form, "-o", f"f.{form}")
        well("export", made, "-o", f"g.{form}")
        assert Path(f"f.{form}").read_bytes() == Path(f"g.{form}").read_bytes() == printed, form
        assert printed.startswith(start), form
    told = well("export", made, "--format", "csv", "-o", "a.json").stderr
    assert "a.json is in the format csv, although its suffix belongs to json" in told


def test_scripts_classic_and_modern_are_written(made: Path) -> None:
    well("export", made, "--classic", "-o", "channel.js")
    text = Path("channel.js").read_text(encoding="utf-8")
    assert text.startswith("var mechdesign = ")
    assert "const { sample, verify } = mechdesign;" in text
    well("export", made, "-o", "channel.mjs")
    assert 'import { sample, verify } from "./channel.mjs";' in Path("channel.mjs").read_text(encoding="utf-8")


def test_the_map_holds_cells_prior_and_answers() -> None:
    well("design", write(TOWN), "-o", "city", "--no-report")
    well("export", "city", "-o", "f.geojson")
    found = json.loads(Path("f.geojson").read_text())
    assert (found["type"], found["title"], len(found["features"])) == ("FeatureCollection", "Tokyo", 12)
    channel, area = md.Channel.load("city"), 0.0
    for index, feature in enumerate(found["features"]):
        properties = feature["properties"]
        assert properties["index"] == index
        assert properties["prior"] == pytest.approx(1 / 12)
        assert properties["answer_probability"] == pytest.approx(channel.matrix[:, index].mean())
        ring = feature["geometry"]["coordinates"][0]
        assert ring[0] == ring[-1]
        signed = sum(a[0] * b[1] - b[0] * a[1] for a, b in itertools.pairwise(ring)) / 2
        # Counter-clockwise, as RFC 7946 wants it.
        assert signed > 0
        area += signed
    assert area == pytest.approx(0.2 * 0.3)


def test_wrong_usage(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("folder").mkdir()
    formats = "is not known; found 'xml'; must be one of csv, json, npz, parquet, mps, geojson, js"
    assert_wrong_usage(
        {
            "export made --format xml": formats,
            "export made -o f.xml": "xml",
            "export made": "--format",
            "export made --format csv --classic": "--classic goes with --format js",
            "export made --format csv -o folder": "folder",
            "export made --format csv -o none/f.csv": "none",
            "export made --format geojson -o f.geojson": "have no latitude and longitude, which GeoJSON needs",
        }
    )
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "pyarrow", None)
        assert_wrong_usage({"export made --format parquet -o f.p": "pip install 'mechdesign[parquet]'"})
    (made / "dual.npz").write_bytes(b"")
    assert_wrong_usage({"export made --format csv -o f.csv": "dual.npz"})
