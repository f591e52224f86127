"""What a folder tells of a prior that was counted in data, and a folder that tells nothing of it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from cli_examples import assert_wrong_usage, contents, flat, leave_pictures_blank, run, well, write

import mechdesign as md
from mechdesign.certify import second_verifier
from mechdesign.errors import ExportError, InputError
from mechdesign.model._origin import STANDS_IN, Origin
from mechdesign.report._statements import private
from mechdesign.synthesis._result import withhold_prior

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
COST = 1.0 - np.eye(3)
FALLS = "every count exactly"
pytestmark = pytest.mark.usefixtures("blank_pictures")


def write_visits(folder: Path) -> None:
    """Write the check-ins in which the prior is counted."""
    rows = [
        f"ann,{50.005 + 0.01 * (cell // 3)},{8.005 + 0.01 * (cell % 3)}\n"
        for cell, count in enumerate(VISITS)
        for _ in range(count)
    ]
    (folder / "c.csv").write_text("user,lat,lon\n" + "".join(rows))
    (folder / "s.toml").write_text(SPECIFICATION)


def say(*arguments: object) -> str:
    """Run a command that ends well, and return on one line all that it says."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output + result.stderr
    return flat(result.output + result.stderr)


def design_of(counts: list[int], *more: object) -> md.Design:
    return md.design(md.Problem(md.Prior.from_counts(counts), COST, [md.MetricPrivacy(1.0, COST), *more]))


@pytest.fixture(scope="module")
def designed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder whose prior was counted, and what the command said when it wrote it."""
    folder = tmp_path_factory.mktemp("counted")
    write_visits(folder)
    with pytest.MonkeyPatch.context() as patched:
        leave_pictures_blank(patched)
        said = say("design", folder / "s.toml", "-o", folder / "d")
    return folder / "d", said


@pytest.fixture
def folder(designed: tuple[Path, str]) -> Path:
    return designed[0]


@pytest.fixture(scope="module")
def exported(designed: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same folder without its prior."""
    public = tmp_path_factory.mktemp("exported") / "public"
    with pytest.MonkeyPatch.context() as patched:
        leave_pictures_blank(patched)
        assert "nothing is claimed of cost" in say("export", designed[0], "--without-prior", "-o", public)
    return public


# --- with the prior ---


def test_a_folder_says_that_it_tells_all_counts(designed: tuple[Path, str]) -> None:
    folder, said = designed
    prior = np.load(folder / "channel.npz")["prior"]
    assert np.rint(prior * 0.01 / prior.min() - 0.01).astype(int).tolist() == VISITS
    page = flat((folder / "report.html").read_text())
    for text in (said, say("inspect", folder), say("verify", folder), page):
        assert "private" in text
        assert FALLS in text
    assert "--without-prior" in said
    assert FALLS in json.loads(run("inspect", folder, "--json").stdout)["private"]


def test_exports_say_whether_they_hold_the_prior(folder: Path) -> None:
    for form in ("csv", "geojson", "js", "json", "mps", "npz"):
        said = say("export", folder, "-o", f"a.{form}")
        assert (f"{form} contains the prior" in said) == (form not in ("csv", "js")), form


@pytest.mark.slow
def test_other_commands_say_what_they_hold_of_a_prior(folder: Path) -> None:
    assert "depends on it, and is private" in say("inspect", folder, folder)
    assert "depends on it, and is private" in say("audit", folder, "-o", "audit.html")
    assert "depends on it, and is private" in Path("audit.html").read_text()
    assert "depends on it, and is private" in say("attack", folder)


def test_sweeps_and_policy_graphs_say_it_too(tmp_path: Path) -> None:
    write_visits(tmp_path)
    write(SPECIFICATION + '[sweep]\n"privacy.0.epsilon" = [0.5]\n')
    assert "private" in say("sweep", "s.toml", "-o", "w", "--jobs", "1")
    assert "The prior was counted in data" in Path("w/report.html").read_text(encoding="utf-8")
    # A policy graph of steps in data tells them.
    write("user,lat,lon\n" + "".join(f"ann,50.005,{8.005 + 0.01 * (k % 3)}\n" for k in range(9)), "c.csv")
    graph = '[[privacy]]\nkind = "graph"\nepsilon = 1\ntransitions = { estimated = true }\n'
    write(SPECIFICATION[: SPECIFICATION.index("[[privacy]]")] + graph)
    assert "reveal the observed steps" in say("policy", "s.toml")


# --- without the prior ---


def test_the_export_says_that_the_channel_depends_on_the_prior(folder: Path, tmp_path: Path) -> None:
    assert "the channel still depends on the true prior" in say(
        "export", folder, "--without-prior", "-o", tmp_path / "x"
    )


