"""``mechdesign info``."""

from __future__ import annotations

import json
import platform
from importlib.metadata import PackageNotFoundError, version

import click

from mechdesign.base._version import __version__
from mechdesign.cli._console import output, say_json, table
from mechdesign.solve import _registry as registry

_PACKAGES = (
    "numpy", "scipy", "highspy", "cvxpy", "numba", "networkx", "matplotlib", "msgspec", "rich", "click", "pyarrow",
)  # fmt: skip


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.option("--schema", is_flag=True, help="Print the JSON schema of specifications, and nothing else.")
def info(as_json: bool, schema: bool) -> None:
    """Show versions, and the available solvers."""
    if schema:
        from mechdesign.specification._grammar import schema as grammar

        say_json(grammar())
        return
    versions = {"mechdesign": __version__, "Python": platform.python_version()}
    versions |= {name: _version(name) for name in _PACKAGES}
    found = {solver.name: _version(solver.package) if solver.installed else "" for solver in registry.available()}
    # Only cvxpy lists the solvers that it can use.
    if any(solver.package == "cvxpy" and solver.installed for solver in registry.available()):
        import cvxpy

        installed: list[str] = cvxpy.installed_solvers()  # type: ignore[no-untyped-call]
        for name in sorted(installed):
            found[f"cvxpy-{name.lower()}"] = versions["cvxpy"]
    if as_json:
        click.echo(json.dumps({"versions": versions, "solvers": found, "system": platform.platform()}, indent=2))
        return
    console = output()
    shown = table("package", "version")
    for name, number in versions.items():
        shown.add_row(name, number or "not installed")
    console.print(shown)
    console.print()
    packages = {solver.name: solver.package for solver in registry.available()}
    shown = table("solver", "by", "version")
    for name, number in found.items():
        shown.add_row(name, packages.get(name, "cvxpy"), number or "not installed")
    console.print(shown)
    console.print('\nWith "auto", the size decides; the certificate names the chosen method and the reason.')


def _version(package: str) -> str:
    if package == "mechdesign":
        return __version__
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
