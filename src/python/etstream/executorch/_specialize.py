# SPDX-License-Identifier: BSD-3-Clause
"""Lowers one exported program by several recipes, and writes a fat container of the results, which share weights."""

from __future__ import annotations

import copy
import gc
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Protocol, TypedDict

import torch
from etstream import _core, fat, pte, share
from etstream._arguments import asked, several
from etstream._errors import Error, InvalidArgumentError, NoSuchNameError
from etstream._writing import Progress, Unpack, keywords_of
from etstream.executorch._low_memory import low_memory_export
from etstream.executorch._patches import needed
from etstream.executorch._programs import program_source
from etstream.results import Result

if TYPE_CHECKING:
    from executorch.exir.backend.backend_details import PreprocessResult
    from torch.export import ExportedProgram


class Recipe(Protocol):
    """A function that lowers a program. Returns an ExecutorchProgramManager, or a source of a .pte file: a path, a
    buffer, and so on."""

    def __call__(self, exported_program: ExportedProgram, /) -> Any: ...


_Recipes = Iterable[str] | Mapping[str, str | Recipe]


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
    # The tags are those of the partition that the program was part of.
    for node in exported_program.graph.nodes:
        node.meta.pop("delegation_tag", None)
    edge = edge_manager(exported_program, compile_config=compile_config or edge_config(_check_ir_validity=False))
    if transform_passes is not None:
        edge = edge.transform(transform_passes)
    for partitioner in partitioners:
        edge = edge.to_backend(partitioner)
    return edge.to_executorch()


def portable(exported_program: ExportedProgram) -> Any:
    """Lowers a program to ExecuTorch's portable operators alone, which every runtime has."""
    return lower(exported_program)


def xnnpack(exported_program: ExportedProgram) -> Any:
    """Lowers a program to XNNPACK, where it takes the operators; weights, also quantized ones, stay as they are."""
    (partitioner,) = needed(
        "the recipe xnnpack", "executorch.backends.xnnpack.partition.xnnpack_partitioner:XnnpackPartitioner"
    )
    return lower(exported_program, [partitioner()])


def tosa(exported_program: ExportedProgram) -> Any:
    """Lowers a program to Arm's TOSA 1.0 in floating point, as text for other compilers; needs executorch[ethos-u]."""
    specification, compile_spec, partitioner = needed(
        "the recipe tosa",
        "executorch.backends.arm.tosa.specification:TosaSpecification",
        "executorch.backends.arm.tosa.compile_spec:TosaCompileSpec",
        "executorch.backends.arm.tosa.partitioner:TOSAPartitioner",
    )
    spec = compile_spec(specification.create_from_string("TOSA-1.0+FP"))
    return lower(exported_program, [partitioner(spec)])


def native(exported_program: ExportedProgram) -> Any:
    """Lowers a program to ExecuTorch's native backend, with the graph as it is and each weight by its name."""
    partitioner, passes, config = needed(
        "the recipe native",
        "executorch.backends.native.partitioner:NativePartitioner",
        "executorch.backends.native.passes:get_default_passes",
        "executorch.backends.native:get_default_compile_config",
    )
    return lower(exported_program, [partitioner()], transform_passes=passes(), compile_config=config())


_registered: dict[str, Recipe] = {"portable": portable, "xnnpack": xnnpack, "tosa": tosa, "native": native}


def register_recipe(name: str, recipe: Recipe) -> None:
    """Makes `recipe` known to specialize() by `name`, in this process.

    Raises:
        InvalidArgumentError: another recipe has that name.
    """
    if _registered.setdefault(name, recipe) is not recipe:
        raise InvalidArgumentError(f"there is a recipe {name!r} already; recipes: {_names()}")


def registered_recipes() -> tuple[str, ...]:
    """Returns the names that specialize() knows: "portable", "xnnpack", "tosa", "native" and registered ones."""
    return tuple(_registered)


def _chosen_recipes(recipes: _Recipes, fallback: str | None) -> dict[str, Recipe]:
    """Returns the recipes for specialize() by the payload's name: `recipes` in their order, and the fallback last."""
    if isinstance(recipes, Mapping):
        wanted = dict(recipes)
    else:
        wanted = {name: name for name in several("recipes", "names", recipes)}
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


class RecipeError(Error, RuntimeError):
    """An error in a recipe. The exception that the recipe raised is the `__cause__`."""

    recipe: str
    """The name of the recipe's payload."""

    def __init__(self, recipe: str, reason: str) -> None:
        super().__init__(recipe, reason)
        self.recipe = recipe

    def __str__(self) -> str:
        return "recipe {!r}: {}".format(*self.args)


