"""Measures the tools for authors of states over a tree of 1,000 SLS files: `brine check`, `brine fmt`, and the answers of
`brine lsp` after a letter was typed; and `reactor.replay` over a journal of 1,000,000 events."""

import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import results
from reacting import arguments, load, reacting, tools
from rulebook import LAST

FILES, EVENTS, ROUNDS = 1000, 1_000_000, 20
# A file of the tree: a map, an include, a template, pillar, a source, and twelve states with requisites.
SLS = """\
{{% from 'app{n}/map.jinja' import settings with context %}}
{include}{states}"""
STATE = """\
app{n}-package-{state}:
  pkg.installed:
    - name: app{n}
/etc/app{n}/{state}.conf:
  file.managed:
    - source: salt://app{n}/files/app.conf
    - template: jinja
    - mode: '0644'
    - require:
      - pkg: app{n}-package-{state}
    - context:
        port: {{{{ pillar['app{n}']['port'] }}}}
        name: {{{{ salt['pillar.get']('app{n}:name', 'x') | upper }}}}
"""


def write_tree(root, files):
    """Writes a tree of states and pillar."""
    top = "base:\n  '*':\n" + "".join(f"    - app{n}\n" for n in range(files))
    written = {"salt/top.sls": top, "pillar/top.sls": top}
    for n in range(files):
        include = f"include:\n  - app{n - 1}\n" if n % 10 else ""
        states = "".join(STATE.format(n=n, state=state) for state in range(6))
        written |= {
            f"salt/app{n}/init.sls": SLS.format(n=n, include=include, states=states),
            f"salt/app{n}/map.jinja": "{% set settings = {'a': 1} %}\n",
            f"salt/app{n}/files/app.conf": "x",
            f"pillar/app{n}.sls": f"app{n}:\n  port: {n}\n  name: app\n",
        }
    for path, text in written.items():
        path = pathlib.Path(root, path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def timed(command, root, rounds):
    """Returns the median duration of a command that must succeed, in seconds."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        subprocess.run(command, cwd=root, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


class Editor:
    """A client of the language server."""

    def __init__(self, command, root):
        self.server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.root, self.last, self.has_findings = f"file://{root}", 0, False
        folders = [{"uri": self.root, "name": "tree"}]
        self.ask("initialize", {"capabilities": {}, "workspaceFolders": folders})
        self.tell("initialized", {})

    def send(self, message):
        text = json.dumps({"jsonrpc": "2.0"} | message).encode()
        self.server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(text), text))
        self.server.stdin.flush()

    def receive(self):
        length = 0
        while line := self.server.stdout.readline().strip():
            name, value = line.split(b": ")
            length = int(value) if name.lower() == b"content-length" else length
        message = json.loads(self.server.stdout.read(length))
        self.has_findings |= message.get("method") == "textDocument/publishDiagnostics"
        return message

    def tell(self, method, params):
        self.send({"method": method, "params": params})

    def ask(self, method, params):
        self.last += 1
        self.send({"id": self.last, "method": method, "params": params})
        while (message := self.receive()).get("id") != self.last or "method" in message:
            pass
        if "error" in message:
            raise SystemExit(f"{method}: {message['error']}")
        return message["result"]

    def findings(self):
        """Waits for findings, if none have come since the last change: they may come before an answer."""
        while not self.has_findings:
            self.receive()
        self.has_findings = False

    def memory(self):
        """Returns the peak of the resident memory, in KiB."""
        lines = pathlib.Path(f"/proc/{self.server.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def answers(brine, root, files, rounds):
    """Returns the median and the highest time of each kind of answer in ms, of the first findings, and the memory."""
    began = time.perf_counter()
    editor = Editor(brine("lsp"), root)
    path = f"salt/app{files // 2 + 1}/init.sls"
    uri, text = f"{editor.root}/{path}", pathlib.Path(root, path).read_text()
    document = {"uri": uri, "languageId": "sls", "version": 0, "text": text}
    editor.tell("textDocument/didOpen", {"textDocument": document})
    editor.findings()
    found, last = {"first": {"median": (time.perf_counter() - began) * 1000}}, text.count("\n")
    asked = [
        ("completion", (10, 8), {}),
        ("hover", (7, 5), {}),
        ("definition", (12, 18), {}),
        ("references", (3, 5), {"context": {"includeDeclaration": True}}),
        ("documentSymbol", (0, 0), {}),
        ("semanticTokens/full", (0, 0), {}),
        ("formatting", (0, 0), {"options": {"tabSize": 2, "insertSpaces": True}}),
        ("rename", (3, 5), {"newName": "other"}),
        ("findings", None, {}),
    ]
    version = 0
    for method, place, further in asked:
        times = []
        for _ in range(rounds):
            version += 1
            end = {"line": last, "character": (version + 1) % 2}
            change = {"range": {"start": {"line": last, "character": 0}, "end": end}, "text": "#" * (version % 2)}
            began = time.perf_counter()
            editor.tell(
                "textDocument/didChange",
                {"textDocument": {"uri": uri, "version": version}, "contentChanges": [change]},
            )
            if place:
                position = {"line": place[0], "character": place[1]}
                editor.ask(f"textDocument/{method}", {"textDocument": {"uri": uri}, "position": position} | further)
            else:
                editor.findings()
            times.append((time.perf_counter() - began) * 1000)
            if place:
                editor.findings()
        found[method] = {"median": statistics.median(times), "most": max(times)}
    memory = editor.memory()
    editor.ask("shutdown", None)
    editor.tell("exit", None)
    editor.server.wait()
    return {"answers": found, "memory": memory}


def replay(options, brine, events):
    """Returns the seconds of replays of a journal: one in 16 events matches and is rendered, or each matches."""
    with reacting("brine", brine, 1, sls=LAST) as system:
        load(system, options.client, events, last_only=True)
        found = {}
        for name, pattern, value in [("one", "bench/go/3", "data['id']"), ("each", "bench/go/*", "tag")]:
            system.write(f"new/{name}.sls", f"again:\n  runner.test.arg:\n    - args:\n      - id: {{{{ {value} }}}}\n")
            entries = {"reactor": [{pattern: [f"{system.root}/new/{name}.sls"]}]}
            system.write(f"new/{name}.yml", json.dumps(entries))
            words = ["reactor.replay", "since=1", f"config={system.root}/new/{name}.yml", "timeout=600", "--out=json", "-t", "600"]
            began = time.perf_counter()
            done = subprocess.run(system.command("salt-run", *words), capture_output=True, text=True, check=False)
            found[name] = {"seconds": time.perf_counter() - began}
            # The progress stands before the result.
            answer = json.loads("{" + done.stdout.rpartition("\n{")[2]) if "\n{" in done.stdout else json.loads(done.stdout)
            if not answer.get("complete") or answer["events"] < events:
                raise SystemExit(f"the replay is not complete: {done.stdout[:2000]}{done.stderr[:2000]}")
            found[name]["events"] = answer["events"]
    return found


def main():
    parser = arguments(__doc__)
    options = parser.parse_args()
    brine = tools(options)["brine"]
    files, events, rounds = (100, 50_000, 4) if options.quick else (FILES, EVENTS, ROUNDS)
    with tempfile.TemporaryDirectory() as root:
        write_tree(root, files)
        found = {
            "files": files,
            "check": timed(brine("check") + ["."], root, 5),
            "format": timed(brine("fmt") + ["--check", "."], root, 5),
            "editor": answers(brine, root, files, rounds),
        }
    found["replay"] = replay(options, brine, events)
    results.store("authoring", found, options.quick)


if __name__ == "__main__":
    main()
