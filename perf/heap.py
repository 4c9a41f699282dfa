# SPDX-License-Identifier: BSD-3-Clause
"""Measures the cost of `etstream run` for programs that need no heap, and for those that do.

    python perf/heap.py [--rounds N]

ETSTREAM names the command. Each program runs in turn by itself and with `etstream run`; the table has the ratio pair
by pair. Needs NumPy, and 3 GiB on the disk.
"""

from __future__ import annotations

import argparse
import os
import sys

from measure import Time, median, ratios, timed

# No block here is large enough for the heap, so the program shows the heap's cost for small blocks.
SMALL = """
import json
data = [{"name": f"n{i}", "values": list(range(i % 50)), "text": "x" * (600 + i % 3000)} for i in range(2000)]
for _ in range(12):
    json.loads(json.dumps(data))
    blocks = [bytes(700 + i % 5000) for i in range(40000)]
    blocks = [bytearray(1000 + i % 200) for i in range(40000)]
    for block in blocks:
        block.extend(b"y" * 3000)
"""
# The program makes large results that are dropped soon, as numeric code does.
LARGE = """
import numpy
for _ in range({rounds}):
    a = numpy.full({elements}, 1.0, numpy.float32)
    b = a * 2 + 1
    b.sum()
"""
FORKS = """
import os
block = bytearray(64 << 20)
for _ in range(200):
    if os.fork() == 0:
        os._exit(0)
    os.wait()
"""
PROGRAMS = {
    "Python, small objects": (SMALL, 1.02),
    "arrays of 1 MiB": (LARGE.format(rounds=4000, elements=1 << 18), None),
    "arrays of 16 MiB": (LARGE.format(rounds=250, elements=1 << 22), None),
    "arrays of 256 MiB": (LARGE.format(rounds=12, elements=1 << 26), None),
    "200 forks beside 64 MiB": (FORKS, None),
}
"""The programs, each with the ratio to reach, if there is one."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    print(f"{'':<26} {'seconds':>8} {'with the heap':>14} {'ratio of CPU time':>26}")
    reached = True
    for name, (script, target) in PROGRAMS.items():
        plain: list[Time] = []
        heap: list[Time] = []
        for _ in range(rounds):
            plain.append(timed([sys.executable, "-c", script]))
            heap.append(timed([os.environ["ETSTREAM"], "run", "--", sys.executable, "-c", script]))
        low, middle, high = ratios([Time(t.cpu, t.cpu) for t in heap], [Time(t.cpu, t.cpu) for t in plain])
        verdict = ""
        if target is not None:
            reached = reached and middle <= target
            verdict = f"  to reach: {target:g} {'yes' if middle <= target else 'NO'}"
        ratio = f"{middle:.2f} ({low:.2f} to {high:.2f})"
        print(f"{name:<26} {median(plain).wall:>8.2f} {median(heap).wall:>14.2f} {ratio:>26}{verdict}", flush=True)
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
