# SPDX-License-Identifier: BSD-3-Clause
"""Makes the golden GGUF file with gguf-py, the package "gguf" (0.19.0).

    python tests/golden/make_gguf.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFValueType, GGUFWriter, quants

FOLDER = Path(__file__).resolve().parent / "gguf"
PLAIN = (np.float32, np.float16, np.float64, np.int8, np.int16, np.int32, np.int64)
BLOCKS = (GGMLQuantizationType.BF16, GGMLQuantizationType.Q4_0, GGMLQuantizationType.Q8_0)


def metadata(writer: GGUFWriter) -> None:
    """Adds metadata of every type, and arrays of most."""
    writer.add_custom_alignment(64)
    for kind, value in (
        (GGUFValueType.UINT8, 200),
        (GGUFValueType.INT8, -1),
        (GGUFValueType.UINT16, 60000),
        (GGUFValueType.INT16, -2),
        (GGUFValueType.UINT32, 2**32 - 1),
        (GGUFValueType.INT32, -3),
        (GGUFValueType.FLOAT32, 0.5),
        (GGUFValueType.BOOL, True),
        (GGUFValueType.STRING, "gr\u00f6\u00dfe"),
        (GGUFValueType.UINT64, 2**64 - 1),
        (GGUFValueType.INT64, -4),
        (GGUFValueType.FLOAT64, 0.25),
    ):
        writer.add_key_value(f"etstream.{kind.name.lower()}", value, kind)
    writer.add_token_list(["<s>", "a", "", "\u6a21"])
    writer.add_array("etstream.numbers", [1, 2, 3])
    writer.add_array("etstream.truths", [True, False])
    writer.add_array("etstream.scores", [0.5, -1.5])


def tensors(writer: GGUFWriter) -> None:
    """Adds tensors of every type of numbers, 2 by 3, and of some types of blocks, 2 by 64."""
    for dtype in PLAIN:
        numbers = np.arange(-2, 4, dtype=dtype).reshape(2, 3)
        writer.add_tensor(f"plain.{np.dtype(dtype).name}", numbers)
    for kind in BLOCKS:
        numbers = np.linspace(-1, 1, 128, dtype=np.float32).reshape(2, 64)
        writer.add_tensor(f"blocks.{kind.name}", quants.quantize(numbers, kind), raw_dtype=kind)
    writer.add_tensor("line", np.arange(5, dtype=np.int8))
    writer.add_tensor("cube", np.arange(24, dtype=np.int16).reshape(1, 2, 3, 4))


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    writer = GGUFWriter(FOLDER / "expected.gguf", "etstream")
    metadata(writer)
    tensors(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
