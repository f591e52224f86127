"""tests_move.py ROOT: tests are laid out as the rooms."""

import subprocess
import sys
from collections import defaultdict
from pathlib import Path

root = Path(sys.argv[1])
ROOMS = {
    "blowfish": "tables",
    "solvers": "solve",
    "programs": "solve",
    "spec": "specification",
    "release": "traces",
    "auditing": "measures",
    "attacks": "measures",
    "accounting": "leakage",
    "geometry": "graphs",
    "policy": "graphs",
    "requirements": "model",
    "export": "synthesis",
    "bench": "runs",
    "records": "runs",
    "sweep": "runs",
}
files = [
    f
    for f in subprocess.run(["git", "ls-files", "tests"], cwd=root, capture_output=True, text=True).stdout.split("\n")
    if f
]
new = {}
for f in files:
    parts = f.split("/")
    if len(parts) > 2 and parts[1] in ROOMS:
        new[f] = "/".join(["tests", ROOMS[parts[1]], *parts[2:]])
TOP = {
    "base": "arithmetic cache interleavings interrupts limits masked_arrays private_files process_state processors synchronisation display",
    "report": "figures saving",
}
for room, names_ in TOP.items():
    for n in names_.split():
        if f"tests/test_{n}.py" in files:
            new[f"tests/test_{n}.py"] = f"tests/{room}/test_{n}.py"
by = defaultdict(list)
for f in files:
    by[new.get(f, f)].append(f)
RENAME = {}
for target, olds in by.items():
    if len(olds) > 1:
        for o in olds:
            if o in new:
                p = Path(new[o])
                room = o.split("/")[1]
                RENAME[o] = str(p.with_name(f"test_{room}_{p.name.removeprefix('test_')}"))
new.update(RENAME)
print(RENAME)
names = defaultdict(list)
for f in files:
    names[Path(new.get(f, f)).name].append(new.get(f, f))
print("same names", {k: v for k, v in names.items() if len(v) > 1 and k.endswith(".py") and k != "conftest.py"})
if "--do" in sys.argv:
    for o, n in new.items():
        (root / n).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "mv", o, n], cwd=root, check=True)
    for o, n in new.items():
        if o.count("/") == 1:
            q = root / n
            q.write_text(
                q.read_text()
                .replace("__file__).parents[1]", "__file__).parents[2]")
                .replace("__file__).parent /", "__file__).parents[1] /")
            )
    allf = [
        f
        for f in subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True).stdout.split("\n")
        if f and "rooms/" not in f and f != "CHANGELOG.md"
    ]
    for f in allf:
        q = root / f
        if not q.is_file():
            continue
        try:
            t = q.read_text()
        except UnicodeDecodeError:
            continue
        n2 = t
        for o, n in sorted(new.items(), key=lambda x: -len(x[0])):
            n2 = n2.replace(o, n)
        if n2 != t:
            q.write_text(n2)
