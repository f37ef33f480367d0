"""A master with reactor entries, and the load that its reactions are measured under."""

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import time

from system import System, pss

CALL = "go:\n  runner.test.arg:\n    - args:\n      - id: {{ data['id'] }}\n"


@contextlib.contextmanager
def reacting(kind, tool, entries, pattern="bench/go/*", sls=CALL, options=None):
    """A started master with so many reactor entries, of which the last has this pattern and this SLS file."""
    others = [(f"bench/no/{n}/*", "load") for n in range(entries - 1)]
    system = System(kind, tool, [*others, (pattern, "load")], options)
    try:
        system.write("reactor/load.sls", sls)
        system.start_master()
        # Salt's ports are open before its reactor follows the bus.
        time.sleep(5 if kind == "salt" else 0.5)
        yield system
    finally:
        system.stop()


def load(system, client, count, each=None, every=1.0, **words):
    """Runs the client; what it says, with the rate of reactions added. `each` is called with the seconds since the
    start and the master's memory in KiB, first of all and then every so many seconds until all reactions are seen."""
    if system.kind == "salt":
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "load.py")
        command = [sys.executable, "-W", "ignore", script, "--etc", f"{system.root}/etc"]
    else:
        command = [client, "--sock", f"{system.root}/run"]
    command += ["--count", str(count)]
    for word, value in words.items():
        command += [f"--{word.replace('_', '-')}"] + ([] if value is True else [str(value)])
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    began, looks = time.monotonic(), 0
    try:
        while True:
            if each:
                each(time.monotonic() - began, pss(system.running[0]) * 1024)
            looks += 1
            try:
                wait = max(0, began + looks * every - time.monotonic()) if each else None
                said, _ = process.communicate(timeout=wait)
                break
            except subprocess.TimeoutExpired:
                continue
    finally:
        # The Python client has a process that fires.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.returncode:
        sys.exit(f"the load client ended with {process.returncode}: {' '.join(command)}\n{system.logs()}")
    found = json.loads(said)
    if found["seen"] < found["expected"] or found["again"]:
        print(f"! {system.kind}: {found['seen']} of {found['expected']} reactions seen, {found['again']} once more")
    return found | {"rate": found["seen"] / max(found["seconds"], 1e-9)}


def full_load(system, client, quick, **words):
    """The median rate of some runs that last about ten seconds each; a first one finds out how many events that
    takes, and warms up."""
    count = 60 if system.kind == "salt" else 20_000
    count = load(system, client, count, **words)["rate"] * (2 if quick else 10)
    count = int(min(max(count, 20), 1_000_000))
    return statistics.median(load(system, client, count, **words)["rate"] for _ in range(1 if quick else 3))


def arguments(description):
    """What all measures are told."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--salt", help="Salt's folder of programs")
    parser.add_argument("--brine", default="target/dist/brine")
    parser.add_argument("--client", default="target/dist/examples/load", help="the load client")
    parser.add_argument("--quick", action="store_true", help="shorter runs, docs/benchmarks.md stays as it is")
    return parser


def tools(options):
    """By kind, how a tool of Salt's or Brine's is called."""
    brine = os.path.abspath(options.brine)
    return {
        "salt": lambda tool: [os.path.join(options.salt, tool)],
        "brine": lambda tool: [brine, tool],
    }
