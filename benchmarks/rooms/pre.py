"""pre.py ROOT: small edits before the move, so that merged files agree."""
import re, sys
from pathlib import Path
root = Path(sys.argv[1])
def ed(path, *pairs):
    p = root/path
    if not p.exists(): print("absent", path); return
    t = p.read_text()
    for a, b in pairs:
        if a not in t: print("no match", path, a[:60]); continue
        t = t.replace(a, b, 1)
    p.write_text(t)
ed("mechdesign/cli/chain.py", ("_FILE = click.Path(path_type=Path)\n", ""), ("import click\n", "import click\n\nfrom mechdesign.cli.leakage import _FILE\n"))
ed("mechdesign/bench/report.py", ("Results = Sequence[Mapping[str, Any]]\n", ""), ("from mechdesign.bench", "from mechdesign.bench.pictures import Results\nfrom mechdesign.bench"))

# figures that others draw are named in the stub of the face
p = root/"mechdesign/report/figures.py"; t = p.read_text()
