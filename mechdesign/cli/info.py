"""``mechdesign info``."""

from __future__ import annotations

import json
import platform
from importlib.metadata import PackageNotFoundError, version

import click

from mechdesign.base._version import __version__
from mechdesign.cli._found import Found, command, wants_json
from mechdesign.solve import _registry as registry

_PACKAGES = (
    "numpy", "scipy", "highspy", "cvxpy", "numba", "networkx", "matplotlib", "msgspec", "rich", "click", "pyarrow",
)  # fmt: skip


@command
@click.option("--schema", is_flag=True, help="Print the JSON schema of specifications, and nothing else.")
def info(schema: bool) -> Found:
    """Show the versions of Python, this package and others, and the solvers that can be named.

    Example: mechdesign info --schema > schema.json
    """
    if schema:
        from mechdesign.specification._document import schema as grammar

        return Found(facts=grammar()) if wants_json() else Found(text=json.dumps(grammar(), indent=2) + "\n")
    versions = {"mechdesign": __version__, "Python": platform.python_version()}
    versions |= {name: _version(name) for name in _PACKAGES}
    solvers = [
        {
            "solver": each.name,
            "package": each.package,
            "version": _version(each.package) if each.installed else "not installed",
        }
        for each in registry.available()
    ]
    # Only cvxpy lists the solvers that it can use.
    if any(each.package == "cvxpy" and each.installed for each in registry.available()):
        import cvxpy

        installed: list[str] = cvxpy.installed_solvers()  # type: ignore[no-untyped-call]
        solvers += [
            {"solver": f"cvxpy-{name.lower()}", "package": "cvxpy", "version": versions["cvxpy"]}
            for name in sorted(installed)
        ]
    said = 'With "auto", the size decides; the certificate names the chosen method and the reason.'
    return Found(said, {"system": platform.platform(), "versions": versions, "solvers": solvers})


def _version(package: str) -> str:
    if package == "mechdesign":
        return __version__
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
