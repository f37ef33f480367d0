"""A plugin of pytest that puts Brine in the place of Salt, and writes the outcome of each test.

The environment says what to do: `SALT_SUITE_OUTCOMES` is the file of outcomes, one JSON object a line;
`SALT_SUITE_TOOLS`, if set, is a directory with Brine's programs under Salt's names, which then answer.
"""

import json
import os
import pathlib
import time

import outcomes
import pytest

TOOLS = os.environ.get("SALT_SUITE_TOOLS")
OUTCOMES = pathlib.Path(os.environ["SALT_SUITE_OUTCOMES"])
EXCLUDED = outcomes.Reasons(outcomes.HERE / "excluded")
MESSAGE = 2000

if TOOLS:
    import brine_daemons
    import brine_loaders

    brine_loaders.install(pathlib.Path(TOOLS))
    brine_daemons.install(pathlib.Path(TOOLS))


def calls() -> int:
    """Returns how often Brine was called until now."""
    return brine_loaders.CALLS.count + brine_daemons.CALLS.count if TOOLS else 0


def write(test: str, outcome: str, message: str = "", called: int = 0, seconds: float = 0.0) -> None:
    """Appends an outcome to the file, which is complete up to a crash."""
    line = {"test": test, "outcome": outcome, "calls": called, "seconds": round(seconds, 2), "message": message}
    with OUTCOMES.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the excluded tests."""
    excluded = [item for item in items if EXCLUDED.of(item.nodeid)]
    items[:] = [item for item in items if item not in excluded]
    for item in excluded:
        write(item.nodeid, "excluded")
    if excluded:
        config.hook.pytest_deselected(items=excluded)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None):
    """Writes what became of the test: the worst of its phases, and whether it called Brine."""
    item.suite_phases = {}
    before, began = calls(), time.monotonic()
    yield
    phases = item.suite_phases
    outcome = next((name for name in ["failed", "skipped"] if name in phases), "passed")
    write(item.nodeid, outcome, phases.get(outcome, ""), calls() - before, time.monotonic() - began)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    report = (yield).get_result()
    if hasattr(report, "wasxfail"):
        # An expected failure is one only if Salt fails, too.
        item.suite_phases["skipped"] = report.wasxfail
    elif report.outcome != "passed":
        item.suite_phases.setdefault(report.outcome, f"{report.when}: {report.longreprtext[-MESSAGE:]}")


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Writes the files that cannot be collected."""
    if report.failed:
        write(report.nodeid, "failed", report.longreprtext[-MESSAGE:])
