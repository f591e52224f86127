"""faces.py ROOT: docstrings and stubs of the rooms, from faces_data.py."""

import ast
import sys
import textwrap
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from faces_data import DOOR, FACES, WHERE

sys.path.insert(0, str(Path(__file__).parents[1]))
from move_modules import defined

root = Path(sys.argv[1])
pack = root / "mechdesign"
LAZY = "from mechdesign.base import _lazy\n\n__getattr__, __dir__, __all__ = _lazy.attach(__name__)\n"
homes = defaultdict(list)  # name -> modules that define it
for path in pack.rglob("*.py"):
    mod = path.relative_to(root).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    if path.name in ("__main__.py", "second_verifier.py"):
        continue
    for st in ast.parse(path.read_text()).body:
        for n in defined(st):
            if mod not in homes[n]:
                homes[n].append(mod)
missing = []
(pack / "report/figures.py").write_text("")


def find(name, room):
    name, _, where = name.partition("@")
    if where:
        return name, where if where.startswith("mechdesign") else f"{room}.{where}"
    if f"{room}.{name}" in FACES:
        return name, room
    if (pack.parent / (room.replace(".", "/")) / f"{name}.py").exists() or (
        pack.parent / (room.replace(".", "/")) / name / "__init__.py"
    ).exists():
        return name, room
    found = (
        [m for m in homes[name] if m.startswith(room + ".")]
        or [m for m in homes[name] if m.startswith("mechdesign.base.")]
        or homes[name]
    )
    if not found:
        missing.append((room, name))
        return None
    if len(found) > 1:
        print("several", room, name, found)
    return name, found[0]


def stub(room, names, is_package=True):
    by = defaultdict(list)
    for n in names.split():
        f = find(n, room)
        if f:
            by[f[1]].append(f[0])
    lines = []
    for mod, ns in sorted(by.items()):
        rel = mod
        if mod == room:
            rel = "."
        elif mod.startswith(room + "."):
            rel = mod[len(room) :]
        lines.append(f"from {rel} import " + ", ".join(f"{n} as {n}" for n in sorted(set(ns))))
    return "\n".join(lines) + "\n"


def wrap(text):
    head, _, rest = text.partition("\n\n")
    paras = [" ".join(p.split()) for p in rest.split("\n\n") if p.strip()]
    body = "\n\n".join(textwrap.fill(p, 120) for p in paras)
    return f'"""{head}\n\n{body}\n"""\n' if body else f'"""{head}"""\n'


for module, (text, names) in FACES.items():
    base = root / module.replace(".", "/")
    if module == "mechdesign":
        (base / "__init__.py").write_text(
            wrap(text)
            + "\n"
            + LAZY.replace(
                "import _lazy\n", "import _lazy\nfrom mechdesign.base._version import __version__ as __version__\n"
            )
        )
        out = ["from mechdesign.base._version import __version__ as __version__"]
        out = []
        for group, ns in DOOR.items():
            out.append(f"# {group}")
            for n in ns.split():
                out.append(f"from {'.' if n not in WHERE else '.' + WHERE[n]} import {n} as {n}")
        (base / "__init__.pyi").write_text(
            "# ruff: noqa: I001 (in four groups)\n" + "\n".join(out) + "\n\n__version__: str\n"
        )
        continue
    if module == "mechdesign.cli":
        p = base / "__init__.py"
        t = p.read_text()
        node = ast.parse(t).body[0]
        lines = t.splitlines(keepends=True)
        p.write_text(wrap(text) + "".join(lines[node.end_lineno :]))
        continue
    if module == "mechdesign.base":
        (base / "__init__.py").write_text(wrap(text))
        continue
    if module == "mechdesign.report._design_figures":
        made = base.with_suffix(".py")
        made.write_text(wrap(text) + "\n" + LAZY)
        # figures: what _design_figures shows, and the others
        out = []
        for line in FIGURES(root) if (FIGURES := __import__("figures_data").FIGURES) else []:
            out.append(line)
        base.with_suffix(".pyi").write_text("\n".join(out) + "\n")
        continue
    if names:
        (base / "__init__.py").write_text(wrap(text) + "\n" + LAZY)
        (base / "__init__.pyi").write_text(stub(module, names))
    else:
        (base / "__init__.py").write_text(wrap(text))
# errors
errs = []
tree = ast.parse((pack / "base/_errors.py").read_text())
listed = next((s for s in tree.body if isinstance(s, ast.Assign) and "__all__" in set(defined(s))), None)
names = sorted({e.value for e in listed.value.elts} if listed else set())
names = sorted({*names, *(s.name for s in tree.body if isinstance(s, ast.ClassDef) and not s.name.startswith("_"))})
(pack / "errors.py").write_text((Path(__file__).parent / "new/errors.py").read_text())
(pack / "errors.pyi").write_text(
    "from mechdesign.base._errors import " + ", ".join(f"{n} as {n}" for n in names) + "\n"
)
p = pack / "base/_errors.py"
t = p.read_text()
if "__module__ =" not in t:
    t = (
        t.rstrip()
        + '\n\n\n# Users catch and pickle them by the door.\nfor _kind in [each for each in globals().values() if isinstance(each, type) and issubclass(each, Exception)]:\n    if _kind.__module__ == __name__:\n        _kind.__module__ = "mechdesign.base._errors"\n'
    )
    p.write_text(t)
print("missing", missing)
