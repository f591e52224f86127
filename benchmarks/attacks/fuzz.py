"""Feed damaged and malicious files to every reader, and count outcomes other than typed errors.

    python benchmarks/attacks/fuzz.py [--inputs 100000] [--targets NAME,NAME] [--seed 0] [--corpus FOLDER] [-o FILE]

Inputs are valid files with changed bytes, lines, cells, numbers or headers. If a file contains its own digest, half of
the mutations repair this digest, so that the code behind the check is reached. A reader may return, or raise an error
of `mechdesign.errors`. A finding is any other exception, an excessive use of memory (shown by `MemoryError`), or more
processor time than a limit. Each finding is printed once for every place in the code. The input that caused it is kept
in the corpus, from which `tests/reference/fuzzed` is chosen. The script exits with 1 after any finding.
"""

from __future__ import annotations

import collections
import csv
import hashlib
import io
import json
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import numpy as np
import scipy.sparse as sparse

import mechdesign as md
from mechdesign.certify import _archive as archive
from mechdesign.certify import _bundle as bundle
from mechdesign.data.matrices import read_budgets, read_dense
from mechdesign.data.movement import read_checkins, read_plt
from mechdesign.data.trajectories import to_grid
from mechdesign.leakage.accounting import Ledger
from mechdesign.specification._read import Source
from mechdesign.specification._specification import Specification, parse, read_spec
from mechdesign.specification._steps import ReleaseTable, read_steps

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

from cli_examples import SPECIFICATION as LINE

from attacks.garbage import changed
from harness import options, origin, peak

SECONDS = 10
BYTES = 3 * 2**30


@dataclass(frozen=True)
class Target:
    """A reader: its valid files, the files that may be changed, and the function that reads them."""

    files: dict[str, bytes]
    changed: tuple[str, ...]
    read: Callable[[Path], object]
    repair: Callable[[dict[str, bytes]], None] | None = None


class OutOfTime(BaseException):
    """A reader took more processor time than the limit."""


SPECIFICATION = f"""{LINE}[[privacy]]
kind = "threshold"
epsilon = "3/2"
radius = 1.5
distance = "manhattan"
[[privacy]]
kind = "graph"
epsilon = 1
edges = [[0, 1], [1, 2]]
[solver]
name = "highs-simplex"
tolerance = 1e-6
"""

FILED = """
[domain.csv]
path = "places.csv"
x = "x"
y = "y"
label = "name"
[prior.csv]
path = "places.csv"
column = "count"
label = "name"
[cost.matrix]
path = "cost.npy"
[[privacy]]
kind = "metric"
epsilon = 1
matrix.path = "distance.csv"
[[privacy]]
kind = "graph"
epsilon = 1
edges_csv.path = "edges.csv"
"""

CITY = """
[domain.grid]
columns = 3
rows = 2
south = 39.9
north = 40.1
west = 116.2
east = 116.5
[prior]
smoothing = 0.5
[prior.checkins]
path = "checkins.csv"
user = "user"
[cost]
distance = "euclidean"
[[privacy]]
kind = "metric"
epsilon = 1
distance = "euclidean"
"""


