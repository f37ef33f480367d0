"""Measures how Brine's figures change with the size of events, of the fleet and of the trees of states, and with the
number of subscribers, reactor entries and concurrent clients."""

import contextlib
import pathlib
import resource
import shutil
import statistics
import tempfile
import time

import api
import bus
import clients
import fleet
import results
import states
from limits import forwarder
from reacting import arguments, load, reacting, tools
from system import System

SIZES = (100, 1_000, 4_000, 16_000, 64_000)
# The events of a run: this many, or fewer that have this many bytes together.
EVENTS, BYTES = 200_000, 300_000_000
SUBSCRIBERS = (1, 2, 5, 10, 20)
# The events of a run that all subscribers receive together.
DELIVERIES = 400_000
ENTRIES = (1, 10, 100, 1_000, 5_000)
REACTIONS = 40_000
MINIONS = (100, 500, 1_000, 3_000, 9_000)
FILES = (50, 100, 250, 500, 1_000)
TREES = (25, 50, 100, 200, 400)
CLIENTS = (1, 4, 16, 64, 128)
CLIENT_SECONDS = 3


def median(runs, once):
    """Returns the median of some runs, after a warm-up."""
    once()
    return statistics.median(once() for _ in range(runs))


@contextlib.contextmanager
def idle_master(tool):
    system = System("brine", tool, [("bench/none", "none")])
    try:
        system.start_master()
        yield system
    finally:
        system.stop()


def events(tool, runs, few):
    """Returns the events/s by size, and those to each subscriber by their number, of Brine and of the forwarder."""
    sizes, subscribers = {}, {}
    for name, bus_of in ("Brine", lambda: idle_master(tool)), ("forwarder", forwarder):
        with bus_of() as system:

            def rate(count, size=100, processes=1):
                return median(runs, lambda: bus.rate(system, count // few, size=size, processes=processes))

            sizes[name] = [(size, rate(min(EVENTS, BYTES // size), size=size)) for size in SIZES]
            subscribers[name] = [(number, rate(DELIVERIES // max(number, 2), processes=number)) for number in SUBSCRIBERS]
    return {"event-size": sizes, "subscribers": subscribers}


def reactions(tool, client, runs, few):
    found = []
    for entries in ENTRIES:
        with reacting("brine", tool, entries) as system:
            found.append((entries, median(runs, lambda: load(system, client, REACTIONS // few)["rate"])))
    return {"reactor-entries": {"Brine": found}}


def pings(tool, brine, runs):
    found = []
    for minions in MINIONS:
        system = fleet.swarm_master("brine", tool)
        try:
            system.start_master()
            fleet.swarm(system, brine, minions, "fleet-")
            found.append((minions, median(runs, lambda: fleet.ping(system, minions))))
        finally:
            system.stop()
    return {"minions": {"Brine": found}}


def trees(tool, runs):
    """Returns the durations of runs of states by number of files, and of low states by number of SLS files."""
    applied, reading, low = [], [], []
    for files, tree in zip(FILES, TREES):
        root = pathlib.Path(tempfile.mkdtemp(prefix="vs-", dir=states.MEMORY))
        try:
            one = states.measure("brine", tool, root, files, tree, runs)
        finally:
            shutil.rmtree(root)
        applied.append((files, one["again"]["seconds"]))
        reading.append((files, one["reading"]))
        low.append((tree, one["low"]["seconds"]))
    return {"files": {"Brine": applied, "reading": reading}, "sls-files": {"Brine": low}}


def jobs(tool, runs, few):
    with api.Api("brine", tool) as server:
        token = server.connect().post("/token", api.LOGIN)[0]["token"]
        request = clients.Connection.request("POST", "/run", api.PING | {"token": token})

        def rate(parallel):
            return clients.rate(server.port, request, parallel, 1 if few > 1 else CLIENT_SECONDS)

        return {"concurrent-jobs": {"Brine": [(number, median(runs, lambda: rate(number))) for number in CLIENTS]}}


def main():
    options = arguments(__doc__).parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    tool = tools(options)["brine"]
    runs, few = (1, 10) if options.quick else (3, 1)
    found = {"runs": runs}
    for measure in (
        lambda: events(tool, runs, few),
        lambda: reactions(tool, options.client, runs, few),
        lambda: pings(tool, options.brine, runs),
        lambda: trees(tool, runs),
        lambda: jobs(tool, runs, few),
    ):
        began = time.monotonic()
        one = measure()
        print(f"{', '.join(one)}: {time.monotonic() - began:.0f} s", flush=True)
        found |= one
    results.store("curves", found, options.quick)


if __name__ == "__main__":
    main()
