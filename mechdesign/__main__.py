"""``python -m mechdesign``."""

from mechdesign.cli import main

main(prog_name="mechdesign")
