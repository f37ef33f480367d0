"""Stores the results of measurements as JSON and generates the sections of docs/benchmarks.md from them."""

import importlib.metadata
import json
import os

import doc

DIRECTORY = "target/bench"
try:
    # The Salt release in the Python environment of this script.
    RELEASE = importlib.metadata.version("salt")
except importlib.metadata.PackageNotFoundError:
    RELEASE = "(none)"
SALT = f"Salt {RELEASE}"
MB = 1024  # in KiB, the unit of the measured memory
# The measurements of masters and minions: name, description, format, whether more is better, and the target.
MASTERS = [
    ("bus", "events/s, one publishing and one subscribed process, 100 bytes", "{:,.0f}", True, "200 times"),
    ("reactions", "reactions/s, a rendered SLS with a runner call each", "{:,.0f}", True, "100 times"),
    ("ping", "`salt '*' test.ping`, one minion, s", "{:.3f}", False, "20 times"),
    ("call", "`salt-call --local test.ping`, s", "{:.3f}", False, "20 times"),
    ("key", "`salt-key -L`, s", "{:.3f}", False, "20 times"),
    ("join", "new minion until the return of its reactor-driven highstate, s", "{:.2f}", False, "5 times"),
    ("ready", "start until the master's ports are open, s", "{:.3f}", False, "0.2 s"),
    ("master", "master idle, MB PSS", "{:.1f}", False, "30 MB"),
    ("minion", "minion idle, MB PSS", "{:.1f}", False, "12 MB"),
]


def store(name, found, quick):
    """Stores the results of a measurement and rewrites its section. Quick runs have files of their own."""
    os.makedirs(DIRECTORY, exist_ok=True)
    with open(f"{DIRECTORY}/{name}{'-quick' if quick else ''}.json", "w") as out:
        json.dump(found, out, indent=2)
    heading, part = PARTS[name]
    path = f"{DIRECTORY}/benchmarks-quick.md" if quick else doc.PATH
    doc.write_section(heading, part(json.loads(json.dumps(found))), [heading for heading, _ in PARTS.values()], path)
    print(f"written to {os.path.relpath(path)}, section {heading}")


def number(value):
    """Formats a number with three significant digits, or as an integer."""
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"


def missing(runs):
    """Describes the number of missing and duplicated reactions."""
    lost = sum(run["expected"] - run["seen"] for run in runs)
    again = sum(run["again"] for run in runs)
    return f"{lost or 'no'} reactions missing, {again or 'none'} duplicated"


def masters_part(found):
    rows = []
    for name, what, form, more_is_better, asked in MASTERS:
        salt, ours = found["salt"][name], found["brine"][name]
        ratio = ours / salt if more_is_better else salt / ours
        rows.append([what, form.format(salt), form.format(ours), f"{ratio:,.0f}", asked])
    return f"""\
Measured by `benches/vs_salt/run masters`: the same configuration, 3 workers, with journal. Times of commands are \
medians of ten runs after a warm-up.

{doc.table(["measure", SALT, "Brine", "ratio", "target"], rows)}

The bus is measured through its sockets, Salt's with its own library, Brine's with pyzmq. Reactions are counted by \
the `salt/run/*/ret` events that a subscriber receives. `acceptance_wait_time` is 1 s on both; a Brine minion asks \
for the first time after 0.1 s."""


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
Measured by `benches/vs_salt/run reactor`, Salt {RELEASE} and Brine in one run. One reactor entry matches; its SLS \
file calls `runner.test.arg` with the event's number, which identifies the `salt/run/<jid>/ret` of the reaction. \
Events of 100 bytes on 16 tags.

{doc.table(["measure", "entries", SALT, "Brine", "ratio"], rows)}

Reactions/s: events published as fast as the bus accepts them, from the first event to the last reaction; median \
of three runs of about ten seconds. Latencies: 30 seconds of events at a constant rate, half of these reactions/s \
and all of them, each from the time when the event was due. The full load is each side's own, about 400 times \
higher for Brine, and its latency is mostly waiting: these rows do not compare equal loads. At least {kept:.0%} of \
the events were published in time; {missing(steady)}. The clients (`load.py` with Salt's own library, `load.rs` on \
ZeroMQ) and the bus do {number(found["alone"]["salt"])} and {number(found["alone"]["brine"])} a second when the \
client itself publishes the event of the reaction, which is the upper limit of this measurement. Client and master \
share the {os.cpu_count()} processors."""


def fleet_part(found):
    salt, brine = found["salt"], found["brine"]
    rows = []
    for key, what in [
        ("join", "all minions joined, s"),
        ("master_processor", "... CPU time of the master, s"),
        ("swarm_processor", "... CPU time of the swarm, s"),
        ("ping", "`salt '*' test.ping`, s"),
        ("memory", "master right after the pings, MB PSS"),
        ("settled", "master 15 s later, MB PSS"),
        ("reconnect", "restarted master until all minions were connected, s"),
        ("restart", "restarted master until all minions answered a ping, s"),
        ("restart_processor", "... CPU time of the master, s"),
    ]:
        for minions, ours in brine.items():
            theirs = salt.get(minions)
            if key not in ours:  # Measured before there was this row.
                continue
            pair = [number(theirs[key]), number(ours[key]), number(theirs[key] / ours[key])] if theirs else ["", number(ours[key]), ""]
            rows.append([what, f"{int(minions):,}", *pair])
    return f"""\
