"""The command `mechdesign table`: releases, plans, charges and refusals."""

from __future__ import annotations

import csv
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from releases import release_counts

import mechdesign as md
from mechdesign.cli import main
from mechdesign.errors import ExportError
from mechdesign.specification._table_specification import read
from mechdesign.specification.examples import find
from mechdesign.tables._queries._cumulative_release import range_query

LINE = 'policy = { kind = "threshold", theta = 1 }'
AGES = f"table.person = false\ndomain.attributes.age = {{ range = [0, 9] }}\n{LINE}\n"
TABLE = "name,age\n" + "".join(f"someone,{age}\n" for age in [0, 1, 1, 3, 3, 3, 9, 9] * 40)
KINDS = {
    "histogram": 'release = { kind = "histogram", epsilon = 1 }',
    "sum": 'release = { kind = "sum", rho = 1 }',
    "cdf": 'release = { kind = "cdf", epsilon = 1 }',
    "quantiles": 'release = { kind = "quantiles", epsilon = 1, probabilities = [0.25, 0.5] }',
    "ranges": 'release = { kind = "ranges", epsilon = 1, ranges = [[0, 2], [3, 9]] }',
    "kmeans": 'release = { kind = "kmeans", epsilon = 1, k = 2, iterations = 3 }',
    "workload": 'release = { kind = "workload", rho = 1, marginals = [["age"]] }',
}


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(*arguments):
    return CliRunner().invoke(main, ["table", *map(str, arguments)], terminal_width=100)


def write(release=KINDS["histogram"], table=TABLE, more="", domain=AGES):
    Path("s.toml").write_text(domain + more + release + "\n", encoding="utf-8")
    Path("t.csv").write_text(table, encoding="utf-8")
    return "s.toml", "t.csv"


def files(folder="released"):
    return sorted(path.name for path in Path(folder).iterdir())


def said(result):
    return " ".join(result.stderr.split())


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_planned_released_and_read_again(kind):
    arguments = write(KINDS[kind])
    planned = run("s.toml")
    assert planned.exit_code == 0, planned.output
    assert "Two databases are neighbours" in planned.stdout
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    assert "Two databases are neighbours" in result.stdout
    assert "Neighbours are those of Definition 4.1" in " ".join(result.stdout.split())
    extra = {"ranges": ["ranges.csv"], "quantiles": ["quantiles.csv"]}.get(kind, [])
    assert files() == sorted(["answers.csv", "release.json", "report.html", *extra])
    found = md.tables.load("released")
    assert not found.description.rehearsal
    assert "age" in found.description.policy
    assert found.description.spent in result.stdout
    # Again, over the older release.
    assert run(*arguments, "--overwrite").exit_code == 0


def test_a_second_release_into_a_folder_is_refused_before_the_ledger_is_charged():
    arguments = (*write(more='ledger = { path = "l.json", epsilon = 3 }\n'), "--no-report")
    assert run(*arguments).exit_code == 0
    before = Path("released/answers.csv").read_bytes()
    for more in ((), ("--seed", 1)):
        refused = run(*arguments, *more)
        assert refused.exit_code == 2
        assert "released holds a release, and both releases add up" in said(refused)
    assert (Path("released/answers.csv").read_bytes(), len(md.Ledger(path="l.json").entries)) == (before, 1)
    second = run(*arguments, "--overwrite")
    assert second.exit_code == 0
    assert "both releases add up: anyone who has seen the first learns from both" in said(second)
    assert len(md.Ledger(path="l.json").entries) == 2


def test_without_a_ledger_it_is_said_that_nothing_is_recorded():
    words = "no ledger is charged: only the released files record the spent budget"
    arguments = write()
    # A rehearsal spends nothing.
    assert words not in said(run(*arguments, "--seed", 1, "--no-report"))
    assert words in said(run(*arguments, "--no-report"))
    assert words not in said(
        run(*write(more='ledger = { path = "l.json", epsilon = 3 }\n'), "-o", "other", "--no-report")
    )


def test_an_unfinished_release_counts_and_a_rehearsal_does_not():
    arguments = write()
    arguments = (*arguments, "--no-report")
    assert run(*arguments, "--seed", 1).exit_code == 0
    first = run(*arguments)
    assert (first.exit_code, "add up" in said(first)) == (0, False)
    Path("released/release.json").unlink()
    assert run(*arguments).exit_code == 2
    assert run(*arguments, "-o", "new").exit_code == 0


