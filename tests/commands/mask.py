"""Compares two answers to a command: values that vary between runs are masked, and minions may answer in any order."""

import re

MASKS = [
    (r"(?m)^( *(?:.*: )?Traceback \(most recent call last\):\n)(?: +.*\n)*", r"\1"),
    (r"\b20\d{18}\b", "<jid>"),
    (r"\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?", "<date>"),
    (r"\b20\d\d, [A-Z][a-z][a-z] \d\d \d\d:\d\d:\d\d\.\d+", "<date>"),
    (r"\b\d\d:\d\d:\d\d\.\d{6}\b", "<time>"),
    (r"(?<=Duration: )[\d.]+ ms", "<duration>"),
    (r"(?<=Total run time:) +[\d.]+ +m?s", " <duration>"),
    (r"((?:\"|')?duration(?:\"|')?:\s+)[\d.]+(e-\d+)?", r"\1<duration>"),
    (r"\d+(?=\n +retcode:)", "<pid>"),
    (r"web1, db1|db1, web1", "<both>"),
    (r"0x[0-9a-f]{8,}", "<address>"),
    (r"((?:\"|')?\bpid(?:\"|')?:\s+)\d+", r"\1<pid>"),
    # The lines that Brine adds to Salt's messages: the place, the lines around it, what to do.
    (r"\n *--> .*(?:\n *\d* \| .*)*", ""),
    (r"\n *hint: .*", ""),
]
MASKS = [(re.compile(pattern), replacement) for pattern, replacement in MASKS]
# Matches where the output of a minion, a document or a summary begins.
PART = re.compile(r"(?m)^(?=(?:web1|db1|gone1|jid|retcode)\b|\{|$)")
# Log lines below the level of errors, and Python's warnings about Salt's own code.
LOG = re.compile(
    r"^(?:# )?\[(?:WARNING|INFO|DEBUG|TRACE|PROFILE) *\]|^unclosed |DeprecationWarning|^  import |^  salt\.utils\.versions"
)
# Lists of valid values, and suggested names.
HINT = re.compile(r" \((?:choose from|did you mean) .*\)$")
TRACEBACK = "Traceback (most recent call last)"


def masked(text):
    """Returns a text with the values masked that vary between runs."""
    for pattern, replacement in MASKS:
        text = pattern.sub(replacement, text)
    return text


def parts(text):
    """Returns the parts of an output in an order that does not depend on the order of the minions."""
    return sorted(part.strip("\n") for part in PART.split(text) if part.strip("\n"))


def members(text):
    """Returns the lines of JSON in an order that does not depend on the order of keys."""
    return sorted(line.rstrip(",") for line in text.splitlines())


def kind(answer):
    """Returns the kind of a command's output on stderr: nothing, a usage error or a message."""
    lines = [line for line in answer["err"].splitlines() if line.strip() and not LOG.search(line)]
    if not lines:
        return "nothing"
    return HINT.sub("", lines[-1]) if answer["status"] == 64 else "a message"


def same(salt, brine):
    """Returns whether two answers are the same for an operator and for a script."""
    if salt["status"] != brine["status"] or kind(salt) != kind(brine):
        return False
    ours, theirs = masked(salt["out"]), masked(brine["out"])
    if "--out=json" in salt["line"] and members(ours) == members(theirs):
        return True
    return ours == theirs or parts(ours) == parts(theirs)


def is_traceback(salt, brine):
    """Returns whether Salt printed a traceback where Brine printed a message, with the same exit status."""
    said = any(TRACEBACK in salt[stream] for stream in ["out", "err"])
    plain = not any(TRACEBACK in brine[stream] for stream in ["out", "err"])
    return said and plain and salt["status"] == brine["status"] and bool(brine["out"] or brine["err"])
