# SPDX-License-Identifier: BSD-3-Clause
"""Packs and unpacks a file with ZipNN in memory, and prints the packed size and the processor time of both, a line for
each round.

    python zipnn_worker.py DTYPE FILE ROUNDS
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from zipnn import ZipNN


def main() -> None:
    dtype, file, rounds = sys.argv[1:]
    original = Path(file).read_bytes()
    coder = ZipNN(bytearray_dtype=dtype, threads=1)
    for _ in range(int(rounds)):
        to_pack = bytearray(original)  # which it changes
        begin = time.process_time()
        packed = coder.compress(to_pack)
        middle = time.process_time()
        restored = coder.decompress(packed)
        end = time.process_time()
        assert bytes(restored) == original, file
        print(len(packed), middle - begin, end - middle)


if __name__ == "__main__":
    main()
