# full.sh ROOT: the whole move.
set -e
here=/work/main/benchmarks/rooms; py=/tmp/base/bin/python
cd $1
grep -q "^Flags = " mechdesign/validation.py || { bash $here/run_sweep.sh $1 > /dev/null; git add -A; git commit -qm "array types from one place"; }
python3 $here/pre.py .
git add -A; git diff --cached --quiet || git commit -qm "pre"
python3 $here/mknames.py; python3 $here/gen.py .
$py $here/../move_modules.py $here/moves.tsv --root . --titles $here/titles.tsv
mkdir -p mechdesign/base
cp $here/new/_lazy.py mechdesign/base/_lazy.py
find mechdesign -type d -empty -delete
for d in mechdesign/graphs/_geometry mechdesign/tables/_policies mechdesign/tables/_queries mechdesign/tables/_sensitivity mechdesign/tables/_strategies mechdesign/synthesis/_coupled mechdesign/synthesis/_rays mechdesign/model/_requirements mechdesign/solve/_blocks mechdesign/solve/_blocks/kernels; do [ -f $d/__init__.py ] || echo "\"\"\"$(grep -P "^$d\t" $here/folders.tsv | cut -f2)\"\"\"" > $d/__init__.py; done
git add -A
$py $here/faces.py .
$py $here/strip.py .
git add -A
$py $here/fix.py .
git add -A
$py $here/texts.py .
cp $here/new/architecture.md docs/architecture.md
cp $here/new/test_architecture.py tests/test_architecture.py
$py $here/contracts.py . _lazy _errors _arrays _atomic _check _arithmetic _machine _warnings
/tmp/base/bin/ruff check -q --fix --select F401,I001,UP mechdesign tests benchmarks notebooks docs || true
/tmp/base/bin/ruff format -q .
git add -A