class Specialized(Result):
    """The files that specialize() wrote. Sizes are in bytes."""

    container: str
    """The container's path."""
    weights: str | None
    """The path of the .ptd file; None if the programs have nothing in common."""
    alone: dict[str, int]
    """The size that each program has with its own weights, by the payload's name, in the container's order."""
    payloads: dict[str, int]
    """The size of each payload in the container."""
    weights_size: int
    container_size: int

    def __str__(self) -> str:
        width = max(map(len, [*self.alone, "weights"]))
        lines = [f"{'':{width}} {'alone':>14} {'shared':>14}"]
        lines += [f"{name:{width}} {self.alone[name]:14,} {self.payloads[name]:14,}" for name in self.alone]
        lines.append(f"{'weights':{width}} {'':14} {self.weights_size:14,}")
        total = self.container_size + self.weights_size
        lines.append(f"{'total':{width}} {sum(self.alone.values()):14,} {total:14,}")
        return "\n".join(lines)


class SpecializeOptions(TypedDict, total=False):
    """The options of lowering a program by several recipes.

    Keys:
        recipes: names that register_recipe() knows, which name the payloads too; or a mapping of payloads' names, of 1
            to 32 characters of ASCII, to recipes or such names. The order is that in which a reader prefers the
            payloads.
        fallback: the name of the recipe for the last payload, which runs everywhere; None for no such payload.
        spill: the folder of large blocks of memory, which the results of recipes lie in meanwhile too; by default
            $TMPDIR, or /var/tmp. See low_memory_export().
        limit: the most bytes of large blocks in memory, at least 1 MiB: an int, or a str such as "4G".
    """

    recipes: Annotated[_Recipes, ("xnnpack",)]
    fallback: Annotated[str | None, "portable"]
    spill: Annotated[str | os.PathLike[str] | None, None]
    limit: Annotated[int | str | None, None]


@keywords_of(SpecializeOptions)
def specialize(
    exported_program: ExportedProgram,
    output: str | os.PathLike[str],
    *,
    weights_to: str | os.PathLike[str] | None = None,
    align: int | str = 4096,
    sync: bool = True,
    progress: Progress | bool | None = None,
    **options: Unpack[SpecializeOptions],
) -> Specialized:
    """Lowers a program by several recipes, and writes a fat container of the results, with one copy of the weights.

        specialize(torch.export.export(model, inputs), "model.fat", recipes=["xnnpack"])
        with load_fat("model.fat") as program:
            program.run(inputs)

    Recipes run one after another within low_memory_export(), each on a copy of the program that has the same tensors.
    The result of one lies on the disk before the next begins. If one fails, nothing is written.

    Args:
        exported_program: a program of torch.export's, or one in the edge dialect. Recipes may not write to its tensors.
        output: where the container goes; replaced atomically, together with the weights.
        weights_to: where to write the .ptd file with the data that several programs share; by default beside the
            container, with the suffix .ptd, where load_fat() finds it. The file is left as it was if they share
            nothing.
        align: the alignment of payloads in the container, in bytes; a page's size lets each be mapped.
        options: those of SpecializeOptions.

    Raises:
        RecipeError: a recipe failed, which it names; or it wrote to the tensors of the program.
        NoSuchNameError: there is no recipe of that name.
        InvalidArgumentError: a payload's name is not allowed, there is no recipe, or both outputs are one file.
    """
    output = asked(output)
    shared_path = str(Path(output).with_suffix(".ptd")) if weights_to is None else asked(weights_to)
    if os.path.abspath(shared_path) == os.path.abspath(output):
        raise InvalidArgumentError(f"the container and its weights are both to be {output!r}")
    with _specialized(exported_program, align, options) as made:
        files: list[tuple[_core.FilePlan, str]] = [(made.container, output)]
        if made.weights is not None:
            files.insert(0, (made.weights, shared_path))
        _core.write_plans(files, sync=sync, progress=progress)
        return Specialized(
            container=output,
            weights=None if made.weights is None else shared_path,
            alone=made.alone,
            payloads=made.payloads,
            weights_size=0 if made.weights is None else made.weights.size,
            container_size=made.container.size,
        )


