"""Limits of this machine, measured beside Brine: events/s of a forwarder without a journal, the times of a write to
disk and of reading files, and RSA operations per second."""

import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import bus

# libzmq's own forwarder. As Brine's bus, it makes the publisher wait for the subscribers and loses nothing. PUB and not
# XPUB: the proxy would poll the subscriptions, which PULL does not accept, without a pause.
FORWARD = """
import sys, zmq
context = zmq.Context()
pull, publish = context.socket(zmq.PULL), context.socket(zmq.PUB)
publish.setsockopt(zmq.XPUB_NODROP, 1)
pull.bind(f"ipc://{sys.argv[1]}/master_event_pull.ipc"); publish.bind(f"ipc://{sys.argv[1]}/master_event_pub.ipc")
print("ready", flush=True)
zmq.proxy(pull, publish)
"""
RSA_SECONDS = 2


class Forwarder:
    """A forwarder with the sockets of Brine's bus, for the functions of bus.py."""

    kind = "brine"

    def __init__(self):
        self.root = tempfile.mkdtemp(prefix="vs-", dir="/tmp")
        os.mkdir(f"{self.root}/run")
        command = [sys.executable, "-c", FORWARD, f"{self.root}/run"]
        self.running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True)]
        if self.running[0].stdout.readline() != "ready\n":
            raise SystemExit("the forwarder has not started")

    def stop(self):
        for process in self.running:
            process.kill()
            process.wait()
        shutil.rmtree(self.root)


@contextlib.contextmanager
def forwarder():
    one = Forwarder()
    try:
        yield one
    finally:
        one.stop()


def bus_without_journal(count):
    """Returns the events/s of the forwarder, with one publishing and one subscribed process."""
    with forwarder() as system:
        return bus.rate(system, count)


def fdatasync(directory, count=200):
    """Returns the median and the 99th percentile of a write of 4 kB that waits for the disk, in seconds."""
    block, took = os.urandom(4096), []
    with tempfile.TemporaryFile(dir=directory) as file:
        for _ in range(count + 1):
            began = time.perf_counter()
            os.pwrite(file.fileno(), block, 0)
            os.fdatasync(file.fileno())
            took.append(time.perf_counter() - began)
    # The first write extends the file.
    took = sorted(took[1:])
    return {"median": statistics.median(took), "p99": took[count * 99 // 100]}


def reading(paths):
    """Returns the duration of one `lstat` and one read of each file, in seconds; the median of five passes."""

    def once():
        began = time.perf_counter()
        for path in paths:
            os.lstat(path)
            file = os.open(path, os.O_RDONLY)
            os.read(file, 1 << 20)
            os.close(file)
        return time.perf_counter() - began

    return statistics.median(once() for _ in range(5))


def rsa_private_operations(bits=2048):
    """Returns the RSA private operations per second on all processors; `None` without `openssl`."""
    if not shutil.which("openssl"):
        return None
    words = ["openssl", "speed", "-mr", "-seconds", str(RSA_SECONDS), "-multi", str(os.cpu_count()), f"rsa{bits}"]
    lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    # The last line has the sum of all processes: a number, the bits, private and public operations per second.
    return float(next(line for line in reversed(lines) if line.startswith("+F2:")).split(":")[3])
