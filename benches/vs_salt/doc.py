"""Rewrites sections of docs/benchmarks.md, and formats what they contain."""

import os
import re

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/benchmarks.md")
MB = 1024  # in KiB, the unit of the measured memory


def _parts(path):
    """Splits a document into its introduction and its sections by heading, in order."""
    text = ""
    if os.path.exists(path):
        with open(path) as file:
            text = file.read()
    introduction, *rest = re.split(r"^## (.*)\n", text, flags=re.MULTILINE)
    return introduction.strip(), dict(zip(rest[::2], (body.strip() for body in rest[1::2])))


def write_section(heading, text, order, path=PATH):
    """Replaces a section. A new one is inserted at its place in the order; sections that are not in it stay in front."""
    introduction, sections = _parts(path)
    sections[heading] = text.strip()
    others = [name for name in sections if name not in order]
    parts = [f"## {name}\n\n{sections[name]}" for name in [*others, *order] if name in sections]
    with open(path, "w") as out:
        out.write("\n\n".join([*filter(None, [introduction]), *parts]) + "\n")


def table(head, rows, limits=()):
    """Formats a Markdown table. `limits` has a cell for each row, for a column beside Brine's; if all of them are empty,
    there is no such column."""
    if any(limits):
        at = head.index("Brine") + 1
        cells = zip([head, *rows], ["limit", *limits], strict=True)
        head, *rows = ([*row[:at], cell, *row[at:]] for row, cell in cells)
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in [head, ["---"] * len(head), *rows])


def number(value):
    """Formats a number with three significant digits, or as an integer."""
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"


def missing(runs):
    """Describes the number of missing and duplicated reactions."""
    lost = sum(run["expected"] - run["seen"] for run in runs)
    again = sum(run["again"] for run in runs)
    return f"{lost or 'no'} reactions missing, {again or 'none'} duplicated"
