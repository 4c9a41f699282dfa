# SPDX-License-Identifier: BSD-3-Clause
"""Prints a table of measurements, with the targets beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import measure
from measure import MIB, Peak, Time

LARGEST_CACHE = 16 * MIB


@dataclass(frozen=True)
class Row:
    """A row of a tool's runs. `against` has the runs of etstream in the same rounds; the tool is to take at least
    `at_least` times their time."""

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
    """Returns a row for each tool, beside the one that `against` names with the least ratio to its time."""
    rows = []
    for tool, runs in times.items():
        own, at_least = against.get(tool, (None, None))
        rows.append(Row(tool, runs, times[own] if own else None, at_least, peaks.get(tool)))
    return rows


def show(title: str, rows: Sequence[Row]) -> bool:
    """Prints a table, and returns whether every target was reached."""
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
    """Prints a figure, and returns whether it is at most `most`."""
    print(f"{what}: {found:.1f} {unit}, to reach: {most:g} {yes(found <= most)}", flush=True)
    return found <= most


def show_cache_growth(tool: str, peak: Peak) -> bool:
    return show_limit(f"page cache growth of {tool}", peak.page_cache / MIB, LARGEST_CACHE / MIB, "MiB")


def yes(reached: bool) -> str:
    return "yes" if reached else "NO"
