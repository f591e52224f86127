"""What mechdesign.report._design_figures shows, from which file."""

import ast
from pathlib import Path

from move_modules import defined


def FIGURES(root):
    report = Path(root) / "mechdesign/report"

    def names(file):
        tree = ast.parse((report / file).read_text())
        for s in tree.body:
            if isinstance(s, ast.Assign) and "__all__" in set(defined(s)):
                return [e.value for e in s.value.elts]
        return []

    out = []
    design = [n for n in names("_design_figures.py") if n not in ("figure_bytes",)]
    have = {n for n in design}
    src = (report / "_design_figures.py").read_text()
    own = {n for s in ast.parse(src).body for n in defined(s)}
    shown = sorted(n for n in design if n in own)
    out.append("from ._design_figures import " + ", ".join(f"{n} as {n}" for n in shown))
    passed = [n for n in design if n not in own]
    tree = ast.parse(src)
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            for a in node.names:
                b = a.asname or a.name
                if b in passed:
                    out.append(f"from {node.module} import {a.name} as {b}")
    return out
