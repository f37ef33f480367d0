"""Generates the sections of docs/benchmarks.md that compare Brine with Salt."""

import importlib.metadata
import os

import doc
from doc import MB

try:
    # The Salt release in the Python environment of this script.
    RELEASE = importlib.metadata.version("salt")
except importlib.metadata.PackageNotFoundError:
    RELEASE = "(none)"
SALT = f"Salt {RELEASE}"
# The RSA private operations that let a minion join: one in the master, two in the minion.
RSA_OPERATIONS = 3
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


def masters_part(found):
    rows, limits = [], {"bus": found["forwarder"], "ping": found["brine"]["disk"]}
    for name, what, form, more_is_better, asked in MASTERS:
        salt, ours = found["salt"][name], found["brine"][name]
        ratio = ours / salt if more_is_better else salt / ours
        rows.append([what, form.format(salt), form.format(ours), f"{ratio:,.0f}", asked])
    cells = [form.format(limits[name]) if name in limits else "" for name, _, form, *_ in MASTERS]
    return f"""\
Measured by `benches/vs_salt/run masters`: the same configuration, 3 workers, with journal. Times of commands are \
medians of ten runs after a warm-up.

{doc.table(["measure", SALT, "Brine", "ratio", "target"], rows, cells)}

The limit of the bus is a forwarder of libzmq (`zmq_proxy`) without a journal, between the same clients as Brine's; \
that of the command is one write of 4 kB with `fdatasync` in the directory of the master's store. The bus is measured through its sockets, Salt's with its own library, Brine's with pyzmq. Reactions are counted by \
the `salt/run/*/ret` events that a subscriber receives. `acceptance_wait_time` is 1 s on both; a Brine minion asks \
for the first time after 0.1 s."""


def reactor_part(found):
    salt, brine, rows = found["salt"], found["brine"], []

    def row(what, entries, theirs, ours, ratio=None):
        rows.append([what, f"{int(entries):,}", *(doc.number(one) if one else "" for one in (theirs, ours, ratio))])

    for entries, ours in brine["full"].items():
        row("reactions/s", entries, salt["full"][entries], ours, ours / salt["full"][entries])
    percentiles = [("median", "median"), ("p99", "99th percentile"), ("p999", "99.9th percentile")]
    both = f"at 80 % of its own full load, {doc.number(salt['most']['asked'])} and {doc.number(brine['most']['asked'])} events/s"
    steady = [(f"at {int(rate):,} events/s", salt["rates"].get(rate, {}), one) for rate, one in brine["rates"].items()]
    for load, theirs, ours in [*steady, (both, salt["most"], brine["most"])]:
        for key, which in percentiles:
            what = f"event to reaction {load}, {which}, ms" if key == "median" else f"... {which}, ms"
            # Other loads have no ratio.
            ratio = theirs[key] / ours[key] if theirs and load != both else None
            row(what, found["entries"], theirs.get(key), ours[key], ratio)
    row("queueing at its own full load, median, ms", found["entries"], salt["whole"]["median"], brine["whole"]["median"])
    steady = [run for one in (salt, brine) for run in [*one["rates"].values(), one["most"]]]
    kept = min(run["kept"] / run["asked"] for run in steady)
    return f"""\
Measured by `benches/vs_salt/run reactor`, Salt {RELEASE} and Brine in one run. One reactor entry matches; its SLS \
file calls `runner.test.arg` with the event's number, which identifies the `salt/run/<jid>/ret` of the reaction. \
Events of 100 bytes on 16 tags.

{doc.table(["measure", "entries", SALT, "Brine", "ratio"], rows)}

Reactions/s: events published as fast as the bus accepts them, from the first event to the last reaction; median \
of three runs of about ten seconds. Latencies: 15 seconds of events at a constant rate, 30 below 100 a second, each \
from the time when the event was due; empty where the rate is above 80 % of the full load. Of 1,000 events or fewer, \
the 99.9th percentile is the maximum. At least {kept:.0%} of the events were published in time; \
{doc.missing([*steady, salt["whole"], brine["whole"]])}. The clients (`load.py` with Salt's own library, `load.rs` on \
ZeroMQ) and the bus do {doc.number(salt["alone"])} and {doc.number(brine["alone"])} a second when the client itself \
publishes the event of the reaction, which is the upper limit of this measurement. Client and master share the \
{os.cpu_count()} processors."""


