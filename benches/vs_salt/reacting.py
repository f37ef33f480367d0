"""A master with reactor entries, and the load for measurements of its reactions."""

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
    """Starts a master with this number of reactor entries, of which the last has this pattern and this SLS file."""
    others = [(f"bench/no/{n}/*", "load") for n in range(entries - 1)]
    system = System(kind, tool, [*others, (pattern, "load")], options)
    try:
        system.write("reactor/load.sls", sls)
        system.start_master()
        # Salt's ports are open before its reactor subscribes to the bus.
        time.sleep(5 if kind == "salt" else 0.5)
        yield system
    finally:
        system.stop()


def load(system, client, count, each=None, every=1.0, **words):
    """Runs the client and returns its results, with the rate of reactions. `each` is called with the seconds since the
    start and the master's memory in KiB, at the start and then every `every` seconds until the client ends."""
    if system.kind == "salt":
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "load.py")
        command = [sys.executable, "-W", "ignore", script, "--etc", f"{system.root}/etc"]
    else:
        command = [client, "--sock", f"{system.root}/run"]
    command += ["--count", str(count)]
    for word, value in words.items():
        command += [f"--{word.replace('_', '-')}"] + ([] if value is True else [str(value)])
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    began, samples = time.monotonic(), 0
    try:
        while True:
            if each:
                each(time.monotonic() - began, pss(system.running[0]) * 1024)
            samples += 1
            try:
                wait = max(0, began + samples * every - time.monotonic()) if each else None
                output, _ = process.communicate(timeout=wait)
                break
            except subprocess.TimeoutExpired:
                continue
    finally:
        # The Python client has a publisher process.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.returncode:
        sys.exit(f"the load client ended with {process.returncode}: {' '.join(command)}\n{system.logs()}")
    found = json.loads(output)
    if found["seen"] < found["expected"] or found["again"]:
        print(f"! {system.kind}: {found['seen']} of {found['expected']} reactions seen, {found['again']} once more")
    return found | {"rate": found["seen"] / max(found["seconds"], 1e-9)}


def full_load(system, client, quick, **words):
    """Returns the median rate of some runs of about ten seconds each. A first run warms up and determines the number of
    events."""
    count = 60 if system.kind == "salt" else 20_000
    count = load(system, client, count, **words)["rate"] * (2 if quick else 10)
    count = int(min(max(count, 20), 1_000_000))
    return statistics.median(load(system, client, count, **words)["rate"] for _ in range(1 if quick else 3))


def arguments(description):
    """Returns a parser with the options of all measurements."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--salt", help="the directory of Salt's programs")
    parser.add_argument("--brine", default="target/release/brine")
    parser.add_argument("--client", default="target/release/examples/load", help="the load client")
    parser.add_argument("--quick", action="store_true", help="shorter runs, docs/benchmarks.md stays as it is")
    return parser


def tools(options):
    """Returns, by kind, functions from the name of a tool to its command."""
    brine = os.path.abspath(options.brine)
    return {
        "salt": lambda tool: [os.path.join(options.salt, tool)],
        "brine": lambda tool: [brine, tool],
    }
