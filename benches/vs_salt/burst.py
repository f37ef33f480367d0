"""Publishes a burst of events whose reactions take 100 ms each on a Brine master, and a quarter of it on another one.

All events must have their reaction, and must wait in the journal and not in memory: with four times as many waiting
events, the master's memory must be about the same. It is compared for the duration of the smaller burst, since growth
over time is measured by soak.py.
"""

import results
from reacting import CALL, arguments, load, reacting, tools

# The bytes for each event above which events count as held in memory: an event has 170 bytes packed.
MAX_BYTES = 85
# Fewer events than this are held in memory by design: 32,768 in the ring of the bus, and reactor_worker_hwm (10,000).
MIN_EVENTS = 45_000
SLS = "wait:\n  runner.test.sleep:\n    - s_time: 0.1\n" + CALL


def burst(tool, client, events, threads):
    """Returns the results of a burst, and the master's memory in KiB each second."""
    sizes = []

    def sample(at, size):
        sizes.append(size)
        if len(sizes) % 10 == 1:
            print(f"{events:,} events: {at:6.0f} s {size:10,.0f} KiB", flush=True)

    with reacting("brine", tool, 1, sls=SLS, options={"reactor_worker_threads": threads}) as system:
        found = load(system, client, events, each=sample)
    names = ("expected", "seen", "again", "firing", "seconds", "rate")
    return {name: found[name] for name in names} | {"sizes": sizes}


def verdict(small, large, more):
    """Describes whether waiting events are held in memory."""
    if small["expected"] < MIN_EVENTS:
        return "the burst is too small for a verdict"
    return "waiting events are HELD in memory" if more > MAX_BYTES else "waiting events are not held in memory"


def main():
    parser = arguments(__doc__)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--threads", type=int, default=100, help="reactor_worker_threads")
    options = parser.parse_args()
    events = options.events // 20 if options.quick else options.events
    brine = tools(options)["brine"]
    small, large = (burst(brine, options.client, count, options.threads) for count in (events // 4, events))
    for one in small, large:
        one["early"] = max(one["sizes"][: len(small["sizes"])])
    waiting = large["expected"] - small["expected"]
    more = (large["early"] - small["early"]) * 1024 / waiting
    found = {
        "threads": options.threads,
        "small": small,
        "large": large,
        "waiting": waiting,
        "more": more,
        "verdict": verdict(small, large, more),
    }
    print(
        f"{large['seen']:,} of {large['expected']:,} handled, {large['again']:,} once more, in "
        f"{large['seconds']:.0f} s; while {waiting:,} more are waiting, {more:,.0f} bytes more for each: "
        f"{found['verdict']}"
    )
    results.store("burst", found, options.quick)


if __name__ == "__main__":
    main()
