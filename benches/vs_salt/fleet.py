"""Measures masters with fleets of simulated minions (`brine swarm`): the time until all have joined with new keys, the
duration of `salt '*' test.ping` over all of them, and the master's memory after that."""

import json
import os
import pathlib
import resource
import signal
import subprocess
import time

import results
from limits import rsa_private_operations
from reacting import arguments, tools
from system import System, pss

SIZES = (100, 500, 1000)
LARGE = 9000
PINGS = 3
# The time after which a master has returned the memory of a burst.
SETTLED = 15  # seconds
# The timeout for minions to answer a restarted master.
RESTART_TIMEOUT = 300  # seconds


def swarm(system, brine, minions, prefix):
    """Starts a swarm, waits until all its minions have joined, and returns the seconds that this took."""
    words = [brine, "swarm", "--port", str(system.ret), "--minions", str(minions), "--prefix", prefix, "--json"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)
    system.running.append(process)
    line = process.stdout.readline()
    if not line:
        raise SystemExit(f"the swarm has ended:\n{system.logs()}")
    return json.loads(line)["seconds"]


def ping(system, minions):
    """Returns the duration of `salt '*' test.ping` in seconds. All minions must answer."""
    words = system.command("salt", "*", "test.ping", "--static", "--out=json", "-t", "120")
    began = time.time()
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    took = time.time() - began
    answered = sum(1 for value in json.loads(done.stdout or "{}").values() if value is True)
    if answered != minions:
        raise SystemExit(f"{answered} of {minions} answered\n{done.stderr[-2000:]}\n{system.logs()}")
    return took


def processor(root):
    """Returns the processor time of a process and its descendants, in seconds."""
    children, used = {}, {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(entry.name))
        used[int(entry.name)] = int(fields[11]) + int(fields[12])
    family, total = [root], 0
    while family:
        one = family.pop()
        total += used.get(one, 0)
        family += children.get(one, [])
    return total / os.sysconf("SC_CLK_TCK")


def connected(port):
    """Returns the number of connections to a port of this host."""
    # `ss` and not the lists in /proc: reading those takes so long that it would disturb the measurement.
    words = ["ss", "--no-header", "--tcp", "--numeric", "state", "established", f"( sport = :{port} )"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.count("\n")


def restart(system, minions):
    """Kills the master and starts it again. Returns the seconds until all minions are connected and until all have
    answered a ping, and the master's processor time."""
    master = system.running.pop(0)
    os.killpg(master.pid, signal.SIGKILL)
    master.wait()
    # Wait until the connections of the killed master are closed.
    while connected(system.publish):
        time.sleep(0.02)
    began = time.time()
    system.start_master()
    # The master is the first process again.
    master = system.running.pop()
    system.running.insert(0, master)
    while connected(system.publish) < minions:
        time.sleep(0.25)
        if time.time() - began > RESTART_TIMEOUT:
            raise SystemExit(f"not all of {minions} are connected after the restart\n{system.logs()}")
    reconnect = time.time() - began
    words = system.command("salt", "*", "test.ping", "--static", "--out=json", "-t", "2")
    while True:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        try:
            answered = sum(1 for value in json.loads(done.stdout or "{}").values() if value is True)
        except ValueError:
            answered = 0
        took = time.time() - began
        if answered == minions:
            return {"reconnect": reconnect, "restart": took, "restart_processor": processor(master.pid)}
        if took > RESTART_TIMEOUT:
            raise SystemExit(f"{answered} of {minions} answered after the restart\n{system.logs()}")


def swarm_master(kind, tool):
    """Returns a master for a swarm."""
    # No reactions to the start of minions: each would publish a job, which all other minions receive, too.
    return System(kind, tool, reactor=[("bench/go", "go")], options={"auto_accept": True, "max_open_files": 20000})


def measure(kind, tool, brine, minions):
    """Returns the durations until this number of minions has joined and of a ping, and the master's memory in MB."""
    system = swarm_master(kind, tool)
    try:
        system.start_master()
        master = system.running[0]
        time.sleep(2)
        before = processor(master.pid)
        join = swarm(system, brine, minions, "fleet-")
        used = {"master_processor": processor(master.pid) - before, "swarm_processor": processor(system.running[-1].pid)}
        pings = sorted(ping(system, minions) for _ in range(PINGS + 1))
        memory = pss(master)
        time.sleep(SETTLED)
        found = {"join": join, "ping": pings[PINGS // 2], "memory": memory, "settled": pss(master)} | used
        return found | restart(system, minions)
    finally:
        system.stop()


def main():
    parser = arguments(__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--large", type=int, default=LARGE, help="for Brine alone; 0 for none")
    options = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    sizes = [20] if options.quick else options.sizes
    found = {"salt": {}, "brine": {}}
    for kind, tool in tools(options).items():
        large = [] if options.quick or kind == "salt" or not options.large else [options.large]
        for minions in [*sizes, *large]:
            one = found[kind][str(minions)] = measure(kind, tool, options.brine, minions)
            form = "{kind}, {minions:,} minions: in after {join:.2f} s, ping {ping:.3f} s, master {memory:.1f} MB"
            print(form.format(kind=kind, minions=minions, **one), flush=True)
    found["rsa"] = rsa_private_operations()
    results.store("fleet", found, options.quick)


if __name__ == "__main__":
    main()
