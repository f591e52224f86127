"""What public files of a trace tell of the data that prior, chain and policy were counted in, and what is refused."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import mechdesign as md
from mechdesign.cli import main
from mechdesign.errors import BudgetExceededError, InputError, InputWarning, SpecificationError, showing_values
from mechdesign.specification._specification import parse
from mechdesign.traces._released import ReleasedTrace

START = 1_700_000_000
PAST = [0, 3, 4, 5, 4, 3, 0, 1, 2, 1, 0, 1, 2, 1, 0]
DAY = [1, 2, 5]
"""The steps of the history, five minutes apart, and those that are released, which follow them."""

NOTHING = "othing in this folder depends on the true states except through the outputs"
TRUE = "and so on the true states"
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
    (PUBLIC, TIMED, "", "blocks = 3"),
    (PUBLIC, f"{TIMED}, every = '10 min', gap = '1 h'", 'every = "10 min"', "blocks = 3"),
    (PUBLIC, WALK, f"initial = {{ {TIMED}, smoothing = 1 }}", "blocks = 3"),
    (PUBLIC, WALK, "", f"transitions = {{ {TIMED} }}"),
]


@pytest.mark.parametrize(("prior", "transition", "more", "privacy"), COUNTED)
def test_rows_of_the_time_of_the_trace_are_refused(prior: str, transition: str, more: str, privacy: str) -> None:
    end = START + 300 * (len(PAST) + len(DAY) - 1)
    # The first time of the trace is the last of the data, and one second later.
    with pytest.raises(SpecificationError, match="--own-history") as caught:
        release(prior, transition, more, start=end, privacy=privacy)
    assert re.search(r"[.](checkins|estimated)$", caught.value.path)
    assert not re.search("1700|2023|50[.]0|8[.]0", str(caught.value))
    found = release(prior, transition, more, start=end + 1, privacy=privacy)
    said = found.history.to_json()
    assert said["counted"] == list(found.history.counted) != []
    assert "Costs and channels depend on" in said["meaning"]
    assert "No row of these data lies between" in said["meaning"]
    assert NOTHING not in said["meaning"]
    # The last time of the trace is the first of the data, and one second earlier.
    early = START - 300 * (len(DAY) - 1)
    with pytest.raises(SpecificationError):
        release(prior, transition, more, start=early, privacy=privacy)
    release(prior, transition, more, start=early - 1, privacy=privacy)
    insisted = release(prior, transition, more, start=end, privacy=privacy, own_history=True)
    assert TRUE in insisted.history.meaning


def test_one_row_within_is_enough_and_only_says_whose() -> None:
    past, later = table(PAST), START + 10**6
    inside = table([4], "bob", later + 1)
    for prior in (TIMED, ANN):
        release(prior, data=past, start=later)
    release(ANN, data=past + inside, start=later)
    with pytest.raises(SpecificationError):
        release(TIMED, data=past + inside, start=later)
    with pytest.raises(SpecificationError):
        release(ANN, data=past + inside.replace("bob", "ann"), start=later)
    # A trace of one state has one time, and a row between its states is not of it.
    release(ANN, data=past + inside.replace("bob", "ann"), start=later, states=[1])
    with pytest.raises(SpecificationError):
        release(ANN, data=past + inside.replace("bob", "ann"), start=later + 1, states=[1])


def test_times_are_compared_across_zones() -> None:
    row = "ann,2023-11-14T23:30:00+01:00,50.005,8.005\n"
    data = table(PAST, start=START - 10**7).replace("\n", "\n")
    data = re.sub(r",(1\d{9}),", lambda found: f",{np.datetime64(int(found[1]), 's')}Z,", data) + row
    within = int(np.datetime64("2023-11-14T22:30:00").astype("datetime64[s]").astype(int))
    with pytest.raises(SpecificationError):
        release(TIMED, data=data, start=within)
    release(TIMED, data=data, start=within + 3600)


def test_even_steps_hide_no_row() -> None:
    # The data are brought to steps of an hour, the trace to steps of 10 minutes; the row stands at neither.
    data = table(PAST) + table([4, 4], start=START + 10**6 + 700)
    more = 'every = "10 min"'
    with pytest.raises(SpecificationError):
        release(TIMED.replace("{ ", '{ every = "1 h", '), more=more, data=data, start=START + 10**6 + 400)
    trace = {"state": [0, 1, 2, 2], "time": np.array([0, 600, 1200, 1500]).astype("datetime64[s]") + START + 10**7}
    # A row after the last even step, and before the last state.
    Path("c.csv").write_text("user,time,lat,lon\n" + table(PAST) + table([4], start=START + 10**7 + 1400))
    with pytest.raises(SpecificationError):
        parse(text(TIMED, WALK, more)).release(trace)


@pytest.mark.parametrize(
    ("prior", "transition", "start"),
    [
        (TIMED, ESTIMATED, None),
        (TIMED, WALK, None),
        (PUBLIC, TIMED, None),
        (UNTIMED, WALK, START + 10**6),
        ('csv = { path = "n.csv", column = "n" }', WALK, START + 10**6),
        (PUBLIC, 'path = "chain/forward.csv"', START + 10**6),
        (PUBLIC, 'paths = ["chain/forward.csv", "chain/forward.csv"], by = "step"', None),
    ],
)
def test_without_times_it_is_said(prior: str, transition: str, start: int | None) -> None:
    Path("n.csv").write_text("n\n" + "4\n5\n3\n2\n2\n2\n")
    Path("chain").mkdir()
    for name in ("forward.csv", "states.csv"):
        Path("chain", name).write_text((",".join(["0.25"] * 2 + ["0.125"] * 4) + "\n") * 6)
    with pytest.warns(InputWarning, match="history = "):
        found = release(prior, transition, start=start)
    said = found.history.to_json()["meaning"]
    assert "depend on the data that were counted" in said
    assert "which is unknown" in said
    assert NOTHING not in said
    with warnings.catch_warnings():
        warnings.simplefilter("error", InputWarning)
        assert TRUE in release(prior, transition, start=start, own_history=True).history.meaning
        stated = release(prior, transition, 'history = "others"', start=start)
    assert stated.history.to_json()["stated"] == "others"
    assert "The owner states" in stated.history.meaning
    assert NOTHING in stated.history.meaning


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
        assert release(prior, transition, 'history = "others"', start=start).history.tells_prior


def test_a_prior_that_is_not_used_is_not_compared() -> None:
    found = release(TIMED, WALK, "initial = { uniform = true }")
    assert found.history.counted == ()


def test_statements_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(SpecificationError, match=r"release\.history"):
        release(TIMED, more='history = "others"', own_history=True)
    for wrong in ('history = "own"', "history = true", 'history = ""'):
        with pytest.raises(SpecificationError, match=r"release\.history"):
            release(more=wrong)


@pytest.mark.usefixtures("blank_pictures")
def test_nothing_is_charged_or_written_where_a_trace_is_refused() -> None:
    Path("c.csv").write_text("user,time,lat,lon\n" + table([*PAST, *DAY]))
    ledger = '[ledger]\npath = "ledger.json"\nepsilon = 9'
    Path("s.toml").write_text(text(TIMED, ESTIMATED) + ledger)
    times = [START + 300 * number for number in range(len(PAST), len(PAST) + len(DAY))]
    Path("t.csv").write_text("state,time\n" + "".join(f"{s},{t}\n" for s, t in zip(DAY, times, strict=True)))
    asked = ["release", "s.toml", "t.csv", "--channels"]
    result = CliRunner().invoke(main, asked)
    assert result.exit_code == 2
    assert "--own-history" in result.stderr
    assert not Path("released").exists()
    assert not Path("ledger.json").exists()
    result = CliRunner().invoke(main, [*asked, "--own-history", "--json"])
    assert result.exit_code == 0, result.output
    assert TRUE in json.loads(result.stdout)["depends_on"]["meaning"]
    assert TRUE in " ".join(result.stderr.split())
    assert TRUE in Path("released/report.html").read_text()
    spent = md.Ledger(path="ledger.json")
    assert spent.spent.epsilon == 3
    assert json.loads(Path("released/release.json").read_text())["entries"] == [each.number for each in spent.entries]


@pytest.mark.usefixtures("blank_pictures")
@pytest.mark.parametrize("mechanism", ["lp", "planar-isotropic"])
def test_public_channels_hold_no_prior_that_was_counted(mechanism: str) -> None:
    for prior, more in ((TIMED, ""), (TIMED, 'history = "others"'), (PUBLIC, "")):
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
                np.testing.assert_allclose(held["prior"], each.prior)
                assert said == ""
            else:
                np.testing.assert_array_equal(held["prior"], held["prior"][0])
                assert np.ptp(each.prior) > 0.01
                assert "stands in place of a private one" in said


def test_trajectories_and_visits_of_anchors_are_counted() -> None:
    folder = Path("geolife/000/Trajectory")
    folder.mkdir(parents=True)
    rows = "".join(f"50.005,8.005,0,100,0,2023-11-14,22:{minute:02}:00\n" for minute in range(0, 50, 5))
    (folder / "a.plt").write_text("-\n" * 6 + rows)
    last = int(np.datetime64("2023-11-14T22:45:00", "s").astype(int))
    prior = 'plt = { path = "geolife" }'
    with pytest.raises(SpecificationError, match=r"prior\.plt"):
        release(prior, start=last)
    assert release(prior, start=last + 1).history.within is False
    Path("v.csv").write_text("x,y\n0.5,0.5\n1.5,0.5\n")
    anchors = """
    domain.anchors = { columns = 3, rows = 2, width = 2.0, height = 1.0 }
    prior.visits.path = "v.csv"
    cost.distance = "euclidean"
    privacy = [{ kind = "graph", epsilon = 1, complete = true }]
    release = { transition = { path = "P.csv" }, initial = { uniform = true } }
    """
    Path("P.csv").write_text((",".join(["0.25"] * 2 + ["0.125"] * 4) + "\n") * 6)
    with pytest.warns(InputWarning):
        found = parse(anchors).release([0, 1, 2])
    # What answers cost is counted in the visits, whatever is believed before the first step.
    assert found.history.counted == ("prior.visits",)


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
    with pytest.raises(InputError, match=r"true state: .* found 9 ") as caught:
        given.release([5])
    assert caught.value.value == "9"
    with showing_values(), pytest.raises(InputError, match=r"found '?5"):
        given.release([5])


def test_a_counted_chain_is_known_by_its_counts_and_through_a_link() -> None:
    Path("c.csv").write_text("user,time,lat,lon\n" + table(PAST))
    Path("s.toml").write_text(text(TIMED, "estimated = true"))
    assert CliRunner().invoke(main, ["chain", "s.toml", "-o", "chain"]).exit_code == 0
    Path("copy").mkdir()
    shutil.copy("chain/forward.csv", "copy/P.csv")
    shutil.copy("chain/chain-counts.json", "copy")
    Path("P.csv").symlink_to("chain/forward.csv")
    for path in ("chain/forward.csv", "copy/P.csv", "P.csv"):
        with pytest.warns(InputWarning, match="data that may include the trace"):
            found = release(transition=f'path = "{path}"')
        assert found.history.counted == ("release.transition.path",)
    # Alone it is a matrix of which nobody here knows where it is from.
    Path("copy/chain-counts.json").unlink()
    assert release(transition='path = "copy/P.csv"').history.given == ("release.transition.path",)