@keywords_of(SpecializeOptions)
def specialized_preprocess(
    exported_program: ExportedProgram,
    *,
    align: int | str = 1,
    external_tag: str | None = "weights",
    **options: Unpack[SpecializeOptions],
) -> PreprocessResult:
    """Returns the same as a backend's preprocess(): the container as the processed bytes, and the shared weights as
    named data, each with its tensor's layout.

    Args:
        exported_program: the program that preprocess() was given.
        align: the alignment of payloads in the container, in bytes.
        external_tag: the .ptd file that the weights go to, as in NamedDataStore.add_named_data(). With None they go to
            the program itself, which has no layouts: a program that asks for tensors, as portable ones do, does not get
            them from there.
        options: those of SpecializeOptions.

    Raises what specialize() raises. Takes memory for the shared weights, as ExecuTorch holds named data.
    """
    result, output_type, serializer, cord = needed(
        "specialized_preprocess()",
        "executorch.exir.backend.backend_details:PreprocessResult",
        "executorch.exir._serialize._named_data_store:NamedDataStoreOutput",
        "executorch.extension.flat_tensor.serialize.serialize:FlatTensorSerializer",
        "executorch.exir._serialize._cord:Cord",
    )
    with _specialized(exported_program, align, options) as made:
        store = output_type(buffers=[], pte_data={}, external_data={})
        if made.weights is not None:
            payload = serializer().deserialize(cord(bytes(made.weights)))
            store.buffers = payload.buffers
            if external_tag is None:
                store.pte_data = payload.named_data
            else:
                store.external_data = {external_tag: payload.named_data}
        return result(processed_bytes=bytes(made.container), data_store_output=store)


@dataclass
class _Made:
    """The plans, which refer to the results of the recipes."""

    container: _core.FilePlan
    weights: _core.FilePlan | None
    alone: dict[str, int]
    payloads: dict[str, int]


@contextmanager
def _specialized(exported_program: ExportedProgram, align: int | str, options: SpecializeOptions) -> Iterator[_Made]:
    chosen, spill = _chosen_recipes(options["recipes"], options["fallback"]), asked(options["spill"])
    fat(dict.fromkeys(chosen, b""), align=align, dry_run=True)  # checks names and alignment before the work
    with ExitStack() as files:
        programs = {}
        with low_memory_export(spill, limit=options["limit"]):
            for name, recipe in chosen.items():
                file = files.enter_context(tempfile.TemporaryFile(dir=spill or os.environ.get("TMPDIR", "/var/tmp")))
                _run(name, recipe, exported_program, file)
                programs[name] = _core.Source(file)
        payloads, weights = programs, None
        if len(programs) > 1:
            shared = share(programs, dry_run=True)
            payloads = {name: plan.source() for name, plan in shared.programs.items()}
            weights = shared.weights
        yield _Made(
            container=fat(payloads, align=align, dry_run=True),
            weights=weights,
            alone={name: program.size for name, program in programs.items()},
            payloads={name: payload.size for name, payload in payloads.items()},
        )


def _run(name: str, recipe: Recipe, exported_program: ExportedProgram, file: IO[bytes]) -> None:
    """Writes the result of a recipe to `file`; nothing else of the result is left in memory."""
    tensors = _tensors_of(exported_program)
    before = [tensor._version for tensor in tensors]
    try:
        _save(recipe(_copy_of(exported_program, tensors)), file)
    except Exception as error:
        raise RecipeError(name, f"{type(error).__name__}: {error}") from error
    finally:
        gc.collect()
    if [tensor._version for tensor in tensors] != before:
        raise RecipeError(name, "it has written to a tensor of the program that it was given, which others get too")


def _save(made: Any, file: IO[bytes]) -> None:
    data = getattr(made, "_tensor_data", None)
    if data:
        # The data moves back into the program, so that it is shared with the others' data.
        pte(program_source(made), file, constants_from=[_core.Source(cord) for cord in data.values()], sync=False)
        return
    is_manager = hasattr(made, "_pte_data") or hasattr(made, "to_executorch")
    source = program_source(made) if is_manager else _core.Source(made)
    _core.FilePlan.copy(source).write(file, sync=False)


def _tensors_of(exported_program: ExportedProgram) -> list[torch.Tensor]:
    held = [*exported_program.state_dict.values(), *exported_program.constants.values()]
    return [one for one in held if isinstance(one, torch.Tensor) and not one.is_inference()]


def _copy_of(exported_program: ExportedProgram, tensors: list[torch.Tensor]) -> ExportedProgram:
    """Returns a copy with a graph of its own, and with the same tensors."""
    return copy.deepcopy(exported_program, {id(tensor): tensor for tensor in tensors})
