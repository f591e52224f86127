"""Compare designs on grids with those of libqif (`qif` on PyPI), in a separate environment: times, costs, and privacy.

    python benchmarks/solvers/peers_qif.py [--sizes 16 25 36] [--seed 0] [--time-limit 120] [--python PYTHON]
        [-o results.csv]

`qif` is installed with pip into a virtual environment in a temporary folder; --python uses a given interpreter instead.
The library accepts the least-cost problem itself (``mechanism.d_privacy.min_loss_given_d``). It formulates this
problem, and solves it with its own solver. The returned float matrix is judged as in `mechdesign bench` and compared
with our design of the same mechanism.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

import numpy as np

import mechdesign as md
from mechdesign.runs._families import FAMILIES
from mechdesign.runs._phases import Verdict, judge_matrix

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import Facts, options, show

COLUMNS = (
    "n", "seed", "solver", "version", "solve_s", "claimed", "certified", "tight_epsilon", "cost_returned", "cost",
    "lower_bound",
)  # fmt: skip

# The script for the other environment: it reads prior, costs and ε·d as JSON and writes times and the matrix.
SCRIPT = """
import json, sys, time
import numpy as np
import qif
task = json.load(sys.stdin)
prior, cost, exponents = (np.array(task[name]) for name in ("prior", "cost", "exponents"))
clock = time.perf_counter()
channel = qif.mechanism.d_privacy.min_loss_given_d(
    prior, cost.shape[1], lambda s, t: float(exponents[s, t]), lambda s, o: float(cost[s, o])
)
seconds = time.perf_counter() - clock
found = np.array(channel)
json.dump({"seconds": seconds, "matrix": found.tolist(), "version": qif.__version__}, sys.stdout)
"""


def install(folder: Path) -> tuple[Path | None, str]:
    """Make an environment with qif; return its interpreter, or None and the output of pip."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    done = subprocess.run([python, "-m", "pip", "install", "-q", "qif"], capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
    return (python, "") if done.returncode == 0 else (None, " ".join(said) or "pip failed")


def ask(python: Path, problem: md.Problem, time_limit: float) -> Facts:
    """Have qif solve a problem of one metric requirement; return its answer, or the reason why it gives none."""
    bound = problem.claims[0]
    exponents = np.zeros((problem.prior.size, problem.prior.size))
    exponents[bound.sources, bound.targets] = bound.exponents
    task = {"prior": problem.prior.tolist(), "cost": problem.cost.tolist(), "exponents": exponents.tolist()}
    try:
        done = subprocess.run(
            [python, "-c", SCRIPT],
            input=json.dumps(task),
            capture_output=True,
            text=True,
            timeout=time_limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"failure": Verdict.TIMEOUT, "seconds": time_limit}
    if done.returncode != 0:
        return {"failure": Verdict.FAILED, "message": (done.stderr.splitlines() or ["it crashed"])[-1]}
    answer: Facts = json.loads(done.stdout)
    return answer


def judged(problem: md.Problem, answer: Facts, lower_bound: float) -> Facts:
    """Return qif's claim and the facts of its matrix; the matrix is empty if qif finds no optimum."""
    if "failure" in answer:
        return {"claimed": answer["failure"], "certified": answer["failure"], "solve_s": answer.get("seconds")}
    matrix = np.array(answer["matrix"], dtype=float)
    row = {"version": answer["version"], "solve_s": answer["seconds"]}
    if matrix.shape != problem.cost.shape:
        return row | {"claimed": Verdict.FAILED, "certified": Verdict.FAILED}
    found = judge_matrix(problem, matrix)
    return row | {
        "claimed": Verdict.OPTIMAL,
        "certified": found.verdict(lower_bound),
        "tight_epsilon": found.tight_epsilon,
        "cost_returned": found.cost,
    }


def compared(python: Path, n: int, seed: int, time_limit: float) -> list[Facts]:
    """Return two rows of the table for a grid: ours and that of qif."""
    problem = FAMILIES["grid"].make(n, seed)
    assert isinstance(problem, md.Problem)
    clock = time.perf_counter()
    made = md.design(problem, tolerance=1e-6)
    seconds = time.perf_counter() - clock
    certificate = made.certificate
    about = {"n": problem.prior.size, "seed": seed}
    ours = about | {
        "solver": "mechdesign",
        "version": md.__version__,
        "solve_s": seconds,
        "claimed": Verdict.OPTIMAL if made.status == "optimal" else Verdict.FEASIBLE,
        "certified": Verdict.OPTIMAL if certificate.relative_gap <= 1e-5 else Verdict.FEASIBLE,
        "tight_epsilon": max(certificate.epsilon),
        "cost_returned": certificate.cost,
        "cost": certificate.cost,
        "lower_bound": certificate.lower_bound,
    }
    theirs = judged(problem, ask(python, problem, time_limit), certificate.lower_bound)
    return [ours, about | {"solver": "qif"} | theirs]


def main() -> None:
    """Print a table, and write it."""
    given = options(__doc__, sizes=[16, 25, 36], seed=0, time_limit=120.0, python=Path, output=Path)
    with tempfile.TemporaryDirectory() as folder:
        python, trouble = (given.python, "") if given.python else install(Path(folder))
        if python is None:
            raise SystemExit(f"qif cannot be installed here: {trouble}")
        # Compilation and loading on first use are not measured.
        md.design(FAMILIES["grid"].make(25, 1), solver="block", tolerance=1e-6)
        rows = [row for n in given.sizes for row in compared(python, n, given.seed, given.time_limit)]
    show({name: f"{{{name}}}" for name in COLUMNS}, rows, 150)
    if given.output is not None:
        with given.output.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n", extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
