# SPDX-License-Identifier: BSD-3-Clause
"""Bundles, converts or repacks many models over a Dask cluster. If it is run again, it does the jobs that are not done
yet.

    python fleet.py JOBS.json MANIFEST.json [--scheduler ADDRESS] [--workers 2] [--memory-limit 512MiB]

JOBS.json is a list of jobs, each a function of etstream and its arguments, such as
{"do": "bundle", "program": "a.pte", "cases": "a.json", "output": "a.bpte"},
{"do": "convert", "bundle": "a.bpte", "to": "segmented", "output": "b.bpte"} or
{"do": "pte", "program": "a.pte", "segment_alignment": 4096, "output": "b.pte"}.
Paths are relative to the file, and the workers see them too.

MANIFEST.json has an entry for each job, by its output: the job, "inputs" (size and time of each file that it reads,
those that test cases and checkpoints name too), "outputs" (size and SHA-256 of each), or "error". It is replaced after
every job, so that a run that ends early loses only the jobs that were running. A job is done again if it or an input
changed, or an output is not there as the entry says.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import etstream
from distributed import Client, as_completed

Job = dict[str, Any]
Entry = dict[str, Any]

FUNCTIONS = {
    "bundle": etstream.bundle,
    "convert": etstream.convert,
    "pte": etstream.pte,
    "ptd": etstream.ptd,
}
INPUTS = ("program", "cases", "bundle", "inputs")
OUTPUTS = ("output", "constants_to")


def files_read(job: Job, folder: Path) -> set[Path]:
    """Returns all files that a job reads: those that it names, and those that these name."""
    found = {folder / job[name] for name in INPUTS if name in job}
    if "cases" in job:
        suites = etstream.read_test_cases(folder / job["cases"])
        cases = [case for suite in suites for case in suite.test_cases]
        values = [value for case in cases for value in case.inputs + case.expected_outputs]
        found |= {Path(value.data.name) for value in values if isinstance(value, etstream.Tensor)}
    if "inputs" in job:
        found |= {Path(name) for name in etstream.Checkpoint(folder / job["inputs"]).files}
    return found


def times_of(job: Job, folder: Path) -> Entry:
    """Returns the size and the time of the last change of each file that a job reads."""
    stats = {os.path.relpath(file, folder): file.stat() for file in files_read(job, folder)}
    return {name: [stat.st_size, stat.st_mtime_ns] for name, stat in sorted(stats.items())}


def hashes_of(job: Job, folder: Path) -> Entry:
    """Returns the size and the SHA-256 of each file that a job writes. Reads the files in pieces."""
    found = {}
    for name in (job[name] for name in OUTPUTS if name in job):
        sha256 = hashlib.sha256()
        with open(folder / name, "rb") as file:
            while piece := file.read(1 << 20):
                sha256.update(piece)
            found[name] = {"size": file.tell(), "sha256": sha256.hexdigest()}
    return found


def is_done(entry: Entry, job: Job, folder: Path) -> bool:
    """Returns whether an entry of the manifest says that the job is done, and the files agree."""
    try:
        is_same = entry["job"] == job and entry.get("inputs") == times_of(job, folder)
        return is_same and entry["outputs"] == hashes_of(job, folder)
    except (etstream.Error, OSError):
        return False


def run(job: Job, entry: Entry, folder: Path) -> tuple[Entry, bool]:
    """Does a job unless its entry says that it is done. Returns its entry now, and whether it was done before.

    Runs on a worker. The outputs appear whole or not at all, and memory does not grow with the files.
    """
    if is_done(entry, job, folder):
        return entry, True
    paths = {name: folder / job[name] for name in INPUTS + OUTPUTS if name in job}
    try:
        inputs = times_of(job, folder)
        FUNCTIONS[job["do"]](**{name: value for name, value in (job | paths).items() if name != "do"})
        return {"job": job, "inputs": inputs, "outputs": hashes_of(job, folder)}, False
    except (etstream.Error, OSError, TypeError, ValueError) as error:
        return {"job": job, "error": f"{type(error).__name__}: {error}"}, False


def run_all(client: Client, jobs: list[Job], folder: Path, manifest_path: Path) -> Iterator[tuple[Entry, bool]]:
    """Runs jobs, and updates the manifest as they end. Yields each one's entry, and whether it was done before."""
    written = [job[name] for job in jobs for name in OUTPUTS if name in job]
    if len(set(written)) != len(written) or any(job["do"] not in FUNCTIONS for job in jobs):
        raise ValueError(f"expected jobs with outputs of their own that do one of {', '.join(FUNCTIONS)}")
    old = json.loads(manifest_path.read_text()) if manifest_path.exists() else {}
    manifest = {job["output"]: old.get(job["output"], {"job": None}) for job in jobs}
    # If a worker is lost, or is restarted because it was over its limit, its jobs are run again on another.
    futures = {client.submit(run, job, manifest[job["output"]], folder, pure=False): job for job in jobs}
    for future in as_completed(futures):
        job, lost = futures[future], future.exception()
        entry, was_done = future.result() if lost is None else ({"job": job, "error": str(lost)}, False)
        manifest[job["output"]] = entry
        etstream.FilePlan.copy(json.dumps(manifest, indent=2).encode()).write(manifest_path)
        yield entry, was_done


def main() -> int:
    parser = argparse.ArgumentParser(description="Bundles, converts or repacks many models over a Dask cluster.")
    parser.add_argument("jobs", type=Path, help="a list of jobs, in JSON")
    parser.add_argument("manifest", type=Path, help="the file that lists the results")
    parser.add_argument("--scheduler", help="the address of a cluster; by default one is started here")
    parser.add_argument("--workers", type=int, default=2, help="the number of workers of the new cluster")
    parser.add_argument("--memory-limit", default="512MiB", help="the memory limit of each worker")
    arguments = parser.parse_args()
    # Each worker has one thread, as a job takes one disk's bandwidth.
    local = {"threads_per_worker": 1, "memory_limit": arguments.memory_limit, "dashboard_address": None}
    cluster = {} if arguments.scheduler else {"n_workers": arguments.workers, **local}
    failed = 0
    with Client(arguments.scheduler, **cluster) as client:
        jobs = json.loads(arguments.jobs.read_text())
        for entry, was_done in run_all(client, jobs, arguments.jobs.resolve().parent, arguments.manifest):
            failed += "error" in entry
            said = entry.get("error") or ("was done" if was_done else "done")
            print(f"{entry['job']['output']}: {said}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
