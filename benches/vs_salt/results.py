"""What the reactor measures found, kept as JSON, and the sections of docs/benchmarks.md that are made from it."""

import json
import os

import doc

FOLDER = "target/bench"
MB = 1024  # of the KiB in which memory is measured
# What the masters and minions are asked: name, words, form, whether more is better, how many times better or how much.
MASTERS = [
    ("bus", "events/s, one firing and one following process, 100 bytes", "{:,.0f}", True, "200 times"),
    ("reactions", "reactions/s, a rendered SLS with a runner call each", "{:,.0f}", True, "100 times"),
    ("ping", "`salt '*' test.ping`, one minion, s", "{:.3f}", False, "20 times"),
    ("call", "`salt-call --local test.ping`, s", "{:.3f}", False, "20 times"),
    ("key", "`salt-key -L`, s", "{:.3f}", False, "20 times"),
    ("join", "new minion to its reactor-driven highstate returned, s", "{:.2f}", False, "5 times"),
    ("ready", "master's ports open after start, s", "{:.3f}", False, "0.2 s"),
    ("master", "master idle, MB PSS", "{:.1f}", False, "30 MB"),
    ("minion", "minion idle, MB PSS", "{:.1f}", False, "12 MB"),
]


def keep(name, found, quick):
    """Keeps what one measure found, and writes its section anew. Quick runs have files of their own."""
    os.makedirs(FOLDER, exist_ok=True)
    with open(f"{FOLDER}/{name}{'-quick' if quick else ''}.json", "w") as out:
        json.dump(found, out, indent=2)
    heading, part = PARTS[name]
    path = f"{FOLDER}/benchmarks-quick.md" if quick else doc.PATH
    doc.write_section(heading, part(json.loads(json.dumps(found))), [heading for heading, _ in PARTS.values()], path)
    print(f"written to {os.path.relpath(path)}, section {heading}")


def number(value):
    """Three digits that count, or whole."""
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"


def missing(runs):
    """How many reactions did not come, and how many came once more, in words."""
    lost = sum(run["expected"] - run["seen"] for run in runs)
    again = sum(run["again"] for run in runs)
    return f"{lost or 'no'} reactions missing, {again or 'none'} seen once more"


def masters_part(found):
    rows = []
    for name, what, form, more_is_better, asked in MASTERS:
        salt, ours = found["salt"][name], found["brine"][name]
        ratio = ours / salt if more_is_better else salt / ours
        rows.append([what, form.format(salt), form.format(ours), f"{ratio:,.0f}", asked])
    return f"""\
By `benches/vs_salt/run masters`: the same configuration, 3 workers, journal on. Times of commands are medians of ten \
runs after a warm-up.

{doc.table(["what", "Salt 3008.3", "Brine", "ratio", "asked"], rows)}

The bus is measured through its sockets, Salt's by its own library, Brine's by pyzmq; reactions are counted by the \
`salt/run/*/ret` events that a follower sees. Both acceptance_wait_time are 1 s; a Brine minion looks for the first \
time after 0.1 s."""


