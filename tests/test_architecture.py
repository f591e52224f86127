"""What the architecture page says is so: rooms and their floors, no circles, and how many files an addition touches."""

import ast
import importlib
import itertools
import re
import tomllib
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

import house

PROJECT = Path(__file__).parents[1]
PACKAGE = PROJECT / "mechdesign"
PAGE = (PROJECT / "docs" / "architecture.md").read_text(encoding="utf-8")
CONTRACTS = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
FLOORS = house.layers(PROJECT)
ROOMS = sorted(itertools.chain(*FLOORS))


MODULES = {module.name: module for module in house.read(PROJECT)}


@cache
def imports():
    """Return the graph of all imports between modules: at the top, in functions, and for type checkers only."""
    graph = nx.DiGraph(
        (name, other) for name, module in MODULES.items() for other in module.imports(frozenset(MODULES))
    )
    graph.add_nodes_from(MODULES)
    return graph


def table(heading):
    """Return the rows of the first table under a heading of the page."""
    text = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [re.split(r" *(?<!\\)\| *", line.strip("| \n")) for line in text.splitlines() if line.startswith("|")]
    return rows[2:]


def circles(graph):
    return [sorted(found) for found in nx.strongly_connected_components(graph) if len(found) > 1]


def test_sixteen_rooms_stand_on_nine_floors():
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert (len(ROOMS), len(FLOORS)) == (16, 9)
    assert folders == set(ROOMS)
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py", "errors.py"}


def test_no_files_import_each_other_not_even_for_type_checkers():
    assert not circles(imports())


def test_imports_point_downwards_for_type_checkers_too():
    depth = {room: level for level, line in enumerate(FLOORS) for room in line}
    for source, target in imports().edges:
        # The door stands above all rooms.
        if source in ("mechdesign", "mechdesign.__main__", "mechdesign.errors"):
            continue
        above, below = source.split(".")[1], target.split(".")[1]
        assert above == below or depth[above] < depth[below], f"{source} imports {target}"


def test_rooms_on_one_floor_are_independent():
    apart = [
        {room.removeprefix("mechdesign.") for room in c["modules"]} for c in CONTRACTS if c["type"] == "independence"
    ]
    assert sorted(map(sorted, apart)) == sorted(sorted(line) for line in FLOORS if len(line) > 1)


def test_no_contract_has_exceptions():
    for contract in CONTRACTS:
        assert not {"ignore_imports", "allow_indirect_imports", "unmatched_ignore_imports_alerting"} & set(contract)


def test_the_page_shows_the_rooms_on_their_floors():
    drawn = re.findall(r"^ +(\d)   │(.*)│", PAGE, re.MULTILINE)
    assert [[room.strip() for room in line.split("│")] for _, line in drawn] == FLOORS
    assert [int(number) for number, _ in drawn] == list(range(len(FLOORS), 0, -1))
    assert sorted(row[0].strip("`") for row in table("Rooms and floors")) == ROOMS


def test_every_file_named_on_the_page_exists():
    named = set(re.findall(r"`([\w/]+\.pyi?|[\w/]+/)`", PAGE))
    assert len(named) > 100
    assert not sorted(name for name in named if not (PACKAGE / name).exists() and "NAME" not in name)


def test_every_function_of_a_road_stands_in_a_file_of_its_step():
    roads = PAGE.split("\n## The five main roads\n", 1)[1].split("\n## ", 1)[0]
    for step in re.split(r"\n\d\. ", roads)[1:]:
        named = re.findall(r"`([A-Za-z_.]+)`(?!\))", step.split("\n\n")[0])
        files = re.findall(r"`([\w/]+\.py)`", step)
        defined = {
            node.name
            for file in files
            for node in ast.walk(ast.parse((PACKAGE / file).read_text(encoding="utf-8")))
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
        }
        for name in named:
            if "/" not in name and not name.endswith(".py"):
                assert name.split(".")[-1] in defined, (name, files)


