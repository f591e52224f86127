"""contracts.py ROOT: the import contract of the rooms in pyproject.toml."""

import re
import sys
from pathlib import Path

p = Path(sys.argv[1]) / "pyproject.toml"
t = p.read_text()
start = t.index("[tool.importlinter]")
m = re.search(r"\n\[tool\.(?!importlinter)", t[start:])
end = start + m.start() + 1 if m else len(t)
new = """[tool.importlinter]
root_package = "mechdesign"
# Imports for type checkers and imports inside of functions count.

[[tool.importlinter.contracts]]
name = "Imports point downwards"
type = "layers"
layers = [
    "mechdesign.cli",
    "mechdesign.runs",
    "mechdesign.report : mechdesign.specification",
    "mechdesign.measures : mechdesign.traces : mechdesign.tables",
    "mechdesign.synthesis : mechdesign.mechanisms : mechdesign.leakage",
    "mechdesign.data : mechdesign.graphs",
    "mechdesign.model",
    "mechdesign.certify : mechdesign.solve",
    "mechdesign.base",
]

[[tool.importlinter.contracts]]
name = "Rooms on one floor do not import each other: pages and files"
type = "independence"
modules = ["mechdesign.report", "mechdesign.specification"]

[[tool.importlinter.contracts]]
name = "Rooms on one floor do not import each other: audits and releases"
type = "independence"
modules = ["mechdesign.measures", "mechdesign.traces", "mechdesign.tables"]

[[tool.importlinter.contracts]]
name = "Rooms on one floor do not import each other: channels, noise and time"
type = "independence"
modules = ["mechdesign.synthesis", "mechdesign.mechanisms", "mechdesign.leakage"]

[[tool.importlinter.contracts]]
name = "Rooms on one floor do not import each other: data and graphs"
type = "independence"
modules = ["mechdesign.data", "mechdesign.graphs"]

[[tool.importlinter.contracts]]
name = "Rooms on one floor do not import each other: proof and programs"
type = "independence"
modules = ["mechdesign.certify", "mechdesign.solve"]

[[tool.importlinter.contracts]]
name = "The verifier knows little of base"
type = "forbidden"
source_modules = ["mechdesign.certify"]
forbidden_modules = [
    FORBIDDEN
]

[[tool.importlinter.contracts]]
name = "The model, its data and its graphs know no solver"
type = "forbidden"
source_modules = ["mechdesign.model", "mechdesign.data", "mechdesign.graphs"]
forbidden_modules = ["mechdesign.solve"]

[[tool.importlinter.contracts]]
name = "Nothing inside imports a door"
type = "forbidden"
source_modules = [
    "mechdesign.base", "mechdesign.certify", "mechdesign.solve", "mechdesign.model", "mechdesign.data", "mechdesign.graphs",
    "mechdesign.synthesis", "mechdesign.mechanisms", "mechdesign.leakage", "mechdesign.measures", "mechdesign.traces",
    "mechdesign.tables", "mechdesign.report", "mechdesign.specification", "mechdesign.runs", "mechdesign.cli",
]
forbidden_modules = ["mechdesign.base._errors", "mechdesign.__main__"]
"""
base = Path(sys.argv[1]) / "mechdesign/base"
ALLOWED = set(sys.argv[2:])
no = [f"mechdesign.base.{q.stem}" for q in sorted(base.glob("_*.py")) if q.stem not in ("__init__", *ALLOWED)]
rooms = (
    "solve model data graphs synthesis mechanisms leakage measures traces tables report specification runs cli".split()
)
text = ", ".join(f'"{n}"' for n in no + [f"mechdesign.{r}" for r in rooms])
import textwrap

new = new.replace("    FORBIDDEN", textwrap.indent(textwrap.fill(text + ",", 116), "    "))
p.write_text(t[:start] + new + ("\n" + t[end:] if m else ""))
