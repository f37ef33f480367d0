"""Measures the REST API: salt-api of both sides beside a master and one minion, by plain HTTP.

Requests: the latency of consecutive requests, and the rate over several connections. Streams: the memory of the API for
each subscriber of /events, and the time from a webhook to the last subscriber. Brine is also measured with 10,000
subscribers, 100,000 calls, TLS, and peers that send their requests slowly.
"""

import contextlib
import json
import multiprocessing
import os
import resource
import statistics
import subprocess
import time

import results
from clients import Connection, rate, slow_peers, subscribed
from fleet import processor
from limits import fdatasync
from reacting import arguments, tools
from system import System, free_port

# The number of requests by kind, which takes each API a few seconds.
REQUESTS = {"salt": 60, "brine": 2_000}
# The number of subscribers by kind. Salt needs a thread for each stream, and has 100 (`thread_pool`).
SUBSCRIBERS = {"salt": 50, "brine": 10_000}
TLS_SUBSCRIBERS = 1_000
EVENTS = 20
CALLS = 100_000
PARALLEL = 8
SECONDS = 10
SLOW_PEERS = 5_000
# The seconds after which an allocator has returned the memory of a burst.
SETTLED = 5

LOGIN = {"username": "bench", "password": "secret", "eauth": "sharedsecret"}
PING = {"client": "local", "tgt": "m1", "fun": "test.ping"}


def family(root):
    """Returns the PIDs of a process and its descendants."""
    children = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    pairs = [tuple(map(int, line.split())) for line in children.splitlines()]
    found = {root}
    while more := {pid for pid, parent in pairs if parent in found} - found:
        found |= more
    return found


def anonymous(root):
    """Returns the anonymous memory of a process and its descendants, in bytes."""
    total = 0
    for pid in family(root):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup") as rollup:
            total += next(int(line.split()[1]) for line in rollup if line.startswith("Anonymous:")) * 1024
    return total


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


