"""The sandbox of Salt's tests: an overlay over the root file system, without a network, in namespaces of its own.

`enter` starts this file as a program inside of new namespaces. It mounts the overlay, makes it the root, gives up the
capabilities that reach the machine itself, and becomes the command. Everything that the command writes is in memory and
gone with it, except for one directory of results; its processes end with it.
"""

import fcntl
import os
import pathlib
import shutil
import socket
import stat
import struct
import subprocess
import sys
import tempfile

NAMESPACES = ["--mount", "--net", "--pid", "--ipc", "--uts", "--fork", "--kill-child", "--propagation", "private"]
# What could change the clock, the kernel or the disks of the machine.
DROPPED = ["sys_time", "sys_boot", "sys_module", "sys_rawio", "mknod", "syslog"]
DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
LINKS = {"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
SIZE = "6g"
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


def missing() -> str | None:
    """Returns why there can be no sandbox here, or nothing."""
    if os.geteuid() != 0:
        return "root is needed for the overlay that Salt's tests run in; run this as root"
    for program in ["unshare", "setpriv", "mount", "pivot_root"]:
        if not shutil.which(program):
            return f"the program {program} is missing; install util-linux"
    if subprocess.run(["unshare", *NAMESPACES, "true"], capture_output=True, check=False).returncode != 0:
        return "this system refuses new namespaces (unshare); use a machine or container that permits them"
    with tempfile.TemporaryDirectory() as box:
        layers = f"lowerdir=/,upperdir={box}/upper,workdir={box}/work"
        probe = (
            f"mount -t tmpfs tmpfs {box} && mkdir {box}/upper {box}/work {box}/root && "
            f"mount -t overlay overlay -o {layers} {box}/root"
        )
        if subprocess.run(["unshare", *NAMESPACES, "sh", "-c", probe], capture_output=True, check=False).returncode != 0:
            return "this system refuses an overlay over its root file system; use another machine or container"
    return None


def enter(
    command: list[str], results: pathlib.Path, repository: pathlib.Path, environment: dict[str, str]
) -> list[str]:
    """Returns the command line that runs `command` in a sandbox where only `results` is shared with the machine."""
    variables = [f"{name}={value}" for name, value in environment.items()]
    inside = [sys.executable, "-B", __file__, str(results), str(repository), "env", *variables, *command]
    # It ends with the thread that starts it, whatever ends that.
    return ["setpriv", "--pdeathsig", "KILL", "unshare", *NAMESPACES, *inside]


def mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


def overlay(over: pathlib.Path, at: pathlib.Path, space: pathlib.Path) -> None:
    """Mounts `over` at `at`; what is written goes to `space`."""
    upper, work = space / "upper", space / "work"
    for directory in [upper, work, at]:
        directory.mkdir(parents=True, exist_ok=True)
    mount("-t", "overlay", "overlay", "-o", f"lowerdir={over},upperdir={upper},workdir={work}", str(at))


def devices(root: pathlib.Path) -> None:
    """Makes the harmless devices: none of a disk."""
    dev = root / "dev"
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", str(dev))
    for name, (major, minor) in DEVICES.items():
        os.mknod(dev / name, 0o666 | stat.S_IFCHR, os.makedev(major, minor))
        (dev / name).chmod(0o666)
    for name in ["pts", "shm"]:
        (dev / name).mkdir()
    mount("-t", "devpts", "-o", "newinstance,ptmxmode=0666,mode=620", "devpts", str(dev / "pts"))
    mount("-t", "tmpfs", "-o", "mode=1777", "tmpfs", str(dev / "shm"))
    for name, target in LINKS.items():
        (dev / name).symlink_to(target)


def loopback() -> None:
    """Brings up the interface lo of a new network namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


def inside(results: pathlib.Path, repository: pathlib.Path, command: list[str]) -> None:
    """Builds the sandbox, within its namespaces, and becomes the command."""
    # The box hides the directory that it is mounted on, which needs nothing from below.
    box = results / "box"
    box.mkdir(exist_ok=True)
    mount("-t", "tmpfs", "-o", f"mode=755,size={SIZE}", "tmpfs", str(box))
    root = box / "root"
    overlay(pathlib.Path("/"), root, box / "system")
    for needed in [repository, pathlib.Path(sys.base_prefix)]:
        if needed.stat().st_dev != os.stat("/").st_dev:
            overlay(needed, root / needed.relative_to("/"), box / needed.name)
    devices(root)
    mount("-t", "proc", "proc", str(root / "proc"))
    mount("--bind", str(root / "proc/sys"), str(root / "proc/sys"))
    mount("-o", "remount,bind,ro", str(root / "proc/sys"))
    mount("-t", "sysfs", "-o", "ro", "sysfs", str(root / "sys"))
    for name in ["run", "tmp"]:
        mount("-t", "tmpfs", "-o", "mode=1777" if name == "tmp" else "mode=755", "tmpfs", str(root / name))
    shared = root / results.relative_to("/")
    shared.mkdir(parents=True, exist_ok=True)
    mount("--bind", str(results), str(shared))
    loopback()
    old = root / "mnt"
    subprocess.run(["pivot_root", str(root), str(old)], check=True)
    os.chdir("/")
    subprocess.run(["umount", "--lazy", "/mnt"], check=True)
    os.chdir(repository)
    dropped = ",".join(f"-{name}" for name in DROPPED)
    sys.exit(run(["setpriv", "--bounding-set", dropped, "--inh-caps", dropped, *command]))


def run(command: list[str]) -> int:
    """Runs the command as a child of the first process of the namespace, which collects all orphans."""
    child = os.posix_spawnp(command[0], command, os.environ)
    while True:
        ended, status = os.wait()
        if ended == child:
            return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    inside(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:])
