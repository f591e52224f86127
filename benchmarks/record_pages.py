"""Record text, size and time of pages, and compare two records.

    python benchmarks/record_pages.py record FILE.json [--folder FOLDER]
    python benchmarks/record_pages.py compare BEFORE.json AFTER.json

A change in the generation of pages must not change their sentences and numbers. The text outside of pictures is
compared in order; the text of a picture is compared as a set, without the ticks of its axes. The exit code of `compare`
is 1 if any page differs.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import networkx as nx
import numpy as np

import mechdesign as md
from mechdesign.report._audit_page import page as audit_page
from mechdesign.report._compare_page import attack_design
from mechdesign.report._compare_page import html as compare_page
from mechdesign.runs import _bench_page, _sweep_page
from mechdesign.runs._store import Row, State
from mechdesign.runs._tasks import parse as parse_sweep
from mechdesign.specification._table_specification import parse as parse_table

Pages = Iterator[tuple[str, Callable[[], str]]]
_VOID = {"meta", "path", "circle", "rect", "use", "image", "polyline", "polygon"}
_SKIPPED = {"style", "script", "head", "select"}
_NUMBER = re.compile(r"[\d.,−+e×⁻⁰¹²³⁴⁵⁶⁷⁸⁹%°NSEW]*")


class Text(HTMLParser):
    """The visible text of a page: `outside` pictures in order, and in `pictures` the texts of each picture."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.outside: list[str] = []
        self.pictures: dict[str, set[str]] = {}
        self._open: list[tuple[str, bool, str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Add an element to the open elements, with a flag for its visibility."""
        found = dict(attrs)
        hidden, name = (self._open[-1][1:]) if self._open else (False, "")
        kind = (found.get("class") or "").split()
        hidden = hidden or tag in _SKIPPED or "narrow-screen" in kind or "chooser" in kind or tag == "title"
        if tag == "figure":
            name = found.get("id") or ""
        elif tag in ("figcaption", "h3"):
            name = ""
        if tag not in _VOID:
            self._open.append((tag, hidden, name))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Ignore elements without content."""

    def handle_endtag(self, tag: str) -> None:
        """Remove a closed element from the open elements."""
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        """Collect the text that a reader sees."""
        said = " ".join(data.split()).replace("’", "'")
        if not said or not self._open or self._open[-1][1]:
            return
        if name := self._open[-1][2]:
            self.pictures.setdefault(name, set()).update(
                word for word in re.split(r"[\s();:,]+", said) if word and not _NUMBER.fullmatch(word)
            )
        else:
            self.outside.append(said)


def domains() -> dict[str, md.Domain]:
    """Return domains of secrets of several kinds, by name."""
    rng = np.random.default_rng(7)
    return {
        "grid": md.Domain.grid(6, 5, 6.0, 5.0),
        "large grid": md.Domain.grid(20, 15, 20.0, 15.0),
        "geographic": md.Domain.geographic_grid(6, 5, 40.70, 40.80, -74.02, -73.92),
        "points": md.Domain.from_points(rng.normal(size=(30, 2)), unit="km"),
        "numbers": md.Domain.from_points(np.arange(12.0)[:, None], unit="years"),
        "labels": md.Domain.from_labels(["Sales", "Craft-repair", "Tech & support", "家族", "Farming"]),
    }


def prior_of(n: int) -> np.ndarray:
    """Return a prior with a few zeros."""
    weights = 1.0 + np.arange(n) % 7
    weights[1::5] = 0
    return weights / weights.sum()


def problems() -> Iterator[tuple[str, md.Problem]]:
    """Yield a problem of each kind that pages distinguish."""
    for name, domain in domains().items():
        if name == "large grid":
            continue
        apart = md.distances.hamming(domain) if name == "labels" else md.distances.euclidean(domain)
        asked: list[md.model.Requirement] = [md.MetricPrivacy("0.9", apart)]
        if name == "grid":
            asked += [md.ThresholdPrivacy(1, apart, "1.5"), md.DistortionPrivacy("0.4", apart)]
        yield (
            name,
            md.Problem(prior_of(domain.size), apart, asked, secrets=domain, observables=domain, title=name.title()),
        )
    square = md.Domain.grid(4, 4, 4.0, 4.0)
    apart = md.distances.euclidean(square)
    even = np.full(16, 1 / 16)
    roads = nx.path_graph(16)
    yield "roads", md.Problem(even, apart, [md.GraphPrivacy(1, roads)], secrets=square, observables=square)
    blocks = nx.Graph([(i, i ^ bit) for i in range(16) for bit in (1, 4)])
    yield "parts", md.Problem(even, apart, [md.GraphPrivacy(1, blocks)], secrets=square, observables=square)
    floors = [md.MetricPrivacy("0.9", apart), md.DistortionPrivacy("0.3", apart, prior=prior_of(16))]
    yield "floors", md.Problem(even, apart, floors, secrets=square, observables=square)
    worst = [md.MetricPrivacy("0.9", apart)]
    yield "worst cost", md.Problem(even, apart, worst, objective="worst", secrets=square, observables=square)
    anchors = md.Domain.anchors(columns=6, rows=4, width=4.0, height=3.0)
    places = np.random.default_rng(0).uniform(0, [4.0, 3.0], (300, 2))
    asked = [md.ContinuousPrivacy("1.6", anchors, "euclidean")]
    yield "continuous", md.Problem.from_visits(places, md.Domain.grid(4, 3, 4.0, 3.0), asked)


def designs() -> Iterator[tuple[str, md.Design]]:
    """Yield designs without values that differ from run to run, and a design of 300 cells made without a solver."""
    for name, problem in problems():
        made = md.design(problem)
        kept = {
            key: value for key, value in made.certificate.provenance.items() if not re.search("seconds|memory", key)
        }
        yield name, replace(made, certificate=replace(made.certificate, provenance=kept))


def large() -> tuple[str, Callable[[], str]]:
    """Return the page of a channel for 300 cells that no solver made."""
    from mechdesign.certify._certificate import certify
    from mechdesign.certify._evidence import Evidence
    from mechdesign.report._design_page import html

    grid = domains()["large grid"]
    apart = md.distances.euclidean(grid)
    problem = md.Problem(prior_of(300), apart, [md.MetricPrivacy("0.6", apart)], secrets=grid, observables=grid)
    channel = md.Channel.from_matrix((rows := np.exp(-0.29 * apart)) / rows.sum(axis=1, keepdims=True))
    stated = problem.stated
    evidence = Evidence(channel.numerators, 62, problem.prior, problem.cost, problem.objective, stated, None)
    found = certify(evidence, {"solver": "none"})
    return "design: 300 cells", functools.partial(html, problem, channel, found)


def pages() -> Pages:
    """Yield every page by its kind and name."""
    made = dict(designs())
    for name, design in made.items():
        yield f"design: {name}", functools.partial(md.report.html, design)
    yield large()
    for names in (("grid", "geographic"), ("roads", "worst cost", "parts"), ("labels", "numbers")):
        shown = [
            attack_design(name, one.problem, one.channel, one.certificate) for name in names for one in [made[name]]
        ]
        yield f"compare: {', '.join(names)}", functools.partial(compare_page, shown, "the prior was counted")
    for name in ("grid", "points", "labels"):
        problem = made[name].problem
        found = md.audit(
            made[name].channel, problem.cost, prior=problem.prior, cost=problem.cost, secrets=problem.secrets,
        )  # fmt: skip
        yield f"audit: {name}", functools.partial(audit_page, found, "0.8", name)
    yield from traces()
    yield from tables()
    yield from runs()


def traces() -> Pages:
    """Yield pages of released traces."""
    for name, columns, rows in (("plane", 4, 4), ("line", 6, 1), ("wide", 8, 3)):
        text = WALK % (columns, rows, columns, rows)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "states.csv"
            path.write_text("state\n0\n1\n1\n2\n1\n", encoding="utf-8")
            released = md.specification.parse(text).release(path, seed=1)
        yield f"trace: {name}", functools.partial(md.report.html, released)


WALK = """
domain.grid = { columns = %d, rows = %d, width = %d.0, height = %d.0 }
prior.uniform = true
cost.distance = "euclidean"
privacy = [{ kind = "graph", epsilon = "0.5", blocks = 3 }]
release = { mechanism = "planar-isotropic", transition = { neighbours = 4 } }
"""


def tables() -> Pages:
    """Yield pages of releases from tables."""
    rng = np.random.default_rng(6)
    ages = 'domain.attributes.age = { range = [0, 99] }\npolicy.kind = "line"\n'
    plane = "domain.attributes = { x = { range = [0, 9] }, y = { range = [0, 9] } }\n"
    plane += 'policy = { kind = "threshold", theta = 2 }\n'
    data = {"age": rng.integers(0, 100, 300), "x": rng.integers(0, 10, 300), "y": rng.integers(0, 10, 300)}
    for text in (
        ages + 'release = { kind = "histogram", epsilon = 1, partition = { width = 10 } }\n',
        ages + 'release = { kind = "quantiles", epsilon = 1, probabilities = [0.25, 0.5] }\n',
        ages + 'release = { kind = "ranges", epsilon = 1, ranges = [[0, 17], [18, 99]] }\n',
        plane + 'release = { kind = "kmeans", epsilon = 1, k = 3, iterations = 2 }\n',
    ):
        kind = re.findall(r'release = \{ kind = "([\w-]+)"', text)[0]
        published = parse_table(f'title = "A table"\n{text}').release(data, rng=1)
        yield f"table: {kind}", functools.partial(md.report.html, published)


def runs() -> Pages:
    """Yield pages of benchmarks and sweeps."""
    about = {"suite": "small", "time_limit": 10.0, "memory": 4.0, "threads": 1}
    plain = {"claimed": "optimal", "certified": "optimal", "rounded": "optimal", "censored": False, "cost": 1.0}
    plain |= {"build_s": 0.1, "certify_s": 0.0, "tight_epsilon": 0.6, "cost_returned": 1.0, "relative_gap": 0.0}
    lines = [
        {"family": family, "n": n, "seed": 0, "solver": solver, "settings": "", "ours": solver == "auto",
         "solve_s": time, "peak_mb": 90.0} | plain
        for family in ("grid", "roads") for n in (4, 9) for solver, time in (("auto", 0.1 * n), ("other", 0.3 * n))
    ]  # fmt: skip
    lines[1] |= {"certified": "not-private", "tight_epsilon": math.inf}
    lines[3] |= {"claimed": "timeout", "certified": "timeout", "rounded": "timeout", "censored": True, "cost": None}
    for name, found in (("all", lines), ("one family", lines[:4]), ("few", lines[:2])):
        yield f"bench: {name}", functools.partial(_bench_page.html, about, found, 8)
    for name, lists in (
        ("product", '"privacy.0.epsilon" = [0.2, 0.5, 1]\n"cost.power" = [1, 2]'),
        ("one", '"privacy.0.epsilon" = [0.2, 0.5, 1]'),
        ("solvers", '"privacy.0.epsilon" = [0.2, 2]\n"solver.name" = ["auto", "block"]'),
    ):
        asked = parse_sweep(SWEEP + f"[sweep]\n{lists}\n")
        yield f"sweep: {name}", functools.partial(_sweep_page.html, asked, swept(asked), SWEPT)


SWEEP = """
title = "A line"
[domain]
points = [[0, 0], [1, 0], [2, 0], [3, 1]]
unit = "km"
[prior]
counts = [4, 3, 2, 1]
[cost]
distance = "euclidean"
[[privacy]]
kind = "metric"
epsilon = 0.7
distance = "euclidean"
"""
SWEPT = ["status", "cost", "lower_bound", "relative_gap", "tight_epsilon", "channel"]


def swept(asked: object) -> list[Row]:
    """Return rows like those of a sweep; the last row has failed."""
    points = list(asked.points())  # type: ignore[attr-defined]
    made = []
    for number, point in enumerate(points):
        values = {key: float(value) if not isinstance(value, str) else value for key, value in point.items()}
        failed = number == len(points) - 1
        values |= {"message": "InfeasibleError: <b>no</b> channel"} if failed else {
            "cost": 3 - number / 10, "lower_bound": 2.5 - number / 10, "relative_gap": 0.1, "tight_epsilon": 0.1,
            "channel": f"channels/{number}",
        }  # fmt: skip
        state = State.FAILED if failed else State.DONE
        made.append(Row(f"{number:x}".ljust(64, "0"), state, {**values, "status": state}, {"unit": "km"}))
    return made


def record(file: Path, folder: Path | None, times: int) -> None:
    """Write the record of all pages, and the pages into a folder; each time is the least of several repetitions."""
    found = {}
    for name, make in pages():
        seconds = []
        for _ in range(times):
            start = time.process_time()
            page = make()
            seconds.append(time.process_time() - start)
        text = Text(page)
        found[name] = {
            "bytes": len(page.encode()),
            "seconds": round(min(seconds), 3),
            "outside": text.outside,
            "pictures": {key: sorted(words) for key, words in text.pictures.items()},
        }
        print(f"{name:40} {found[name]['bytes']:8,} bytes {found[name]['seconds']:7.3f} s")
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{re.sub(r'[^a-z0-9]+', '-', name)}.html").write_text(page, encoding="utf-8")
    file.write_text(json.dumps(found, ensure_ascii=False, indent=1), encoding="utf-8")


def compare(before: Path, after: Path) -> int:
    """Print the differences, and return the number of pages that differ."""
    first, second = (json.loads(path.read_text(encoding="utf-8")) for path in (before, after))
    differ = 0
    for name in first.keys() | second.keys():
        said = list(differences(first.get(name), second.get(name)))
        differ += bool(said)
        for line in said:
            print(f"{name}: {line}")
    for name, old in first.items():
        if new := second.get(name):
            more = new["bytes"] / old["bytes"], new["seconds"] - old["seconds"]
            print(f"{name:40} {old['bytes']:8,} → {new['bytes']:8,} bytes ({more[0]:.2f}×), {more[1]:+.2f} s")
    return differ


def differences(old: dict | None, new: dict | None) -> Iterator[str]:
    """Yield the differences between the records of one page."""
    if old is None or new is None:
        yield "is in one record only"
        return
    before, after = (re.sub(r"\s+", " ", " ".join(each["outside"])) for each in (old, new))
    if before != after:
        at = next(
            (i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after))
        )
        yield f"text: {before[max(0, at - 40) : at + 60]!r} is now {after[max(0, at - 40) : at + 60]!r}"
    for figure in old["pictures"].keys() | new["pictures"].keys():
        gone = set(old["pictures"].get(figure, ())) - set(new["pictures"].get(figure, ()))
        if gone:
            yield f"picture {figure} no longer says {sorted(gone)}"


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("file", type=Path)
    recording.add_argument("--folder", type=Path)
    recording.add_argument("--times", type=int, default=3)
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.command == "record":
        record(given.file, given.folder, given.times)
        return 0
    return int(bool(compare(given.before, given.after)))


if __name__ == "__main__":
    sys.exit(main())