class Api:
    """A started API with a master and its minion."""

    def __init__(self, kind, tool, tls=False):
        self.port = free_port()
        rest = {"host": "127.0.0.1", "port": self.port, "webhook_disable_auth": True, "disable_ssl": not tls}
        options = {
            "auto_accept": True,
            "netapi_enable_clients": ["local", "local_async", "runner", "wheel"],
            "external_auth": {"sharedsecret": {"bench": [".*", "@runner", "@wheel"]}},
            "sharedsecret": "secret",
            "rest_cherrypy": rest,
        }
        self.tls = tls
        self.system = System(kind, tool, [("bench/none", "none")], options)
        self.system.start_master()
        self.system.start("salt-minion", minion=True)
        self.process = self.system.start("salt-api")
        until = time.monotonic() + 60
        while True:
            # `return` is text, so a TypeError, while the master does not answer the API yet.
            with contextlib.suppress(OSError, KeyError, IndexError, TypeError, ValueError):
                self.session = self.connect().post("/login", LOGIN)["return"][0]["token"]
                if self.connect().post("/", PING, self.session)["return"][0] == {"m1": True}:
                    return
            if time.monotonic() > until:
                raise SystemExit(f"the API does not answer\n{self.system.logs()}")
            time.sleep(0.1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.system.stop()

    def connect(self):
        return Connection(self.port, self.tls)

    def memory(self):
        return anonymous(self.process.pid)


def times(count, once):
    """Returns the median and the 99th percentile of a call, in ms."""
    took = []
    for _ in range(count):
        began = time.perf_counter()
        once()
        took.append((time.perf_counter() - began) * 1000)
    took.sort()
    return {"median": statistics.median(took), "p99": took[len(took) * 99 // 100], "count": count}


def ping(api, connection, path, credentials, session=None):
    answer = connection.post(path, PING | credentials, session)
    if answer != {"return": [{"m1": True}]}:
        raise SystemExit(f"{path} answered {answer}\n{api.system.logs()}")


def requests(api, count):
    """Measures requests one after the other on one connection, and over several connections."""
    connection, found = api.connect(), {}
    token = connection.post("/token", LOGIN)[0]["token"]
    ping(api, connection, "/run", {"token": token})
    found["run"] = times(count, lambda: ping(api, connection, "/run", {"token": token}))
    found["password"] = times(count, lambda: ping(api, connection, "/run", LOGIN))
    found["session"] = times(count, lambda: ping(api, connection, "/", {}, api.session))
    found["login"] = times(min(count, 200), lambda: connection.post("/login", LOGIN))
    request = connection.request("POST", "/run", PING | {"token": token})
    before, began = processor(api.process.pid), time.monotonic()
    found["rate"] = rate(api.port, request, PARALLEL, SECONDS)
    found["processor"] = (processor(api.process.pid) - before) / (time.monotonic() - began)
    return found


def streams(api, count, events):
    """Measures subscribers of /events: the memory of each in bytes, and the time until the last one has an event."""
    time.sleep(SETTLED)
    before = api.memory()
    with subscribed(api.port, api.session, count, api.tls) as subscribers:
        time.sleep(SETTLED)
        silent = api.memory()
        connection, took = api.connect(), []
        for number in range(events):
            began = time.monotonic()
            connection.post(f"/hook/bench/{number}", {"data": "x" * 100})
            took.append(subscribers.last(f"bench/{number}") - began)
        time.sleep(SETTLED)
        after = api.memory()
    return {
        "count": count,
        "each": (silent - before) / count,
        "each_after": (after - before) / count,
        "median": statistics.median(took) * 1000,
        "most": max(took) * 1000,
    }


def calls(api, count):
    """Measures memory and descriptors of the API while it runs calls."""
    token = api.connect().post("/token", LOGIN)[0]["token"]
    request = api.connect().request("POST", "/run", PING | {"token": token})
    found, done = [], 0
    for until in (count // 10, count // 2, count):
        rate(api.port, request, PARALLEL, None, until - done)
        done = until
        time.sleep(SETTLED)
        found.append({"calls": done, "memory": api.memory(), "descriptors": descriptors(api.process.pid)})
    return found


def beside(api, count, subscribers, slow):
    """Measures requests beside silent subscribers and peers that send the heads of their requests byte by byte."""
    token = api.connect().post("/token", LOGIN)[0]["token"]
    connection = api.connect()

    def run():
        return times(count, lambda: ping(api, connection, "/run", {"token": token}))

    found = {"quiet": run(), "before": api.memory(), "followers": subscribers, "sluggish": slow}
    with subscribed(api.port, api.session, subscribers), slow_peers(api.port, slow) as peers:
        found |= {"beside": run(), "with": api.memory()}
        found["closed"] = peers.closed(40)
    return found


def measure(kind, tool, quick):
    brine, found = kind == "brine", {}
    few = 10 if quick else 1
    with Api(kind, tool) as api:
        time.sleep(SETTLED)
        found["idle"] = api.memory()
        found |= requests(api, REQUESTS[kind] // few)
        found["streams"] = streams(api, SUBSCRIBERS[kind] // few, EVENTS // few)
        if brine:
            found["disk"] = fdatasync(f"{api.system.root}/cache")
            found["calls"] = calls(api, CALLS // few)
            found["beside"] = beside(api, REQUESTS[kind] // few, SUBSCRIBERS[kind] // few, SLOW_PEERS // few)
    if brine:
        with Api(kind, tool, tls=True) as api:
            time.sleep(SETTLED)
            memory = api.memory()
            found["tls"] = streams(api, TLS_SUBSCRIBERS // few, EVENTS // few) | {"idle": memory}
    print(json.dumps({kind: found}), flush=True)
    return found


def main():
    parser = arguments(__doc__)
    parser.add_argument("--only", choices=["salt", "brine"], help="prints the figures of one side alone")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    # Clients are forked before they have threads or sockets of this process.
    multiprocessing.set_start_method("fork")
    found = {}
    for kind, tool in tools(options).items():
        if options.only in (None, kind):
            found[kind] = measure(kind, tool, options.quick)
    if not options.only:
        results.store("api", found, options.quick)


if __name__ == "__main__":
    main()