def test_from_python_releases_are_replaced_unless_told_otherwise():
    write()
    found = read("s.toml").release("t.csv")
    md.save(found, "here", overwrite=False, report=False)
    md.save(found, "here", report=False)
    with pytest.raises(ExportError, match="holds a release, and both releases add up"):
        md.save(found, "here", overwrite=False, report=False)


def test_files_of_others_are_not_taken_for_a_release():
    arguments = write()
    Path("mine").mkdir()
    for name, text in {
        "answers.csv": "question,answers\n",
        "release.json": '{"version": 2}',
        "ranges.csv": "low,high\n",
        "quantiles.csv": "quantile\n",
    }.items():
        Path("mine", name).write_text(text)
        for more in ((), ("--overwrite",)):
            refused = run(*arguments, "-o", "mine", *more)
            assert (refused.exit_code, Path("mine", name).read_text()) == (2, text)
            assert f"mine holds {name}, which does not belong to a release" in said(refused)
        Path("mine", name).unlink()


def test_the_table_is_never_overwritten():
    for name in ("answers.csv", "release.json"):
        spec, table = write()
        Path(name).mkdir()
        Path(table).rename(f"{name}/{name}")
        Path(f"{name}.link").symlink_to(f"{name}/{name}")
        for records in (f"{name}/{name}", f"{name}.link"):
            refused = run(spec, records, "-o", name, "--overwrite")
            assert refused.exit_code == 2
            assert "is the file of TABLE.csv, which must not be overwritten" in said(refused)
        assert Path(f"{name}/{name}").read_text() == TABLE


def test_rehearsals_are_the_same_and_say_so():
    arguments = write()
    results = [run(*arguments, "--seed", seed, "-o", folder) for seed, folder in ((1, "a"), (1, "b"), (2, "c"))]
    assert all(result.exit_code == 0 and "never publish it" in result.stderr for result in results)
    a, b, c = (Path(folder, "answers.csv").read_text() for folder in "abc")
    assert a == b != c
    assert md.tables.load("a").description.rehearsal
    assert "A rehearsal:" in Path("a/report.html").read_text()


def test_the_answers_are_those_of_the_library():
    run(*write(KINDS["ranges"]), "--seed", 5)
    ages = [int(row["age"]) for row in csv.DictReader(TABLE.splitlines())]
    counts = np.bincount(ages, minlength=10)
    wanted = release_counts(counts, 1, 1, rng=5)
    with open("released/ranges.csv") as file:
        rows = list(csv.DictReader(file))
    for row, (low, high) in zip(rows, [(0, 2), (3, 9)], strict=True):
        estimate = range_query(wanted, low, high)
        assert (row["first"], row["last"]) == (str(low), str(high))
        assert [float(row[name]) for name in ("answer", "low", "high")] == [
            estimate.value, estimate.low, estimate.high,
        ]  # fmt: skip
    with open("released/answers.csv") as file:
        assert [float(row["answers"]) for row in csv.DictReader(file)] == wanted.answers.tolist()


def test_what_is_spent_is_said_in_the_unit_of_the_release():
    for kind, spent in (("histogram", "ε = 1"), ("sum", "ρ = 1")):
        result = run(*write(KINDS[kind]), "--no-report", "--overwrite")
        assert f"\nspent     {spent}\n" in result.stdout, result.output


def test_what_the_policy_leaves_exact_is_said_and_charged_nothing():
    domain = (
        "table.person = false\ndomain.attributes.age = { range = [0, 9] }\n"
        'policy = { kind = "partition", blocks = { width = 5 } }\n'
        'ledger = { path = "l.json", epsilon = 1 }\n'
    )
    release = 'release = { kind = "histogram", epsilon = 2, partition = { width = 5 } }'
    result = run(*write(release, domain=domain))
    assert result.exit_code == 0, result.output
    assert "spent     nothing" in result.stdout
    assert "leaves these answers exact" in result.stderr
    assert md.tables.load("released").answers.tolist() == [240, 80]
    (entry,) = md.Ledger(path="l.json").entries
    assert (entry.epsilon, entry.number) == (0, md.tables.load("released").description.entry)
    assert "nothing was spent" in Path("released/report.html").read_text()
    assert "nothing" in run("s.toml").stdout


