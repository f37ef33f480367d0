"""Measures Brine and Salt by the same means: same configuration, same machine, one run.

Each measure is a function that takes a System and gives one number. Salt's event bus is followed and fired
into by Salt's own library (its sockets are not ZeroMQ any more), Brine's by pyzmq.
"""

import argparse
import os
import statistics
import subprocess
import time

import doc
from bus import fire, follow
from system import System, pss


def timed(command, runs):
    def once():
        began = time.time()
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        return time.time() - began

    once()
    return statistics.median(once() for _ in range(runs))


def measure(kind, tool, quick):
    system, found = System(kind, tool), {}
    brine, runs = kind == "brine", 3 if quick else 10
    try:
        found["ready"] = system.start_master()
        time.sleep(5)
        found["master"] = pss(system.running[0])
        follower = follow(system, 1, "salt/job/", "/ret/m1")
        began = time.time()
        minion = system.start("salt-minion", minion=True)
        follower.wait()
        found["join"] = time.time() - began
        time.sleep(5)
        found["minion"] = pss(minion)
        found["ping"] = timed(system.command("salt", "*", "test.ping"), runs)
        found["call"] = timed(system.command("salt-call", "--local", "test.ping", minion=True), runs)
        found["key"] = timed(system.command("salt-key", "-L"), runs)
        count = (200_000 if quick else 1_000_000) if brine else (5_000 if quick else 20_000)
        follower = follow(system, count, "bench/x")
        fire(system, count, "bench/x")
        found["bus"] = float(follower.stdout.readline())
        count = (20_000 if quick else 50_000) if brine else (300 if quick else 1_000)
        follower = follow(system, count, "salt/run/", "/ret")
        fire(system, count, "bench/go")
        found["reactions"] = float(follower.stdout.readline())
    finally:
        system.stop()
    return found


ROWS = [
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--salt", required=True)
    parser.add_argument("--brine", required=True)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    brine = os.path.abspath(options.brine)
    results = {
        "salt": measure("salt", lambda tool: [os.path.join(options.salt, tool)], options.quick),
        "brine": measure("brine", lambda tool: [brine, tool], options.quick),
    }
    lines = ["| what | Salt 3008.3 | Brine | ratio | asked |", "|---|---|---|---|---|"]
    for name, what, form, more_is_better, asked in ROWS:
        salt, ours = results["salt"][name], results["brine"][name]
        ratio = ours / salt if more_is_better else salt / ours
        lines.append(f"| {what} | {form.format(salt)} | {form.format(ours)} | {ratio:,.0f} | {asked} |")
    table = "\n".join(lines)
    print(table)
    if not options.quick:
        doc.write_introduction(
            f"""# Benchmarks

Brine and real Salt 3008.3 on one machine in one run, by `benches/vs_salt/run`: {os.cpu_count()} processors, \
release build, the same configuration, 3 workers, journal on. Times are medians of ten runs after a warm-up. The \
ratio says how many times better Brine is.

{table}

The bus is measured through its sockets, Salt's by its own library, Brine's by pyzmq; reactions are counted by the \
`salt/run/*/ret` events that a follower sees. Both acceptance_wait_time are 1 s; a Brine minion looks for the first \
time after 0.1 s."""
        )


if __name__ == "__main__":
    main()
