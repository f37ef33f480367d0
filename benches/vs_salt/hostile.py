"""Measures the memory of Brine's master under unauthenticated peers and endless templates, and commands meanwhile."""

import contextlib
import multiprocessing
import resource
import socket
import statistics
import struct
import subprocess
import time

import results
from reacting import arguments, tools
from system import System

IDLE = 9000
PER_ADDRESS = 450
BOMB = 62 << 20
HALVES = 40
PINGS = 10
# Reactor SLS files with unlimited output, by description.
TEMPLATES = {
    "a text that is doubled 60 times": (
        "{% set ns = namespace(s='x') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}"
    ),
    "captured text without end": (
        "{% set x %}{% for i in range(100000) %}{% for j in range(100000) %}" + "x" * 1000
        + "{% endfor %}{% endfor %}{% endset %}"
    ),
}


def greeting(kind=b"REQ"):
    """Returns a ZMTP 3.0 greeting with the mechanism NULL, followed by READY."""
    head = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
    ready = b"\x05READY\x0bSocket-Type" + struct.pack(">I", len(kind)) + kind
    return head + bytes([4, len(ready)]) + ready


def frame(size):
    """Returns the header of a last frame of this size."""
    return b"\x02" + struct.pack(">Q", size)


def connect(port, number):
    """Connects from an address of its own for each PER_ADDRESS connections, and finishes the handshake."""
    peer = socket.socket()
    peer.bind((f"127.0.0.{2 + number // PER_ADDRESS}", 0))
    peer.connect(("127.0.0.1", port))
    peer.sendall(greeting())
    return peer


def anonymous(pid):
    """Returns the anonymous memory of a process, in MB."""
    with open(f"/proc/{pid}/smaps_rollup") as rollup:
        return next(int(line.split()[1]) for line in rollup if line.startswith("Anonymous:")) / 1024


def peak(pid):
    """Returns the highest resident memory of a process since `forget_peak`, in MB."""
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 1024


def forget_peak(pid):
    with open(f"/proc/{pid}/clear_refs", "w") as refs:
        refs.write("5")
    return peak(pid)


def pings(system):
    """Returns the median and the highest time of `salt m1 test.ping`, in ms."""
    times = []
    for _ in range(PINGS):
        began = time.monotonic()
        done = subprocess.run(system.command("salt", "m1", "test.ping", "--out=txt"), capture_output=True, text=True)
        times.append((time.monotonic() - began) * 1000)
        if done.stdout.strip() != "m1: True":
            raise SystemExit(f"no answer: {done.stdout}{done.stderr}\n{system.logs()}")
    return {"median": statistics.median(times), "most": max(times)}


@contextlib.contextmanager
def started(tool, sls="{}"):
    """A master, and a minion that it has accepted."""
    options = {"auto_accept": True, "max_connections": 4 * IDLE, "max_connections_per_address": 2 * PER_ADDRESS}
    system = System("brine", tool, [("bench/endless", "endless")], options)
    try:
        system.write("reactor/endless.sls", sls)
        system.start_master()
        system.start("salt-minion", minion=True)
        until = time.monotonic() + 60
        while subprocess.run(system.command("salt", "m1", "test.ping", "-t", "1"), capture_output=True).returncode:
            if time.monotonic() > until:
                raise SystemExit(f"the minion does not answer\n{system.logs()}")
        pings(system)
        yield system, system.running[0].pid
    finally:
        system.stop()


def hold(port, ready, done, still):
    """Holds the idle connections in a process of its own: a process with many open files starts programs slowly."""
    peers = [connect(port, number) for number in range(IDLE)]
    # The master has read all greetings when it has answered the last one.
    for peer in peers:
        while len(peer.recv(4096, socket.MSG_PEEK)) < 64:
            time.sleep(0.01)
    ready.set()
    done.wait()
    for peer in peers:
        peer.setblocking(False)
    still.value = sum(1 for peer in peers if not closed(peer))


def idle(tool):
    with started(tool) as (system, pid):
        found = {"before": anonymous(pid), "quiet": pings(system)}
        ready, done, still = multiprocessing.Event(), multiprocessing.Event(), multiprocessing.Value("i", 0)
        holder = multiprocessing.Process(target=hold, args=(system.ret, ready, done, still), daemon=True)
        holder.start()
        if not ready.wait(120):
            raise SystemExit(f"not all connections were made\n{system.logs()}")
        found |= {"beside": pings(system), "with": anonymous(pid)}
        done.set()
        holder.join()
        found["open"] = still.value
    return found


def closed(peer):
    try:
        while peer.recv(65536):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        pass
    return True


def send(peer, *parts):
    """Sends until the master closes the connection."""
    with contextlib.suppress(ConnectionError, socket.timeout):
        peer.settimeout(10)
        for part in parts:
            peer.sendall(part)


def messages(tool):
    with started(tool) as (system, pid):
        found = {}
        # Each level claims to have 2^32 - 1 items.
        bomb = (b"\xdf\xff\xff\xff\xff" * 120).ljust(BOMB, b"\x01")
        for name, count, size in ("bomb", 1, BOMB), ("halves", HALVES, BOMB - (1 << 20)):
            before = forget_peak(pid)
            peers = [connect(system.ret, 0) for _ in range(count)]
            for peer in peers:
                send(peer, b"\x01\x00", frame(BOMB), bomb[:size])
            found[name] = {"before": before, "peak": peak(pid), "ping": pings(system)}
            for peer in peers:
                peer.close()
    return found


def templates(tool):
    found = {}
    for name, sls in TEMPLATES.items():
        with started(tool, sls) as (system, pid):
            before = forget_peak(pid)
            subprocess.run(system.command("salt-run", "event.send", "bench/endless"), capture_output=True, check=True)
            # The error of the render in the log marks the end of the reaction.
            until = time.monotonic() + 120
            while "template needs more than" not in open(f"{system.root}/master.log").read():
                if time.monotonic() > until:
                    raise SystemExit(f"{name}: the template does not end\n{system.logs()}")
                time.sleep(0.05)
            found[name] = {"before": before, "peak": peak(pid), "ping": pings(system)}
    return found


def main():
    options = arguments(__doc__).parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    brine = tools(options)["brine"]
    found = {"idle": idle(brine), "messages": messages(brine), "templates": templates(brine)}
    found["connections"] = IDLE
    results.store("hostile", found, options.quick)


if __name__ == "__main__":
    main()
