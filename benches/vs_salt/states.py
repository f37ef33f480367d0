"""Measures `salt-call --local`: 500 file.managed states applied for the first time and again, and the low state of a
tree of 200 SLS files."""

import json
import os
import pathlib
import shutil
import statistics
import tempfile
import time

import results
from limits import reading
from reacting import arguments, tools

MEMORY = "/dev/shm"
FILES = 500
TREE = 200

MANAGED = """\
{{% for n in range({files}) %}}
{out}/{{{{ n }}}}.conf:
  file.managed:
    - source: salt://files/{{{{ n }}}}.conf
    - mode: '0644'
    - makedirs: True
{{% endfor %}}
"""

MAP = """\
{%- set defaults = {'port': 8000, 'user': 'app', 'packages': ['one', 'two']} %}
{%- set settings = salt['pillar.get']('app', default=defaults, merge=True) %}
"""

# One file of the tree: a map, a loop, and requisites, some of them on states of the previous file.
ROLE = """\
{{%- from 'map.jinja' import settings with context %}}
{include}
role{n}-config:
  file.managed:
    - name: /etc/role{n}/main.conf
    - contents: |
        port = {{{{ settings.port + {n} }}}}
        host = {{{{ grains['id'] }}}}
    - user: {{{{ settings.user }}}}
{{%- for package in settings.packages %}}
role{n}-{{{{ package }}}}:
  test.configurable_test_state:
    - changes: False
    - result: True
    - require:
      - file: role{n}-config
{{%- endfor %}}
role{n}-run:
  cmd.run:
    - name: 'true'
    - onchanges:
      - file: role{n}-config
{require}
"""


def write_tree(root, kind, files, tree):
    """Writes the configuration and the state files, and returns their directory."""
    home, srv = root / kind, root / kind / "srv"
    (srv / "files").mkdir(parents=True)
    (home / "etc").mkdir()
    for n in range(files):
        (srv / "files" / f"{n}.conf").write_text(f"# file {n}\n" + "key = value\n" * 20)
    (srv / "managed.sls").write_text(MANAGED.format(files=files, out=home / "out"))
    (srv / "map.jinja").write_text(MAP)
    for n in range(tree):
        before = n - 1
        include = f"include:\n  - role{before}\n" if n else ""
        require = f"    - require:\n      - cmd: role{before}-run" if n else ""
        (srv / f"role{n}.sls").write_text(ROLE.format(n=n, include=include, require=require))
    roles = "".join(f"    - role{n}\n" for n in range(tree))
    (srv / "top.sls").write_text(f"base:\n  '*':\n{roles}")
    config = {
        "id": "bench",
        "file_client": "local",
        "root_dir": str(home / "root"),
        "pki_dir": str(home / "pki"),
        "cachedir": str(home / "cache"),
        "file_roots": {"base": [str(srv)]},
        "log_level": "quiet",
        "log_level_logfile": "quiet",
    }
    (home / "etc" / "minion").write_text(json.dumps(config))
    return home


def run(command, out):
    """Runs a command with its output to a file. Returns its duration in seconds and its peak memory in KiB."""
    began = time.monotonic()
    words = [*command, "--out=json", f"--out-file={out}"]
    pid = os.posix_spawn(words[0], words, os.environ)
    _, status, used = os.wait4(pid, 0)
    took = time.monotonic() - began
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"{' '.join(words)} has failed:\n{pathlib.Path(out).read_text()[-3000:]}")
    return took, used.ru_maxrss


def measure(kind, tool, root, files, tree, runs):
    """Returns the durations in seconds and the peak memory in KiB by operation, and the duration of reading the files."""
    home = write_tree(root, kind, files, tree)
    out = home / "output.json"
    call = [*tool("salt-call"), "-c", str(home / "etc"), "--local", "--retcode-passthrough"]
    found = {}

    def measure_runs(name, words, check, before=lambda: None):
        samples = []
        for _ in range(runs + 1):
            before()
            samples.append(run([*call, *words], out))
            check(json.loads(out.read_text())["local"])
        # The first run fills the file cache.
        times, sizes = zip(*samples[1:])
        found[name] = {"seconds": statistics.median(times), "memory": max(sizes)}
        print(f"{kind}: {name} {found[name]['seconds']:.3f} s, {found[name]['memory'] / 1024:.1f} MB", flush=True)

    def clean():
        for directory in ("out", "cache"):
            shutil.rmtree(home / directory, ignore_errors=True)

    def applied(with_changes):
        def check(states):
            right = [s for s in states.values() if s["result"] is True and bool(s["changes"]) == with_changes]
            assert len(right) == files, f"{kind}: {len(right)} of {files} states have the expected result"

        return check

    def compiled(low):
        assert len(low) == 4 * tree, f"{kind}: {len(low)} low chunks"

    measure_runs("first", ["state.apply", "managed"], applied(True), clean)
    measure_runs("again", ["state.apply", "managed"], applied(False))
    found["reading"] = reading(list((home / "out").iterdir()))
    measure_runs("low", ["state.show_lowstate"], compiled)
    return found


def main():
    options = arguments(__doc__).parse_args()
    files, tree, runs = (20, 10, 1) if options.quick else (FILES, TREE, 5)
    # In memory: on some disks, creating 500 files takes longer than the whole run.
    root = pathlib.Path(tempfile.mkdtemp(prefix="vs-", dir=MEMORY))
    try:
        found = {kind: measure(kind, tool, root, files, tree, runs) for kind, tool in tools(options).items()}
    finally:
        shutil.rmtree(root)
    results.store("states", found | {"files": files, "tree": tree}, options.quick)


if __name__ == "__main__":
    main()
