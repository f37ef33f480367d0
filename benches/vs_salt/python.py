"""Measures custom Python modules on a minion: the first call and later ones, `salt-call` of a function that only the
package `salt` has, and the memory of an idle minion with synced modules."""

import os
import statistics
import subprocess
import time

import results
from reacting import arguments, tools
from system import System, pss

CALLS = 1000
# A function of Salt that Brine does not have.
PACKAGE = "test.stack"


def seconds(command, runs):
    """Returns the median duration of a command that must succeed."""
    def once():
        began = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        took = time.perf_counter() - began
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        return took

    once()
    return statistics.median(once() for _ in range(runs))


def measure(kind, tool, options):
    """Returns the durations of commands in seconds, and the memory in MB."""
    runs, found = 3 if options.quick else 15, {}
    host = {"path": os.path.join(os.path.abspath(options.salt), "python")} if kind == "brine" else {}
    system = System(kind, tool, options={"auto_accept": True})
    try:
        system.write("srv/_modules/own.py", "def nothing(value=None):\n    return value\n")
        for n in range(20):
            system.write(f"srv/_modules/more{n}.py", "def nothing():\n    return None\n" * 50)
        system.start_master()
        minion = system.start("salt-minion", minion=True)
        ping = system.command("salt", "m1", "test.ping", "--out=txt", "-t", "5")
        while "True" not in subprocess.run(ping, capture_output=True, text=True, check=False).stdout:
            time.sleep(0.5)
        time.sleep(5)
        found["without"] = pss(minion)
        subprocess.run(system.command("salt", "m1", "saltutil.sync_modules"), capture_output=True, check=True)
        time.sleep(5)
        found["with"] = pss(minion)

        def call(*words, more=()):
            return seconds(system.command("salt-call", "--local", *more, *words, minion=True), runs)

        # Later calls: the difference between a template with many calls of a function and one with a single call.
        def loop(function, count):
            text = "{% for n in range(" + str(count) + ") %}{% do salt['" + function + "'](n) %}{% endfor %}a: 1"
            return call("slsutil.renderer", f"string={text}")

        found["ping"] = call("test.ping")
        found["first"] = call("own.nothing")
        for name, function in ("own", "own.nothing"), ("built_in", "test.echo"):
            found[name] = (loop(function, CALLS + 1) - loop(function, 1)) / CALLS
        if host:
            with open(f"{system.root}/min/minion", "a") as out:
                out.write(f"\npython_fallback: True\npython_host: {{path: {host['path']}}}\n")
        found["package"] = call(PACKAGE)
    finally:
        system.stop()
    return found


def main():
    options = arguments(__doc__).parse_args()
    found = {kind: measure(kind, tool, options) for kind, tool in tools(options).items()}
    results.store("python", found | {"calls": CALLS, "function": PACKAGE}, options.quick)


if __name__ == "__main__":
    main()
