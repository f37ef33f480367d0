"""Measures Brine and Salt by the same means: same configuration, same machine, one run.

Salt's event bus is used through Salt's own library (its sockets are not ZeroMQ any more), Brine's through pyzmq.
"""

import statistics
import subprocess
import sys
import time

import results
from bus import rate, subscribe
from limits import bus_without_journal, fdatasync
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
        [subscriber] = subscribe(system, 1, "salt/job/", "/ret/m1")
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
        found["disk"] = fdatasync(f"{system.root}/cache")["median"]
        count = (200_000 if quick else 1_000_000) if brine else (5_000 if quick else 20_000)
        found["bus"] = rate(system, count)
        count = (20_000 if quick else 50_000) if brine else (300 if quick else 1_000)
        found["reactions"] = rate(system, count, "bench/go", "salt/run/", "/ret")
    finally:
        system.stop()
    return found


def main():
    options = arguments(__doc__).parse_args()
    found = {kind: measure(kind, tool, options.quick) for kind, tool in tools(options).items()}
    found["forwarder"] = bus_without_journal(200_000 if options.quick else 1_000_000)
    results.store("masters", found, options.quick)


if __name__ == "__main__":
    main()
