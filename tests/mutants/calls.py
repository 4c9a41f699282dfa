# SPDX-License-Identifier: BSD-3-Clause
"""Makes programs that call one operator with random arguments, and runs those that `etstream verify` accepts.

    ETSTREAM=build/release/bin/etstream build/peer/bin/python tests/mutants/calls.py

prints a table of how they ended. A program that ends by SIGSEGV or SIGBUS read or wrote where it must not: there should
be none. The other signals come from the kernels' own checks, which `verify` does not promise to foresee.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from judge import MEMORY_SIGNALS, Judge, Verify
from parts import Parts, Tree

sys.path.append(str(Path(__file__).resolve().parents[1] / "peer"))
from rounds import ROUNDS  # noqa: E402

_HERE = Path(__file__).resolve().parent
_SOURCE = _HERE.parents[1] / "src" / "runtime_checks" / "operator_signatures.cpp"
_ACCEPTED_A_ROUND = 100
_AT_ONCE = 500  # the number that is run before others are made
# The bytes of an element, by the names in scalar_type.fbs, or by number if it has none (complex numbers).
_DTYPES: dict[str | int, int] = {
    "FLOAT": 4, "LONG": 8, "INT": 4, "BOOL": 1, "BYTE": 1, "CHAR": 1, "DOUBLE": 8, "HALF": 2, "BFLOAT16": 2,
    "SHORT": 2, "UINT16": 2, "UINT32": 4, "UINT64": 8, "BITS16": 2, "QINT8": 1, "QUINT8": 1, "QINT32": 4,
    "FLOAT8E5M2": 1, 8: 4, 9: 8, 10: 16,
}  # fmt: skip
_WIDE = 4096  # the most bytes of a tensor that may be of any size
# Operators whose callers have to give inputs sizes that fit, if these may change: docs/runtime-checks.md.
_FIXED_INPUTS = {
    "aten::bmm.out", "aten::div.out", "aten::upsample_bilinear2d.vec_out", "llama::custom_quantized_sdpa.out",
    "llama::custom_sdpa.out", "llama::sdpa_with_kv_cache.out",
}  # fmt: skip


Signature = list[str]  # Parameters: see operator_signatures.h


def signatures() -> dict[str, Signature]:
    """Returns the signatures that the command knows, by the operators' names."""
    out = {}
    for parameters, names in re.findall(r"\{\{([\w,\s]+)\},\s*((?:\"[^\"]*\"\s*)+)\}", _SOURCE.read_text()):
        for name in "".join(re.findall(r'"([^"]*)"', names)).split():
            out[name] = re.findall(r"\w+", parameters)
    return out