def reactor_part(found):
    salt, brine = found["salt"], found["brine"]
    rows = []

    def row(what, entries, theirs, ours, ratio):
        rows.append([what, f"{int(entries):,}", number(theirs), number(ours), number(ratio)])

    for entries in salt:
        theirs, ours = salt[entries]["rate"], brine[entries]["rate"]
        row("reactions/s", entries, theirs, ours, ours / theirs)
    for load, name in ("half", "half of the full load"), ("whole", "full load"):
        for key, which in ("median", "median"), ("p99", "99th percentile"):
            for entries in salt:
                theirs, ours = salt[entries][load][key], brine[entries][load][key]
                row(f"event to reaction, {name}, {which}, ms", entries, theirs, ours, theirs / ours)
    steady = [one[load] for kind in (salt, brine) for one in kind.values() for load in ("half", "whole")]
    kept = min(run["kept"] / run["asked"] for run in steady)
    return f"""\
By `benches/vs_salt/run reactor`, Salt 3008.3 and Brine in one run. All reactor entries but one do not match \
(`bench/no/<n>/*`); that one's SLS file calls `runner.test.arg` with the event's number, by which the reaction's \
`salt/run/<jid>/ret` is told. Events of 100 bytes on 16 tags.

{doc.table(["what", "entries", "Salt 3008.3", "Brine", "ratio"], rows)}

Reactions/s: events fired as fast as the bus takes them, from the first event to the last reaction; median of three \
runs of about ten seconds. Times: 30 seconds of events fired steadily, at half of those reactions/s and at all of \
them, each event counted from when it was due (at full load that is mostly its waiting behind others, and the full load is each side's own: Brine's is about 400 \
times Salt's, so those rows compare no equal loads); at least \
{kept:.0%} of the events asked for were fired in time; {missing(steady)}. The clients (`load.py` with Salt's own \
library, `load.rs` on ZeroMQ) and the bus do {number(found["alone"]["salt"])} and {number(found["alone"]["brine"])} a \
second when the client itself fires what a reaction fires: that is the ceiling of what is measured here. Client and \
master share the {os.cpu_count()} processors."""


def fleet_part(found):
    salt, brine = found["salt"], found["brine"]
    rows = []
    for key, what in [
        ("join", "all let in from cold, s"),
        ("master_processor", "... processor time of the master, s"),
        ("swarm_processor", "... processor time of the swarm, s"),
        ("ping", "`salt '*' test.ping`, s"),
        ("memory", "master just after the pings, MB PSS"),
        ("settled", "master 15 s later, MB PSS"),
    ]:
        for minions, ours in brine.items():
            theirs = salt.get(minions)
            pair = [number(theirs[key]), number(ours[key]), number(theirs[key] / ours[key])] if theirs else ["", number(ours[key]), ""]
            rows.append([what, f"{int(minions):,}", *pair])
    return f"""\
By `benches/vs_salt/run fleet`, Salt 3008.3 and Brine in one run: fleets of `brine swarm`, which speaks to each master as \
the master can (Salt's cipher, or AES-256-GCM). From cold: keys that the master has not seen, accepted by \
`auto_accept`, a session and a start event each, with the master's key not known to the minion. The ping is the median of several, in which all answered. Swarm and \
master share the {os.cpu_count()} processors.

{doc.table(["what", "minions", "Salt 3008.3", "Brine", "ratio"], rows)}

Letting minions in is held back by RSA: one private operation in the master and two in each minion, done by AWS-LC (\
ARCHITECTURE.md, Sessions)."""


def states_part(found):
    salt, brine = found["salt"], found["brine"]
    rows = []
    for key, what, asked in [
        ("again", f"`state.apply` of {found['files']} `file.managed` that change nothing", "30 times"),
        ("first", "the same for the first time", "10 times"),
        ("low", f"`state.show_lowstate` of {found['tree']} SLS files", "50 times"),
    ]:
        theirs, ours = salt[key], brine[key]
        rows.append([f"{what}, s", number(theirs["seconds"]), number(ours["seconds"])])
        rows[-1] += [number(theirs["seconds"] / ours["seconds"]), asked]
        rows.append(["... most memory, MB", *(f"{one['memory'] / MB:.1f}" for one in (theirs, ours))])
        rows[-1] += [number(theirs["memory"] / ours["memory"]), "60 MB"]
    return f"""\
By `benches/vs_salt/run states`, Salt 3008.3 and Brine in one run: whole runs of `salt-call --local`, medians of five after \
a warm-up, with the results checked. The files come from `salt://`; for the first time means that neither they nor the \
minion's cache are there. Each SLS of the tree includes the one before, imports a map, and has four states with requisites.

{doc.table(["what", "Salt 3008.3", "Brine", "ratio", "asked"], rows)}"""


