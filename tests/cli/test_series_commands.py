"""Monthly counts on the command line: a chain of monthly files, a series of a ledger, a release for each month."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from cli_examples import assert_wrong_usage, flat, run, well

import mechdesign as md
from mechdesign.certify._exact import exact_text
from mechdesign.data.matrices import read_dense
from mechdesign.leakage.accounting import begin_ledger
from mechdesign.specification._table_specification import people_of

VALUES = ("employed", "unemployed", "inactive")
SPECIFICATION = """
title = "Status"
domain.attributes.status = ["employed", "unemployed", "inactive"]
table = { person = "person", step = "month" }
policy.kind = "full"
release = { kind = "histogram", epsilon = "planned" }
ledger = { path = "l.json" }
"""


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    chain = np.array([[0.96, 0.02, 0.02], [0.25, 0.6, 0.15], [0.04, 0.03, 0.93]])
    rng = np.random.default_rng(1)
    states = rng.choice(3, size=300, p=[0.6, 0.1, 0.3])
    lines = []
    for month in range(1, 5):
        rows = [f"p{person},{VALUES[state]},2025-{month:02}" for person, state in enumerate(states)]
        lines += rows
        Path(f"{month}.csv").write_text("\n".join(["person,status,month", *rows]) + "\n")
        states = np.array([rng.choice(3, p=chain[state]) for state in states])
    Path("all.csv").write_text("\n".join(["person,status,month", *lines]) + "\n")
    Path("s.toml").write_text(SPECIFICATION)
    return


def a_series(*options: str) -> str:
    begin_ledger("l.json", 2)
    well("chain", "s.toml", "all.csv", "-o", "flows")
    return flat(well("ledger", "series", "l.json", "--alpha", "1", "--chain", "flows", *options).stdout)


def test_a_chain_of_monthly_files_is_that_of_one_file_with_a_column() -> None:
    said = flat(well("chain", "s.toml", "all.csv", "-o", "one").stderr)
    assert "900 pairs of 300 people" in said
    # The budgets of the note keep their promise, as printed.
    for noted, count in re.findall(r"([0-9.]+) at (?:every step, without|each of (12) steps)", said):
        md.Ledger().add_series(
            alpha=1,
            backward=read_dense(Path("one/backward.csv"), header=False, index=False),
            forward=read_dense(Path("one/forward.csv"), header=False, index=False),
            plan=[Fraction(noted)] * int(count or 2000),
            history="others",
        )
    assert "at each of 12 steps" in said
    # With a column of steps the order of files does not matter; without one it is the order of the steps.
    well("chain", "s.toml", "4.csv", "1.csv", "3.csv", "2.csv", "-o", "two")
    Path("plain.toml").write_text(SPECIFICATION.replace(', step = "month"', ""))
    well("chain", "plain.toml", "1.csv", "2.csv", "3.csv", "4.csv", "-o", "three")
    for name in ("forward.csv", "backward.csv", "states.csv", "domain.json"):
        assert Path("one", name).read_bytes() == Path("two", name).read_bytes() == Path("three", name).read_bytes()
    assert Path("one/forward.csv").stat().st_mode & 0o777 == 0o600
    shutil.copy("all.csv", "two/states.csv")
    assert_wrong_usage({"chain s.toml two/states.csv -o two --overwrite": "is the file of two/states.csv"})
    # A pair counts from one step to the next only, and each value keeps its row.
    Path("gap.csv").write_text("person,status,month\na,employed,2025-01\na,employed,2025-02\na,inactive,2025-04\n")
    well("chain", "s.toml", "gap.csv", "-o", "gap")
    assert Path("gap/forward.csv").read_text() == "1.0,0.0,0.0\n0.0,0.0,0.0\n0.0,0.0,0.0\n"


def test_the_step_of_a_file_is_read_from_its_name_and_a_hole_is_no_pair() -> None:
    Path("plain.toml").write_text(SPECIFICATION.replace(', step = "month"', ""))
    months = [f"2025-{month:02}.csv" for month in range(1, 5)]
    for month, name in enumerate(months, start=1):
        shutil.copy(f"{month}.csv", name)
        for folder in (f"{name[:-4]}/status", f"202{month}/0{month}", f"v2/{month}"):
            Path(folder).parent.mkdir(exist_ok=True)
            shutil.copy(name, folder + ".csv")
    for names, said in (
        (months, "first step: 2025-01 (2025-01.csv), last step: 2025-04 (2025-04.csv), missing between them: 0"),
        ([f"{name[:-4]}/status.csv" for name in months], "first step: 2025-01 (2025-01/status.csv)"),
        (
            [f"v2/{month}.csv" for month in range(1, 5)],
            "first step: 1 (v2/1.csv), last step: 4 (v2/4.csv)",
        ),
    ):
        found = flat(well("chain", "plain.toml", *names, "-o", "all", "--overwrite").stderr)
        assert said in found
        assert "900 pairs" in found
    said = flat(well("chain", "plain.toml", "1.csv", "2.csv", "4.csv", "-o", "hole").stderr)
    assert "last step: 4 (4.csv), missing between them: 1" in said
    assert "300 pairs" in said
    well("chain", "plain.toml", "1.csv", "2.csv", "-o", "two")
    assert Path("hole/forward.csv").read_bytes() == Path("two/forward.csv").read_bytes()
    for name in ("2025-1", "2025-10", "2025-2", "2024-1", "jan", "feb", "dec2024", "jan2025", "x7", "x2025-01"):
        shutil.copy("1.csv", f"{name}.csv")
    files = "is missing, and the names of the files are not those of steps in their order"
    wrong = (
        "2025-1.csv 2025-10.csv 2025-2.csv", "2024-1.csv 2025-1.csv", "2.csv 1.csv", "1.csv 2.csv 1.csv", "1.csv 1.csv",
        "1.csv ./1.csv", "jan.csv feb.csv", "dec2024.csv jan2025.csv", "x7.csv x2025-01.csv", "2025-01.csv 2.csv",
        "2021/01.csv 2022/02.csv", "1.csv",
    )  # fmt: skip
    assert_wrong_usage({f"chain plain.toml {names} -o x": files for names in wrong})


def test_chains_that_cannot_be_counted_are_refused() -> None:
    Path("twice.csv").write_text("person,status,month\na,employed,2025-01\na ,inactive,2025-01\n")
    Path("spelt.csv").write_text("person,status,month\nJos\u00e9,employed,2025-01\nJose\u0301,inactive,2025-01\n")
    Path("odd.csv").write_text("person,status,month\na,employed,January\n")
    Path("counts.csv").write_text("person,status,month,count\na,employed,2025-01,3\nb,inactive,2025-01,2\n")
    # 24301 would be next to 2025-01 if months were integers.
    Path("mixed.csv").write_text("person,status,month\na,employed,2025-01\na,inactive,24301\n")
    assert_wrong_usage(
        {
            "chain s.toml twice.csv -o x": "twice in one time step",
            "chain s.toml spelt.csv -o x": "twice in one time step",
            "chain s.toml counts.csv -o x": "each row would count as one record",
            "chain s.toml odd.csv -o x": "odd.csv, line 2",
            "chain s.toml mixed.csv -o x": "mixed.csv, column month: is of another kind than the other steps; must be",
            "chain s.toml 1.csv -o x": "1.csv: has no person at two successive steps; must be rows of the same",
            "chain s.toml 1.csv 3.csv -o x": "1.csv, 3.csv: has no person at two successive steps",
            "chain s.toml 1.csv '' -o x": "is empty",
            "chain s.toml 1.csv 2.csv 1.csv -o x": "the file of each step once",
            "chain s.toml -o x": "give tables to",
            "chain s.toml 1.csv none.csv -o x": "none.csv: cannot be opened",
            "chain s.toml 1.csv 3.csv -o x --every 5": "--every",
            "chain s.toml all.csv --ends stay -o x": "--ends",
        }
    )
    Path("s.toml").write_text(SPECIFICATION.replace(', step = "month"', ""))
    assert_wrong_usage({"chain s.toml all.csv -o x": "table.step"})
    Path("s.toml").write_text(SPECIFICATION.replace('person = "person"', "person = false"))
    assert_wrong_usage({"chain s.toml all.csv -o x": "follows each person"})
    assert not Path("x").exists()


def test_a_month_is_released_by_one_command() -> None:
    assert "12 × 0.1" in a_series("--steps", "12", "--history", "others")
    planned = md.Ledger(path="l.json").series.planned("2025-01")
    assert "ε = 0.1" in flat(well("table", "s.toml", "--step", "2025-01").stdout)
    said = flat(well("table", "s.toml", "1.csv", "--step", "2025-01", "-o", "r1", "--no-report").stderr)
    for sentence in (
        "This release (step 2025-01)",
        "All releases so far together (1)",
        "Each value, given all",
        "each person",
    ):
        assert sentence in said
    remarks = json.loads(Path("r1/release.json").read_text())["remarks"]
    assert any("α = 1" in remark for remark in remarks)
    series = md.Ledger(path="l.json").series
    assert series.steps == {"2025-01": planned}
    before = Path("l.json").read_bytes()
    assert_wrong_usage(
        {
            "table s.toml 2.csv -o x": "no step is given",
            "table s.toml 1.csv --step 2025-01 -o x": f"(mechdesign ledger plan {Path('l.json').resolve()} none)",
            "table s.toml 2.csv --step 2025-1 -o x": "--step",
            "table s.toml 2.csv --step 2 -o x": "another kind",
            "table s.toml 4.csv --step 2025-04 -o x": "--gap",
            "table s.toml 3.csv --step 2025-02 -o x": "3.csv, line 2",
            "table s.toml": "--step",
            "table s.toml --step 5": "another kind",
            "table s.toml 2.csv --step 5 --seed 1 -o x": "another kind",
        }
    )
    well("table", "s.toml", "2.csv", "--step", "2025-02", "--seed", "1", "-o", "seeded", "--no-report")
    assert Path("l.json").read_bytes() == before
    well("table", "s.toml", "4.csv", "--step", "2025-04", "--gap", "-o", "r4", "--no-report")
    well("table", "s.toml", "3.csv", "--step", "2025-03", "-o", "r3", "--no-report")
    assert list(series.steps) == ["2025-01", "2025-03", "2025-04"]
    Path("s.toml").write_text(SPECIFICATION.replace('"planned"', "0.5"))
    assert_wrong_usage({"table s.toml 2.csv -o x": "--no-series"})
    said = flat(well("table", "s.toml", "2.csv", "--no-series", "-o", "r2", "--no-report").stderr)
    assert "outside the series" in said
    assert [entry.series for entry in md.Ledger(path="l.json").entries] == [None, None, None, False]
    shown = well("ledger", "show", "l.json").stdout
    for said in ("alpha     ", "2025-03", "9 ×", "3 of 12 budgets are used"):
        assert said in shown
    well("ledger", "check", "l.json", "r1", "r2", "r3", "r4")


def test_plans_are_replaced_by_a_command() -> None:
    a_series("--steps", "12", "--history", "own")
    series = md.Ledger(path="l.json").series
    assert len(str(float(series.planned(1)))) <= 6
    for options, plan in (
        ("none", None),
        ("--plan constant", "constant"),
        ("--plan allocated --steps 4", ("allocated", 4)),
        ("--steps 3", ("equal", 3)),
    ):
        well("ledger", "plan", "l.json", *options.split())
        assert series.plan == plan
    assert "at every step, without an end" in well("ledger", "plan", "l.json", "--plan", "constant").stdout
    md.leakage.write_budgets("b.csv", [0.1, 0.2])
    well("ledger", "plan", "l.json", "--budgets", "b.csv")
    assert series.plan == [Fraction(1, 10), Fraction(1, 5)]
    well("ledger", "plan", "l.json", "--plan", "constant")
    domain = json.loads(Path("flows/domain.json").read_text())["domain"]
    md.Ledger(path="l.json").spend(
        "a count", "b", epsilon=series.planned(1), step=1, planned=True, complete=3, domain=domain
    )
    # A plan without an end is never used up.
    constant = exact_text(series.budgets[0])
    assert json.loads(well("ledger", "show", "l.json", "--json").stdout)["plan"] == [constant]
    assert "almost nothing is left" not in flat(well("ledger", "plan", "l.json", "--plan", "constant").stderr)
    begin_ledger("plain.json", 2)
    kept = "ledger series plain.json --alpha 1"
    flows = "--backward flows/backward.csv --forward flows/forward.csv --history others"
    assert_wrong_usage(
        {
            "ledger plan l.json": "--steps",
            "ledger plan l.json none --steps 9": "either none",
            "ledger plan l.json none --plan constant": "either none",
            "ledger plan l.json none --budgets b.csv": "either none",
            "ledger plan l.json --plan constant --steps 3": "--steps",
            "ledger plan l.json --plan allocated": "--steps",
            "ledger plan l.json --budgets b.csv --steps 3": "--budgets",
            "ledger plan plain.json --steps 3": "no series",
            f"{kept} --history others": "--chain",
            f"{kept} --chain flows {flows}": "--chain",
            f"{kept} --backward flows/backward.csv --history others": "--forward",
            f"{kept} --backward none --forward none --history others": "--backward",
            f"{kept} --chain flows": "--history",
            f"{kept} --chain nowhere --history others": "nowhere",
            f"ledger series plain.json --alpha 0 {flows}": "--alpha",
            f"ledger series nowhere.json --alpha 1 {flows}": "nowhere.json",
        }
    )
    said = flat(well(*f"{kept} {flows} --steps 2".split()).stdout)
    assert "2 ×" in said
    # Where nobody moves, the plan is α/T, which needs no correlation.
    Path("same.csv").write_text("1,0,0\n0,1,0\n0,0,1\n")
    for forward, gains_little in (("same.csv", True), ("flows/forward.csv", False)):
        said = well(*f"{kept} --forward {forward} --backward none --steps 12 --history others".split()).stderr
        assert ("gains less than a tenth" in flat(said)) == gains_little, forward
    begin_ledger("rho.json", None, 2)
    small = "ledger series rho.json --alpha 1 --forward same.csv --backward none --steps 12 --history others"
    assert "gains less than a tenth" not in flat(well(*small.split()).stderr)
    said = flat(well(*f"{kept} --forward flows/forward.csv --backward none --history others".split()).stderr)
    assert "does not know the backward" in said


def test_the_plan_of_the_ledger_of_the_option_is_read() -> None:
    a_series("--steps", "12", "--history", "others")
    planned = f"{float(md.Ledger(path='l.json').series.planned(1)):.6g}"
    begin_ledger("plain.json", 2)
    for name, ledger in (("none", ""), ("plain", 'ledger.path = "plain.json"')):
        Path(f"{name}.toml").write_text(SPECIFICATION.replace('ledger = { path = "l.json" }', ledger))
        before = Path("l.json").read_bytes()
        chosen = ("--ledger", "l.json", "--step", "2025-01")
        assert planned in well("table", f"{name}.toml", *chosen).stdout
        said = well("table", f"{name}.toml", "1.csv", *chosen, "--seed", "1", "-o", f"seeded-{name}", "--no-report")
        assert planned in said.stdout
        assert Path("l.json").read_bytes() == before
    well("table", "plain.toml", "1.csv", *chosen, "-o", "r1", "--no-report")
    assert list(md.Ledger(path="l.json").series.steps) == ["2025-01"]
    assert not md.Ledger(path="plain.json").entries
    Path("part.toml").write_text(SPECIFICATION.replace('"l.json"', '"plain.json", division = "clinics", part = "a"'))
    well("table", "part.toml", "2.csv", "--ledger", "l.json", "--step", "2025-02", "-o", "r2", "--no-report")
    assert md.Ledger(path="l.json").entries[-1].part == ("clinics", "a")
    assert_wrong_usage(
        {
            "table s.toml --step 2025-03 --ledger plain.json": "no ledger has a series",
            "table s.toml 1.csv --step 2025-03 --ledger nowhere.json --seed 1 -o x": "ledger new",
            "table s.toml --step 2025-03 --ledger nowhere.json": "ledger new",
        }
    )


def test_the_values_of_a_series_are_those_of_a_chain_of_a_table_or_of_the_first_release() -> None:
    note = "the first release determines the values of the series"
    begin_ledger("l.json", 2)
    well("chain", "s.toml", "all.csv", "-o", "flows")
    series = "ledger series l.json --alpha 1 --steps 12 --history others"
    matrices = "--backward flows/backward.csv --forward flows/forward.csv"
    assert note not in flat(well(*series.split(), "--chain", "flows").stderr)
    assert note in flat(well(*series.split(), *matrices.split()).stderr)
    # A chain of places names no values of a table.
    Path("places.toml").write_text(
        'domain = { points = [[0, 0], [1, 0], [2, 0]] }\nprior.uniform = true\ncost.distance = "euclidean"\n'
        'privacy = [{ kind = "graph", epsilon = 1, complete = true }]\n'
        'release = { transition = { path = "flows/forward.csv" }, history = "others" }\n'
    )
    well("chain", "places.toml", "-o", "places")
    assert note in flat(well(*series.split(), "--chain", "places").stderr)
    # The digest of the table's values does not remain beside another chain.
    well("chain", "s.toml", "all.csv", "-o", "places", "--overwrite")
    assert Path("places/domain.json").exists()
    well("chain", "places.toml", "-o", "places", "--overwrite")
    assert not Path("places/domain.json").exists()
    well("table", "s.toml", "1.csv", "--step", "2025-01", "-o", "r1", "--no-report")
    Path("order.toml").write_text(SPECIFICATION.replace('"employed", "unemployed"', '"unemployed", "employed"'))
    assert_wrong_usage({"table order.toml 2.csv --step 2025-02 -o x": "the values of the chain in their order"})


def test_a_ledger_with_a_series_shows_entries_and_what_is_left() -> None:
    a_series("--steps", "12", "--history", "others")
    ledger = md.Ledger(path="l.json")
    kept = {"complete": 3, "domain": json.loads(Path("flows/domain.json").read_text())["domain"]}
    shown = well("ledger", "show", "l.json").stdout
    assert "plan      ε = 12 ×" in shown
    assert "α/T" in shown
    assert "next step" not in shown
    ledger.spend("a count", "b", epsilon=ledger.series.planned("2025-11"), step="2025-11", planned=True, **kept)
    for part in ("north", "south"):
        ledger.spend("a count", "b", epsilon="0.05", part=("clinics", part), step="2025-12", **kept)
    ledger.spend("ages", "b", epsilon="0.001", series=False)
    rows = [line.split() for line in well("ledger", "show", "l.json").stdout.splitlines()]
    leakage = ledger.series.leakage
    today, who = ledger.entries[0].when[:10], ledger.entries[0].who
    for step, row in {
        "2025-11": ["1", f"{float(ledger.entries[0].epsilon):.4g}", today, who, "a", "count"],
        "2025-12": ["2", "0.05", today, who, "a", "count,", "clinics:", "south"],
    }.items():
        found = next(each for each in reversed(rows) if each and each[0] == step)
        assert 0 <= float(found.pop(3)) - leakage[step] < 1e-3
        assert found == [step, *row]
    assert ["none", "–", "0.001", "–", today, who, "ages"] in rows
    assert "10 × 0.1" in (said := flat(well("ledger", "show", "l.json").stdout))
    assert "; 2 of 12 budgets are used" in said
    # The last month of a year is followed by the first one of the next year.
    most = ledger.series.largest("2026-01")
    assert 0 <= most - Fraction(said.partition("next step 2026-01 it may spend at most ε = ")[2].split()[0]) < 1e-4
    ledger.series.plan = [0.01]
    ledger.spend("a count", "b", epsilon="0.01", step="2026-01", **kept)
    assert "nothing is left; 1 of 1 budgets" in (said := flat(well("ledger", "show", "l.json").stdout))
    assert "next step 2026-02 it may spend at most ε = 0" in said
    mixed = md.Ledger(rho=1, path="rho.json")
    mixed.add_series(alpha=1, backward=None, forward=[[1, 0], [0, 1]], history="others")
    mixed.spend("ages", "b", rho="0.001", series=False)
    assert "ρ = 0.001" in well("ledger", "show", "rho.json").stdout.splitlines()[-1]
    mixed.spend("a count", "b", epsilon="0.01", step=0, complete=2)
    assert well("ledger", "show", "rho.json").stdout.splitlines()[-1].split()[0] == "0"
    mixed.spend("a count", "b", epsilon="0.01", step=1, complete=2)
    assert "next step 2 it may spend" in flat(well("ledger", "show", "rho.json").stdout)
    for last in ("9999-12", 10**15 - 1):
        ended = md.Ledger(path=f"{last}.json")
        ended.add_series(alpha=1, backward=None, forward=[[1, 0], [0, 1]], history="others")
        ended.spend("a count", "b", epsilon="0.01", step=last, complete=2)
        assert "next step" not in well("ledger", "show", f"{last}.json").stdout
        well("ledger", "plan", f"{last}.json", "--steps", "2")


def test_a_month_that_a_colleague_has_begun_is_released_with_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    a_series("--steps", "12", "--history", "others")
    ledger = md.Ledger(path="l.json")
    half = ledger.series.planned("2025-01") / 2
    kept = {"complete": 3, "domain": json.loads(Path("flows/domain.json").read_text())["domain"]}

    def slow(*arguments: object) -> list[str]:
        ledger.spend("a count", "b", epsilon=half, step="2025-01", **kept)
        return people_of(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("mechdesign.specification._table_specification.people_of", slow)
    well("table", "s.toml", "1.csv", "--step", "2025-01", "-o", "r1", "--no-report")
    assert [entry.epsilon for entry in ledger.entries] == [half, half]


def test_steps_of_a_file_are_compared_as_steps() -> None:
    a_series("--steps", "12", "--history", "others")
    rows = Path("1.csv").read_text()
    for name, step in (("zero", "01"), ("plain", "1"), ("spaces", " 1 "), ("other", "2"), ("word", "one")):
        Path(f"{name}.csv").write_text(rows.replace("2025-01", step))
    assert_wrong_usage(
        {
            "table s.toml other.csv --step 01 -o x": "column month: is of another step than the release; must be 1",
            "table s.toml word.csv --step 01 -o x": "line 2, column month: is not a time step",
        }
    )
    for number, name in enumerate(("zero", "plain", "spaces")):
        well("table", "s.toml", f"{name}.csv", "--step", "01", "-o", name, "--seed", str(number), "--no-report")


def test_errors_name_the_option() -> None:
    a_series("--steps", "12", "--history", "others")
    well("table", "s.toml", "1.csv", "--step", "2025-01", "-o", "r1", "--no-report")
    Path("stated.toml").write_text(SPECIFICATION.replace('"planned"', "0.05"))
    assert_wrong_usage(
        {
            "table stated.toml nowhere.csv -o x": "error: --step: is missing",
            "table s.toml nowhere.csv --step 2025-04 -o x": "error: --step: leaves out steps (2)",
            "table s.toml nowhere.csv --step 4 -o x": "error: --step: is of another kind",
            "table s.toml nowhere.csv --step x -o x": "--step: is not a time step",
        }
    )


def release(month: int, *options: str, folder: str = "") -> None:
    step = f"2025-{month:02}"
    well("table", "s.toml", f"{(month - 1) % 4 + 1}.csv", "--step", step, "-o", folder or step, "--no-report", *options)


@pytest.mark.slow
def test_twelve_months_and_what_happens_in_them(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("s.toml").write_text(SPECIFICATION.replace(', step = "month"', ""))
    chain = "ledger series l.json --alpha 1 --chain flows --steps 12 --history own"
    begin_ledger("l.json", 2)
    well("chain", "s.toml", "1.csv", "2.csv", "3.csv", "4.csv", "-o", "flows")
    well(*chain.split())
    series = md.Ledger(path="l.json").series
    for month in (1, 2, 3):
        release(month)
    # A corrected month: the plan is removed, ε is stated, and the other months are planned again.
    again = "table s.toml 2.csv --step 2025-02 -o corrected --no-report"
    says = f"the last entry of step 2025-02 is {md.Ledger(path='l.json').entries[1].number}"
    assert_wrong_usage({again: says, f"{again} ": f"ledger plan {Path('l.json').resolve()} none"})
    assert_wrong_usage({again.replace("corrected", "2025-02"): "--overwrite"})
    well("ledger", "plan", "l.json", "none")
    assert_wrong_usage({again: "there is no plan"})
    Path("s.toml").write_text(SPECIFICATION.replace('"planned"', "0.05").replace(', step = "month"', ""))
    well(*again.split())
    Path("s.toml").write_text(SPECIFICATION.replace(', step = "month"', ""))
    shown = flat(well("ledger", "plan", "l.json", "--steps", "9").stdout)
    assert "9 ×" in shown
    assert "α/T" not in shown
    # A skipped month, and a late one.
    assert_wrong_usage({"table s.toml 1.csv --step 2025-05 -o x": "leaves out steps (1)"})
    release(5, "--gap")
    release(4)
    # A colleague takes the month while the table is read.

    def slow(*arguments: object) -> list[str]:
        monkeypatch.undo()
        monkeypatch.chdir(here)
        release(6)
        return people_of(*arguments)  # type: ignore[arg-type]

    here = Path.cwd()
    monkeypatch.setattr("mechdesign.specification._table_specification.people_of", slow)
    said = run("table", "s.toml", "2.csv", "--step", "2025-06", "-o", "mine", "--no-report")
    assert (said.exit_code, Path("mine").exists()) == (2, False)
    assert "nothing is left of the planned budget of step 2025-06; the last entry" in flat(said.stderr)
    # A crash after the charge: the entry stands, and the way is that of a correction.
    with monkeypatch.context() as crash:
        crash.setattr("mechdesign.cli.table._save", lambda *_: 1 / 0)
        assert run("table", "s.toml", "3.csv", "--step", "2025-07", "-o", "lost", "--no-report").exit_code != 0
    assert "2025-07" in series.steps
    assert_wrong_usage({"table s.toml 3.csv --step 2025-07 -o x": "release it with a stated ε"})
    for month in range(8, 13):
        release(month)
    assert len(series.steps) == 12
    assert max(series.leakage.values()) <= 1
    assert_wrong_usage({"table s.toml 1.csv --step 2026-01 -o x": f"ledger plan {Path('l.json').resolve()} --steps M"})
    for plan in (("--plan", "constant"), ("--steps", "1")):
        assert "almost nothing is left of α" in flat(well("ledger", "plan", "l.json", *plan).stderr)
    well("table", "s.toml", "1.csv", "--step", "2026-01", "-o", "2026-01", "--no-report")
    well("ledger", "check", "l.json", *(f"2025-{month:02}" for month in (1, 2, 3, 4, 5, 6, 8)), "corrected", "2026-01")


def test_wrong_input_is_refused_before_data_are_read() -> None:
    a_series("--steps", "12", "--history", "own")
    begin_ledger("plain.json", 2)
    begin_ledger("other.json", 2)
    md.Ledger(path="other.json").spend("by hand", "one value", epsilon=1)
    Path("bad.csv").write_text("0.5,0.4\n0.1,0.9\n")
    md.leakage.write_budgets("b.csv", [0.6, 0.6])
    Path("zero.csv").write_text("step,epsilon\n0,0.1\n1,0\n")
    shutil.copytree("flows", "damaged")
    Path("damaged/domain.json").write_text("{")
    changes = {
        "threshold": ('kind = "full"', 'kind = "graph"\npolicy.edges = [["employed", "inactive"]]'),
        "absence": ('kind = "full"', 'kind = "full"\npolicy.unbounded = true'),
        "size": ('"inactive"]', '"inactive", "absent"]'),
        "order": ('"employed", "unemployed"', '"unemployed", "employed"'),
        "rows": ('step = "month"', "rows_per_person = 2"),
        "rho": ('epsilon = "planned"', "rho = 0.01"),
        "text": ('"planned"', '"plan"'),
        "above": ('"planned"', "0.2"),
        "column": ('step = "month"', 'step = "mont"'),
        "unnamed": ('step = "month"', 'step = " "'),
        "plain": ("l.json", "plain.json"),
        "missing": ('"l.json"', '"missing.json", epsilon = 2'),
    }
    for name, (old, new) in changes.items():
        Path(f"{name}.toml").write_text(SPECIFICATION.replace(old, new))
    Path("stated.toml").write_text(Path("missing.toml").read_text().replace('"planned"', "0.1"))
    there, made = "nowhere.csv --step 2025-01 -o x", "ledger series plain.json --alpha 1 --history own"
    assert_wrong_usage(
        {
            f"table threshold.toml {there}": "Policy.full",
            f"table absence.toml {there}": "without absence",
            f"table size.toml {there}": "must be 3, as in the chain of the series. Release the values of the chain",
            f"table unnamed.toml {there}": "table.step: names no column",
            f"table order.toml {there}": "the values of the chain in their order",
            f"table rows.toml {there}": "table.rows_per_person",
            f"table rho.toml {there}": "release.rho",
            f"table text.toml {there}": "release.epsilon",
            f"table above.toml {there}": "replace the plan",
            "table column.toml 1.csv --step 2025-01 -o x": "has no column 'mont'",
            f"table plain.toml {there}": "no ledger has a series",
            f"table missing.toml {there}": "no ledger has a series",
            f"table stated.toml {there}": "the ledger has no series",
            f"table s.toml {there} --no-series": "give --step or --no-series, not both",
            "table nowhere.toml nowhere.csv --no-series --gap --step 1": "give --step or --no-series, not both",
            "table nowhere.toml nowhere.csv --no-series --gap": "--gap needs --step",
            "table nowhere.toml nowhere.csv --gap": "--gap needs --step",
            "table s.toml nowhere.csv -o x": "no step is given",
            "table s.toml nowhere.csv -o x --no-series": "State ε, with --no-series",
            "table above.toml nowhere.csv -o x": "--no-series",
            "table s.toml 1.csv --seed 1 -o x": "no step is given",
            "table s.toml nowhere.csv --step 2025-13 -o x": 'such as "2026-11"',
            f"{made} --chain damaged": "damaged/domain.json",
            f"{made} --backward bad.csv --forward none": "does not sum to 1",
            f"{made} --chain flows --budgets b.csv": "1 of the plan",
            f"{made} --chain flows --steps 100001": "error: --steps: is too large",
            f"{made} --chain flows --budgets zero.csv": "error: --budgets",
            "ledger series other.json --alpha 1 --history own --chain flows": "a new ledger with what is left",
        }
    )