def fleet_part(found):
    salt, brine = found["salt"], found["brine"]
    rows, limits = [], []
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
            pair = [doc.number(theirs[key]), doc.number(ours[key]), doc.number(theirs[key] / ours[key])] if theirs else ["", doc.number(ours[key]), ""]
            rows.append([what, f"{int(minions):,}", *pair])
            is_limited = key == "join" and found["rsa"]
            limits.append(doc.number(RSA_OPERATIONS * int(minions) / found["rsa"]) if is_limited else "")
    limit = ""
    if found["rsa"]:
        limit = f"The limit is the time of these operations at {doc.number(found['rsa'])} a second, which `openssl speed` does \
on all processors with keys of 2,048 bits, as the minions have."
    return f"""\
Measured by `benches/vs_salt/run fleet`, Salt {RELEASE} and Brine in one run: fleets of `brine swarm`, with Salt's \
cipher for Salt's master and AES-256-GCM for Brine's. Joining: new keys on both sides, accepted by `auto_accept`, \
a session and a start event for each minion. The ping is the median of several, in which all minions returned. \
Swarm and master share the {os.cpu_count()} processors.

{doc.table(["measure", "minions", SALT, "Brine", "ratio"], rows, limits)}

Joining is limited by RSA: one private operation in the master and two in each minion, executed by AWS-LC \
(ARCHITECTURE.md, Sessions). {limit}"""


def states_part(found):
    salt, brine = found["salt"], found["brine"]
    rows, limits = [], []
    for key, what, asked in [
        ("again", f"`state.apply` of {found['files']} `file.managed` that change nothing", "30 times"),
        ("first", "the same, first run", "10 times"),
        ("low", f"`state.show_lowstate` of {found['tree']} SLS files", "50 times"),
    ]:
        theirs, ours = salt[key], brine[key]
        rows.append([f"{what}, s", doc.number(theirs["seconds"]), doc.number(ours["seconds"])])
        rows[-1] += [doc.number(theirs["seconds"] / ours["seconds"]), asked]
        rows.append(["... maximum memory, MB", *(f"{one['memory'] / MB:.1f}" for one in (theirs, ours))])
        rows[-1] += [doc.number(theirs["memory"] / ours["memory"]), "60 MB"]
        limits += [doc.number(brine["reading"]) if key == "again" else "", ""]
    return f"""\
Measured by `benches/vs_salt/run states`, Salt {RELEASE} and Brine in one run: whole runs of `salt-call --local`, \
medians of five after a warm-up, with checked results. The files are on a tmpfs and come from `salt://`; in the \
first run neither they nor the minion's cache exist. Each SLS of the tree includes the previous one, imports a map, and has four \
states with requisites. The limit is one `lstat` and one read of each of the files, by Python.

{doc.table(["measure", SALT, "Brine", "ratio", "target"], rows, limits)}"""


def api_part(found):
    salt, brine, rows, limits = found["salt"], found["brine"], [], []

    def row(what, theirs, ours, ratio, target="", limit=None):
        rows.append([what, *(doc.number(one) if one is not None else "" for one in (theirs, ours, ratio)), target])
        limits.append(doc.number(limit) if limit else "")

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
            # A login is no job.
            limit = brine["disk"][key] * 1000 if name != "login" else None
            row(f"{what}, {which}, ms", theirs, ours, theirs / ours, target, limit)
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

{doc.table(["measure", SALT, "Brine", "ratio", "target"], rows, limits)}

The limit is one write of 4 kB with `fdatasync` in the directory of the master's store. Salt has a thread for each stream, 100 at most (`thread_pool`). Events are published by a webhook; their time is that \
until a process with all subscribers has read the event from its last socket. Slow peers send a byte of a head \
each second: {beside["closed"]:,} of {beside["sluggish"]:,} were closed within 40 seconds (`head_timeout`, 30). \
Subscribers, API, master, minion and the measuring client share the {os.cpu_count()} processors. For each job the \
master waits for its disk five times and the minion three times (`strace`), the API never; Salt does not wait."""


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
    rows = [[what, doc.number(theirs), doc.number(ours), asked] for what, theirs, ours, asked in rows]
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
        rows.append([what, doc.number(salt[key]), doc.number(brine[key]), doc.number(salt[key] / brine[key]), asked])
    return f"""\
Measured by `benches/vs_salt/run ssh`, Salt {RELEASE} and Brine in one run: {found["hosts"]} roster entries of one \
`sshd` on this host, with the default of 25 connections at a time. Each has a directory of its own, into which Brine pushes a program of {found["program"] / 1e6:.0f} MB, compressed by `zstd`. Brine's later calls \
use the connections of the first one (`ssh_control_persist`).

{doc.table(["measure", SALT, "Brine", "ratio", "target"], rows)}"""
