"""Measures `salt-ssh` over a roster of many entries, all of one `sshd` on this host: `test.ping` and `state.apply`,
first with nothing on the host, then again."""

import getpass
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

import results
from reacting import arguments, tools
from system import System, free_port

HOSTS = 100


class Server:
    """An `sshd` for the current user. It sees an empty home directory, so start files of the shell are not measured."""

    def __init__(self, root):
        root = pathlib.Path(root)
        root.mkdir()
        self.port, self.key = free_port(), str(root / "id")
        for name in "host", "id":
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(root / name)], check=True)
        (root / "config").write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {root}/host\nAuthorizedKeysFile {root}/id.pub\n"
            "StrictModes no\nUsePAM no\nPasswordAuthentication no\nPidFile none\nMaxStartups 500\nMaxSessions 500\n"
            # Salt copies files by scp.
            "Subsystem sftp internal-sftp\n"
        )
        os.makedirs("/run/sshd", exist_ok=True)
        words = ["/usr/sbin/sshd", "-D", "-f", str(root / "config"), "-E", str(root / "log")]
        hide = 'mount -t tmpfs none "$0" && exec "$@"'
        self.process = subprocess.Popen(["unshare", "--mount", "sh", "-c", hide, os.path.expanduser("~"), *words])
        time.sleep(1)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def run(system, words, hosts, is_good, runtime):
    """Returns the duration of a `salt-ssh` in seconds. All hosts must succeed. `runtime` is for shared connections."""
    roster = ["--roster-file", f"{system.root}/roster", "-i", "--out=json", "--static"]
    began = time.perf_counter()
    words = system.command("salt-ssh", *roster, "*", *words)
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, env=os.environ | {"XDG_RUNTIME_DIR": runtime}
    )
    took = time.perf_counter() - began
    try:
        answers = json.loads(done.stdout)
    except ValueError:
        answers = {}
    good = sum(1 for answer in answers.values() if is_good(answer))
    if good != hosts:
        raise SystemExit(f"{good} of {hosts} hosts answered well\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return took


def measure(kind, tool, hosts, runs, programs):
    """Returns the durations of each command in seconds, of the first run and of later ones."""
    system = System(kind, tool, options={"ssh_program_dir": programs} if kind == "brine" else {})
    server = Server(f"{system.root}/sshd")
    try:
        thin = f"{system.root}/thin"
        entry = {
            "host": "127.0.0.1", "port": server.port, "user": getpass.getuser(), "priv": server.key,
        }
        # A directory for each entry, as if each were a host.
        hosts_of_roster = {f"host{n:03}": entry | {"thin_dir": f"{thin}/{n}"} for n in range(hosts)}
        system.write("roster", json.dumps(hosts_of_roster))
        system.write("srv/ssh.sls", "a:\n  test.nop: []\nb:\n  test.succeed_without_changes: []\n")
        found = {}
        for name, words, is_good in [
            ("ping", ["test.ping"], lambda answer: answer is True),
            ("apply", ["state.apply", "ssh"], lambda answer: all(one.get("result") for one in answer.values())),
        ]:
            shutil.rmtree(thin, ignore_errors=True)
            os.mkdir(thin)
            # The first run has no open connections, either.
            with tempfile.TemporaryDirectory() as runtime:
                found[f"{name}_first"] = run(system, words, hosts, is_good, runtime)
                found[f"{name}_again"] = statistics.median(
                    run(system, words, hosts, is_good, runtime) for _ in range(runs)
                )
    finally:
        server.stop()
        system.stop()
    return found


def main():
    parser = arguments(__doc__)
    parser.add_argument("--hosts", type=int, default=HOSTS)
    parser.add_argument("--programs", default="target/ssh-host", help="the static programs of packaging/ssh-host")
    parser.add_argument("--runs", type=int, default=3, help="runs after the first one")
    options = parser.parse_args()
    hosts = min(options.hosts, 3) if options.quick else options.hosts
    programs = os.path.abspath(options.programs)
    program = os.path.join(programs, f"brine-ssh-host-{os.uname().machine}")
    size = os.path.getsize(program if os.path.exists(program) else options.brine)
    runs = 1 if options.quick else options.runs
    found = {kind: measure(kind, tool, hosts, runs, programs) for kind, tool in tools(options).items()}
    results.store("ssh", found | {"hosts": hosts, "program": size}, options.quick)


if __name__ == "__main__":
    main()
