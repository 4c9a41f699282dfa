# SPDX-License-Identifier: BSD-3-Clause
"""The results of functions: objects with fields. docs/command describes each field below "Reports as JSON".

Sizes and offsets are in bytes. A number or a text that does not apply is None, and a list is empty then. Lists of
results are a Table. A short repr, tables in a notebook and to_dict() follow from the fields that a class lists.
"""

from __future__ import annotations

import dataclasses
import functools
import html
import math
import reprlib
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from etstream import _core
from etstream._errors import CorruptError

if TYPE_CHECKING:
    from typing_extensions import Self, dataclass_transform
else:

    def dataclass_transform(**_):
        return lambda kind: kind


Row = TypeVar("Row", covariant=True)
Number = int | float | complex

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 200
_REPR.maxtuple = _REPR.maxlist = _REPR.maxdict = 4
_ROWS = 50
"""The most rows of a table in a notebook."""


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Result:
    """The base of all results. A class lists its fields once; all below follows from them."""

    def __init_subclass__(cls, frozen: bool = True) -> None:
        dataclasses.dataclass(frozen=frozen, kw_only=True, repr=False)(cls)

    @classmethod
    def _of(cls, report: Mapping[str, Any]) -> Self:
        """Returns the result that a report of the library says."""
        kind: Any = cls
        makers = _makers(kind)
        return cls(**{name: makers[name](value) if name in makers else value for name, value in report.items()})

    def _values(self) -> dict[str, Any]:
        """Returns the fields that apply."""
        own: Any = self
        every = {each.name: getattr(self, each.name) for each in dataclasses.fields(own) if each.name[0] != "_"}
        return {name: value for name, value in every.items() if not (value is None or isinstance(value, _NoTable))}

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields that apply as dicts, lists, texts and numbers, such as JSON has."""
        return {name: _plain(value) for name, value in self._values().items()}

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={_short(value)}" for name, value in self._values().items())
        return f"<{type(self).__module__}.{type(self).__qualname__}: {said}>"

    def _repr_html_(self) -> str:
        return _html(self)


class Table(tuple[Row, ...]):
    """A tuple of results of one kind, which a notebook shows as a table, and pandas.DataFrame takes."""

    __slots__ = ()

    def __repr__(self) -> str:
        more = [f"... and {len(self) - 3} more"] if len(self) > 3 else []
        return f"[{', '.join([*map(repr, self[:3]), *more])}]"

    def _repr_html_(self) -> str:
        return _html(self)


class _NoTable(Table[Any]):
    """Stands for a list that does not apply."""

    __slots__ = ()


_NONE = _NoTable()


def _plain(value: Any) -> Any:
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(one) for one in value]
    if isinstance(value, complex):
        return [_plain(value.real), _plain(value.imag)]
    if isinstance(value, _core.Source):
        return value.name
    if isinstance(value, str) or (isinstance(value, float) and not math.isfinite(value)):
        return str(value)
    return value


def _short(value: Any) -> str:
    if isinstance(value, (Table, Mapping)) or (isinstance(value, tuple) and len(repr(value[:27])) > 80):
        return f"({len(value)})"
    return f"<{type(value).__name__}>" if isinstance(value, Result) else _REPR.repr(value)


def _html(value: Any, depth: int = 0) -> str:
    """Returns HTML of a value: of a result a row for each field, of a table one for each result."""
    if isinstance(value, Result) and depth < 3:
        cells = [(f"<th>{name}</th>", f"<td>{_html(one, depth + 1)}</td>") for name, one in value._values().items()]
        return f"<table>{''.join(f'<tr>{name}{cell}</tr>' for name, cell in cells)}</table>"
    if isinstance(value, Table) and depth < 3 and all(hasattr(each, "_values") for each in value):
        rows = [each._values() for each in value[:_ROWS]]
        names = list(dict.fromkeys(name for row in rows for name in row))
        head = "".join(f"<th>{name}</th>" for name in names)
        body = [_row(_html(row.get(name, ""), 3) for name in names) for row in rows]
        more = _row([f"... and {len(value) - _ROWS} more"]) if len(value) > _ROWS else ""
        return f"<table><thead><tr>{head}</tr></thead>{''.join(body)}{more}</table>"
    return html.escape(str(value) if isinstance(value, (str, int)) else _short(value))


def _row(cells: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


@functools.cache
def _makers(kind: type[Result]) -> dict[str, Callable[[Any], Any]]:
    """Returns, for fields that are not as in a report, what makes them of that."""
    found = {name: _maker(hint) for name, hint in get_type_hints(kind).items()}
    return {name: maker for name, maker in found.items() if maker is not None}


def _maker(hint: Any) -> Callable[[Any], Any] | None:
    if hint in (Number, Number | None, float, float | None):
        return lambda given: complex(*map(float, given)) if isinstance(given, list) else _number(given)
    kind = get_origin(hint)
    if kind is Table or kind is tuple:
        one = _maker(get_args(hint)[0])
        return lambda given: kind(given if one is None else map(one, given))
    for part in get_args(hint) or (hint,):
        if isinstance(part, type) and issubclass(part, Result):
            return part._of
        if part is Finding:
            return lambda given: Finding(*given)
    return None


def _number(given: Any) -> Any:
    return float(given) if isinstance(given, str) else given


class Finding(str):
    """A sentence that tells a person what a check found. Its fields are the place that the sentence names."""

    filename: str | None
    """The file, if the sentence names a place in one."""
    offset: int | None
    """The place in that file, in bytes."""

    def __new__(cls, message: str, filename: str | None = None, offset: int | None = None) -> Finding:
        self = super().__new__(cls, message)
        self.filename = filename
        self.offset = offset
        return self


# Plans


class Extent(Result):
    """A range of a planned file, and where its bytes are read from."""

    offset: int
    size: int
    alignment: int
    label: str
    source: str


class PlannedFile(Result):
    """The fields of a FilePlan."""

    size: int
    metadata_size: int
    payload_size: int
    memory: int
    extents: Table[Extent]


class ProgramPlan(Result):
    """The plan of a program, and of the tensor data that constants are moved out to."""

    program: _core.FilePlan
    tensor_data: _core.FilePlan | None = None
    shards: Table[_core.FilePlan] = _NONE
    """The plans of shards that replace `tensor_data` with split_max_size."""


class SharedWeightsPlan(Result):
    """The plans of programs, and of the file or the shards from which they get the weights that they share."""

    programs: dict[str, _core.FilePlan]
    """The plans of the programs in the given order; a program that shares nothing is copied."""
    weights: _core.FilePlan | None = None
    """The plan of the tensor data; None if the programs have nothing in common, and with split_max_size."""
    container: _core.FilePlan | None = None
    """The plan of a fat container of the programs, if it was asked for."""
    report: SharingReport
    """A report of which programs share which data, and what stays where."""
    shards: Table[_core.FilePlan] = _NONE
    """The plans of shards that replace `weights` with split_max_size."""


class ReweightingPlan(Result):
    """The plans of a program with the weights of another checkpoint, and of its tensor data files."""

    program: _core.FilePlan
    weights: Table[_core.FilePlan]
    """The plans of the tensor data files, in the order of the old ones."""
    replaced: int
    """The number of payloads that are made of the new checkpoint."""
    origins: WeightOrigins
    """The origins of the old payloads."""


# Open files


class Segment(Result):
    """A part of a program that lies behind its flatbuffer."""

    use: str
    """"constants", "mutable data", "delegate XnnpackBackend", "named data"; "" for none."""
    offset: int
    size: int
    data: _core.Source


class FatPayload(Result):
    """A payload of a fat container."""

    name: str
    offset: int
    data: _core.Source
    kind: str | None = None
    """The kind of file that it is, as inspect() names kinds; None for data that a backend knows."""


class PackageMember(Result):
    """A member of a package's archive."""

    name: str
    offset: int
    crc32: int
    """The checksum that its data should have."""
    data: _core.Source


