"""What a folder tells of a prior that was counted in data, and a folder that tells nothing of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from click.testing import CliRunner

import mechdesign as md
from mechdesign.certify import second_verifier
from mechdesign.cli import main
from mechdesign.errors import ExportError, InputError
from mechdesign.model._origin import STANDS_IN, Origin
from mechdesign.report import _saving as saving
from mechdesign.report._private import private
from mechdesign.synthesis._without_prior import withhold_prior

VISITS = [17, 3, 0, 1, 40, 2]

SPECIFICATION = """
title = "Six cells"
domain = { grid = { columns = 3, rows = 2, south = 50.0, north = 50.02, west = 8.0, east = 8.03 } }
cost = { distance = "euclidean" }
[prior]
checkins = { path = "c.csv", user = "user", latitude = "lat", longitude = "lon", only = "ann" }
smoothing = 0.01
[[privacy]]
kind = "metric"
epsilon = 0.8
distance = "euclidean"
"""


def write_specification(folder: Path, visits: list[int]) -> Path:
    """Write a specification, and the check-ins in which its prior is counted."""
    folder.mkdir(exist_ok=True)
    rows = [
        f"ann,{50.005 + 0.01 * (cell // 3)},{8.005 + 0.01 * (cell % 3)}"
        for cell, count in enumerate(visits)
        for _ in range(count)
    ]
    (folder / "c.csv").write_text("user,lat,lon\n" + "".join(f"{row}\n" for row in rows))
    (folder / "s.toml").write_text(SPECIFICATION)
    return folder / "s.toml"


def run(*arguments: object) -> str:
    """Run a command that ends well, and return all that it says."""
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == 0, result.output + result.stderr
    return result.output + result.stderr


@pytest.fixture(scope="module")
def designed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder whose prior was counted, and what the command said when it wrote it."""
    folder = tmp_path_factory.mktemp("counted")
    said = run("design", write_specification(folder, VISITS), "-o", folder / "d")
    return folder / "d", said


def contents(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir()}


def test_a_folder_says_that_it_tells_all_counts(designed: tuple[Path, str]) -> None:
    folder, said = designed
    prior = np.load(folder / "channel.npz")["prior"]
    assert np.rint(prior * 0.01 / prior.min() - 0.01).astype(int).tolist() == VISITS
    page = (folder / "report.html").read_text()
    for text in (said, run("inspect", folder), run("verify", folder), page):
        assert "private" in text
        assert "every count exactly" in " ".join(text.split())
    assert "--without-prior" in said
    assert "every count exactly" in json.loads(run("inspect", folder, "--json").partition("\nnote")[0])["private"]


def test_other_commands_say_what_they_hold_of_a_prior(designed: tuple[Path, str], tmp_path: Path) -> None:
    folder, _ = designed
    assert "geojson contains the prior" in run("export", folder, "-o", tmp_path / "a.geojson")
    assert "private" not in run("export", folder, "-o", tmp_path / "a.js")
    for arguments in (["compare", folder, folder], ["audit", folder]):
        page = tmp_path / f"{arguments[0]}.html"
        assert "depends on it, and is private" in " ".join(run(*arguments, "-o", page).split())
        assert "depends on it, and is private" in page.read_text()
    assert "depends on it, and is private" in " ".join(run("attack", folder).split())


def test_a_folder_without_the_prior_verifies_and_says_what_stands_there(
    designed: tuple[Path, str], tmp_path: Path
) -> None:
    folder, _ = designed
    public = tmp_path / "public"
    assert "nothing is claimed of cost" in run("export", folder, "--without-prior", "-o", public)
    prior = np.load(public / "channel.npz")["prior"]
    assert set(prior.tolist()) == {1 / 6}
    assert md.verify(public).lower_bound == 0.0
    assert second_verifier.prove(public)
    assert "stands in place of a private one; nothing is claimed of cost" in run("verify", public)
    assert not (public / "dual.npz").exists()
    assert (np.load(public / "channel.npz")["numerators"] == np.load(folder / "channel.npz")["numerators"]).all()
    everything = b"".join(contents(public).values())
    for word in (b"ann only", b"user ann", b"c.csv", b"43 points", b"63 points", b"s.toml", b"seconds", b"checkins"):
        assert word not in everything
    # The page says nothing of costs, multipliers and beliefs that the folder does not have.
    page, of_prior = ((each / "report.html").read_text() for each in (public, folder))
    for said in (
        "Costs are rounded up, and the lower bound is rounded down.",
        "The assumed belief of an adversary",
    ):
        assert said in of_prior
        assert said not in page
    assert "The channel was designed for the private prior." in page
    shown = run("inspect", public)
    assert "private" not in shown.partition("prior")[0]
    assert "nothing is claimed of cost" in " ".join(shown.split())
    assert "is private" not in run("attack", public)


