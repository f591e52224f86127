"""Put small faults into the rooms on which privacy rests, one at a time, and count the faults that the tests notice.

    python benchmarks/attacks/mutation.py [--jobs 2] [--only certify] [--quick | --together] [--sample N] [-o FOLDER]

`ROOMS` names the files of a room and the folder of its tests: the trusted kernel, rounding, sensitivities, leakage,
sampling, graphs and composition. Each mutant (see `mutants.py`) lives in a fork of a process that has collected the
tests. The fast tests of the room that execute the changed line run until one fails, the quickest first; what they do
not notice is left to the room's slow tests, but not with --quick; with --together, both run at once. Mutants that pass
all tests are printed with the reason why they are harmless, from ``mutation_survivors.toml``. The exit code is 1 if
fewer mutants are noticed than `LEAST_SCORE` and `LEAST_EXPLAINED_SCORE` ask for, or if a survivor in the kernel or the
rounding is not explained. `--root` names another checkout, whose code is mutated and whose tests run. `--sample`
draws a number of mutants, from each file in proportion to its mutants.

Outcomes are appended to ``mutation.csv``, and a stopped run continues from there. If a file has changed, its mutants
are tried again. If the tests of a room have changed, unexplained survivors are tried again.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import functools
import gc
import hashlib
import importlib.machinery
import itertools
import os
import pickle
import random
import resource
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

# All slow imports are done once, but no module of the package is imported.
import coverage
import hypothesis
import mutants
import pytest
from mutants import Mutant

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import origin

HERE = Path(__file__).resolve().parent
# A second verifier of the results, which is not part of the kernel.
SECOND = "mechdesign/certify/second_verifier.py"
# The kernel uses these checks of arrays.
CHECKS = frozenset(
    (
        "read_only",
        "require",
        "as_nonnegative",
        "as_whole_numbers",
        "as_distribution",
        "require_below",
        "_frozen",
        "_unsign_zeros",
    )
)


@dataclass(frozen=True)
class Room:
    """Files that are mutated, as patterns, the tests that should notice it, and the functions, by default all."""

    files: tuple[str, ...]
    tests: tuple[str, ...]
    functions: frozenset[str] | None = None

    def paths(self, root: Path) -> list[str]:
        """Return the paths of the files below a folder."""
        found = sorted(path for pattern in self.files for path in root.glob(pattern))
        return [path for each in found if (path := str(each.relative_to(root))) != SECOND]


ROOMS = {
    "certify": Room(("mechdesign/certify/*.py",), ("tests/certify",)),
    "arrays": Room(("mechdesign/base/_arrays.py",), ("tests/certify",), CHECKS),
    "rounding": Room(("mechdesign/synthesis/_rounding.py",), ("tests/synthesis/test_rounding*.py",)),
    "sensitivity": Room(("mechdesign/tables/_sensitivity/*.py",), ("tests/tables",)),
    "leakage": Room(("mechdesign/leakage/*.py",), ("tests/leakage",)),
    "sampling": Room(("mechdesign/mechanisms/_discrete.py", "mechdesign/mechanisms/_knorm.py"), ("tests/mechanisms",)),
    "graphs": Room(("mechdesign/graphs/*.py",), ("tests/graphs",)),
    "composition": Room(("mechdesign/traces/_composition.py",), ("tests/traces",)),
}
# These tests run other processes, which do not contain the mutant.
ELSEWHERE = ("test_a_real_kill", "test_a_kill_at_every_step", "test_the_kernel_alone")
# Of all mutants, and of those in files whose survivors are all explained.
LEAST_SCORE, LEAST_EXPLAINED_SCORE = 0.75, 0.95
EXPLAINED = ("mechdesign/certify/", "mechdesign/base/_arrays.py", "mechdesign/synthesis/_rounding.py")
NOTICED, SLOW, SURVIVED = "noticed", "too slow", "survived"
# The fast tests do not notice it, and the slow ones have yet to run.
LEFT = "left"
FAST_TESTS, SLOW_TESTS = "not slow and not browser", "slow and not long and not browser"
ALL_TESTS = "not long and not browser"
MEMORY = 6 * 2**30
EXAMPLES = 40
SEED = 14

hypothesis.settings.register_profile(
    "mutation",
    deadline=None,
    derandomize=True,
    database=None,
    report_multiple_bugs=False,
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
)


Say = Callable[[Mutant, str], None]


@dataclass(frozen=True)
class Baseline:
    """The run of the tests without a fault: seconds of each test, and the tests that execute each line of each file."""

    seconds: dict[str, float]
    lines: dict[str, dict[int, list[str]]]

    def chosen(self, mutant: Mutant) -> list[str]:
        """Return the tests that can notice a mutant, the quickest first; for code run on import, all tests."""
        known = self.lines.get(mutant.file, {})
        first, last = mutant.lines
        found = {test for line in range(first, last + 1) for test in known.get(line, ()) if test}
        if not found or not mutant.inside:
            found = {test for tests in known.values() for test in tests if test}
        return sorted(found, key=lambda test: self.seconds.get(test, 0.0))


class Session:
    """A pytest plugin: run all tests without a fault, then those chosen for each mutant in a fork.

    The fork gives the functions of the mutant's module the code of the mutant, wherever they have been imported.
    """

    def __init__(self, root: Path, files: Sequence[str], todo: Sequence[Mutant], jobs: int, say: Say) -> None:
        self.root, self.files, self.todo, self.jobs, self.say = root, files, todo, jobs, say
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self.known: Baseline | None = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the duration of a phase to the seconds of its test."""
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests in place of pytest's own loop."""
        items = [item for item in session.items if not item.name.startswith(ELSEWHERE)]
        for item in items:
            few_examples(item)
        measured = coverage.Coverage(
            data_file=None, include=[str(self.root / f) for f in self.files], config_file=False
        )
        # For a file that no test executes, no test is collected, and all of its mutants survive.
        measured.set_option("run:disable_warnings", ["no-data-collected"])
        measured.start()
        for item, following in itertools.pairwise([*items, None]):
            measured.switch_context(item.nodeid)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        measured.stop()
        if self.failed:
            raise SystemExit(f"the tests fail without any fault: {', '.join(self.failed)}")
        data = measured.get_data()
        self.known = Baseline(self.seconds, {f: data.contexts_by_lineno(str(self.root / f)) for f in self.files})
        by_name = {item.nodeid: item for item in items}
        functions = functions_of({str(self.root / file) for file in self.files})

        def work(mutant: Mutant, chosen: Sequence[str]) -> int:
            exchange(functions[str(self.root / mutant.file)], module_of(mutant), mutants.compiled(self.root, mutant))
            for item, following in itertools.pairwise([*(by_name[name] for name in chosen), None]):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if session.testsfailed:
                    return 1
            return 0

        # Memory that the garbage collector does not touch stays shared between forks.
        gc.freeze()
        for mutant, what in outcomes(self.todo, self.known, self.jobs, work):
            self.say(mutant, what)
        return True


