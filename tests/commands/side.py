"""One of the two sides: protects its namespaces, starts a master and two minions, and runs the commands that it reads
from stdin, a line of JSON each. It writes the answers to stdout in the same form.

    side.py salt VIRTUAL_ENVIRONMENT SCRATCH
    side.py brine BINARY SCRATCH
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
TOOLS = ["salt", "salt-call", "salt-key", "salt-run", "salt-cp"]
DAEMONS = {"salt-master": "/mnt/etc", "salt-minion": "/mnt/etc", "salt-minion of db1": "/mnt/db1/etc"}
ENVIRONMENT = {
    "PATH": "/mnt/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "SALT_CONFIG_DIR": "/mnt/etc",
    "HOME": "/mnt/home",
    "USER": "root",
    "LOGNAME": "root",
    "SHELL": "/bin/sh",
    "LANG": "C.UTF-8",
    "COLUMNS": "80",
}
LIMIT = 180  # seconds that a command may take
# File systems that stay writable: those of the kernel, and those that belong to the namespace.
KERNEL = {"proc", "sysfs", "devtmpfs", "devpts", "tmpfs", "mqueue", "cgroup", "cgroup2"}


def run(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def protect(scratch):
    """Mounts the scratch directory at /mnt, a copy of /etc, and empty directories where commands write; makes the rest
    read-only."""
    run("mount", "--bind", scratch, "/mnt")
    for directory in ["/tmp", "/run"]:
        run("mount", "-t", "tmpfs", "none", directory)
    run("cp", "-a", "/etc", "/tmp/etc")
    run("mount", "--bind", "/tmp/etc", "/etc")
    for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
        _, place, kind = line.split()[:3]
        if kind not in KERNEL and place not in {"/mnt", "/etc"}:
            run("mount", "-o", "remount,bind,ro", place)
    run("ip", "link", "set", "lo", "up")
    run("hostname", "node.example")
    os.environ.clear()
    os.environ.update(ENVIRONMENT)
    os.chdir("/mnt/box")


def start(name, words):
    """Starts a process that runs until the namespace ends."""
    log = pathlib.Path(f"/mnt/{name.replace(' ', '-')}.log").open("ab")
    subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def install_salt(environment):
    """Makes Salt's tools available as clients of one process that has imported Salt: an import takes a second."""
    python = environment / "bin/python3"
    start("tools", [python, HERE / "tools.py", "/mnt/tools"])
    wait_for(lambda: pathlib.Path("/mnt/tools").is_socket(), "the tools")
    for tool in TOOLS:
        path = pathlib.Path("/mnt/bin", tool)
        path.write_text(f"#!/bin/sh\nexec /usr/bin/env python3 -S {HERE}/tools.py /mnt/tools {tool} \"$@\"\n")
        path.chmod(0o755)
    return environment / "bin"


def install_brine(binary):
    for tool in [*TOOLS, "salt-master", "salt-minion"]:
        os.symlink(binary, f"/mnt/bin/{tool}")
    return pathlib.Path("/mnt/bin")


def wait_for(condition, what):
    end = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"{what} did not start: see the logs")
        time.sleep(0.1)


def answered():
    answer = execute("salt '*' test.ping --static --out=json")
    try:
        return sorted(name for name, up in json.loads(answer["out"]).items() if up is True) == ["db1", "web1"]
    except ValueError:
        return False


def execute(line):
    """Runs a shell line."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(["sh", "-c", line], **pipes, start_new_session=True)
    try:
        out, err = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        err += b"\nthis command did not end"
    texts = {name: text.decode(errors="replace") for name, text in [("out", out), ("err", err)]}
    return {**texts, "status": process.returncode}


def main():
    # Output of daemons and tools must not be mixed with the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    kind, program, scratch = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    protect(scratch)
    programs = (install_salt if kind == "salt" else install_brine)(program)
    for name, directory in DAEMONS.items():
        start(name, [programs / name.split()[0], "-c", directory])
    wait_for(answered, kind)
    print(json.dumps("ready"), file=answers, flush=True)
    for request in sys.stdin:
        print(json.dumps(execute(json.loads(request)["line"])), file=answers, flush=True)


if __name__ == "__main__":
    main()