Measured by `benches/vs_salt/run fleet`, Salt {RELEASE} and Brine in one run: fleets of `brine swarm`, with Salt's \
cipher for Salt's master and AES-256-GCM for Brine's. Joining: new keys on both sides, accepted by `auto_accept`, \
a session and a start event for each minion. The ping is the median of several, in which all minions returned. \
Swarm and master share the {os.cpu_count()} processors.

{doc.table(["measure", "minions", SALT, "Brine", "ratio"], rows)}

Joining is limited by RSA: one private operation in the master and two in each minion, executed by AWS-LC \
(ARCHITECTURE.md, Sessions)."""


def rotation_part(found):
    steps = ("one", "many", "restart")
    rows = []
    for key, what in [
        ("all", "all accepted minions answered a ping after, s"),
        ("processor", "... CPU time of the master until then, s"),
        ("accepted", "... authentications accepted"),
        ("deferred", "... authentications deferred"),
        ("refused", "... authentications refused"),
        ("memory", "... memory of the master, MB PSS"),
        ("rest_processor", "30 s later: CPU time of the master a second, s"),
        ("rest_deferred", "... authentications deferred a second"),
        ("rest_refused", "... authentications refused a second"),
        ("rest_memory", "... memory of the master, MB PSS"),
    ]:
        rows.append([what, *(number(found[step][key]) if found[step][key] else "0" for step in steps)])
    return f"""\
Measured by `benches/vs_salt/run rotation`: {found["minions"]:,} minions of `brine swarm`, which all authenticate \
again when the session keys are rotated, without a limit on how many do so at a time. A deleted minion shows its key \
again and is refused until it is accepted, every ten seconds at most: those are the refused ones.

{doc.table(["measure", "one key deleted", f"{found['deleted']:,} keys deleted", "master killed and started"], rows)}"""


def states_part(found):
    salt, brine = found["salt"], found["brine"]
    rows = []
    for key, what, asked in [
        ("again", f"`state.apply` of {found['files']} `file.managed` that change nothing", "30 times"),
        ("first", "the same, first run", "10 times"),
        ("low", f"`state.show_lowstate` of {found['tree']} SLS files", "50 times"),
    ]:
        theirs, ours = salt[key], brine[key]
        rows.append([f"{what}, s", number(theirs["seconds"]), number(ours["seconds"])])
        rows[-1] += [number(theirs["seconds"] / ours["seconds"]), asked]
        rows.append(["... maximum memory, MB", *(f"{one['memory'] / MB:.1f}" for one in (theirs, ours))])
        rows[-1] += [number(theirs["memory"] / ours["memory"]), "60 MB"]
    return f"""\
Measured by `benches/vs_salt/run states`, Salt {RELEASE} and Brine in one run: whole runs of `salt-call --local`, \
medians of five after a warm-up, with checked results. The files are on a tmpfs and come from `salt://`; in the \
first run neither they nor the minion's cache exist. Each SLS of the tree includes the previous one, imports a map, and has four \
states with requisites.

{doc.table(["measure", SALT, "Brine", "ratio", "target"], rows)}"""


def rulebook_part(found):
    rows = [
        ["ansible-rulebook 1.3.2", f"{found['events']:,}", number(found["rulebook"]), ""],
        ["Brine", f"{found['events']:,}", number(found["brine"]), number(found["brine"] / found["rulebook"])],
        ["Brine", f"{found['long']:,}", number(found["brine_long"]), number(found["brine_long"] / found["rulebook"])],
    ]
    return f"""\
Measured by `benches/vs_salt/run rulebook`: events that match one rule, or one reactor entry, without an action.

{doc.table(["program", "events", "events/s", "ratio"], rows)}

