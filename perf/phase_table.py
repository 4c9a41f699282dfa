# SPDX-License-Identifier: BSD-3-Clause
"""Prints a table of the phases of processes that do the same work in different ways."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from measure import MIB

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "python"))
import phases  # noqa: E402
from phases import Phase  # noqa: E402

_WIDTH = 36


def show_phases(title: str, ways: Mapping[str, Sequence[Phase]]) -> None:
    """Prints, for each phase, its seconds, the growth of anonymous memory since it began, and the peak of resident
    memory; and for the whole process, the peaks of both."""
    print(f"\n{title}")
    print(f"{'':<18}" + "".join(f"{name:>{_WIDTH}}" for name in ways))
    print(f"{'':<18}" + f"{'seconds':>10}{'anonymous MiB':>15}{'RSS MiB':>11}" * len(ways))
    for index, phase in enumerate(next(iter(ways.values()))):
        alike = [way[index] for way in ways.values()]
        _row(phase.name, [_columns(one.seconds, f"+{one.growth / MIB:.0f}", one.resident) for one in alike])
    whole = [
        _columns(
            sum(phase.seconds for phase in way),
            f"{max(phase.anonymous for phase in way) / MIB:.0f}",
            max(phase.resident for phase in way),
        )
        for way in ways.values()
    ]
    _row("process", whole)


def _row(name: str, columns: Sequence[str]) -> None:
    print(f"{name:<18}" + "".join(columns), flush=True)


def _columns(seconds: float, anonymous: str, resident: int) -> str:
    return f"{seconds:>10.2f}{anonymous:>15}{resident / MIB:>11.0f}"