@pytest.mark.parametrize("objective", ["expected", "worst"])
def test_two_priors_with_the_same_channel_give_the_same_folder(tmp_path: Path, objective: str) -> None:
    domain = md.Domain.grid(2, 2, 1.0, 1.0)
    found = []
    for counts, name, tolerance in (([1, 2, 3, 4], "ann", 0.0), ([9, 1, 1, 0], "bob", 0.5)):
        prior = md.Prior.from_counts(counts, 0.01)
        distance = md.distances.euclidean(domain)
        requirements = [md.MetricPrivacy(1.0, distance)]
        problem = md.Problem(prior, distance, requirements, objective, domain, domain, title="Four cells")
        made = md.design(problem, tolerance=tolerance) if tolerance else md.design(problem)
        origin = Origin(f"# {name}", f"check-ins in c.csv, user {name} only", {"c.csv": "ab" * 32}, ("9 points",), name)
        made = replace(made, channel=found[0][0].channel if found else made.channel, origin=origin)
        saving.save(made, tmp_path / name, prior=False)
        found.append((made, contents(tmp_path / name)))
    (first, one), (_, other) = found
    assert one == other
    assert sorted(one) == ["certificate.json", "channel.csv", "channel.npz", "report.html"]
    # The command writes what Python writes.
    saving.save(first, tmp_path / "whole")
    run("export", tmp_path / "whole", "--without-prior", "-o", tmp_path / "command")
    assert contents(tmp_path / "command") == one
    assert md.Channel.load(tmp_path / "command" / "channel.npz").numerators.shape == (4, 4)


def test_a_graph_made_from_steps_stays_and_the_export_says_so(tmp_path: Path) -> None:
    cost = 1.0 - np.eye(3)
    made = md.design(md.Problem(md.Prior.from_counts([5, 2, 1]), cost, [md.GraphPrivacy(1.0, nx.path_graph(3))]))
    for steps, says in (("[[privacy]]\ntransitions = { estimated = true }\n", True), ("", False)):
        replace(made, origin=Origin(steps, "check-ins in c.csv")).save(tmp_path / "d")
        said = run("export", tmp_path / "d", "--without-prior", "-o", tmp_path / "w")
        assert ("reveal the observed steps" in " ".join(said.split())) is says


def test_a_changed_channel_gives_another_folder(tmp_path: Path) -> None:
    found = []
    for name, counts in (("a", [1, 2, 3]), ("b", [8, 1, 1])):
        cost = 1.0 - np.eye(3)
        made = md.design(md.Problem(md.Prior.from_counts(counts), cost, [md.MetricPrivacy(1.0, cost)]))
        made.save(tmp_path / name, prior=False)
        found.append(contents(tmp_path / name)["channel.npz"])
    assert found[0] != found[1]


def test_nothing_of_an_older_folder_with_the_prior_stays(tmp_path: Path) -> None:
    cost = 1.0 - np.eye(3)
    made = md.design(md.Problem(md.Prior.from_counts([1, 2, 3]), cost, [md.MetricPrivacy(1.0, cost)]))
    saving.save(made, tmp_path / "d")
    # Such a report would stay, since it is no longer the one that was written with the rest.
    (tmp_path / "d" / "report.html").write_text("0.1667 0.3333 0.5")
    with pytest.raises(ExportError, match="choose another folder"):
        made.save(tmp_path / "d", prior=False)
    (tmp_path / "e").mkdir()
    for _ in range(2):
        saving.save(made, tmp_path / "e", prior=False)
    # The other way round the prior was asked for.
    saving.save(made, tmp_path / "e")
    assert md.verify(tmp_path / "e").lower_bound > 0