def rulebook_part(found):
    rows = [
        ["ansible-rulebook 1.3.2", f"{found['events']:,}", number(found["rulebook"]), ""],
        ["Brine", f"{found['events']:,}", number(found["brine"]), number(found["brine"] / found["rulebook"])],
        ["Brine", f"{found['long']:,}", number(found["brine_long"]), number(found["brine_long"] / found["rulebook"])],
    ]
    return f"""\
By `benches/vs_salt/run rulebook`: events that match one rule, or one reactor entry, and lead to nothing.

{doc.table(["what", "events", "events/s", "ratio"], rows)}

ansible-rulebook ({found["java"]}) makes the events itself; the time of a run with one event is taken off. Brine gets \
them through its bus; the entry's SLS file is rendered for each and says nothing, but for the last event of each tag, \
whose reaction ends the time.

    apt-get install -y openjdk-17-jre-headless
    python3 -m venv target/rulebook-venv
    target/rulebook-venv/bin/pip install ansible-rulebook==1.3.2 ansible-runner ansible-core
    {found["command"]}

```yaml
{found["source"].strip()}
```"""


def soak_part(found):
    rows = [["before", f"{found['before'] / MB:.1f}"]]
    rows += [[minute, f"{size / MB:.1f}"] for minute, size in found["by_minute"].items()]
    return f"""\
By `benches/vs_salt/run soak`: {found["minutes"]:g} minutes of events fired steadily at {number(found["rate"])} a \
second, half of the full load, {found["entries"]} reactor entries. {missing([found]).capitalize()}; the time from \
event to reaction was {number(found["median"])} ms (median) and {number(found["p99"])} ms (99th percentile).

{doc.table(["minute", "master, MB PSS"], rows)}

Each minute's median. In the second half memory changes by {found["late"]:+.2f} bytes a reaction, give or take \
{found["error"]:.2f}: {found["verdict"]}. At the end the store with the journal takes \
{found["disk"] / 2**20:,.0f} MiB on disk (`event_journal_size` is 1,024)."""


def burst_part(found):
    small, large = found["small"], found["large"]
    rows = []
    for one in small, large:
        sizes = (one["sizes"][0], one["early"], max(one["sizes"]), one["sizes"][-1])
        rows.append([f"{one['expected']:,}", f"{one['firing']:.1f}", f"{one['seconds']:.0f}"])
        rows[-1] += [f"{size / MB:.1f}" for size in sizes]
    early = f"highest in the first {len(small['sizes'])} s"
    head = ["events", "fired within, s", "all handled after, s", "MB PSS before", early, "highest at all", "at the end"]
    return f"""\
By `benches/vs_salt/run burst`: events fired as fast as the bus takes them. The reactions of all of them take 100 ms \
each (`runner.test.sleep`, then `runner.test.arg` with the event's number), {found["threads"]} at the same time \
(`reactor_worker_threads: {found["threads"]}`). Each burst has a fresh master.

{doc.table(head, rows)}

{missing([small, large]).capitalize()}. While {found["waiting"]:,} more are waiting, the master takes \
{found["more"]:,.0f} bytes more for each of them: {found["verdict"]}."""


def in_process_part(found):
    matching = [[what, f"{time * 1e9:,.0f}", f"{rate:,.0f}"] for what, time, rate in found["entries"]]
    bus = [[what, f"{rate:,.0f}"] for what, _, rate in found["bus"]]
    return f"""\
By `benches/vs_salt/run in-process`, which runs the two commands below; {os.cpu_count()} processors.

`cargo bench -p brine-reactor --bench entries`: finding an event's reactor entries.

{doc.table(["what", "ns", "events/s"], matching)}

`cargo bench -p brine-bus --bench bus`: one task fires 200,000 events of 100 bytes, another follows them.

{doc.table(["what", "events/s"], bus)}"""


# By name of the measure, in the order of the document.
PARTS = {
    "masters": ("Master and minion", masters_part),
    "reactor": ("Reactor", reactor_part),
    "fleet": ("Fleets", fleet_part),
    "states": ("States", states_part),
    "rulebook": ("Beside ansible-rulebook", rulebook_part),
    "soak": ("Over time", soak_part),
    "burst": ("A burst of slow reactions", burst_part),
    "in-process": ("In process", in_process_part),
}
