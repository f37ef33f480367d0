"""Measures a cluster of three masters on one NATS server, and a single master with as many simulated minions: the
duration of `salt '*' test.ping`, the latency of an event to the bus of another member, the time until reactions resume
after the leader is killed, and the returns of a job that are lost or duplicated while each member is killed in turn."""

import json
import os
import resource
import signal
import subprocess
import tempfile
import time

import results
from fleet import ping, swarm
from reacting import arguments
from system import System, free_port

MINIONS = 3000
PINGS = 5
EVENTS = 20
SECRET = "0123456789abcdef" * 4


class Nats:
    """A NATS server with JetStream."""

    def __init__(self):
        self.directory = tempfile.TemporaryDirectory(prefix="vs-nats-")
        self.port = free_port()
        words = ["nats-server", "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", self.directory.name]
        self.process = subprocess.Popen(words, stderr=subprocess.DEVNULL, start_new_session=True)

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.directory.cleanup()


def member(brine, name, nats=None):
    """Starts a master that accepts every key; with a NATS server, a member of the cluster."""
    options = {"auto_accept": True, "max_open_files": 20000, "id": name}
    if nats:
        secret = tempfile.NamedTemporaryFile("w", prefix="vs-secret-", delete=False)
        secret.write(SECRET)
        secret.close()
        servers = [f"nats://127.0.0.1:{nats.port}"]
        options["cluster"] = {"servers": servers, "member": name, "secret_file": secret.name, "lease": 2}
    system = System("brine", lambda tool: [brine, tool], reactor=[("bench/react", "react")], options=options)
    system.write("reactor/react.sls", """
        react:
          runner.event.send:
            - tag: bench/reacted
            - data: {number: {{ data['number'] }}}
        """)
    system.start_master()
    # The ports are open before the servers of the cluster have answered.
    while not metrics(system):
        time.sleep(0.1)
    return system


def metrics(system):
    return json.loads(run(system, "metrics.show", "--out=json") or "{}")


def run(system, *words):
    """Returns the output of a runner function."""
    done = subprocess.run(system.command("salt-run", *words), capture_output=True, text=True, check=False)
    return done.stdout


def accepted(system):
    """Returns the number of minions whose keys a member has, its own and those of other members."""
    words = system.command("salt-key", "-l", "acc", "--out=json")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return len(json.loads(done.stdout or "{}").get("minions", []))


def leads(system):
    return metrics(system).get("brine_cluster_leader") == 1


def subscribe(system, tag):
    """Starts a process that prints the events with a tag."""
    words = system.command("salt-run", "state.event", tag, "count=-1")
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)


def wait_for_event(listener, number):
    """Waits for the event with this number."""
    for line in listener.stdout:
        if f'"number": {number}' in line:
            return time.time()
    raise SystemExit("the events have ended")


def failover(members):
    """Returns the seconds from the kill of the leader to the reaction to an event of another member."""
    first = next(one for one in members if leads(one))
    other = next(one for one in members if one is not first)
    listener = subscribe(other, "bench/reacted")
    time.sleep(1)
    run(other, "event.send", "bench/react", "{number: 1}")
    wait_for_event(listener, 1)
    os.kill(first.running[0].pid, signal.SIGKILL)
    killed = time.time()
    run(other, "event.send", "bench/react", "{number: 2}")
    took = wait_for_event(listener, 2) - killed
    listener.kill()
    return took


def propagation(here, there):
    """Returns the seconds from the publication of an event on one bus to its arrival on another one, sorted."""
    listener, took = subscribe(there, "bench/far"), []
    time.sleep(1)
    own = subscribe(here, "bench/far")
    time.sleep(1)
    for number in range(EVENTS):
        run(here, "event.send", "bench/far", f"{{number: {number}}}")
        began = wait_for_event(own, number)
        took.append(wait_for_event(listener, number) - began)
    listener.kill()
    own.kill()
    return sorted(max(one, 0) for one in took)


def returns(system, jid):
    """Returns the number of minions whose return of a job is in a member's job cache."""
    return len(json.loads(run(system, "jobs.lookup_jid", jid, "--out=json") or "{}"))


def killed_in_turn(members, minions):
    """Kills each member while a job of another one runs on all minions, and starts it again. Returns the number of
    returns that the other member lacks after a minute, the number of those in two events, and the longest time until
    all arrived."""
    lost, doubled, slowest = 0, 0, 0
    for number, dying in enumerate(members):
        other = members[(number + 1) % len(members)]
        words = other.command("salt", "--async", "*", "test.ping")
        started = subprocess.run(words, capture_output=True, text=True, check=False).stdout
        jid = started.split("job ID: ")[1].split()[0]
        began = time.time()
        os.kill(dying.running[0].pid, signal.SIGKILL)
        dying.running[0].wait()
        dying.start_master()
        dying.running.insert(0, dying.running.pop())
        while returns(other, jid) < minions and time.time() - began < 60:
            time.sleep(0.2)
        slowest = max(slowest, time.time() - began)
        lost += minions - returns(other, jid)
        tags, since = {}, 1
        while page := json.loads(run(other, "event_bus.since", str(since), "limit=5000", "--out=json") or "[]"):
            since = page[-1]["seq"] + 1
            for event in page:
                if event["tag"].startswith(f"salt/job/{jid}/ret/"):
                    tags[event["tag"]] = tags.get(event["tag"], 0) + 1
        doubled += sum(1 for count in tags.values() if count > 1)
    return {"lost": lost, "doubled": doubled, "slowest": slowest}


def main():
    parser = arguments(__doc__)
    parser.add_argument("--minions", type=int, default=MINIONS)
    options = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    minions = 60 if options.quick else options.minions
    found, nats, systems = {"minions": minions}, Nats(), []
    try:
        single = member(options.brine, "single")
        systems.append(single)
        swarm(single, options.brine, minions, "one-")
        found["single"] = sorted(ping(single, minions) for _ in range(PINGS))[PINGS // 2]
        single.stop()
        systems.clear()
        for name in ("m1", "m2", "m3"):
            systems.append(member(options.brine, name, nats))
        for system, prefix in zip(systems, "abc"):
            swarm(system, options.brine, minions // 3, f"{prefix}-")
        began = time.time()
        while accepted(systems[0]) < minions:
            time.sleep(1)
            if time.time() - began > 300:
                raise SystemExit(f"the members do not know all minions\n{systems[0].logs()}")
        found["cluster"] = sorted(ping(systems[0], minions) for _ in range(PINGS))[PINGS // 2]
        far = propagation(systems[0], systems[1])
        found["far"], found["far_most"] = far[len(far) // 2], far[-1]
        found["killed"] = killed_in_turn(systems, minions)
        found["failover"] = failover(systems)
    finally:
        for system in systems:
            system.stop()
        nats.stop()
    print("{minions:,} minions: one master {single:.3f} s, three {cluster:.3f} s; event to another member {far:.4f} s "
          "(median), {far_most:.4f} s (most); reactions after the leader's death {failover:.2f} s".format(**found))
    print("each member killed under a job: {lost} returns lost, {doubled} in two events, the last after {slowest:.1f} s".format(
        **found["killed"]))
    found["profile"] = options.brine.split("/")[-2]
    results.store("cluster", found, options.quick)


if __name__ == "__main__":
    main()
