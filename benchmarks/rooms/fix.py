"""fix.py ROOT: modules and files that are named by text."""

import re
import sys
from pathlib import Path

root = Path(sys.argv[1])


def ed(path, *pairs):
    p = root / path
    if not p.exists():
        print("absent", path)
        return
    t = p.read_text()
    for a, b in pairs:
        if a not in t:
            print("no match", path, repr(a[:70]))
            continue
        t = t.replace(a, b)
    p.write_text(t)


reg = root / "mechdesign/solve/_registry.py"
if reg.exists():
    t = reg.read_text()
    t = re.sub(
        r'importlib\.import_module\(f"mechdesign\.[a-z_.]*\{module\}"\)',
        'importlib.import_module(f"mechdesign.solve._{module}")',
        t,
    )
    reg.write_text(t)
ed(
    "mechdesign/solve/_cvxpy.py",
    ('importlib.import_module(".scipy", __package__)', 'importlib.import_module("._scipy", __package__)'),
)
p = next(x for x in [root / "mechdesign/report/_pages.py", root / "mechdesign/report/document.py"] if x.exists())
t = p.read_text()
t = t.replace(
    'resources.files("mechdesign.report").joinpath(name)',
    'resources.files("mechdesign.report").joinpath("templates", name)',
)
p.write_text(t)
ed(
    "mechdesign/cli/__init__.py",
    (
        'importlib.import_module(f"mechdesign.cli.{name}"), name)',
        'importlib.import_module(f"mechdesign.cli.{module}"), function)',
    ),
    (
        "            return None\n        command: click.Command",
        "            return None\n        module, function = _PLACES.get(name, (name, name))\n        command: click.Command",
    ),
    ('    "blowfish": "Release counts', '    "table": "Release counts'),
    ('    "ledger": "Begin a ledger', '    "blowfish": "The same as table.",\n    "ledger": "Begin a ledger'),
    (
        "\n\ndef exit_code(",
        '\n# The file and the function of a command, where they have another name.\n_PLACES: Mapping[str, tuple[str, str]] = {\n    "compare": ("inspect", "compare"),\n    "table": ("table", "blowfish"),\n    "blowfish": ("table", "blowfish"),\n    "chain": ("leakage", "chain"),\n    "init": ("start", "init"),\n    "info": ("start", "info"),\n    "examples": ("start", "examples"),\n}\n\n\ndef exit_code(',
    ),
)
# the group of entry points keeps its name
for path in [
    *root.joinpath("mechdesign").rglob("*.py"),
    *root.joinpath("docs").rglob("*.md"),
    *root.joinpath("tests").rglob("*.py"),
    root / "CHANGELOG.md",
]:
    t = path.read_text()
    n = t.replace(
        'entry-points."mechdesign.model._requirements"', 'entry-points."mechdesign.model._requirements"'
    ).replace('EXTENSIONS = "mechdesign.model._requirements"', 'EXTENSIONS = "mechdesign.model._requirements"')
    n = n.replace("[mechdesign.model._requirements]", "[mechdesign.model._requirements]").replace(
        "`mechdesign.model._requirements`", "`mechdesign.model._requirements`"
    )
    if n != t:
        path.write_text(n)
# where the version stands, and other paths in settings
ed(
    "pyproject.toml",
    ('path = "mechdesign/version.py"', 'path = "mechdesign/base/_version.py"'),
    ("mechdesign/solvers/ipm/kernels/*.py", "mechdesign/solve/_blocks/kernels/*.py"),
)
# paths of files in texts
rows = [l.split("\t")[:2] for l in (Path(__file__).parent / "moves.tsv").read_text().splitlines() if ":" not in l]
paths = sorted(((o, n) for o, n in rows if n != "-"), key=lambda r: -len(r[0]))
import subprocess

for f in subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True).stdout.split("\n"):
    q = root / f
    if (
        not f
        or not q.is_file()
        or q.suffix not in (".py", ".md", ".toml", ".yml", ".yaml", "")
        or f.startswith("benchmarks/rooms")
        or f == "CHANGELOG.md"
    ):
        continue
    try:
        t = q.read_text()
    except UnicodeDecodeError:
        continue
    n = t
    for old, new in paths:
        if old in n:
            n = n.replace(old, new)
    if f.startswith("docs/") and f.endswith(".md") and f != "docs/architecture.md":
        for old, new in paths:
            n = n.replace(f"`{old.removeprefix('mechdesign/')}`", f"`{new.removeprefix('mechdesign/')}`")
            if old.endswith(".py"):
                n = re.sub(
                    rf"(?<=[`(]){re.escape(old.removeprefix('mechdesign/'))}(?=[`:)])",
                    new.removeprefix("mechdesign/"),
                    n,
                )
    if n != t:
        q.write_text(n)
# packages inside of rooms pass no names on
import ast

for pk in ("mechdesign/solve/_blocks", "mechdesign/synthesis/_rays"):
    init = root / pk / "__init__.py"
    if not init.exists():
        continue
    t = init.read_text()
    tree = ast.parse(t)
    homes = {(a.asname or a.name): n.module for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names}
    if not homes:
        continue
    dotted = pk.replace("/", ".")
    for q in [
        *root.joinpath("mechdesign").rglob("*.py"),
        *root.joinpath("tests").rglob("*.py"),
        *root.joinpath("benchmarks").glob("*.py"),
    ]:
        s = q.read_text()
        if q == init or f"from {dotted} import" not in s:
            continue
        tr = ast.parse(s)
        lines = s.splitlines(keepends=True)
        for node in sorted(
            (n for n in ast.walk(tr) if isinstance(n, ast.ImportFrom) and n.module == dotted), key=lambda n: -n.lineno
        ):
            out = []
            for a in node.names:
                said = a.name + (f" as {a.asname}" if a.asname else "")
                out.append(f"{' ' * node.col_offset}from {homes.get(a.name, dotted)} import {said}\n")
            lines[node.lineno - 1 : node.end_lineno] = out
        q.write_text("".join(lines))
    doc = tree.body[0]
    init.write_text("".join(t.splitlines(keepends=True)[: doc.end_lineno]))