# --- the ledger ----------------------------------------------------------------------------------------------------


def test_a_budget_that_is_spent_stops_the_next_release():
    arguments = write(more='ledger = { path = "l.json", epsilon = 1.5 }\n')
    first = run(*arguments, "-o", "first")
    assert first.exit_code == 0, first.output
    assert "left      ε = 0.5" in first.stdout
    second = run(*arguments, "-o", "second")
    assert second.exit_code == 2
    assert "histogram would spend ε = 1, but 0.5 of 1.5 is left" in said(second)
    assert not Path("second").exists()
    assert md.Ledger(path="l.json").spent.epsilon == 1


def test_rehearsals_and_wrong_input_are_not_charged():
    arguments = write(more='ledger = { path = "l.json", epsilon = 1 }\n')
    assert run(*arguments, "--seed", 1).exit_code == 0
    Path("t.csv").write_text("age\n12\n")
    assert run(*arguments).exit_code == 2
    Path("t.csv").write_text(TABLE)
    Path("full").mkdir()
    Path("full/other.txt").write_text("mine")
    refused = run(*arguments, "-o", "full", "--overwrite")
    assert refused.exit_code == 2
    assert "holds other.txt" in said(refused)
    assert not Path("l.json").exists()
    assert run(*arguments, "-o", "new").exit_code == 0
    assert len(md.Ledger(path="l.json").entries) == 1


def test_a_ledger_of_another_budget_is_refused():
    arguments = write(more='ledger = { path = "l.json", epsilon = 3 }\n')
    assert run(*arguments).exit_code == 0
    write(more='ledger = { path = "l.json", epsilon = 4 }\n')
    result = run(*arguments, "-o", "other")
    assert result.exit_code == 2
    assert "was created with another budget" in said(result)


def test_disjoint_groups_cost_the_largest_budget():
    for part in ("north", "south"):
        ledger = f'ledger = {{ path = "l.json", epsilon = 1, division = "clinics", part = "{part}" }}\n'
        assert run(*write(more=ledger), "-o", part, "--no-report").exit_code == 0
    ledger = md.Ledger(path="l.json")
    assert ledger.spent.epsilon == 1
    assert [entry.part for entry in ledger.entries] == [("clinics", "north"), ("clinics", "south")]
    # The same clinic once more.
    refused = run("s.toml", "t.csv", "-o", "again")
    assert (refused.exit_code, "is left" in said(refused)) == (2, True)


def test_known_counts_that_tie_groups_together_stop_parallel_composition():
    domain = AGES.replace(LINE, 'policy = { kind = "full", constraints = [{ where = { age = 0 } }] }')
    ledger = 'ledger = { path = "l.json", epsilon = 9, division = "clinics", part = "north" }\n'
    result = run(*write(more=ledger, domain=domain))
    assert result.exit_code == 2
    assert "ledger.division: does not let budgets compose in parallel" in said(result)
    assert "constraints[0]" in said(result)
    assert not Path("l.json").exists()


def test_parts_in_python():
    policy = md.tables.Policy.full(md.tables.Domain({"age": range(4)}))
    ledger = md.Ledger(epsilon=1)
    for part in ("north", "south"):
        own = md.tables.part_of(ledger, policy, "clinics", part=part)
        md.tables.Histogram().release([1], policy, epsilon=1, ledger=own)
    assert ledger.remaining_epsilon == 0
    with pytest.raises(md.errors.InputError, match="from one part to another"):
        md.tables.part_of(ledger, policy, "young and old", part="young", parts=[0, 0, 1, 1])
    blocks = md.tables.Policy.partition(policy.domain, [0, 0, 1, 1])
    assert md.tables.part_of(ledger, blocks, "young and old", part="young", parts=[0, 0, 1, 1])


# --- tables --------------------------------------------------------------------------------------------------------


def test_wrong_tables():
    for table, words in (
        (
            "name,age\na,3\nb,12\n",
            "t.csv, line 3, column age: is outside the domain; must be from 0 to 9",
        ),
        ("age\n3\n\n3.5\n", "line 3, column age: has no value"),
        ("age\n3\n3.5\n", "line 3, column age: is outside the domain"),
        ('age\n3\n"3,0"\n', 'Set decimal = "," in [files]'),
        ("age\n3\nold\n", "line 3, column age: is outside the domain"),
        ("age\n3\n \n", "line 3, column age: has no value"),
        ("age,count\n3,5\n", "column 'count', and each row would count as one record"),
        ("age\n", "contains no record"),
        ("", "line 1: is blank"),
        ("height\n3\n", "has no column 'age'"),
        ("age,sex\n3\n", "wrong number of fields"),
    ):
        result = run(*write(table=table))
        assert result.exit_code == 2, result.output
        assert words in said(result), table
        assert not Path("released").exists()


