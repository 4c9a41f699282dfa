# SPDX-License-Identifier: BSD-3-Clause
"""Makes up programs from a seed, of everything that ExecuTorch's schema has, and layouts for them."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from cases import STORES_BY_DTYPE, item_size
from executorch.exir import schema
from executorch.exir._serialize._named_data_store import NamedDataStore, NamedDataStoreOutput
from executorch.exir._serialize._program import PTEFile, _program_to_json, serialize_pte_binary
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.scalar_type import ScalarType
from executorch_bundle import SCALAR_TYPES
from layouts import PteLayout

_T = TypeVar("_T")

_INT32 = (0, 1, -1, 127, 128, 2**31 - 1, -(2**31))
_INT64 = (0, 1, -1, 2**32, 2**53 + 1, 2**63 - 1, -(2**63))
_DOUBLES = (0.0, -0.0, 1.0, 0.1, 5e-324, -2.2250738585072009e-308, 1.7976931348623157e308)
_NOT_FINITE = (math.nan, math.inf, -math.inf)
_TEXTS = ("", "a", "abc", "abcd", "aten::add", "out", "größe", "模型", "\U0001f600", "e\u0301", '" \\ / \t\n\x7f')
_SIZES = (0, 0, 1, 3, 15, 16, 17, 31, 64, 65, 255, 256, 1000, 4097)
_ALIGNMENTS = tuple(2**power for power in range(15))


@dataclass(frozen=True)
class RandomProgram:
    """The input that ExecuTorch's emitter gives its serializer."""

    program: schema.Program
    mutable_data: list[schema.Buffer] | None
    named_data: NamedDataStoreOutput | None

    def serialize(self, layout: PteLayout) -> bytes:
        """Returns the program that ExecuTorch writes."""
        file = PTEFile(self.program, self.mutable_data, self.named_data)
        return bytes(serialize_pte_binary(file, **asdict(layout)))

    def json(self) -> str:
        """Returns the program as ExecuTorch's JSON, which holds neither mutable nor named data.

        Numbers that are not finite are spelt as Python's json spells them. A value of no kind is an object
        without members: ExecuTorch's encoder has a spelling for it that flatc does not know.
        """
        return _program_to_json(self.program).replace('{"val": null, "val_type": "NoneType"}', "{}")


def generate(seed: int) -> RandomProgram:
    """Returns the program of a seed, which is always the same."""
    rng = random.Random(f"program {seed}")
    # ExecuTorch's emitter always writes the one for no data; a program without it is one that runtimes refuse.
    constants, delegates = _buffers(rng) or [schema.Buffer(b"")], _delegate_data(rng)
    mutable = _maybe(rng, _buffers)
    has_data = mutable is not None and any(buffer.storage for buffer in mutable)
    plans = [_plan(rng, mutable if has_data else [], delegates) for _ in range(rng.choice((1, 1, 2, 4)))]
    _refer_to_all_constants(rng, plans, constants)
    program = schema.Program(
        version=rng.choice((0, 0, 1, 2**32 - 1)),
        execution_plan=plans,
        constant_buffer=constants,
        backend_delegate_data=_in_order_of_use(rng, plans, delegates),
        segments=[],
        constant_segment=schema.SubsegmentOffsets(segment_index=0, offsets=[]),
        mutable_data_segments=rng.choice((None, [])),
        named_data=rng.choice((None, [])),
    )
    return RandomProgram(program, mutable, _named_data(rng))


def random_layouts(rng: random.Random, program: RandomProgram) -> tuple[PteLayout, PteLayout]:
    """Returns a layout to write the program under, and one to give the result.

    They may be any layouts, except for two facts that no program shows: the alignment of a lone piece of named data,
    and, once the data of delegates was extracted, whether there were several equal pieces of it, or one empty piece for
    several delegates.
    """
    first, second = _layout(rng, program), _layout(rng, program)
    blobs = [entry.data for entry in program.program.backend_delegate_data]
    delegates = [delegate for plan in program.program.execution_plan for delegate in plan.delegates]
    empty = [delegate for delegate in delegates if not blobs[delegate.processed.index]]
    if len(set(blobs)) < len(blobs) or len(empty) > 1:
        first = replace(first, extract_delegate_segments=False)
    return first, second


