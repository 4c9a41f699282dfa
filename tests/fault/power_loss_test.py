# SPDX-License-Identifier: BSD-3-Clause
"""Cuts the power after each call of a run. Each output is then the old one or the complete new one, whichever changes
without a sync have reached the disk; after exit code 0 it is the new one. Prints a line for each command."""

import unittest
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import several_outputs_test
from command_test_case import main
from expectations import Call
from power_loss import TEMPORARY, Disk, possible_contents
from scenarios import Scenario, careless, scenarios
from sweep import trace
from workplace import MIB, NEIGHBOURS, ROOT, Workplace, content

RESULT = ("out/result",)


@dataclass
class Count:
    runs: int = 0
    cuts: int = 0
    states: int = 0  # the states of the folder, different ones at each cut
    unsynced: int = 0  # the most unsynced changes at one cut; any of their subsets may be on the disk
    mixed: int = 0  # the states in which some of several outputs are new and others old
    complaints: list[str] = field(default_factory=list)

    def add(self, other: "Count") -> None:
        for name in ("runs", "cuts", "states", "mixed", "complaints"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.unsynced = max(self.unsynced, other.unsynced)


HEADING = f"{'command':<28}{'runs':>5}{'cuts':>7}{'states':>8}{'unsynced':>10}{'mixed':>7}{'lost':>6}"


def row(name: str, count: Count) -> str:
    figures = f"{count.runs:>5}{count.cuts:>7}{count.states:>8}{count.unsynced:>10}{count.mixed:>7}"
    return f"{name:<28}{figures}{len(count.complaints):>6}"


class PowerCuts:
    """A run in a folder that is prepared for it, and all power cuts during it."""

    def __init__(self, scenario: Scenario, place: Workplace, outputs: tuple[str, ...]) -> None:
        self.outputs = outputs
        self.disk, in_the_end = Disk(place.out), Disk(place.out)
        self.before = self.disk.may_hold("out")
        self.old = [possible_contents(self.disk.find(path))[0] for path in outputs]
        self.run = trace(scenario, place, "record")
        self.written = (place.top / "log.data").read_bytes()
        self.count = Count(runs=1)
        if self.run.code != 0:
            self.count.complaints.append(f"it fails: {self.run.stderr}")
        for _ in self._replay(in_the_end):
            pass
        in_the_end.sync()
        self.new = [possible_contents(in_the_end.find(path))[0] for path in outputs]
        for path, new in zip(outputs, self.new, strict=True):
            if bytes_of(new) != content(place.top / path):
                self.count.complaints.append(f"{path} is not what the calls that were traced make of it")

    def all(self) -> Count:
        self._judge("before all calls")
        for call in self._replay(self.disk):
            self._judge(f"after call {call.index}, {call.name} ({call.about})")
        new = [[each] for each in self.new]
        if any([possible_contents(node) for node in found] != new for found, _ in self.disk.outcomes(self.outputs)):
            self.count.complaints.append("an output may be the old one after exit code 0")
        return self.count

    def _replay(self, disk: Disk) -> Iterator[Call]:
        at = 0
        for call in self.run.calls:
            size = max(call.result or 0, 0) if call.name == "write" and call.about != "fd 1" else 0
            disk.replay(call, self.written[at : at + size])
            at += size
            yield call

    def _judge(self, when: str) -> None:
        outcomes = self.disk.outcomes(self.outputs)
        self.count.cuts += 1
        self.count.states += len(outcomes)
        self.count.unsynced = max(self.count.unsynced, self.disk.unsettled())
        for found, left in set(outcomes):
            contents = [possible_contents(node) for node in found]
            for path, each, old, new in zip(self.outputs, contents, self.old, self.new, strict=True):
                if each not in ([old], [new]):
                    self.count.complaints.append(f"{when}: {path} may be neither the old one nor the complete new one")
            if len(contents) > 1 and contents not in ([[old] for old in self.old], [[new] for new in self.new]):
                self.count.mixed += 1
                if not left:
                    self.count.complaints.append(f"{when}: some outputs may be new, and no temporary file tells")
        new = {name for name, _ in self.disk.may_hold("out") - self.before}
        for name in new - {path.split("/")[1] for path in self.outputs}:
            if name in NEIGHBOURS or not TEMPORARY.fullmatch(name):
                self.count.complaints.append(f"{when}: {name} may be there")


def bytes_of(contents: object) -> object:
    """Returns possible contents as workplace.content() does."""
    if isinstance(contents, dict):
        return {name: bytes_of(each) for name, each in contents.items()}
    return contents[0] if isinstance(contents, tuple) else contents


def cuts_of(scenario: Scenario, place: Workplace) -> Count:
    scenario.prepare(place)
    return PowerCuts(scenario, place, RESULT).all()


class PowerLoss(unittest.TestCase):
    def test_one_output_is_the_old_one_or_the_complete_new_one(self) -> None:
        print(f"\n{HEADING}")
        total = Count()
        for scenario in scenarios():
            if "--no-sync" in scenario.command:
                continue
            count = Count()
            with Workplace(scenario.model_size) as place:
                for old in (True, False):
                    is_there = {"old_folder" if scenario.makes_a_folder else "old_file": old}
                    count.add(cuts_of(replace(scenario, **is_there), place))
            self.report(scenario.name, count)
            total.add(count)
        self.report("all with one output", total)

    def report(self, name: str, count: Count) -> None:
        print(row(name, count), flush=True)
        self.assertEqual(count.complaints[:10], [], name)

    def test_each_of_several_outputs_is_so_and_a_temporary_file_tells_where_they_are_mixed(self) -> None:
        print(f"\n{HEADING}")
        with Workplace(5 * MIB // 2) as place:
            for name, command, outputs in SEVERAL:
                count = Count()
                for old in (True, False):
                    place.renew()
                    (place.out / "kept").mkdir()
                    for path in (place.top / output for output in outputs if old):
                        path.parent.mkdir(parents=True, exist_ok=True)
                        _ = path.write_bytes(b"old") if path.suffix else path.mkdir()
                    cuts = PowerCuts(Scenario(name, command), place, outputs)
                    calls = cuts.run.calls
                    comes = [i for i, call in enumerate(calls) if call.source and call.about in outputs]
                    between = [call.name for call in calls[comes[0] : comes[-1]] if not call.name.startswith("rename")]
                    self.assertEqual(between, [], f"{name}: calls between the first rename and the last")
                    count.add(cuts.all())
                self.report(name, count)


class Control(unittest.TestCase):
    """A control: a program that forgets to sync is found."""

    place: Workplace

    @classmethod
    def setUpClass(cls) -> None:
        cls.place = cls.enterClassContext(Workplace(model_size=5 * MIB // 4))

    def complaints(self, flaw: str) -> str:
        return "\n".join(cuts_of(careless(flaw), self.place).complaints)

    def test_nothing_is_lost_by_a_program_without_a_flaw(self) -> None:
        self.assertEqual(self.complaints("none"), "")

    def test_one_that_forgets_the_folder_may_lose_the_new_file_after_it_has_ended(self) -> None:
        self.assertEqual(self.complaints("forgets-folder"), "an output may be the old one after exit code 0")

    def test_one_that_forgets_the_file_may_leave_half_of_it(self) -> None:
        self.assertIn("(out/result): out/result may be neither the old one nor", self.complaints("never-asks"))

    def test_one_that_writes_in_place_may_leave_half_of_it(self) -> None:
        self.assertIn("(out/result): out/result may be neither the old one nor", self.complaints("in-place"))


def synced(command: list[str]) -> list[str]:
    return [word for word in command if word != "--no-sync"]


SEVERAL = [
    (
        "share",
        synced(several_outputs_test.SHARE),
        tuple(f"out/{name}" for name in several_outputs_test.SharedWeights.outputs),
    ),
    # The new folder is in a folder that nothing else is written to.
    (
        "share_into_new_folder",
        ["share", "in/model.pte", "in/aligned.pte", "--weights-to", "out/kept/weights.ptd", "--out-dir", "out/thin"],
        ("out/kept/weights.ptd", "out/thin/model.pte", "out/thin/aligned.pte"),
    ),
    (
        "pte_with_shards",
        synced(several_outputs_test.SHARDS),
        tuple(f"out/{name}" for name in several_outputs_test.Shards.outputs),
    ),
    (
        "extract_with_cases",
        ["extract", "in/large_cases.bpte", "program", "-o", "out/model.pte", "--cases", "out/cases"],
        ("out/model.pte", "out/cases"),
    ),
    (
        "decompile_into_new_folder",
        ["decompile", str(ROOT / "schema" / "program.fbs"), "in/model.pte", "in/aligned.pte", "-o", "out/new/folder/"],
        ("out/new/folder/model.json", "out/new/folder/aligned.json"),
    ),
]


if __name__ == "__main__":
    main()
