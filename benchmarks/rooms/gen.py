"""gen.py ROOT: moves.tsv of the tree at ROOT from house_moves.tsv, new.tsv and names.tsv."""

import subprocess
import sys
from pathlib import Path

here = Path(__file__).parent
root = Path(sys.argv[1])
rows = {}
for line in Path("/work/shared/house_moves.tsv").read_text().splitlines()[1:]:
    old, new = line.split("\t")[:2]
    rows[old] = new
for line in (here / "new.tsv").read_text().splitlines():
    if line.strip() and not line.startswith("#"):
        old, new = line.split("\t")[:2]
        rows[old] = new
files = set(
    subprocess.run(["git", "ls-files", "mechdesign"], cwd=root, capture_output=True, text=True).stdout.split("\n")
)
out = [f"{o}\t{n}" for o, n in rows.items() if o in files]
names = here / "names.tsv"
if names.exists():
    out += [
        l for l in names.read_text().splitlines() if l.strip() and not l.startswith("#") and l.split(":")[0] in files
    ]
(here / "moves.tsv").write_text("\n".join(out) + "\n")
missing = sorted(f for f in files if f and f not in rows and (root / f).exists())
print("unmapped:", missing)
