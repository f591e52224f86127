"""push.py: words beyond column 120 of docstrings and comments go to the next line of the paragraph."""

import json
import re
import subprocess

out = subprocess.run(
    [".venv/bin/ruff", "check", "--select", "E501", "--output-format", "json", "."], capture_output=True, text=True
).stdout
files = {}
for e in json.loads(out):
    files.setdefault(e["filename"], []).append(e["location"]["row"])
for f, rows in files.items():
    if "/rooms/" in f or not f.endswith(".py"):
        continue
    L = open(f).read().split("\n")
    for r in sorted(rows, reverse=True):
        i = r - 1
        while len(L[i]) > 120:
            pre = re.match(r"\s*(# )?", L[i])[0]
            cut = L[i].rfind(" ", len(pre), 121)
            rest = L[i][cut + 1 :]
            L[i] = L[i][:cut]
            nxt = L[i + 1] if i + 1 < len(L) else ""
            npre = re.match(r"\s*(# )?", nxt)[0]
            body = nxt[len(npre) :]
            item = re.match(r"^\w+: ", body) or body.startswith(("- ", '"""', ">>>")) or not body.strip()
            same = npre.strip() == pre.strip() and not item and (len(npre) == len(pre) or re.match(r"^\s*\w+: ", L[i]))
            if same:
                L[i + 1] = npre + rest + " " + body
            else:
                ind = pre
                if re.match(r"^\s*\w+: ", L[i]) and not pre.strip():
                    ind = pre + "    "
                L.insert(i + 1, ind + rest)
            i += 1
    open(f, "w").write("\n".join(L))
