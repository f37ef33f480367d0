"""What the reactor measures found, kept as JSON, and the section of docs/benchmarks.md that is made from it."""

import json
import os

import doc

PATH = "target/bench/reactor.json"


def keep(name, found):
    """Keeps what one measure found, and writes the section anew from all that is there."""
    everything = {}
    if os.path.exists(PATH):
        with open(PATH) as kept:
            everything = json.load(kept)
    everything[name] = found
    os.makedirs(os.path.dirname(PATH), exist_ok=True)
    with open(PATH, "w") as out:
        json.dump(everything, out, indent=2)
    parts = [part(everything[name]) for name, part in PARTS.items() if name in everything]
    doc.write_section("Reactor", "\n\n".join(parts), before="In process")


def number(value):
    """Three digits that count, or whole."""
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"


def reactor_part(found):
    salt, brine = found["salt"], found["brine"]
    rows = []
    for what, name, ratio in (
        ("reactions/s", "full", lambda s, b: b / s),
        ("event to reaction, median, ms", "median", lambda s, b: s / b),
        ("event to reaction, 99th percentile, ms", "p99", lambda s, b: s / b),
    ):
        for entries in (key for key in salt if key != "ceiling"):
            ours, theirs = brine[entries][name], salt[entries][name]
            rows.append([what, f"{int(entries):,}", number(theirs), number(ours), f"{ratio(theirs, ours):,.0f}"])
    lost = sum(one["fired"] - one["seen"] for kind in found.values() for key, one in kind.items() if key != "ceiling")
    return f"""\
By `benches/vs_salt/run reactor`. All reactor entries but one do not match (`bench/no/<n>/*`); that one's SLS file \
calls `runner.test.arg` with the event's number, by which the reaction's `salt/run/<jid>/ret` is told. Events of 100 \
bytes on 16 tags.

{doc.table(["what", "entries", "Salt 3008.3", "Brine", "ratio"], rows)}

Reactions/s: events fired as fast as the bus takes them, from the first event to the last reaction; median of three \
runs of about ten seconds. Times: 30 seconds at half of that, fired steadily, each event counted from when it was \
due; {lost or "no"} reactions were missing. The clients (`load.py` with Salt's own library, `load.rs` on ZeroMQ) and \
the bus do {number(salt["ceiling"])} and {number(brine["ceiling"])} a second when the client itself fires what a \
reaction fires: that is the ceiling of what is measured here. Client and master share the {os.cpu_count()} processors."""


def rulebook_part(found):
    rows = [
        ["ansible-rulebook 1.3.2", number(found["rulebook"]), ""],
        ["Brine", number(found["brine"]), f"{found['brine'] / found['rulebook']:,.0f}"],
        [
            f"Brine, {found['events'] * 50:,} events",
            number(found["brine_long"]),
            f"{found['brine_long'] / found['rulebook']:,.0f}",
        ],
    ]
    return f"""\
Beside ansible-rulebook, by `benches/vs_salt/run rulebook`: {found["events"]:,} events that match one rule, or one \
entry, and lead to nothing.

{doc.table(["what", "events/s", "ratio"], rows)}

ansible-rulebook (Java 17) makes the events itself; the time of a run with one event is taken off. \
Brine gets them through its bus; the entry's SLS file renders to nothing but for the last event of each tag.

    apt-get install -y openjdk-17-jre-headless
    python3 -m venv target/rulebook-venv
    target/rulebook-venv/bin/pip install ansible-rulebook==1.3.2 ansible-runner ansible-core
    {found["command"]}

```yaml
{found["source"].strip()}
```"""


def soak_part(found):
    verdict = "it grows" if found["grows"] else "it does not grow"
    return f"""\
Over time, by `benches/vs_salt/soak`: {found["minutes"]:g} minutes at {number(found["rate"])} reactions/s, half of \
the full load, {found["entries"]} entries; {found["seen"]:,} of {found["expected"]:,} reactions seen. Memory (PSS) of \
the master: median {found["first"] / 1024:.1f} MB in the first minute, {found["last"] / 1024:.1f} MB in the last; \
{found["slope"]:+,.1f} KiB a minute over all, {found["late"]:+,.1f} in the second half: {verdict}."""


PARTS = {"reactor": reactor_part, "rulebook": rulebook_part, "soak": soak_part}