ansible-rulebook ({found["java"]}) generates the events itself; the time of a run with one event is subtracted. \
Brine receives them through its bus; the SLS file of the entry is rendered for each event and contains a reaction \
only for the last event of each tag, which ends the measurement.

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
Measured by `benches/vs_salt/run soak`: {found["minutes"]:g} minutes of events at a constant rate of \
{number(found["rate"])} per second, half of the full load, {found["entries"]} reactor entries. \
{missing([found]).capitalize()}; the latency of reactions was {number(found["median"])} ms (median) and \
{number(found["p99"])} ms (99th percentile).

{doc.table(["minute", "master, MB PSS"], rows)}

Medians of each minute. In the second half memory changes by {found["late"]:+.2f} bytes per reaction, ± \
{found["error"]:.2f}: {found["verdict"]}. At the end the store including the journal occupies \
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
Measured by `benches/vs_salt/run burst`: events published as fast as the bus accepts them. Each reaction takes 100 \
ms (`runner.test.sleep`, then `runner.test.arg` with the event's number), {found["threads"]} of them concurrently \
(`reactor_worker_threads: {found["threads"]}`). Each burst has a new master.

{doc.table(head, rows)}

{missing([small, large]).capitalize()}. While {found["waiting"]:,} further events wait, the master uses \
{found["more"]:,.0f} additional bytes for each: {found["verdict"]}."""


def hostile_part(found):
    idle = found["idle"]
    rows = [[
        f"{found['connections']:,} idle connections after their handshake ({idle['open']:,} still open at the end)",
        f"{idle['before']:.1f}", f"{idle['with']:.1f}", number(idle["beside"]["median"]), number(idle["beside"]["most"]),
    ]]
    more = [
        ("one message of 62 MB, nested arrays that claim 2^32 items each", found["messages"]["bomb"]),
        ("40 messages of 62 MB without their end", found["messages"]["halves"]),
        *((f"a reactor SLS file with {name}", one) for name, one in found["templates"].items()),
    ]
    for name, one in more:
        rows.append([name, f"{one['before']:.1f}", f"{one['peak']:.1f}"])
        rows[-1] += [number(one["ping"]["median"]), number(one["ping"]["most"])]
    return f"""\
Measured by `benches/vs_salt/run hostile`: peers without a key, and templates without an end, with default limits \
(`max_connections` but raised above the number of connections). The memory of the connections is the master's \
anonymous memory, of all others its highest resident memory before and while they last. Pings are whole `salt m1 \
test.ping` commands beside them; on the same master alone they take {number(idle["quiet"]["median"])} ms (median).

{doc.table(["what", "MB before", "MB with it", "ping, median, ms", "ping, highest, ms"], rows)}"""


def api_part(found):
    salt, brine, rows = found["salt"], found["brine"], []

    def row(what, theirs, ours, ratio, target=""):
        rows.append([what, *(number(one) if one is not None else "" for one in (theirs, ours, ratio)), target])

    row("POST `/run`, requests/s over 8 connections", salt["rate"], brine["rate"], brine["rate"] / salt["rate"], "50 times")
    for name, what in [
        ("run", "POST `/run` with a token"),
        ("password", "POST `/run` with a password"),
        ("session", "POST `/` with a session"),
        ("login", "POST `/login`"),
    ]:
        for key, which in ("median", "median"), ("p99", "99th percentile"):
            theirs, ours = salt[name][key], brine[name][key]
            target = "50 times" if (name, key) == ("run", "median") else ""
            row(f"{what}, {which}, ms", theirs, ours, theirs / ours, target)
    mib = 1 << 20
    row("idle, MB of anonymous memory", salt["idle"] / mib, brine["idle"] / mib, salt["idle"] / brine["idle"], "10 MB")
    theirs, ours, tls = salt["streams"], brine["streams"], brine["tls"]
    row(f"bytes for each of {theirs['count']:,} subscribers of `/events`", theirs["each"], None, None)
    row(f"bytes for each of {ours['count']:,} subscribers of `/events`", None, ours["each"], None, "1 kB")
    row("... after they have received events", None, ours["each_after"], None)
    row(f"bytes for each of {tls['count']:,} subscribers, with TLS", None, tls["each"], None)
    row("idle, with TLS, MB", None, tls["idle"] / mib, None)
    row(f"event to the last of {theirs['count']:,} subscribers, median, ms", theirs["median"], None, None)
    row(f"event to the last of {ours['count']:,} subscribers, median, ms", None, ours["median"], None)
    row("... highest, ms", None, ours["most"], None, "1 s")
    for one in brine["calls"]:
        row(f"after {one['calls']:,} calls, MB", None, one["memory"] / mib, None, "flat")
        row("... open descriptors", None, one["descriptors"], None, "flat")
    beside = brine["beside"]
    for key, which in ("median", "median"), ("p99", "99th percentile"):
        row(f"POST `/run` alone, {which}, ms", None, beside["quiet"][key], None)
        with_peers = f"beside {beside['followers']:,} silent subscribers and {beside['sluggish']:,} slow peers"
        row(f"... {with_peers}, {which}, ms", None, beside["beside"][key], None)
    row("... anonymous memory, MB", None, beside["with"] / mib, None)
    return f"""\
Measured by `benches/vs_salt/run api`, salt-api {RELEASE} (rest_cherrypy) and Brine in one run: each beside its own master \
and one minion, by plain HTTP over the loopback interface, `local` `test.ping`, `external_auth` by `sharedsecret`. \
Requests one after the other on one connection, {salt["run"]["count"]} of Salt and {brine["run"]["count"]:,} of Brine; the \
rate over 8 connections with one open request each. Memory is anonymous memory of all processes of salt-api, without \
the buffers of the kernel.

{doc.table(["measure", SALT, "Brine", "ratio", "target"], rows)}

Salt has a thread for each stream, 100 at most (`thread_pool`). Events are published by a webhook; their time is that \
until a process with all subscribers has read the event from its last socket. Slow peers send a byte of a head \
each second: {beside["closed"]:,} of {beside["sluggish"]:,} were closed within 40 seconds (`head_timeout`, 30). \
Subscribers, API, master, minion and the measuring client share the {os.cpu_count()} processors. For each job the \
master waits for its disk five times and the minion three times (`strace`), the API never; Salt does not wait."""


def in_process_part(found):
    matching = [[what, f"{time * 1e9:,.0f}", f"{rate:,.0f}"] for what, time, rate in found["entries"]]
    bus = [[what, f"{rate:,.0f}"] for what, _, rate in found["bus"]]
    jobs = [[what, f"{time * 1e3:,.2f}"] for what, time, _ in found["job_cache"]]
    return f"""\
By `benches/vs_salt/run in-process`, which runs the three commands below; {os.cpu_count()} processors.

`cargo bench -p brine-reactor --bench entries`: finding an event's reactor entries.

{doc.table(["what", "ns", "events/s"], matching)}

`cargo bench -p brine-bus --bench bus`: one task publishes 200,000 events of 100 bytes, another receives them.

{doc.table(["what", "events/s"], bus)}

`cargo bench -p brine-returners --bench job_cache`: the job cache with 10,000 jobs of 100 minions each, 1,000,000 returns.

{doc.table(["what", "ms"], jobs)}"""


def cluster_part(found):
    rows = [
        ["`salt '*' test.ping`, one master, s", f"{found['single']:.3f}", ""],
        ["the same, three members, s", f"{found['cluster']:.3f}", "2 times the above"],
        ["an event to the bus of another member, median and maximum, s", f"{found['far']:.4f}, {found['far_most']:.4f}", ""],
        ["reactions after the leader is killed, `lease` 2, s", f"{found['failover']:.2f}", ""],
        ["three jobs, a member killed and started again under each: returns lost", f"{found['killed']['lost']:,}", "0"],
        ["the same: returns in two events", f"{found['killed']['doubled']:,}", ""],
        ["the same: until all returns of a job are known on the other members, maximum, s", f"{found['killed']['slowest']:.1f}", ""],
    ]
    debug = ", so all times are those of a debug build" if found["profile"] == "debug" else ""
    return f"""\
Measured by `benches/vs_salt/run cluster`: {found['minions']:,} simulated minions, all on one master, or a third of them on \
each of three members of a [cluster](cluster.md) with one NATS server; everything on one machine. Pings are medians of five, \
asked of one member. The program was built with the profile `{found['profile']}`{debug}.

{doc.table(["measure", "Brine", "target"], rows)}

A return is in two events if a member accepted it and was killed before it replied: the minion sends it again, and the job caches \
keep the first one.
"""


# The sections by name of the measurement, in the order of the document.
def python_part(found):
    salt, brine, calls = found["salt"], found["brine"], found["calls"]

    def first(one):
        return one["first"] - one["ping"]

    def later(one):
        return (one["own"] - one["built_in"]) * 1000

    rows = [
        ["`salt-call --local` of a custom function, s", salt["first"], brine["first"], ""],
        ["... more than of `test.ping`: Python's start, the load of the modules, and the call, s", first(salt), first(brine), "0.2 s"],
        ["a later call, more than of a built-in function, ms", later(salt), later(brine), "0.5 ms"],
        [f"`salt-call --local {found['function']}`, which only the package `salt` has, s", salt["package"], brine["package"], "faster"],
        ["idle minion with 21 synced modules, more than without, MB PSS", salt["with"] - salt["without"], brine["with"] - brine["without"], "1 MB"],
    ]
    rows = [[what, number(theirs), number(ours), asked] for what, theirs, ours, asked in rows]
    return f"""\
Measured by `benches/vs_salt/run python`, Salt {RELEASE} and Brine in one run: medians of whole commands after a warm-up. \
Later calls are {calls:,} calls in one template, by the difference to one call and to `test.echo`.

{doc.table(["measure", SALT, "Brine", "target"], rows)}"""


def ssh_part(found):
    salt, brine = found["salt"], found["brine"]
    rows = []
    for key, what, asked in [
        ("ping_first", "`test.ping`, with nothing on the host and no connection, s", "10 times"),
        ("ping_again", "`test.ping` again, s", "20 times"),
        ("apply_first", "`state.apply`, with nothing on the host and no connection, s", "10 times"),
        ("apply_again", "`state.apply` again, s", "20 times"),
    ]:
        rows.append([what, number(salt[key]), number(brine[key]), number(salt[key] / brine[key]), asked])
    return f"""\
Measured by `benches/vs_salt/run ssh`, Salt {RELEASE} and Brine in one run: {found["hosts"]} roster entries of one \
`sshd` on this host, with the default of 25 connections at a time. Each has a directory of its own, into which Brine pushes a program of {found["program"] / 1e6:.0f} MB, compressed by `zstd`. Brine's later calls \
use the connections of the first one (`ssh_control_persist`).

{doc.table(["measure", SALT, "Brine", "ratio", "target"], rows)}"""


def cp_part(found):
    rows = []
    for size, one in found["sizes"].items():
        memory = [f"{one[who] / MB:.1f}" for who in ("master", "minion", "tool")]
        rows.append([f"{int(size):,}", number(one["seconds"]), number(int(size) / one["seconds"]), *memory])
    return f"""\
Measured by `benches/vs_salt/run cp`: `salt-cp --chunked` of random bytes to one minion, in chunks of \
{found["chunk"]:,} bytes (`salt_cp_chunk_size`). Memory is the peak since the start.

{doc.table(["MB", "s", "MB/s", "master, MB", "minion, MB", "`salt-cp`, MB"], rows)}"""


def authoring_part(found):
    editor = found["editor"]
    rows = [
        ["`brine check`, whole command, s", number(found["check"]), "", "1"],
        ["`brine fmt --check`, whole command, s", number(found["format"]), "", ""],
        ["`brine lsp`: start until the first findings, ms", number(editor["answers"].pop("first")["median"]), "", ""],
    ]
    for method, one in editor["answers"].items():
        rows.append([f"... {method} after a letter, ms", number(one["median"]), number(one["most"]), "50"])
    rows.append(["... memory, MB", f"{editor['memory'] / MB:.0f}", "", "100"])
    replay = found["replay"]
    rows += [
        [f"`reactor.replay` of {replay['one']['events']:,} events, one in 16 matches and is rendered, s", number(replay["one"]["seconds"]), "", "60"],
        [f"`reactor.replay` of {replay['each']['events']:,} events, each matches, one of 16 values, s", number(replay["each"]["seconds"]), "", "60"],
    ]
    return f"""\
Measured by `benches/vs_salt/run authoring`: a tree of {found["files"]:,} SLS files of twelve states each, with includes, \
requisites, maps, sources and pillar. Medians, and the highest where there is one. Each question to the language server \
follows a change of the open file.

{doc.table(["measure", "Brine", "highest", "target"], rows)}"""


PARTS = {
    "masters": ("Master and minion", masters_part),
    "reactor": ("Reactor", reactor_part),
    "fleet": ("Fleets", fleet_part),
    "rotation": ("Rotation of keys", rotation_part),
    "states": ("States", states_part),
    "rulebook": ("Beside ansible-rulebook", rulebook_part),
    "soak": ("Over time", soak_part),
    "burst": ("A burst of slow reactions", burst_part),
    "hostile": ("Hostile peers and templates", hostile_part),
    "api": ("REST API", api_part),
    "cluster": ("Clusters", cluster_part),
    "python": ("Custom modules in Python", python_part),
    "ssh": ("salt-ssh", ssh_part),
    "cp": ("salt-cp", cp_part),
    "authoring": ("Tools for authors", authoring_part),
    "in-process": ("In process", in_process_part),
}
