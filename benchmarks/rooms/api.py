"""api.py ROOT: one page of the reference for each public module."""

import sys
from pathlib import Path

root = Path(sys.argv[1])
folder = root / "docs/reference/api"
PAGES = {
    "door": ("mechdesign", "The door"),
    "model": ("mechdesign.model", "Questions"),
    "distances": ("mechdesign.model.distances", "Distances"),
    "data": ("mechdesign.data", "Files of data"),
    "graphs": ("mechdesign.graphs", "Policy graphs"),
    "synthesis": ("mechdesign.synthesis", "Designs"),
    "formats": ("mechdesign.synthesis.formats", "Export formats"),
    "certify": ("mechdesign.certify", "Certificates"),
    "second_verifier": ("mechdesign.certify.second_verifier", "Second verifier"),
    "mechanisms": ("mechdesign.mechanisms", "Mechanisms"),
    "measures": ("mechdesign.measures", "Audits and error measures"),
    "attack": ("mechdesign.measures.attack", "Attacks"),
    "leakage": ("mechdesign.leakage", "Temporal leakage"),
    "cao2019": ("mechdesign.leakage.cao2019", "Algorithms of Cao et al."),
    "accounting": ("mechdesign.leakage.accounting", "Ledgers"),
    "traces": ("mechdesign.traces", "Traces"),
    "tables": ("mechdesign.tables", "Tables"),
    "report": ("mechdesign.report", "Pages"),
    "figures": ("mechdesign.report._design_figures", "Figures"),
    "specification": ("mechdesign.specification", "Specifications"),
    "solve": ("mechdesign.solve", "Programs and solvers"),
    "bench": ("mechdesign.runs.bench", "Benchmarks"),
    "sweep": ("mechdesign.runs.sweep", "Sweeps"),
    "errors": ("mechdesign.base._errors", "Errors"),
}
for old in folder.glob("*.md"):
    old.unlink()
for name, (module, title) in PAGES.items():
    if name == "door":
        body = f"""# {title}

`import mechdesign as md` shows values, requirements, functions and modules. They stand on the pages of their rooms.

```{{eval-rst}}
.. automodule:: mechdesign
   :no-members:

.. py:currentmodule:: mechdesign
```
"""
    else:
        extra = "\n   :no-members:" if name == "second_verifier" else ""
        body = f"""# {title}

```{{eval-rst}}
.. automodule:: {module}{extra}
```
"""
    (folder / f"{name}.md").write_text(body)
(folder / "index.md").write_text(
    """# Python

These 24 modules are public: their names and meanings are kept within a major version. `import mechdesign as md` gives most of them; they load on
first use, so that verifying never imports a solver.

```{toctree}
:maxdepth: 1

"""
    + "\n".join(PAGES)
    + "\n```\n"
)
g = root / "docs/guide/databases.md"
g.write_text(g.read_text().replace("../reference/api/databases.md", "../reference/api/tables.md"))