# share()


class ProgramSizes(Result):
    """A program before and after it shares weights."""

    name: str
    size_before: int
    size_after: int


class SharedData(Result):
    """Data that moves out of programs."""

    size: int
    programs: tuple[str, ...]
    keys: tuple[str, ...]


class KeptData(Result):
    """Data that stays in a program."""

    program: str
    what: str
    size: int
    reason: str


class RenamedTensor(Result):
    """A tensor whose name stands for other data in another program."""

    program: str
    name: str
    key: str


class SharedFile(Result):
    """The tensor data that programs share."""

    size: int
    keys: int


class SharingReport(Result):
    """The data that programs share, and what stays where."""

    size_before: int
    size_after: int
    programs: Table[ProgramSizes]
    shared: Table[SharedData]
    kept: Table[KeptData]
    renamed: Table[RenamedTensor]
    weights: SharedFile | None = None


# explain() and reweight()


class TensorOrigin(Result):
    """A tensor of a checkpoint, and what was done to it."""

    tensor: str
    steps: tuple[str, ...]


class PayloadOrigin(Result):
    """A payload of a program that weights may be in, and what it is made of."""

    label: str
    name: str
    file: str
    offset: int
    size: int
    type: str
    explained: bool
    tensors: Table[TensorOrigin]
    equals: tuple[str, ...]
    constant: str | None = None
    nearest: tuple[str, ...] = _NONE


