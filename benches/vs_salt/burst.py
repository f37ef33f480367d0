"""Fires a burst of events at Brine's master whose reactions take 100 ms each, and a quarter of it at another one.

All events must have their reaction, and what waits has to wait in the journal: while four times as many are waiting, the
master's memory must be about the same. That is looked at while the smaller burst lasts, as memory that grows with time
is not what is looked for here (soak.py does that).
"""

import results
from reacting import CALL, arguments, load, reacting, tools

# An event in memory would take more bytes than this: packed it has 170.
BOUND = 85
# Fewer events fit into memory by intention: the bus keeps 32,768, and reactor_worker_hwm is 10,000.
TELLING = 45_000
SLS = "wait:\n  runner.test.sleep:\n    - s_time: 0.1\n" + CALL


def burst(tool, client, events, threads):
    """What came of a burst, and the master's memory in KiB each second."""
    sizes = []

    def look(at, size):
        sizes.append(size)
        if len(sizes) % 10 == 1:
            print(f"{events:,} events: {at:6.0f} s {size:10,.0f} KiB", flush=True)

    with reacting("brine", tool, 1, sls=SLS, options={"reactor_worker_threads": threads}) as system:
        found = load(system, client, events, each=look)
    names = ("expected", "seen", "again", "firing", "seconds", "rate")
    return {name: found[name] for name in names} | {"sizes": sizes}


def verdict(small, large, more):
    """Whether what waits is kept in memory, in words."""
    if small["expected"] < TELLING:
        return "too small a burst to tell"
    return "what waits is HELD in memory" if more > BOUND else "what waits is not held in memory"


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
    results.keep("burst", found, options.quick)


if __name__ == "__main__":
    main()
