"""Whose data prior, chain and policy were counted in is declared, and public files repeat it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import mechdesign as md
from mechdesign.cli import main
from mechdesign.errors import BudgetExceededError, InputError, SpecificationError
from mechdesign.specification._specification import parse
from mechdesign.traces._released import ReleasedTrace

START = 1_700_000_000
PAST = [0, 3, 4, 5, 4, 3, 0, 1, 2, 1, 0, 1, 2, 1, 0]
DAY = [1, 2, 5]
"""The steps of the history, five minutes apart, and those that are released, which follow them."""

NOTHING = "othing in this folder depends on the true states except through the outputs"
OWN = "The owner states that these come from this person"
OTHERS = 'history = "others"'
TIMED = 'checkins = { path = "c.csv", user = "user", latitude = "lat", longitude = "lon", time = "time" }'
UNTIMED = TIMED.replace(', time = "time"', "")
ANN = TIMED.replace("{ ", '{ only = "ann", ')
PUBLIC = "uniform = true"
WALK = "neighbours = 8"


def table(steps: list[int], user: str = "ann", start: int = START) -> str:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    for number, cell in enumerate(steps):
        rows.writerow([user, start + 300 * number, 50 + 0.01 * (cell // 3 + 0.5), 8 + 0.01 * (cell % 3 + 0.5)])
    return text.getvalue()


def text(prior: str, transition: str, more: str = "", privacy: str = "blocks = 3", before: str = "") -> str:
    smoothing = "" if "uniform" in prior or "probabilities" in prior else "smoothing = 1"
    return f"""
    files.time_format = "unix"
    {before}
    [domain]
    grid = {{ columns = 3, rows = 2, south = 50.0, north = 50.02, west = 8.0, east = 8.03 }}
    [prior]
    {prior}
    {smoothing}
    [cost]
    distance = "euclidean"
    [[privacy]]
    kind = "graph"
    epsilon = 1
    {privacy}
    [release]
    transition = {{ {transition} }}
    {more}
    """


def release(
    prior: str = PUBLIC,
    transition: str = WALK,
    more: str = "",
    *,
    data: str | None = None,
    start: int | None = START,
    states: list[int] | None = None,
    own_history: bool = False,
    **changed: str,
) -> ReleasedTrace:
    """Release three states that begin at `start`, or have no times."""
    Path("c.csv").write_text("user,time,lat,lon\n" + (table([*PAST, *DAY]) if data is None else data))
    trace: dict[str, Any] = {"state": DAY if states is None else states}
    if start is not None:
        trace["time"] = (start + 300 * np.arange(len(trace["state"]))).astype("datetime64[s]")
    return parse(text(prior, transition, more, **changed)).release(trace, own_history=own_history)


ESTIMATED = "estimated = true, smoothing = 1"
COUNTED = [
    (TIMED, WALK, "", "blocks = 3"),
    (TIMED, ESTIMATED, "", "blocks = 3"),
    (PUBLIC, f"{TIMED}, smoothing = 1", "", "blocks = 3"),
    (PUBLIC, f"{TIMED}, smoothing = 1, every = '10 min', gap = '1 h'", 'every = "10 min"', "blocks = 3"),
    (PUBLIC, WALK, f"initial = {{ {TIMED}, smoothing = 1 }}", "blocks = 3"),
    (PUBLIC, WALK, "", f"transitions = {{ {TIMED} }}"),
    ('csv = { path = "n.csv", column = "n", label = false }', WALK, "", "blocks = 3"),
    (PUBLIC, 'path = "chain/forward.csv"', "", "blocks = 3"),
    (PUBLIC, 'path = "P.csv"', "", "blocks = 3"),
    (PUBLIC, 'paths = ["chain/forward.csv", "chain/forward.csv"], by = "step"', "", "blocks = 3"),
]


@pytest.mark.parametrize(("prior", "transition", "more", "privacy"), COUNTED)
def test_whose_data_were_counted_must_be_declared(prior: str, transition: str, more: str, privacy: str) -> None:
    Path("n.csv").write_text("n\n" + "4\n5\n3\n2\n2\n2\n")
    Path("chain").mkdir()
    for name in ("forward.csv", "states.csv"):
        Path("chain", name).write_text((",".join(["0.25"] * 2 + ["0.125"] * 4) + "\n") * 6)
    Path("P.csv").symlink_to("chain/forward.csv")
    for stated, own_history in (("", False), ("", True), ('history = "own"', False), (OTHERS, True)):
        with pytest.raises(SpecificationError, match="--own-history") as caught:
            release(prior, transition, f"{more}\n{stated}", privacy=privacy, own_history=own_history)
        assert caught.value.path == "release.history"
    for stated, own_history, sentence in ((OTHERS, False, NOTHING), ('history = "own"', True, OWN)):
        found = release(prior, transition, f"{more}\n{stated}", privacy=privacy, own_history=own_history).history
        said = found.to_json()
        assert said["counted"] == list(found.counted) != []
        assert f'"{said["stated"]}"' in stated
        assert "depend on the data that were counted" in said["meaning"]
        assert sentence in said["meaning"]
        assert not found.tells_prior


@pytest.mark.parametrize(
    ("prior", "transition", "given"),
    [
        (PUBLIC, WALK, []),
        ("simulated = { centres = [{ x = 1, y = 1, spread = 1 }] }", WALK, []),
        ("probabilities = [0.25, 0.25, 0.125, 0.125, 0.125, 0.125]", WALK, ["prior.probabilities"]),
        ("counts = [4, 5, 3, 2, 2, 2]", WALK, ["prior.counts"]),
        (PUBLIC, 'path = "forward.csv"', ["release.transition.path"]),
    ],
)
def test_the_sentence_stands_where_nothing_was_counted(prior: str, transition: str, given: list[str]) -> None:
    Path("forward.csv").write_text((",".join(["0.25"] * 2 + ["0.125"] * 4) + "\n") * 6)
    for start in (START, None):
        found = release(prior, transition, start=start)
        said = found.history.to_json()
        assert (said["counted"], said["given"]) == ([], given)
        assert NOTHING in said["meaning"]
        assert ("Unless these come from data of this person" in said["meaning"]) == bool(given)
        assert found.history.tells_prior == (not given)
        assert release(prior, transition, OTHERS, start=start).history.tells_prior


def test_nothing_is_declared_for_a_prior_that_is_not_used() -> None:
    found = release(TIMED, WALK, "initial = { uniform = true }")
    assert found.history.counted == ()


def test_other_words_are_refused() -> None:
    for wrong in ("history = true", 'history = ""', 'history = "othres"', 'history = "Own"', 'history = ["own"]'):
        with pytest.raises(SpecificationError, match=r"release\.history"):
            release(more=wrong)
    # The option alone is refused, too, where nothing was counted.
    with pytest.raises(SpecificationError, match="contradicts --own-history"):
        release(own_history=True)


@pytest.mark.usefixtures("blank_pictures")
def test_nothing_is_charged_or_written_where_a_trace_is_refused() -> None:
    Path("c.csv").write_text("user,time,lat,lon\n" + table([*PAST, *DAY]))
    ledger = '[ledger]\npath = "ledger.json"\nepsilon = 9'
    Path("s.toml").write_text(text(TIMED, ESTIMATED, 'history = "own"') + ledger)
    times = [START + 300 * number for number in range(len(PAST), len(PAST) + len(DAY))]
    Path("t.csv").write_text("state,time\n" + "".join(f"{s},{t}\n" for s, t in zip(DAY, times, strict=True)))
    asked = ["release", "s.toml", "t.csv", "--channels"]
    result = CliRunner().invoke(main, asked)
    assert result.exit_code == 2
    assert "--own-history" in result.stderr
    assert not Path("released").exists()
    assert not Path("ledger.json").exists()
    result = CliRunner().invoke(main, [*asked, "--own-history"])
    assert result.exit_code == 0, result.output
    assert OWN in json.loads(Path("released/release.json").read_text())["depends_on"]["meaning"]
    assert OWN in " ".join(result.stderr.split())
    assert OWN in Path("released/report.html").read_text()
    spent = md.Ledger(path="ledger.json")
    assert spent.spent.epsilon == 3
    assert json.loads(Path("released/release.json").read_text())["entries"] == [each.number for each in spent.entries]


@pytest.mark.usefixtures("blank_pictures")
@pytest.mark.parametrize("mechanism", ["lp", "planar-isotropic"])
def test_public_channels_hold_no_prior_that_was_counted(mechanism: str) -> None:
    for prior, more in ((TIMED, OTHERS), (PUBLIC, "")):
        found = release(prior, more=f'mechanism = "{mechanism}"\n{more}', start=START + 10**6, states=[1, 2])
        md.save(found, "out", channels=True)
        for step, each in enumerate(found.releases):
            folder = Path(f"out/channels/step-{step}")
            assert md.verify(folder).holds
            held = np.load(folder / "channel.npz")
            assert each.stage.channel is not None
            np.testing.assert_array_equal(held["numerators"], each.stage.channel.numerators)
            certificate = json.loads((folder / "certificate.json").read_text())
            said = certificate["metadata"].get("origin", {}).get("prior", "")
            if prior == PUBLIC:
                np.testing.assert_allclose(held["prior"], each.stage.prior)
                assert said == ""
            else:
                np.testing.assert_array_equal(held["prior"], held["prior"][0])
                assert np.ptp(each.stage.prior) > 0.01
                assert "stands in place of a private one" in said


def test_trajectories_and_visits_of_anchors_are_counted() -> None:
    folder = Path("geolife/000/Trajectory")
    folder.mkdir(parents=True)
    rows = "".join(f"50.005,8.005,0,100,0,2023-11-14,22:{minute:02}:00\n" for minute in range(0, 50, 5))
    (folder / "a.plt").write_text("-\n" * 6 + rows)
    assert release('plt = { path = "geolife" }', more=OTHERS).history.counted == ("prior.plt",)
    Path("v.csv").write_text("x,y\n0.5,0.5\n1.5,0.5\n")
    anchors = """
    domain.anchors = { columns = 3, rows = 2, width = 2.0, height = 1.0 }
    prior.visits.path = "v.csv"
    cost.distance = "euclidean"
    privacy = [{ kind = "graph", epsilon = 1, complete = true }]
    release = { transition = { path = "P.csv" }, initial = { uniform = true }, history = "others" }
    """
    Path("P.csv").write_text((",".join(["0.25"] * 2 + ["0.125"] * 4) + "\n") * 6)
    # What answers cost is counted in the visits, whatever is believed before the first step.
    assert parse(anchors).release([0, 1, 2]).history.counted == ("prior.visits",)


def test_a_budget_in_both_numbers_is_asked_before_the_first_charge() -> None:
    # Three steps of ε = 1 have ρ = 3/2 together, not that of ε = 3.
    for epsilon, rho, allowed in ((3, "3/2", True), ("2.99", "3/2", False), (3, "1.49", False), (9, "3/2", True)):
        ledger = md.Ledger(epsilon, rho=rho)
        given = parse(text(PUBLIC, WALK))
        if allowed:
            given.release(DAY, ledger=ledger)
            assert ledger.spent.epsilon == 3
            continue
        with pytest.raises(BudgetExceededError, match="a trace of 3 steps"):
            given.release(DAY, ledger=ledger)
        assert not ledger.entries


def test_a_true_place_is_not_shown_where_it_cannot_be_released() -> None:
    given = parse(text("counts = [1, 0, 0, 0, 0, 0]", WALK).replace("smoothing = 1", "smoothing = 0"))
    with pytest.raises(InputError, match="true state") as caught:
        given.release([5])
    assert caught.value.value is None
    assert "5" not in str(caught.value)
