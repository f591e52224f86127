"""The block method at the papers' own size: 20 × 15 cells, all pairs, every kind of requirement, and real check-ins.

    python benchmarks/solvers/block_scenes.py [--grid 20x15] [--arrays numpy] [--tolerance 1e-6] [--symmetry]
        [--data FOLDER] [--scenes joint ...]

All scenes except the check-ins have a Gaussian prior, ε = 0.6 per cell, and floors at 0.8 of the largest distortion.
Symmetry is used only on request. The check-ins are those of the Foursquare user with the most check-ins in New York, on
cells of 0.42 × 0.74 km. For the check-ins, ε = 1 per km, the cost is squared, and the floor is 0.8 of the largest
distortion. Each scene runs in a separate process; the time includes rounding and certification.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

import mechdesign as md

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from solvers.block_sizes import problem

SCENES = {
    "differential": ("euclidean", "differential"),
    "differential, Hamming": ("hamming", "differential"),
    "joint": ("euclidean", "joint"),
    "joint, Hamming": ("hamming", "joint"),
    "distortion": ("euclidean", "distortion"),
    "distortion, Hamming": ("hamming", "distortion"),
    "worst cost": ("euclidean", "worst"),
}
CHECKINS = "check-ins, joint"
BOX = {"south": 40.70, "north": 40.80, "west": -74.02, "east": -73.92}


def checkins(folder: Path, columns: int, rows: int) -> md.Problem:
    """Return the problem with joint privacy for the user with the most check-ins."""
    path = folder / "foursquare_nyc_marc" / "specific_train.csv"
    traces = md.data.read_checkins(path, user="label", latitude="lat", longitude="lon")
    domain = md.Domain.geographic_grid(columns, rows, **BOX)
    visits = md.data.to_grid(traces, domain)
    most = max(dict.fromkeys(visits.users), key=lambda user: visits.counts(user).sum())
    prior = md.Prior.from_counts(visits.counts(most), smoothing=0.01)
    distance = md.distances.euclidean(domain)
    floor = 0.8 * float((distance @ prior.probabilities).min())
    requirements = [md.MetricPrivacy("1", distance), md.DistortionPrivacy(floor, distance)]
    return md.Problem(prior, distance**2, requirements)


def measure(name: str, arguments: argparse.Namespace) -> None:
    """Design once and print the facts as JSON."""
    columns, rows = (int(part) for part in arguments.grid.split("x"))
    tested = checkins(arguments.data, columns, rows) if name == CHECKINS else problem(columns, rows, *SCENES[name])
    options = {"symmetry": arguments.symmetry, **({"arrays": arguments.arrays} if arguments.arrays else {})}
    clock = time.perf_counter()
    certificate = md.design(tested, solver="block", tolerance=arguments.tolerance, options=options).certificate
    facts = {
        "seconds": time.perf_counter() - clock,
        "steps": certificate.provenance["iterations"],
        "blocks": certificate.provenance["blocks"],
        "cost": certificate.expected_cost if tested.objective == "expected" else certificate.worst_cost,
        "gap": certificate.relative_gap,
        "epsilon": [f"{value:.6g}" for value in certificate.epsilon],
        "error": [f"{value:.6g}" for value in certificate.distortion],
        "peak": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }
    print(json.dumps(facts))


def main() -> None:
    """Print a table."""
    default = os.environ.get("MECHDESIGN_DATA") or Path(__file__).parents[3] / "shared" / "data"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--grid", default="20x15")
    parser.add_argument("--arrays", choices=("numpy", "numba", "torch"))
    parser.add_argument("--tolerance", type=float, default=1e-6)
    parser.add_argument("--symmetry", action="store_true")
    parser.add_argument("--data", type=Path, default=Path(default))
    parser.add_argument("--scenes", nargs="+", choices=(*SCENES, CHECKINS))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        measure(arguments.one, arguments)
        return
    names = arguments.scenes or [*SCENES, *([CHECKINS] if arguments.data.is_dir() else [])]
    table = Table("scene", "blocks", "steps", "seconds", "peak GB", "cost", "gap", "ε", "error")
    for name in names:
        command = [sys.executable, __file__, "--one", name, *sys.argv[1:]]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        facts = json.loads(output.splitlines()[-1])
        values = [
            f"{facts['seconds']:.1f}",
            f"{facts['peak'] / 1e9:.2f}",
            f"{facts['cost']:.7g}",
            f"{facts['gap']:.0e}",
        ]
        requirements = [" ".join(facts["epsilon"]), " ".join(facts["error"])]
        table.add_row(name, str(facts["blocks"]), str(facts["steps"]), *values, *requirements)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
