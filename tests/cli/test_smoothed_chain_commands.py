"""`mechdesign chain` keeps counts and smoothing, and `leakage` and `budget` say what the counts alone give."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import mechdesign as md
from mechdesign.cli import main
from mechdesign.data._chain_counts import CHAIN_COUNTS, counts_of
from mechdesign.errors import InputError, SmoothedChainWarning

SPECIFICATION = """
domain = { grid = { columns = 3, rows = 1, south = 50.0, north = 50.01, west = 8.0, east = 8.03 } }
prior = { checkins = { path = "c.csv", time = "time" }, smoothing = 0.1 }
cost = { distance = "euclidean" }
privacy = [{ kind = "metric", epsilon = 1, distance = "euclidean" }]
"""


def run(*arguments: object, code: int = 0) -> Result:
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == code, result.output + result.stderr
    return result


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a chain of one who goes round three cells, smoothed and not."""
    folder = tmp_path_factory.mktemp("chain")
    rows = [f"ann,50.005,{8.005 + 0.01 * (minute % 3)},2024-01-01 10:{minute:02}" for minute in range(31)]
    (folder / "c.csv").write_text("user,latitude,longitude,time\n" + "".join(f"{row}\n" for row in rows))
    (folder / "s.toml").write_text(SPECIFICATION)
    said = run("chain", folder / "s.toml", "-o", folder / "smoothed", "--smoothing", 0.1).stderr
    assert "warning: the matrices were counted with smoothing 0.1" in said
    assert "these files are private, because every count of 30 steps can be read from them exactly" in " ".join(
        said.split()
    )
    run("chain", folder / "s.toml", "-o", folder / "plain")
    return folder


def test_counts_stand_with_the_matrices_and_are_private(made: Path) -> None:
    for name, smoothing in (("smoothed", 0.1), ("plain", 0.0)):
        folder = made / name
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()} == {0o600}
        for direction, step in (("forward", (0, 1)), ("backward", (1, 0))):
            found = counts_of(folder / f"{direction}.csv")
            assert found is not None
            assert (found.smoothing, found.counts[step], found.counts.sum()) == (smoothing, 10, 30)


def test_leakage_and_budget_say_what_the_counts_alone_give(made: Path) -> None:
    smoothed, plain = made / "smoothed" / "forward.csv", made / "plain" / "forward.csv"
    found = run("leakage", "--forward", smoothed, "--epsilon", 0.1, "--steps", 10, "--json")
    assert "by the counts alone, for which no positive constant budget bounds the leakage" in found.stderr
    alone = json.loads(found.stdout)["by the counts alone"]
    assert (
        alone
        == json.loads(run("leakage", "--forward", plain, "--epsilon", 0.1, "--steps", 10, "--json").stdout)["facts"]
    )
    assert alone["largest"] == pytest.approx(1.0)
    found = run("budget", "--alpha", 1, "--steps", 4, "--forward", smoothed, "--json")
    assert "smoothing 0.1" in found.stderr
    shown = json.loads(found.stdout)
    assert shown["constant"] > 0
    assert shown["by the counts alone"]["constant"] == 0
    assert "by the counts alone" in run("budget", "--alpha", 1, "--forward", smoothed).stdout


def test_counts_of_other_matrices_are_not_used_and_that_is_said(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "smoothed", tmp_path / "c")
    (tmp_path / "c" / "forward.csv").write_text("0.5,0.5\n0.25,0.75\n")
    found = run("leakage", "--forward", tmp_path / "c" / "forward.csv", "--epsilon", 0.1, "--steps", 3)
    assert "belongs to other matrices" in found.stderr
    # A matrix under another name is the same matrix.
    shutil.copy(made / "smoothed" / "forward.csv", tmp_path / "c" / "P.csv")
    found = run("leakage", "--forward", tmp_path / "c" / "P.csv", "--epsilon", 0.1, "--steps", 3)
    assert "smoothing 0.1" in found.stderr
    # So is one that a link leads to.
    (tmp_path / "l.csv").symlink_to(tmp_path / "c" / "P.csv")
    found = run("leakage", "--forward", tmp_path / "l.csv", "--epsilon", 0.1, "--steps", 3)
    assert "smoothing 0.1" in found.stderr
    (tmp_path / "c" / CHAIN_COUNTS).unlink()
    found = run("leakage", "--forward", tmp_path / "c" / "P.csv", "--epsilon", 0.1, "--steps", 3)
    assert "smoothing" not in found.stderr


@pytest.mark.parametrize(
    "changed",
    [
        {"schema": "mechdesign-chain-counts/2"},
        {"smoothing": -1},
        {"smoothing": "0"},
        {"smoothing": None},
        {"states": 2},
        {"states": 0},
        {"states": 10**9},
        {"states": True},
        {"steps": [[0, 3, 1]]},
        {"steps": [[0, 0.5, 1]]},
        {"steps": [[0, 1, -1]]},
        {"steps": [[0, 1]]},
        {"steps": "none"},
        {"matrices": {"forward": "x"}},
        {"matrices": []},
    ],
)
def test_a_malformed_file_of_counts_is_refused(made: Path, tmp_path: Path, changed: dict[str, object]) -> None:
    shutil.copytree(made / "smoothed", tmp_path / "c")
    file = tmp_path / "c" / CHAIN_COUNTS
    file.write_text(json.dumps(json.loads(file.read_text()) | changed))
    with pytest.raises(InputError, match=r"(?i)estimate the chain again") as caught:
        counts_of(tmp_path / "c" / "forward.csv")
    assert CHAIN_COUNTS in caught.value.path


def test_what_is_no_json_is_refused_by_the_command(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "smoothed", tmp_path / "c")
    (tmp_path / "c" / CHAIN_COUNTS).write_text("[")
    found = run("leakage", "--forward", tmp_path / "c" / "forward.csv", "--epsilon", 1, "--steps", 2, code=2)
    assert f"{CHAIN_COUNTS}: cannot be read" in " ".join(found.stderr.split())


def test_an_older_file_of_counts_goes_when_nothing_is_counted(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "smoothed", tmp_path / "c")
    text = SPECIFICATION.replace('checkins = { path = "c.csv", time = "time" }, smoothing = 0.1', "uniform = true")
    (tmp_path / "s.toml").write_text(text + "[release]\ntransition = { neighbours = 4 }\n")
    run("chain", tmp_path / "s.toml", "-o", tmp_path / "c")
    assert not (tmp_path / "c" / CHAIN_COUNTS).exists()


def test_a_specification_with_a_smoothed_chain_warns(made: Path) -> None:
    text = (made / "s.toml").read_text() + "[release]\ntransition = { estimated = true, smoothing = 0.1 }\n"
    (made / "r.toml").write_text(text)
    with pytest.warns(
        SmoothedChainWarning, match=r"makes all 9 steps possible; 3 of them occur in the counts\. With the counts alone"
    ):
        chain = md.read_spec(made / "r.toml").release_settings.transition
    assert chain.smoothing == 0.1
    # So does one that names the matrix that `chain` wrote.
    (made / "p.toml").write_text(SPECIFICATION + '[release]\ntransition.path = "smoothed/forward.csv"\n')
    with pytest.warns(SmoothedChainWarning, match=r"transition\.path: smoothing 0\.1 .* 3 of them occur in the counts"):
        chain = md.read_spec(made / "p.toml").release_settings.transition
    assert chain.unsmoothed().matrix[0, 1] == 1
    (made / "q.toml").write_text(SPECIFICATION + '[release]\ntransition.path = "plain/forward.csv"\n')
    assert md.read_spec(made / "q.toml").release_settings.transition.smoothing == 0