@pytest.mark.parametrize("own", [None, [0.2, 0.5, 0.3]])
def test_what_is_stated_under_a_prior_is_refused(tmp_path: Path, own: list[float] | None) -> None:
    cost = 1.0 - np.eye(3)
    requirements = [md.MetricPrivacy(2.0, cost), md.DistortionPrivacy(0.1, cost, own)]
    made = md.design(md.Problem(md.Prior.uniform(3), cost, requirements))
    with pytest.raises(InputError, match=r"requirements\[1\]: is distortion privacy, .* on a prior"):
        saving.save(made, tmp_path / "d", prior=False)
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("wrong", ["no", "uniform", None, 0])
def test_what_is_no_truth_value_does_not_write_the_prior(tmp_path: Path, wrong: object) -> None:
    made = md.design(md.Problem(md.Prior.uniform(2), 1 - np.eye(2), [md.MetricPrivacy(1, 1 - np.eye(2))]))
    with pytest.raises(InputError, match="prior: is not a truth value"):
        made.save(tmp_path / "d", prior=wrong)  # type: ignore[arg-type]
    assert not (tmp_path / "d").exists()


def test_anchors_are_refused_for_their_costs_tell_the_visits() -> None:
    anchors = md.Domain.anchors(2, 2, 1.0, 1.0)
    channel = md.Channel(np.full((4, 1), 2**62))
    with pytest.raises(InputError, match="anchors"):
        withhold_prior(md.Problem(md.Prior.uniform(4), np.ones((4, 1)), [], secrets=anchors), channel)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--without-prior"], "with -o"),
        (["--without-prior", "-o", "x.csv", "--format", "csv"], "cannot be combined with --format"),
        (["--without-prior", "-o", "x", "--all-rows"], "cannot be combined with --format"),
        (["--without-prior", "-o", "x", "--classic"], "cannot be combined with --format"),
    ],
)
def test_wrong_usage_is_refused(designed: tuple[Path, str], arguments: list[str], says: str) -> None:
    result = CliRunner().invoke(main, ["export", str(designed[0]), *arguments])
    assert result.exit_code == 2
    assert says in " ".join((result.output + result.stderr).split())


def test_only_a_folder_of_the_same_kind_is_replaced(designed: tuple[Path, str], tmp_path: Path) -> None:
    folder, _ = designed
    for target in (folder, folder.parent):
        result = CliRunner().invoke(main, ["export", str(folder), "--without-prior", "-o", str(target)])
        assert result.exit_code != 0
        assert "choose another folder" in " ".join((result.output + result.stderr).split())
    run("export", folder, "--without-prior", "-o", tmp_path / "p")
    before = contents(tmp_path / "p")
    run("export", folder, "--without-prior", "-o", tmp_path / "p")
    assert contents(tmp_path / "p") == before
    assert md.verify(folder)


@pytest.mark.parametrize(
    ("origin", "keys"),
    [
        (Origin(), ()),
        (Origin(prior="uniform: all secrets equally likely"), ()),
        (Origin(prior=STANDS_IN), ()),
        (Origin(prior="check-ins in c.csv, all users"), ("prior",)),
        (Origin("[prior]\ncounts = [1, 2]\n"), ("prior.counts",)),
        (Origin('{"prior": {"csv": {"path": "c.csv"}}}'), ("prior.csv",)),
        (Origin('[[privacy]]\nkind = "distortion"\nprior = [{ counts = [1, 2] }]\n'), ("privacy[0].prior[0].counts",)),
        (Origin("[policy]\ntransitions = { estimated = true }\n"), ("policy.transitions.estimated",)),
        (Origin("[prior]\nuniform = true\n"), ()),
        (Origin("no [[[ specification"), ()),
    ],
)
def test_an_origin_knows_what_was_counted(origin: Origin, keys: tuple[str, ...]) -> None:
    assert origin.counted == keys


def test_a_prior_of_unknown_origin_is_said_to_be_one_that_may_be_private(tmp_path: Path) -> None:
    cost = 1.0 - np.eye(3)
    for prior, may_be in ((md.Prior.uniform(3), False), (md.Prior.from_counts([1, 2, 3]), True)):
        md.design(md.Problem(prior, cost, [md.MetricPrivacy(1.0, cost)])).save(tmp_path / "d")
        assert ("private" in run("inspect", tmp_path / "d")) is may_be


def test_no_cost_is_claimed_under_a_prior_that_stands_in(designed: tuple[Path, str], tmp_path: Path) -> None:
    folder, public = designed[0], tmp_path / "public"
    run("export", folder, "--without-prior", "-o", public)
    page = (public / "report.html").read_text()
    for said in (run("verify", public), run("inspect", public), page):
        assert "cost under a uniform prior" in said or "cost, under a uniform prior" in said
        assert "off by at most" not in said
        assert "minimised" not in said
    assert "off by at most" in run("verify", folder)
    for arguments in (["attack", public], ["audit", public, "--no-optimum"], ["compare", folder, public]):
        said = " ".join(run(*arguments).split())
        assert "are under a uniform prior, not a private one" in said
    said = run("compare", folder, public, "-o", tmp_path / "both.html")
    assert "the private one of public: costs are not comparable" in said
    both = (tmp_path / "both.html").read_text()
    assert "under a uniform prior, not a private one" in both
    assert "Cost against privacy" not in both
    assert "Cost against privacy" in write_comparison(folder, tmp_path / "same.html")