def test_every_name_beside_a_file_stands_in_it():
    named = re.findall(r"`([\w/]+\.py)` \(([^)]*)\)", PAGE.split("\n## Where is", 1)[1])
    assert len(named) > 60
    for file, names in named:
        source = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
        found = {node.name for node in ast.walk(source) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        assert set(re.findall(r"`(\w+)`", names)) <= found, file


def test_the_house_keeps_its_counts():
    counted = house.count(PROJECT)
    assert not [name for name, limit in house.LIMITS.items() if counted[name] > limit]


PUBLIC = [
    "mechdesign", "mechdesign.errors", "mechdesign.model", "mechdesign.model.distances", "mechdesign.certify",
    "mechdesign.certify.second_verifier", "mechdesign.data", "mechdesign.graphs", "mechdesign.solve",
    "mechdesign.mechanisms", "mechdesign.leakage", "mechdesign.leakage.accounting", "mechdesign.leakage.cao2019",
    "mechdesign.synthesis", "mechdesign.synthesis.formats", "mechdesign.measures", "mechdesign.measures.attack",
    "mechdesign.traces", "mechdesign.tables", "mechdesign.report", "mechdesign.report.figures",
    "mechdesign.specification", "mechdesign.runs.bench", "mechdesign.runs.sweep",
]  # fmt: skip


def test_other_modules_bear_an_underscore():
    open_ = set()
    for name in MODULES:
        parts = name.split(".")[1:]
        if not any(part.startswith("_") for part in parts) and parts[:1] != ["cli"] and "examples" not in parts:
            open_.add(name)
    assert open_ == {*PUBLIC, "mechdesign.base", "mechdesign.runs"}


@pytest.mark.parametrize("name", PUBLIC)
def test_every_name_that_a_public_module_lists_is_there(name):
    module = importlib.import_module(name)
    assert module.__doc__
    for listed in getattr(module, "__all__", ()):
        assert getattr(module, listed) is not None
    if name != "mechdesign.certify.second_verifier":
        assert dir(module) == sorted(module.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = module.nothing


def test_the_door_shows_38_names_in_four_groups():
    stub = (PACKAGE / "__init__.pyi").read_text(encoding="utf-8")
    groups = re.split(r"^# (\w+)$", stub, flags=re.MULTILINE)[1:]
    names = {title: re.findall(r" as (\w+)", text) for title, text in zip(groups[::2], groups[1::2], strict=True)}
    assert {title: len(listed) for title, listed in names.items()} == {
        "values": 11,
        "requirements": 5,
        "functions": 5,
        "modules": 17,
    }
    assert sorted(itertools.chain(*names.values())) == dir(importlib.import_module("mechdesign"))


@pytest.mark.parametrize("room", ROOMS)
def test_each_room_says_what_lives_there_and_what_it_may_import(room):
    text = importlib.import_module(f"mechdesign.{room}").__doc__
    sentences = re.findall(r"[.](?:\s|$)", text)
    assert 4 <= len(sentences) <= 7, text
    assert "import" in text


# A module of each kind, what it defines, and the registry that names it.
KINDS = {
    "requirement": ("model/_requirements/_threshold.py", "ThresholdPrivacy", "model/_requirements/_kinds.py"),
    "mechanism": ("mechanisms/_knorm.py", "Laplace", "mechanisms/_registry.py"),
    "solver": ("solve/_scipy.py", "back_end", "solve/_registry.py"),
    "format": ("synthesis/formats/_geojson.py", "GEOJSON", "synthesis/formats/_registry.py"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_addition_touches_as_many_files_as_the_page_says(kind):
    """Nothing but its registry, and the stub of the face, knows one of its kind."""
    own, defined, registry = KINDS[kind]
    (row,) = [row for row in table("Adding something") if f"[{kind}]" in row[0]]
    assert row[1:3] == ["2", "1"]
    assert row[4] == f"`{registry}`"
    name = "mechdesign." + own.removesuffix(".py").replace("/", ".")
    assert name in imports()
    registered = "mechdesign." + registry.removesuffix(".py").replace("/", ".")
    users = {
        module.name
        for module in MODULES.values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom)
        and node.module == name
        and any(alias.name == defined for alias in node.names)
    }
    assert users <= {registered}


@pytest.mark.parametrize("kind", KINDS)
def test_no_module_elsewhere_tests_for_a_kind(kind):
    """No name of a registered kind stands in a comparison outside its own room."""
    from mechdesign.mechanisms import available
    from mechdesign.model import KINDS as REQUIREMENTS
    from mechdesign.synthesis.formats import FORMATS

    names = {
        "requirement": set(REQUIREMENTS),
        "format": set(FORMATS),
        "mechanism": {each.name for each in available()},
        "solver": set(),
    }[kind]
    room = KINDS[kind][0].rpartition("/")[0].replace("/", ".")
    for name, module in MODULES.items():
        if name.startswith((f"mechdesign.{room}", "mechdesign.certify")):
            continue
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Compare):
                values = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
                subject = ast.unparse(node.left)
                if re.search(r"\b(kind|form|mechanism|format)\b", subject):
                    assert not names & {value for value in values if isinstance(value, str)}, (
                        f"{name}: {ast.unparse(node)}"
                    )
