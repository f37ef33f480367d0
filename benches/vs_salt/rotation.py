"""Measures the cost of a rotation of the session keys for a master with a fleet of simulated minions (`brine swarm`),
which all authenticate at once: after the deletion of one key, of a thousand keys, and after a kill and restart of the
master."""

import json
import os
import resource
import signal
import subprocess
import threading
import time

import results
from fleet import processor
from reacting import arguments, tools
from system import System, pss

MINIONS = 3000
DELETED = 1000
# The time after which the burst must be over, and the duration of the measurement after that.
LATER, REST = 30, 10  # seconds


def start_swarm(system, brine, minions):
    """Starts a swarm with no limit on concurrent authentications, as of minions on hosts of their own, and waits until
    all are accepted."""
    words = [brine, "swarm", "--port", str(system.ret), "--minions", str(minions), "--prefix", "fleet-", "--json"]
    words += ["--concurrency", str(minions), "--dir", f"{system.root}/swarm"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)
    system.running.append(process)
    joined = threading.Event()

    def accept():
        while not joined.wait(1):
            subprocess.run(system.command("salt-key", "-A", "-y"), stdout=subprocess.DEVNULL, check=False)

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        if not process.stdout.readline():
            raise SystemExit(f"the swarm has ended:\n{system.logs()}")
    finally:
        joined.set()
        accepting.join()


def counted(system):
    """Returns the master's counters of authentications."""
    done = subprocess.run(system.command("salt-run", "metrics.show", "--out=json"), capture_output=True, text=True)
    shown = json.loads(done.stdout)
    return {name: shown[f"brine_authentications{name}_total"] for name in ("", "_refused", "_deferred")}


def answered(system, seconds):
    words = system.command("salt", "*", "test.ping", "--static", "--out=json", "-t", str(seconds))
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    try:
        return sum(1 for value in json.loads(done.stdout or "{}").values() if value is True)
    except ValueError:
        return 0


def until_answered(system, minions, began):
    """Returns the seconds until all these minions have answered a ping."""
    while True:
        found, took = answered(system, 2), time.time() - began
        if found == minions:
            return took
        if took > 300:
            raise SystemExit(f"{found} of {minions} answered\n{system.logs()}")


def burst(system, master, minions, act, fresh=False):
    """Measures the authentication of all minions after an act that causes it."""
    before = {"": 0, "_refused": 0, "_deferred": 0} if fresh else counted(system)
    used, began = 0 if fresh else processor(master().pid), time.time()
    act()
    acted = time.time() - began
    # A rotation follows the deletion of keys within a second; a ping before it would be answered with the old keys.
    while not fresh and all(counted(system)[name] == before[name] for name in ("", "_deferred")):
        time.sleep(0.02)
    # Pings while minions authenticate would use processor time of both.
    while counted(system)[""] - before[""] < minions and time.time() - began < 120:
        time.sleep(0.5)
    took = until_answered(system, minions, began)
    found = {"act": acted, "all": took, "processor": processor(master().pid) - used, "memory": pss(master())}
    after = counted(system)
    for name, what in ("", "accepted"), ("_refused", "refused"), ("_deferred", "deferred"):
        found[what] = after[name] - before[name]
    time.sleep(max(0, began + LATER - time.time()))
    later, used = counted(system), processor(master().pid)
    time.sleep(REST)
    rest = counted(system)
    found["rest_refused"] = (rest["_refused"] - later["_refused"]) / REST
    found["rest_deferred"] = (rest["_deferred"] - later["_deferred"]) / REST
    found["rest_processor"] = (processor(master().pid) - used) / REST
    found["rest_memory"] = pss(master())
    return found


def measure(tool, brine, minions, deleted):
    # Deleted minions are not accepted again, and there are no reactions to the start of minions.
    system = System("brine", tool, reactor=[("bench/go", "go")], options={"max_open_files": 20000, "max_pending_keys": 0})
    found = {}
    try:
        system.start_master()
        start_swarm(system, brine, minions)

        def master():
            return system.running[0]

        def delete(*ids):
            subprocess.run(system.command("salt-key", "-y", "-d", ",".join(ids)), check=True, stdout=subprocess.DEVNULL)

        def restart():
            old = system.running.pop(0)
            os.killpg(old.pid, signal.SIGKILL)
            old.wait()
            system.start_master()
            system.running.insert(0, system.running.pop())

        steps = [
            ("one", lambda: delete("fleet-0"), 1, False),
            ("many", lambda: delete(*(f"fleet-{n}" for n in range(1, deleted + 1))), deleted, False),
            ("restart", restart, 0, True),
        ]
        left = minions
        for name, act, gone, fresh in steps:
            left -= gone
            found[name] = burst(system, master, left, act, fresh)
            print(name, json.dumps({key: round(value, 3) for key, value in found[name].items()}), flush=True)
        return found
    finally:
        system.stop()


def main():
    parser = arguments(__doc__)
    parser.add_argument("--minions", type=int)
    parser.add_argument("--deleted", type=int)
    options = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    usual = (60, 20) if options.quick else (MINIONS, DELETED)
    minions, deleted = options.minions or usual[0], options.deleted or usual[1]
    found = measure(tools(options)["brine"], options.brine, minions, deleted)
    results.store("rotation", {"minions": minions, "deleted": deleted, **found}, options.quick)


if __name__ == "__main__":
    main()
