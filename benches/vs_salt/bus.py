"""Publishers and subscribers of an event bus: Salt's by Salt's own library, Brine's by pyzmq."""

import subprocess
import sys

PUBLISH_BRINE = """
import sys, zmq, msgpack
sock, count, tag, size = sys.argv[1], int(sys.argv[2]), sys.argv[3].encode(), int(sys.argv[4])
context = zmq.Context(); push = context.socket(zmq.PUSH); push.connect(f"ipc://{sock}/master_event_pull.ipc")
frame = tag + b"\\n\\n" + msgpack.packb({"data": "x" * size})
for _ in range(count):
    push.send(frame)
push.close(); context.term()
"""
SUBSCRIBE_BRINE = """
import sys, time, zmq
sock, count, prefix, suffix = sys.argv[1], int(sys.argv[2]), sys.argv[3].encode(), sys.argv[4].encode()
sub = zmq.Context().socket(zmq.SUB); sub.setsockopt(zmq.RCVHWM, 0)
sub.connect(f"ipc://{sock}/master_event_pub.ipc"); sub.setsockopt(zmq.SUBSCRIBE, prefix)
time.sleep(0.5); print("ready", flush=True)
seen, first = 0, None
while seen < count:
    frame = sub.recv()
    if suffix and not frame.split(b"\\n\\n", 1)[0].endswith(suffix):
        continue
    first = first or time.time(); seen += 1
print(seen / max(time.time() - first, 1e-9), flush=True)
"""
PUBLISH_SALT = """
import sys, salt.config, salt.utils.event
etc, count, tag, size = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
opts = salt.config.master_config(etc + "/master")
with salt.utils.event.get_master_event(opts, opts["sock_dir"], listen=False) as bus:
    for _ in range(count):
        bus.fire_event({"data": "x" * size}, tag)
"""
SUBSCRIBE_SALT = """
import sys, time, salt.config, salt.utils.event
etc, count, prefix, suffix = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
opts = salt.config.master_config(etc + "/master")
bus = salt.utils.event.get_master_event(opts, opts["sock_dir"], listen=True)
bus.connect_pub(); time.sleep(0.5); print("ready", flush=True)
seen, first, idle = 0, None, 0
while seen < count and idle < 20:
    event = bus.get_event(wait=1, tag=prefix, full=True)
    if event is None:
        idle += bool(first)
        continue
    idle = 0
    if suffix and not event["tag"].endswith(suffix):
        continue
    first = first or time.time(); last = time.time(); seen += 1
print(seen / max(last - first, 1e-9), flush=True)
"""


def _python(script, *words):
    return [sys.executable, "-W", "ignore", "-c", script, *map(str, words)]


def subscribe(system, count, prefix, suffix="", processes=1):
    """Starts processes that wait for `count` events each and then print their rate per second. They end with the
    system."""
    brine = system.kind == "brine"
    script, directory = (SUBSCRIBE_BRINE, f"{system.root}/run") if brine else (SUBSCRIBE_SALT, f"{system.root}/etc")
    command = _python(script, directory, count, prefix, suffix)
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) for _ in range(processes)
    ]
    system.running += started
    for process in started:
        assert process.stdout.readline() == "ready\n"
    return started


def publish(system, count, tag, size=100):
    """Publishes `count` events, with data of this size in bytes, as fast as possible."""
    brine = system.kind == "brine"
    script, directory = (PUBLISH_BRINE, f"{system.root}/run") if brine else (PUBLISH_SALT, f"{system.root}/etc")
    subprocess.run(_python(script, directory, count, tag, size), check=True)


def rate(system, count, tag="bench/x", prefix=None, suffix="", size=100, processes=1):
    """Publishes events and returns the rate per second of the slowest subscriber, of these events or of those with
    another prefix and suffix."""
    subscribers = subscribe(system, count, prefix or tag, suffix, processes)
    publish(system, count, tag, size)
    return min(float(subscriber.stdout.readline()) for subscriber in subscribers)
