"""The page on environment variables lists each variable that the package, its tests or its site read."""

import ast
import re
from pathlib import Path

PROJECT = Path(__file__).parents[2]
PAGE = (PROJECT / "docs" / "reference" / "environment.md").read_text(encoding="utf-8")
READERS = [
    *(path for folder in ("mechdesign", "tests", "docs", "notebooks") for path in (PROJECT / folder).rglob("*.py")),
    *PROJECT.glob("noxfile.py"),
]
# Python's own variable, which a test passes on, and the loop over all variables whose names end with _NUM_THREADS.
UNLISTED = {"PYTHONPATH", "name"}


def reads(source):
    """Return the names of the variables that a module reads from `os.environ`; an unknown name is its expression."""
    tree, names = ast.parse(source), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("os.environ.get", "os.getenv"):
            names.append(node.args[0])
        elif isinstance(node, ast.Compare) and ast.unparse(node.comparators[0]) == "os.environ":
            names.append(node.left)
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ":
            names.extend([node.slice] if isinstance(node.ctx, ast.Load) else [])
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    constants = {ast.unparse(target): node.value for node in assigned for target in node.targets}
    found = (constants.get(ast.unparse(name), name) for name in names)
    return {name.value if isinstance(name, ast.Constant) else ast.unparse(name) for name in found}


def listed(page):
    """Return the variables in the first cells of the tables of a page."""
    return {name for cell in re.findall(r"(?m)^\| ([^|]+) \|", page) for name in re.findall(r"`([A-Z_]+)`", cell)}


def test_each_variable_is_on_the_page():
    missing = {str(path): reads(path.read_text(encoding="utf-8")) - listed(PAGE) - UNLISTED for path in READERS}
    assert {path: names for path, names in missing.items() if names} == {}


def test_each_own_variable_on_the_page_is_read():
    read = set().union(*(reads(path.read_text(encoding="utf-8")) for path in READERS))
    own = {name for name in listed(PAGE) if name.startswith("MECHDESIGN_")}
    assert own
    assert own <= read


def test_the_checks_can_fail():
    source = """
NAME = "A"
os.environ.get(NAME)
os.environ["B"]
os.getenv("C")
"D" in os.environ
os.environ["E"] = ""
os.environ.get(module.F)
"""
    assert reads(source) == {"A", "B", "C", "D", "module.F"}
    assert listed("| `A_B` and `C` | `D` |\n") == {"A_B", "C"}
