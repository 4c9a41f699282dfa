# SPDX-License-Identifier: BSD-3-Clause
"""Writes 4 GiB of zeros to the output that is given, until it is interrupted; says when it begins and how it ends."""

import os
import sys
import tempfile
import time

import etstream


class Slow:
    def write(self, piece: memoryview) -> None:
        time.sleep(0.05)


def main() -> None:
    with tempfile.TemporaryFile() as zeros:
        os.truncate(zeros.fileno(), 4 << 30)
        layout = etstream.Layout.copy(etstream.Source.descriptor(zeros.fileno(), 0, 4 << 30))
        name = sys.argv[1]
        output = {"slow": Slow(), "pipe": os.pipe()[1]}.get(name, name)
        print("begins", flush=True)
        try:
            layout.write(output)
        except KeyboardInterrupt:
            print("interrupted", flush=True)


if __name__ == "__main__":
    main()
