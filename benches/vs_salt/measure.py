"""Measures Brine and Salt by the same means: same configuration, same machine, one run.

Each measure is a function that takes a System and gives one number. Salt's event bus is followed and fired
into by Salt's own library (its sockets are not ZeroMQ any more), Brine's by pyzmq.
"""

import argparse
import glob
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time

FIRE_BRINE = """
import sys, zmq, msgpack
sock, count, tag = sys.argv[1], int(sys.argv[2]), sys.argv[3].encode()
context = zmq.Context(); push = context.socket(zmq.PUSH); push.connect(f"ipc://{sock}/master_event_pull.ipc")
frame = tag + b"\\n\\n" + msgpack.packb({"data": "x" * 100})
for _ in range(count):
    push.send(frame)
push.close(); context.term()
"""
FOLLOW_BRINE = """
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
FIRE_SALT = """
import sys, salt.config, salt.utils.event
etc, count, tag = sys.argv[1], int(sys.argv[2]), sys.argv[3]
opts = salt.config.master_config(etc + "/master")
with salt.utils.event.get_master_event(opts, opts["sock_dir"], listen=False) as bus:
    for _ in range(count):
        bus.fire_event({"data": "x" * 100}, tag)
"""
FOLLOW_SALT = """
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


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class System:
    """A master and a minion of one kind below a folder of their own."""

    def __init__(self, kind, tool):
        self.kind, self.tool, self.running = kind, tool, []
        self.root = tempfile.mkdtemp(prefix="vs-", dir="/tmp")
        self.publish, self.ret = free_port(), free_port()
        reactor = f"{self.root}/reactor"
        self.write("etc/master", f"""
            root_dir: {self.root}
            pki_dir: {self.root}/pki
            cachedir: {self.root}/cache
            sock_dir: {self.root}/run
            pidfile: {self.root}/master.pid
            log_file: {self.root}/master.log
            log_level_logfile: error
            user: root
            interface: 127.0.0.1
            publish_port: {self.publish}
            ret_port: {self.ret}
            worker_threads: 3
            file_roots: {{base: [{self.root}/srv]}}
            reactor:
              - 'salt/auth': [{reactor}/auth.sls]
              - 'salt/minion/*/start': [{reactor}/start.sls]
              - 'bench/go': [{reactor}/go.sls]
            """)
        self.write("min/minion", f"""
            id: m1
            root_dir: {self.root}/m1
            master: 127.0.0.1
            master_port: {self.ret}
            publish_port: {self.publish}
            acceptance_wait_time: 1
            log_level_logfile: error
            user: root
            """)
        self.write("reactor/auth.sls", """
            {% if data.get('act') == 'pend' %}
            accept:
              wheel.key.accept:
                - match: {{ data['id'] }}
            {% endif %}
            """)
        self.write("reactor/start.sls", "highstate:\n  local.state.highstate:\n    - tgt: {{ data['id'] }}\n")
        self.write("reactor/go.sls", "go:\n  runner.test.arg:\n    - args: [{{ data['data'] | length }}]\n")
        self.write("srv/top.sls", "base:\n  '*': [one]\n")
        self.write("srv/one.sls", f"{self.root}/made:\n  file.managed:\n    - contents: made\n")

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as out:
            out.write(textwrap.dedent(text))

    def command(self, tool, *words, minion=False):
        etc = f"{self.root}/{'min' if minion else 'etc'}"
        return [*self.tool(tool), "-c", etc, *words]

    def start(self, tool, minion=False):
        log = open(f"{self.root}/{tool}.out", "w")
        process = subprocess.Popen(self.command(tool, minion=minion), stdout=log, stderr=log, start_new_session=True)
        self.running.append(process)
        return process

    def start_master(self):
        began = time.time()
        process = self.start("salt-master")
        for port in (self.publish, self.ret):
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    if process.poll() is not None:
                        sys.exit(open(f"{self.root}/salt-master.out").read())
                    time.sleep(0.001)
        return time.time() - began

    def python(self, script, *words):
        return [sys.executable, "-W", "ignore", "-c", script, *map(str, words)]

    def follow(self, count, prefix, suffix=""):
        brine = self.kind == "brine"
        script, place = (FOLLOW_BRINE, f"{self.root}/run") if brine else (FOLLOW_SALT, f"{self.root}/etc")
        process = subprocess.Popen(self.python(script, place, count, prefix, suffix), stdout=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "ready\n"
        return process

    def fire(self, count, tag):
        brine = self.kind == "brine"
        script, place = (FIRE_BRINE, f"{self.root}/run") if brine else (FIRE_SALT, f"{self.root}/etc")
        subprocess.run(self.python(script, place, count, tag), check=True)

    def stop(self):
        for process in self.running:
            try:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait(15)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                pass
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        shutil.rmtree(self.root, ignore_errors=True)


def pss(process):
    """The proportional memory of a process and all its descendants, in MB."""
    parents = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            text = open(path).read()
        except OSError:
            continue
        pid, rest = int(path.split("/")[2]), text.rsplit(")", 1)[1].split()
        parents[pid] = int(rest[1])
    own, total = {process.pid}, 0
    while True:
        more = {pid for pid, parent in parents.items() if parent in own} - own
        if not more:
            break
        own |= more
    for pid in own:
        try:
            lines = open(f"/proc/{pid}/smaps_rollup").read().splitlines()
        except OSError:
            continue
        total += next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
    return total / 1024


def timed(command, runs):
    def once():
        began = time.time()
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        return time.time() - began

    once()
    return statistics.median(once() for _ in range(runs))


def measure(kind, tool, quick):
    system, found = System(kind, tool), {}
    brine, runs = kind == "brine", 3 if quick else 10
    try:
        found["ready"] = system.start_master()
        time.sleep(5)
        found["master"] = pss(system.running[0])
        follower = system.follow(1, "salt/job/", "/ret/m1")
        began = time.time()
        minion = system.start("salt-minion", minion=True)
        follower.wait()
        found["join"] = time.time() - began
        time.sleep(5)
        found["minion"] = pss(minion)
        found["ping"] = timed(system.command("salt", "*", "test.ping"), runs)
        found["call"] = timed(system.command("salt-call", "--local", "test.ping", minion=True), runs)
        found["key"] = timed(system.command("salt-key", "-L"), runs)
        count = (200_000 if quick else 1_000_000) if brine else (5_000 if quick else 20_000)
        follower = system.follow(count, "bench/x")
        system.fire(count, "bench/x")
        found["bus"] = float(follower.stdout.readline())
        count = (20_000 if quick else 50_000) if brine else (300 if quick else 1_000)
        follower = system.follow(count, "salt/run/", "/ret")
        system.fire(count, "bench/go")
        found["reactions"] = float(follower.stdout.readline())
    finally:
        system.stop()
    return found


ROWS = [
    ("bus", "events/s, one firing and one following process, 100 bytes", "{:,.0f}", True, "200 times"),
    ("reactions", "reactions/s, a rendered SLS with a runner call each", "{:,.0f}", True, "100 times"),
    ("ping", "`salt '*' test.ping`, one minion, s", "{:.3f}", False, "20 times"),
    ("call", "`salt-call --local test.ping`, s", "{:.3f}", False, "20 times"),
    ("key", "`salt-key -L`, s", "{:.3f}", False, "20 times"),
    ("join", "new minion to its reactor-driven highstate returned, s", "{:.2f}", False, "5 times"),
    ("ready", "master's ports open after start, s", "{:.3f}", False, "0.2 s"),
    ("master", "master idle, MB PSS", "{:.1f}", False, "30 MB"),
    ("minion", "minion idle, MB PSS", "{:.1f}", False, "12 MB"),
]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--salt", required=True)
    parser.add_argument("--brine", required=True)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    brine = os.path.abspath(options.brine)
    results = {
        "salt": measure("salt", lambda tool: [os.path.join(options.salt, tool)], options.quick),
        "brine": measure("brine", lambda tool: [brine, tool], options.quick),
    }
    lines = ["| what | Salt 3008.3 | Brine | ratio | asked |", "|---|---|---|---|---|"]
    for name, what, form, more_is_better, asked in ROWS:
        salt, ours = results["salt"][name], results["brine"][name]
        ratio = ours / salt if more_is_better else salt / ours
        lines.append(f"| {what} | {form.format(salt)} | {form.format(ours)} | {ratio:,.0f} | {asked} |")
    table = "\n".join(lines)
    print(table)
    if not options.quick:
        path, marker = "docs/benchmarks.md", "## In process"
        kept = open(path).read().partition(marker) if os.path.exists(path) else ("", "", "")
        with open(path, "w") as out:
            out.write(
                "# Benchmarks\n\nBrine and real Salt 3008.3 on one machine in one run, by `benches/vs_salt/run`: "
                f"{os.cpu_count()} processors, release build, the same configuration, 3 workers, journal on. "
                "Times are medians of ten runs after a warm-up. The ratio says how many times better Brine is.\n\n"
                f"{table}\n\n"
                "The bus is measured through its sockets, Salt's by its own library, Brine's by pyzmq; reactions are "
                "counted by the `salt/run/*/ret` events that a follower sees. Both acceptance_wait_time are 1 s; a Brine "
                "minion looks for the first time after 0.1 s.\n\n"
                + kept[1] + kept[2]
            )


if __name__ == "__main__":
    main()
