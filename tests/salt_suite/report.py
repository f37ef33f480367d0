"""What a run says: on the terminal, and in docs/parity.md."""

import collections
import datetime
import pathlib
import re

from outcomes import Comparison, Outcome, Reasons

PARITY = pathlib.Path(__file__).resolve().parent.parent.parent / "docs/parity.md"


def recorded(found: dict[str, Outcome]) -> None:
    """Prints the figures of a run of real Salt."""
    counted = collections.Counter(outcome.outcome for outcome in found.values())
    print(", ".join(f"{number} {name}" for name, number in sorted(counted.items())))


def printed(comparison: Comparison, has_messages: bool) -> None:
    """Prints the tests that differ, and the figures."""
    for outcome in sorted(comparison.different, key=lambda one: one.test):
        lines = outcome.message.strip().splitlines() or [""]
        print(f"{outcome.outcome}: {outcome.test}")
        for line in lines if has_messages else lines[-1:]:
            print(f"    {line}")
    for file, number in comparison.missing.items():
        print(f"missing: {number} tests of {file} that real Salt passes")
    print(
        f"{len(comparison.equal)} of {comparison.counted} pass ({comparison.share:.1f} %); "
        f"known differences: {len(comparison.known)}; without a call: {len(comparison.internal)}; "
        f"not passed by Salt here: {len(comparison.not_by_salt)}"
    )


def document(suite: str, comparison: Comparison, files: list[str], known: Reasons) -> None:
    """Writes the figures of a suite into docs/parity.md, between the marks of its name."""
    failing = collections.Counter(outcome.file for outcome in comparison.different)
    failing.update(comparison.missing)
    passing = collections.Counter(outcome.file for outcome in comparison.equal)
    reasons = collections.Counter(known.of(outcome.test) for outcome in comparison.known)
    lines = [
        f"Measured on {datetime.date.today()}: {len(files)} files.",
        "",
        "| tests that Salt passes here and that call Brine | pass | share | known differences besides |",
        "|---|---|---|---|",
        f"| {comparison.counted} | {len(comparison.equal)} | {comparison.share:.1f} % | {len(comparison.known)} |",
    ]
    if failing:
        lines += ["", "Files with tests that fail:", "", "| file | pass | fail |", "|---|---|---|"]
        lines += [f"| `{short(file)}` | {passing[file]} | {number} |" for file, number in sorted(failing.items())]
    if reasons:
        lines += ["", "Known differences:", "", "| difference | tests |", "|---|---|"]
        lines += [f"| {reason} | {number} |" for reason, number in sorted(reasons.items())]
    text = PARITY.read_text(encoding="utf-8")
    block = re.compile(rf"(<!-- {suite} -->\n).*?(<!-- end -->)", re.DOTALL)
    body = "\n".join(lines)
    text, number = block.subn(lambda found: f"{found[1]}{body}\n{found[2]}", text)
    if number != 1:
        raise ValueError(f"{PARITY} has no place for the figures of {suite}: <!-- {suite} --> ... <!-- end -->")
    PARITY.write_text(text, encoding="utf-8")


def short(file: str) -> str:
    return file.removeprefix("tests/pytests/")
