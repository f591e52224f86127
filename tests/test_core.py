"""Designing, verifying, saving and auditing need five packages, neither threads nor processes, and no ctypes.

Each test runs fresh interpreters that find the packages of the core, and no other.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from long import mostly_long

PROJECT = Path(__file__).parents[1]
CORE = ("numpy", "scipy", "networkx", "msgspec", "threadpoolctl")
OTHERS = (
    *("click", "cvxpy", "filelock", "highspy", "jinja2", "joblib", "matplotlib", "platformdirs", "psutil", "rich"),
    *("distributed", "numba", "pyarrow", "pandas", "pytest"),
)
STATED = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

# Code that removes threads, processes or ctypes before mechdesign is imported. SciPy itself needs ctypes.
VARIANTS = {
    "nothing else": "",
    "no threads": """
import _thread, threading
def refuse(*arguments, **named):
    raise RuntimeError("can't start new thread")
_thread.start_new_thread = threading._start_new_thread = refuse
if hasattr(threading, "_start_joinable_thread"):
    threading._start_joinable_thread = refuse
""",
    "no processes": """
import os, subprocess, multiprocessing.process
def refuse(*arguments, **named):
    raise OSError("this system has no processes")
os.fork = os.posix_spawn = subprocess.Popen.__init__ = multiprocessing.process.BaseProcess.start = refuse
""",
    "no ctypes": """
import sys
import scipy.linalg, scipy.optimize, scipy.sparse.csgraph, scipy.sparse.linalg, scipy.spatial, scipy.special
sys.modules["ctypes"] = sys.modules["_ctypes"] = None
""",
}

TOOLS = """
import sys, pathlib
import numpy as np
import mechdesign as md

folder = pathlib.Path(sys.argv[1])

def problem(columns, rows, *requirements, **named):
    domain = md.Domain.grid(columns=columns, rows=rows, width=columns, height=rows, unit="km")
    distance = md.distances.euclidean(domain)
    made = [make(distance) for make in requirements] or [md.MetricPrivacy(0.8, distance)]
    named = {"prior": md.Prior.uniform(domain.size), "cost": distance} | named
    return md.Problem(requirements=made, secrets=domain, observables=domain, **named)

def metric(distance):
    return md.MetricPrivacy(0.8, distance)

def floor(distance):
    return md.DistortionPrivacy(0.95 * distance.mean(axis=0).min(), distance)

def near(distance):
    return md.ThresholdPrivacy(0.8, distance, 1.5)
"""

JOBS = {
    "small problems": """
given = problem(4, 3)
design = md.design(given)
assert design.certificate.holds and design.certificate.relative_gap < 1e-6
assert design.summary.solver == "scipy", design.summary
found = md.audit(design.channel, distance=given.requirements[0].distance)
assert 0.79 < found.epsilon <= 0.8 + 1e-12, found
design = md.design(problem(4, 3, metric, floor))
assert design.certificate.relative_gap < 1e-6
md.save(design, folder / "bundle", report=False)
assert md.verify(folder / "bundle").holds
assert (md.Design.load(folder / "bundle").channel.numerators == design.channel.numerators).all()
assert not (folder / "bundle" / "report.html").exists()
assert 0 <= design.sample_at(1.2, 0.7).index < 12
repr(design), design._repr_html_()
""",
    "blocks": """
for requirements in [(), (metric, floor)]:
    design = md.design(problem(8, 6, *requirements))
    assert design.summary.solver == "block" and design.certificate.relative_gap < 1e-6
    assert design.certificate.holds
""",
    "forbidden answers and a specification": """
domain = md.Domain.grid(columns=6, rows=4, width=6.0, height=4.0, unit="km")
distance = md.distances.euclidean(domain)
far = np.where(distance > 6.0, np.inf, distance)
design = md.design(problem(6, 4, near, cost=far))
assert design.certificate.holds and design.summary.solver.startswith("scipy"), design.summary
(folder / "s.toml").write_text('''
domain.grid = { columns = 4, rows = 3, width = 4.0, height = 3.0 }
prior.uniform = true
cost.distance = "euclidean"
privacy = [{ kind = "metric", epsilon = "0.8", distance = "euclidean" }]
''', encoding="utf-8")
md.save(md.read_spec(folder / "s.toml").design(), folder / "specified", report=False)
assert md.verify(folder / "specified").holds
""",
    "fewer rows and a graph": """
import networkx
assert md.design(problem(5, 4), rows="lazy").certificate.relative_gap < 1e-6
assert md.design(problem(5, 4), rows="rays").certificate.holds
graph = networkx.convert_node_labels_to_integers(networkx.grid_2d_graph(3, 3))
assert md.design(problem(3, 3, lambda distance: md.GraphPrivacy(0.8, graph))).certificate.holds
""",
}

END = """
import json
allowed = {*sys.stdlib_module_names, "numpy", "scipy", "networkx", "msgspec", "threadpoolctl", "mechdesign"}
others = {name for name, module in sys.modules.items() if module} - {"cython_runtime", "job"}
print(json.dumps(sorted({name.partition(".")[0] for name in others if not name.startswith("_")} - allowed)))
"""


@pytest.fixture(scope="module")
def core(tmp_path_factory) -> Path:
    """Give a folder from which mechdesign and the five packages of its core can be imported."""
    folder = tmp_path_factory.mktemp("core")
    for name in CORE:
        found = importlib.metadata.distribution(name)
        for top in {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}:
            (folder / top).symlink_to(Path(str(found.locate_file(top))).resolve())
    (folder / "mechdesign").symlink_to(PROJECT / "mechdesign")
    return folder


def run(core: Path, code: str, *arguments: str | Path, where: Path) -> subprocess.CompletedProcess[str]:
    """Run Python code in a fresh interpreter without the packages of this environment."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {"PYTHONPATH": str(core), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-S", "-P", "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=where, timeout=300)


