#!/usr/bin/env python3
"""Check the English of docstrings, comments, messages and pages: words, patterns, and the length of sentences.

    python .ci/words.py [FILE OR FOLDER ...] [--names | --sample COUNT --seed SEED]

Every finding is printed as `file:line: rule: sentence`, and any finding ends with status 1. A comment
`# words: ok, because …` near the passage excuses it. `--names` checks the names of functions and classes of the
package instead: functions are not participles, and no two classes share a name. `--sample` prints random sentences,
stratified by folder.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import io
import random
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Tutorials, README and the landing page have readers of another kind, and are checked by their own tests.
CHECKED = (
    "mechdesign", "benchmarks", "docs/theory", "docs/howto", "docs/gallery",
    "docs/trust", "docs/glossary.md",
)  # fmt: skip
# The messages of the figures are claims and findings of the gallery.
MESSAGES_EXCLUDED = ("benchmarks/papers",)
MAX_WORDS = 25
# A string constant with fewer words is a name or a label.
MIN_WORDS_OF_MESSAGE = 4

RULES = {
    "is no → is not a": r"(?<!\bthere )\b(is|are|was|were) no\b(?! longer| more than| less than| fewer than)",
    "so many → the number": r"\bso (many|few|often)\b",
    "beside → next to, in addition to": r"\bbesides?\b",
    "of which, of what → whose, or two sentences": r"\bof (which|what|whom)\b",
    "whoever → anyone who": r"\b(whoever|whomever|whosesoever|nobody's)\b",
    "what … → the noun": r"\bwhat\b(?![^.]*\?)",
    "Where … (condition) → If …": r"^Where\b",
    "tell whether → return whether": r"^Tells? whether\b",
    "archaic → plain word": r"\b(likewise|thereof|thereby|therein|whereof|wherein|whence|hence|herein|lest|upon|errs?|"
    r"as against|of its own|of their own|in the open|taken at|at once with|for all that|in their place|in its place)\b",
    "as a part of → as a share of": r"\b(as a|this|that|by what) part of (?!the (file|bundle|page|program))",
    "as many as there are → all": r"\bas (many|few|much) as (there|can|may)\b",
}
PATTERNS = {
    rule: re.compile(pattern, 0 if pattern.startswith("^") else re.IGNORECASE) for rule, pattern in RULES.items()
}
EXCUSE = "words: ok, because"
# Headings of Google's convention, and lines that hold a definition each.
SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Yields|Examples?|Note|Warns|References?):$")
ENTRY = re.compile(r"^\*{0,2}[A-Za-z_][\w.`*, ]*(?: \([^)]*\))?: (?=\S)")
ITEM = re.compile(r"^([-*|]|\d+\.) ")
PRAGMA = re.compile(r"#!|# (noqa|type:|fmt|pragma|ruff|mypy|words|%%)")
CODE_IN_STRING = re.compile(r"\[\[|\[domain|[{}<>;]|\\|==|--\w|::")
CODE = re.compile(r"``[^`]*``|`[^`]*`(?:_)?|\$[^$]*\$|https?://\S+")
WORD = re.compile(r"(?:[^\W\d_]{2,}|[aAI])(?:[-'’/][^\W\d_]+)*")
ABBREVIATION = re.compile(
    r"\b(e\.g|i\.e|cf|eq|eqs|Eq|vs|etc|resp|Sect|sect|Fig|al|No|Alg|Thm|Th|Prop|Lemma|p|pp)\.(?=\s)"
)


@dataclass(frozen=True)
class Sentence:
    """One sentence with its place and kind: docstring, comment, message or theory."""

    path: Path
    line: int
    kind: str
    text: str


def split(text: str) -> list[str]:
    """Split a paragraph into sentences; code and formulas count as one word each."""
    text = " ".join(text.split())
    text = ABBREVIATION.sub(lambda found: found.group(1).replace(".", "․") + "․", text)
    parts = re.split(r"(?<=[.!?])[\"')\]]?\s+(?=[\"'(\[]?[A-Z0-9`*$_λεπσμρΣ∞ΛΞθ{<])", text)
    return [part.replace("․", ".") for part in parts if re.search(r"[A-Za-z]{2}", part)]


def count_words(sentence: str) -> int:
    """Count words; a piece of code, and a run of formula tokens such as `x = f(y) + 1`, are one word each."""
    tokens = [token.strip("(),.;:!?[]\"'*") for token in CODE.sub(" 1 ", sentence).split()]
    are_words = [bool(WORD.fullmatch(token)) for token in tokens]
    runs = sum(not word and before for word, before in zip(are_words, [True, *are_words[:-1]], strict=True))
    return sum(are_words) + runs


def paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Yield the paragraphs of a docstring with their first line, without examples and indented formulas."""
    held: list[str] = []
    start, in_example, in_section = 0, False, False
    for number, line in enumerate([*inspect.cleandoc(text).splitlines(), ""]):
        stripped, indent = line.strip(), len(line) - len(line.lstrip())
        in_example = bool(stripped) and (in_example or stripped.startswith((">>>", "\b")))
        is_heading = bool(SECTION.match(stripped))
        entry = ENTRY.match(stripped) if in_section and indent == 4 else ITEM.match(stripped)
        if held and (not stripped or in_example or is_heading or entry):
            yield start, " ".join(held)
            held = []
        if stripped and indent == 0:
            in_section = is_heading
        is_formula = indent >= 4 and not in_section and not held
        if not stripped or in_example or is_heading or is_formula:
            continue
        start = start if held else number
        held.append(stripped[entry.end() :] if entry else stripped)


