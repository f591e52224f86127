"""The people behind the rows of a file: declared, counted before the charge, and stated per person."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from refusals import Mistake, assert_refused

import mechdesign as md
from mechdesign.cli import main
from mechdesign.errors import InputError
from mechdesign.specification._table_specification import parse

# Six people with twenty visits each.
VISITS = [f"u{k % 6},{('clinic', 'pub', 'shop')[k % 3]},{20 + k % 6}\n" for k in range(120)]
KINDS = (
    '[domain]\nattributes.kind = ["clinic", "pub", "shop"]\n[policy]\nkind = "full"\n[release]\nkind = "histogram"\n'
)
YEARS = '[domain]\nattributes.age = { range = [0, 99] }\n[policy]\nkind = "full"\n[release]\nkind = "sum"\n'


def write(people: str, column: str = "user", text: str = KINDS, budget: str = "epsilon = 1", ledger: str = "") -> None:
    Path("t.csv").write_text(f"{column},kind,age\n{''.join(VISITS)}", encoding="utf-8")
    Path("t.toml").write_text(f"[table]\n{people}\n{text}{budget}\n{ledger}", encoding="utf-8")


def run(*arguments: str) -> tuple[int, str]:
    found = CliRunner().invoke(main, ["table", *arguments])
    return found.exit_code, " ".join((found.stdout + found.stderr).split())


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_rows_of_one_person_are_not_released_as_those_of_many():
    ledger = '[ledger]\npath = "l.json"\nepsilon = 100\n'
    for column, text in (("user", KINDS), ("user_id", KINDS), ("user", YEARS), ("patient_id", YEARS)):
        write(f'person = "{column}"', column, text, ledger=ledger)
        status, said = run("t.toml", "t.csv", "-o", "out", "--no-report")
        assert (status, "table.person: has more rows of one person than declared; found 20" in said) == (2, True), said
        assert "Set rows_per_person to a bound that holds for everybody" in said
        assert not Path("out").exists()
        assert not Path("l.json").exists()
    # The largest number of rows stands nowhere but on the console.
    assert {path.name for path in Path().iterdir()} == {"t.csv", "t.toml"}


def test_a_person_must_be_stated():
    for text in ("", "[table]\n", "[table]\nrows_per_person = 2\n"):
        Path("t.toml").write_text(text + KINDS + "epsilon = 1\n", encoding="utf-8")
        for command in (("t.toml", "t.csv"), ("t.toml",)):
            status, said = run(*command)
            assert status == 2
            assert "table.person: is missing" in said
            assert 'Add [table] with person = "COLUMN" or person = false' in said


def test_console_files_and_page_state_the_cost_per_row_and_per_person():
    for unit, name, cost in (("epsilon", "ε", 10), ("rho", "ρ", 200)):
        row, person, ledger = f"{name} = 0.5", f"{name} = {cost}", f'[ledger]\npath = "{unit}.json"\n{unit} = 200\n'
        write('person = "user"\nrows_per_person = 20', budget=f"{unit} = 0.5", ledger=ledger)
        status, said = run("t.toml", "t.csv", "-o", unit)
        assert status == 0, said
        assert f"Released; {row} per row, {person} per person, was spent" in said
        assert f"spent {row} per row, {person} per person" in said
        stated = f"At most 20 rows per person, checked by their keys. {row} per row is {person} per person."
        assert stated in said
        assert stated in " ".join(Path(unit, "report.html").read_text("utf-8").split())
        header = json.loads(Path(unit, "release.json").read_text("utf-8"))
        found = (header["rows_per_person"], header["people_checked"], header["spent_per_person"])
        assert found == (20, True, person)
        (entry,) = md.Ledger(path=f"{unit}.json").entries
        assert (entry.epsilon or entry.rho) == cost
        assert f"{row} per row and {person} per person" in run("t.toml")[1]


def test_without_a_column_of_people_the_page_says_what_is_declared():
    write("person = false")
    assert run("t.toml", "t.csv", "-o", "out")[0] == 0
    assert "One row per person, as declared." in Path("out/report.html").read_text("utf-8")
    write("person = false\nrows_per_person = 3", ledger='[ledger]\npath = "l.json"\nepsilon = 3\n')
    assert run("t.toml", "t.csv", "-o", "three", "--no-report")[0] == 0
    assert md.Ledger(path="l.json").spent.epsilon == 3
    assert md.tables.load("three").description.people == (
        "At most 3 rows per person, as declared. ε = 1 per row is ε = 3 per person."
    )


def test_one_row_per_person_is_checked():
    write('person = "user"')
    Path("t.csv").write_text("user,kind\n" + "".join(VISITS[k].rsplit(",", 1)[0] + "\n" for k in range(6)), "utf-8")
    assert run("t.toml", "t.csv", "-o", "out", "--no-report")[0] == 0
    assert md.tables.load("out").description.people == "One row per person, checked by their keys."


def test_disjoint_parts_are_parts_of_people():
    ledger = '[ledger]\npath = "l.json"\nepsilon = 20\ndivision = "towns"\npart = "{}"\n'
    for part in ("north", "south"):
        write('person = "user"\nrows_per_person = 20', ledger=ledger.format(part))
        assert run("t.toml", "t.csv", "-o", part, "--no-report")[0] == 0
    assert md.Ledger(path="l.json").spent.epsilon == 20


DELIMITED = '[files]\ndelimiter = ";"\ndecimal = ","\nencoding = "latin-1"\n'
HEIGHTS = (
    'domain.attributes = { town = ["Zürich", "Genf"], height = { low = 0, high = 2, step = 0.5 } }\n'
    'table.person = "who"\npolicy.kind = "full"\nrelease = { kind = "histogram", epsilon = 1000 }\n'
)


def test_the_layout_in_files_holds_for_the_table():
    Path("t.csv").write_text("who;town;height\na;Zürich;1,5\nb;Genf;2\nc;Zürich;0,50\n", encoding="latin-1")
    given = parse(HEIGHTS + DELIMITED)
    assert given.release("t.csv", rng=1).release.answers.tolist() == [0, 1, 0, 1, 0, 0, 0, 0, 0, 1]
    for key, value, said in (
        ("delimiter", '";"', 'Set delimiter = ";" in [files]'),
        ("decimal", '","', 'Set decimal = "," in [files]'),
        ("encoding", '"latin-1"', 'Set encoding = "…" in [files]'),
    ):
        with pytest.raises(InputError) as refused:
            parse(HEIGHTS + DELIMITED.replace(f"{key} = {value}\n", "")).release("t.csv", rng=1)
        assert said in str(refused.value)


def test_a_person_has_one_key_in_all_its_spellings():
    given = parse(HEIGHTS)
    for keys in (["é", "e\u0301"], ["a", " a "], ["7", 7], ["7", "7"]):
        with pytest.raises(InputError, match="more rows of one person"):
            given.release({"who": keys, "town": ["Genf"] * 2, "height": [1, 1]}, rng=1)


GOOD = "who,town,height\na,Genf,1\nb,Genf,0.5\n"
FILES = {
    "no file": (None, "t.csv", "cannot be opened"),
    "an empty file": ("", "t.csv, line 1", "is blank"),
    "only a header, and a public number of records": ("who,town,height\n", "data", "contains no record"),
    "no column of people": ("town,height\nGenf,1\n", "t.csv, line 1", "has no column 'who'"),
    "no column of an attribute": ("who,height\na,1\n", "t.csv, line 1", "has no column 'town'"),
    "capitals": (GOOD.replace("town", "Town"), "t.csv, line 1", "capitals"),
    "a repeated column": ("who,town,town,height\na,Genf,Genf,1\n", "t.csv, line 1", "repeats the column 'town'"),
    "a repeated person column": ("who,who,town,height\na,b,Genf,1\n", "t.csv, line 1", "repeats the column 'who'"),
    "a ragged line": (GOOD + "c,Genf\n", "t.csv, line 4", "wrong number of fields"),
    "a blank line inside": (GOOD + "\nc,Genf,1\n", "t.csv, line 4", "is blank"),
    "a zero byte": (GOOD + "c,Ge\0nf,1\n", "t.csv, line 4", "zero byte"),
    "an open quote": (GOOD + 'c,"Genf,1\n', "t.csv, line 4", "closed quotes"),
    "no person": (GOOD + ",Genf,1\n", "t.csv, line 4, column who", "names no person"),
    "a blank person": (GOOD + '" ",Genf,1\n', "t.csv, line 4, column who", "names no person"),
    "no value": (GOOD + "c,,1\n", "t.csv, line 4, column town", "has no value"),
    "a foreign value": (GOOD + "c,Bern,1\n", "t.csv, line 4, column town", "outside the domain"),
    "a value between two": (GOOD + "c,Genf,0.75\n", "t.csv, line 4, column height", "outside the domain"),
    "a decimal comma": (GOOD + 'c,Genf,"0,5"\n', "t.csv, line 4, column height", 'decimal = ","'),
    "an underscore": (GOOD + "c,Genf,1_0\n", "t.csv, line 4, column height", "outside the domain"),
    "digits of another script": (GOOD + "c,Genf,١\n", "t.csv, line 4, column height", "outside the domain"),
    "a line break in a cell before": (GOOD + '"c\nd",Genf,1\ne,Bern,1\n', "t.csv, line 6, column town", "outside"),
    "two rows of a person": (GOOD + "a,Genf,1\n", "table.person", "found 2"),
    "a count of each value": ("town,height,count\nGenf,1,3\n", "t.csv, line 1", "has no column 'who'"),
}


def test_files_that_do_not_fit_are_refused_with_the_line_and_no_cell():
    given, mistakes = parse(HEIGHTS), []
    for name, (text, path, says) in FILES.items():

        def make(text=text):
            Path("t.csv").unlink(missing_ok=True)
            if text is not None:
                Path("t.csv").write_text(text, encoding="utf-8", newline="")
            return given.release("t.csv", rng=1)

        mistakes.append(Mistake(name, make, path, says, InputError))
    assert_refused(mistakes)
    for mistake in mistakes:
        with pytest.raises(InputError) as refused:
            mistake.make()
        assert "Bern" not in str(refused.value)
        assert "0.75" not in str(refused.value)
    Path("t.csv").write_text(GOOD, encoding="utf-8")
    assert given.release("t.csv", rng=1).release.answers.sum() == 2


def test_wrong_tables_of_people_are_refused():
    def specification(people, more=""):
        return lambda: parse(KINDS.replace("[domain]", f"{people}\n[domain]") + "epsilon = 1\n" + more)

    wrong = {
        "table = 3": "table",
        "table.person = true": "table.person",
        'table.person = ""': "table.person",
        "table.person = 1": "table.person",
        'table.person = ["user"]': "table.person",
        "table.rows_per_person = 3": "table.person",
        "table = {}": "table.person",
        'table = { persn = "user" }': "table.persn",
        'table = { person = "user", rows = 2 }': "table.rows",
        'table = { person = "user", rows_per_person = 0 }': "table.rows_per_person",
        'table = { person = "user", rows_per_person = -1 }': "table.rows_per_person",
        'table = { person = "user", rows_per_person = 1.5 }': "table.rows_per_person",
        'table = { person = "user", rows_per_person = "2" }': "table.rows_per_person",
        'table = { person = "user", rows_per_person = true }': "table.rows_per_person",
        'table = { person = "user", rows_per_person = 10000000000000 }': "table.rows_per_person",
        "[[table]]\nperson = false": "table",
        'table.person = false\nfiles.delimiter = ";;"': "files.delimiter",
        "table.person = false\nfiles.decimal = ';'": "files.decimal",
        "table.person = false\nfiles.encoding = 'utf-99'": "files.encoding",
        "table.person = false\nfiles.seperator = ';'": "files.seperator",
        "table.person = false\nperson = 'user'": "person",
    }
    assert_refused(Mistake(text, specification(text), path, error=InputError) for text, path in wrong.items())
