"""Runs Brine's master at half of its full reaction load, and determines whether its memory grows."""

import math
import os
import statistics

import results
from reacting import arguments, full_load, load, reacting, tools

# Less growth than this is noise: the smallest allocation that a reaction could leak has 16 bytes.
NOISE = 1  # byte a reaction
# Before that, caches fill and threads allocate their memory.
MIN_MINUTES = 5  # minutes


def slope(samples):
    """Returns the growth in KiB per minute by least squares, and its uncertainty (twice the standard error)."""
    times, sizes = zip(*samples)
    middle, mean = statistics.fmean(times), statistics.fmean(sizes)
    spread = sum((t - middle) ** 2 for t in times)
    if len(samples) < 3 or not spread:
        return 0.0, math.inf
    steep = sum((t - middle) * (size - mean) for t, size in samples) / spread
    left = sum((size - mean - steep * (t - middle)) ** 2 for t, size in samples) / (len(samples) - 2)
    return 60 * steep, 120 * math.sqrt(left / spread)


def verdict(minutes, least):
    """Describes whether memory grows, given the least number of bytes that it grows for each reaction."""
    if minutes < MIN_MINUTES:
        return "the run is too short for a verdict"
    return "memory GROWS" if least > NOISE else "memory does not grow"


def by_minute(samples):
    """Returns the median of each minute, in KiB; a last minute that has just begun belongs to the previous one."""
    minutes = {}
    end = max(1, round(samples[-1][0] / 60))
    for at, size in samples:
        minutes.setdefault(min(int(at / 60) + 1, end), []).append(size)
    return {minute: statistics.median(sizes) for minute, sizes in minutes.items()}


def main():
    parser = arguments(__doc__)
    parser.add_argument("--minutes", type=float, help="10, or 1 for a quick run")
    parser.add_argument("--every", type=float, default=5, help="seconds between two samples")
    parser.add_argument("--entries", type=int, default=100)
    options = parser.parse_args()
    options.minutes = options.minutes or (1 if options.quick else 10)
    brine = tools(options)["brine"]
    # The full load is determined on another master, since it leaves a backlog and memory in use.
    with reacting("brine", brine, options.entries) as system:
        half = full_load(system, options.client, quick=options.quick) / 2
    print(f"half of the full load is {half:,.0f} reactions/s", flush=True)
    samples = []

    def sample(at, size):
        samples.append((at, size))
        print(f"{at:6.0f} s {size:10,.0f} KiB", flush=True)

    count = int(half * options.minutes * 60)
    with reacting("brine", brine, options.entries) as system:
        loaded = load(system, options.client, count, each=sample, every=options.every, rate=half)
        disk = os.stat(f"{system.root}/cache/brine.redb").st_blocks * 512
    # Caches fill first, so only the second half counts.
    late, error = (1024 / (60 * half) * each for each in slope(samples[len(samples) // 2 :]))
    found = {name: loaded[name] for name in ("expected", "seen", "again", "median", "p99")} | {
        "minutes": options.minutes,
        "entries": options.entries,
        "rate": half,
        "kept": loaded["fired"] / loaded["firing"],
        "by_minute": by_minute(samples[1:]),
        "before": samples[0][1],
        "disk": disk,
        "late": late,
        "error": error,
        "verdict": verdict(options.minutes, late - error),
    }
    print(
        f"at {half:,.0f} reactions/s for {options.minutes:g} minutes, in the second half {late:+.2f} bytes a reaction "
        f"(give or take {error:.2f}): {found['verdict']}"
    )
    results.store("soak", found, options.quick)


if __name__ == "__main__":
    main()
