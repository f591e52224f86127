"""What the version before the rooms wrote is opened, verified and gone on with."""

from __future__ import annotations

import shutil
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import mechdesign as md
from mechdesign.certify import _bundle
from mechdesign.cli import main
from mechdesign.data import _chain_counts
from mechdesign.leakage import _accountant_file, _ledger_file
from mechdesign.model._requirements import _extensions
from mechdesign.runs import _store
from mechdesign.traces import _published

KEPT = Path(__file__).parent / "reference" / "before_rooms"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the files, for their owner alone, as they were written."""
    shutil.copytree(KEPT, tmp_path / "old")
    for path in (tmp_path / "old").rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    monkeypatch.chdir(tmp_path / "old")
    return tmp_path / "old"


@pytest.mark.parametrize("line", [["verify", "design"], ["inspect", "design"], ["verify", "schedule"]])
def test_designs_and_schedules_verify(folder: Path, line: list[str]) -> None:
    done = CliRunner().invoke(main, line)
    assert done.exit_code == 0, done.output


def test_a_design_is_loaded(folder: Path) -> None:
    design = md.Design.load("design")
    assert design.certificate.holds
    assert design.problem.prior.tolist() == [0.4, 0.3, 0.2, 0.1]
    assert md.verify("design").differences(design.certificate) == ()


def test_releases_are_loaded(folder: Path) -> None:
    assert len(md.tables.load("table")) == 10
    trace = md.traces.ReleasedTrace.load("trace")
    assert (len(trace.places), trace.epsilon) == (3, Fraction(3, 2))
    assert all(proof is not None and proof.holds for proof in trace.certificates)


def test_a_ledger_is_gone_on_with(folder: Path) -> None:
    ledger = md.Ledger(path="ledger.json")
    assert ledger.spent.epsilon == Fraction(1, 2)
    ledger.spend("another histogram", "one person", epsilon=1)
    assert md.Ledger(path="ledger.json").spent.epsilon == Fraction(3, 2)
    with pytest.raises(md.errors.BudgetExceededError):
        ledger.spend("too much", "one person", epsilon=2)


def test_an_accountant_is_gone_on_with(folder: Path) -> None:
    accountant = md.leakage.Accountant.load("accountant.json")
    assert np.isclose(accountant.leakage.max(), 0.259968, atol=1e-6)
    accountant.release(0.1)
    assert len(md.leakage.Accountant.load("accountant.json").epsilons) == 3


@pytest.mark.parametrize("name", ["spec.toml", "schedule.toml", "walk.toml"])
def test_specifications_are_read(folder: Path, name: str) -> None:
    assert next(md.read_spec(name).problems()).prior.size in (3, 4)


def test_a_specification_of_a_table_is_read(folder: Path) -> None:
    assert len(md.specification.read("table.toml").release("table.csv", rng=1).release) == 10


def test_the_texts_by_which_files_are_known_stay() -> None:
    """Moves rename modules, and not what stands in files: of these, some look like modules."""
    assert (_bundle.SCHEMA, _bundle.SCHEMA_CLAIMS) == ("mechdesign-certificate/1", "mechdesign-certificate/2")
    assert (_ledger_file._SCHEMA, _ledger_file._EARLIER) == ("mechdesign.ledger/2", "mechdesign.ledger/1")
    assert _accountant_file._SCHEMA == "mechdesign.leakage.accountant/2"
    assert _accountant_file._FIRST_SCHEMA == "mechdesign.leakage.accountant/1"
    assert _chain_counts._SCHEMA == "mechdesign-chain-counts/1"
    assert _published.SCHEMA == "mechdesign-release/1"
    assert _store._SCHEMA == "mechdesign.records/1"
    assert _extensions.EXTENSIONS == "mechdesign.requirements"
