"""What the architecture page says is so: rooms and their order, no cycles, and how many files an addition touches."""

import ast
import itertools
import re
import tomllib
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

PROJECT = Path(__file__).parents[1]
PACKAGE = PROJECT / "mechdesign"
PAGE = (PROJECT / "docs" / "architecture.md").read_text(encoding="utf-8")
CONTRACTS = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]


def modules():
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PROJECT).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


@cache
def parsed(path):
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def imports():
    """Return the graph of all imports between modules: at the top, in functions, and for type checkers only."""
    known = dict(modules())
    graph = nx.DiGraph()
    graph.add_nodes_from(known)
    for name, path in known.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        for node in parsed(path):
            found = []
            if isinstance(node, ast.Import):
                found = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = node.module or ""
                if node.level:
                    above = package.split(".")[: len(package.split(".")) - node.level + 1]
                    base = ".".join([*above, *([base] if base else [])])
                found = [f"{base}.{alias.name}" if f"{base}.{alias.name}" in known else base for alias in node.names]
            graph.add_edges_from((name, target) for target in found if target in known and target != name)
    return graph


def layers():
    (layered,) = [contract for contract in CONTRACTS if contract["type"] == "layers"]
    return [[room.strip().removeprefix("mechdesign.") for room in line.split(":")] for line in layered["layers"]]


def table(heading):
    """Return the rows of the first table under a heading of the page."""
    text = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [re.split(r" *(?<!\\)\| *", line.strip("| \n")) for line in text.splitlines() if line.startswith("|")]
    return rows[2:]


def cycles(graph):
    return [sorted(found) for found in nx.strongly_connected_components(graph) if len(found) > 1]


def test_no_import_cycle_between_rooms_not_even_for_type_checkers():
    rooms = nx.DiGraph(
        (source.split(".")[1], target.split(".")[1])
        for source, target in imports().edges
        if "." in source and "." in target
    )
    rooms.remove_edges_from(list(nx.selfloop_edges(rooms)))
    assert not cycles(rooms)
    # A room's face imports what is in it, and nothing in the room its face.
    assert not imports().in_degree("mechdesign")


@pytest.mark.parametrize("room", sorted(itertools.chain(*layers())))
def test_no_import_cycle_within_a_room_not_even_for_type_checkers(room):
    names = [name for name, _ in modules() if f"{name}.".startswith(f"mechdesign.{room}.")]
    assert not cycles(imports().subgraph(names))


def test_imports_point_down_the_layers_for_type_checkers_too():
    depth = {room: level for level, line in enumerate(layers()) for room in line}
    for source, target in imports().edges:
        # The package itself, and `python -m mechdesign`, stand above all rooms.
        if source.count(".") == 0 or source == "mechdesign.__main__":
            continue
        above, below = source.split(".")[1], target.split(".")[1]
        assert above == below or depth[above] < depth[below], f"{source} imports {target}"


def test_every_module_has_a_layer():
    rooms = set(itertools.chain(*layers()))
    found = {name.split(".")[1] for name, _ in modules() if "." in name} - {"__main__", "version"}
    assert found - {"version"} <= rooms


def test_no_contract_has_exceptions():
    for contract in CONTRACTS:
        assert not {"ignore_imports", "allow_indirect_imports", "unmatched_ignore_imports_alerting"} & set(contract)


def test_the_page_lists_the_rooms_in_their_order():
    stated = [[room.strip("` ") for room in row[0].split(",")] for row in table("Rooms")]
    assert stated == layers()


def test_every_file_named_on_the_page_exists():
    named = set(re.findall(r"`([\w/]+\.py|[\w/]+/)`", PAGE))
    assert len(named) > 50
    missing = sorted(name for name in named if not (PACKAGE / name).exists() and not name.endswith("NAME.py"))
    assert not missing


# The word in the table, a module of that kind, and the registry that names it.
KINDS = {
    "requirement": ("requirements/threshold.py", "requirements/kinds.py"),
    "mechanism": ("mechanisms/laplace.py", "mechanisms/registry.py"),
    "solver": ("solvers/scipy.py", "solvers/registry.py"),
    "format": ("formats/parquet.py", "formats/__init__.py"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_addition_touches_as_many_files_as_the_page_says(kind):
    """Nothing but its registry, and the list of public names, knows the module of one of its kind."""
    own, registry = KINDS[kind]
    (row,) = [row for row in table("Adding something") if f"[{kind}]" in row[0]]
    assert row[1:3] == ["2", "1"]
    assert row[4] == f"`{registry}`"
    assert (PACKAGE / own).is_file()
    name = "mechdesign." + own.removesuffix(".py").replace("/", ".")
    facades = {"mechdesign", "mechdesign.mechanisms"}
    registered = "mechdesign." + registry.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    assert set(imports().predecessors(name)) - facades <= {registered}


@pytest.mark.parametrize("kind", KINDS)
def test_no_module_elsewhere_tests_for_a_kind(kind):
    """No name of a registered kind stands in a comparison outside its own room."""
    from mechdesign.synthesis.formats._registry import FORMATS
    from mechdesign.mechanisms import _registry as mechanisms
    from mechdesign.model._requirements._kinds import KINDS as REQUIREMENTS

    names = {
        "requirement": set(REQUIREMENTS),
        "format": set(FORMATS),
        "mechanism": {each.name for each in mechanisms.available()},
        "solver": set(),
    }[kind]
    room = KINDS[kind][0].partition("/")[0]
    for name, path in modules():
        if name.startswith((f"mechdesign.{room}", "mechdesign.certify")):
            continue
        for node in parsed(path):
            if isinstance(node, ast.Compare):
                values = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
                subject = ast.unparse(node.left)
                if re.search(r"\b(kind|form|mechanism|format)\b", subject):
                    assert not names & {value for value in values if isinstance(value, str)}, (
                        f"{name}: {ast.unparse(node)}"
                    )
