"""Runs Brine's master for a while at half of its full reaction load, and says whether its memory grows."""

import statistics
import threading
import time

import results
from reactor import arguments, full_load, load, reacting, tools
from system import pss

# The store's and the allocator's caches fill first; what counts is the second half. Less than this is noise.
NOISE = 64  # KiB a minute


def slope(samples):
    """KiB a minute, by least squares."""
    times, sizes = zip(*samples)
    middle, mean = statistics.fmean(times), statistics.fmean(sizes)
    spread = sum((t - middle) ** 2 for t in times)
    return 60 * sum((t - middle) * (size - mean) for t, size in samples) / spread if spread else 0.0


def main():
    parser = arguments(__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--every", type=float, default=10, help="seconds between two looks")
    parser.add_argument("--entries", type=int, default=100)
    options = parser.parse_args()
    system = reacting("brine", tools(options)["brine"], options.entries)
    samples, said = [], {}
    try:
        # The full load is found on a master of its own: what a flood leaves behind is not what is looked for.
        flooded = reacting("brine", tools(options)["brine"], options.entries)
        try:
            half = full_load(flooded, options.client, quick=True) / 2
        finally:
            flooded.stop()
        seconds = options.minutes * 60
        firing = threading.Thread(target=lambda: said.update(load(system, options.client, int(half * seconds), rate=half)))
        began = time.monotonic()
        firing.start()
        while time.monotonic() - began + options.every <= seconds + 1 and firing.is_alive():
            firing.join(options.every)
            samples.append((time.monotonic() - began, pss(system.running[0]) * 1024))
            print(f"{samples[-1][0]:6.0f} s {samples[-1][1]:10,.0f} KiB", flush=True)
        firing.join()
    finally:
        system.stop()
    whole, late = slope(samples), slope(samples[len(samples) // 2 :])
    found = {
        "minutes": options.minutes,
        "entries": options.entries,
        "rate": half,
        "seen": said.get("seen"),
        "expected": said.get("expected"),
        "p99": said.get("p99"),
        "first": statistics.median(size for at, size in samples if at <= 61),
        "last": statistics.median(size for at, size in samples if at >= samples[-1][0] - 60),
        "slope": whole,
        "late": late,
        "grows": late > NOISE,
    }
    print(
        f"at {half:,.0f} reactions/s for {options.minutes:g} minutes: first minute {found['first']:,.0f} KiB, last "
        f"minute {found['last']:,.0f} KiB, {whole:+,.1f} KiB/min over all, {late:+,.1f} KiB/min in the second half: "
        + ("it GROWS" if found["grows"] else "it does not grow")
    )
    print(f"{found['seen']:,} of {found['expected']:,} reactions seen, 99 of 100 within {found['p99']:.2f} ms")
    if not options.quick:
        results.keep("soak", found)


if __name__ == "__main__":
    main()
