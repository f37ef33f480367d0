"""Measures the reactors: how many reactions a second, and how long from the event to the reaction's own event.

One entry matches, all others do not; the one calls a runner with the event's number. First the full load: events are
fired as fast as the bus takes them, and the time counts from the first event to the last reaction. Then the time of
each reaction, at half of that load, fired steadily.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import results
from system import System

ENTRIES = (1, 100, 5000)
CALL = "go:\n  runner.test.arg:\n    - args:\n      - id: {{ data['id'] }}\n"


def reacting(kind, tool, entries, pattern="bench/go/*", sls=CALL):
    """A started master with so many reactor entries, of which the last has this pattern and this SLS file."""
    others = [(f"bench/no/{n}/*", "load") for n in range(entries - 1)]
    system = System(kind, tool, [*others, (pattern, "load")])
    system.write("reactor/load.sls", sls)
    try:
        system.start_master()
        # Salt's ports are open before its reactor follows the bus.
        time.sleep(5 if kind == "salt" else 0.5)
    except BaseException:
        system.stop()
        raise
    return system


def load(system, client, count, **words):
    """Runs the client; what it says, with the rate of reactions added."""
    if system.kind == "salt":
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "load.py")
        command = [sys.executable, "-W", "ignore", script, "--etc", f"{system.root}/etc"]
    else:
        command = [client, "--sock", f"{system.root}/run"]
    command += ["--count", str(count)]
    for word, value in words.items():
        command += [f"--{word.replace('_', '-')}"] + ([] if value is True else [str(value)])
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
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


def measure(kind, tool, client, entries, quick):
    """Reactions a second, and the milliseconds that one takes at half that load."""
    system = reacting(kind, tool, entries)
    try:
        full = full_load(system, client, quick)
    finally:
        system.stop()
    # A master of its own: the backlog of the floods is not what is looked for here.
    system = reacting(kind, tool, entries)
    try:
        for seconds in 2, 5 if quick else 30:
            steady = load(system, client, max(20, int(full / 2 * seconds)), rate=full / 2)
    finally:
        system.stop()
    found = {name: steady[name] for name in ("median", "p99", "max", "fired", "seen")}
    return found | {"full": full, "asked": full / 2, "kept": steady["fired"] / steady["firing"]}


def ceiling(kind, tool, client, quick):
    """What client and bus do without the reactor: the client fires what a reaction would have fired too."""
    system = reacting(kind, tool, 1, pattern="bench/no/*")
    try:
        return full_load(system, client, quick, echo=True)
    finally:
        system.stop()


def arguments(description):
    """What all measures are told, and the tools that follow from it."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--salt", help="Salt's folder of programs")
    parser.add_argument("--brine", default="target/release/brine")
    parser.add_argument("--client", default="target/release/examples/load", help="the load client")
    parser.add_argument("--quick", action="store_true", help="shorter runs, nothing written")
    return parser


def tools(options):
    brine = os.path.abspath(options.brine)
    return {
        "salt": lambda tool: [os.path.join(options.salt, tool)],
        "brine": lambda tool: [brine, tool],
    }


def main():
    parser = arguments(__doc__)
    parser.add_argument("--only", choices=("salt", "brine"))
    parser.add_argument("--entries", type=int, nargs="*", default=ENTRIES)
    options = parser.parse_args()
    found = {}
    for kind, tool in tools(options).items():
        if options.only in (None, kind):
            found[kind] = {"ceiling": ceiling(kind, tool, options.client, options.quick)}
            print(f"{kind}, client and bus alone: {found[kind]['ceiling']:,.0f} reactions/s", flush=True)
            for entries in options.entries:
                one = found[kind][str(entries)] = measure(kind, tool, options.client, entries, options.quick)
                print(f"{kind}, {entries} entries: {one}", flush=True)
    if not (options.quick or options.only):
        results.keep("reactor", found)


if __name__ == "__main__":
    main()