def few_examples(item: pytest.Item) -> None:
    """Let Hypothesis try few examples, which saves time for survivors; the score is then slightly too low."""
    test = getattr(item, "obj", None)
    test = getattr(test, "__func__", test)
    given = getattr(test, "_hypothesis_internal_use_settings", None)
    if given is not None:
        fewer = hypothesis.settings(given, max_examples=min(given.max_examples, EXAMPLES))
        test._hypothesis_internal_use_settings = fewer


def functions_of(paths: set[str]) -> dict[str, list[FunctionType]]:
    """Return all existing functions, by the file that defines them."""
    found: dict[str, list[FunctionType]] = {path: [] for path in paths}
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename in found:
            found[each.__code__.co_filename].append(each)
    return found


def exchange(functions: Sequence[FunctionType], name: str, module: CodeType) -> None:
    """Replace the code of functions and the values of constants by those of another version of their module."""
    codes: dict[tuple[str, int], CodeType] = {}
    waiting = [module]
    while waiting:
        for each in waiting.pop().co_consts:
            if isinstance(each, CodeType):
                codes[each.co_qualname, each.co_firstlineno] = each
                waiting.append(each)
    for function in functions:
        old = function.__code__
        function.__code__ = codes[old.co_qualname, old.co_firstlineno]
    before, after = vars(sys.modules[name]), {"__name__": name}
    exec(module, after)
    importers = [vars(each) for key, each in sys.modules.items() if key.startswith("mechdesign")]
    for key, value in after.items():
        # Classes are not compared. A new table of functions never compares equal, but is harmless.
        if not key.startswith("__") and not isinstance(value, type | FunctionType | ModuleType) and key in before:
            for importer in importers:
                if importer.get(key) is before[key] and importer is not before:
                    importer[key] = value
            before[key] = value