def write_comparison(folder: Path, page: Path) -> str:
    run("compare", folder, folder, "-o", page)
    return page.read_text()


@pytest.mark.parametrize(
    ("changes", "offered"),
    [
        ({}, True),
        ({'kind = "metric"\nepsilon = 0.8': 'kind = "distortion"\nminimum = 0.01'}, False),
        ({"grid = {": "anchors = {", "smoothing = 0.01\n": ""}, False),
    ],
)
def test_a_folder_without_the_prior_is_offered_only_where_it_can_be_written(
    tmp_path: Path, changes: dict[str, str], offered: bool
) -> None:
    specification = write_specification(tmp_path, VISITS)
    text = SPECIFICATION
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    specification.write_text(text)
    said = run("design", specification, "-o", tmp_path / "d", "--no-report")
    assert "every count exactly" in " ".join(said.split())
    assert ("--without-prior" in said) is offered
    exported = CliRunner().invoke(main, ["export", str(tmp_path / "d"), "--without-prior", "-o", str(tmp_path / "e")])
    assert exported.exit_code == (0 if offered else 2)


def test_schedules_and_sweeps_say_it_too(tmp_path: Path) -> None:
    specification = write_specification(tmp_path, VISITS)
    text = specification.read_text()
    (tmp_path / "b.csv").write_text("step,epsilon\n0,0.5\n")
    specification.write_text(text.replace("epsilon = 0.8", 'epsilon = { budgets = "b.csv" }'))
    assert "private" in run("design", specification, "-o", tmp_path / "s", "--no-report")
    specification.write_text(text + '[sweep]\n"privacy.0.epsilon" = [0.5]\n')
    said = run("sweep", specification, "-o", tmp_path / "w", "--jobs", "1")
    assert "private" in said
    assert "every count exactly" in (tmp_path / "w" / "report.html").read_text()


def test_a_policy_graph_of_steps_in_data_is_said_to_tell_them(tmp_path: Path) -> None:
    specification = write_specification(tmp_path, VISITS)
    text = specification.read_text()[: specification.read_text().index("[[privacy]]")]
    specification.write_text(text + '[[privacy]]\nkind = "graph"\nepsilon = 1\ntransitions = { estimated = true }\n')
    (tmp_path / "c.csv").write_text(
        "user,lat,lon\n" + "".join(f"ann,50.005,{8.005 + 0.01 * (k % 3)}\n" for k in range(9)) + "ann,50.015,8.005\n"
    )
    said = run("policy", specification)
    assert "reveal the observed steps" in said


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        (Origin("[[privacy]]\ntransitions = { estimated = true }\n", "uniform"), "reveal the observed steps"),
        (Origin("prior.counts = [3, 2, 1]", "counts in the specification"), "counts in the specification"),
        (Origin('prior.csv.path = "c.csv"', "counts in column n of c.csv"), "was counted in data"),
        (Origin("", "whatever"), "is not known"),
        (None, "is not known"),
    ],
)
def test_what_is_said_follows_the_origin(origin: Origin | None, words: str) -> None:
    cost = 1.0 - np.eye(3)
    problem = md.Problem(md.Prior.from_counts([3, 2, 1]), cost, [md.MetricPrivacy(1.0, cost)])
    said = private(problem, origin)
    assert len(said) == 1
    assert words in said[0]
    assert "private" in said[0]


def test_a_folder_of_other_things_is_refused_with_a_remedy_that_there_is(
    designed: tuple[Path, str], tmp_path: Path
) -> None:
    folder, _ = designed
    (tmp_path / "thesis.tex").touch()
    specification = folder.parent / "s.toml"
    for arguments in (["export", folder, "--without-prior"], ["chain", specification]):
        refused = CliRunner().invoke(main, [*map(str, arguments), "-o", str(tmp_path)])
        assert refused.exit_code == 2
        assert "choose another folder" in refused.stderr
        assert "--force" not in refused.stderr
