# SPDX-License-Identifier: BSD-3-Clause
"""Writes or compares zeros until it is interrupted; says when it begins and how it ends.

    python interrupted.py slow|pipe|diff|merge|OUTPUT
"""

import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import etstream

# The sizes that nobody can read, and that nobody can write to the disk, in the time that the test allows.
SIZE = 64 << 30
WRITTEN = 8 << 30
SHAPE = [64, SIZE // 64 // 4]


class Slow:
    def write(self, piece: memoryview) -> None:
        time.sleep(0.05)


def weights(zeros: Path) -> etstream.Source:
    """Returns a safetensors file with one large tensor, which is only planned."""
    tensor = etstream.Tensor("float32", SHAPE, zeros)
    return etstream.ptd({"zeros": tensor}, dry_run=True).source()


def checkpoint(path: Path) -> Path:
    """Writes a file with the same tensor."""
    entry = {"dtype": "F32", "shape": SHAPE, "data_offsets": [0, SIZE]}
    header = json.dumps({"zeros": entry}).encode()
    with open(path, "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(file.tell() + SIZE)
    return path


def main() -> None:
    # Python does not set this handler if it was started in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as folder:
        zeros = Path(folder, "zeros")
        with open(zeros, "wb") as file:
            file.truncate(SIZE)
        what = sys.argv[1]
        output = {"slow": Slow(), "pipe": os.pipe()[1]}.get(what, what)
        print("begins", flush=True)
        try:
            if what == "diff":
                etstream.diff(weights(zeros), weights(zeros))
            elif what == "merge":
                etstream.ptd([checkpoint(Path(folder, name)) for name in ("a", "b")], dry_run=True)
            else:
                etstream.FilePlan.copy(etstream.Source.file(zeros, 0, WRITTEN)).write(output)
        except KeyboardInterrupt:
            print("interrupted", flush=True)


if __name__ == "__main__":
    main()
