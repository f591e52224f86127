cd $1
echo "== ruff"; .venv/bin/ruff check . --statistics 2>&1 | tail -15; .venv/bin/ruff check . --output-format concise 2>&1 | grep -v E501 | head -${2:-30}
echo "== layers"; .venv/bin/lint-imports 2>&1 | tail -40 | cut -c1-200
echo "== mypy"; .venv/bin/mypy mechdesign 2>&1 | tail -30