def test_a_folder_without_the_prior_verifies_and_says_what_stands_there(folder: Path, exported: Path) -> None:
    prior = np.load(exported / "channel.npz")["prior"]
    assert set(prior.tolist()) == {1 / 6}
    assert md.verify(exported).lower_bound == 0.0
    assert second_verifier.prove(exported)
    assert "stands in place of a private one; nothing is claimed of cost" in say("verify", exported)
    assert not (exported / "dual.npz").exists()
    assert (np.load(exported / "channel.npz")["numerators"] == np.load(folder / "channel.npz")["numerators"]).all()
    everything = b"".join(contents(exported).values())
    for word in (b"ann only", b"user ann", b"c.csv", b"43 points", b"63 points", b"s.toml", b"seconds", b"checkins"):
        assert word not in everything
    # The page says nothing of costs, multipliers and beliefs that the folder does not have.
    page, of_prior = ((each / "report.html").read_text() for each in (exported, folder))
    assert "the lower bound is rounded down" in of_prior
    assert "the lower bound is rounded down" not in page
    assert "The channel was designed for the private prior." in page
    shown = say("inspect", exported)
    assert "private" not in shown.partition("prior")[0]
    assert "nothing is claimed of cost" in shown
    assert "is private" not in say("attack", exported)


def test_no_cost_is_claimed_under_a_prior_that_stands_in(folder: Path, exported: Path) -> None:
    page = (exported / "report.html").read_text()
    for said in (say("verify", exported), say("inspect", exported), page):
        assert re.search(r"(cost \(expected\),?|expected cost) under a uniform prior", said, re.IGNORECASE)
        assert "off by at most" not in said
        assert "minimised" not in said
    assert "off by at most" in say("verify", folder)
    for arguments in (["attack", exported], ["audit", exported], ["inspect", folder, exported]):
        assert "are under a uniform prior, not a private one" in say(*arguments)
    assert "The costs are not ranked" in say("inspect", folder, exported)


def save_two_priors(objective: str, folder: Path) -> md.Design:
    """Save without its prior one channel for two priors, and return the first design; fail if the folders differ."""
    domain = md.Domain.grid(2, 2, 1.0, 1.0)
    distance = md.distances.euclidean(domain)
    requirements = [md.MetricPrivacy(1.0, distance)]
    found: list[md.Design] = []
    for counts, name, tolerance in (([1, 2, 3, 4], "ann", 1e-6), ([9, 1, 1, 0], "bob", 0.5)):
        prior = md.Prior.from_counts(counts, 0.01)
        problem = md.Problem(prior, distance, requirements, objective, domain, domain, title="Four cells")
        made = md.design(problem, tolerance=tolerance)
        origin = Origin(
            f"# {name}",
            f"check-ins in c.csv, user {name} only",
            {"c.csv": "ab" * 32},
            ("9 points",),
            {"tolerance": str(tolerance)},
        )
        found.append(replace(made, channel=found[0].channel if found else made.channel, origin=origin))
        md.save(found[-1], folder / name, prior=False)
    assert contents(folder / "ann") == contents(folder / "bob")
    assert sorted(contents(folder / "ann")) == ["certificate.json", "channel.csv", "channel.npz", "report.html"]
    return found[0]


@pytest.mark.parametrize("objective", ["expected", "worst"])
def test_two_priors_with_the_same_channel_give_the_same_folder(tmp_path: Path, objective: str) -> None:
    first = save_two_priors(objective, tmp_path)
    # The command writes what Python writes.
    md.save(first, "whole")
    say("export", "whole", "--without-prior", "-o", "command")
    assert contents("command") == contents("ann")
    md.save(first, "bare", report=False)
    say("export", "bare", "--without-prior", "-o", "without a page")
    assert sorted(contents("without a page")) == ["certificate.json", "channel.csv", "channel.npz"]
    # Expected costs depend on the prior that stands in, and worst costs do not.
    differences = json.loads(well("inspect", "ann", "command", "--json").stdout)["differences"]
    assert bool(differences) == (objective == "expected")
    assert md.Channel.load("command/channel.npz").numerators.shape == (4, 4)
    # An auditor who holds the public folder knows the module that an app has from the private one.
    for form in (["--format", "js"], ["--format", "js", "--classic"]):
        private, public = (well("export", name, *form).stdout_bytes for name in ("whole", "command"))
        assert private == public


@pytest.mark.slow
def test_and_the_same_pictures(drawn: None, tmp_path: Path) -> None:
    save_two_priors("expected", tmp_path)
    assert "<path" in Path("bob/report.html").read_text()