def targets() -> dict[str, Target]:
    """Return the readers by name."""
    line = np.abs(np.subtract.outer(range(4), range(4))).astype(float)
    texts = {
        "places.csv": 'name,x,y,count\nhome,0,0,3\nwork,1,0,1\n"a, b",2,1,0\ngym,3,3.5,2\n',
        "distance.csv": "".join(",".join(map(str, row)) + "\n" for row in line.tolist()),
        "edges.csv": "source,target\nhome,work\nwork,gym\n",
        "checkins.csv": "user,latitude,longitude,time\nu,40.0,116.3,2008-10-23T02:53:04Z\n"
        "v,39.95,116.4,2008-10-23 02:53:09\n",
        "states.csv": "state\nhome\n1\ngym\n",
        "degrees.csv": "time,latitude,longitude\n2026-01-01,40.0,116.3\n2026-01-02,39.95,116.4\n",
        "budgets.csv": "step,epsilon\n0,0.5\n1,1e-3\n2,0\n",
        "user.plt": "Geolife\nWGS 84\nAltitude\nReserved\n0,2,255\n0\n40.0,116.3,0,492,39744.1,2008-10-23,02:53:04\n"
        "39.98,116.31,0,492,39744.2,2008-10-23,02:53:10\n",
    }
    files = {name: text.encode() for name, text in texts.items()}
    files |= {"cost.npy": npy(line), "sparse.npz": npz_of(line)}
    domain = md.Domain.from_points([[0, 0], [1, 0], [2, 1], [3, 3]], labels=["home", "work", "pub", "gym"])
    city = md.Domain.geographic_grid(3, 2, 39.9, 40.1, 116.2, 116.5)
    specified = parse(SPECIFICATION)
    made = specified.design()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        md.save(made, folder, report=False)
        exported = {path.name: path.read_bytes() for path in folder.iterdir()}
        ledger = Ledger(epsilon=2, path=folder / "ledger.json")
        ledger.spend("a", "one person", epsilon="1/3")
        ledger.spend("b", "one person", epsilon=0.1, part=("day", "1"))
        flows = [[0.8, 0.2], [0.1, 0.9]]
        series = Ledger(epsilon=2, path=folder / "series.json")
        series.add_series(alpha=1, backward=flows, forward=flows, plan=("equal", 3), history="others")
        series.spend("a", "one person", epsilon=0.1, step=1, complete=2)
        states = {name: (folder / name).read_bytes() for name in ("series.json", "ledger.json")}

    def only(*names: str) -> dict[str, bytes]:
        return {name: files[name] for name in names}

    specification = {"s.toml": SPECIFICATION.encode()}
    data = ("places.csv", "distance.csv", "edges.csv", "cost.npy")
    return {
        "specifications": Target(specification, ("s.toml",), lambda folder: specified_in(folder).problem()),
        "designs": Target(specification, ("s.toml",), lambda folder: specified_in(folder).design()),
        "data of a specification": Target(
            {"s.toml": FILED.encode(), **only(*data)}, data, lambda folder: specified_in(folder).problem()
        ),
        "check-ins": Target(
            {"s.toml": CITY.encode(), **only("checkins.csv")},
            ("s.toml", "checkins.csv"),
            lambda folder: specified_in(folder).problem(),
        ),
        "csv": Target(
            only("checkins.csv"), ("checkins.csv",), lambda f: read_checkins(f / "checkins.csv", time="time")
        ),
        "csv matrices": Target(only("distance.csv"), ("distance.csv",), lambda f: read_dense(f / "distance.csv")),
        "npy": Target(only("cost.npy"), ("cost.npy",), lambda f: read_dense(f / "cost.npy")),
        "npz": Target(only("sparse.npz"), ("sparse.npz",), lambda f: read_dense(f / "sparse.npz")),
        "plt": Target(only("user.plt"), ("user.plt",), lambda f: to_grid(read_plt(f), city)),
        "budgets": Target(only("budgets.csv"), ("budgets.csv",), lambda f: read_budgets(f / "budgets.csv")),
        "states": Target(
            only("states.csv"),
            ("states.csv",),
            lambda f: read_steps(f / "states.csv", ReleaseTable(), Source(), domain),
        ),
        "states in degrees": Target(
            only("degrees.csv"),
            ("degrees.csv",),
            lambda f: read_steps(f / "degrees.csv", ReleaseTable(), Source(), city),
        ),
        "series": Target(
            {"series.json": states["series.json"]},
            ("series.json",),
            lambda folder: Ledger(path=folder / "series.json").spend("c", "x", epsilon="1/1000", step=2, complete=2),
            lambda files: redigest(files, "series.json", "sha256"),
        ),
        "ledgers": Target(
            {"ledger.json": states["ledger.json"]},
            ("ledger.json",),
            lambda folder: Ledger(path=folder / "ledger.json").spend("c", "one person", epsilon="1/1000"),
            lambda files: redigest(files, "ledger.json", "sha256"),
        ),
        "bundles": Target(exported, tuple(exported), md.verify, repair_bundle),
        "channels": Target(
            {"channel.npz": exported["channel.npz"]},
            ("channel.npz",),
            lambda folder: md.Channel.load(folder / "channel.npz").sample(0),
        ),
    }


def specified_in(folder: Path) -> Specification:
    return read_spec(folder / "s.toml")


