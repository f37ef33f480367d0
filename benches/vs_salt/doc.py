"""Writing docs/benchmarks.md: an introduction and sections, each replaced as a whole."""

import os
import re

PATH = os.path.join(os.path.dirname(__file__), "../../docs/benchmarks.md")


def _parts():
    """The introduction, and the sections in their order by heading."""
    text = open(PATH).read() if os.path.exists(PATH) else ""
    introduction, *rest = re.split(r"^## (.*)\n", text, flags=re.MULTILINE)
    return introduction.strip(), dict(zip(rest[::2], (body.strip() for body in rest[1::2])))


def _write(introduction, sections):
    parts = [introduction, *(f"## {heading}\n\n{body}" for heading, body in sections.items())]
    with open(PATH, "w") as out:
        out.write("\n\n".join(parts) + "\n")


def write_introduction(text):
    """Replaces what stands before the first section."""
    _write(text.strip(), _parts()[1])


def write_section(heading, text, before):
    """Replaces a section; a new one is put in front of the section `before`."""
    introduction, sections = _parts()
    if heading not in sections:
        names = list(sections)
        place = names.index(before) if before in names else len(names)
        names.insert(place, heading)
        sections = {name: sections.get(name, "") for name in names}
    sections[heading] = text.strip()
    _write(introduction, sections)


def table(head, rows):
    """A Markdown table."""
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in [head, ["---"] * len(head), *rows])
