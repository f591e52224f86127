"""sweep_arrays.py ROOT: array types come from one place, mechdesign/validation.py."""

import ast
import io
import re
import subprocess
import sys
import tokenize
from pathlib import Path

root = Path(sys.argv[1]).resolve()
ONE = {"np.float64": "Floats", "np.int64": "Integers", "np.bool_": "Flags", "np.float32": "Singles"}
TYPES = set(ONE.values())
ALIAS = re.compile(
    r"^(_?[A-Z]\w*) = (?:npt\.)?NDArray\[(np\.float64|np\.int64|np\.bool_|np\.float32)\](\s*#.*)?$", re.M
)
files = [
    f
    for f in subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True).stdout.split("\n")
    if f.endswith(".py")
    and f.startswith(("mechdesign/", "tests/", "benchmarks/"))
    and not f.startswith("benchmarks/rooms")
]
HOME = "mechdesign/validation.py"
defined = {}  # module -> {old: new}
texts = {f: (root / f).read_text() for f in files}
for f, t in texts.items():
    if f.startswith("mechdesign/") and f != HOME:
        found = {m[1]: ONE[m[2]] for m in ALIAS.finditer(t)}
        if found:
            defined[f[:-3].replace("/", ".").removesuffix(".__init__")] = found


def rename(text, names):
    lines = text.splitlines(keepends=True)
    edits = []
    prev = None
    for tok in tokenize.generate_tokens(io.StringIO(text).readline):
        if (
            tok.type == tokenize.NAME
            and tok.string in names
            and names[tok.string] != tok.string
            and not (prev and prev.string == ".")
        ):
            edits.append((tok.start, tok.end, names[tok.string]))
        prev = tok
    for (r, a), (_, b), new in reversed(edits):
        lines[r - 1] = lines[r - 1][:a] + new + lines[r - 1][b:]
    return "".join(lines)


changed = 0
for f, t in texts.items():
    mod = f[:-3].replace("/", ".").removesuffix(".__init__")
    names, wanted = {}, set()
    tree = ast.parse(t)
    new = t
    if mod in defined:
        names |= defined[mod]
        wanted |= set(defined[mod].values())
        # the alias lines go, with a comment line before them that only says what they are
        new = ALIAS.sub("", new)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in defined and node.module != mod:
            hit = [a for a in node.names if a.name in defined[node.module]]
            if hit:
                keep = [a for a in node.names if a not in hit]
                for a in hit:
                    names[a.asname or a.name] = defined[node.module][a.name]
                    wanted.add(defined[node.module][a.name])
                seg = ast.get_source_segment(t, node)
                rep = (
                    f"from {node.module} import "
                    + ", ".join(a.name + (f" as {a.asname}" if a.asname else "") for a in keep)
                    if keep
                    else ""
                )
                assert seg in new, (f, seg)
                new = new.replace(seg, rep, 1) if rep else new.replace(seg + "\n", "", 1)
    if not wanted:
        continue
    new = rename(new, names)
    new = re.sub(
        r"(__all__ = \[[^\]]*\])",
        lambda m: re.sub(r'"(' + "|".join(map(re.escape, [*names, "zzz"])) + r')",? ?', "", m[1]),
        new,
    )
    line = f"from mechdesign.base._arrays import {', '.join(sorted(wanted))}\n"
    body = ast.parse(new).body
    at = next(
        (n for n in body if isinstance(n, (ast.Import, ast.ImportFrom)) and getattr(n, "module", "") != "__future__"),
        None,
    )
    first = (
        at.lineno - 1
        if at
        else next(n for n in body if not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))).lineno - 1
    )
    lines = new.splitlines(keepends=True)
    lines.insert(first, line)
    (root / f).write_text("".join(lines))
    changed += 1
v = root / HOME
t = v.read_text()
if "\nFlags = " not in t:
    t = t.replace(
        "Integers = NDArray[np.int64]\n",
        "Integers = NDArray[np.int64]\nFlags = NDArray[np.bool_]\nSingles = NDArray[np.float32]\n",
        1,
    )
    v.write_text(t)
INLINE = re.compile(r"(?:npt\.)?NDArray\[(np\.float64|np\.int64|np\.bool_|np\.float32)\]")
for f in files:
    if not f.startswith("mechdesign/") or f == HOME or f.endswith("second_verifier.py"):
        continue
    t = (root / f).read_text()
    wanted = {ONE[m[1]] for m in INLINE.finditer(t)}
    if not wanted:
        continue
    new = INLINE.sub(lambda m: ONE[m[1]], t)
    body = ast.parse(new).body
    at = next(
        n for n in body if isinstance(n, (ast.Import, ast.ImportFrom)) and getattr(n, "module", "") != "__future__"
    )
    lines = new.splitlines(keepends=True)
    lines.insert(at.lineno - 1, f"from mechdesign.base._arrays import {', '.join(sorted(wanted))}\n")
    (root / f).write_text("".join(lines))
    changed += 1
print(changed, "files")
