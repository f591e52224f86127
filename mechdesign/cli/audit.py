"""``mechdesign audit``."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import networkx as nx
import numpy as np
from numpy.typing import NDArray

from mechdesign.base._arrays import Floats
from mechdesign.base._check import unknown_name
from mechdesign.base._deadline import Progress
from mechdesign.base._errors import InputError, withholding_values
from mechdesign.base._files import write_output
from mechdesign.base._names import Named
from mechdesign.certify._claims import ExponentBound
from mechdesign.certify._exact import exact, exact_text
from mechdesign.cli._arguments import matrix_options, naming_options
from mechdesign.cli._console import STOPPED, progress, say_private_folders
from mechdesign.cli._found import FILE, Found, Shown, command
from mechdesign.data.labels import Names
from mechdesign.data.matrices import Declared, has_labels, match_names, read_dense, read_labelled, read_lines
from mechdesign.model import distances
from mechdesign.model._channel import Channel
from mechdesign.model._domain import Domain
from mechdesign.model._words import at_least, at_most, short
from mechdesign.solve._contract import Status
from mechdesign.synthesis._folders import check_output, require_design
from mechdesign.synthesis._result import Design

if TYPE_CHECKING:
    from mechdesign.measures._audit import Audit
    from mechdesign.model._origin import Origin
    from mechdesign.model._problem import Problem


# Whether the first line and column of matrices contain names: --header and --index.
_Names = tuple[Declared, Declared]
_PLACED = {
    "euclidean": distances.euclidean,
    "manhattan": distances.manhattan,
    "chebyshev": distances.chebyshev,
    "haversine": distances.haversine,
}


@command
@click.argument("file", metavar="FILE", type=FILE)
@click.option(
    "--distance", metavar="NAME|D.csv",
    help="The unit of ε: euclidean, manhattan, chebyshev or haversine, for secrets with places; hamming; line "
    "(secrets numbered along a line); or a matrix (n, n).",
)  # fmt: skip
@click.option(
    "--graph",
    metavar="EDGES.csv",
    type=FILE,
    help="A policy graph instead of a distance: two secrets per line, labels or positions, without a header.",
)
@click.option("--spec", metavar="SPEC.toml", type=FILE, help="Take secrets, prior, cost and requirement from here.")
@click.option("--epsilon", metavar="ε", help="The claimed ε, an exact number: the exit code is 1 if it does not hold.")
@click.option("--optimum", is_flag=True, help="Also design the best channel with the same ε, to compare the cost.")
@click.option("-o", "--output", "target", metavar="PAGE.html", type=FILE, help="Write a page, with a map.")
@matrix_options
def audit(
    file: Path,
    distance: str | None,
    graph: Path | None,
    spec: Path | None,
    epsilon: str | None,
    optimum: bool,
    target: Path | None,
    header: Declared,
    index: Declared,
) -> Found:
    """Compute the tight ε of any finite channel, which may be infinite, and the worst pair of secrets.

    FILE holds p(o|s) with a row for each secret: a matrix (CSV, .npy, .npz), channel.npz or channel.csv of a design, or
    its folder. Numbers are read exactly, and rows divided by their exact sums. The exit code is 1 if the ε of
    --epsilon, of --spec or of the folder does not hold.

    Example: mechdesign audit response.csv --distance hamming --epsilon 1.1
    """
    stated = None if epsilon is None else exact_text(exact(epsilon, "--epsilon"))
    if stated is not None and stated.startswith("-"):
        raise InputError("--epsilon", "is negative", value=epsilon, bound="a number >= 0")
    check_output(target)
    if file.is_dir():
        require_design(file)
    names = (header, index)
    subject = _read_subject(file, names) if spec is None else _read_subject_of(spec, file, names)
    said = ""
    if subject.problem is not None:
        said = say_private_folders([(str(spec or file), subject.problem, subject.origin)], "this audit")
    if spec is not None:
        subject.require_size(file)
    arguments, claimed = _read_arguments(subject, distance, graph, names)
    stated = claimed if stated is None else stated
    # Imported late, so that wrong usage is rejected immediately.
    from mechdesign.measures._audit import audit as audited

    with progress("auditing in exact arithmetic") as live:
        with naming_options(_places(file, distance)), withholding_values("matrix"):
            found = audited(subject.channel, **arguments)
        shown = _found(found, stated, optimum)
        if target is not None:
            live(Progress("drawing", 0.0))
            from mechdesign.report._audit_page import html

            write_output(target, [html(found, stated, f"Audit of {file.name}", optimum, said).encode()])
    return shown


def _places(file: Path, distance: str | None) -> dict[str, str]:
    """Return the names of the arguments of an audit in errors."""
    own = r"distance(?: of a secret from itself)?(\[.*|)"
    return {r"matrix(\[.*|)": rf"{file}\1", own: rf"--distance ({distance})\1"}


@dataclass(frozen=True, eq=False)
class _Subject:
    """A channel, and the labels of its secrets and observables, its problem and its origin, if they are known."""

    channel: Channel | NDArray[Any]
    labels: tuple[str, ...] = ()
    observables: tuple[str, ...] = ()
    problem: Problem | None = None
    origin: Origin | None = None

    @property
    def rows(self) -> NDArray[Any]:
        """The table of the channel, with a row for each secret."""
        return self.channel.numerators if isinstance(self.channel, Channel) else self.channel

    def require_size(self, file: Path) -> None:
        """Raise `InputError` if the channel and the problem of a specification have different numbers of secrets."""
        count = len(self.rows)
        if self.problem is not None and self.problem.cost.shape[0] != count:
            value, bound = self.problem.cost.shape[0], f"{count}, the rows of {file}"
            raise InputError("--spec", "has another number of secrets", value=value, bound=bound)


def _read_subject_of(spec: Path, file: Path, names: _Names) -> _Subject:
    """Return the channel in a file with the problem of a specification; its names follow the order of its labels."""
    from mechdesign.specification._specification import read_spec

    found, given = _read_subject(file, names), read_spec(spec)
    problem = given.problem()
    if problem.secrets is not None:
        found = _in_order(found, problem.secrets.labels, (problem.observables or problem.secrets).labels, file)
    return replace(found, problem=problem, origin=given.origin)


def _in_order(found: _Subject, secrets: tuple[str, ...], answers: tuple[str, ...], file: Path) -> _Subject:
    """Return a channel in the order of the labels of a specification, if it has labels."""
    rows = None if _are_positions(found.labels) else secrets
    columns = answers if set(found.observables) == set(answers) else None
    ordered = match_names(Named(found.rows, found.labels, found.observables), str(file), rows, columns)
    if ordered is found.rows:
        return found
    if isinstance(found.channel, Channel):
        remedy = "use its own specification"
        raise InputError(str(file), "has its labels in another order than the specification", remedy=remedy)
    return replace(found, channel=ordered, observables=columns or found.observables)


def _read_subject(file: Path, names: _Names) -> _Subject:
    """Return the channel in a file or a folder, with its labels, problem and origin if known."""
    if file.is_dir():
        design = Design.load(file)
        return replace(_labelled(design.channel), problem=design.problem, origin=design.origin)
    if file.suffix.lower() == ".npz" and zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            if "numerators.npy" in archive.namelist():
                return _labelled(Channel.load(file))
    found = read_labelled(file) if has_labels(file) else _read_matrix(file, names)
    # Names that are integers are positions, not labels.
    labels, answers = (tuple(name for name in axis if isinstance(name, str)) for axis in (found.rows, found.columns))
    return _Subject(match_names(found, str(file), labels, answers), labels, answers)


def _labelled(channel: Channel) -> _Subject:
    return _Subject(channel, channel.secrets, channel.observables)


def _read_matrix(file: Path, names: _Names) -> Named:
    """Return the matrix in a file, with its names if there are any."""
    found = read_dense(file, *names)
    return found if isinstance(found, Named) else Named(found)


def _read_arguments(
    subject: _Subject, distance: str | None, graph: Path | None, names: _Names
) -> tuple[dict[str, Any], str | None]:
    """Return the arguments of the audit, and the ε that the audited files claim, or None without a claim."""
    (n, m), problem = subject.rows.shape, subject.problem
    secrets = None if problem is None else problem.secrets
    if secrets is None and subject.labels:
        secrets = Domain.from_labels(subject.labels)
    observables = secrets if problem is None or problem.observables is None else problem.observables
    rows = tuple(map(str, range(n))) if secrets is None else secrets.labels
    columns = subject.observables or (observables.labels if observables is not None and observables.size == m else ())
    arguments: dict[str, Any] = {"secrets": secrets, "prior": None if problem is None else problem.prior}
    stated = None
    if distance is not None and graph is not None:
        raise click.UsageError("give --distance or --graph, not both")
    if graph is not None:
        arguments["graph"] = _graph(graph, rows)
    elif distance is not None:
        arguments["distance"] = _read_distance(distance, secrets, rows, names)
    else:
        bound = _bound_of(problem)
        arguments["distance"] = _matrix_of(bound, n)
        stated = exact_text(bound.epsilon)
    if problem is not None and _has_cost_of(problem, observables, columns, (n, m)):
        arguments |= {"cost": problem.cost, "objective": problem.objective}
    return arguments, stated


def _has_cost_of(problem: Problem, observables: Domain | None, columns: Sequence[str], shape: tuple[int, int]) -> bool:
    """Return whether the costs of a problem apply to a channel with these observables."""
    named = observables is not None and bool(columns) and not _are_positions(columns)
    same = not named or observables is None or tuple(columns) == observables.labels
    return same and problem.cost.shape == shape and bool(np.isfinite(problem.cost).all())


def _are_positions(labels: Sequence[str]) -> bool:
    return list(labels) == [str(position) for position in range(len(labels))]


def _bound_of(problem: Problem | None) -> ExponentBound:
    """Return the bound between secrets that a problem claims."""
    found = [] if problem is None else list(problem.claims.exponent_bounds.values())
    if problem is not None and problem.point_bounds:
        raise click.UsageError(
            "the design bounds all points between its anchors, which `mechdesign verify` proves; give --distance or "
            "--graph to audit only the anchors"
        )
    if len(found) != 1:
        there = "no" if not found else "more than one"
        raise click.UsageError(f"give --distance or --graph: {there} bound between secrets is stated")
    return found[0]


def _matrix_of(bound: ExponentBound, n: int) -> Floats:
    distance = np.full((n, n), np.inf)
    np.fill_diagonal(distance, 0.0)
    distance[bound.sources, bound.targets] = bound.weights
    return distance


def _read_distance(name: str, secrets: Domain | None, labels: Sequence[str], names: _Names) -> NDArray[Any]:
    """Return a distance by its name, or a matrix from a file with its names in the order of the labels."""
    n = len(labels)
    if name == "hamming":
        return distances.hamming(n)
    if name == "line":
        return np.abs(np.subtract.outer(np.arange(n), np.arange(n))).astype(np.float64)
    if name in _PLACED:
        if secrets is None or not secrets.points.shape[1]:
            raise InputError("--distance", "needs places of the secrets", value=name, remedy="give --spec")
        if name == "haversine" and secrets.coordinates is None:
            remedy = "give --spec with a domain in degrees"
            raise InputError("--distance", "needs latitudes and longitudes", value=name, remedy=remedy)
        return _PLACED[name](secrets)
    if not Path(name).suffix:
        raise unknown_name(name, [*_PLACED, "hamming", "line", "a file"], "--distance")
    return match_names(_read_matrix(Path(name), names), f"--distance ({name})", labels, labels)


def _graph(path: Path, labels: Sequence[str]) -> nx.Graph:
    """Return the graph of the edges in a file, whose ends are labels or positions."""
    from mechdesign.graphs._builders import from_edges

    names, pairs = Names.of(labels), []
    for line, ends in read_lines(path):
        where = f"{path}, line {line}"
        if len(ends) != 2:
            raise InputError(where, "is not an edge", value=len(ends), bound="two secrets, separated by a comma")
        pairs.append(names.find_pair(ends[0], ends[1], where))
    if not pairs:
        raise InputError(str(path), "contains no edges", bound="at least one edge")
    return from_edges(len(labels), pairs)


def _found(found: Audit, stated: str | None, optimum: bool) -> Found:
    from mechdesign.report._verdicts import describe_pair, describe_rows, judge_audit

    holds = stated is None or found.holds(stated)
    guesses = np.array_equal(found.error, distances.hamming(len(found.matrix)))
    facts: dict[str, object] = {
        "secrets": found.matrix.shape[0],
        "observables": found.matrix.shape[1],
        **({} if stated is None else {"stated_epsilon": stated, "holds": holds}),
        "epsilon": Shown(found.epsilon, at_most(found.epsilon) if math.isfinite(found.epsilon) else "none holds"),
        "cost": None if found.cost is None else Shown(found.cost, at_most(found.cost)),
    }
    if optimum and found.optimum is not None:
        facts["optimum"] = Shown(found.optimum, at_least(found.optimum))
    kind = " of wrong guesses" if guesses else ""
    facts |= {
        "error_of_the_best_attack": Shown(found.distortion, f"{short(found.distortion, 4)}{kind}"),
        "deviation": found.deviation,
        "negative": found.negative,
        "revealed": Shown(found.revealed, str(len(found.revealed))),
        "worst_pairs": [
            {
                "secrets": Shown(pair.pair, cells[0]),
                "observable": pair.observable,
                "likely": pair.likely,
                "unlikely": pair.unlikely,
                "epsilon": Shown(pair.epsilon, cells[-1]),
            }
            for pair in found.worst_pairs(5)
            for cells in [describe_pair(found, pair)]
        ],
        "rows": list(describe_rows(found)),
    }
    stopped = optimum and found.design is not None and found.design.status is Status.INTERRUPTED
    return Found(str(judge_audit(found, stated)), facts, STOPPED if stopped else 0 if holds else 1)
