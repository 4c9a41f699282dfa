# SPDX-License-Identifier: BSD-3-Clause
"""Recipes: ways to lower one exported program, by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from etstream._errors import InvalidArgumentError, NoSuchNameError
from etstream.executorch._internals import needed

if TYPE_CHECKING:
    from torch.export import ExportedProgram


class Recipe(Protocol):
    """Lowers a program. Gives an ExecutorchProgramManager, or a source of a .pte file: a path, a buffer, and so on."""

    def __call__(self, exported_program: ExportedProgram, /) -> Any: ...


_TOSA_SPECIFICATION = "TOSA-1.0+FP"


def lower(
    exported_program: ExportedProgram,
    partitioners: Sequence[Any] = (),
    *,
    transform_passes: Any = None,
    compile_config: Any = None,
) -> Any:
    """Lowers a program of torch.export's, or one in the edge dialect, as backends get it to preprocess.

    Returns an ExecutorchProgramManager.
    """
    edge_manager, to_edge, edge_config = needed(
        "specialize()",
        "executorch.exir:EdgeProgramManager",
        "executorch.exir:to_edge_transform_and_lower",
        "executorch.exir:EdgeCompileConfig",
    )
    if getattr(exported_program, "dialect", "") != "EDGE":
        edge = to_edge(
            exported_program,
            partitioner=list(partitioners),
            transform_passes=transform_passes,
            compile_config=compile_config,
        )
        return edge.to_executorch()
    # Of the partition that the program was part of.
    for node in exported_program.graph.nodes:
        node.meta.pop("delegation_tag", None)
    edge = edge_manager(exported_program, compile_config=compile_config or edge_config(_check_ir_validity=False))
    if transform_passes is not None:
        edge = edge.transform(transform_passes)
    for partitioner in partitioners:
        edge = edge.to_backend(partitioner)
    return edge.to_executorch()


def portable(exported_program: ExportedProgram) -> Any:
    """ExecuTorch's portable operators alone, which every runtime has."""
    return lower(exported_program)


def xnnpack(exported_program: ExportedProgram) -> Any:
    """XNNPACK, where it takes the operators; weights stay as they are (a quantized program stays quantized)."""
    (partitioner,) = needed(
        "the recipe xnnpack", "executorch.backends.xnnpack.partition.xnnpack_partitioner:XnnpackPartitioner"
    )
    return lower(exported_program, [partitioner()])


def tosa(exported_program: ExportedProgram) -> Any:
    """Arm's TOSA 1.0 in floating point, as text for other compilers; needs executorch[ethos-u]."""
    specification, compile_spec, partitioner = needed(
        "the recipe tosa",
        "executorch.backends.arm.tosa.specification:TosaSpecification",
        "executorch.backends.arm.tosa.compile_spec:TosaCompileSpec",
        "executorch.backends.arm.tosa.partitioner:TOSAPartitioner",
    )
    spec = compile_spec(specification.create_from_string(_TOSA_SPECIFICATION))
    return lower(exported_program, [partitioner(spec)])


def native(exported_program: ExportedProgram) -> Any:
    """ExecuTorch's native backend: the graph as it is, and each weight by its name."""
    partitioner, passes, config = needed(
        "the recipe native",
        "executorch.backends.native.partitioner:NativePartitioner",
        "executorch.backends.native.passes:get_default_passes",
        "executorch.backends.native:get_default_compile_config",
    )
    return lower(exported_program, [partitioner()], transform_passes=passes(), compile_config=config())


_registered: dict[str, Recipe] = {"portable": portable, "xnnpack": xnnpack, "tosa": tosa, "native": native}


def register_recipe(name: str, recipe: Recipe) -> None:
    """Has specialize() know `recipe` by `name`, in this process.

    Raises:
        InvalidArgumentError: another recipe has that name.
    """
    if _registered.setdefault(name, recipe) is not recipe:
        raise InvalidArgumentError(f"there is a recipe {name!r} already; recipes: {_names()}")


def registered_recipes() -> tuple[str, ...]:
    """The names that specialize() knows: "portable", "xnnpack", "tosa", "native", and those of register_recipe()."""
    return tuple(_registered)


def chosen_recipes(recipes: Iterable[str] | Mapping[str, str | Recipe], fallback: str | None) -> dict[str, Recipe]:
    """What specialize() is to run, by the payload's name: `recipes` in their order, and the fallback last."""
    if isinstance(recipes, str):
        raise TypeError(f"recipes: expected a list or a mapping, found the name {recipes!r}")
    wanted = dict(recipes) if isinstance(recipes, Mapping) else {name: name for name in recipes}
    if fallback is not None:
        wanted[fallback] = wanted.pop(fallback, fallback)
    if not wanted:
        raise InvalidArgumentError("recipes: expected one at least")
    return {name: _find(recipe) if isinstance(recipe, str) else recipe for name, recipe in wanted.items()}


def _find(name: str) -> Recipe:
    try:
        return _registered[name]
    except KeyError:
        raise NoSuchNameError(f"there is no recipe {name!r}; recipes: {_names()}") from None


def _names() -> str:
    return ", ".join(map(repr, _registered))