def _layout(rng: random.Random, program: RandomProgram) -> PteLayout:
    entries = program.named_data.pte_data.values() if program.named_data else ()
    least = max((entry.alignment for entry in entries), default=1)
    return PteLayout(
        segment_alignment=max(least, rng.choice(_ALIGNMENTS)),
        extract_delegate_segments=_bool(rng),
        delegate_alignment=_maybe(rng, lambda rng: rng.choice(_ALIGNMENTS)),
        constant_tensor_alignment=_maybe(rng, lambda rng: rng.choice(_ALIGNMENTS)),
    )


def _maybe(rng: random.Random, make: Callable[[random.Random], _T]) -> _T | None:
    return make(rng) if rng.random() < 0.7 else None


def _some(rng: random.Random, most: int, make: Callable[[random.Random], _T]) -> list[_T]:
    return [make(rng) for _ in range(rng.randint(0, most))]


def _bool(rng: random.Random) -> bool:
    return rng.random() < 0.5


def _int32(rng: random.Random) -> int:
    return rng.choice(_INT32) if _bool(rng) else rng.randint(-(2**31), 2**31 - 1) >> rng.randrange(32)


def _int64(rng: random.Random) -> int:
    return rng.choice(_INT64) if _bool(rng) else rng.randint(-(2**63), 2**63 - 1) >> rng.randrange(64)


def _byte(rng: random.Random) -> int:
    return rng.choice((0, 0, 1, -1, 127, -128))


def _double(rng: random.Random) -> float:
    kind = rng.random()
    if kind < 0.8:
        return rng.choice(_DOUBLES if kind < 0.5 else _NOT_FINITE)
    (value,) = struct.unpack("<d", rng.randbytes(8))
    return math.nan if math.isnan(value) else value


def _text(rng: random.Random) -> str:
    return rng.choice(_TEXTS) * rng.choice((1, 1, 1, 40))


def _data(rng: random.Random) -> bytes:
    return rng.randbytes(rng.choice(_SIZES))


def _enum(of: Any) -> Callable[[random.Random], Any]:
    return lambda rng: rng.choice(list(of))


def _buffers(rng: random.Random) -> list[schema.Buffer]:
    """Returns no buffers at all, or the one that stands for no data, and more."""
    if rng.random() < 0.1:
        return []
    return [schema.Buffer(b""), *(schema.Buffer(_data(rng)) for _ in range(rng.choice((0, 1, 3, 8))))]


def _delegate_data(rng: random.Random) -> list[schema.BackendDelegateInlineData]:
    """Returns data of delegates, some of it empty, and some equal, although ExecuTorch's emitter shares equal data."""
    blobs = list(dict.fromkeys(_some(rng, 5, _data)))
    if blobs and rng.random() < 0.2:
        blobs += rng.choices(blobs, k=2)
    return [schema.BackendDelegateInlineData(blob) for blob in blobs]


def _named_data(rng: random.Random) -> NamedDataStoreOutput | None:
    """Returns pieces under one key or several, each with an alignment of its own; one of them may be empty."""
    if rng.random() < 0.4:
        return None
    store = NamedDataStore()
    pieces = _some(rng, 4, _data)
    for number, piece in enumerate(rng.choices(pieces, k=len(pieces) + 2) if pieces else []):
        alignment = rng.choice((1, 1, 2, 16, 64, 1024))
        store.add_named_data(f"{_text(rng)} {number}", piece, alignment)
    return store.get_named_data_store_output()


@dataclass(frozen=True)
class _Surroundings:
    """The objects that the parts of a method may refer to."""

    values: int
    operators: int
    delegates: int
    memories: Sequence[int]  # the sizes in bytes; the first one is reserved
    mutable: Sequence[schema.Buffer]

    def indices(self, rng: random.Random) -> list[int]:
        """Returns indices of values."""
        return rng.choices(range(self.values), k=rng.randrange(6)) if self.values else []


def _extra_info(rng: random.Random) -> schema.ExtraTensorInfo:
    return schema.ExtraTensorInfo(
        fully_qualified_name=_maybe(rng, _text),
        device_type=_enum(schema.DeviceType)(rng),
        device_index=_byte(rng),
    )


