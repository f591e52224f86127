"""JSON and tables hold the same facts, which one page lists; the help of each command fits one screen."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import click
import numpy as np
import pytest
from cli_examples import SPECIFICATION, assert_wrong_usage, run, well, write

import mechdesign as md
from mechdesign.cli import main
from mechdesign.cli._found import Found, Shown, show
from mechdesign.specification._document import schema
from mechdesign.specification.examples import text_of

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "json.md").read_text(encoding="utf-8")
COMMANDS = (
    "attack made",
    "audit made --optimum",
    "audit m.csv --distance hamming --epsilon 1/100",
    "budget --alpha 1 --backward P.csv",
    "budget --alpha 1 --steps 10 --backward P.csv",
    "cache",
    "chain walk.toml -o chain --overwrite",
    "design s.toml --no-report",
    "design --example city-300 --estimate",
    "examples",
    "export made -o c.js",
    "info",
    "init visits.csv -o visits.toml",
    "inspect made",
    "inspect made made",
    "leakage --chain chain --epsilon 0.1 --steps 3 --window 2",
    "leakage --backward P.csv --budgets budgets.csv -o leakage.csv",
    "leakage line.toml --forward P.csv --steps 2",
    "ledger check l.json released made",
    "ledger plan l.json --steps 4",
    "ledger series empty.json --alpha 1 --backward P.csv --forward none --plan constant --history own",
    "ledger show l.json",
    "policy --example districts",
    "release walk.toml walk.csv --seed 1 -o walked",
    "sample made --secret 0 -o out.csv",
    "table plain.toml",
    "table plain.toml people.csv --seed 1 -o rehearsed --no-report",
    "verify made",
)


def texts_of(value: object) -> Iterator[str]:
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from texts_of(each)
    elif isinstance(value, str):
        yield value


@pytest.mark.slow
@pytest.mark.usefixtures("made", "blank_pictures")
def test_json_has_the_facts_of_the_tables_and_the_page_lists_them() -> None:
    np.savetxt("m.csv", np.eye(4) * 0.9 + 0.1 / 4, delimiter=",", fmt="%.6f")
    write("0.9,0.1\n0.2,0.8\n", "P.csv")
    write(SPECIFICATION)
    write(SPECIFICATION.replace("epsilon = 0.7", "epsilon = 0.5"))
    write(SPECIFICATION + '[sweep]\n"privacy.0.epsilon" = [0.5, 1]\n', "sweep.toml")
    rows = "".join(f"u{k % 3},{46 + k / 100},{7 + k / 90}\n" for k in range(60))
    write(f"user,lat,lon\n{rows}", "visits.csv")
    write(text_of("walk.toml"), "walk.toml")
    write(text_of("walk.csv"), "walk.csv")
    for name, epsilon in (("plain", "1"), ("monthly", '"planned"')):
        release = f'release = {{ kind = "histogram", epsilon = {epsilon} }}\nledger.path = "l.json"\n'
        attributes = 'table.person = false\ndomain.attributes.a_b = ["x", "y"]\npolicy.kind = "full"\n'
        write(attributes + release, f"{name}.toml")
    write("a_b\nx\ny\n", "people.csv")
    line = 'domain.grid = { columns = 2, rows = 1, width = 2.0, height = 1.0, unit = "km" }\nprior.uniform = true\n'
    line += 'cost.distance = "euclidean"\nprivacy = [{ kind = "metric", epsilon = 1, distance = "euclidean" }]\n'
    write(line, "line.toml")
    write("step,epsilon\n0,0.1\n1,0.2\n", "budgets.csv")
    for line in (
        "ledger new empty.json --rho 2",
        "ledger new l.json --epsilon 5",
        "ledger series l.json --alpha 1 --backward P.csv --forward P.csv --steps 3 --history others",
        "table monthly.toml people.csv --step 7 --no-report",
        "table plain.toml people.csv --no-series -o other --no-report",
    ):
        well(*line.split())
    for line in COMMANDS:
        shown = run(*line.split())
        # No file is replaced.
        for name in ("c.js", "leakage.csv", "leakage.html", "out.csv", "visits.toml"):
            Path(name).unlink(missing_ok=True)
        printed = run(*line.split(), "--json")
        assert shown.exit_code == printed.exit_code, (line, shown.output, printed.output)
        found = json.loads(printed.stdout, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
        table = "".join(shown.stdout.split())
        for name, value in found.items():
            assert f"`{name}`" in PAGE, (line, name)
            if value not in (None, [], {}) and name not in ("said", "text"):
                assert "".join(name.replace("_", " ").replace("epsilon", "ε").split()) in table, (line, name)
        for text in texts_of({name: value for name, value in found.items() if name not in ("hull", "text")}):
            assert "".join(text.split()) in table or re.fullmatch(r"[\d/.]+|inf", text), (line, text)


def test_answers_schema_and_documents_as_json(made: Path) -> None:
    for line in ("--secret 0 -n 3", "--secret 0 -n 0", "--at 2,0 -n 2", "--input p.csv -n 2"):
        write("x,y\n0,0\n2,0\n", "p.csv")
        shown, printed = (well("sample", made, *line.split(), *more).stdout for more in ((), ("--json",)))
        found = json.loads(printed)["answers"]
        rows = shown.splitlines()[1 if "--input" in line else 0 :]
        assert len(found) == len(rows), line
        places = "--secret" not in line
        names = ["row"] * ("--input" in line) + ["observable_index", "observable"] + ["x", "y"] * places
        domain = md.Design.load(made).problem.observables
        for index, (answer, row) in enumerate(zip(found, rows, strict=True)):
            assert list(answer) == names, line
            assert answer["observable"] == domain.labels[answer["observable_index"]]
            assert not places or [answer["x"], answer["y"]] == domain.points[answer["observable_index"]].tolist()
            assert answer.get("row", index // 2) == index // 2
            # Both were drawn, and have the same form.
            kinds = [type(value) for value in answer.values()]
            assert len(row.split(",")) == (len(kinds) if "row" in answer else 2 if places else 1)
    assert json.loads(well("info", "--schema", "--json").stdout) == schema()
    assert json.loads(well("examples", "city", "--json").stdout) == {"text": text_of("city.toml")}
    for form in ("csv", "npz"):
        assert_wrong_usage({f"export made --format {form} --json": "--json prints facts of a file: name it with -o"})
    for name in ("answers", "info --schema"):
        assert f"`{name}`" in PAGE


def test_values_are_printed_as_json_and_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    facts = {
        "a_number": 1 / 3,
        "rounded": Shown(0.123456, "at most 0.13"),
        "nothing": None,
        "without_bound": np.inf,
        "unknown": np.nan,
        "rows": [{"epsilon": np.float64(2), "name": "x\x1b[2J"}, {"epsilon": np.inf, "name": "y"}],
        "designs": {"city_a": {"cost": 1}, "b": {"cost": 2}},
        "next": ["mechdesign verify city"],
    }
    show(Found("Done.", facts), as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["rounded"] == 0.123456
    assert (found["nothing"], found["without_bound"], found["rows"][1]["epsilon"]) == (None, "inf", "inf")
    assert found["unknown"] is None
    assert found["rows"][0]["name"] == "x\x1b[2J"
    show(Found("Done.", facts))
    text = capsys.readouterr().out
    assert text.startswith("Done.\n\na number        0.3333\nrounded         at most 0.13\nwithout bound   ∞\n")
    assert "\nrows\nε   name\n2   x\\x1b[2J\n∞   y\n" in text
    assert re.search(r"\n +city_a +b\ncost +1 +2\n", text)
    assert text.endswith("\nnext\nmechdesign verify city\n")
    show(Found(facts={"rows": [{"number": number} for number in range(100)]}))
    assert "40 more rows" in capsys.readouterr().out


def commands(found: click.Command, *names: str) -> Iterator[tuple[str, ...]]:
    if isinstance(found, click.Group):
        context = click.Context(found)
        for name in found.list_commands(context):
            inner = found.get_command(context, name)
            assert inner is not None
            yield from commands(inner, *names, name)
    else:
        yield names


def test_the_help_of_each_command_fits_one_screen_and_gives_an_example() -> None:
    for names in commands(main):
        lines = run(*names, "--help").stdout.splitlines()
        assert len(lines) <= 40, (names, len(lines))
        # An example is one line, which can be copied.
        examples = [
            after for line, after in pairwise(lines) if line.startswith(f"  Example: mechdesign {' '.join(names)}")
        ]
        assert examples == [""], names
    for names in (*commands(main), (), ("ledger",)):
        assert max(map(len, run(*names, "--help").stdout.splitlines())) <= 80, names