class Replaced(importlib.machinery.SourceFileLoader):
    """A finder and loader that gives one module the code of a mutant, for faults in code that an import executes."""

    def __init__(self, path: Path, name: str, code: CodeType) -> None:
        super().__init__(name, str(path))
        self.code = code

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> object:
        """Return the import specification of the mutant's module, and None for all other modules."""
        return importlib.machinery.ModuleSpec(name, self, origin=self.path) if name == self.name else None

    def get_code(self, _name: str) -> CodeType:
        """Return the mutant's code."""
        return self.code

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Skip tests of other processes."""
        items[:] = [item for item in items if not item.name.startswith(ELSEWHERE)]


def run_tests(names: Iterable[str], marks: str, plugin: object) -> int:
    options = ["-q", "-s", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    options += ["--hypothesis-profile=mutation", "-o", "tmp_path_retention_policy=none", "-n", "0"]
    return int(pytest.main([*options, "-m", marks, *names], plugins=[plugin]))


def in_session(root: Path, todo: Sequence[Mutant], tests: Sequence[str], marks: str, jobs: int, say: Say) -> Baseline:
    """Run a session in a fork, so that this process does not import any module of the package."""
    files = sorted({mutant.file for mutant in todo})
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result"
        child = os.fork()
        if not child:
            try:
                session = Session(root, files, todo, jobs, say)
                run_tests(tests, marks, session)
                if session.known is not None:
                    result.write_bytes(pickle.dumps(session.known))
            except BaseException as error:
                print(error, file=sys.stderr, flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        if not result.exists():
            raise SystemExit("the tests fail without any fault")
        known: Baseline = pickle.loads(result.read_bytes())
        return known


def module_of(mutant: Mutant) -> str:
    return mutant.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imported(root: Path, marks: str, mutant: Mutant, chosen: Sequence[str]) -> int:
    """Import a mutant in place of its module and run the files of the chosen tests."""
    plugin = Replaced(root / mutant.file, module_of(mutant), mutants.compiled(root, mutant))
    sys.meta_path.insert(0, plugin)
    return run_tests(["-x", *dict.fromkeys(test.partition("::")[0] for test in chosen)], marks, plugin)


def start(work: Callable[[Mutant, Sequence[str]], int], mutant: Mutant, chosen: Sequence[str]) -> int:
    """Start the tests of a mutant in a fork of this process, as a separate process group; return its number."""
    child = os.fork()
    if child:
        return child
    status = 1
    with contextlib.suppress(BaseException):
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
        status = work(mutant, chosen)
    os._exit(status)


def outcomes(
    todo: Sequence[Mutant], known: Baseline, jobs: int, work: Callable[[Mutant, Sequence[str]], int]
) -> Iterator[tuple[Mutant, str]]:
    """Yield each mutant with its outcome."""
    running: dict[int, tuple[Mutant, float]] = {}
    waiting = list(reversed(todo))
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant = waiting.pop()
            chosen = known.chosen(mutant)
            limit = 60 + 5 * sum(known.seconds.get(test, 0.0) for test in chosen)
            running[start(work, mutant, chosen)] = mutant, time.monotonic() + limit
        time.sleep(0.01)
        for child, (mutant, end) in list(running.items()):
            late = time.monotonic() > end
            if late:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child, signal.SIGKILL)
            ended, status = os.waitpid(child, 0 if late else os.WNOHANG)
            if ended:
                del running[child]
                what = SLOW if late else NOTICED if status else SURVIVED
                if what != NOTICED:
                    place = f"{mutant.file}:{mutant.lines[0]} {mutant.before} -> {mutant.after}"
                    print(f"{len(waiting)} left; {what}: {place}", file=sys.stderr, flush=True)
                yield mutant, what


def attempt(root: Path, todo: Sequence[Mutant], room: Room, marks: str, jobs: int, say: Say) -> None:
    """Print the outcomes of mutants of a room under its tests with these marks."""
    tests = [str(path.relative_to(root)) for pattern in room.tests for path in sorted(root.glob(pattern))]
    # Defaults of parameters and fields are stored in functions and classes, so only a new import changes them.
    outside = [mutant for mutant in todo if not mutant.inside and mutant.function]
    inside = [mutant for mutant in todo if mutant not in outside]
    known = in_session(root, inside or outside[:1], tests, marks, jobs, say)
    for mutant, what in outcomes(outside, known, jobs, functools.partial(imported, root, marks)):
        say(mutant, what)


class Record:
    """The table of outcomes, one row for each mutant, which grows while the tests run."""

    HEAD = ("file", "line", "function", "kind", "before", "after", "node", "change", "outcome", "code", "tests")

    def __init__(self, path: Path, root: Path) -> None:
        self.path = path
        self.harmless = explanations()
        self.code, self.tests = {}, {}
        for room in ROOMS.values():
            found = sorted(path for pattern in room.tests for path in root.glob(pattern))
            tests = digest(path for each in found for path in [each, *sorted(each.rglob("*.py"))])
            self.code |= {file: digest([root / file]) for file in room.paths(root)}
            self.tests |= dict.fromkeys(room.paths(root), tests)

    def add(self, mutant: Mutant, what: str) -> None:
        """Write one row."""
        self._write([(mutant, what)], "a")

    def known(self, mutants: Iterable[Mutant]) -> dict[Mutant, str]:
        """Return the valid outcomes of earlier rows."""
        if not self.path.exists():
            return {}
        with self.path.open(newline="", encoding="utf-8") as file:
            rows = {tuple(row[name] for name in self.HEAD[:8]): row for row in csv.DictReader(file)}
        found = {}
        for mutant in mutants:
            row = rows.get(tuple(str(cell) for cell in self._cells(mutant)))
            if row is None or row["code"] != self.code[mutant.file]:
                continue
            if (
                row["outcome"] in (NOTICED, SLOW)
                or row["tests"] == self.tests[mutant.file]
                or identity(mutant) in self.harmless
            ):
                found[mutant] = row["outcome"]
        return found

    def replace(self, found: Iterable[tuple[Mutant, str]]) -> None:
        """Replace the whole table by the given outcomes."""
        with self.path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerow(self.HEAD)
        self._write(found, "a")

    def _write(self, found: Iterable[tuple[Mutant, str]], mode: str) -> None:
        with self.path.open(mode, newline="", encoding="utf-8") as file:
            rows = csv.writer(file, lineterminator="\n")
            for mutant, what in found:
                rows.writerow((*self._cells(mutant), what, self.code[mutant.file], self.tests[mutant.file]))

    @staticmethod
    def _cells(m: Mutant) -> tuple[object, ...]:
        return m.file, m.lines[0], m.function, m.kind, m.before, m.after, m.node, m.change


def digest(paths: Iterable[Path]) -> str:
    """Return a short digest of the contents of files."""
    found = hashlib.sha256()
    for path in paths:
        if path.is_file():
            found.update(path.read_bytes())
    return found.hexdigest()[:12]


def sample(todo: dict[str, list[Mutant]], size: int) -> dict[str, list[Mutant]]:
    """Draw a number of mutants: from each file in proportion to its mutants, and at least one."""
    total = sum(map(len, todo.values()))
    drawn = {}
    for file, each in todo.items():
        count = min(len(each), max(1, round(size * len(each) / total)))
        # By this way of drawing, a larger sample contains all smaller samples.
        shuffled = random.Random(f"{SEED} {file}").sample(range(len(each)), len(each))
        drawn[file] = [each[place] for place in sorted(shuffled[:count])]
    return drawn


def identity(mutant: Mutant) -> tuple[str, str, str, str]:
    """Return the key under which the explanation of a mutant is stored."""
    return mutant.file, mutant.function, mutant.before, mutant.after


def explanations() -> dict[tuple[str, str, str, str], str]:
    """Return the reasons for harmless survivors, by file, function, and text before and after the change."""
    with (HERE / "mutation_survivors.toml").open("rb") as file:
        entries = tomllib.load(file)["survivor"]
    keys = ("file", "function", "before", "after")
    return {tuple(entry[key] for key in keys): entry["why"] for entry in entries}


def report(found: Sequence[tuple[Mutant, str]]) -> bool:
    """Print the score by file and the survivors; return whether enough are noticed and all others explained."""
    total, kept = (
        Counter(mutant.file for mutant, _ in found),
        Counter(m.file for m, what in found if what == SURVIVED),
    )
    print(f"{'file':40} mutants  noticed   score")
    for file, count in [("all", len(found)), *sorted(total.items())]:
        left = kept[file] if file in total else sum(kept.values())
        print(f"{file:40} {count:7} {count - left:8} {1 - left / count:7.1%}")
    reasons, bare = explanations(), 0
    for mutant in (mutant for mutant, what in found if what == SURVIVED):
        why = reasons.get(identity(mutant))
        bare += why is None and mutant.file.startswith(EXPLAINED)
        print(f"\n{mutant.file}:{mutant.lines[0]} in {mutant.function or 'the module'}, {mutant.kind}")
        print(f"    {mutant.before}  ->  {mutant.after}\n    {why or 'NOT EXPLAINED'}")
    score = 1 - sum(kept.values()) / len(found)
    explained = {what for what in total if what.startswith(EXPLAINED)}
    kernel = 1 - sum(kept[file] for file in explained) / max(1, sum(total[file] for file in explained))
    print(f"\n{score:.1%} of {len(found)} noticed, {kernel:.1%} in kernel and rounding; {bare} there are not explained")
    return score >= LEAST_SCORE and kernel >= LEAST_EXPLAINED_SCORE and not bare


def main() -> None:
    """Mutate, run, print, and keep ``mutation.csv``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="a part of the paths of the files to mutate")
    parser.add_argument("--quick", action="store_true", help="run only the fast tests")
    parser.add_argument("--together", action="store_true", help="run fast and slow tests at once: quicker for few")
    parser.add_argument("--sample", type=int, metavar="N", help="draw this number of mutants")
    parser.add_argument("--root", type=Path, default=HERE.parents[1])
    parser.add_argument("-o", "--output", type=Path, default=HERE.parent / "results")
    given = parser.parse_args()
    root = given.root.resolve()
    os.chdir(root)
    sys.path.insert(0, str(root))
    os.environ["PYTHONPATH"] = str(root)
    every = {file: mutants.mutants(root, file, room.functions) for room in ROOMS.values() for file in room.paths(root)}
    todo = {file: each for file, each in every.items() if each and given.only in file}
    possible = sum(map(len, todo.values()))
    if given.sample:
        todo = sample(todo, given.sample)
    chosen = list(itertools.chain(*todo.values()))
    given.output.mkdir(parents=True, exist_ok=True)
    record = Record(given.output / "mutation.csv", root)
    record.replace(record.known(itertools.chain(*every.values())).items())

    def say(mutant: Mutant, what: str) -> None:
        record.add(mutant, LEFT if what == SURVIVED else what)

    with tempfile.TemporaryDirectory() as folder:
        # A separate folder is needed, because other pytest runs would remove files in the usual folder.
        os.environ["PYTEST_DEBUG_TEMPROOT"] = folder
        for room in ROOMS.values():
            mine = list(itertools.chain(*(todo.get(file, ()) for file in room.paths(root))))
            known = record.known(mine)
            if new := [mutant for mutant in mine if mutant not in known]:
                attempt(root, new, room, ALL_TESTS if given.together else FAST_TESTS, given.jobs, say)
            known = record.known(mine)
            left = [m for m in mine if known[m] == LEFT and identity(m) not in record.harmless]
            if left and not given.quick and not given.together:
                attempt(root, left, room, SLOW_TESTS, given.jobs, record.add)
    known = record.known(chosen)
    found = [(mutant, SURVIVED if known[mutant] == LEFT else known[mutant]) for mutant in chosen]
    record.replace(record.known(itertools.chain(*every.values())).items())
    drawn = f"drawn from {possible} with seed {SEED}" if given.sample else "all that there are"
    print(f"{len(found)} mutants, {drawn}; {origin()}")
    if not report(found):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