def test_a_graph_made_from_steps_stays_and_the_export_says_so() -> None:
    made = md.design(md.Problem(md.Prior.from_counts([5, 2, 1]), COST, [md.GraphPrivacy(1.0, nx.path_graph(3))]))
    for steps, says in (("[[privacy]]\ntransitions = { estimated = true }\n", True), ("", False)):
        md.save(replace(made, origin=Origin(steps, "check-ins in c.csv")), "d", report=False)
        assert ("reveal the observed steps" in say("export", "d", "--without-prior", "-o", f"w{says}")) is says


def test_nothing_of_an_older_folder_with_the_prior_stays() -> None:
    made = design_of([1, 2, 3])
    md.save(made, "d")
    # Such a report would stay, since it is no longer the one that was written with the rest.
    write("0.1667 0.3333 0.5", "d/report.html")
    with pytest.raises(ExportError, match="choose another folder"):
        md.save(made, "d", prior=False, report=False)
    Path("e").mkdir()
    md.save(made, "e", prior=False)
    with pytest.raises(ExportError, match="choose another folder for a design without its prior"):
        md.save(made, "e", prior=False)
    # The other way round the prior was asked for.
    md.save(made, "e")
    assert md.verify("e").lower_bound > 0


def test_what_cannot_be_withheld_is_refused() -> None:
    for own in (None, [0.2, 0.5, 0.3]):
        with pytest.raises(InputError, match=r"requirements\[1\]: is distortion privacy, .* on a prior"):
            md.save(design_of([1, 1, 1], md.DistortionPrivacy(0.1, COST, own)), "d", prior=False)
    for wrong in ("no", "uniform", None, 0):
        with pytest.raises(InputError, match="prior: is not a truth value"):
            md.save(design_of([1, 1, 1]), "d", prior=wrong, report=False)  # type: ignore[arg-type]
    assert not Path("d").exists()
    # Costs of anchors tell the visits.
    anchors = md.Domain.anchors(2, 2, 1.0, 1.0)
    problem = md.Problem(md.Prior.uniform(4), np.ones((4, 1)), [], secrets=anchors)
    with pytest.raises(InputError, match="anchors"):
        withhold_prior(problem, md.Channel(np.full((4, 1), 2**62)))


def test_wrong_usage(folder: Path, exported: Path) -> None:
    write("mine", "thesis.tex")
    target = Path("target")
    target.mkdir()
    write("mine", "target/thesis.tex")
    say("export", folder, "--without-prior", "-o", "p")
    assert contents("p") == contents(exported)
    with_form = "cannot be combined with --format"
    another = "choose another folder"
    before = contents(folder)
    assert_wrong_usage(
        {
            f"export {folder} --without-prior": "with -o",
            f"export {folder} --without-prior -o x.csv --format csv": with_form,
            f"export {folder} --without-prior -o x --classic": with_form,
            f"export {folder} --without-prior -o {folder}": another,
            f"export {folder} --without-prior -o target": another,
            f"export {folder} --without-prior -o p": another,
            f"chain {folder.parent}/s.toml -o target": another,
        }
    )
    assert contents(folder) == before


def test_a_folder_without_the_prior_is_offered_only_where_it_can_be_written(tmp_path: Path) -> None:
    write_visits(tmp_path)
    floor = 'kind = "distortion"\nminimum = 0.01'
    for name, text, offered in (
        ("metric", SPECIFICATION, True),
        ("floor", SPECIFICATION.replace('kind = "metric"\nepsilon = 0.8', floor), False),
        ("anchors", SPECIFICATION.replace("grid = {", "anchors = {").replace("smoothing = 0.01\n", ""), False),
    ):
        said = say("design", write(text), "-o", name, "--no-report")
        assert FALLS in said, name
        assert ("--without-prior" in said) is offered, name
        assert run("export", name, "--without-prior", "-o", f"{name}-public").exit_code == (0 if offered else 2)


# --- origins ---

ORIGINS = (
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
)
SAID = (
    (Origin("[[privacy]]\ntransitions = { estimated = true }\n", "uniform"), "reveal the observed steps"),
    (Origin("prior.counts = [3, 2, 1]", "counts in the specification"), "counts in the specification"),
    (Origin('prior.csv.path = "c.csv"', "counts in column n of c.csv"), "was counted in data"),
    (Origin("", "whatever"), "is not known"),
    (None, "is not known"),
)


def test_an_origin_knows_what_was_counted_and_what_is_said_follows_it() -> None:
    for origin, keys in ORIGINS:
        assert origin.counted == keys, origin
    problem = md.Problem(md.Prior.from_counts([3, 2, 1]), COST, [md.MetricPrivacy(1.0, COST)])
    for origin, words in SAID:
        (said,) = private(problem, origin)
        assert words in said, origin
        assert "private" in said
    # A prior of unknown origin may be private, but for a uniform one.
    for counts, may_be in (([1, 1, 1], False), ([1, 2, 3], True)):
        md.save(design_of(counts), "d", report=False)
        assert ("private" in say("inspect", "d")) is may_be
