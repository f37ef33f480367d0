"""Measures the reactors: reactions per second, and the latency from an event to the event of its reaction.

One entry matches and calls a runner with the event's number; all others do not match. First the full load: events are
published as fast as the bus accepts them, and the time counts from the first event to the last reaction. Then the
latency of each reaction, with events at constant rates that are the same for both, and at shares of the full load.
"""

import results
from reacting import arguments, full_load, load, reacting, tools

ENTRIES = (1, 100, 5000)
# The number of entries when latencies are measured.
STEADY_ENTRIES = 100
RATES = (10, 30, 300, 3_000, 10_000)
# The share of its full load up to which a reactor is measured at a constant rate: above, events soon wait.
MAX_SHARE = 0.8
WARM_UP = 2  # seconds


def seconds(rate, quick):
    """Returns the duration of a run: low rates need longer for as many events."""
    return 4 if quick else 30 if rate < 100 else 15


def steadily(system, client, rate, quick):
    """Returns the latencies of reactions at this rate, in milliseconds, after a warm-up."""
    load(system, client, max(2, int(rate * WARM_UP)), rate=rate)
    found = load(system, client, max(2, int(rate * seconds(rate, quick))), rate=rate)
    names = ("median", "p99", "p999", "max", "expected", "seen", "again")
    one = {name: found[name] for name in names} | {"asked": rate, "kept": found["fired"] / found["firing"]}
    form = "{asked:,.0f} asked, {kept:,.0f} fired a second: median {median:.3f} ms, 99th {p99:.3f}, 99.9th {p999:.3f}"
    print(f"{system.kind}, {form.format(**one)}", flush=True)
    return one


def latencies(kind, tool, client, full, quick):
    """Returns the latencies at the rates that are within this full load, at most of the full load, and at all of it."""
    most = full * MAX_SHARE
    # A new master, without the backlog of the full load, which therefore comes last.
    with reacting(kind, tool, STEADY_ENTRIES) as system:
        return {
            "rates": {str(rate): steadily(system, client, rate, quick) for rate in RATES if rate <= most},
            "most": steadily(system, client, most, quick),
            "whole": steadily(system, client, full, quick),
        }


def ceiling(kind, tool, client):
    """Returns the limit of client and bus without the reactor: the client also publishes the reactions' events."""
    with reacting(kind, tool, 1, pattern="bench/no/*") as system:
        return full_load(system, client, quick=True, echo=True)


def measure(kind, tool, client, quick):
    """Returns the reactions per second by number of entries, the latencies, and the limit of the client."""
    full, alone = {}, ceiling(kind, tool, client)
    print(f"{kind}, client and bus alone: {alone:,.0f} reactions/s", flush=True)
    for entries in ENTRIES:
        with reacting(kind, tool, entries) as system:
            full[str(entries)] = full_load(system, client, quick)
        print(f"{kind}, {entries:,} entries: {full[str(entries)]:,.0f} reactions/s", flush=True)
    return {"full": full, "alone": alone} | latencies(kind, tool, client, full[str(STEADY_ENTRIES)], quick)


def main():
    options = arguments(__doc__).parse_args()
    found = {kind: measure(kind, tool, options.client, options.quick) for kind, tool in tools(options).items()}
    results.store("reactor", found | {"entries": STEADY_ENTRIES}, options.quick)


if __name__ == "__main__":
    main()
