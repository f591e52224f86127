"""The report of a sweep: cost against privacy, every row, and how it was made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from mechdesign.base._atomic import write_file
from mechdesign.base._errors import ReportError
from mechdesign.records.row import Row
from mechdesign.records.row import State
from mechdesign.records.environment import environment
from mechdesign.records.row import Value
from mechdesign.report._pages import document
from mechdesign.report._pages import figure
from mechdesign.report._pages import section
from mechdesign.report._pages import table
from mechdesign.report._pages import text
from mechdesign.model._words import relative
from mechdesign.model._words import short
from mechdesign.sweep.picture import hints
from mechdesign.sweep.picture import layout
from mechdesign.sweep.picture import sweep_picture
from mechdesign.sweep.plan import Sweep
from mechdesign.sweep.rows import cell

__all__ = ["html", "write_report"]

_FILE = "report.html"
_MOST_ROWS = 500
# The columns that readers want, with their heads.
_HEADS = {
    "status": "status", "cost": "cost", "lower_bound": "no less than", "relative_gap": "relative gap",
    "tight_epsilon": "tight ε", "distortion": "distortion", "solver": "solver", "solve_seconds": "seconds",
    "channel": "channel",
}  # fmt: skip


def write_report(directory: Path, sweep: Sweep, rows: Sequence[Row], columns: Sequence[str]) -> None:
    """Write ``report.html``; raise `ReportError` when that fails."""
    try:
        write_file(directory / _FILE, [html(sweep, rows, columns).encode()])
    except Exception as error:  # Whatever drawing raises, the rows are there.
        raise ReportError(f"the rows are in {directory}, and complete. Only {_FILE} is missing ({error})") from error


def html(sweep: Sweep, rows: Sequence[Row], columns: Sequence[str]) -> str:
    """Return the report as one page that asks nothing of the network."""
    title = f"{sweep.title or 'Privacy mechanisms'}: {len(sweep)} designs"
    return document(title, [_header(title, sweep, rows), *_sections(sweep, rows, columns)])


def _header(title: str, sweep: Sweep, rows: Sequence[Row]) -> str:
    done = sum(row.state is State.DONE for row in rows)
    others = [f"{count} {state}" for state in State if state is not State.DONE and (count := _count(rows, state))]
    missing = len(sweep) - len(rows)
    others += [f"{missing} not run yet"] if missing else []
    verdict = f"<strong>{done} of {len(sweep)} designs are done.</strong> " + (
        ", ".join(others) + "." if others else ""
    )
    swept = "; ".join(f"{key}: {len(each)} value{'s' * (len(each) > 1)}" for key, each in sweep.values.items())
    how = "each value with each" if sweep.mode == "product" else "values side by side"
    return "\n".join(
        [
            "<header>",
            f"<h1>{text(title)}</h1>",
            f'<p class="verdict {"fails" if others else "holds"}">{verdict}</p>',
            f"<p>{text(swept)} ({how}). Every channel was checked in exact arithmetic: it keeps its requirements, and "
            "no other one costs less than the lower bound.</p>",
            *([f"<p>{text(sweep.private)}.</p>"] if sweep.private else []),
            "</header>",
        ]
    )


def _sections(sweep: Sweep, rows: Sequence[Row], columns: Sequence[str]) -> Iterator[str]:
    if rows:
        yield section("Cost against privacy", _picture(sweep, rows))
        yield section("Designs", *_rows(sweep, rows, columns))
    messages = [
        (" ".join(_values(sweep, row)), text(str(row.state)), text(str(row.values.get("message", ""))))
        for row in rows
        if row.state is not State.DONE
    ]
    if messages:
        yield section("What did not end well", table((", ".join(map(text, sweep.values)), "status", "why"), messages))
    yield section("How it was made", *_made(rows))


def _picture(sweep: Sweep, rows: Sequence[Row]) -> str:
    units = {str(row.details.get("unit", "")) for row in rows if "unit" in row.details}
    chosen = layout({key: [cell(value) for value in values] for key, values in sweep.values.items()}, sweep.mode)
    unit = units.pop() if len(units) == 1 else ""
    caption = (
        "Each point is a design; let the pointer rest on it for its numbers. A bar reaches down to the proved lower "
        "bound, where the two can be told apart. Hollow points were stopped by a limit, and crosses have no channel."
    )
    return figure(
        lambda: sweep_picture(rows, chosen, unit),
        "costs",
        "Cost of each design",
        caption,
        hints(rows, list(sweep.values)),
    )


def _rows(sweep: Sweep, rows: Sequence[Row], columns: Sequence[str]) -> Iterator[str]:
    shown = [name for name in columns if name in _HEADS and any(row.values.get(name) is not None for row in rows)]
    heads = (*map(text, sweep.values), *(_HEADS[name] for name in shown))
    yield table(
        heads,
        [(*_values(sweep, row), *(_shown(row.values.get(name), name) for name in shown)) for row in rows[:_MOST_ROWS]],
        "numbers",
    )
    if len(rows) > _MOST_ROWS:
        yield f"<p>The first {_MOST_ROWS} rows. All of them, with more columns, are in results.csv.</p>"
    yield "<p>The same with all digits is in results.csv. Costs are rounded up, and lower bounds down.</p>"


def _made(rows: Sequence[Row]) -> Iterator[str]:
    known = environment()
    seconds = sum(float(row.values.get("solve_seconds") or 0.0) for row in rows)
    facts = [
        ("solver seconds, all rows together", short(seconds, 4)),
        ("versions", ", ".join(f"{name} {number}" for name, number in known["packages"].items())),
        ("this machine", f"{known['processor']}, {known['cores']} cores, Python {known['python']}"),
    ]
    yield table((), [(name, text(value)) for name, value in facts])
    found = next((row.values["channel"] for row in rows if row.values.get("channel")), None)
    if found is not None:
        command = f"# one design again, from its files alone\nmechdesign verify DIR/{found}"
        yield "<p>With DIR the folder that this report is in:</p>"
        yield f"<pre><code>{escape(command)}</code></pre>"


def _values(sweep: Sweep, row: Row) -> tuple[str, ...]:
    return tuple(_shown(row.values.get(key), key) for key in sweep.values)


def _shown(value: Value, name: str) -> str:
    if value is None:
        return ""
    if name == "status" and value != State.DONE:
        return f"<strong>{text(str(value))}</strong>"
    if isinstance(value, float):
        return relative(value) if name == "relative_gap" else short(value, 6)
    return text(str(value))


def _count(rows: Sequence[Row], state: State) -> int:
    return sum(row.state is state for row in rows)
