"""Generates the section of docs/benchmarks.md with curves, and their pictures."""

import os

import picture


def size(bytes_):
    return f"{bytes_} B" if bytes_ < 1000 else f"{bytes_ // 1000} kB"


FORWARDER = "The forwarder is libzmq's own (`zmq_proxy`), without a journal, between the same clients."
# The curves by file name: title, names of the axes, further arguments of `picture.draw`, and the text below the picture.
CURVES = {
    "event-size": (
        "Events by their size", "size of an event's data", "events/s",
        {"log_x": True, "log_y": True, "x_form": size},
        f"One publishing and one subscribed process. {FORWARDER}",
    ),
    "subscribers": (
        "Events by number of subscribers", "subscribed processes", "events/s to each",
        {"log_x": True, "log_y": True},
        f"One process publishes events of 100 bytes, each subscriber receives all of them, and the slowest one counts. {FORWARDER}",
    ),
    "reactor-entries": (
        "Reactions by number of reactor entries", "reactor entries, of which one matches", "reactions/s",
        {"log_x": True},
        "A rendered SLS file with a runner call for each event, as in [Reactor](#reactor).",
    ),
    "minions": (
        "salt '*' test.ping by number of minions", "simulated minions", "s",
        {"log_x": True, "log_y": True},
        "Whole commands, in which all minions of `brine swarm` returned.",
    ),
    "files": (
        "state.apply by number of unchanged files", "states file.managed that change nothing", "s",
        {"log_x": True, "log_y": True},
        "Whole runs of `salt-call --local`, as in [States](#states). Reading is one `lstat` and one read of each file, by Python.",
    ),
    "sls-files": (
        "state.show_lowstate by number of SLS files", "SLS files", "s",
        {},
        "Whole runs of `salt-call --local` over the tree of [States](#states), four states in each file.",
    ),
    "concurrent-jobs": (
        "Jobs by number of concurrent clients", "clients with one open request each", "jobs/s",
        {"log_x": True},
        "`test.ping` of one minion by POST `/run`, each client on a connection of its own.",
    ),
}


def curves_part(found):
    parts = [
        f"Measured by `benches/vs_salt/run curves`: Brine without Salt, medians of {found['runs']} runs after a warm-up. Clients, master and minions "
        f"share the {os.cpu_count()} processors."
    ]
    for name, (title, *_, text) in CURVES.items():
        parts.append(f"![{title}](benchmarks/{name}.svg)\n\n{text}")
    return "\n\n".join(parts)


def draw(found, document):
    """Writes the pictures to the directory `benchmarks` beside the document."""
    directory = os.path.join(os.path.dirname(document), "benchmarks")
    os.makedirs(directory, exist_ok=True)
    for name, (title, x_name, y_name, how, _) in CURVES.items():
        with open(f"{directory}/{name}.svg", "w") as out:
            out.write(picture.draw(title, x_name, y_name, list(found[name].items()), **how))
