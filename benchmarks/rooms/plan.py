"""Show what a table of moves makes: unmapped files, circles of new files, arrows upwards, sizes."""

import ast
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import networkx as nx

sys.path.insert(0, str(Path(__file__).parents[1]))
from move_modules import Moves, Source, module_of

root, table = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
verbose = "-v" in sys.argv
moves = Moves.read(table)
files = [
    f
    for f in subprocess.run(["git", "ls-files", "mechdesign"], cwd=root, capture_output=True, text=True).stdout.split(
        "\n"
    )
    if f and (root / f).is_file()
]
for f in files:
    if f not in moves.paths:
        print("unmapped", f)
pack = [f for f in files if f.endswith(".py")]
modules = frozenset(map(module_of, pack))
src = {module_of(f): Source(root / f, module_of(f), modules) for f in pack}
FLOORS = [
    ["cli"],
    ["runs"],
    ["report", "specification"],
    ["measures", "traces", "tables"],
    ["synthesis", "mechanisms", "leakage"],
    ["data", "graphs"],
    ["model"],
    ["certify", "solve"],
    ["base"],
]
floor = {r: 9 - i for i, rs in enumerate(FLOORS) for r in rs}
g = nx.DiGraph()
why = defaultdict(list)
for m, s in src.items():
    for name_node in [None]:
        pass
    # arrow per top-level statement: belongs to the home of the statement's names
    for st in s.tree.body:
        from move_modules import defined

        names = list(defined(st))
        homes = {moves.home(m, n).module for n in names} or {moves.module(m)}
        # names used
        b = s.bindings()
        used = {n.id for n in ast.walk(st) if isinstance(n, ast.Name)}
        attrs = {
            (n.value.id, n.attr) for n in ast.walk(st) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)
        }
        if isinstance(st, (ast.Import, ast.ImportFrom)):
            continue
        targets = set()
        for bound, t in b.items():
            if bound in used or any(
                isinstance(n, (ast.ImportFrom, ast.Import)) and any((a.asname or a.name) == bound for a in n.names)
                for n in ast.walk(st)
            ):
                if t.name is not None:
                    targets.add((moves.home(t.module, t.name).module, f"{t.module}.{t.name}"))
                else:
                    found = [x for y, x in attrs if y == bound]
                    for x in found:
                        targets.add((moves.home(t.module, x).module, f"{t.module}.{x}"))
                    if not found:
                        targets.add((moves.module(t.module), t.module))
        # names of the same old module that went elsewhere
        for n in used:
            if (m, n) in moves.names or n in s.definitions():
                targets.add((moves.home(m, n).module, f"{m}.{n}"))
        for h in homes:
            for t, w in targets:
                if t != h and t.startswith("mechdesign.") and h.startswith("mechdesign."):
                    g.add_edge(h, t)
                    why[h, t].append(f"{m}:{','.join(names) or st.lineno} -> {w}")


def room(x):
    p = x.split(".")
    return p[1] if len(p) > 1 else ""


bad = 0
for a, b in sorted(g.edges):
    ra, rb = room(a), room(b)
    if ra == rb or ra not in floor or rb not in floor:
        if ra != rb and (ra not in floor or rb not in floor):
            print("nowhere", a, b, why[a, b][:2])
        continue
    if floor[rb] >= floor[ra]:
        bad += 1
        print("UP", a, "->", b, why[a, b][:4])
for c in nx.strongly_connected_components(g):
    if len(c) > 1:
        print("CIRCLE", sorted(c))
        sub = g.subgraph(c)
        for a, b in sorted(sub.edges):
            print("    ", a, "->", b, why[a, b][:3] if verbose else len(why[a, b]))
lines = defaultdict(int)
for m, s in src.items():
    lines[moves.module(m)] += len(s.lines)
for m, n in sorted(lines.items(), key=lambda x: -x[1]):
    if n > 700:
        print("LONG", m, n)
print(len({moves.module(m) for m in modules if moves.modules.get(m) != "-"}), "files", bad, "upward")
