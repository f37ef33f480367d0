"""Measures Brine and Salt by the same means: same configuration, same machine, one run.

Salt's event bus is used through Salt's own library (its sockets are not ZeroMQ any more), Brine's through pyzmq.
"""

import statistics
import subprocess
import sys
import time

import results
from bus import publish, subscribe
from reacting import arguments, tools
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
        subscriber = subscribe(system, 1, "salt/job/", "/ret/m1")
        began = time.time()
        minion = system.start("salt-minion", minion=True)
        try:
            subscriber.wait(60)
        except subprocess.TimeoutExpired:
            sys.exit(f"{kind}: the new minion's highstate has not returned within a minute\n{system.logs()}")
        found["join"] = time.time() - began
        time.sleep(5)
        found["minion"] = pss(minion)
        found["ping"] = timed(system.command("salt", "*", "test.ping"), runs)
        found["call"] = timed(system.command("salt-call", "--local", "test.ping", minion=True), runs)
        found["key"] = timed(system.command("salt-key", "-L"), runs)
        count = (200_000 if quick else 1_000_000) if brine else (5_000 if quick else 20_000)
        subscriber = subscribe(system, count, "bench/x")
        publish(system, count, "bench/x")
        found["bus"] = float(subscriber.stdout.readline())
        count = (20_000 if quick else 50_000) if brine else (300 if quick else 1_000)
        subscriber = subscribe(system, count, "salt/run/", "/ret")
        publish(system, count, "bench/go")
        found["reactions"] = float(subscriber.stdout.readline())
    finally:
        system.stop()
    return found


def main():
    options = arguments(__doc__).parse_args()
    results.store("masters", {
        kind: measure(kind, tool, options.quick) for kind, tool in tools(options).items()
    }, options.quick)


if __name__ == "__main__":
    main()