@dataclass
class Call:
    """A call that is being made."""

    rng: random.Random
    values: list[Tree] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    planned: list[Tree] = field(default_factory=list)  # tensors, like the constants
    constants: list[Tree] = field(default_factory=list)
    is_plain: bool = False  # torch has all parts of it
    has_fixed_inputs: bool = False

    def __post_init__(self) -> None:
        self.base = self._sizes()
        self.dtype = "FLOAT" if self.is_plain and self.rng.random() < 0.6 else self._dtype()
        self.same = self.rng.random() < 0.6  # tensors of one dtype
        self.roomy = self.rng.random() < (0.3 if self.is_plain else 0.6)  # True if results have room for any shape

    def _dtype(self) -> str | int:
        if self.is_plain or self.rng.random() < 0.85:
            return self.rng.choice(("FLOAT", "FLOAT", "LONG", "INT", "BOOL", "BYTE", "CHAR", "DOUBLE", "HALF"))
        return self.rng.choice(tuple(_DTYPES))

    def _sizes(self) -> list[int]:
        rank = self.rng.choice((0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5))
        return [self.rng.choice((1, 2, 2, 3, 3, 4, 5, 8, 0 if self.rng.random() < 0.2 else 1)) for _ in range(rank)]

    def value(self, kind: str, content: Tree) -> int:
        self.values.append({"val_type": kind, "val": content})
        return len(self.values) - 1

    def number(self) -> int:
        rng = self.rng
        if not self.is_plain and rng.random() < 0.1:
            return rng.choice((2**31, -(2**31), 2**40, 2**63 - 1, -(2**63), 1000, -100, 255))
        return rng.choice((0, 0, 1, 1, 1, 2, 2, 3, 4, 6, -1, -1, -2, rng.randint(-6, 16)))

    def tensor(self, is_result: bool) -> int:
        rng = self.rng
        roll = rng.random() * (2 if self.is_plain else 1)
        sizes = list(self.base)
        if roll < 0.15:
            sizes = self._sizes()
        elif roll < 0.3 and sizes:
            sizes = sizes[rng.randrange(len(sizes)) :]
        elif roll < 0.4 and sizes:
            sizes[rng.randrange(len(sizes))] = 1
        elif roll < 0.5:
            rng.shuffle(sizes)
        elif roll < 0.6:
            sizes = [rng.choice((1, 2, 3, 4)), *sizes][:5]
        dtype = self.dtype if self.same or rng.random() < 0.4 else self._dtype()
        dynamism = "STATIC"
        if is_result and self.roomy:
            dynamism = "DYNAMIC_BOUND"
            if sizes:
                room = max(1, _WIDE // _DTYPES[dtype])
                sizes = [max(1, size) for size in sizes]
                sizes[-1] = max(1, room // max(1, math.prod(sizes[:-1])))
        elif rng.random() < 0.15 and not self.has_fixed_inputs:
            dynamism = "DYNAMIC_BOUND"
        order = list(range(len(sizes)))
        if rng.random() < 0.15:
            rng.shuffle(order)
        tensor: Tree = {
            "scalar_type": dtype,
            "sizes": sizes,
            "dim_order": order,
            "shape_dynamism": dynamism,
            "data_buffer_idx": 0,
        }
        place = rng.random()
        at = self.value("Tensor", tensor)
        if is_result or place < 0.3:
            self.planned.append(tensor)
            if not is_result and rng.random() < 0.7:
                self.inputs.append(at)
        elif place < 0.55 and dynamism == "STATIC":
            self.constants.append(tensor)
        else:
            self.inputs.append(at)
        return at

    def _plan(self) -> int:
        """Gives tensors their places in planned memory, and returns its size."""
        end = 0
        for tensor in self.planned:
            offset = end
            if end and self.rng.random() < 0.15:
                offset = self.rng.randrange(0, end + 1, 16)
            tensor["allocation_info"] = {"memory_id": 1, "memory_offset_low": offset}
            end = max(end, offset + -(-_bytes(tensor) // 16) * 16)
        return end or 16

    def _constants(self) -> tuple[list[int], bytes]:
        """Returns where each of the constants begins, with none as the first, and the bytes of all."""
        out = bytearray()
        offsets = [0]
        for tensor in self.constants:
            out += b"\0" * (-len(out) % 16)
            offsets.append(len(out))
            tensor["data_buffer_idx"] = len(offsets) - 1
            is_small = self.rng.random() < 0.6
            width = _DTYPES[tensor["scalar_type"]]
            far = (0, 1, 5, 100, 2 ** (8 * width) - 1, 2 ** (8 * width - 1))
            for _ in range(_bytes(tensor) // width):
                number = self.rng.randrange(4) if is_small else self.rng.choice(far)
                out += (number % 2 ** (8 * width)).to_bytes(width, "little")
        return offsets, bytes(out) + b"\0" * 16

    def argument(self, parameter: str) -> int:
        rng = self.rng
        if parameter.startswith("kOptional") and parameter != "kOptionalTensorList" and rng.random() < 0.4:
            return self.value("Null", {})
        match parameter if parameter == "kOptionalTensorList" else parameter.replace("kOptional", "k"):
            case "kTensor" | "kShape":
                return self.tensor(is_result=False)
            case "kOut":
                return self.tensor(is_result=True)
            case "kTensorList" | "kOutList":
                # A list of tensors is made of values before it.
                count = rng.choice((0, 1, 2, 2, 3))
                items = [self.tensor(is_result=parameter == "kOutList") for _ in range(count)]
                return self.value("TensorList", {"items": items})
            case "kOptionalTensorList":
                count = rng.choice((1, 2, 3))
                items = [-1 if rng.random() < 0.3 else self.tensor(is_result=False) for _ in range(count)]
                return self.value("OptionalTensorList", {"items": items})
            case "kInt":
                return self.value("Int", {"int_val": self.number()})
            case "kDouble":
                return self.value("Double", {"double_val": rng.choice((0.0, 1.0, -1.0, 0.5, 3.0, 1e30))})
            case "kBool":
                return self.value("Bool", {"bool_val": rng.random() < 0.5})
            case "kScalar":
                return self.argument(rng.choice(("kInt", "kInt", "kDouble", "kBool")))
            case "kString":
                text = rng.choice(("", "none", "mean", "floor", "trunc", "tanh"))
                return self.value("String", {"string_val": text})
            case "kIntList":
                length = rng.choice((0, 1, 2, 2, len(self.base), len(self.base), 2 * len(self.base)))
                return self.value("IntList", {"items": [self.argument("kInt") for _ in range(length)]})
            case "kDoubleList":
                items = [rng.choice((0.5, 1.0, 2.0, 0.0, -1.0)) for _ in range(rng.choice((1, 2, 3)))]
                return self.value("DoubleList", {"items": items})
            case "kBoolList":
                return self.value("BoolList", {"items": [rng.random() < 0.5 for _ in range(rng.choice((0, 1, 2, 3)))]})
            case "kView":
                return self.provided()
        raise ValueError(parameter)

    def provided(self) -> int:
        """Returns a tensor without memory of its own."""
        at = self.tensor(is_result=False)
        for places in (self.planned, self.constants):
            places[:] = [tensor for tensor in places if tensor is not self.values[at]["val"]]
        self.inputs = [each for each in self.inputs if each != at]
        return at

    def arguments(self, signature: Signature) -> list[int]:
        out: list[int] = []
        for parameter in signature:
            if parameter != "kReturn":
                out.append(self.argument(parameter))
            elif "kOut" in signature or "kOutList" in signature:
                out.append(out[signature.index("kOut" if "kOut" in signature else "kOutList")])
            else:
                out.append(self.value("Null", {}))
        self.outputs = [at for parameter, at in zip(signature, out) if parameter == "kOut"]
        return out

    def change(self) -> None:
        """Changes one value, or what it refers to."""
        rng = self.rng
        value = rng.choice(self.values)
        content = value["val"]
        match value["val_type"]:
            case "Int":
                content["int_val"] = self.number()
            case "Bool":
                content["bool_val"] = not content["bool_val"]
            case "Double":
                content["double_val"] = rng.choice((0.0, -1.0, 1e30, -1e30, 0.5))
            case "IntList" | "DoubleList" | "BoolList" | "TensorList" | "OptionalTensorList":
                items = content["items"]
                if items:
                    items.pop(rng.randrange(len(items))) if rng.random() < 0.5 else items.append(rng.choice(items))
            case "Tensor":
                kind = rng.random()
                sizes = list(content["sizes"])
                if kind < 0.4:
                    content["scalar_type"] = self._dtype()
                elif kind < 0.7 and sizes:
                    sizes[rng.randrange(len(sizes))] = rng.choice((0, 1, 2, 3))
                elif kind < 0.85 and sizes:
                    sizes.pop(rng.randrange(len(sizes)))
                else:
                    sizes.insert(0, 1)
                content.update(sizes=sizes, dim_order=list(range(len(sizes))))

    def program(self, operator: str, arguments: list[int]) -> bytes:
        name, _, overload = operator.partition(".")
        planned = self._plan()
        offsets, constants = self._constants()
        plan = {
            "name": "forward",
            "container_meta_type": {"encoded_inp_str": "", "encoded_out_str": ""},
            "values": self.values,
            "inputs": self.inputs,
            "outputs": self.outputs,
            "chains": [
                {
                    "inputs": [],
                    "outputs": [],
                    "instructions": [
                        {"instr_args_type": "KernelCall", "instr_args": {"op_index": 0, "args": arguments}}
                    ],
                }
            ],
            "operators": [{"name": name, "overload": overload}],
            "delegates": [],
            "non_const_buffer_sizes": [0, planned],
        }
        tree = {
            "version": 0,
            "execution_plan": [plan],
            "constant_buffer": [],
            "backend_delegate_data": [],
            "segments": [{"offset": 0, "size": len(constants)}],
            "constant_segment": {"segment_index": 0, "offsets": offsets},
        }
        return Parts(tree, [constants]).assemble()


_TORCH = {
    "FLOAT": torch.float32, "LONG": torch.int64, "INT": torch.int32, "BOOL": torch.bool, "BYTE": torch.uint8,
    "CHAR": torch.int8, "DOUBLE": torch.float64, "HALF": torch.float16, "BFLOAT16": torch.bfloat16,
    "SHORT": torch.int16,
}  # fmt: skip


def _operator(name: str) -> Any:
    """Returns torch's operator of that name, or None."""
    base, _, overload = name.partition(".")
    namespace, _, operator = base.partition("::")
    if namespace not in ("aten", "dim_order_ops"):  # ExecuTorch's kernels would end the process
        return None
    return getattr(getattr(getattr(torch.ops, namespace), operator, None), overload or "default", None)


def _of_torch(call: Call, at: int) -> Any:
    """Returns a value as torch takes it."""
    value = call.values[at]
    content = value["val"]
    match value["val_type"]:
        case "Null":
            return None
        case "Tensor":
            return torch.empty(content["sizes"], dtype=_TORCH[content["scalar_type"]], device="meta")
        case "TensorList" | "OptionalTensorList":
            return [None if item == -1 else _of_torch(call, item) for item in content["items"]]
        case "IntList":
            return [_of_torch(call, item) for item in content["items"]]
    return next(iter(content.values()))


def is_taken(call: Call, operator: str, arguments: list[int]) -> bool:
    """Returns whether torch takes the call. Its results then have the sizes that torch gives them."""
    overload = _operator(operator)
    if overload is None:
        return False
    positional, named, results = [], {}, []
    try:
        for parameter, at in zip(overload._schema.arguments, arguments, strict=False):
            given = _of_torch(call, at)
            if parameter.alias_info is not None and parameter.alias_info.is_write and isinstance(given, torch.Tensor):
                given = torch.empty(0, dtype=given.dtype, device="meta") if parameter.kwarg_only else given
                results.append((at, given))
            if parameter.kwarg_only:
                named[parameter.name] = given
            else:
                positional.append(given)
        overload(*positional, **named)
    except Exception:  # torch has refused
        return False
    for at, given in results:
        tensor = call.values[at]["val"]
        may_be_smaller = tensor["shape_dynamism"] != "STATIC"
        tensor["sizes"] = [size + (call.rng.randrange(3) if may_be_smaller else 0) for size in given.shape]
        tensor["dim_order"] = list(range(given.dim()))
    return True


def sensible(rng: random.Random, operator: str, signature: Signature) -> bytes:
    """Returns a call, most likely one that torch takes, at times with a value changed."""
    for _ in range(30):
        call = Call(rng, is_plain=True, has_fixed_inputs=operator in _FIXED_INPUTS)
        arguments = call.arguments(signature)
        if is_taken(call, operator, arguments):
            break
    if rng.random() < 0.5:
        call.change()
    return call.program(operator, arguments)


def _bytes(tensor: Tree) -> int:
    return math.prod(tensor["sizes"]) * _DTYPES[tensor["scalar_type"]]


def _make(folder: Path, number: int, wanted: dict[str, Signature], seed: int) -> None:
    names = sorted(wanted)
    operator = names[number % len(names)]
    rng = random.Random(f"{seed} {number}")
    if rng.random() < 0.7:
        content = sensible(rng, operator, wanted[operator])
    else:
        call = Call(rng, has_fixed_inputs=operator in _FIXED_INPUTS)
        content = call.program(operator, call.arguments(wanted[operator]))
    (folder / f"{number}.pte").write_bytes(content)


def made(folder: Path, wanted: dict[str, Signature], seed: int) -> Iterator[tuple[str, Path]]:
    """Yields programs, made by processes of their own, as torch ends on some calls by a signal."""
    number = 0
    while True:
        first, end = number, number + _AT_ONCE
        while number < end:
            child = os.fork()
            if child == 0:
                for each in range(number, end):
                    _make(folder, each, wanted, seed)
                os._exit(0)
            _, status = os.waitpid(child, 0)
            if status == 0:
                break
            while (folder / f"{number}.pte").exists():
                number += 1
            number += 1  # the call that the process ended on
        names = sorted(wanted)
        for each in range(first, end):
            if (folder / f"{each}.pte").exists():
                yield names[each % len(names)], folder / f"{each}.pte"
        number = end


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="operators that match this regular expression")
    parser.add_argument("--keep", type=Path, help="keep those here that read or write where they must not")
    arguments = parser.parse_args()
    runnable = {name: each for name, each in signatures().items() if not name.startswith("cortex_m::")}
    wanted = {name: signature for name, signature in runnable.items() if re.search(arguments.only or "", name)}
    ends: Counter[tuple[str, str, str]] = Counter()
    refused: Counter[str] = Counter()
    accepted: Counter[str] = Counter()
    until = time.monotonic() + arguments.seconds
    judge = Judge()
    verify = Verify(os.environ["ETSTREAM"])
    with tempfile.TemporaryDirectory() as scratch:
        calls = made(Path(scratch), wanted, arguments.seed)
        while accepted.total() < _ACCEPTED_A_ROUND * ROUNDS and time.monotonic() < until:
            waiting = []
            while len(waiting) < _AT_ONCE and time.monotonic() < until:
                operator, file = next(calls)
                if verify.file(file) is None:
                    waiting.append((operator, file, verify.has_warned))
                else:
                    refused[operator] += 1
                    file.unlink()
            for (operator, file, has_warned), (end, why) in zip(
                waiting, judge.run([file for _, file, _ in waiting], arguments.seed), strict=True
            ):
                accepted[operator] += 1
                if end in MEMORY_SIGNALS and has_warned:
                    end += ", of which verify warned"
                ends[end, operator, re.sub(r"\d+", "N", why)[:110]] += 1
                if arguments.keep and end in MEMORY_SIGNALS:
                    arguments.keep.mkdir(parents=True, exist_ok=True)
                    shutil.copy(file, arguments.keep / f"{operator.replace('::', '_')}-{file.name}")
                file.unlink(missing_ok=True)
    print(f"{len(wanted)} operators, {accepted.total()} calls accepted, {refused.total()} refused")
    kinds = Counter(end for (end, *_), count in ends.items() for _ in range(count))
    for end, count in kinds.most_common():
        print(f"{count:8}  {end}")
    for (end, operator, why), count in ends.most_common():
        if end.startswith("SIG"):
            print(f"{count:6}  {end:8} {operator:45} {why}")
    never = sorted(name for name in wanted if not any(end == "ran" and at == name for end, at, _ in ends))
    print(f"{len(never)} operators never ran: {' '.join(never)}")
    return 1 if any(end in MEMORY_SIGNALS for end in kinds) else 0


if __name__ == "__main__":
    sys.exit(main())
