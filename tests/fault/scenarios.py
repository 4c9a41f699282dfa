# SPDX-License-Identifier: BSD-3-Clause
"""Lists the commands that are run with faults, and what is at the destination before."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from workplace import MIB, Workplace, etstream

NOBODY = 65534
OLD_CONTENT = b"the old file"
LEFTOVER = ".result.etstream-0123456789abcdef.tmp"


@dataclass(frozen=True)
class Scenario:
    """A command that writes out/result; it is run in a Workplace."""

    name: str
    command: list[str]
    old_file: bool = False  # a private file is there before
    old_folder: bool = False  # an empty folder is there before
    leftover: bool = False  # a leftover of a killed run is there
    of_another: bool = False  # the old file belongs to another user; needs root
    model_size: int = 5 * MIB // 2
    makes_a_folder: bool = False
    gives: str | None = None  # the input whose bytes the result has
    roles: tuple[str, ...] = ()  # the only roles that go wrong; none means all
    program: list[str] = field(default_factory=lambda: [etstream()])

    @property
    def destination(self) -> str:
        return "out/result"

    @property
    def whole_command(self) -> list[str]:
        return self.program + self.command

    def prepare(self, place: Workplace) -> None:
        """Makes the destination folder as it is before the command runs."""
        place.renew()
        if self.old_file:
            place.result.write_bytes(OLD_CONTENT)
            place.result.chmod(0o600)
            if self.of_another and os.geteuid() == 0:
                os.chown(place.result, NOBODY, NOBODY)
        if self.old_folder:
            place.result.mkdir(mode=0o700)
        if self.leftover:
            self._leave(place.out / LEFTOVER)

    def _leave(self, path: Path) -> None:
        if self.makes_a_folder:
            path.mkdir()
            (path / "half").write_bytes(b"half")
        else:
            path.write_bytes(b"half")
        os.utime(path, (0, 0))


BUNDLE = ["bundle", "in/model.pte", "--cases", "in/cases.json", "-o", "out/result"]
SEGMENTED = ["bundle", "in/model.pte", "--cases", "in/test_cases.json", "--unchecked", "--to", "segmented", "-o"]
TO_SEGMENTED = ["convert", "in/large_cases.bpte", "--to", "segmented", "-o", "out/result"]
TO_BP08 = ["convert", "in/segmented.bpte", "--to", "bp08", "-o", "out/result"]
# Packages have a time stamp; two runs give the same bytes only with the same one.
os.environ["SOURCE_DATE_EPOCH"] = "315532800"
PACKAGE = ["ptn", "in/program.ptg", "--constants", "in/weights.safetensors", "-o", "out/result"]
THE_BYTES = ("write", "sync", "rename")
CASES = ["extract", "in/large_cases.bpte", "--cases", "out/result"]


def careless(flaw: str) -> Scenario:
    """Returns a scenario of careless_writer with a flaw, or "none", over an old file."""
    program = [os.environ["CARELESS_WRITER"], flaw, "in/model.pte", "out/result"]
    return Scenario(flaw, [], old_file=True, program=program)


def scenarios() -> list[Scenario]:
    return [
        Scenario("bundle", BUNDLE),
        Scenario("bundle_over_old", BUNDLE, old_file=True, leftover=True, of_another=True),
        # Writes have 64 KiB here.
        Scenario("bundle_no_sync", [*BUNDLE, "--no-sync"], old_file=True, model_size=160 << 10),
        # This writes back three windows, in calls that the others do not make.
        Scenario("bundle_windows", BUNDLE, model_size=25 * MIB, roles=("write back", "forget", "sync")),
        # The directory at the end goes to the disk in two writes, of which the first happens while the directory is
        # handed over.
        Scenario(
            "bundle_segmented", [*SEGMENTED, "out/result"], model_size=5 * MIB // 2 - 16448, gives="in/segmented.bpte"
        ),
        # These three differ from others in the bytes that they write, and not in their calls.
        Scenario("bundle_no_hash", [*SEGMENTED, "out/result", "--no-hash"], old_file=True, roles=THE_BYTES),
        Scenario("convert_to_segmented", TO_SEGMENTED, old_file=True, roles=THE_BYTES, gives="in/segmented.bpte"),
        Scenario("convert_to_bp08", TO_BP08, old_file=True, roles=THE_BYTES, gives="in/large_cases.bpte"),
        Scenario(
            "pte", ["pte", "in/model.pte", "--segment-alignment", "4096", "-o", "out/result"], old_file=True, roles=THE_BYTES
        ),
        Scenario("reweight", ["reweight", "in/model.pte", "--was", "in/model.pte", "--now", "in/model.pte", "-o", "out/result"],
                 old_file=True, roles=THE_BYTES, gives="in/model.pte"),
        Scenario("ptd", ["ptd", "in/weights.safetensors", "-o", "out/result"], old_file=True, roles=THE_BYTES),
        Scenario("ptd_to_pth", ["ptd", "in/weights.safetensors", "--to", "pth", "-o", "out/result"], old_file=True,
                 roles=THE_BYTES),
        Scenario(
            "fat", ["fat", "a=in/model.pte", "b=in/bundle.bpte", "-o", "out/result"], old_file=True, roles=THE_BYTES
        ),
        Scenario("ptn", PACKAGE, old_file=True, roles=THE_BYTES),
        Scenario("pack", ["pack", "in/model.pte", "-o", "out/result"], old_file=True, leftover=True, gives="in/model.pte.etz"),
        Scenario("unpack", ["unpack", "in/model.pte.etz", "-o", "out/result"], gives="in/model.pte"),
        Scenario("pack_update", ["pack", "in/model.pte", "--base", "in/bundle.bpte", "-o", "out/result"], old_file=True),
        Scenario("extract_program", ["extract", "in/bundle.bpte", "program", "-o", "out/result"], old_file=True),
        Scenario("extract_segment", ["extract", "in/model.pte", "segments/0", "-o", "out/result"]),
        Scenario("extract_cases", CASES, makes_a_folder=True),
        Scenario("extract_cases_over_old", CASES, makes_a_folder=True, old_folder=True, leftover=True),
    ]
