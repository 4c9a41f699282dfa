# SPDX-License-Identifier: BSD-3-Clause
"""Makes files that take more time and memory to read than any exporter's: they refer to one thing over and over, at any
size.

    python3 worst_cases.py FOLDER SIZE [NAME...]

writes one of each kind, or of the kinds that are named, of about SIZE bytes. Each is named after the thing that it
repeats.
"""

from __future__ import annotations

import io
import json
import math
import random
import struct
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

from flatbuffers_by_hand import Node, Scalars, String, Table, Tables, flatbuffer

FLOAT, BYTE = 6, 0
TENSOR, INT_LIST, TENSOR_LIST, NULL = 5, 7, 10, 1
KERNEL, MOVE, FREE = 1, 3, 5
EXTENDED_HEADER = 32


def value(kind: int, held: Node) -> Table:
    return Table(f0=("B", kind), f1=held)


def tensor(sizes: list[int], buffer: int = 0, scalar_type: int = FLOAT) -> Table:
    return value(TENSOR, Table(
        f0=("b", scalar_type), f2=Scalars("i", sizes), f3=Scalars("B", bytes(i % 256 for i in range(len(sizes)))),
        f5=("I", buffer)))  # fmt: skip


def instruction(kind: int, call: Table) -> Table:
    return Table(f0=("B", kind), f1=call)


def method(name: str, values: list[Node], inputs: list[int], instructions: list[Node], **more: Node) -> Table:
    chain = Table(f2=Tables(instructions))
    operators = Tables([Table(f0=String("aten::add"), f1=String("out"))])
    fields = {"f0": String(name), "f2": Tables(values), "f3": Scalars("i", inputs), "f4": Scalars("i", []),
              "f5": Tables([chain]), "f6": operators, "f7": Tables([]), "f8": Scalars("q", [0])}  # fmt: skip
    return Table(**{**fields, **more})


def program(methods: list[Node], segments: bytes = b"", **more: Node) -> bytes:
    fields = {"f1": Tables(methods), "f5": Table(f1=Scalars("Q", [0]))}
    out = flatbuffer(Table(**{**fields, **more}), "ET12", EXTENDED_HEADER)
    if not segments:
        return bytes(out)
    base = len(out) + -len(out) % 128
    struct.pack_into("<4sIQQQ", out, 8, b"eh00", 32, len(out), base, len(segments))
    return bytes(out) + bytes(base - len(out)) + segments


