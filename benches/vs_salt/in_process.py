"""Runs the benches that need no other process, and reads their results from criterion's files."""

import glob
import json
import os
import shutil
import subprocess

import results
from reacting import arguments

BENCHES = {"entries": "brine-reactor", "bus": "brine-bus", "job_cache": "brine-returners"}


def run_bench(bench, package, words, quick):
    """Runs a bench and returns its results in order: name, seconds for each element, and elements per second."""
    directory = f"target/bench/{bench}"
    shutil.rmtree(directory, ignore_errors=True)
    command = ["cargo", "bench", "--quiet", *words, "-p", package, "--bench", bench, "--"]
    environment = os.environ | {"CRITERION_HOME": os.path.abspath(directory)}
    subprocess.run(command + (["--quick"] if quick else []), env=environment, check=True)
    rows = []
    for path in sorted(glob.glob(f"{directory}/**/new/benchmark.json", recursive=True), key=os.path.getmtime):
        with open(path) as about, open(path.replace("benchmark.json", "estimates.json")) as estimates:
            about, seconds = json.load(about), json.load(estimates)["median"]["point_estimate"] / 1e9
        elements = (about["throughput"] or {"Elements": 1})["Elements"]
        rows.append((about["function_id"] or about["group_id"], seconds / elements, elements / seconds))
    return rows


def main():
    parser = arguments(__doc__)
    parser.add_argument("--profile", default="bench", help="cargo's profile")
    options = parser.parse_args()
    words = ["--profile", options.profile]
    found = {bench: run_bench(bench, package, words, options.quick) for bench, package in BENCHES.items()}
    results.store("in-process", found, options.quick)


if __name__ == "__main__":
    main()