def test_console_and_page_say_which_attribute_is_public():
    domain = (
        "table.person = false\n"
        'domain.attributes = { age = { range = [0, 9] }, region = { values = ["north", "south"] } }\n'
        'policy = { kind = "attribute", theta = { age = 5, region = 0 } }\n'
    )
    table = "age,region\n" + "".join(f"{age},{'south' if age % 3 else 'north'}\n" for age in range(10))
    for by, spent in (("region", "nothing was spent"), ("age", "ε = 1 was spent")):
        release = f'release = {{ kind = "histogram", epsilon = 1, partition = {{ by = ["{by}"] }} }}\n'
        result = run(*write(release, domain=domain, table=table), "--overwrite")
        assert result.exit_code == 0, result.output
        assert spent in result.output, by
        page = Path("released/report.html").read_text(encoding="utf-8")
        for text in (result.output, page):
            assert "2 values of region, where region is public" in " ".join(text.split()), by
        answers = Path("released/answers.csv").read_text(encoding="utf-8").splitlines()[1:]
        assert ([line.split(",")[1:3] for line in answers] == [["4", "0"], ["6", "0"]]) == (by == "region")


def test_no_table_and_no_specification():
    for arguments, words in (
        (["missing.toml", "t.csv"], "missing.toml: cannot be opened"),
        ([write()[0], "missing.csv"], "missing.csv: cannot be opened"),
        ([], "give SPEC.toml"),
        # A table may have been forgotten.
        (["s.toml", "-o", "out"], "--output needs TABLE.csv"),
        (["s.toml", "--seed", "1"], "--seed needs TABLE.csv"),
        (["s.toml", "--overwrite"], "--overwrite needs TABLE.csv"),
        (["s.toml", "--together"], "--together needs TABLE.csv"),
        (["s.toml", "--no-report"], "--no-report needs TABLE.csv"),
        (["s.toml", "--step", "1", "--gap"], "--gap needs TABLE.csv"),
        (["s.toml", "--no-series"], "--no-series needs TABLE.csv"),
        (["s.toml", "t.csv", "--example", "admissions"], "not both"),
        (["--example", "city"], "must be one of admissions"),
    ):
        result = run(*arguments)
        assert result.exit_code == 2, arguments
        assert words in said(result), (arguments, result.stderr)


def test_known_counts_that_do_not_hold():
    domain = AGES.replace(LINE, 'policy = { kind = "full", constraints = [{ where = { age = 0 }, count = 7 }] }')
    result = run(*write(domain=domain))
    assert result.exit_code == 2
    assert "constraints[0]: differs from the count in the data" in said(result)
    assert "40" not in said(result)


def test_the_example_runs():
    Path("admissions.toml").write_text(find("admissions").text)
    planned = run("admissions.toml")
    assert planned.exit_code == 0, planned.output
    assert "would take the strategy ordered-hierarchical." in planned.stdout
    result = run("--example", "admissions")
    assert result.exit_code == 0, result.output
    assert "\nreleased/report.html\n" in result.stdout
    found = md.tables.load("released")
    assert found.epsilon == Fraction(1, 2)
    assert json.loads(Path("released/release.json").read_text())["kind"] == "cumulative histogram"


def test_ranges_that_share_an_end_are_told_of(tmp_path):
    (tmp_path / "s.toml").write_text(AGES + KINDS["ranges"].replace("[3, 9]", "[2, 9]"))
    (tmp_path / "t.csv").write_text("age,name\n1,12\n3,4\n")
    remarks = read(tmp_path / "s.toml").remarks
    assert "both count 2: both ends are included" in remarks[0]
    result = run("s.toml", "t.csv")
    assert result.exit_code == 0, result.output
    for remark in remarks:
        assert " ".join(remark.split()) in said(result)
    (tmp_path / "s.toml").write_text(AGES + KINDS["ranges"])
    assert read(tmp_path / "s.toml").remarks == ()
