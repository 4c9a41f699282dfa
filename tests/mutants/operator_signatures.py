# SPDX-License-Identifier: BSD-3-Clause
"""Writes the arguments of operators, for `etstream verify`.

    build/peer/bin/python tests/mutants/operator_signatures.py > src/runtime_checks/operator_signatures.cpp

has every operator that ExecuTorch's wheel has a kernel for: portable, optimized, quantized, for language models, and
the runtime's own; and those of its kernels for Cortex-M. The schemas are those of torch and of ExecuTorch.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import executorch
import executorch.extension.llm.custom_ops.custom_ops
import executorch.kernels.quantized  # noqa: F401
import torch
import yaml
from executorch.extension.pybindings import _C, data_loader  # noqa: F401

_PACKAGE = Path(next(iter(executorch.__path__)))

# The parameters by their type in a schema; see operator_signatures.h.
_PARAMETERS = {
    "Tensor": "kTensor",
    "Tensor[]": "kTensorList",
    "Tensor?[]": "kOptionalTensorList",
    "int": "kInt",
    "SymInt": "kInt",
    "ScalarType": "kInt",
    "MemoryFormat": "kInt",
    "FilePlan": "kInt",
    "float": "kDouble",
    "bool": "kBool",
    "Scalar": "kScalar",
    "str": "kString",
    "int[]": "kIntList",
    "SymInt[]": "kIntList",
    "float[]": "kDoubleList",
    "bool[]": "kBoolList",
}
# The parameters for arguments that the call writes to.
_WRITTEN = {"Tensor": "kOut", "Tensor[]": "kOutList"}
# The signatures of the runtime's own operators (kernels/prim_ops of ExecuTorch), without a schema or with one that says
# less: the last argument becomes the result.
_OWN = {
    "aten::sym_size.int": "kShape kInt kReturn",
    "aten::sym_numel": "kShape kReturn",
    "executorch_prim::et_copy_index.tensor": "kOut kTensor kInt",
    "executorch_prim::et_view.default": "kShape kIntList kView",
    "executorch_prim::floordiv.int": "kScalar kScalar kReturn",
    "executorch_prim::mod.int": "kScalar kScalar kReturn",
    "executorch_prim::sym_ite.Scalar": "kScalar kScalar kScalar kReturn",
    **{
        f"executorch_prim::{name}.Scalar": "kScalar kReturn"
        for name in "ceil neg round sym_float sym_int sym_not trunc".split()
    },
    **{
        f"executorch_prim::{name}.Scalar": "kScalar kScalar kReturn"
        for name in "add sub mul truediv floordiv mod eq ge gt le lt sym_max sym_min".split()
    },
}

_HEAD = """\
// SPDX-License-Identifier: BSD-3-Clause
//
// Made by tests/mutants/operator_signatures.py of ExecuTorch {version}: {count} operators.
#include "runtime_checks/operator_signatures.h"

namespace etstream {{
namespace signatures {{

using enum Parameter;

constexpr OperatorSignature kSignatures[] = {{
"""
_TAIL = """\
};

}  // namespace signatures

const std::span<const OperatorSignature> kOperatorSignatures = signatures::kSignatures;

}  // namespace etstream
"""


def _schemas() -> dict[str, str]:
    """Returns the schemas in ExecuTorch's lists of kernels, by the operator's name."""
    out = {}
    for file in [*_PACKAGE.glob("kernels/*/*.yaml"), *_PACKAGE.glob("backends/cortex_m/ops/*.yaml")]:
        for entry in yaml.safe_load(file.read_text()):
            if "func" in entry:
                name = entry["func"].partition("(")[0]
                out[name if "::" in name else f"aten::{name}"] = entry["func"]
    return out


def _schema_of(name: str, listed: dict[str, str]) -> str:
    base, _, overload = name.partition(".")
    namespace, _, operator = base.partition("::")
    packet = getattr(getattr(torch.ops, namespace), operator, None)
    found = getattr(packet, overload or "default", None)
    return listed[name] if found is None else str(found._schema)


def signature(schema: str) -> str:
    """Returns the parameters of an operator, and its results."""
    out = []
    arguments = re.sub(r".*?\((.*)\) -> .*", r"\1", schema)
    for argument in re.split(r", (?![^\[(]*[\])])", arguments):
        if argument in ("", "*"):
            continue
        kind = argument.rpartition(" ")[0]
        parameters = _WRITTEN if "!" in kind else _PARAMETERS
        kind = re.sub(r"\(\w+!?\)|(?<=\[)\d+(?=\])", "", kind)
        parameter = parameters[kind.removesuffix("?")]
        out.append(parameter.replace("k", "kOptional", 1) if kind.endswith("?") else parameter)
    return " ".join([*out, "kReturn"])


def signatures() -> dict[str, str]:
    """Returns the signatures by the operators' names."""
    listed = _schemas()
    names = sorted({*_C._get_operator_names(), *(name for name in listed if name.startswith("cortex_m::"))})
    return {name: _OWN.get(name) or signature(_schema_of(name, listed)) for name in names}


def source() -> str:
    found = signatures()
    lines = ""
    for parameters in sorted(set(found.values())):
        names = " ".join(name for name in found if found[name] == parameters)
        pieces = textwrap.wrap(names, 100)
        lines += f"    {{{{{parameters.replace(' ', ', ')}}},\n"
        lines += "\n".join(f'     "{piece}{" " if piece is not pieces[-1] else ""}"' for piece in pieces) + "},\n"
    version = re.findall(r'__version__ = "([\d.]+)', (_PACKAGE / "version.py").read_text())[0]
    return _HEAD.format(version=version, count=len(found)) + lines + _TAIL


if __name__ == "__main__":
    print(source(), end="")
