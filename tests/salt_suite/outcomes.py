"""Outcomes of Salt's tests: those of real Salt, which are recorded, those of a run, and lists of tests with reasons."""

import collections
import dataclasses
import json
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass
class Outcome:
    """What became of a test. `calls` counts how often it called Brine."""

    test: str
    outcome: str
    calls: int
    seconds: float
    message: str

    @property
    def file(self) -> str:
        return self.test.split("::")[0]


def read(path: pathlib.Path) -> dict[str, Outcome]:
    """Reads the outcomes that the plugin has written; the last one of a test counts."""
    if not path.exists():
        return {}
    outcomes = (Outcome(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines())
    return {outcome.test: outcome for outcome in outcomes}


class Reasons:
    """A list of tests with a reason each, from a file.

    A line is `TEST: REASON`. TEST is a directory, a file, a test, or the beginning of the name of a variant, up to the
    end of a word, and `*` in it stands for any text.
    """

    def __init__(self, path: pathlib.Path) -> None:
        self._entries = []
        for line in path.read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                test, reason = line.split(": ", 1)
                pattern = ".*".join(re.escape(part) for part in test.split("*"))
                self._entries.append((re.compile(rf"{pattern}(?!\w)"), reason))

    def of(self, test: str) -> str | None:
        """Returns the reason that is given for this test, or for all of its file or directory."""
        return next((reason for pattern, reason in self._entries if pattern.match(test)), None)


class Recorded:
    """What real Salt makes of its tests: for each file the number of tests that pass, and the others by name."""

    PATH = HERE / "recorded.json"

    def __init__(self) -> None:
        self.files = self._read()

    def _read(self) -> dict[str, dict]:
        return json.loads(self.PATH.read_text(encoding="utf-8")) if self.PATH.exists() else {}

    def passes(self, test: str) -> bool:
        """Returns whether real Salt passes a test that this release has."""
        file, _, name = test.partition("::")
        entry = self.files.get(file, {"passed": 0})
        return entry["passed"] > 0 and name not in entry.get("others", {})

    def keep(self, outcomes: dict[str, Outcome]) -> None:
        """Takes over what a run of real Salt has found in whole files, and writes it beside what others have written."""
        self.files = self._read()
        of_files = collections.defaultdict(list)
        for outcome in outcomes.values():
            of_files[outcome.file].append(outcome)
        for file, found in of_files.items():
            entry = {"passed": sum(outcome.outcome == "passed" for outcome in found)}
            others = {one.test.partition("::")[2]: one.outcome for one in found if one.outcome != "passed"}
            if others and entry["passed"]:
                entry["others"] = dict(sorted(others.items()))
            self.files[file] = entry
        lines = (f" {json.dumps(file)}: {json.dumps(entry)}" for file, entry in sorted(self.files.items()))
        self.PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


@dataclasses.dataclass
class Comparison:
    """The tests of a run by what they say. `missing` counts those that Salt passes and that did not run."""

    equal: list[Outcome] = dataclasses.field(default_factory=list)
    known: list[Outcome] = dataclasses.field(default_factory=list)
    different: list[Outcome] = dataclasses.field(default_factory=list)
    internal: list[Outcome] = dataclasses.field(default_factory=list)
    not_by_salt: list[Outcome] = dataclasses.field(default_factory=list)
    missing: dict[str, int] = dataclasses.field(default_factory=dict)

    @property
    def counted(self) -> int:
        return len(self.equal) + len(self.different) + sum(self.missing.values())

    @property
    def share(self) -> float:
        return 100 * len(self.equal) / self.counted if self.counted else 0.0


def compare(outcomes: dict[str, Outcome], recorded: Recorded, known: Reasons, files: list[str]) -> Comparison:
    """Compares a run of these files with Brine to what real Salt does."""
    result = Comparison()
    seen: collections.Counter = collections.Counter()
    for outcome in outcomes.values():
        if not recorded.passes(outcome.test):
            result.not_by_salt.append(outcome)
            continue
        seen[outcome.file] += 1
        if outcome.outcome == "excluded":
            continue
        if outcome.outcome == "passed":
            # A test that calls nothing says nothing of Brine.
            (result.equal if outcome.calls else result.internal).append(outcome)
        else:
            (result.known if known.of(outcome.test) else result.different).append(outcome)
    for file in files:
        absent = recorded.files.get(file, {}).get("passed", 0) - seen[file]
        if absent > 0:
            result.missing[file] = absent
    return result
