"""The checks of a change, a session each: `.venv/bin/nox -l` lists them, `.venv/bin/nox -s style` runs one.

Sessions run in the environment that holds nox, which has the extras test, fast, lint, docs and ci; none installs
them again. The session `weekly` adds what it needs.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import nox

nox.options.default_venv_backend = "none"
nox.options.sessions = ["style", "types", "tests"]

PROGRAMS = Path(sys.executable).parent
AXE = "axe-core@4"
SITE = Path("build", "site").absolute()
# What the session `weekly` runs, in this order.
WEEKLY = ("long", "processors", "lowest", "docs", "browser", "accessible", "attacks")


def run(session: nox.Session, program: str, *arguments: str, **options: object) -> object:
    """Run a program of this environment."""
    return session.run(str(PROGRAMS / program), *arguments, external=True, **options)


@nox.session
def style(session: nox.Session) -> None:
    """Check style, layers and docstrings, and count the package."""
    run(session, "ruff", "check", ".")
    run(session, "ruff", "format", "--check", ".")
    run(session, "lint-imports")
    run(session, "pydoclint", "--quiet", "mechdesign")
    run(session, "python", "benchmarks/house.py")


@nox.session
def types(session: nox.Session) -> None:
    """Check types, strictly."""
    run(session, "mypy", "mechdesign")


@nox.session
def tests(session: nox.Session) -> None:
    """Run the fast tests, and list those that are not; arguments after `--` go to pytest."""
    run(session, "pytest", "--list-seconds", *session.posargs)


@nox.session
def slow(session: nox.Session) -> None:
    """Run the slow tests but the long ones; arguments after `--` go to pytest."""
    run(session, "pytest", "-m", "slow and not long", *session.posargs)


@nox.session
def long(session: nox.Session) -> None:
    """Run the long tests, which continuous integration leaves to each week; arguments after `--` go to pytest."""
    run(session, "pytest", "-m", "long", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site, every warning an error, and run the code of the pages."""
    run(session, "sphinx-build", "-j", "2", "-W", "--keep-going", "-q", "-b", "html", "docs", str(SITE))
    run(session, "pytest", "tests/docs", "-m", "not slow or long", env={"MECHDESIGN_SITE": str(SITE)})


@nox.session
def wheel(session: nox.Session) -> None:
    """Build wheel and sdist, and verify a bundle with what was built."""
    session.run("bash", ".ci/wheel", external=True)


@nox.session
def weekly(session: nox.Session) -> None:
    """Run what is too long for every change: one session after the other, all of them, whichever fail."""
    extras = ".[test,fast,dask,notebooks,lint,docs,ci,weekly]"
    # Editable, so that what is tested afterwards is still this folder.
    run(session, "python", "-m", "pip", "install", "--quiet", "--editable", extras)
    for name in WEEKLY:
        session.notify(name)


@nox.session
def lowest(session: nox.Session) -> None:
    """Run some of the tests with the lowest version of each package."""
    session.run("bash", ".ci/lowest", external=True)


@nox.session
def processors(session: nox.Session) -> None:
    """Run the numeric tests with the arithmetic of older processors; an argument after `--` replaces "not long"."""
    session.run("bash", ".ci/processors", str(PROGRAMS / "python"), *session.posargs, external=True)


@nox.session
def browser(session: nox.Session) -> None:
    """Open the built site in the system's Chromium; skipped where none is installed. The session `docs` builds it."""
    run(session, "pytest", "-m", "browser", "tests/browser", *session.posargs)


@nox.session
def accessible(session: nox.Session) -> None:
    """Check one page of each kind, and a report of each kind, with axe-core; skipped where it cannot be fetched.

    The site is that of the session docs. Arguments after `--` go to docs/accessibility.py instead of the site.
    """
    folder = Path("build", "axe").absolute()
    if not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))):
        session.skip("Chromium is not installed")
    if not (folder / "node_modules").exists() and shutil.which("npm"):
        npm = ("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), AXE)
        session.run(*npm, external=True, success_codes=range(256))
    if not (folder / "node_modules").exists():
        session.skip(f"npm cannot fetch {AXE}")
    pages = session.posargs or ["--reports", "build/reports", str(SITE)]
    run(session, "python", "docs/accessibility.py", *pages, env={"OMP_NUM_THREADS": "1"})


@nox.session
def attacks(session: nox.Session) -> None:
    """Fuzz the readers, kill and interrupt commands, and count the mutants that the tests notice."""
    for name, *options in (
        ("fuzz", "--inputs", "50000"),
        ("crash_safety",),
        ("interleavings",),
        ("two_verifiers", "--designs", "1000", "--tampered", "2000"),
        ("mutation", "-o", "build/mutation"),
    ):
        run(session, "python", f"benchmarks/attacks/{name}.py", *options)
