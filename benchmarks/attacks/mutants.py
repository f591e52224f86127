"""Small faults that a programmer could make, put into a module one at a time.

A mutant changes one place of a module's syntax tree: a comparison, an arithmetic or Boolean operator, a rounding
direction, or a constant. Other mutants remove a raise, a negation, or a call that is made for its effect. Texts, types
and the wording of errors are not changed.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
ROUNDING = {
    "float_up": "float_down",
    "next_plus": "next_minus",
    "ROUND_CEILING": "ROUND_FLOOR",
    "ceil": "floor",
    "max": "min",
    "maximum": "minimum",
    "argmax": "argmin",
    "any": "all",
}
ROUNDING |= {after: before for before, after in ROUNDING.items()}


@dataclass(frozen=True)
class Mutant:
    """One change of one file: the `change`-th change that node number `node` of its syntax tree allows.

    `lines` are the lines of the statement (of its head, if it has a body), and `function` is the innermost definition.
    `inside` is true for places in function bodies, which an import does not execute.
    """

    file: str
    function: str
    inside: bool
    lines: tuple[int, int]
    kind: str
    before: str
    after: str
    node: int
    change: int


@dataclass(frozen=True)
class _Change:
    """A new node, or None for a removed statement."""

    kind: str
    node: ast.AST | None


def mutants(root: Path, file: str, functions: frozenset[str] | None = None) -> list[Mutant]:
    """Return all mutants of a file, or only those of the named functions."""
    tree = ast.parse((root / file).read_text(encoding="utf-8"))
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    found = []
    for number, node in enumerate(ast.walk(tree)):
        owner = _owner(node, parents)
        if _is_text(node, parents) or (functions is not None and owner.partition(".")[0] not in functions):
            continue
        for index, change in enumerate(_changes(node)):
            after = "nothing" if change.node is None else ast.unparse(change.node)
            lines = _lines(node, parents)
            found.append(
                Mutant(file, owner, _inside(node, parents), lines, change.kind, ast.unparse(node), after, number, index)
            )
    return found


def compiled(root: Path, mutant: Mutant) -> CodeType:
    """Return the code of the mutant's module."""
    path = root / mutant.file
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    old = nodes[mutant.node]
    new = list(_changes(old))[mutant.change].node or ast.Pass()
    for parent in nodes:
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new)
            elif isinstance(value, list):
                value[:] = [new if each is old else each for each in value]
    return compile(ast.fix_missing_locations(tree), str(path), "exec", dont_inherit=True)


def _changes(node: ast.AST) -> Iterator[_Change]:
    for kind, change in _KINDS.items():
        for new in change(node):
            if new is not None and isinstance(node, ast.expr):
                ast.copy_location(new, node)
            yield _Change(kind, new)


def _comparisons(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            operators = [COMPARISONS[type(each)]() if i == place else each for i, each in enumerate(node.ops)]
            if type(operator) in COMPARISONS:
                yield ast.Compare(node.left, operators, node.comparators)


def _arithmetic(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC and not _is_typing(node):
        yield ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
    elif isinstance(node, ast.AugAssign) and type(node.op) in ARITHMETIC:
        yield ast.copy_location(ast.AugAssign(node.target, ARITHMETIC[type(node.op)](), node.value), node)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Invert):
        yield node.operand


def _logic(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body)


def _rounding(node: ast.AST) -> Iterator[ast.AST]:
    if not isinstance(node, ast.Call):
        if isinstance(node, ast.Attribute) and node.attr.startswith("ROUND_"):
            yield ast.Attribute(node.value, ROUNDING[node.attr], node.ctx)
        return
    called = node.func
    name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
    if name == "nextafter":
        value, towards = node.args
        yield value
        yield ast.Call(called, [value, _away(towards)], [])
    elif name in ROUNDING:
        new = ROUNDING[name]
        other = (
            ast.Attribute(called.value, new, called.ctx)
            if isinstance(called, ast.Attribute)
            else ast.Name(new, ast.Load())
        )
        yield ast.Call(ast.copy_location(other, called), node.args, node.keywords)


def _away(towards: ast.expr) -> ast.expr:
    """Return the opposite rounding direction: plus infinity for minus infinity and vice versa, and infinity for 0."""
    if isinstance(towards, ast.UnaryOp):
        return towards.operand
    infinity = ast.Attribute(ast.Name("math", ast.Load()), "inf", ast.Load())
    return infinity if isinstance(towards, ast.Constant) else ast.UnaryOp(ast.USub(), infinity)


def _constants(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield ast.Constant(not node.value)
        elif isinstance(node.value, int):
            yield ast.Constant(node.value + 1)
        elif isinstance(node.value, float) and math.isfinite(node.value):
            yield ast.Constant(2 * node.value if node.value else 1.0)


def _left_out(node: ast.AST) -> Iterator[None]:
    if isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        yield None


_KINDS: dict[str, Callable[[ast.AST], Iterator[ast.AST | None]]] = {
    "comparison": _comparisons,
    "arithmetic": _arithmetic,
    "logic": _logic,
    "rounding": _rounding,
    "constant": _constants,
    "left out": _left_out,
}


def _is_typing(node: ast.BinOp) -> bool:
    """Return whether this is a union of types, as in ``isinstance(value, int | float)``."""
    return isinstance(node.op, ast.BitOr) and all(
        isinstance(side, ast.Name | ast.Attribute | ast.BinOp | ast.Subscript) for side in (node.left, node.right)
    )


def _is_text(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Return whether a node belongs to an annotation, a decorator, a formatted text or an error message."""
    while node in parents:
        parent = parents[node]
        if isinstance(node, ast.JoinedStr | ast.arg) or isinstance(parent, ast.Raise):
            return True
        if isinstance(parent, ast.FunctionDef | ast.ClassDef) and node in [*parent.decorator_list, _returns(parent)]:
            return True
        if isinstance(parent, ast.AnnAssign) and node is parent.annotation:
            return True
        if isinstance(parent, ast.Assign) and ast.unparse(parent.targets[0]) in ("__all__", "Claim", "Array"):
            return True
        node = parent
    return False


def _returns(definition: ast.FunctionDef | ast.ClassDef) -> ast.AST | None:
    return definition.returns if isinstance(definition, ast.FunctionDef) else None


def _owner(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> str:
    names = []
    while node in parents:
        node = parents[node]
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append(node.name)
    return ".".join(reversed(names))


def _inside(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    while node in parents:
        parent = parents[node]
        if isinstance(parent, ast.FunctionDef) and node in parent.body:
            return True
        if isinstance(parent, ast.Lambda) and node is parent.body:
            return True
        node = parent
    return False


def _lines(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> tuple[int, int]:
    while not isinstance(node, ast.stmt):
        node = parents[node]
    body = getattr(node, "body", None)
    last = max(node.lineno, body[0].lineno - 1) if isinstance(body, list) else node.end_lineno
    return node.lineno, last or node.lineno