def inputs_that_are_one_tensor(size: int) -> bytes:
    return program([method("forward", [tensor([1] * 16)], [0] * (size // 4), [])])


def filler(size: int) -> Tables:
    """Returns operators of one with a long name: bytes that allow others to be reached more often."""
    return Tables([Table(f0=String("x" * size))])


def inputs_as_often_as_allowed(size: int) -> bytes:
    inputs = [0] * (size // 30)
    return program([method("forward", [tensor([1] * 16)], inputs, [], f6=filler(size - 4 * len(inputs)))])


def moves_as_often_as_allowed(size: int) -> bytes:
    items = value(INT_LIST, Table(f0=Scalars("q", [1] * 8)))
    move = instruction(MOVE, Table(f0=("i", 0), f1=("i", 1)))
    moves = [move] * (size // 10)
    values: list[Node] = [items, value(2, Table(f0=("q", 1)))]
    return program([method("forward", values, [], moves, f6=filler(size - 4 * len(moves)))])


def inputs_of_many_dimensions(size: int) -> bytes:
    return program([method("forward", [tensor([1] * (size // 8))], [0] * (size // 10), [])])


def moves_of_one_list(size: int) -> bytes:
    items = value(INT_LIST, Table(f0=Scalars("q", [1] * (size // 16))))
    integer = value(2, Table(f0=("q", 1)))
    move = instruction(MOVE, Table(f0=("i", 0), f1=("i", 1)))
    return program([method("forward", [items, integer], [], [move] * (size // 60))])


def frees_of_one_list(size: int) -> bytes:
    items = value(TENSOR_LIST, Table(f0=Scalars("i", [1] * (size // 8))))
    free = instruction(FREE, Table(f0=("i", 0)))
    return program([method("forward", [items, tensor([1])], [], [free] * (size // 60))])


def calls_of_one_list(size: int) -> bytes:
    items = value(TENSOR_LIST, Table(f0=Scalars("i", [1] * (size // 16))))
    call = instruction(KERNEL, Table(f0=("i", 0), f1=Scalars("i", [0, 1])))
    return program([method("forward", [items, tensor([1])], [], [call] * (size // 60))])


def values_that_are_one(size: int) -> bytes:
    count = size // 6
    return program([method("forward", [value(NULL, Table())] * count, [], [], f6=filler(size // 3))])


def constants_that_are_one(size: int) -> bytes:
    values: list[Node] = [tensor([16], 1)] * (size // 30)
    segments = Tables([Table(f1=("Q", 64))])
    constants = Table(f0=("I", 0), f1=Scalars("Q", [0, 0]))
    fields = {"f4": segments, "f5": constants}
    return program([method("forward", values, [], [], f6=filler(size // 3))], bytes(64), **fields)


def methods_and_segments(size: int) -> bytes:
    methods = [method(f"m{i}", [tensor([1], 1)], [0], []) for i in range(size // 600)]
    segments = Tables([Table(f0=("Q", 0), f1=("Q", 64)) for _ in range(size // 80)])
    constants = Table(f0=("I", 0), f1=Scalars("Q", [0, 0]))
    return program(methods, bytes(64), f4=segments, f5=constants)


def constants_that_overlap(size: int) -> bytes:
    count = size // 250
    values: list[Node] = [tensor([size // 2], i + 1, BYTE) for i in range(count)]
    offsets = Scalars("Q", [0, *range(count)])
    segments = Tables([Table(f1=("Q", size // 2 + count))])
    data = bytes(size // 2 + count)
    return program([method("forward", values, [], [])], data, f4=segments, f5=Table(f1=offsets))


def constants_of_one_name(size: int) -> bytes:
    """Returns a program whose constants have one name, and sizes of which each fits only some others."""
    sizes = [Scalars("i", [1 + i]) for i in range(1000)]
    order, info = Scalars("B", bytes(1)), Table(f1=String("x"))
    values: list[Node] = []
    offsets = [0]
    end = 0
    for i in range(size // 80):
        values.append(value(TENSOR, Table(
            f0=("b", BYTE), f2=sizes[i % 1000], f3=order, f5=("I", i + 1), f9=info)))  # fmt: skip
        offsets.append(end)
        end += 1 + i % 1000
    constants = Table(f0=("I", 0), f1=Scalars("Q", offsets))
    return program([method("forward", values, [], [])], bytes(end), f4=Tables([Table(f1=("Q", end))]), f5=constants)


def segments_that_are_one(size: int) -> bytes:
    segments = Tables([Table(f1=("Q", size // 2)) for _ in range(size // 80)])
    return program([method("forward", [tensor([1])], [0], [])], bytes(size // 2), f4=segments)


def delegates_that_are_one(size: int) -> bytes:
    data = Scalars("B", bytes(size // 2))
    delegates = Tables([Table(f0=data) for _ in range(size // 80)])
    return program([method("forward", [tensor([1])], [0], [])], f3=delegates)


def program_of_one_delegate(backend: str, data: bytes) -> bytes:
    """Returns a program whose method calls a delegate of this data, in a segment."""
    delegate = Table(f0=String(backend), f1=Table(f0=("b", 1), f1=("I", 0)), f2=Tables([]))
    run = instruction(2, Table(f0=("i", 0), f1=Scalars("i", [0])))
    calling = method("forward", [tensor([1])], [0], [run], f7=Tables([delegate]))
    return program([calling], data, f4=Tables([Table(f1=("Q", len(data)))]))


def calls_of_one_name(size: int) -> bytes:
    """Returns a program whose calls run one delegate, which has a long name."""
    delegate = Table(f0=String("k" * (size // 2)), f1=Table(f0=("b", 1), f1=("I", 0)), f2=Tables([]))
    calls = [instruction(2, Table(f0=("i", 0), f1=Scalars("i", [0]))) for _ in range(size // 120)]
    calling = method("forward", [tensor([1])], [0], calls, f7=Tables([delegate]))
    return program([calling], bytes(64), f4=Tables([Table(f1=("Q", 64))]))


def nodes_of_one_key(size: int) -> bytes:
    """Returns a program for XNNPACK whose nodes all read one constant, which has a long key."""
    constant = Table(f1=("Q", 4), f2=String("k" * (size // 2)))
    value = Table(f0=("B", 1), f1=Table(f2=Scalars("I", [1]), f3=("I", 1), f6=("I", 1)))
    nodes = [Table(f0=("B", 2), f1=Table(f1=("I", 1), f2=("I", i))) for i in range(size // 140)]
    graph = flatbuffer(Table(f1=Tables(nodes), f2=Tables([value]), f8=Tables([Table(), constant])), "XN01")
    header = struct.pack("<4x4s2xIIIQ2x", b"XH00", 32, len(graph), 32 + len(graph), 0)
    return program_of_one_delegate("XnnpackBackend", header + graph)


def torch_archive(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"archive/{name}", content)
    return out.getvalue()


def exported_program(model: str, weights: dict[str, dict[str, object]], content: bytes) -> bytes:
    """Returns a .pt2 file, whose weights have one content."""
    names = [f"data/weights/{name}_weights_config.json" for name in (model, "second")]
    configs = {names[0]: {"config": weights}, names[1]: {"config": {}}}
    return torch_archive({
        "archive_format": b"pt2", "byteorder": b"little", "data/weights/w": content,
        **{name: json.dumps(config).encode() for name, config in configs.items()}})  # fmt: skip


def entries_of_one_model(size: int) -> bytes:
    """Returns a .pt2 file with a model of a long name."""
    meta = {"dtype": 2, "sizes": [], "strides": [], "storage_offset": {"as_int": 0}, "layout": 7}
    entry = {"path_name": "w", "use_pickle": False, "tensor_meta": meta}
    return exported_program("k" * 32768, {f"t{i}": entry for i in range(size // 160)}, bytes(4))


def views_of_one_storage(size: int) -> bytes:
    """Returns a .pt2 file whose tensors are pairs of columns of one storage, each from the next byte on."""
    rows = size // 8

    def entry(offset: int) -> dict[str, object]:
        sizes, strides = ([{"as_int": each} for each in pair] for pair in ((2, rows), (1, 2)))
        place = {"sizes": sizes, "strides": strides, "storage_offset": {"as_int": offset}}
        meta = {"dtype": 2, **place, "layout": 7}
        return {"path_name": "w", "use_pickle": False, "tensor_meta": meta}

    count = size // 400
    return exported_program("model", {f"t{i}": entry(i) for i in range(count)}, bytes(2 * rows + count))


def entries_of_one_archive(size: int) -> bytes:
    """Returns a .pt2 file whose tensors are all one file of torch.save with many members."""
    pickle = (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\x000"
              b"X\x03\0\0\0cpuK\x01tQK\0))\x89ccollections\nOrderedDict\n)RtR.")  # fmt: skip
    others = {f"{i:x}": b"" for i in range(size // 300)}
    inside = torch_archive({"data.pkl": pickle, "data/0": bytes(4), **others})
    entry = {"path_name": "w", "use_pickle": True}
    return exported_program("model", {f"{i:x}": entry for i in range(size // 120)}, inside)


def lists_in_lists(size: int) -> bytes:
    """Returns a file of torch.save that is a list in a list, and so on, with nothing in the last."""
    return torch_archive({"data.pkl": b"\x80\x02" + b"]" * size + b"a" * (size - 1) + b"."})


def tuples_of_one(size: int) -> bytes:
    """Returns a file of torch.save with a list of tuples, each of None, as many as a pickle may have."""
    return torch_archive({"data.pkl": b"\x80\x02](" + (b"N\x85K\1" * 250 + b"e(") * (size // 1000) + b"e."})


def bundle(suites: list[Node], inside: bytes = b"") -> bytes:
    inside = inside or program([method("forward", [tensor([1])], [0], [])])
    return bytes(flatbuffer(Table(f0=("I", 2), f1=Tables(suites), f2=Scalars("B", inside)), "BP08"))


def suites_of_no_method(size: int) -> bytes:
    methods = [method(f"m{i:09}", [tensor([1])], [0], []) for i in range(size // 800)]
    suites = [Table(f0=String(f"s{i:09}"), f1=Tables([])) for i in range(size // 100)]
    return bundle(suites, program(methods))


def cases_that_share_a_tensor(size: int) -> bytes:
    data = Scalars("B", bytes(size // 2))
    inputs = [value(1, Table(f0=("b", BYTE), f1=Scalars("i", [size // 2]), f2=data, f3=Scalars("B", b"\0")))
              for _ in range(size // 250)]  # fmt: skip
    case = Table(f0=Tables(inputs), f1=Tables([]))
    return bundle([Table(f0=String("forward"), f1=Tables([case]))])


def keys_of_one_segment(size: int) -> bytes:
    return keys_of_one_tensor(BYTE, size // 2, size)


def keys_of_one_segment_of_floats(size: int) -> bytes:
    return keys_of_one_tensor(FLOAT, size // 8, size)


def keys_of_one_tensor(scalar_type: int, elements: int, size: int) -> bytes:
    keys = [Table(f0=String(f"key{i}"), f1=("I", 0), f2=Table(
        f0=("b", scalar_type), f1=Scalars("i", [elements]), f2=Scalars("B", b"\0"))) for i in range(size // 300)]  # fmt: skip
    root = Table(f1=Tables([Table(f1=("Q", size // 2))]), f2=Tables(keys))
    out = flatbuffer(root, "FT01", 48)
    end = len(out)
    base = end + -end % 128
    struct.pack_into("<4sIQQQQ", out, 8, b"FH01", 40, 48, end - 48, base, size // 2)
    return bytes(out) + bytes(base - end) + bytes(size // 2)


def nested_keys(size: int) -> bytes:
    half = size // 4
    return b'{"0": ' + b"[" * half + b"[" + b"{}," * (size // 6) + b"0]" + b"]" * half + b"}"


def equal_keys(size: int) -> bytes:
    """Returns JSON of keyed.fbs with keys that are all equal; a quicksort takes the square of their number for these,
    and for keys that are sorted backwards."""
    return b'{"elements": [' + b",".join([b'{"key": "k"}'] * (size // 13)) + b"]}"


def backward_keys(size: int) -> bytes:
    keys = (b'{"key": "%08d"}' % i for i in range(size // 20, 0, -1))
    return b'{"elements": [' + b",".join(keys) + b"]}"


def header_of_tensors(size: int) -> bytes:
    rows = {f"t{i}": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]} for i in range(size // 60)}
    header = json.dumps(rows).encode()
    return struct.pack("<Q", len(header)) + header


def norms_of_one_width(size: int) -> bytes:
    """Returns batch norms that may each belong to all others' tensors, and to the bias of the examples' model."""
    rows, data = {}, b""
    for i in range(size // 450):
        for name in ("running_mean", "running_var", "weight", "bias"):
            rows[f"{i:x}.{name}"] = {"dtype": "F32", "shape": [8], "data_offsets": [len(data), len(data) + 32]}
            data += struct.pack("<8f", *(0.5 + (i * 8 + k) % 997 / 997 for k in range(8)))
    header = json.dumps(rows, separators=(",", ":")).encode()
    return struct.pack("<Q", len(header)) + header + data


def program_that_is_mostly_a_delegate(size: int) -> bytes:
    """Returns a program that is no worst case, but that any backend makes of a large model: its data is not shared, and
    much larger than the flatbuffer."""
    return program_of_one_delegate("Backend", bytes(size))


def program_of_another_writer(size: int) -> bytes:
    """Many values, and a delegate's data in the flatbuffer, in an order that no writer which etstream knows has."""
    delegate = Table(f0=String("Backend"), f1=Table(f0=("b", 0), f1=("I", 0)), f2=Tables([]))
    values = [tensor([1]) for _ in range(size // 80)]
    calling = method("forward", values, [0], [], f7=Tables([delegate]))
    inside = Tables([Table(f0=Scalars("B", bytes(1024)))])
    return program([calling], bytes(64), f3=inside, f4=Tables([Table(f1=("Q", 64))]))


def values_that_jump(size: int) -> bytes:
    """Returns a program of two methods with the same values: in the order in which they lie, and each far from the one
    before it."""
    values: list[Node] = [tensor([1] * 16) for _ in range(size // 200)]
    stride = int(len(values) * 0.382) | 1
    while math.gcd(len(values), stride) != 1:
        stride += 2
    jumping = [values[i * stride % len(values)] for i in range(len(values))]
    return program([method("in_order", values, [], []), method("jumping", jumping, [], [])])


def program_of_constants(size: int) -> bytes:
    """Returns a program of constants of 4 KiB, for a checkpoint of them all."""
    count, each = size // 4096, 4096
    values: list[Node] = [tensor([each // 4], i + 1) for i in range(count)]
    offsets = Scalars("Q", [0, *range(0, count * each, each)])
    data = random.Random(0).randbytes(count * each)
    segments = Tables([Table(f1=("Q", len(data)))])
    return program([method("forward", values, [], [])], data, f4=segments, f5=Table(f1=offsets))


def file_and_base_of_one_run(size: int) -> tuple[bytes, bytes]:
    """Returns files without common bytes whose windows of 32 bytes belong in few slots of ContentIndex."""
    factor, mask, chance = 0x9E3779B97F4A7C15, (1 << 64) - 1, random.Random(0)
    last = pow(factor, 32, 1 << 64)
    windows, file, window, hashed = [], bytearray(), bytearray(32), 0
    for byte in window:
        hashed = hashed * factor + byte + 1 & mask
    while len(windows) < size // 256:
        rest = hashed * factor - (window[-32] + 1) * last + 1
        for _ in range(256 if len(file) < 1024 else 1):
            byte = chance.randrange(256)
            hashed = rest + byte & mask
            is_found = ((hashed ^ hashed >> 32) * factor & mask) >> 46 < 2048
            if is_found:
                break
        window = window[-31:] + bytes([byte])
        if len(file) < 1024:
            file.append(byte)
        elif is_found:
            windows.append(bytes(window) + bytes(224))
    return bytes(file) * (size // 1024), b"".join(windows)


def write_program_with_a_hole(path: Path, hole: int) -> None:
    """Writes a program whose segment lies behind `hole` bytes of padding, which take no room on the disk."""
    segments = Tables([Table(f1=("Q", 64))])
    whole = program([method("forward", [tensor([1])], [0], [])], bytes(64), f4=segments)
    base, size = struct.unpack_from("<QQ", whole, 24)
    with path.open("wb") as file:
        file.write(whole[:24] + struct.pack("<QQ", base + hole, size) + whole[40:base])
        file.seek(base + hole)
        file.write(whole[base:])


KINDS: dict[str, Callable[[int], bytes]] = {
    "inputs_that_are_one_tensor.pte": inputs_that_are_one_tensor,
    "inputs_as_often_as_allowed.pte": inputs_as_often_as_allowed,
    "moves_as_often_as_allowed.pte": moves_as_often_as_allowed,
    "inputs_of_many_dimensions.pte": inputs_of_many_dimensions,
    "moves_of_one_list.pte": moves_of_one_list,
    "frees_of_one_list.pte": frees_of_one_list,
    "calls_of_one_list.pte": calls_of_one_list,
    "calls_of_one_name.pte": calls_of_one_name,
    "values_that_are_one.pte": values_that_are_one,
    "constants_that_are_one.pte": constants_that_are_one,
    "methods_and_segments.pte": methods_and_segments,
    "constants_that_overlap.pte": constants_that_overlap,
    "constants_of_one_name.pte": constants_of_one_name,
    "segments_that_are_one.pte": segments_that_are_one,
    "delegates_that_are_one.pte": delegates_that_are_one,
    "nodes_of_one_key.pte": nodes_of_one_key,
    "of_another_writer.pte": program_of_another_writer,
    "suites_of_no_method.bpte": suites_of_no_method,
    "cases_that_share_a_tensor.bpte": cases_that_share_a_tensor,
    "keys_of_one_segment.ptd": keys_of_one_segment,
    "keys_of_one_segment_of_floats.ptd": keys_of_one_segment_of_floats,
    "entries_of_one_model.pt2": entries_of_one_model,
    "entries_of_one_archive.pt2": entries_of_one_archive,
    "views_of_one_storage.pt2": views_of_one_storage,
    "lists_in_lists.pth": lists_in_lists,
    "tuples_of_one.pth": tuples_of_one,
    "nested_keys.json": nested_keys,
    "equal_keys.json": equal_keys,
    "backward_keys.json": backward_keys,
    "header_of_tensors.safetensors": header_of_tensors,
    "norms_of_one_width.safetensors": norms_of_one_width,
}

# The kinds that a test of its own has.
OTHER_KINDS = {"values_that_jump.pte": values_that_jump, "program_of_constants.pte": program_of_constants}


def main() -> None:
    folder, size = Path(sys.argv[1]), int(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[3:] or KINDS:
        (folder / name).write_bytes({**KINDS, **OTHER_KINDS}[name](size))


if __name__ == "__main__":
    main()
