"""The README's examples run as they stand."""

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import mechdesign as md
from mechdesign.cli import main

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.M | re.S)


@pytest.mark.parametrize("code", blocks("python"), ids=lambda code: code.split("(")[0].splitlines()[-1][:20])
def test_python_examples_run(code, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(code, "README.md", "exec"), names)
    if "design" in names:
        certificate = names["design"].certificate
        assert certificate.holds
        assert certificate.relative_gap <= 1e-8
        assert md.verify(tmp_path / "city").holds


def test_the_specification_designs_and_verifies(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    specification, policy = blocks("toml")
    rng = np.random.default_rng(0)
    rows = [f"ann,{40.75 + rng.normal(0, 0.02)},{-73.97 + rng.normal(0, 0.02)}" for _ in range(300)]
    (tmp_path / "checkins.csv").write_text("\n".join(["user,lat,lon", *rows]))
    # The README's map has 120 cells; a coarser one says the same in a tenth of the time.
    specification = specification.replace("columns = 12, rows = 10", "columns = 4, rows = 3")
    (tmp_path / "city.toml").write_text(specification)
    (tmp_path / "blocks.toml").write_text(specification.split("[[privacy]]")[0] + policy)
    (tmp_path / "trace.csv").write_text("latitude,longitude\n40.75,-73.97\n40.76,-73.96\n")
    for command in (
        ["policy", "blocks.toml", "--plot", "graph.png"],
        ["design", "blocks.toml", "-o", "blocks"],
        ["release", "blocks.toml", "trace.csv", "-o", "released"],
        ["design", "city.toml", "-o", "city"],
        ["verify", "city"],
        ["attack", "city"],
        ["sample", "city", "--secret", "7"],
        ["export", "city", "--format", "parquet", "-o", "city.parquet"],
    ):
        result = CliRunner().invoke(main, command)
        assert result.exit_code == 0, result.output


def test_every_link_points_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (Path(__file__).parents[1] / target).exists(), target
