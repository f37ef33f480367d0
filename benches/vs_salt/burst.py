"""Fires a burst of events at Brine's master whose reactions take 100 ms each, and a tenth of it at another one.

All events must have their reaction, and the ten times larger burst must not take more of the master's memory: what
waits has to wait in the journal.
"""

import results
from reacting import CALL, arguments, load, reacting, tools

SLS = "wait:\n  runner.test.sleep:\n    - s_time: 0.1\n" + CALL


def burst(tool, client, events, threads):
    """What came of a burst, and the master's memory in KiB before, at its highest, and at the end."""
    sizes = []

    def look(at, size):
        sizes.append(size)
        if len(sizes) % 10 == 1:
            print(f"{events:,} events: {at:6.0f} s {size:10,.0f} KiB", flush=True)

    with reacting("brine", tool, 1, sls=SLS, options={"reactor_worker_threads": threads}) as system:
        found = load(system, client, events, each=look)
    names = ("expected", "seen", "again", "firing", "seconds", "rate")
    return {name: found[name] for name in names} | {"before": sizes[0], "peak": max(sizes), "after": sizes[-1]}


def main():
    parser = arguments(__doc__)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--threads", type=int, default=100, help="reactor_worker_threads")
    options = parser.parse_args()
    events = options.events // 20 if options.quick else options.events
    brine = tools(options)["brine"]
    small, large = (burst(brine, options.client, count, options.threads) for count in (events // 10, events))
    # What a master takes for any burst is in both.
    more = large["peak"] - small["peak"]
    found = {
        "threads": options.threads,
        "small": small,
        "large": large,
        "bytes": more * 1024 / (large["expected"] - small["expected"]),
        "handled": large["seen"] == large["expected"],
    }
    print(
        f"{large['seen']:,} of {large['expected']:,} handled, {large['again']:,} once more, in {large['seconds']:.0f} s; "
        f"{found['bytes']:,.1f} bytes of memory for each event more than in the smaller burst"
    )
    results.keep("burst", found, options.quick)


if __name__ == "__main__":
    main()