class WeightOrigins(Result):
    """The payloads of a program, and what they are made of. True if all are explained."""

    file: str
    by: tuple[str, ...]
    explained: bool
    payloads: Table[PayloadOrigin]
    unused: tuple[str, ...]
    names: dict[str, str] = dataclasses.field(hash=False)
    """The names of tensors by the names of payloads, as inspect() and its page take them."""

    def __bool__(self) -> bool:
        return self.explained


# compare(), verify() and compare_outputs()


class Mismatch(Result):
    """An element, or a scalar, that is not as expected."""

    index: int
    place: tuple[int, ...]
    expected: Number
    actual: Number


class Comparison(Result):
    """The distance of one output from the expected one: over the pairs of elements in which both are finite. True if no
    element mismatches. The figures are None if the two can't be compared, which `problem` says."""

    ok: bool
    message: str
    file: str | None = None
    problem: str | None = None
    dtype: str | None = None
    shape: tuple[int, ...] = _NONE
    elements: int | None = None
    equal: int | None = None
    mismatches: int | None = None
    not_finite: int | None = None
    largest_absolute_error: float | None = None
    largest_relative_error: float | None = None
    mean_absolute_error: float | None = None
    signal_to_noise: float | None = None
    cosine: float | None = None
    same_largest: bool | None = None
    largest_absolute_place: tuple[int, ...] = _NONE
    largest_relative_place: tuple[int, ...] = _NONE
    first: Mismatch | None = None
    worst: Mismatch | None = None

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        return self.message


class MethodRun(Result):
    """The end of a method's run. True if the run ended well, with the expected outputs."""

    method: str
    inputs: str
    end: str
    message: str
    reason: str | None = None
    error: int | None = None
    error_name: str | None = None
    signal: str | None = None
    instruction: int | None = None
    callee: str | None = None
    outputs: Table[Comparison] = _NONE

    def __bool__(self) -> bool:
        return self.end == "ok"

    def __str__(self) -> str:
        return self.message


class Findings(Result):
    """The findings of a check of a file: sentences for a person. True if all is well."""

    file: str
    ok: bool
    errors: tuple[Finding, ...]
    warnings: tuple[Finding, ...]

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        errors, warnings = [f"error: {one}" for one in self.errors], [f"warning: {one}" for one in self.warnings]
        return "\n".join([self._counts(), *errors, *warnings])

    def __repr__(self) -> str:
        more = [f"and {len(self.errors) - 20} more"] if len(self.errors) > 20 else []
        said = "\n".join([self._counts(), *(f"error: {one}" for one in self.errors[:20]), *more])
        return f"<{type(self).__module__}.{type(self).__qualname__}: {said}>"

    def raise_if_errors(self) -> None:
        """Raises a CorruptError with all of them if there is an error. Its filename and offset are the first's."""
        if self.errors:
            error = CorruptError(str(self))
            error.filename, error.offset = self.errors[0].filename, self.errors[0].offset
            raise error

    def _counts(self) -> str:
        counts = {"error": len(self.errors), "warning": len(self.warnings)}
        return ", ".join(f"{count} {noun}{'s' * (count != 1)}" for noun, count in counts.items())


