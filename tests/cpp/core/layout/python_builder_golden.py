#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Prints the file of `everything` in backward_builder_test.cpp, as FlatBuffers' Python builder makes it.

    pip install flatbuffers==25.12.19 && python python_builder_golden.py
"""

import flatbuffers


def vector(builder, elements, element_size, alignment):
    builder.StartVector(element_size, len(elements) // element_size, alignment)
    for byte in reversed(elements):
        builder.Place(byte, flatbuffers.number_types.Uint8Flags)
    return builder.EndVector()


def vector_of_references(builder, references):
    builder.StartVector(4, len(references), 4)
    for reference in reversed(references):
        builder.PrependUOffsetTRelative(reference)
    return builder.EndVector()


def padded_table(builder):
    builder.StartObject(1)
    builder.PrependUint32Slot(0, 7, 0)
    return builder.EndObject()


def numbered_bytes(count):
    return bytes((i * 7 + 1) % 256 for i in range(count))


def everything(builder):
    name = builder.CreateString("etstream")
    empty_doubles = vector(builder, b"", 8, 8)
    some_bytes = vector(builder, numbered_bytes(3), 1, 16)
    empty_aligned = vector(builder, b"", 1, 64)
    shorts = vector(builder, numbered_bytes(6), 2, 2)
    tables = vector_of_references(builder, [padded_table(builder) for _ in range(3)])
    builder.StartObject(11)
    builder.PrependUOffsetTRelativeSlot(0, name, 0)
    builder.PrependUint8Slot(1, 0x11, 0)
    builder.PrependUint16Slot(2, 0x2222, 0)
    builder.PrependUOffsetTRelativeSlot(3, empty_doubles, 0)
    builder.PrependUint64Slot(5, 0x5555555555555555, 0)
    builder.PrependUOffsetTRelativeSlot(6, some_bytes, 0)
    builder.PrependFloat32Slot(7, 1.5, 0.0)
    builder.PrependUOffsetTRelativeSlot(8, empty_aligned, 0)
    builder.PrependUOffsetTRelativeSlot(9, shorts, 0)
    builder.PrependUOffsetTRelativeSlot(10, tables, 0)
    return builder.EndObject()


if __name__ == "__main__":
    builder = flatbuffers.Builder()
    builder.Finish(everything(builder), file_identifier=b"TEST")
    digits = bytes(builder.Output()).hex()
    for start in range(0, len(digits), 96):
        print(f'      "{digits[start:start + 96]}"')
