"""The checks of a change, a session each: `.venv/bin/nox -l` lists them, `.venv/bin/nox -s style` runs one.

Sessions run in the environment that holds nox, which has the extras test, lint, docs and ci; none installs them again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nox

nox.options.default_venv_backend = "none"
nox.options.sessions = ["style", "types", "tests"]

PROGRAMS = Path(sys.executable).parent
# Two processes, each on one thread but where a test asks for more.
IN_PAIRS = ("-n", "2", "--dist", "worksteal")
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
# Built for the processor alone: 0.2 GB to fetch, 0.8 GB on disk.
PYTORCH = "torch==2.13.0+cpu"
AXE = "axe-core@4"


def run(session: nox.Session, program: str, *arguments: str, **options: object) -> object:
    """Run a program of this environment."""
    return session.run(str(PROGRAMS / program), *arguments, external=True, **options)


@nox.session
def style(session: nox.Session) -> None:
    """Check style, layers, sentences, names and docstrings, and count the package, compared with the last commit."""
    run(session, "ruff", "check", ".")
    run(session, "ruff", "format", "--check", ".")
    run(session, "lint-imports")
    run(session, "python", ".ci/words.py")
    run(session, "python", ".ci/words.py", "--names")
    run(session, "pydoclint", "--quiet", "mechdesign")
    against = ["--against", "HEAD~1"] if _has_history() else []
    run(session, "python", "benchmarks/house.py", *against)


def _has_history() -> bool:
    """Tell whether git has a commit before this one: an archive has none, nor has a shallow clone."""
    asked = ("git", "rev-parse", "--verify", "--quiet", "HEAD~1")
    return shutil.which("git") is not None and subprocess.run(asked, capture_output=True, check=False).returncode == 0


@nox.session
def types(session: nox.Session) -> None:
    """Check types, strictly."""
    run(session, "mypy", "mechdesign")


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests but the slow ones; arguments after `--` go to pytest."""
    run(session, "pytest", *(session.posargs or IN_PAIRS), env=ONE_THREAD)


@nox.session
def slow(session: nox.Session) -> None:
    """Run the slow tests but the long ones; arguments after `--` go to pytest."""
    run(session, "pytest", "-m", "slow and not long", *(session.posargs or IN_PAIRS), env=ONE_THREAD)


@nox.session
def long(session: nox.Session) -> None:
    """Run the long tests, which continuous integration leaves out; arguments after `--` go to pytest."""
    run(session, "pytest", "-m", "long", *(session.posargs or IN_PAIRS), env=ONE_THREAD)


@nox.session
def torch(session: nox.Session) -> None:
    """Test the PyTorch kernel on the processor; skipped where pip finds no build for it.

    It is put beside the environment, into build/torch. PIP_EXTRA_INDEX_URL names an index of such builds, such as
    PyTorch's own: those of the package index bring gigabytes for graphics cards, and load nowhere without them.
    """
    folder = Path("build", "torch").absolute()
    if not folder.exists():
        target = ("--quiet", "--no-compile", "--no-deps", "--target", str(folder))
        run(session, "python", "-m", "pip", "install", *target, PYTORCH, success_codes=[0, 1])
    if not folder.exists():
        # Where an index was named, it should have it.
        leave = session.error if os.environ.get("PIP_EXTRA_INDEX_URL") else session.skip
        leave(f"pip found no {PYTORCH}")
    run(session, "pytest", "-m", "torch", *session.posargs, env=ONE_THREAD | {"PYTHONPATH": str(folder)})


@nox.session
def lowest(session: nox.Session) -> None:
    """Run some of the tests with the lowest version of each package."""
    session.run("bash", ".ci/lowest", external=True)


@nox.session
def processors(session: nox.Session) -> None:
    """Run the numeric tests with the arithmetic of older processors; an argument after `--` replaces "not slow"."""
    session.run("bash", ".ci/processors", str(PROGRAMS / "python"), *session.posargs, external=True)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site, every warning an error, and ask its search."""
    run(session, "sphinx-build", "-W", "--keep-going", "-q", "-b", "html", "docs", "build/site")
    run(session, "pytest", "tests/docs/test_site.py", env={"MECHDESIGN_SITE": str(Path("build", "site").absolute())})


@nox.session
def browser(session: nox.Session) -> None:
    """Open the built site in the system's Chromium; skipped where none is installed. The session `docs` builds it."""
    run(session, "pytest", "-m", "browser", "tests/browser", *session.posargs, env=ONE_THREAD)


@nox.session
def accessible(session: nox.Session) -> None:
    """Check one page of each kind, and a report of each kind, with axe-core; skipped where it cannot be fetched.

    The site is that of the session docs. Arguments after `--` go to docs/accessibility.py instead of the site.
    """
    folder = Path("build", "axe").absolute()
    if not shutil.which("chromium") and not shutil.which("google-chrome"):
        session.skip("Chromium is not installed")
    if not (folder / "node_modules").exists() and shutil.which("npm"):
        npm = ("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), AXE)
        session.run(*npm, external=True, success_codes=range(256))
    if not (folder / "node_modules").exists():
        session.skip(f"npm cannot fetch {AXE}")
    pages = session.posargs or ["--reports", "build/reports", "build/site"]
    run(session, "python", "docs/accessibility.py", *pages, env=ONE_THREAD)


@nox.session
def wheel(session: nox.Session) -> None:
    """Build wheel and sdist, and verify a bundle with what was built."""
    session.run("bash", ".ci/wheel", external=True)
