"""Measures the reactors: reactions per second, and the latency from an event to the event of its reaction.

One entry matches and calls a runner with the event's number; all others do not match. First the full load: events are
published as fast as the bus accepts them, and the time counts from the first event to the last reaction. Then the
latency of each reaction, with events at a constant rate: half of the full load, and the full load.
"""

import results
from reacting import arguments, full_load, load, reacting, tools

ENTRIES = (1, 100, 5000)


def steadily(system, client, rate, seconds):
    """Returns the latencies of reactions at this rate, in milliseconds."""
    found = load(system, client, max(20, int(rate * seconds)), rate=rate)
    names = ("median", "p99", "max", "expected", "seen", "again")
    return {name: found[name] for name in names} | {"asked": rate, "kept": found["fired"] / found["firing"]}


def measure(kind, tool, client, entries, quick):
    """Returns the reactions per second, and the latencies at half of that load and at that load."""
    with reacting(kind, tool, entries) as system:
        full = full_load(system, client, quick)
    # A new master, without the backlog of the full load.
    with reacting(kind, tool, entries) as system:
        steadily(system, client, full / 2, 2)
        half, whole = (steadily(system, client, rate, 5 if quick else 30) for rate in (full / 2, full))
    return {"rate": full, "half": half, "whole": whole}


def ceiling(kind, tool, client, quick):
    """Returns the limit of client and bus without the reactor: the client also publishes the reactions' events."""
    with reacting(kind, tool, 1, pattern="bench/no/*") as system:
        return full_load(system, client, quick, echo=True)


def main():
    parser = arguments(__doc__)
    parser.add_argument("--entries", type=int, nargs="*", default=ENTRIES)
    options = parser.parse_args()
    found = {"salt": {}, "brine": {}}
    alone = {}
    for kind, tool in tools(options).items():
        alone[kind] = ceiling(kind, tool, options.client, options.quick)
        print(f"{kind}, client and bus alone: {alone[kind]:,.0f} reactions/s", flush=True)
        for entries in options.entries:
            one = found[kind][str(entries)] = measure(kind, tool, options.client, entries, options.quick)
            print(f"{kind}, {entries:,} entries: {one['rate']:,.0f} reactions/s", flush=True)
            for name in "half", "whole":
                form = "  {asked:,.0f} asked, {kept:,.0f} fired a second: median {median:.3f} ms, 99th {p99:.3f}"
                print(form.format(**one[name]), flush=True)
    results.store("reactor", found | {"alone": alone}, options.quick)


if __name__ == "__main__":
    main()