def test_what_the_core_needs_is_what_the_project_requires() -> None:
    assert set(CORE) <= {re.split(r"[<>=;\[ ]", line)[0] for line in STATED["dependencies"]}


def test_the_interpreter_of_these_tests_finds_no_other_package(core, tmp_path) -> None:
    code = "import importlib.util, sys; print([n for n in sys.argv[1:] if importlib.util.find_spec(n)])"
    assert run(core, code, *OTHERS, where=tmp_path).stdout == "[]\n"


@pytest.mark.slow
@pytest.mark.parametrize("variant", mostly_long(VARIANTS))
@pytest.mark.parametrize("job", JOBS)
def test_a_job_of_the_core(job, variant, core, tmp_path) -> None:
    done = run(core, VARIANTS[variant] + TOOLS + JOBS[job] + END, tmp_path, where=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == []


@pytest.mark.slow
def test_a_second_proof_needs_no_package(core, tmp_path) -> None:
    """The second verifier imports nothing, and the first one the core."""
    road = TOOLS + "md.save(md.design(problem(2, 2)), folder / 'bundle', report=False)"
    assert run(core, road, tmp_path, where=tmp_path).returncode == 0
    second = [sys.executable, "-I", "-S", str(PROJECT / "mechdesign/certify/second_verifier.py"), "bundle"]
    assert subprocess.run(second, capture_output=True, cwd=tmp_path, timeout=300).returncode == 0
    first = run(core, "import runpy; runpy.run_module('mechdesign.certify')", "bundle", where=tmp_path)
    assert first.stderr == ""


def test_what_the_variants_take_away_is_gone(core, tmp_path) -> None:
    for variant, use, failure in (
        ("no threads", "threading.Thread(target=print).start()", "RuntimeError"),
        ("no processes", "subprocess.Popen(['true'])", "OSError"),
    ):
        done = run(core, f"{VARIANTS[variant]}\nimport threading, subprocess\n{use}", where=tmp_path)
        assert done.stderr.splitlines()[-1].startswith(failure), variant


MISSING = {
    "md.design(problem(2, 1), solver='highs')": "solver 'highs' needs the package highspy: pip install highspy",
    "md.design(problem(2, 1), solver='highs-ipx')": "pip install highspy",
    "md.design(problem(2, 1), solver='cvxpy')": "pip install cvxpy",
    "md.design(problem(2, 1), solver='cvxpy-scs')": "pip install cvxpy",
    "md.design(problem(2, 1), solver='block', options={'arrays': 'numba'})": r"pip install 'mechdesign\[fast\]'",
    "export('parquet', design)": r"pip install 'mechdesign\[parquet\]'",
}


@pytest.mark.slow
def test_what_needs_another_package_names_the_line_that_installs_it(core, tmp_path) -> None:
    code = f"""
from mechdesign.synthesis.formats import Exported
from mechdesign.synthesis.formats._registry import FORMATS

def export(name, design):
    return FORMATS[name].parts(Exported(design.problem, design.channel, design.certificate))

design = md.design(problem(2, 1))
for call in {list(MISSING)}:
    try:
        eval(call)
        print(call, "did not fail")
    except Exception as error:
        print(type(error).__name__, " ".join(str(error).split()))
print(sorted(path.name for path in folder.iterdir()))
"""
    done = run(core, TOOLS + code, tmp_path, where=tmp_path)
    *lines, left = done.stdout.splitlines()
    assert len(lines) == len(MISSING), done
    for line, (call, expected) in zip(lines, MISSING.items(), strict=True):
        assert re.match("MissingDependencyError ", line), (call, line)
        assert re.search(expected, line), (call, line)
    assert left == "[]"


@pytest.mark.slow
def test_without_packages_for_a_page_nothing_is_written(core, tmp_path) -> None:
    code = """
design = md.design(problem(2, 1))
for call in (lambda: md.save(design, folder / "b"), lambda: md.report.html(design), lambda: md.figures.leakage):
    try:
        call()
    except ImportError as error:
        print(error.name or type(error).__name__)
print(sorted(path.name for path in folder.iterdir()))
"""
    done = run(core, TOOLS + code, tmp_path, where=tmp_path)
    *missing, left = done.stdout.splitlines()
    assert (missing[0], left) == ("MissingDependencyError", "[]"), done
    assert (len(missing), set(missing[1:]) <= {"jinja2", "markupsafe", "matplotlib"}) == (3, True), done


def test_the_cache_is_off_without_a_folder_for_it(core, tmp_path) -> None:
    code = """
from mechdesign.base import _cache
import os
print(_cache.folder())
os.environ["MECHDESIGN_CACHE"] = str(folder)
print(_cache.folder() == folder)
"""
    assert run(core, TOOLS + code, tmp_path, where=tmp_path).stdout == "None\nTrue\n"
