"""texts.py ROOT: names in docs, tests, benchmarks and notebooks: those of the public surface."""

import ast
import re
import subprocess
import sys
from pathlib import Path

root = Path(sys.argv[1])
sys.path.insert(0, str(root))
DOOR = {"blowfish": "tables", "release": "traces", "spec": "specification"}
NAMES = [
    (
        r"\bmd\.traces\.(read_checkins|read_plt|read_places|read_points|read_trajectories|to_grid|Points|Visits|Written)\b",
        r"md.data.\1",
    ),
    (r"\bmd\.traces\.(Trace|Trajectory)\b(?=\()", r"md.data.Trajectory"),
    (r"\bmd\.blowfish\.read_spec\b", "md.specification.read"),
    (r"\bmd\.blowfish\.ReleaseSpecification\b", "md.specification.ReleaseSpecification"),
    (r"\bmd\.blowfish\b", "md.tables"),
    (r"\bmd\.release\b", "md.traces"),
    (r"\bmd\.spec\b", "md.specification"),
    (r"\bmd\.policy\.metrics\b", "md.measures"),
    (r"\bmd\.policy\.(Laplace|PlanarIsotropic)\b", r"md.mechanisms.\1"),
    (r"\bmd\.policy\b", "md.graphs"),
    (r"\bmechdesign\.base\._errors\b", "mechdesign.base._errors"),
]
files = [
    f
    for f in subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=root, capture_output=True, text=True
    ).stdout.split("\n")
    if f
]
# public homes of names: the module of each public face that shows a name
public = {}
order = [
    "mechdesign",
    "mechdesign.base._errors",
    "mechdesign.model",
    "mechdesign.model.distances",
    "mechdesign.certify",
    "mechdesign.data",
    "mechdesign.graphs",
    "mechdesign.solve",
    "mechdesign.mechanisms",
    "mechdesign.leakage",
    "mechdesign.leakage.accounting",
    "mechdesign.synthesis",
    "mechdesign.synthesis.formats",
    "mechdesign.measures",
    "mechdesign.traces",
    "mechdesign.tables",
    "mechdesign.report",
    "mechdesign.report._design_figures",
    "mechdesign.specification",
]


def resolve(mod, node):
    pk = mod.split(".")
    if node.level:
        is_pkg = (root / mod.replace(".", "/") / "__init__.pyi").exists()
        base = pk if is_pkg else pk[:-1]
        base = base[: len(base) - node.level + 1]
        return ".".join([*base, *([node.module] if node.module else [])])
    return node.module


shown = {}
for mod in order:
    p = root / (mod.replace(".", "/"))
    stub = p / "__init__.pyi" if (p / "__init__.pyi").exists() else p.with_suffix(".pyi")
    if not stub.exists():
        continue
    for node in ast.parse(stub.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            for a in node.names:
                shown.setdefault((resolve(mod, node), a.name), mod)


# through the door: md.X where X comes from a face
def door(dotted):
    parts = dotted.split(".")
    for k in range(len(parts) - 1, 0, -1):
        key = (".".join(parts[:k]), parts[k])
        if key in shown:
            home = shown[key]
            return ".".join([home, *parts[k:]])
    return None


DOTTED = re.compile(r"(?<![\w./-])mechdesign(?:\.[A-Za-z_]\w*)+")


def fix(m):
    d = m[0]
    if "._" not in d:
        # names that the door shows
        for pre in (
            "mechdesign.synthesis.",
            "mechdesign.certify.",
            "mechdesign.measures.",
            "mechdesign.specification.",
            "mechdesign.model.",
        ):
            if d.startswith(pre):
                rest = d[len(pre) :]
                first = rest.split(".")[0]
                if (pre[:-1], first) in shown and shown[pre[:-1], first] == "mechdesign":
                    return "mechdesign." + rest
        return d
    new = door(d)
    if new is None:
        return d
    if "._" in new:
        return d
    for pre in (
        "mechdesign.synthesis.",
        "mechdesign.certify.",
        "mechdesign.measures.",
        "mechdesign.specification.",
        "mechdesign.model.",
    ):
        if new.startswith(pre):
            rest = new[len(pre) :]
            first = rest.split(".")[0]
            if (pre[:-1], first) in shown and shown[pre[:-1], first] == "mechdesign":
                return "mechdesign." + rest
    return new


for f in files:
    q = root / f
    if (
        q.suffix not in (".py", ".md", ".toml", ".ipynb", ".cff")
        or not q.is_file()
        or f.startswith(("benchmarks/rooms", "benchmarks/results", "CHANGELOG"))
        or f in ("benchmarks/move_modules.py",)
    ):
        continue
    t = q.read_text()
    n = t
    for a, b in NAMES:
        n = re.sub(a, b, n)
    if q.suffix == ".py" and f.startswith("mechdesign/"):
        n = t  # code of the package keeps its imports; only texts change below
        n = re.sub(
            r"\bmd\.(blowfish|release|spec|policy)\b",
            lambda m: (
                "md." + {"blowfish": "tables", "release": "traces", "spec": "specification", "policy": "graphs"}[m[1]]
            ),
            n,
        )
    if q.suffix == ".py":
        # strings and comments alone
        import io
        import tokenize

        lines = n.splitlines(keepends=True)
        edits = []
        try:
            toks = list(tokenize.generate_tokens(io.StringIO(n).readline))
        except Exception as e:
            print("tokens", f, e)
            continue
        for tok in toks:
            if tok.type in (tokenize.COMMENT, tokenize.STRING) or tok.type == getattr(tokenize, "FSTRING_MIDDLE", -1):
                if (
                    tok.type == tokenize.STRING
                    and f.startswith(("tests/", "benchmarks/"))
                    and not tok.string.startswith(('"""', 'r"""'))
                    and tok.string.count("\n") == 0
                    and re.fullmatch(r"""[rbf]*["']mechdesign[\w.]*["']""", tok.string)
                ):
                    continue
                if DOTTED.search(tok.string):
                    edits.append((tok.start, tok.end, DOTTED.sub(fix, tok.string)))
        for (r1, c1), (r2, c2), new in reversed(edits):
            text = "".join(lines)
            starts = [0]
            for l in lines:
                starts.append(starts[-1] + len(l))
            text = text[: starts[r1 - 1] + c1] + new + text[starts[r2 - 1] + c2 :]
            lines = text.splitlines(keepends=True)
        n = "".join(lines)
    else:
        n = DOTTED.sub(fix, n)
    if n != t:
        q.write_text(n)
