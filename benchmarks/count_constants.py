"""Count the constants of the solvers: fields of `*Tuning` classes, and upper-case numbers of modules and classes.

    python benchmarks/count_constants.py [CHECKOUT] [--list]

The script counts in `mechdesign/solve` and `mechdesign/synthesis`, without the modules for rays. Each number of a tuple
is counted, so that a schedule of five gaps and five thresholds counts as ten constants.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator
from pathlib import Path

FOLDERS = ("mechdesign/solve", "mechdesign/solvers", "mechdesign/synthesis")


def numbers_in(value: ast.expr) -> int:
    """Return the number of numeric constants in an expression."""
    return sum(
        isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool)
        for node in ast.walk(value)
    )


def constants_of(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield the name of each constant of a module, with its count of numbers."""
    for body in [tree.body, *(node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef))]:
        for node in body:
            if isinstance(node, ast.Assign):
                targets, value = node.targets, node.value
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                targets, value = [node.target], node.value
            else:
                continue
            names = [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
            if names and all(name.isupper() for name in names) and (count := numbers_in(value)):
                yield ", ".join(names), count
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name.endswith("Tuning"):
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    count = 1 if field.value is None else numbers_in(field.value)
                    if count:
                        yield f"{node.name}.{field.target.id}", count


def count(root: Path) -> list[tuple[str, str, int]]:
    """Return the files, names and counts of all constants of a checkout."""
    files = sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.py") if "rays" not in str(path))
    return [
        (str(path.relative_to(root)), name, number)
        for path in files
        for name, number in constants_of(ast.parse(path.read_text(encoding="utf-8")))
    ]


def main() -> None:
    """Print the totals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", nargs="?", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    found = count(arguments.checkout)
    if arguments.list:
        for path, name, number in found:
            print(f"{number:4}  {path}  {name}")
    print(f"{len(found)} constants, {sum(number for _, _, number in found)} numbers")


if __name__ == "__main__":
    main()