def npy(array: np.ndarray) -> bytes:
    target = io.BytesIO()
    np.save(target, array)
    return target.getvalue()


def npz_of(array: np.ndarray) -> bytes:
    target = io.BytesIO()
    sparse.save_npz(target, sparse.csr_array(array))
    return target.getvalue()


def redigest(files: dict[str, bytes], name: str, key: str) -> None:
    """Repair the digest that a JSON file stores of itself, if the file is still JSON."""
    try:
        document = json.loads(files[name])
        document.pop(key, None)
        text = json.dumps(document, sort_keys=True)
    except (ValueError, AttributeError, TypeError, RecursionError):
        return
    files[name] = json.dumps({**document, key: hashlib.sha256(text.encode()).hexdigest()}).encode()


def repair_bundle(files: dict[str, bytes]) -> None:
    """Repair all digests of a bundle, if its files can still be read."""
    try:
        document = json.loads(files["certificate.json"])
        for name in document["files"]:
            document["files"][name] = hashlib.sha256(files[name]).hexdigest()
        for name in document["arrays"]:
            arrays = archive.unpack(files[name], name)
            document["arrays"][name] = {key: archive.digest(array) for key, array in arrays.items()}
        document["digest"] = bundle.document_digest(document)
        files["certificate.json"] = json.dumps(document).encode()
    except (md.errors.MechdesignError, ValueError, AttributeError, KeyError, TypeError, RecursionError):
        return


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `OutOfTime` after the given processor seconds."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise OutOfTime(f"{seconds} s of processor time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def tried(target: Target, files: dict[str, bytes], folder: Path) -> tuple[str, str]:
    """Read files; return the kind of the outcome and, for a finding, the exception and its place."""
    for path in folder.iterdir():
        path.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    try:
        with warnings.catch_warnings(), limited(SECONDS):
            warnings.simplefilter("ignore")
            target.read(folder)
    except md.errors.MechdesignError as error:
        return type(error).__name__, ""
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "mechdesign" in frame.filename]
        where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "outside"
        return "found", f"{type(error).__name__} at {where}: {str(error)[:100]}"
    return "read", ""


def main() -> int:
    """Fuzz all targets in turn."""
    arguments = options(__doc__, inputs=100_000, targets="", seed=0, corpus=Path, output=Path)
    known = targets()
    names = arguments.targets.split(",") if arguments.targets else list(known)
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    csv.field_size_limit(131072)
    dice, clock = random.Random(arguments.seed), time.perf_counter()
    outcomes: dict[str, collections.Counter[str]] = {name: collections.Counter() for name in names}
    findings: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as temporary:
        for number in range(arguments.inputs):
            name = names[number % len(names)]
            target, files = known[name], dict(known[name].files)
            file = dice.choice(target.changed)
            files[file] = changed(files[file], file, dice)
            if target.repair is not None and dice.random() < 0.6:
                target.repair(files)
            outcome, reason = tried(target, files, Path(temporary))
            outcomes[name][outcome] += 1
            if reason:
                key = f"{name}: {reason}"
                findings[key] += 1
                if findings[key] == 1:
                    print(key, flush=True)
                    if arguments.corpus:
                        kept = arguments.corpus / f"{name}-{len(findings)}".replace(" ", "-")
                        kept.mkdir(parents=True, exist_ok=True)
                        for path, content in files.items():
                            (kept / path).write_bytes(content)
            if (number + 1) % 2000 == 0:
                print(f"{number + 1} inputs, {sum(findings.values())} findings", flush=True)
    lines = [f"{arguments.inputs} inputs in {time.perf_counter() - clock:.0f} s, seed {arguments.seed}"]
    lines += [f"at most {peak() / 2**20:.0f} MiB of memory in use, and {SECONDS} s of processor time for an input"]
    for name in names:
        counted = ", ".join(f"{count} {outcome}" for outcome, count in outcomes[name].most_common())
        lines.append(f"{name}: {counted}")
    lines += [f"{sum(findings.values())} findings", *(f"{count} {key}" for key, count in findings.most_common())]
    print("\n".join(lines))
    if arguments.output:
        arguments.output.write_text("\n".join([*lines, origin()]) + "\n", encoding="utf-8")
    return 1 if findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
