"""Measures ansible-rulebook beside Brine: events that match one rule, or one reactor entry, and lead to nothing.

ansible-rulebook generates its events itself and does nothing on a match (`action: none`); what its start takes is
measured with a single event and taken off. A Brine master gets as many events through its bus; the entry's SLS file
renders to nothing, except for the last event of each tag, whose reaction says that all before it have been done.
"""

import os
import shutil
import statistics
import subprocess
import tempfile
import time

import results
from reactor import arguments, load, reacting, tools

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


def seconds(folder, programs, events):
    """How long ansible-rulebook takes for so many events, its start included."""
    for name, text in ("bench.yml", RULEBOOK.format(events=events)), ("inventory.yml", INVENTORY):
        with open(f"{folder}/{name}", "w") as out:
            out.write(text)
    environment = os.environ | {"PATH": f"{os.path.abspath(programs)}:{os.environ['PATH']}"}
    began = time.monotonic()
    subprocess.run(COMMAND, cwd=folder, env=environment, check=True, stdin=subprocess.DEVNULL)
    return time.monotonic() - began


def rulebook(programs, events, runs):
    """Events a second."""
    folder = tempfile.mkdtemp(prefix="vs-", dir="/tmp")
    try:
        seconds(folder, programs, 1)
        start = statistics.median(seconds(folder, programs, 1) for _ in range(runs))
        return events / (statistics.median(seconds(folder, programs, events) for _ in range(runs)) - start)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def brine(tool, client, events, runs):
    """Events a second."""
    system = reacting("brine", tool, 1, sls=LAST)
    try:
        load(system, client, events, last_only=True)
        return statistics.median(
            events / load(system, client, events, last_only=True)["seconds"] for _ in range(runs)
        )
    finally:
        system.stop()


def main():
    parser = arguments(__doc__)
    parser.add_argument("--rulebook", required=True, help="ansible-rulebook's folder of programs")
    parser.add_argument("--events", type=int, default=20_000)
    options = parser.parse_args()
    runs = 1 if options.quick else 5
    found = {
        "events": options.events,
        "command": " ".join(COMMAND),
        "source": RULEBOOK.format(events=options.events),
        "rulebook": rulebook(options.rulebook, options.events, runs),
        "brine": brine(tools(options)["brine"], options.client, options.events, runs),
        # As many again and again: what a run that is over in a moment cannot show.
        "brine_long": brine(tools(options)["brine"], options.client, options.events * 50, 1 if options.quick else 3),
    }
    print(found)
    if not options.quick:
        results.keep("rulebook", found)


if __name__ == "__main__":
    main()