def _tensor(
    rng: random.Random,
    scalar_type: ScalarType,
    sizes: list[int],
    buffer: int = 0,
    allocation: schema.AllocationDetails | None = None,
    extra: schema.ExtraTensorInfo | None = None,
) -> schema.Tensor:
    return schema.Tensor(
        scalar_type=scalar_type,
        storage_offset=rng.choice((0, 0, 1, -1)),
        sizes=sizes,
        dim_order=rng.sample(range(len(sizes)), len(sizes)),
        requires_grad=_bool(rng),
        layout=_byte(rng),
        data_buffer_idx=buffer,
        allocation_info=allocation,
        shape_dynamism=_enum(schema.TensorShapeDynamism)(rng),
        extra_tensor_info=extra or _maybe(rng, _extra_info),
    )


def _tensor_of_bytes(
    rng: random.Random, size: int, buffer: int, allocation: schema.AllocationDetails | None = None
) -> schema.Tensor:
    """Returns a tensor of a dtype and sizes that come to `size` bytes, which may be none."""
    dtypes = [dtype for dtype in STORES_BY_DTYPE if size % item_size(dtype) == 0]
    dtype = rng.choice(dtypes)
    count = size // item_size(dtype)
    first = rng.choice([side for side in range(1, 8) if count % side == 0])
    sizes = rng.choice(([count], [first, count // first], [1, count]))
    return _tensor(rng, ScalarType(SCALAR_TYPES[dtype].value), sizes, buffer, allocation)


def _planned(rng: random.Random, around: _Surroundings) -> schema.Tensor | schema.Null:
    """Returns a tensor that has a place in memory, and may have data to begin with."""
    buffer = rng.randrange(len(around.mutable)) if around.mutable else 0
    size = len(around.mutable[buffer].storage) if buffer else rng.choice(_SIZES)
    fitting = [index for index, room in enumerate(around.memories) if index > 0 and room >= size]
    if not fitting:
        return schema.Null()
    memory = rng.choice(fitting)
    offset = rng.choice((0, around.memories[memory] - size, rng.randint(0, around.memories[memory] - size)))
    allocation = schema.AllocationDetails(memory, offset % 2**32, offset >> 32)
    return _tensor_of_bytes(rng, size, buffer, allocation)


def _given(rng: random.Random, _: _Surroundings) -> schema.Tensor:
    """Returns a tensor whose data a caller brings."""
    return _tensor(rng, _dtype(rng), _shape(rng))


def _external(rng: random.Random, _: _Surroundings) -> schema.Tensor:
    """Returns a tensor in a .ptd file, whose buffers are counted apart from the program's."""
    extra = _extra_info(rng)
    extra.location = schema.TensorDataLocation.EXTERNAL
    extra.fully_qualified_name = f"weight {_text(rng)}"
    return _tensor(rng, _dtype(rng), _shape(rng), rng.randrange(9), extra=extra)


def _dtype(rng: random.Random) -> ScalarType:
    return ScalarType(rng.choice(list(SCALAR_TYPES.values())).value)


def _shape(rng: random.Random) -> list[int]:
    """Returns sizes, of which at most one is large."""
    sizes = [rng.choice((0, 1, 2, 3, 7)) for _ in range(rng.choice((0, 1, 2, 4, 16)))]
    if sizes:
        sizes[0] = rng.choice((0, 1, 224, 2**20 + 1))
    return sizes


_VALUES: dict[str, Callable[[random.Random, _Surroundings], Any]] = {
    "NoneType": lambda rng, around: None,
    "Null": lambda rng, around: schema.Null(),
    "Int": lambda rng, around: schema.Int(_int64(rng)),
    "Bool": lambda rng, around: schema.Bool(_bool(rng)),
    "Double": lambda rng, around: schema.Double(_double(rng)),
    "String": lambda rng, around: schema.String(_text(rng)),
    "IntList": lambda rng, around: schema.IntList(around.indices(rng)),
    "DoubleList": lambda rng, around: schema.DoubleList(_some(rng, 4, _double)),
    "BoolList": lambda rng, around: schema.BoolList(_some(rng, 4, _bool)),
    "TensorList": lambda rng, around: schema.TensorList(around.indices(rng)),
    "OptionalTensorList": lambda rng, around: schema.OptionalTensorList([*around.indices(rng), -1]),
    "planned": _planned,
    "given": _given,
    "external": _external,
}


def _value(rng: random.Random, around: _Surroundings) -> schema.EValue:
    return schema.EValue(_VALUES[rng.choice(list(_VALUES))](rng, around))


def _instructions(rng: random.Random, around: _Surroundings) -> list[schema.Instruction]:
    """Returns instructions of some of the kinds that have something to refer to."""
    count = rng.randint(0, 8)

    def value() -> int:
        return rng.randrange(around.values)

    kinds: list[Callable[[], Any]] = []
    if around.values:
        kinds += [
            lambda: schema.MoveCall(value(), value()),
            lambda: schema.JumpFalseCall(value(), rng.randint(0, count)),
            lambda: schema.FreeCall(value()),
        ]
    if around.operators:
        kinds.append(lambda: schema.KernelCall(rng.randrange(around.operators), around.indices(rng)))
    if around.delegates:
        kinds.append(lambda: schema.DelegateCall(rng.randrange(around.delegates), around.indices(rng)))
    return [schema.Instruction(rng.choice(kinds)()) for _ in range(count)] if kinds else []


def _frame(rng: random.Random) -> schema.Frame:
    return schema.Frame(_text(rng), _int32(rng), _text(rng), _text(rng))


def _chain(rng: random.Random, around: _Surroundings) -> schema.Chain:
    def frames(rng: random.Random) -> list[schema.FrameList]:
        return _some(rng, 3, lambda rng: schema.FrameList(_some(rng, 3, _frame)))

    stacktrace = _maybe(rng, frames)
    return schema.Chain(around.indices(rng), around.indices(rng), _instructions(rng, around), stacktrace)


def _delegate(rng: random.Random, index: int) -> schema.BackendDelegate:
    reference = schema.BackendDelegateDataReference(schema.DataLocation.INLINE, index)
    specs = _some(rng, 3, lambda rng: CompileSpec(_text(rng), _data(rng)))
    return schema.BackendDelegate(_text(rng), reference, specs)


def _device(rng: random.Random) -> schema.NonConstBufferDevice:
    return schema.NonConstBufferDevice(_int32(rng), _enum(schema.DeviceType)(rng), _byte(rng))


def _plan(
    rng: random.Random,
    mutable: Sequence[schema.Buffer],
    delegates: Sequence[schema.BackendDelegateInlineData],
) -> schema.ExecutionPlan:
    used = rng.choices(range(len(delegates)), k=rng.randrange(4)) if delegates else []
    memories = [0, *_some(rng, 3, lambda rng: rng.choice((0, 100, 2**20, 2**40, 2**63 - 1)))]
    around = _Surroundings(rng.randint(0, 12), rng.randint(0, 4), len(used), memories, mutable)
    return schema.ExecutionPlan(
        name=_text(rng),
        container_meta_type=_maybe(rng, lambda rng: schema.ContainerMetadata(_text(rng), _text(rng))),
        values=[_value(rng, around) for _ in range(around.values)],
        inputs=around.indices(rng),
        outputs=around.indices(rng),
        chains=_some(rng, 3, lambda rng: _chain(rng, around)),
        operators=[schema.Operator(_text(rng), _text(rng)) for _ in range(around.operators)],
        delegates=[_delegate(rng, index) for index in used],
        non_const_buffer_sizes=memories,
        non_const_buffer_device=_maybe(rng, lambda rng: _some(rng, 2, _device)),
    )


def _refer_to_all_constants(
    rng: random.Random, plans: Sequence[schema.ExecutionPlan], constants: Sequence[schema.Buffer]
) -> None:
    """Adds a tensor for each constant, as nothing else says how long a constant is."""
    for index, buffer in enumerate(constants[1:], start=1):
        values = rng.choice(plans).values
        constant = schema.EValue(_tensor_of_bytes(rng, len(buffer.storage), index))
        values.insert(rng.randint(0, len(values)), constant)


def _in_order_of_use(
    rng: random.Random,
    plans: Sequence[schema.ExecutionPlan],
    data: Sequence[schema.BackendDelegateInlineData],
) -> list[schema.BackendDelegateInlineData]:
    """Returns the data in the emitter's order: each piece comes last when a delegate first needs it. All are needed."""
    unused = set(range(len(data))) - {each.processed.index for plan in plans for each in plan.delegates}
    for index in sorted(unused):
        rng.choice(plans).delegates.append(_delegate(rng, index))
    numbers: dict[int, int] = {}
    for plan in plans:
        for delegate in plan.delegates:
            index = delegate.processed.index
            delegate.processed.index = numbers.setdefault(index, len(numbers))
    return [data[index] for index in numbers]