class FileFindings(Findings):
    """The findings of verify(), with how methods ended if they were run."""

    files: tuple[str, ...] = _NONE
    tensor_data: tuple[str, ...] = _NONE
    external_keys: tuple[str, ...] = _NONE
    unknown_operators: int | None = None
    unknown_operator_names: tuple[str, ...] = _NONE
    runs: Table[MethodRun] = _NONE


class OutputFindings(Findings):
    """The findings of compare_outputs(). True if all outputs are as expected, and each file is of one."""

    outputs: str
    runs: Table[MethodRun]

    @property
    def problems(self) -> int:
        """The number of outputs that have no file, or several, or one of another size, dtype or shape."""
        return sum(output.problem is not None for run in self.runs for output in run.outputs)

    def __str__(self) -> str:
        lines = []
        for run in self.runs:
            lines += [f"{_core.printable(run.method)}, {run.inputs}: {output}" for output in run.outputs]
        return "\n".join([*lines, super().__str__()])


# inspect()


class Part(Result):
    """A payload of a file."""

    path: str
    what: str
    offset: int
    size: int
    alignment: int
    others: int | None = None
    file: int | None = None


class Method(Result):
    """A method of a program, with a text for each input and output."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class Suite(Result):
    """A test suite of a bundle."""

    method: str
    test_cases: int


class InspectedFile(Result):
    """One of several files of weights."""

    file: str
    size: int
    tensors: int


class Update(Result):
    """The base and the original of an update."""

    base_size: int
    base_hash: str
    original_size: int
    original_hash: str
    changed_size: int


class PayloadPart(Result):
    """A part of a delegate's data."""

    path: str
    name: str
    offset: int
    size: int
    key: str | None = None


class PayloadFact(Result):
    """A fact that a delegate's data says of itself."""

    name: str
    value: int | str


class Payload(Result):
    """The data of a delegate."""

    path: str
    method: str
    delegate: int
    backend: str
    size: int
    format: str | None = None
    keys: int | None = None
    parts: Table[PayloadPart] = _NONE
    facts: Table[PayloadFact] = _NONE


class DelegatePayload(Payload):
    """The data of a delegate of an open program."""

    data: _core.Source


class MetadataEntry(Result):
    """A fact that a program says of its model."""

    key: str
    value: str


class ProgramSegment(Result):
    """A segment of a program."""

    use: str
    offset: int
    size: int
    padding: int


class CalledOperator(Result):
    """An operator that a method calls."""

    name: str
    calls: int


class GraphDelegate(Result):
    """A delegate of a method, with the index of its segment, or that in the flatbuffer."""

    backend: str
    size: int
    in_segment: bool
    index: int


class CalledDelegate(GraphDelegate):
    """A delegate that a method calls."""

    path: str
    calls: int


class MethodTensor(Result):
    """A tensor of a method."""

    value: int
    name: str
    type: str
    storage: str
    size: int
    data_index: int
    memory_id: int
    memory_offset: int
    path: str | None = None


class Memory(Result):
    """A planned memory of a method."""

    id: int
    size: int
    tensors: int
    tensor_bytes: int


class MethodSummary(Result):
    """The contents of a method."""

    name: str
    instructions: int
    operators: Table[CalledOperator]
    delegates: Table[CalledDelegate]
    tensors: Table[MethodTensor]
    memories: Table[Memory]


class ProgramSummary(Result):
    """The contents of a program."""

    flatbuffer_size: int
    padding: int
    constants: int
    constant_bytes: int
    segments: Table[ProgramSegment]
    methods: Table[MethodSummary]


class NamedData(Result):
    """Data under a key."""

    key: str
    path: str | None = None
    name: str | None = None
    dtype: str | None = None
    sizes: tuple[int, ...] = _NONE
    dim_order: tuple[int, ...] = _NONE
    segment: int | None = None
    offset: int | None = None
    size: int
    asked_by: tuple[str, ...] = _NONE


