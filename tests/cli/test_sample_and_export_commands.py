"""`mechdesign sample` and `mechdesign export`."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path

import pytest
from cli_examples import run

import mechdesign as md


def test_samples_are_those_of_the_channel(made):
    drawn = run("sample", made, "--secret", "pub", "--size", 200, "--seed", 7).stdout.splitlines()
    channel = md.Channel.load(made)
    expected = channel.sample("pub", 200, 7)
    assert drawn == [channel.observables[index] for index in expected]
    rows = list(
        csv.DictReader(io.StringIO(run("sample", made, "--secret", 2, "--size", 200, "--seed", 7, "--csv").stdout))
    )
    assert [int(row["observable_index"]) for row in rows] == expected.tolist()
    assert [row["observable"] for row in rows] == drawn
    rehearsed = run("sample", made, "--secret", "home", "--seed", 1)
    assert "rehearsal; never publish them" in " ".join(rehearsed.stderr.split())
    drawn_for_real = run("sample", made, "--secret", "home")
    assert drawn_for_real.stdout.strip() in channel.observables
    assert drawn_for_real.stderr == ""
    assert run("sample", made, "--secret", "home", "--size", 0).stdout == ""


@pytest.mark.parametrize("secret", ["cinema", "4", "-1", "1.0", ""])
def test_samples_of_unknown_secrets(made, secret):
    result = run("sample", made, "--secret", secret)
    assert result.exit_code == 2
    assert "a label such as home, work, pub, or an index from 0 to 3" in result.stderr
    assert result.stdout == ""


def test_samples_by_numbers_that_are_labels(tmp_path):
    distance = md.distances.hamming(2)
    domain = md.Domain.from_labels(["1", "2"])
    md.design(md.Problem([0.5, 0.5], distance, [md.MetricPrivacy(1, distance)], secrets=domain)).save("m")
    assert run("sample", "m", "--secret", "2").exit_code == 0
    result = run("sample", "m", "--secret", "0")
    assert result.exit_code == 2
    assert "is not a label; it is not read as an index" in " ".join(result.stderr.split())


def test_samples_need_a_size(made):
    assert run("sample", made, "--secret", "home", "--size", -1).exit_code == 2
    assert run("sample", made).exit_code == 2


@pytest.mark.parametrize("form", ["csv", "json", "npz", "parquet", "mps", "js"])
def test_export_to_a_file_and_to_standard_output(made, form):
    printed = run("export", made, "--format", form)
    assert printed.exit_code == 0, printed.stderr
    assert run("export", made, "--format", form, "-o", f"f.{form}").exit_code == 0
    assert Path(f"f.{form}").read_bytes() == printed.stdout_bytes
    assert run("export", made, "-o", f"g.{form}").exit_code == 0
    assert Path(f"g.{form}").read_bytes() == printed.stdout_bytes
    start = {
        "csv": b"secret,home,work,pub,gym\n",
        "json": b'{\n "title": "A line"',
        "npz": b"PK",
        "parquet": b"PAR1",
        "mps": b"* the objective is the cost times 1 ",
        "js": b"// A certified privacy mechanism",
    }
    assert printed.stdout_bytes.startswith(start[form])


def test_the_exported_program_has_the_optimum_that_was_certified(made):
    highspy = pytest.importorskip("highspy")
    found = {}
    for name, arguments in (("few", []), ("all", ["--all-rows"])):
        assert run("export", made, "--format", "mps", "-o", f"{name}.mps", *arguments).exit_code == 0
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.readModel(f"{name}.mps")
        solver.run()
        found[name] = solver.getInfo().objective_function_value, solver.getNumRow()
    cost = md.verify(made).expected_cost
    assert found["few"][0] == pytest.approx(cost, rel=1e-7)
    assert found["all"][0] == pytest.approx(cost, rel=1e-7)
    assert found["all"][1] > found["few"][1]


def test_a_classic_script_is_written(made):
    assert run("export", made, "--classic", "-o", "channel.js").exit_code == 0
    text = Path("channel.js").read_text(encoding="utf-8")
    assert text.startswith("var mechdesign = ")
    assert "const { sample, verify } = mechdesign;" in text
    assert run("export", made, "-o", "channel.mjs").exit_code == 0
    assert 'import { sample, verify } from "./channel.mjs";' in Path("channel.mjs").read_text(encoding="utf-8")


def test_exports_that_cannot_be(made, tmp_path):
    unknown = run("export", made, "--format", "xml")
    assert unknown.exit_code == 2
    assert "is not known; found 'xml'; must be one of csv, json, npz, parquet, mps, geojson, js" in unknown.stderr
    assert run("export", made, "-o", "f.xml").exit_code == 2
    assert run("export", made).exit_code == 2
    assert run("export", made, "--format", "csv", "--all-rows").exit_code == 2
    classic = run("export", made, "--format", "csv", "--classic")
    assert (classic.exit_code, "--classic goes with --format js" in classic.stderr) == (2, True)
    assert run("export", made, "--format", "csv", "-o", tmp_path).exit_code == 2
    assert run("export", made, "--format", "csv", "-o", "none/f.csv").exit_code == 2
    assert not Path("none").exists()
    (made / "dual.npz").write_bytes(b"")
    result = run("export", made, "--format", "csv", "-o", "f.csv")
    assert result.exit_code == 1
    assert not Path("f.csv").exists()


def test_parquet_without_its_package(made, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = run("export", made, "--format", "parquet", "-o", "f.parquet")
    assert result.exit_code == 2
    assert "pip install 'mechdesign[parquet]'" in result.stderr
    assert not Path("f.parquet").exists()


def test_an_ending_of_another_format_is_told(made):
    assert (
        "a.json is in the format csv, although its suffix belongs to json"
        in run("export", made, "--format", "csv", "-o", "a.json").stderr
    )
    assert "although" not in run("export", made, "--format", "csv", "-o", "a.csv").stderr
