"""Generates the sections of docs/benchmarks.md about Brine alone, and beside ansible-rulebook."""

import os

import doc
from doc import MB


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
        rows.append([what, *(doc.number(found[step][key]) if found[step][key] else "0" for step in steps)])
    return f"""\
Measured by `benches/vs_salt/run rotation`: {found["minions"]:,} minions of `brine swarm`, which all authenticate \
again when the session keys are rotated, without a limit on how many do so at a time. A deleted minion shows its key \
again and is refused until it is accepted, every ten seconds at most: those are the refused ones.

{doc.table(["measure", "one key deleted", f"{found['deleted']:,} keys deleted", "master killed and started"], rows)}"""


def rulebook_part(found):
    rows = [
        ["ansible-rulebook 1.3.2", f"{found['events']:,}", doc.number(found["rulebook"]), ""],
        ["Brine", f"{found['events']:,}", doc.number(found["brine"]), doc.number(found["brine"] / found["rulebook"])],
        ["Brine", f"{found['long']:,}", doc.number(found["brine_long"]), doc.number(found["brine_long"] / found["rulebook"])],
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
{doc.number(found["rate"])} per second, half of the full load, {found["entries"]} reactor entries. \
{doc.missing([found]).capitalize()}; the latency of reactions was {doc.number(found["median"])} ms (median) and \
{doc.number(found["p99"])} ms (99th percentile).

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

{doc.missing([small, large]).capitalize()}. While {found["waiting"]:,} further events wait, the master uses \
{found["more"]:,.0f} additional bytes for each: {found["verdict"]}."""


def hostile_part(found):
    idle = found["idle"]
    rows = [[
        f"{found['connections']:,} idle connections after their handshake ({idle['open']:,} still open at the end)",
        f"{idle['before']:.1f}", f"{idle['with']:.1f}", doc.number(idle["beside"]["median"]), doc.number(idle["beside"]["most"]),
    ]]
    more = [
        ("one message of 62 MB, nested arrays that claim 2^32 items each", found["messages"]["bomb"]),
        ("40 messages of 62 MB without their end", found["messages"]["halves"]),
        *((f"a reactor SLS file with {name}", one) for name, one in found["templates"].items()),
    ]
    for name, one in more:
        rows.append([name, f"{one['before']:.1f}", f"{one['peak']:.1f}"])
        rows[-1] += [doc.number(one["ping"]["median"]), doc.number(one["ping"]["most"])]
    return f"""\
Measured by `benches/vs_salt/run hostile`: peers without a key, and templates without an end, with default limits \
(`max_connections` but raised above the number of connections). The memory of the connections is the master's \
anonymous memory, of all others its highest resident memory before and while they last. Pings are whole `salt m1 \
test.ping` commands beside them; on the same master alone they take {doc.number(idle["quiet"]["median"])} ms (median).

{doc.table(["what", "MB before", "MB with it", "ping, median, ms", "ping, highest, ms"], rows)}"""


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


def cp_part(found):
    rows = []
    for size, one in found["sizes"].items():
        memory = [f"{one[who] / MB:.1f}" for who in ("master", "minion", "tool")]
        rows.append([f"{int(size):,}", doc.number(one["seconds"]), doc.number(int(size) / one["seconds"]), *memory])
    return f"""\
Measured by `benches/vs_salt/run cp`: `salt-cp --chunked` of random bytes to one minion, in chunks of \
{found["chunk"]:,} bytes (`salt_cp_chunk_size`). Memory is the peak since the start.

{doc.table(["MB", "s", "MB/s", "master, MB", "minion, MB", "`salt-cp`, MB"], rows)}"""


def authoring_part(found):
    editor = found["editor"]
    rows = [
        ["`brine check`, whole command, s", doc.number(found["check"]), "", "1"],
        ["`brine fmt --check`, whole command, s", doc.number(found["format"]), "", ""],
        ["`brine lsp`: start until the first findings, ms", doc.number(editor["answers"].pop("first")["median"]), "", ""],
    ]
    for method, one in editor["answers"].items():
        rows.append([f"... {method} after a letter, ms", doc.number(one["median"]), doc.number(one["most"]), "50"])
    rows.append(["... memory, MB", f"{editor['memory'] / MB:.0f}", "", "100"])
    replay = found["replay"]
    rows += [
        [f"`reactor.replay` of {replay['one']['events']:,} events, one in 16 matches and is rendered, s", doc.number(replay["one"]["seconds"]), "", "60"],
        [f"`reactor.replay` of {replay['each']['events']:,} events, each matches, one of 16 values, s", doc.number(replay["each"]["seconds"]), "", "60"],
    ]
    return f"""\
Measured by `benches/vs_salt/run authoring`: a tree of {found["files"]:,} SLS files of twelve states each, with includes, \
requisites, maps, sources and pillar. Medians, and the highest where there is one. Each question to the language server \
follows a change of the open file.

{doc.table(["measure", "Brine", "highest", "target"], rows)}"""


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
