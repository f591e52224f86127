"""Kinds of requirement that installed packages name as entry points, and how they reach the workers of a sweep."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import mechdesign as md
from mechdesign.cli import main
from mechdesign.errors import ExtensionWarning, SpecificationError
from mechdesign.model import KINDS, finding_extensions, load_extensions
from mechdesign.runs._engines import solve
from mechdesign.runs._store import State
from mechdesign.runs._tasks import parse, prepare

SPECIFICATION = """
domain.labels = ["north", "east", "south"]
prior.uniform = true
cost.distance = "hamming"
[[privacy]]
kind = "ratio"
factor = 2
pairs = [["north", "east"], ["east", "south"]]
"""
SWEPT = SPECIFICATION + '[sweep]\n"privacy.0.factor" = [2, 3]\n'


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Install a package with a kind of requirement, and one that is broken."""
    source = (Path(__file__).parent / "test_new_requirement.py").read_text(encoding="utf-8")
    imports = source[: source.index("import pytest")]
    library = source[source.index("from mechdesign") : source.index("# --8<-- [start:ratio]")]
    code = source[source.index("# --8<-- [start:ratio]") : source.index("# --8<-- [end:ratio]")]
    (tmp_path / "ratio_kind.py").write_text(f"{imports}{library}{code}", encoding="utf-8")
    about = tmp_path / "ratio_kind-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: ratio-kind\nVersion: 1.0\n")
    (about / "RECORD").write_text("ratio_kind.py,,\n")
    point(tmp_path, "ratio_kind:RatioPrivacy")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(SPECIFICATION, encoding="utf-8")
    yield tmp_path
    sys.modules.pop("ratio_kind", None)
    if "ratio" in KINDS:
        KINDS.unregister("ratio")


def point(folder: Path, value: str) -> None:
    text = f"[mechdesign.requirements]\nratio = {value}\n"
    (folder / "ratio_kind-1.0.dist-info" / "entry_points.txt").write_text(text)


def run(*arguments: str):
    return CliRunner().invoke(main, arguments)


def test_the_command_line_loads_a_kind_and_verify_does_not(package):
    done = run("design", "s.toml", "-o", "out", "--no-report")
    assert (done.exit_code, done.stderr) == (0, "")
    KINDS.unregister("ratio")
    sys.modules.pop("ratio_kind")
    plain = run("verify", "out")
    assert (plain.exit_code, "ratio" in KINDS, "ratio_kind" in sys.modules) == (0, False, False)
    assert "ratio privacy: p(o|s)" in plain.stdout
    assert md.verify("out").holds
    assert "ratio_kind" not in sys.modules
    worded = run("verify", "out", "--extensions")
    assert (worded.exit_code, "ratio" in KINDS) == (0, True)
    assert "ratio privacy, factor between 2 pairs" in worded.stdout


def test_python_loads_none_unless_it_is_told(package):
    with pytest.raises(SpecificationError, match="is not known; found 'ratio'"):
        md.specification.parse(SPECIFICATION).problem()
    assert "ratio_kind" not in sys.modules
    load_extensions()
    load_extensions()
    assert md.specification.parse(SPECIFICATION).problem().requirements[0].kind == "ratio"


def test_nothing_is_loaded_where_all_kinds_are_known(package):
    Path("s.toml").write_text(SPECIFICATION[: SPECIFICATION.index("[[")] + KNOWN, encoding="utf-8")
    assert run("design", "s.toml", "-o", "out", "--no-report").exit_code == 0
    assert "ratio_kind" not in sys.modules


KNOWN = 'privacy = [{ kind = "metric", epsilon = 1, distance = "hamming" }]\n'


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("ratio_kind:Missing", "has no attribute 'Missing'"),
        ("no_such_module", "No module named 'no_such_module'"),
        ("ratio_kind:Fraction", "must be a class derived from RequirementKind, or a module"),
        ("mechdesign.model._requirements._kind:RequirementKind", "kind: has no name"),
    ],
)
def test_a_package_that_cannot_be_loaded_is_named(package, value, said):
    point(package, value)
    done = run("design", "s.toml", "-o", "out")
    assert done.exit_code == 2
    assert "warning: the requirement ratio of ratio-kind" in done.stderr
    assert said in done.stderr
    assert "must be one of metric, threshold" in done.stderr
    with finding_extensions(), pytest.warns(ExtensionWarning) as warned:
        assert ("ratio" in KINDS, "other" in KINDS) == (False, False)
    assert len(warned) == 1


def test_a_module_registers_its_kinds_itself(package):
    with Path("ratio_kind.py").open("a", encoding="utf-8") as file:
        file.write("\nfrom mechdesign.model._requirements._kinds import register\nregister(RatioPrivacy)\n")
    point(package, "ratio_kind")
    with finding_extensions():
        assert "ratio" in KINDS
        assert "unknown" not in KINDS


def test_a_kind_reaches_a_worker_that_has_not_met_it(package):
    with finding_extensions():
        sweep = parse(SWEPT)
    _, tasks = prepare(sweep)
    sent = pickle.dumps(list(tasks.values()))
    for task in tasks.values():
        assert task.versions["ratio-kind"] == "1.0"
    KINDS.unregister("ratio")
    received = pickle.loads(sent)
    assert "ratio" not in KINDS
    assert [solve(task).row.state for task in received] == [State.DONE] * 2
    assert "ratio" in KINDS


def test_a_sweep_over_a_key_of_such_a_kind(package):
    Path("s.toml").write_text(SWEPT, encoding="utf-8")
    done = run("sweep", "s.toml", "-o", "out", "--jobs", "1")
    assert (done.exit_code, "2 designs: 2 done" in done.stdout) == (0, True), done.stderr
