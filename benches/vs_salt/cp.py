"""Measures `salt-cp --chunked` of a large file through a Brine master: the duration, and the peak memory of master,
minion and tool for a small file and for the large one."""

import filecmp
import os
import pathlib
import subprocess
import time

import results
from reacting import arguments, tools
from system import System

LARGE = 1024  # MB
SMALL = 32


def peak(pid):
    """Returns the peak of the resident memory of a process, in KiB; 0 if it has ended."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")), 0)


def copy(system, minion, megabytes, chunk):
    """Copies a file of random bytes. Returns the duration in seconds and the peaks of memory."""
    source, target = f"{system.root}/from", f"{system.root}/to"
    with open(source, "wb") as out:
        for _ in range(megabytes):
            out.write(os.urandom(1 << 20))
    began, tool = time.perf_counter(), 0
    process = subprocess.Popen(system.command("salt-cp", "-C", "-t", "60", "m1", source, target), stdout=subprocess.DEVNULL)
    while process.poll() is None:
        tool = max(tool, peak(process.pid))
        time.sleep(0.02)
    took = time.perf_counter() - began
    if process.returncode or not filecmp.cmp(source, target, shallow=False):
        raise SystemExit(f"the copy of {megabytes} MB failed\n{system.logs()}")
    os.remove(target)
    return {"seconds": took, "master": peak(system.running[0].pid), "minion": peak(minion.pid), "tool": tool}


def main():
    parser = arguments(__doc__)
    parser.add_argument("--megabytes", type=int, default=LARGE)
    parser.add_argument("--chunk", type=int, default=400_000, help="salt_cp_chunk_size")
    options = parser.parse_args()
    sizes = (2, 8) if options.quick else (SMALL, options.megabytes)
    system = System("brine", tools(options)["brine"], options={"auto_accept": True, "salt_cp_chunk_size": options.chunk})
    try:
        system.start_master()
        minion = system.start("salt-minion", minion=True)
        ping = system.command("salt", "m1", "test.ping", "--out=txt", "-t", "5")
        while "True" not in subprocess.run(ping, capture_output=True, text=True, check=False).stdout:
            time.sleep(0.2)
        found = {str(size): copy(system, minion, size, options.chunk) for size in sizes}
    finally:
        system.stop()
    results.store("cp", {"sizes": found, "chunk": options.chunk}, options.quick)


if __name__ == "__main__":
    main()
