"""strip.py ROOT: names stand once: no `__all__` in a private file, no hand-made `__dir__`."""

import ast
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
from faces_data import FILES

from move_modules import defined, is_left_out

root = Path(sys.argv[1])
for path in (root / "mechdesign").rglob("*.py"):
    rel = path.relative_to(root).as_posix()
    t = path.read_text()
    if "_lazy.attach" in t or rel == "mechdesign/base/_lazy.py":
        continue
    tree = ast.parse(t)
    lines = t.splitlines(keepends=True)
    drop = [s for s in tree.body if (is_left_out(s)) or (isinstance(s, ast.FunctionDef) and s.name == "__dir__")]
    names = []
    for s in drop:
        if isinstance(s, ast.Assign):
            names = [e.value for e in ast.walk(s.value) if isinstance(e, ast.Constant)]
    for s in reversed(drop):
        first = min([s.lineno, *(d.lineno for d in getattr(s, "decorator_list", ()))])
        lines[first - 1 : s.end_lineno] = []
    new = "".join(lines)
    if rel in FILES and rel != "mechdesign/certify/second_verifier.py":
        given = FILES[rel].split() if FILES[rel] else names
        body = ast.parse(new).body
        last = max(
            (
                n.end_lineno
                for n in body
                if isinstance(n, (ast.Import, ast.ImportFrom))
                or (isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n.test))
            ),
            default=1,
        )
        ls = new.splitlines(keepends=True)
        own = {n for st in body for n in defined(st)} | {
            a.asname or a.name for st in body if isinstance(st, ast.ImportFrom) for a in st.names
        }
        absent = [n for n in given if n not in own]
        for n in absent:
            at = [
                q
                for q in (root / rel).parent.rglob("*.py")
                if q != path and any(n in set(defined(st)) for st in ast.parse(q.read_text()).body)
            ]
            print("passed on", rel, n, at)
            if at:
                m = at[0].relative_to(root).with_suffix("").as_posix().replace("/", ".")
                ls.insert(last, f"from {m} import {n}\n")
                last += 1
        ls.insert(last, f"\n__all__ = {sorted(set(given))!r}\n__dir__ = _lazy.listing(__all__)\n")
        first = next(
            n for n in body if isinstance(n, (ast.Import, ast.ImportFrom)) and getattr(n, "module", "") != "__future__"
        ).lineno
        ls.insert(first - 1, "from mechdesign.base import _lazy\n")
        new = "".join(ls)
    if new != t:
        path.write_text(new)
