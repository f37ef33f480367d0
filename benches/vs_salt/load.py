"""The load for measurements of Salt's reactor, with the same options and results as load.rs for Brine.

It uses Salt's bus through Salt's own library. The publisher is a process of its own, so that it does not wait for the
subscriber, nor the subscriber for it.
"""

import argparse
import json
import multiprocessing
import time

import salt.config
import salt.utils.event

JID = "20260101000000000000"


def bus_of(etc, listen):
    opts = salt.config.master_config(f"{etc}/master")
    return salt.utils.event.get_master_event(opts, opts["sock_dir"], listen=listen)


def publish(options, stamps, began, ended):
    """Publishes all events. The latency counts from the time when an event is due, or without a rate is published."""
    padding = "x" * 100
    with bus_of(options.etc, listen=False) as bus:
        bus.connect_pull()
        began.value = time.monotonic()
        for number in range(options.count):
            stamps[number] = time.monotonic()
            if options.rate:
                stamps[number] = began.value + number / options.rate
                time.sleep(max(0, stamps[number] - time.monotonic()))
            body = {"data": padding, "last": False, "id": number}
            bus.fire_event(body, f"bench/go/{number % options.tags}")
            if options.echo:
                call = {"fun": "runner.test.arg", "fun_args": [{"id": number}], "jid": JID, "user": "Reactor"}
                bus.fire_event(call, f"salt/run/{JID}/new")
                call |= {"return": {"args": [], "kwargs": {"id": number}}, "success": True}
                bus.fire_event(call, f"salt/run/{JID}/ret")
        ended.value = time.monotonic()


def subscribe(bus, options, stamps):
    """Returns the latency of each reaction, the number of duplicates, and the time of the last reaction."""
    took, duplicates, last, last_received = [], 0, 0, time.monotonic()
    while len(took) < options.count and time.monotonic() - last_received < options.patience:
        event = bus.get_event(wait=1, tag="salt/run/", full=True)
        if event is None:
            continue
        last_received = time.monotonic()
        if not event["tag"].endswith("/ret"):
            continue
        number = event["data"]["fun_args"][0]["id"]
        if stamps[number]:
            took.append(last_received - stamps[number])
            stamps[number], last = 0, last_received
        else:
            duplicates += 1
    return took, duplicates, last


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--etc", required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--tags", type=int, default=16)
    parser.add_argument("--echo", action="store_true")
    parser.add_argument("--patience", type=float, default=30)
    options = parser.parse_args()
    options.tags = max(1, min(options.tags, options.count))

    stamps = multiprocessing.Array("d", options.count, lock=False)
    began, ended = (multiprocessing.Value("d", 0, lock=False) for _ in range(2))
    publisher = multiprocessing.Process(target=publish, args=(options, stamps, began, ended))
    with bus_of(options.etc, listen=True) as bus:
        bus.connect_pub()
        # There is no signal that the bus has accepted the subscription.
        time.sleep(1)
        publisher.start()
        took, duplicates, last = subscribe(bus, options, stamps)
        publisher.join()
    took.sort()

    def at(share):
        return took[int(len(took) * share)] * 1000 if took else None

    print(json.dumps({
        "fired": options.count, "expected": options.count, "seen": len(took), "again": duplicates,
        "seconds": last - began.value, "firing": ended.value - began.value,
        "median": at(0.5), "p99": at(0.99), "p999": at(0.999), "max": took[-1] * 1000 if took else None,
    }))


if __name__ == "__main__":
    main()
