# SPDX-License-Identifier: BSD-3-Clause
"""Writes a file that is packed as pieces of all kinds: of zeros, of random bytes, of floats, and a short one. BASE gets
an earlier version, for an update with runs of all kinds: it has no short piece, and some of its floats are lower.

    python3 write_pieces.py FILE BASE
"""

import random
import struct
import sys
from pathlib import Path

PIECE = 1 << 20

source = random.Random(1)
floats = [source.gauss(0, 1) for _ in range(PIECE // 4)]
pieces = [bytes(PIECE), source.randbytes(PIECE), struct.pack(f"<{len(floats)}f", *floats), b"the end"]
Path(sys.argv[1]).write_bytes(b"".join(pieces))
lower = [each - 0.001 * (source.random() < 0.1) for each in floats]
Path(sys.argv[2]).write_bytes(b"".join([*pieces[:2], struct.pack(f"<{len(lower)}f", *lower)]))
