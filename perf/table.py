# SPDX-License-Identifier: BSD-3-Clause
"""A table of what was measured, with the targets beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import measure
from measure import MIB, Peak, Time

LARGEST_CACHE = 16 * MIB


@dataclass(frozen=True)
class Row:
    """A tool's runs; `against`, those of etstream in the same rounds, of which the tool is to take at least
    `at_least` times the time."""

    tool: str
    runs: Sequence[Time]
    against: Sequence[Time] | None = None
    at_least: float | None = None
    peak: Peak | None = None


def rows_of(
    times: Mapping[str, Sequence[Time]],
    against: Mapping[str, tuple[str, float | None]],
    peaks: Mapping[str, Peak],
) -> list[Row]:
    """Of each tool, beside the one that `against` names and at least so many times its time."""
    rows = []
    for tool, runs in times.items():
        own, at_least = against.get(tool, (None, None))
        rows.append(Row(tool, runs, times[own] if own else None, at_least, peaks.get(tool)))
    return rows


def show(title: str, rows: Sequence[Row]) -> bool:
    """Whether every target was reached."""
    print(f"\n{title}")
    header = ("", "seconds", "of etstream's time, with spread", "to reach", "CPU s", "memory MiB", "cache MiB")
    print("{:<20} {:>8} {:>32} {:>9} {:>7} {:>11} {:>10}".format(*header))
    return all([_show(row) for row in rows])


def _show(row: Row) -> bool:
    ratio, verdict, reached = "", "", True
    if row.against is not None:
        low, mid, high = measure.ratios(row.runs, row.against[: len(row.runs)])
        ratio = f"{mid:.2f} ({low:.2f} to {high:.2f})"
        if row.at_least is not None:
            reached = mid >= row.at_least
            verdict = f"{row.at_least:g} {yes(reached)}"
    typical = measure.median(row.runs)
    memory = f"{row.peak.anonymous / MIB:.1f}" if row.peak else ""
    cache = f"{row.peak.page_cache / MIB:.0f}" if row.peak else ""
    print(
        f"{row.tool:<20} {typical.wall:>8.4f} {ratio:>32} {verdict:>9} {typical.cpu:>7.3f} {memory:>11} {cache:>10}",
        flush=True,
    )
    return reached


def show_limit(what: str, found: float, most: float, unit: str) -> bool:
    """Whether what was found is at most what it is to be."""
    print(f"{what}: {found:.1f} {unit}, to reach: {most:g} {yes(found <= most)}", flush=True)
    return found <= most


def show_cache_growth(tool: str, peak: Peak) -> bool:
    return show_limit(f"page cache growth of {tool}", peak.page_cache / MIB, LARGEST_CACHE / MIB, "MiB")


def yes(reached: bool) -> str:
    return "yes" if reached else "NO"