def _text_of(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(value.value if isinstance(value, ast.Constant) else "`X`" for value in node.values)
    return None


def _docstring_sentences(path: Path, tree: ast.Module, seen: set[int]) -> Iterator[Sentence]:
    """Yield the sentences of docstrings, also those below attributes, and note the constants that hold them."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for item in node.body:
            if (
                isinstance(item, ast.Expr)
                and isinstance(item.value, ast.Constant)
                and isinstance(item.value.value, str)
            ):
                seen.add(id(item.value))
                for offset, text in paragraphs(item.value.value):
                    yield from (Sentence(path, item.lineno + offset, "docstring", part) for part in split(text))


def _message_sentences(path: Path, tree: ast.Module, seen: set[int]) -> Iterator[Sentence]:
    """Yield the sentences of strings of at least four words: templates, styles and formats of code have none."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            seen.update(id(value) for value in node.values)
    for node in ast.walk(tree):
        text = _text_of(node) if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in seen else None
        if text is None or CODE_IN_STRING.search(text):
            continue
        for paragraph in text.split("\n\n"):
            for part in split(paragraph):
                if count_words(part) >= MIN_WORDS_OF_MESSAGE:
                    yield Sentence(path, node.lineno, "message", part)


def _comment_sentences(path: Path, source: str) -> Iterator[Sentence]:
    """Yield the sentences of comments; consecutive lines are one comment."""
    lines, held, start, previous = source.splitlines(), "", 0, -2
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or PRAGMA.match(token.string):
            continue
        number, is_alone = token.start[0], lines[token.start[0] - 1].lstrip().startswith("#")
        text = token.string.lstrip("#: ").split("  # noqa")[0]
        if is_alone and number == previous + 1:
            held = f"{held} {text}"
        else:
            yield from (Sentence(path, start, "comment", part) for part in split(held))
            held, start = text, number
        previous = number if is_alone else -2
    yield from (Sentence(path, start, "comment", part) for part in split(held))


def python_sentences(path: Path) -> Iterator[Sentence]:
    """Yield the sentences of a Python file: docstrings, messages and comments."""
    source = path.read_text(encoding="utf-8")
    tree, seen = ast.parse(source), set[int]()
    yield from _docstring_sentences(path, tree, seen)
    yield from _message_sentences(path, tree, seen)
    yield from _comment_sentences(path, source)


def page_sentences(path: Path) -> Iterator[Sentence]:
    """Yield the sentences of a Markdown page, without code, formulas, tables and headings."""
    held: list[str] = []
    start, fence = 0, None
    for number, line in enumerate([*path.read_text(encoding="utf-8").splitlines(), ""], 1):
        stripped = line.strip()
        mark = re.match(r"(`{3,}|:{3,}|\$\$)", stripped)
        if fence is None and mark:
            fence = None if stripped.count("$$") == 2 else mark.group(1)
        elif fence is not None:
            if stripped.startswith(fence) or stripped.endswith("$$"):
                fence = None
            continue
        new_item = re.match(r"^([-*]|\d+\.) ", stripped)
        if not stripped or mark or new_item or re.match(r"^(#|\||\(|:\w+:|<)", stripped):
            for sentence in split(" ".join(held)):
                yield Sentence(path, start, "theory", sentence)
            held = []
        if new_item:
            held, start = [stripped[new_item.end() :]], number
        elif stripped and not mark and not re.match(r"^(#|\||:\w+:|<)|^\(\S+\)=", stripped):
            start = start if held else number
            held.append(stripped)


def sentences(paths: list[Path]) -> Iterator[Sentence]:
    """Yield the sentences of files and folders."""
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.suffix in (".py", ".pyi"):
                excluded = any(place in file.as_posix() for place in MESSAGES_EXCLUDED)
                yield from (each for each in python_sentences(file) if not excluded or each.kind != "message")
            elif file.suffix == ".md":
                yield from page_sentences(file)


def faults(sentence: Sentence) -> Iterator[str]:
    """Yield the rules that a sentence breaks."""
    plain = CODE.sub("X", sentence.text)
    yield from (rule for rule, pattern in PATTERNS.items() if pattern.search(plain))
    if (words := count_words(sentence.text)) > MAX_WORDS:
        yield f"{words} words → at most {MAX_WORDS}"


NOT_PARTICIPLES = {"expected", "need", "speed", "seed", "feed", "embed", "exceed", "proceed"}
IRREGULAR = {
    "bought", "brought", "built", "chosen", "done", "drawn", "driven", "found", "given", "grown",
    "held", "hidden", "kept", "known", "left", "lost", "made", "met", "said", "seen",
    "sent", "shown", "spent", "spoken", "stood", "taken", "told", "thrown", "written",
}  # fmt: skip


def is_participle(name: str) -> bool:
    """Return whether the first word of a function's name is a participle."""
    word = name.strip("_").split("_")[0]
    return word in IRREGULAR or (word.endswith("ed") and word not in NOT_PARTICIPLES)


def public_names(package: Path) -> dict[str, set[str]]:
    """Return the names in the stubs and in the public modules of a package, by room: users rely on them."""
    names: dict[str, set[str]] = {}
    for module in package.glob("*/[a-z]*.py"):
        for node in ast.parse(module.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                names.setdefault(module.parent.name, set()).update(ast.literal_eval(node.value))
    for stub in package.rglob("*.pyi"):
        text = stub.read_text(encoding="utf-8")
        room = stub.parent.relative_to(package).parts[:1]
        names.setdefault(room[0] if room else "", set()).update(re.findall(r"import \w+ as (\w+)", text))
    return names


def public_methods(package: Path, public: set[str]) -> set[str]:
    """Return the names of the methods without an underscore of public classes; their overrides keep these names."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in package.rglob("*.py"))
    classes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    items = (item for node in classes if node.name in public for item in node.body)
    return {item.name for item in items if isinstance(item, ast.FunctionDef) and not item.name.startswith("_")}


def check_names(package: Path) -> Iterator[str]:
    """Yield the private functions named by participles, except properties, and the names that two classes share.

    Public functions, public methods of public classes, and classes that are public in every room keep their names.
    """
    public = public_names(package)
    kept = set[str]().union(*public.values())
    kept |= public_methods(package, kept)
    classes: dict[str, list[tuple[str, str]]] = {}
    for path in sorted(package.rglob("*.py")):
        place = path.relative_to(package.parent)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                classes.setdefault(node.name, []).append((place.parts[1], f"{place}:{node.lineno}"))
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                is_value = any("property" in ast.unparse(decorator) for decorator in node.decorator_list)
                if is_participle(node.name) and not is_value and node.name not in kept:
                    yield f"{place}:{node.lineno}: participle → verb: {node.name}"
    for name, places in classes.items():
        if len(places) > 1 and not all(name in public.get(room, ()) for room, _ in places):
            yield f"{', '.join(place for _, place in places)}: one name for several classes: {name}"


def sample(paths: list[Path], count: int, seed: str) -> list[Sentence]:
    """Return sentences at random, as many from each folder as it has a share of all sentences."""
    groups: dict[Path, list[Sentence]] = {}
    for sentence in sentences(paths):
        parts = sentence.path.resolve().relative_to(ROOT).parts
        groups.setdefault(Path(*parts[:2]), []).append(sentence)
    total, draw = sum(map(len, groups.values())), random.Random(seed)
    count = min(count, total)
    quotas = {group: count * len(found) / total for group, found in groups.items()}
    counts = {group: int(quota) for group, quota in quotas.items()}
    for group in sorted(quotas, key=lambda group: counts[group] - quotas[group])[: count - sum(counts.values())]:
        counts[group] += 1
    return [chosen for group in sorted(groups) for chosen in draw.sample(groups[group], counts[group])]


def is_excused(sentence: Sentence) -> bool:
    """Return whether a comment near the sentence excuses it."""
    lines = sentence.path.read_text(encoding="utf-8").splitlines()
    return any(EXCUSE in line for line in lines[max(sentence.line - 2, 0) : sentence.line + 3])


def main() -> int:
    """Print the findings, or a sample."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, default=[ROOT / name for name in CHECKED])
    parser.add_argument("--names", action="store_true", help="check names of functions and classes")
    parser.add_argument(
        "--sample", type=int, metavar="COUNT", help="print this number of random sentences (all, if there are fewer)"
    )
    parser.add_argument("--seed", default="0")
    arguments = parser.parse_args()
    if arguments.sample:
        for number, sentence in enumerate(sample(arguments.paths, arguments.sample, arguments.seed), 1):
            place = sentence.path.resolve().relative_to(ROOT)
            print(f"{number}. [{sentence.kind}, {place}:{sentence.line}] {sentence.text}")
        return 0
    if arguments.names:
        findings = list(check_names(ROOT / "mechdesign"))
    else:
        findings = [
            f"{sentence.path}:{sentence.line}: {fault}: {sentence.text}"
            for sentence in sentences(arguments.paths)
            for fault in faults(sentence)
            if not is_excused(sentence)
        ]
    print("\n".join([*findings, f"{len(findings)} findings"]))
    return int(bool(findings))


if __name__ == "__main__":
    sys.exit(main())
