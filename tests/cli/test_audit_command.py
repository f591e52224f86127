"""The command audit: verdicts as exit codes, every form of input, and the page."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sparse
from cli_examples import assert_wrong_usage, flat, run, well, write

import mechdesign as md
from mechdesign.data.matrices import read_dense
from mechdesign.data.table import Layout
from mechdesign.measures import _audit as audit_module
from mechdesign.solve._contract import Status

DOMAIN = md.Domain.grid(3, 2, 3.0, 2.0)
DISTANCE = md.distances.euclidean(DOMAIN)
LAPLACE = md.mechanisms.PlanarLaplace(1.0, DOMAIN).density()
SPEC = """
domain.grid = { columns = 3, rows = 2, width = 3.0, height = 2.0 }
prior.uniform = true
cost.distance = "euclidean"
privacy = [{ kind = "metric", epsilon = 1, distance = "euclidean" }]
"""


@pytest.fixture(autouse=True)
def _files() -> None:
    np.savetxt("laplace.csv", LAPLACE, delimiter=",", fmt="%.17g")
    np.save("laplace.npy", LAPLACE)
    np.savez("laplace.npz", LAPLACE)
    sparse.save_npz("identity.npz", sparse.csr_array(np.eye(6)))
    np.savetxt("D.csv", DISTANCE, delimiter=",", fmt="%.17g")
    write("0,1\n1,2\n3,4\n4,5\n", "edges.csv")
    write(SPEC, "spec.toml")
    write("0.75,0.25\n0.25,0.75\n", "r.csv")


def test_a_stated_epsilon_decides_the_exit_code() -> None:
    tight = md.audit(LAPLACE, DISTANCE).epsilon
    for name in ("laplace.csv", "laplace.npy", "laplace.npz"):
        given = ["audit", name, "--distance", "D.csv"]
        assert well(*given).exit_code == 0
        assert "holds" in well(*given, "--epsilon", repr(tight)).stdout, name
        broken = run(*given, "--epsilon", repr(math.nextafter(tight, 0)))
        assert (broken.exit_code, "does not hold" in broken.stdout) == (1, True), name


def test_json_has_everything_and_the_page_is_written(blank_pictures: None) -> None:
    answer = json.loads(
        run("audit", "laplace.csv", "--spec", "spec.toml", "--optimum", "--json", "-o", "page.html").stdout
    )
    found = md.audit(LAPLACE, DISTANCE, cost=DISTANCE)
    assert answer["epsilon"] == found.epsilon
    assert answer["cost"] == found.cost
    assert answer["optimum"] <= answer["cost"]
    shown = run("audit", "laplace.csv", "--spec", "spec.toml", "--optimum").stdout
    assert float(re.findall(r"(?m)^optimum +(\S+)", shown)[0]) <= answer["optimum"]
    assert answer["worst_pairs"][0]["observable"] == found.witness.observable
    assert 'id="pairs"' in Path("page.html").read_text(encoding="utf-8")


def test_a_stopped_search_for_the_optimum_is_said_by_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    solve = audit_module.synthesise
    monkeypatch.setattr(audit_module, "synthesise", lambda *given: solve(*given).noted(status=Status.INTERRUPTED))
    given = ["audit", "laplace.csv", "--spec", "spec.toml", "--epsilon", "100"]
    stopped = run(*given, "--optimum")
    assert (stopped.exit_code, "ε = 100 holds" in stopped.stdout) == (130, True)
    well(*given)


def test_no_epsilon_and_a_graph() -> None:
    tiny = run("audit", "r.csv", "--distance", "hamming", "--epsilon", "1e-300")
    assert "ε = 1e-300 does not hold" in flat(tiny.stdout)
    assert "0" * 20 not in tiny.stdout
    result = run("audit", "identity.npz", "--graph", "edges.csv", "--json", "--epsilon", "100")
    answer = json.loads(result.stdout)
    assert (result.exit_code, answer["epsilon"], answer["holds"]) == (1, "inf", False)
    assert "none holds" in well("audit", "identity.npz", "--distance", "hamming").stdout


def test_a_folder_states_its_epsilon(blank_pictures: None) -> None:
    md.save(md.read_spec("spec.toml").design(), "out", report=False)
    assert "ε = 1" in well("audit", "out").stdout
    assert run("audit", "out", "--epsilon", "0.99").exit_code == 1
    for lone in ("out/channel.npz", "out/channel.csv"):
        well("audit", lone, "--spec", "spec.toml")
    assert run("audit", "laplace.csv", "--spec", "spec.toml").exit_code == 1


@pytest.mark.filterwarnings("ignore::mechdesign.errors.RevealedWarning")
def test_a_channel_with_forbidden_answers_is_audited_without_a_cost() -> None:
    blocks = 'privacy = [{ kind = "graph", epsilon = 1, edges = [[0, 1], [3, 4]] }]\npolicy.isolated = "release"\n'
    write(SPEC.partition("privacy")[0] + blocks, "blocks.toml")
    md.save(md.read_spec("blocks.toml").design(), "blocks", report=False)
    found = json.loads(well("audit", "blocks", "--json").stdout)
    assert (found["holds"], found["cost"], found["revealed"]) == (True, None, [2, 5])


def test_wrong_usage() -> None:
    write("", "empty.csv")
    write("75,25\n25,75\n", "percent.csv")
    write("-0.3,-1.4\n-1.4,-0.3\n", "logarithms.csv")
    assert_wrong_usage(
        {
            "audit laplace.csv": "give --distance or --graph",
            "audit laplace.csv --distance euclidean": "needs places of the secrets",
            "audit laplace.csv --distance far": "--distance: is not known",
            "audit laplace.csv --distance hamming --graph edges.csv": "not both",
            "audit laplace.csv --distance hamming --epsilon much": "--epsilon: is not a number",
            "audit none.csv --distance hamming": "none.csv: cannot be opened",
            "audit laplace.csv --graph empty.csv": "empty.csv: contains no edges",
            "audit laplace.csv --graph D.csv": "D.csv, line 1: is not an edge; found 6",
            "audit r.csv --spec spec.toml": "another number of secrets; found 6; must be 2",
            "audit r.csv --distance haversine": "ive --spec",
            "audit percent.csv --distance hamming": "does not sum to 1",
            "audit r.csv --distance hammming": "Did you mean hamming?",
            "audit logarithms.csv --distance hamming": "error: logarithms.csv[0,1]: is negative; must be a prob",
        }
    )
    # What was computed is shown, although its page cannot be written.
    result = run("audit", "laplace.csv", "--distance", "hamming", "-o", "none/page.html")
    assert (result.exit_code, "none" in flat(result.output)) == (2, True)


# --- names ---

TOWNS = ["home", "work", "gym", "pub"]
AT = dict(zip(TOWNS, (0, 1, 5, 9), strict=True))
TOWN = """domain.labels = ["home", "work", "gym", "pub"]
prior.uniform = true
cost.matrix = { path = "asked.csv", header = true, index = true }
privacy = [{ kind = "metric", epsilon = 1, matrix = { path = "asked.csv", header = true, index = true } }]
"""


def write_named(name: str, rows: list[str], columns: list[str], entry: Callable[[str, str], object]) -> None:
    lines = [["", *columns], *([row, *(str(entry(row, column)) for column in columns)] for row in rows)]
    write("".join(",".join(line) + "\n" for line in lines), name)


def apart(one: str, other: str) -> int:
    return abs(AT[one] - AT[other])


@pytest.fixture
def town() -> None:
    write_named("asked.csv", TOWNS, TOWNS, apart)
    write_named("sorted.csv", sorted(TOWNS), sorted(TOWNS), apart)
    write_named("turned.csv", TOWNS[::-1], sorted(TOWNS), apart)
    write(TOWN, "town.toml")
    md.save(md.read_spec("town.toml").design(), "town", report=False)


@pytest.mark.usefixtures("town")
def test_named_distances_are_matched_with_the_labels_of_the_channel() -> None:
    wanted = audited("town", "asked.csv")
    assert wanted["epsilon"] == pytest.approx(1, abs=1e-6)
    matrix = dict(zip(TOWNS, md.Channel.load("town").matrix.tolist(), strict=True))
    write_named("channel.csv", sorted(TOWNS), TOWNS[::-1], lambda row, answer: matrix[row][TOWNS.index(answer)])
    for channel in ("town", "town/channel.csv", "town/channel.npz", "channel.csv"):
        for distance in ("asked.csv", "sorted.csv", "turned.csv"):
            found = audited(channel, distance)
            assert found["epsilon"] == pytest.approx(wanted["epsilon"], rel=1e-12), (channel, distance)
    by_labels = audited("channel.csv", "sorted.csv", "--spec", "town.toml")
    assert by_labels["cost"] == pytest.approx(wanted["cost"], rel=1e-12)
    # Names that are skipped leave the positions, which are those of other places.
    assert audited("town", "sorted.csv", names=("--header", "ignore", "--index", "ignore"))["epsilon"] > 1.5


NAMED = ("--header", "--index")


def audited(channel: str, distance: str, *more: str, names: tuple[str, ...] = NAMED) -> dict[str, Any]:
    return json.loads(well("audit", channel, "--distance", distance, *more, *names, "--json").stdout)


@pytest.mark.usefixtures("town")
def test_other_names_are_refused() -> None:
    AT["bar"] = 9
    write_named("foreign.csv", ["bar", *TOWNS[:3]], ["bar", *TOWNS[:3]], apart)
    write_named("twice.csv", ["gym", *TOWNS[:3]], TOWNS, apart)
    write_named("fewer.csv", TOWNS[:3], TOWNS[:3], apart)
    given = "--header --index"
    assert_wrong_usage(
        {
            f"audit town --distance foreign.csv {given}": "has a name that is no label; must be labels",
            f"audit town --distance twice.csv {given}": "has a name more than once; found 'gym'",
            f"audit town --distance fewer.csv {given}": "lacks a label; found 'pub'",
            "audit town --distance sorted.csv --header": "sorted.csv, line 2: begins with a text",
            "audit town --distance sorted.csv --index": "sorted.csv, line 1: holds texts",
            "audit town --distance sorted.csv --header --index ignore": "but its rows have none",
            "audit town --distance sorted.csv --header ignore --index": "but its columns have none",
            "audit town --distance sorted.csv --header maybe": "'maybe' is not one of",
            f"audit laplace.npy --distance sorted.csv {given}": "has a name that is no label",
            "audit foreign.csv --spec town.toml --header --index": "has a name that is no label",
        }
    )


FRACTIONS = {
    "1/2,1/2\n1/3,2/3\n": "line 1, field 1: is not a number; must be a decimal number. Write decimals",
    "50%,50%\n25%,75%\n": "line 1, field 1: is not a number; must be a decimal number. Write decimals",
    "0.5,0.5,\n0.25,0.75,\n": "line 1, field 3: is empty; must be a decimal number. Remove the delimiter",
    "[[0.5, 0.5], [0.25, 0.75]]\n": "line 1, field 1: is not a number",
    "0.5,0.5\n1/4,3/4\n": "line 2, field 1: is not a number",
    "0.5 0.5\n0.25 0.75\n": "pd.read_csv(",
    "0,5;0,5\n0,25;0,75\n": "pd.read_csv(",
}


def test_what_is_no_decimal_number_is_refused_by_its_field_and_fractions_are_exact_beside_labels() -> None:
    for text, words in FRACTIONS.items():
        write(text, "c.csv")
        assert_wrong_usage({"audit c.csv --distance hamming": words})
        with pytest.raises(md.errors.InputError) as caught:
            read_dense(Path("c.csv"), layout=Layout())
        assert "header" not in str(caught.value).replace("has a header line that begins", "")
    shown = run("audit", "c.csv", "--distance", "hamming").stderr.splitlines()
    assert [line.split("(")[0] for line in shown[1:]] == [
        "    import pandas as pd",
        "    frame = pd.read_csv",
        "    frame.to_csv",
    ]
    write("secret,yes,no\nyes,1/3,2/3\nno,2/3,1/3\n", "c.csv")
    assert audited("c.csv", "hamming", names=())["epsilon"] == pytest.approx(math.log(2), abs=1e-15)
