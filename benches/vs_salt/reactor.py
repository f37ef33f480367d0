"""Measures the reactors: how many reactions a second, and how long from the event to the reaction's own event.

One entry matches, all others do not; the one calls a runner with the event's number. First the full load: events are
fired as fast as the bus takes them, and the time counts from the first event to the last reaction. Then the time of
each reaction, while events are fired steadily: half as many as that, and as many.
"""

import results
from reacting import arguments, full_load, load, reacting, tools

ENTRIES = (1, 100, 5000)


def steadily(system, client, rate, seconds):
    """The milliseconds that a reaction takes at this rate."""
    found = load(system, client, max(20, int(rate * seconds)), rate=rate)
    names = ("median", "p99", "max", "expected", "seen", "again")
    return {name: found[name] for name in names} | {"asked": rate, "kept": found["fired"] / found["firing"]}


def measure(kind, tool, client, entries, quick):
    """Reactions a second, and the milliseconds that one takes at half that load and at that load."""
    with reacting(kind, tool, entries) as system:
        full = full_load(system, client, quick)
    # A master of its own: the backlog of the floods is not what is looked for here.
    with reacting(kind, tool, entries) as system:
        steadily(system, client, full / 2, 2)
        half, whole = (steadily(system, client, rate, 5 if quick else 30) for rate in (full / 2, full))
    return {"rate": full, "half": half, "whole": whole}


def ceiling(kind, tool, client, quick):
    """What client and bus do without the reactor: the client fires what a reaction would have fired too."""
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
    results.keep("reactor", found | {"alone": alone}, options.quick)


if __name__ == "__main__":
    main()
