"""Writes names.tsv: names that two merged files used for different things, and names that get another home."""

from pathlib import Path

rows = []


def add(old, name, new, renamed):
    rows.append(f"mechdesign/{old}:{name}\tmechdesign/{new}:{renamed}")


for f, word in [
    ("blocks", "blocks"),
    ("checkins", "checkins"),
    ("distortion", "distortion"),
    ("grid", "grid"),
    ("joint", "joint"),
    ("roads", "roads"),
    ("row_pairs", "row_pairs"),
    ("worst_cost", "worst_cost"),
]:
    add(f"bench/families/{f}.py", "make", "runs/_families.py", f"make_{word}")
    add(f"bench/families/{f}.py", "FAMILY", "runs/_families.py", word.upper())
    add(f"bench/families/{f}.py", "EPSILON", "runs/_families.py", f"_{word.upper()}_EPSILON")
    add(f"bench/families/{f}.py", "_SHARE", "runs/_families.py", f"_{word.upper()}_SHARE")
add("bench/channels.py", "phases", "runs/_phases.py", "channel_phases")
add("bench/fractions.py", "phases", "runs/_phases.py", "fraction_phases")
add("blowfish/scaling.py", "_LARGEST", "tables/_budget.py", "_LARGEST_FACTOR")
add("cli/table_release.py", "_facts", "cli/inspect.py", "_release_facts")
add("cli/schedule.py", "_show", "cli/design.py", "_show_schedule")
add("data/budgets.py", "_suits", "data/_budgets.py", "_is_budget_header")
add("data/costs.py", "_suits", "data/_budgets.py", "_is_cost_header")
add("data/chain_counts.py", "_REMEDY", "data/_matrices.py", "_COUNTS_REMEDY")
add("export/schedule.py", "_is_ours", "synthesis/_folders.py", "_is_of_schedule")
for f in ("csv", "json", "mps", "npz", "parquet"):
    add(f"formats/{f}.py", "_contents", "synthesis/formats/_plain.py", f"_{f}_contents")
add("leakage/hull.py", "_MANY", "leakage/_support.py", "_MANY_LINES")
add("mechanisms/enclosures.py", "_GUARD", "mechanisms/_sampling.py", "_GUARD_DIGITS")
add("report/dots.py", "_WIDTH", "report/_channel_figures.py", "_DOTS_WIDTH")
add("report/adversaries.py", "_number", "report/_design_tables.py", "_number_with_unit")
add("report/side_by_side.py", "_number", "report/_design_tables.py", "_finite_number")
add("report/explorer.py", "_numbers", "report/_explorer.py", "_rounded_numbers")
add("report/proved.py", "bounded", "report/_design_page.py", "bounded_pairs")
add("sweep/report.py", "_shown", "runs/_sweep_page.py", "_shown_cell")
add("synthesis/speed.py", "_ROWS", "synthesis/_sizes.py", "_TRIAL_ROWS")
add("data/trajectories.py", "Trace", "data/_trajectories.py", "Trajectory")
add("report/figures.py", "policy", "report/_design_figures.py", "graph")
Path(__file__).with_name("names.tsv").write_text("\n".join(rows) + "\n")
