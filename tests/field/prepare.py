# SPDX-License-Identifier: BSD-3-Clause
"""Makes the files that the tests in this folder look at, once in build/field.

    python tests/field/prepare.py

    current/        models exported by the current release, with descriptions
    made_up/        made-up programs and bundles, described
    native/WRITER/  the models, exported by the other releases themselves
    same/WRITER/    one and the same programs, bundles and data, each as the writer writes it

"same" has NAME.LAYOUT.pte, NAME.bpte with NAME.usual.pte inside, NAME.LAYOUT.ptd, program-SEED.LAYOUT.pte,
GROUP-INDEX.bpte, and said.json: for each file the release's message instead of writing it, or null.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from releases import BUILD, CURRENT, EXECUTORCH, HERE, WRITERS, Writer

FIELD = BUILD / "field"

LAYOUTS: dict[str, dict[str, Any]] = {
    "usual": {"extract_delegate_segments": True},
    "inline": {"extract_delegate_segments": False},
    "wide": {
        "extract_delegate_segments": True,
        "segment_alignment": 4096,
        "constant_tensor_alignment": 256,
        "delegate_alignment": 32,
    },
    "wide_inline": {
        "extract_delegate_segments": False,
        "segment_alignment": 1024,
        "constant_tensor_alignment": 64,
        "delegate_alignment": 32,
    },
}
"""ExecuTorch's options. flatc, through which releases up to 1.1 wrote, aligns delegates inside to 32 at most."""


def tensor_layouts(writer: Writer) -> dict[str, dict[str, Any]]:
    """Returns the layouts of tensor data by name. 1.0 has its default only: under others its data does not begin where
    the header says."""
    return {"usual": {}} if writer.as_of == "1.0" else {"usual": {}, "wide": {"segment_alignment": 4096}}


def _native(release: str) -> Writer:
    """Returns a writer of the release, with another than the latest flatbuffers if there is a choice."""
    choices = [writer for writer in WRITERS if writer.release == release]
    return choices[len(choices) // 2]


NATIVE = tuple(map(_native, EXECUTORCH[:-1]))


def described_models() -> list[Path]:
    return sorted(folder for folder in (FIELD / "current").iterdir() if folder.is_dir())


def made_up_programs() -> list[Path]:
    return sorted((FIELD / "made_up" / "programs").iterdir())


def made_up_bundles() -> list[Path]:
    return sorted((FIELD / "made_up" / "bundles").iterdir())


def made_up_layouts(program: Path) -> dict[str, dict[str, Any]]:
    """Returns the layouts of a program by name; the first is that of program.pte."""
    return dict(zip(("first", "second"), json.loads((program / "layouts.json").read_text()), strict=True))


def _tasks(writer: Writer, out: Path) -> Iterator[dict[str, Any]]:
    for model in described_models():
        yield from _program_tasks(model, LAYOUTS, out / model.name)
        cases = str(model / "cases.json")
        yield {"bundle": f"{out / model.name}.usual.pte", "cases": cases, "output": f"{out / model.name}.bpte"}
        if (model / "tensors.json").exists():
            for name, options in tensor_layouts(writer).items():
                output = f"{out / model.name}.{name}.ptd"
                yield {"tensors": str(model / "tensors.json"), "options": options, "output": output}
    for program in made_up_programs():
        yield from _program_tasks(program, made_up_layouts(program), out / f"program-{program.name}")
    for bundle in made_up_bundles():
        output = str(out / f"{bundle.name}.bpte")
        yield {"bundle": str(bundle / "program.bin"), "cases": str(bundle / "cases.json"), "output": output}


def _program_tasks(described: Path, layouts: dict[str, dict[str, Any]], output: Path) -> Iterator[dict[str, Any]]:
    beside = json.loads((described / "beside.json").read_text())
    for name, options in layouts.items():
        program = str(described / "model.json")
        yield {"program": program, **beside, "options": options, "output": f"{output}.{name}.pte"}


def _write_same(writer: Writer) -> None:
    out = _fresh(FIELD / "same" / str(writer))
    (out / "tasks.json").write_text(json.dumps(list(_tasks(writer, out))))
    lines = map(json.loads, writer.run("write_as.py", out / "tasks.json").splitlines())
    said = {Path(line["output"]).name: line["error"] for line in lines}
    (out / "said.json").write_text(json.dumps(said, indent=1))


def _export(writer: Writer, folder: Path, *options: str) -> None:
    out = _fresh(folder)
    lines = map(json.loads, writer.run("export_models.py", out, *options).splitlines())
    (out / "said.json").write_text(json.dumps({line["name"]: line["error"] for line in lines}, indent=1))


def _make_up() -> None:
    CURRENT.run("made_up.py", _fresh(FIELD / "made_up"))


def _fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _key() -> str:
    """Returns a key that changes with everything that decides the files."""
    here = ("descriptions.py", "export_models.py", "made_up.py", "prepare.py", "releases.txt", "write_as.py")
    peer = ("cases.py", "generated_bundles.py", "layouts.py", "random_programs.py")
    sources = [HERE / name for name in here] + [HERE.parent / "peer" / name for name in peer]
    return hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()


def main() -> None:
    done = FIELD / "done"
    if done.exists() and done.read_text() == _key():
        return
    done.unlink(missing_ok=True)
    first: list[Callable[[], None]] = [
        lambda: _export(CURRENT, FIELD / "current", "--describe"),
        _make_up,
    ]
    then = [lambda writer=writer: _export(writer, FIELD / "native" / str(writer)) for writer in NATIVE]
    then += [lambda writer=writer: _write_same(writer) for writer in WRITERS]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for stage in (first, then):
            for future in [pool.submit(job) for job in stage]:
                future.result()
    done.write_text(_key())


if __name__ == "__main__":
    main()
