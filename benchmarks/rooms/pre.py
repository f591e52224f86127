"""pre.py ROOT: small edits before the move, so that merged files agree."""

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
            print("no match", path, a[:60])
            continue
        t = t.replace(a, b, 1)
    p.write_text(t)


ed(
    "mechdesign/cli/chain.py",
    ("_FILE = click.Path(path_type=Path)\n", ""),
    ("import click\n", "import click\n\nfrom mechdesign.cli.leakage import _FILE\n"),
)
ed(
    "mechdesign/bench/report.py",
    ("Results = Sequence[Mapping[str, Any]]\n", ""),
    ("from mechdesign.bench", "from mechdesign.runs._bench_page import Results\nfrom mechdesign.bench"),
)

import ast
import subprocess

sys.path.insert(0, str(Path(__file__).parents[1]))
from move_modules import defined


def cut(old, new, names, title):
    """Move names of a module into a new one; the old one imports them, so that its users are found."""
    p = root / old
    t = p.read_text()
    tree = ast.parse(t)
    lines = t.splitlines(keepends=True)
    if (root / new).exists():
        return
    body = tree.body
    head, taken, drop = [], [], []
    previous = 0
    for st in body:
        first = min([st.lineno, *(d.lineno for d in getattr(st, "decorator_list", ()))])
        start = first - 1
        while start > previous and lines[start - 1].startswith("#"):
            start -= 1
        if set(defined(st)) & set(names):
            end = st.end_lineno
            taken.append("".join(lines[start:end]))
            drop.append((start, end))
        elif isinstance(st, (ast.Import, ast.ImportFrom)):
            head.append("".join(lines[first - 1 : st.end_lineno]))
        elif isinstance(st, ast.If) and "TYPE_CHECKING" in ast.dump(st.test):
            head.append("".join(lines[first - 1 : st.end_lineno]))
        previous = st.end_lineno
    module = new[:-3].replace("/", ".")
    (root / new).write_text(
        f'"""{title}"""\n\n' + "".join(head) + "\n\n" + "\n\n\n".join(x.strip("\n") for x in taken) + "\n"
    )
    for start, end in reversed(drop):
        lines[start:end] = []
    t = "".join(lines)
    at = next(
        n
        for n in ast.parse(t).body
        if isinstance(n, (ast.Import, ast.ImportFrom)) and getattr(n, "module", "") != "__future__"
    )
    ls = t.splitlines(keepends=True)
    ls.insert(at.lineno - 1, f"from {module} import {', '.join(names)}\n")
    t = "".join(ls)
    for n in names:
        t = t.replace(f'    "{n}",\n', "", 1) if "__all__" in t else t
    p.write_text(t)
    subprocess.run(["/tmp/base/bin/ruff", "check", "-q", "--fix", "--select", "F401,I001", new], cwd=root)
    subprocess.run(["/tmp/base/bin/ruff", "format", "-q", new, old], cwd=root)
    subprocess.run(["git", "add", new], cwd=root)


cut(
    "mechdesign/data/traces.py",
    "mechdesign/data/trajectories.py",
    ["Times", "Trace", "Visits", "to_grid", "_all_outside"],
    "Trajectories, and the visits to cells that they make.",
)
cut(
    "mechdesign/validation.py",
    "mechdesign/checks.py",
    [
        "LEAST_NUMBER",
        "LARGEST_NUMBER",
        "LARGEST_COUNT",
        "require_unmasked",
        "require_kind",
        "as_path",
        "as_list",
        "as_integer",
        "as_truth",
        "as_number",
        "as_smoothing",
        "as_generator",
        "renamed",
    ],
    "Plain numbers, choices and kinds, checked: one sentence for each fault.",
)
