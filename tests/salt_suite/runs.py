"""Runs of Salt's tests: which are selected, and how they are spread over sandboxes."""

import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import time
import typing

import outcomes
import sandbox
from release import Release

HERE = pathlib.Path(__file__).resolve().parent
SUITES = {
    "functional": ["functional/modules", "functional/states", "functional/state", "functional/pillar"],
    "integration": ["integration", "scenarios"],
}
# The tests of a sandbox: several files, since pytest needs seconds to start.
FILES_AT_A_TIME = 6
LIMIT_SECONDS = 3600
# Files that change the daemons of a sandbox for the files after them.
ALONE = {
    # It removes a module of `ext_pillar`, without which pillars fail with Brine (docs/differences.md).
    "tests/pytests/integration/runners/test_saltutil.py",
    # It stops the master, and starts it again only if runner functions work without a master.
    "tests/pytests/integration/minion/test_return_retries.py",
}
Outcomes = dict[str, outcomes.Outcome]
Keep = typing.Callable[[Outcomes], None]
# The release has no configuration of pytest.
PYTEST = ["-c", "/dev/null", "-p", "brine_suite", "-p", "no:cacheprovider", "--run-slow", "--core-tests"]
PYTEST += ["-q", "-W", "ignore", "--color=no", "--tb=short", "--show-capture=no"]


class Selection:
    """The tests of a run: paths below the release, as pytest takes them."""

    def __init__(self, salt: Release, wanted: list[str], is_sample: bool) -> None:
        self.excluded = outcomes.Reasons(HERE / "excluded")
        self._salt = salt
        if is_sample:
            wanted = (HERE / "sample").read_text(encoding="utf-8").split()
        wanted = wanted or list(SUITES)
        paths = [path for word in wanted for path in SUITES.get(word, [word])]
        self.tests = [test for path in paths for test in self._files(path)]
        # The suites that are run as a whole.
        self.suites = [word for word in wanted if word in SUITES]

    def _files(self, path: str) -> list[str]:
        """Returns the files of a directory or a file; a single test is kept."""
        path, colons, test = path.removeprefix("tests/pytests/").partition("::")
        at = self._salt.source / "tests/pytests" / path
        files = sorted(at.rglob("test_*.py")) if at.is_dir() else [at]
        names = [str(file.relative_to(self._salt.source)) for file in files]
        return [name + colons + test for name in names if not self.excluded.of(name)]

    @property
    def whole_files(self) -> list[str]:
        return [test for test in self.tests if "::" not in test]


def suite_of(test: str) -> str | None:
    """Returns the suite that a file belongs to."""
    path = test.removeprefix("tests/pytests/")
    return next((name for name, parts in SUITES.items() if any(path.startswith(f"{part}/") for part in parts)), None)


def run(salt: Release, tests: list[str], binary: pathlib.Path | None, jobs: int, keep: Keep) -> Outcomes:
    """Runs tests, with Brine if there is a binary, and those that fail once more. `keep` gets outcomes early."""
    results = fresh(salt.directory / "results")
    tools = linked(results / "tools", binary) if binary else None
    jobs = jobs or os.cpu_count() or 1
    size = max(1, min(FILES_AT_A_TIME, len(tests) // jobs))
    found = {}
    for part in spread(salt, apart(tests, size), results / "first", tools, jobs):
        found |= part
        keep(part)
    again = [outcome.test for outcome in found.values() if outcome.outcome == "failed"]
    if again:
        # The load of the machine may have been the cause.
        print(f"running {len(again)} failed tests once more", flush=True)
        parts = apart(again, -(-len(again) // jobs))
        for part in spread(salt, parts, results / "second", tools, jobs):
            found |= {test: outcome for test, outcome in part.items() if outcome.outcome == "passed"}
        keep(found)
    return found


def apart(tests: list[str], size: int) -> list[list[str]]:
    """Returns the tests in parts of this size, those of the files `ALONE` in parts of their own."""
    file_of = {test: test.partition("::")[0] for test in tests}
    together = [test for test in tests if file_of[test] not in ALONE]
    parts = [together[at : at + size] for at in range(0, len(together), size)]
    parts += [[test for test in tests if file_of[test] == alone] for alone in sorted(ALONE)]
    return [part for part in parts if part]


def fresh(parent: pathlib.Path) -> pathlib.Path:
    """Makes a directory for the results of this run, and removes those of runs that have ended."""
    parent.mkdir(exist_ok=True)
    for old in parent.iterdir():
        if not pathlib.Path("/proc", old.name).exists():
            shutil.rmtree(old)
    results = parent / str(os.getpid())
    results.mkdir()
    print(f"logs are in {results}", flush=True)
    return results


def linked(tools: pathlib.Path, binary: pathlib.Path) -> pathlib.Path:
    """Makes a directory of Brine's programs under Salt's names.

    Like Salt's, they are scripts of Python: some tests start them with the interpreter.
    """
    tools.mkdir()
    subprocess.run([str(binary), "link", str(tools)], check=True, capture_output=True)
    script = f"#!{sys.executable} -IS\nimport os, sys\nos.execv({str(binary)!r}, sys.argv)\n"
    for tool in list(tools.iterdir()):
        tool.unlink()
        tool.write_text(script, encoding="utf-8")
        tool.chmod(0o755)
    return tools


def spread(
    salt: Release, parts: list[list[str]], results: pathlib.Path, tools: pathlib.Path | None, jobs: int
) -> typing.Iterator[Outcomes]:
    """Runs each part in a sandbox of its own, several at a time, and yields the outcomes of each when it ends."""
    began, tests = time.monotonic(), 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        running = [pool.submit(boxed, salt, part, results / str(number), tools) for number, part in enumerate(parts)]
        for done, future in enumerate(concurrent.futures.as_completed(running), 1):
            tests += len(future.result())
            minutes = (time.monotonic() - began) / 60
            print(f"{done} of {len(parts)} parts, {tests} tests, {minutes:.0f} min", flush=True)
            yield future.result()


def boxed(salt: Release, tests: list[str], results: pathlib.Path, tools: pathlib.Path | None) -> Outcomes:
    """Runs tests in a sandbox, and returns their outcomes."""
    results.mkdir(parents=True)
    written = results / "outcomes"
    environment = {
        "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin:{salt.environment / 'bin'}",
        "PYTHONPATH": f"{HERE / 'plugin'}:{HERE}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "SALT_SUITE_OUTCOMES": str(written),
        "LC_ALL": "C.UTF-8",
    }
    if tools:
        environment["SALT_SUITE_TOOLS"] = str(tools)
    command = ["env", f"--chdir={salt.source}", str(salt.python), "-m", "pytest", "--rootdir", str(salt.source)]
    command = sandbox.enter([*command, *PYTEST, *tests], results, HERE.parent.parent, environment)
    with (results / "log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            process.wait(LIMIT_SECONDS)
        finally:
            process.kill()
    found = outcomes.read(written)
    if not found:
        print(f"no test ran: {' '.join(tests)}\n{log_end(results / 'log')}", flush=True)
    return found


def log_end(path: pathlib.Path) -> str:
    """Returns the last lines of a log."""
    return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-10:])
