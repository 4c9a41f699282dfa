# SPDX-License-Identifier: BSD-3-Clause
"""Weight caches of XNNPACK are inspected and verified, by themselves and with a program."""

from __future__ import annotations

from pathlib import Path

import etstream

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
PROGRAM, CACHE = GOLDEN / "delegated_program" / "program.pte", GOLDEN / "xnnpack_cache" / "cache.xpwc"


def test_a_cache_is_listed() -> None:
    report = etstream.inspect(CACHE)
    assert report["format"] == "xnnpack_cache"
    (entry,) = report["xnnpack_cache"]["entries"]
    assert (entry["offset"], entry["size"], entry["seed"]) == (0, 320, 40)
    assert report["xnnpack_cache"]["dead_bytes"] == 4096 - 320


def test_a_program_says_what_it_looks_up(tmp_path: Path) -> None:
    assert etstream.verify(CACHE)
    (fit,) = etstream.verify(PROGRAM, CACHE).xnnpack_caches
    assert (fit.file, fit.misses, fit.unasked) == (str(CACHE), [], [])
    other = CACHE.read_bytes().replace(b"7a3c06cf", b"00000000")
    findings = etstream.verify(PROGRAM, other)
    assert findings and len(findings.warnings) == 2
    (fit,) = findings.xnnpack_caches
    assert [name[:8] for name in (*fit.misses, *fit.unasked)] == ["7a3c06cf", "00000000"]
    assert repr(fit) == f"<etstream.XnnpackCacheFit of {fit.file}: 1 missing, 1 not asked for>"
    (tmp_path / "other").write_bytes(other)
    assert etstream.verify(PROGRAM, tmp_path / "other").xnnpack_caches[0].misses == fit.misses