class Duplicates(Result):
    """Data that is in a file several times."""

    size: int
    wasted: int
    paths: tuple[str, ...]
    offsets: tuple[int, ...]


class Inspection(Result):
    """The contents of a file."""

    file: str
    format: str
    size: int
    version: int
    metadata_size: int
    bytes_read: int
    parts: Table[Part]
    methods: Table[Method]
    suites: Table[Suite]
    memory_alignment: int | None = None
    files: Table[InspectedFile] = _NONE
    update: Update | None = None
    notes: tuple[str, ...] = _NONE
    payloads: Table[Payload] = _NONE
    metadata: Table[MetadataEntry] = _NONE
    program: ProgramSummary | None = None
    named_data: Table[NamedData] = _NONE
    duplicates: Table[Duplicates] = _NONE


# memory_budget()


class AllocatorBudget(Result):
    """The memory that loading a method takes, by what it is for."""

    method_allocator: int
    values: int
    tensors: int
    lists: int
    delegates: int
    backends: int
    calls: int
    load_temp: int


class PlannedMemory(Result):
    """A planned memory of a method."""

    id: int
    size: int
    used: int


class DelegateBudget(Result):
    """The memory that a delegate takes, as far as it is known."""

    backend: str
    size: int
    in_segment: bool
    is_known: bool
    commands: int | None = None
    weights: int | None = None
    scratch: int | None = None


class EndsBudget(Result):
    """The inputs, or the outputs, of a method."""

    count: int
    size: int
    provided: int


class MethodBudget(Result):
    """The memory that a method takes."""

    name: str
    bits_64: AllocatorBudget
    bits_32: AllocatorBudget
    run_temp: int
    kernel_calls: int
    planned: Table[PlannedMemory]
    delegates: Table[DelegateBudget]
    inputs: EndsBudget
    outputs: EndsBudget


class SuiteBudget(Suite):
    """The tensors of the largest test case of a suite."""

    inputs: int
    expected_outputs: int


class MemoryBudget(Result):
    """The memory that ExecuTorch's runtime asks for to load and run a program."""

    file: str
    size: int
    alignment: int
    flatbuffer_size: int
    constants_size: int
    external_keys: int
    methods: Table[MethodBudget]
    suites: Table[SuiteBudget]


# graph()


class GraphOperator(Result):
    """An operator of a method."""

    name: str
    overload: str


class GraphValue(Result):
    """A value of a method."""

    kind: str
    dtype: str | None = None
    sizes: tuple[int, ...] = _NONE
    dim_order: tuple[int, ...] = _NONE
    dynamic: bool | None = None
    storage: str | None = None
    size: int | None = None
    memory_id: int | None = None
    memory_offset: int | None = None
    data_index: int | None = None
    name: str | None = None
    view_of: int | None = None
    value: Any = None
    items: tuple[int, ...] = _NONE
    input: bool
    output: bool
    producers: tuple[int, ...]
    users: tuple[int, ...]


class GraphCall(Result):
    """A call of a method."""

    name: str
    operator: int | None = None
    delegate: int | None = None
    destination: int | None = None
    args: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


class Graph(Result):
    """A method as values and calls, which name each other by their places in these lists."""

    method: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    memory_sizes: tuple[int, ...]
    operators: Table[GraphOperator]
    delegates: Table[GraphDelegate]
    values: Table[GraphValue]
    calls: Table[GraphCall]


# diff()


class Difference(Result):
    """A difference between two files."""

    kind: str
    subject: str
    a: str
    b: str
    elements: int | None = None
    equal: int | None = None
    not_finite: int | None = None
    largest_difference: float | None = None
    mean_difference: float | None = None


class Differences(Result):
    """The differences between two files."""

    a: str
    b: str
    same_bytes: bool
    same_content: bool
    same_within_tolerance: bool
    differences: Table[Difference]


__all__ = [name for name, value in vars().items() if isinstance(value, type) and value.__module__ == __name__]
