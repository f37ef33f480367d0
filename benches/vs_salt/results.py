"""Stores the results of measurements as JSON and writes the sections of docs/benchmarks.md."""

import json
import os

import doc
import sections_brine
import sections_curves
import sections_salt

DIRECTORY = "target/bench"
# The sections by name of the measurement, in the order of the document.
PARTS = {
    "masters": ("Master and minion", sections_salt.masters_part),
    "reactor": ("Reactor", sections_salt.reactor_part),
    "fleet": ("Fleets", sections_salt.fleet_part),
    "rotation": ("Rotation of keys", sections_brine.rotation_part),
    "states": ("States", sections_salt.states_part),
    "rulebook": ("Beside ansible-rulebook", sections_brine.rulebook_part),
    "soak": ("Over time", sections_brine.soak_part),
    "burst": ("A burst of slow reactions", sections_brine.burst_part),
    "hostile": ("Hostile peers and templates", sections_brine.hostile_part),
    "api": ("REST API", sections_salt.api_part),
    "cluster": ("Clusters", sections_brine.cluster_part),
    "python": ("Custom modules in Python", sections_salt.python_part),
    "ssh": ("salt-ssh", sections_salt.ssh_part),
    "cp": ("salt-cp", sections_brine.cp_part),
    "authoring": ("Tools for authors", sections_brine.authoring_part),
    "curves": ("Curves", sections_curves.curves_part),
    "in-process": ("In process", sections_brine.in_process_part),
}


def store(name, found, quick):
    """Stores the results of a measurement and rewrites its section. Quick runs have files of their own."""
    os.makedirs(DIRECTORY, exist_ok=True)
    with open(f"{DIRECTORY}/{name}{'-quick' if quick else ''}.json", "w") as out:
        json.dump(found, out, indent=2)
    heading, part = PARTS[name]
    path = f"{DIRECTORY}/benchmarks-quick.md" if quick else doc.PATH
    if name == "curves":
        sections_curves.draw(found, path)
    doc.write_section(heading, part(json.loads(json.dumps(found))), [heading for heading, _ in PARTS.values()], path)
    print(f"written to {os.path.relpath(path)}, section {heading}")
