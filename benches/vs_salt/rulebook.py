"""Measures ansible-rulebook and Brine: events that match one rule, or one reactor entry, without an action.

ansible-rulebook generates its events itself and does nothing on a match (`action: none`); the duration of its start is
measured with a single event and subtracted. A Brine master receives as many events through its bus; the entry's SLS
file renders to nothing, except for the last event of each tag, whose reaction shows that all earlier events are
handled.
"""

import os
import re
import statistics
import subprocess
import tempfile
import time

import results
from reacting import arguments, load, reacting, tools

RULEBOOK = """\
- name: bench
  hosts: all
  sources:
    - eda.builtin.range:
        limit: {events}
  rules:
    - name: every event
      condition: event.i >= 0
      action:
        none:
"""
INVENTORY = "all:\n  hosts:\n    localhost:\n      ansible_connection: local\n"
LAST = "{% if data['last'] %}\nlast:\n  runner.test.arg:\n    - args:\n      - id: {{ data['id'] }}\n{% endif %}\n"
COMMAND = ["ansible-rulebook", "--rulebook", "bench.yml", "--inventory", "inventory.yml"]


def program(programs, *words, **how):
    """Runs ansible-rulebook from this directory of programs."""
    environment = os.environ | {"PATH": f"{os.path.abspath(programs)}:{os.environ['PATH']}"}
    return subprocess.run(["ansible-rulebook", *words], env=environment, check=True, stdin=subprocess.DEVNULL, **how)


def seconds(directory, programs, events):
    """Returns the duration of ansible-rulebook for this number of events, including its start, in seconds."""
    for name, text in ("bench.yml", RULEBOOK.format(events=events)), ("inventory.yml", INVENTORY):
        with open(f"{directory}/{name}", "w") as out:
            out.write(text)
    began = time.monotonic()
    program(programs, *COMMAND[1:], cwd=directory)
    return time.monotonic() - began


def rulebook(programs, events, runs):
    """Returns the events per second of ansible-rulebook."""
    with tempfile.TemporaryDirectory(prefix="vs-", dir="/tmp") as directory:
        seconds(directory, programs, 1)
        start = statistics.median(seconds(directory, programs, 1) for _ in range(runs))
        print(f"ansible-rulebook: {start:.1f} s with one event", flush=True)
        return events / (statistics.median(seconds(directory, programs, events) for _ in range(runs)) - start)


def brine(tool, client, events, runs):
    """Returns the events per second of Brine."""
    with reacting("brine", tool, 1, sls=LAST) as system:
        load(system, client, events, last_only=True)
        rates = (events / load(system, client, events, last_only=True)["seconds"] for _ in range(runs))
        return statistics.median(rates)


def main():
    parser = arguments(__doc__)
    parser.add_argument("--rulebook", required=True, help="the directory of ansible-rulebook's programs")
    parser.add_argument("--events", type=int, default=20_000)
    options = parser.parse_args()
    runs = 1 if options.quick else 5
    # Brine handles as many events within a moment, so there is a longer run, too.
    long = options.events * (5 if options.quick else 50)
    versions = program(options.rulebook, "--version", stdout=subprocess.PIPE, text=True).stdout
    tool = tools(options)["brine"]
    found = {
        "events": options.events,
        "long": long,
        "command": " ".join(COMMAND),
        "source": RULEBOOK.format(events=options.events),
        "java": re.search("Java version = .*", versions)[0].replace("version = ", ""),
        "rulebook": rulebook(options.rulebook, options.events, runs),
        "brine": brine(tool, options.client, options.events, runs),
        "brine_long": brine(tool, options.client, long, min(runs, 3)),
    }
    for name in "rulebook", "brine", "brine_long":
        print(f"{name}: {found[name]:,.0f} events/s")
    results.store("rulebook", found, options.quick)


if __name__ == "__main__":
    main()
