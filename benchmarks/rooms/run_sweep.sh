set -e
cd $1
python3 /work/main/benchmarks/rooms/sweep_arrays.py .
/tmp/base/bin/ruff check -q --fix --select F401,I001 mechdesign tests benchmarks || true
/tmp/base/bin/ruff format -q mechdesign tests benchmarks
/tmp/base/bin/ruff check mechdesign tests benchmarks | tail -40
