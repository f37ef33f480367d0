"""A master and a minion of one kind, Salt's or Brine's, below a directory of their own."""

import atexit
import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time


# SIGTERM becomes an exception, so that every `finally` runs and no daemon is left.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class System:
    """A master and a minion of one kind below a directory of their own."""

    def __init__(self, kind, tool, reactor=None, options=None):
        """`reactor`: pairs of tag pattern and SLS file below reactor/, instead of those that measure.py needs.
        `options`: further options of the master."""
        self.kind, self.tool, self.running = kind, tool, []
        self.root = tempfile.mkdtemp(prefix="vs-", dir="/tmp")
        # Removed at the end of all runs: for minutes after a deletion, ext4 without a journal skips the inodes of
        # deleted files one by one, which slows down the creation of files.
        atexit.register(shutil.rmtree, self.root, ignore_errors=True)
        self.publish, self.ret = free_port(), free_port()
        reactor = reactor or [("salt/auth", "auth"), ("salt/minion/*/start", "start"), ("bench/go", "go")]
        more = f"\n{' ' * 12}".join(f"{name}: {json.dumps(value)}" for name, value in (options or {}).items())
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
            {more}
            file_roots: {{base: [{self.root}/srv]}}
            reactor: {json.dumps([{pattern: [f"{self.root}/reactor/{sls}.sls"]} for pattern, sls in reactor])}
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
        self.write("reactor/go.sls", """
            go:
              runner.test.arg:
                - args:
                  - size: {{ data['data'] | length }}
            """)
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

    def logs(self):
        """Returns the daemons that have ended, and the last lines of all logs, for messages about failures."""
        gone = [process for process in self.running if process.poll() is not None]
        lines = [f"{' '.join(process.args)[:120]} has ended with {process.returncode}\n" for process in gone]
        for path in [*glob.glob(f"{self.root}/*.out"), *glob.glob(f"{self.root}/*.log")]:
            with open(path, errors="replace") as log:
                lines += [f"-- {path}\n", *log.readlines()[-20:]]
        return "".join(lines)

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


def pss(process):
    """Returns the proportional set size (PSS) of a process and all its descendants, in MB."""
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
