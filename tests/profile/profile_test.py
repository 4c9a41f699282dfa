# SPDX-License-Identifier: BSD-3-Clause
"""Tests `etstream profile` from outside.

    ETSTREAM=PATH PHASES=PATH python3 profile_test.py
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "pages"))
from browser import browser, find_browser  # noqa: E402

ETSTREAM = os.environ["ETSTREAM"]
PHASES = os.environ["PHASES"]
MIB = 1 << 20
SPIKE = 256 * MIB
SEEN = SPIKE - MIB
"""The least that a profile shows of a spike: the kernel adds pages up by the dozen, for each processor."""
LITTLE = 32 * MIB
# A program that takes memory and counts its bytes, with the interpreter's lock held all the time, and gives the memory
# back. Counting takes some tenths of a second, so that a look that comes late still finds the function that took it.
GREEDY = """
import os, sys, threading, time

def lean():
    return [bytes(10) for _ in range(1000)]

def greedy():
    taken = bytearray(512 << 20)
    return taken.count(0)

def main():
    lean()
    return greedy()

if "thread" in sys.argv:
    thread = threading.Thread(target=main)
    thread.start()
    thread.join()
elif "fork" in sys.argv:
    child = os.fork()
    if child == 0:
        main()
        os._exit(0)
    os.waitpid(child, 0)
else:
    main()
if "exec" in sys.argv:
    os.execlp("sh", "sh", "-c", "sleep 0.1; head -c 300000000 /dev/zero | tail -c 250000000 >/dev/null")
"""

COPIES = """
import time

def load():
    out = []
    for i in range(4):
        out.append(bytearray(bytes([i])) * (64 << 20))
        time.sleep(0.15)
    return out

def repack(blocks):
    out = []
    for block in blocks:
        out.append(bytearray(block))
        time.sleep(0.15)
    return out

def scratch():
    taken = bytearray(60 << 20)
    time.sleep(0.15)

time.sleep(0.15)
scratch()
raw = load()
repacked = repack(raw)
time.sleep(0.4)
"""

# The stack has more frames than faulthandler writes.
DEEP = """
import time
time.sleep(0.1)
def deep(frames):
    if frames:
        return deep(frames - 1)
    taken = bytearray(300 << 20)
    time.sleep(0.2)
    return len(taken)

deep(300)
"""


# A program whose 200 MiB are shared by four processes, as the second argument says.
SHARING = """
import mmap, os, sys, time

way, size, piece = sys.argv[1], 200, bytes(b"x") * (1 << 20)

def fill(block):
    for i in range(size):
        block[i << 20 : (i + 1) << 20] = piece

if way == "file":
    path = f"/dev/shm/etstream-test-{os.getpid()}"
    with open(path, "wb", buffering=0) as file:
        for _ in range(size):
            file.write(piece)
        os.remove(path)
        time.sleep(0.5)
    sys.exit()
block = mmap.mmap(-1, size << 20) if way == "map" else bytearray(size << 20)
fill(block)
for _ in range(3):
    if os.fork() == 0:
        if way == "copy":
            fill(block)
        elif way == "map":
            sum(block[::4096])
        time.sleep(2)
        os._exit(0)
for _ in range(3):
    os.wait()
"""


def run(*words: str | Path, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ETSTREAM, *words], capture_output=True, text=True, timeout=120, **more)


def memory_group(limit: int) -> Path | None:
    """Makes a control group with a limit of memory, of either version; returns none where that is not allowed."""
    for folder, name in (("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")):
        group = Path(folder) / f"etstream-test-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        with contextlib.suppress(OSError):
            if (group / name).exists():  # or groups of memory are elsewhere
                (group / name).write_text(str(limit))
                return group
        group.rmdir()
    return None


class Profile(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def profile(self, *command: str, code: int = 0) -> dict[str, Any]:
        done = run("profile", "--json", self.folder / "out.json", "--", *command)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertRegex(done.stderr, r"MiB resident(, \d+\.\d \w+ spilled)?(, of [1-9][\d.]* \w+ that the control group may have)?; the page")
        found: dict[str, Any] = json.loads((self.folder / "out.json").read_text())
        return found

    def peaks(self, what: str) -> tuple[dict[str, int], dict[str, Any]]:
        found = self.profile(PHASES, what)
        return {phase["name"]: phase["peak"]["anonymous"] for phase in found["phases"]}, found

    def test_a_spike_shorter_than_any_look_is_in_its_phase_alone(self) -> None:
        peaks, found = self.peaks("spike")
        self.assertGreaterEqual(peaks["spike"], SEEN)
        self.assertLess(peaks["spike"], SPIKE + LITTLE)
        self.assertLess(max(peaks["before"], peaks["after"]), LITTLE)
        self.assertGreaterEqual(found["peak"]["anonymous"], SEEN)
        self.assertEqual(found["notes"], [])

    def test_phases_lie_in_each_other(self) -> None:
        peaks, found = self.peaks("nested")
        self.assertEqual([phase["depth"] for phase in found["phases"]], [0, 1, 1])
        self.assertGreaterEqual(min(peaks["outer"], peaks["inner <b> "]), SEEN)
        self.assertLess(peaks["quiet"], LITTLE)

    def test_what_a_process_takes_as_it_ends_counts(self) -> None:
        _, found = self.peaks("end")
        self.assertGreaterEqual(found["peak"]["resident"], SEEN)
        self.assertGreaterEqual(found["peak"]["anonymous"], SEEN)

    def test_a_forked_child_has_phases_of_its_own(self) -> None:
        peaks, found = self.peaks("child")
        self.assertGreaterEqual(peaks["child"], SEEN)
        self.assertLess(peaks["parent"], LITTLE)
        self.assertEqual(len(found["processes"]), 2)
        parent, child = found["processes"]
        self.assertEqual(child["parent"], parent["process"])

    def test_children_are_seen_and_orphans_too(self) -> None:
        script = "(sleep 0.3; head -c 50000000 /dev/zero > out) & sh -c 'sleep 0.1; : one'"
        done = run("profile", "--json", "out.json", "--", "sh", "-c", script, cwd=self.folder)
        self.assertEqual(done.returncode, 0)
        commands = [each["command"] for each in json.loads((self.folder / "out.json").read_text())["processes"]]
        self.assertTrue(any("sleep 0.1" in command for command in commands), commands)
        self.assertTrue(any(command == "sleep 0.3" for command in commands), commands)

    def test_a_child_that_is_to_become_another_program_has_no_memory_yet(self) -> None:
        script = (
            "import subprocess, time; block = bytearray(b'x') * (256 << 20);"
            "subprocess.run(['true'], preexec_fn=lambda: time.sleep(0.1))"
        )
        found = self.profile(sys.executable, "-c", script)
        self.assertGreaterEqual(found["peak"]["anonymous"], SEEN)
        self.assertLess(found["peak"]["anonymous"], SPIKE + LITTLE)

    def test_memory_that_processes_share_counts_once_as_their_control_group_is_charged(self) -> None:
        (self.folder / "sharing.py").write_text(SHARING)
        group = memory_group(2 << 30)
        if group is None:
            print("*** SKIPPED: memory beside that of a control group, as none can be made here", file=sys.stderr)
        else:
            self.addCleanup(group.rmdir)
        # In version 1 the command has a group of its own: memory of others in the group of etstream is not counted.
        other = f"""{sys.executable} -c 'import time; b = b"x" * (100 << 20); time.sleep(2)' & """
        if group is not None and not (group / "memory.limit_in_bytes").exists():
            print("*** SKIPPED: memory of others in a control group, as the command gets none of its own", file=sys.stderr)
            other = ""
        for way, least in {"fork": 200, "copy": 800, "map": 200, "file": 200}.items():
            if way == "file" and group is None:
                continue
            with self.subTest(way):
                enter = f"echo $$ >{group}/cgroup.procs; " if group is not None else ""
                out = self.folder / "out.json"
                command = f"{enter}{other}{ETSTREAM} profile --json {out} -- {sys.executable} {self.folder}/sharing.py {way} && wait"
                done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120)
                self.assertEqual(done.returncode, 0, done.stderr)
                found = json.loads(out.read_text())
                most = found["peak"]["anonymous"]
                self.assertGreaterEqual(most, (least - 1) * MIB)
                self.assertLess(most, least * MIB + LITTLE)
                self.assertEqual(max(found["samples"]["anonymous"]), most)
                if way == "fork":
                    self.assertEqual(len({jump["process"] for jump in found["jumps"] if jump["by"] > LITTLE}), 1)
                if group is not None:
                    self.assertAlmostEqual(found["cgroup_growth"] / most, 1, delta=0.03)

    def test_work_is_counted(self) -> None:
        found = self.profile("sh", "-c", f"head -c 100000000 /dev/zero > {self.folder}/out; sleep 0.2")
        self.assertGreaterEqual(sum(each["written"] for each in found["processes"]), 50_000_000)
        self.assertGreater(found["cpu_seconds"], 0)
        self.assertGreaterEqual(found["seconds"], 0.2)

    def test_the_exit_code_is_the_commands(self) -> None:
        self.profile("sh", "-c", "exit 41", code=41)
        killed = run("profile", "--", "sh", "-c", "kill -9 $$")
        self.assertEqual(killed.returncode, -signal.SIGKILL)
        self.assertEqual(run("profile", "--", "/no/such/program").returncode, 127)
        self.assertEqual(run("profile", "--", str(self.folder)).returncode, 126)
        self.assertEqual(run("profile").returncode, 2)
        self.assertEqual(run("profile", "--fail-above", "much", "--", "true").returncode, 2)
        self.assertEqual(run("profile", "--fail-above", "1G@", "--", "true").returncode, 2)

    def test_more_than_the_limit_is_exit_code_3_and_named(self) -> None:
        def code(limit: str, what: str = "spike") -> tuple[int, str]:
            done = run("profile", "--fail-above", limit, "--", PHASES, what)
            return done.returncode, done.stderr

        status, said = code("200M")
        self.assertEqual(status, 3)
        # The kernel's counters lag by some pages.
        self.assertRegex(said, r"(?m)^memory gate FAILED: 25[56]\.\d MiB, limit 200\.0 MiB, in phase 'spike'$")
        self.assertEqual(code("300M")[0], 0)
        self.assertEqual(code("200M@after")[0], 0)
        self.assertEqual(code("200M@spike")[0], 3)
        self.assertRegex(code("200M", "end")[1], r"(?m)^memory gate FAILED: 25\d\.\d MiB, limit 200\.0 MiB$")
        status, said = code("200M@no such")
        self.assertEqual(status, 1)
        self.assertIn("there was no phase 'no such', but 'after', 'before', 'spike'", said)
        done = run("profile", "--fail-above", "1G", "--fail-above", "200M@spike", "--fail-above", "200M@after", "--", PHASES, "spike")
        self.assertEqual(done.returncode, 3)
        self.assertEqual((done.stderr.count("gate FAILED"), done.stderr.count("gate passed")), (1, 2))
        # A command that failed has failed, whatever memory it used.
        done = run("profile", "--fail-above", "1G", "--", "sh", "-c", "exit 5")
        self.assertEqual(done.returncode, 5)
        self.assertRegex(done.stderr, "memory gate FAILED: .*, limit 1.0 GiB; the command failed with exit code 5\n")
        # Two processes have the peak together: the phase is that which had most of it.
        half = f"etstream profile --phase %s -- {sys.executable} -c 'block = bytearray(%d << 20); import time; time.sleep(1)'"
        pipeline = " | ".join(half.replace("etstream", ETSTREAM) % phase for phase in (("first", 100), ("second", 120)))
        done = run("profile", "--fail-above", "150M", "--", "sh", "-c", pipeline)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(done.stderr, r"memory gate FAILED: 2\d\d\.\d MiB, limit 150\.0 MiB, in phase 'second'\n")

    def test_what_lies_in_the_heap_is_told_apart(self) -> None:
        script = "x = b'1' * (200 << 20); import time; time.sleep(0.2)"
        command = [ETSTREAM, "run", "--spill", "/var/tmp", "--", sys.executable, "-c", script]
        found = self.profile(*command)
        self.assertGreaterEqual(found["spilled"], 200 * MIB)
        self.assertLess(found["peak"]["anonymous"], 100 * MIB)
        self.assertGreaterEqual(max(found["samples"]["spilled"]), 200 * MIB)
        times = found["samples"]["time"]
        self.assertEqual(times, sorted(set(times)))
        self.assertGreater(times[-1], 0.2)
        self.assertLessEqual(times[-1], found["seconds"])

    def test_callers_name_the_function_that_took_it(self) -> None:
        script = self.folder / "model.py"
        script.write_text(GREEDY)
        for way in ("main", "thread", "fork", "exec"):
            with self.subTest(way):
                done = run("profile", "--callers", "--json", self.folder / "out.json", "--", sys.executable, script, way)
                self.assertEqual(done.returncode, 0, done.stderr)
                jumps = json.loads((self.folder / "out.json").read_text())["jumps"]
                by: dict[str, int] = {}
                for jump in jumps:
                    functions = [caller["function"] for caller in jump["callers"]]
                    by[functions[0]] = by.get(functions[0], 0) + jump["by"]
                    self.assertEqual(functions[:2], ["greedy", "main"], jump)
                    self.assertTrue(jump["callers"][0]["file"].endswith("model.py"))
                self.assertGreaterEqual(by["greedy"], 300 * MIB)
                self.assertIn("greedy, ", done.stderr)

    def test_the_line_of_the_script_is_told_however_deep_it_went(self) -> None:
        script = self.folder / "deep.py"
        script.write_text(DEEP)
        done = run("profile", "--callers", "--json", self.folder / "out.json", "--", sys.executable, script)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads((self.folder / "out.json").read_text())
        jump = max(found["jumps"], key=lambda each: each["by"])
        functions = [caller["function"] for caller in jump["callers"]]
        self.assertIn("deep", functions)
        self.assertEqual(functions[-1], "<module>")
        self.assertEqual(jump["callers"][-1]["line"], 11)
        self.assertLess(len(functions), 130)

    def test_what_is_in_use_at_the_peak_is_told_by_what_made_it(self) -> None:
        script = self.folder / "copies.py"
        script.write_text(COPIES)
        run_python = [ETSTREAM, "run", "--spill", "/var/tmp", "--", sys.executable, script]
        done = run("profile", "--callers", "--json", self.folder / "out.json", "--", *run_python)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads((self.folder / "out.json").read_text())["blocks"]
        size: Counter[str] = Counter()
        repeated: Counter[str] = Counter()
        for made in found:
            function = made["callers"][0]["function"] if made["callers"] else ""
            size[function] += made["size"]
            repeated[function] += made["repeated"]
        # Each block of load() has a copy of repack(). That of scratch() is not in use any more.
        for function in ("load", "repack"):
            self.assertGreaterEqual(size[function], 256 * MIB, found)
            self.assertGreaterEqual(repeated[function], 256 * MIB, found)
        self.assertLess(size.total(), (512 + 64) * MIB)
        self.assertRegex(done.stderr, r" MiB in \d+ blocks?, \d+\.\d MiB of it in blocks that look like others, made by process \d+\n +(load|repack), ")
        # Memory that no heap serves is in no block.
        done = run("profile", "--callers", "--json", self.folder / "out.json", "--", sys.executable, script)
        self.assertEqual(json.loads((self.folder / "out.json").read_text())["blocks"], [])

    def test_where_no_python_can_tell_of_callers_a_note_says_so(self) -> None:
        for command in (["true"], [sys.executable, "-I", "-c", "taken = bytearray(200 << 20)"]):
            done = run("profile", "--callers", "--", *command)
            self.assertEqual(done.returncode, 0)
            self.assertIn("note: no Python was there to tell of its callers", done.stderr)

    def test_two_profiles_are_compared_by_phase(self) -> None:
        self.profile(PHASES, "spike")
        (self.folder / "out.json").rename(self.folder / "a.json")
        self.profile(PHASES, "nested")
        done = run("profile", "--compare", "a.json", "out.json", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = {line.strip().split("  ")[0]: line for line in done.stdout.splitlines()}
        self.assertLessEqual({"all", "before", "spike", "after", "outer", "quiet"}, rows.keys())
        self.assertIn(" - ", rows["spike"])
        (self.folder / "a.json").write_text("[]")
        self.assertEqual(run("profile", "--compare", "a.json", "out.json", cwd=self.folder).returncode, 1)

    def test_a_profile_of_a_part_of_the_work_is_no_measure(self) -> None:
        whole, failed, killed = (["--json", self.folder / f"{name}.json", "--", "sh", "-c"] for name in ("whole", "failed", "killed"))
        self.assertEqual(run("profile", *whole, "true").returncode, 0)
        self.assertEqual(run("profile", *failed, "exit 5").returncode, 5)
        self.assertEqual(run("profile", *killed, "kill -9 $$").returncode, -signal.SIGKILL)
        for name, said in (("failed", "the command failed with exit code 5"), ("killed", "signal 9 (Killed) ended the command")):
            for options in ([], ["--fail-above", "5%"], ["--fail-above", "1G"]):
                done = run("profile", "--compare", "whole.json", f"{name}.json", *options, cwd=self.folder)
                self.assertEqual(done.returncode, 1)
                self.assertIn(f"'{name}.json': {said}, so its memory is that of a part of the work", done.stderr)
            # A profile that percentages count from is checked before the command runs.
            done = run("profile", "--compare", f"{name}.json", "--fail-above", "5%", "--", "touch", "ran", cwd=self.folder)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"'{name}.json': {said}", done.stderr)
            self.assertFalse((self.folder / "ran").exists())
            self.assertEqual(run("profile", "--compare", f"{name}.json", "whole.json", cwd=self.folder).returncode, 0)

    def test_a_phase_includes_the_processes_that_it_starts(self) -> None:
        child = "block = bytearray(500 << 20); import time; time.sleep(0.1)"
        script = f"{ETSTREAM} profile --phase compile -- {sys.executable} -c '{child}'; {ETSTREAM} profile --phase link -- sleep 0.2"
        out = self.folder / "out.json"
        done = run("profile", "--json", out, "--fail-above", "300M@compile", "--fail-above", "300M@link", "--", "sh", "-c", script)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(done.stderr.count("gate FAILED"), 1)
        self.assertRegex(done.stderr, r"memory gate FAILED: 50\d\.\d MiB, limit 300\.0 MiB, in phase 'compile'\n")
        found = json.loads(out.read_text())
        phases = {each["name"]: each for each in found["phases"]}
        self.assertGreaterEqual(phases["compile"]["with_descendants"]["anonymous"], 500 * MIB)
        self.assertLess(phases["compile"]["peak"]["anonymous"], LITTLE)
        self.assertLess(phases["link"]["with_descendants"]["anonymous"], LITTLE)
        (jump,) = [each for each in found["jumps"] if each["by"] > LITTLE]
        self.assertEqual(jump["phase"], "compile")
        self.assertRegex(done.stderr, rf"50\d\.\d MiB were added by process {jump['process']}, in phase 'compile'")
        self.assertEqual(run("profile", "--phase", "alone", "--", "sh", "-c", "exit 4").returncode, 4)
        self.assertEqual(run("profile", "--phase", "alone", "--json", out, "--", "true").returncode, 2)

    def test_nested_tools_tell_the_same_as_alone(self) -> None:
        script = "x = b'1' * (200 << 20); import time; time.sleep(0.3)"
        python = [sys.executable, "-c", script]
        out_of_core = [ETSTREAM, "run", "--spill", "/var/tmp", "--"]
        report = [ETSTREAM, "run", "--spill", "/var/tmp", "--report", "--"]

        def spilled(*command: str) -> list[float]:
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            return [float(each) for each in re.findall(r"spilled +(\d+\.\d) MiB|(?<=, )(\d+\.\d) MiB spilled", done.stderr) for each in each if each]

        (alone,) = spilled(*report, *python)
        profile = [ETSTREAM, "profile", "--"]
        for command in ([*profile, *out_of_core], [*profile, *report], [*report, *profile], [*report, *report]):
            found = spilled(*command, *python)
            self.assertEqual(len(found), command.count("profile") + command.count("--report"))
            for each in found:
                self.assertAlmostEqual(each, alone, delta=1, msg=str(command))

    def test_a_profile_in_a_profile_has_the_phases_too(self) -> None:
        inner = [ETSTREAM, "profile", "--json", str(self.folder / "inner.json"), "--", PHASES, "nested"]
        outer = self.profile("sh", "-c", f"{ETSTREAM} profile --phase first -- true; {' '.join(inner)}")
        found = json.loads((self.folder / "inner.json").read_text())
        names = [phase["name"] for phase in found["phases"]]
        self.assertEqual(names, ["outer", "inner <b> ", "quiet"])
        self.assertEqual([phase["name"] for phase in outer["phases"] if phase["name"] != "first"], names)
        self.assertEqual(found["notes"], [])
        for one, other in zip(found["phases"], outer["phases"][-3:], strict=True):
            self.assertAlmostEqual(one["peak"]["anonymous"], other["peak"]["anonymous"], delta=MIB)

    def test_no_phase_of_a_short_command_is_lost(self) -> None:
        short = f"{ETSTREAM} profile --phase check -- true"
        times = f"for i in $(seq 30); do {short}; done"
        for command in (times, f"{ETSTREAM} profile --json {self.folder}/inner.json -- sh -c '{times}'"):
            done = run("profile", "--json", self.folder / "out.json", "--fail-above", "1G@check", "--", "sh", "-c", command)
            self.assertEqual(done.returncode, 0, done.stderr)
            for out in self.folder.iterdir():
                phases = json.loads(out.read_text())["phases"]
                self.assertEqual([phase["name"] for phase in phases if phase["ended"]], ["check"] * 30)
                self.assertGreater(min(phase["with_descendants"]["resident"] for phase in phases), 0)

    def test_a_gate_counts_from_an_earlier_profile(self) -> None:
        def grown(mebibytes: int, *options: str | Path) -> subprocess.CompletedProcess[str]:
            block = f"block = bytearray({mebibytes} << 20); import time; time.sleep(0.1)"
            command = [ETSTREAM, "profile", "--phase", "lower", "--", sys.executable, "-c", block]
            return run("profile", *options, "--", *command, cwd=self.folder)

        self.assertEqual(grown(200, "--json", "a.json").returncode, 0)
        self.assertEqual(grown(201, "--compare", "a.json", "--fail-above", "5%", "--fail-above", "5%@lower").returncode, 0)
        first = grown(200, "--compare-if-there", "no.json", "--fail-above", "5%", "--fail-above", "9G")
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertIn("there is no 'no.json' yet: nothing is compared with it", first.stderr)
        self.assertEqual(grown(250, "--compare-if-there", "a.json", "--fail-above", "5%").returncode, 3)
        more = ["--compare", "a.json", "--fail-above", "5%@lower", "--json", "b.json", "--html", "b.html", "--markdown", "b.md"]
        (self.folder / "b.md").write_text("# Tests\n")
        done = grown(250, *more)
        self.assertEqual(done.returncode, 3, done.stderr)
        verdict = r"memory gate FAILED: 2[56]\d\.\d MiB, limit 2\d\d\.\d MiB \(5 % over a\.json\), in phase 'lower'"
        self.assertRegex(done.stderr, rf"(?m)^{verdict}$")
        self.assertRegex((self.folder / "b.html").read_text(), verdict)
        # Markdown comes behind what the steps of a job have written before.
        self.assertRegex((self.folder / "b.md").read_text(), rf"^# Tests\n\n\*\*{verdict}\*\*\n\n\| ")
        self.assertRegex((self.folder / "b.md").read_text(), r"\| lower \| 2\d\d\.\d MiB \| 2\d\d\.\d MiB \| \+5\d\.\d MiB \|")
        self.assertEqual(json.loads((self.folder / "b.json").read_text())["phases"][0]["name"], "lower")
        two = ["--compare", "a.json", "b.json"]
        self.assertEqual(run("profile", *two, "--fail-above", "5%", "--html", "c.html", cwd=self.folder).returncode, 3)
        done = run("profile", *two, "--fail-above", "50%", cwd=self.folder)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"(?m)^lower +2\d\d\.\d MiB +2\d\d\.\d MiB +\+5\d\.\d MiB ")
        self.assertEqual(run("profile", *two, "--json", "c.json", cwd=self.folder).returncode, 2)
        self.assertIn("--compare: expected 1 to 2, found 3", run("profile", *two, "c.json", cwd=self.folder).stderr)
        self.assertEqual(run("profile", "--fail-above", "5%", "--", "true").returncode, 2)
        earlier = (self.folder / "a.json").read_text()
        self.assertEqual(run("profile", *two, "--html", "a.json", cwd=self.folder).returncode, 1)
        # The command does not run where this can be known before.
        for wrong in (
            ["--compare", "no.json"],
            ["--json", "no/x.json"],
            ["--compare", "a.json", "--fail-above", "5%@typo"],
            *(["--compare", "a.json", report, "a.json"] for report in ("--json", "--html", "--markdown")),
        ):
            done = run("profile", *wrong, "--", "touch", "ran", cwd=self.folder)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertFalse((self.folder / "ran").exists(), wrong)
        self.assertEqual((self.folder / "a.json").read_text(), earlier)

    def test_a_command_that_the_kernel_ends_at_a_limit_is_told_of(self) -> None:
        group = memory_group(256 * MIB)
        if group is None:
            print("*** SKIPPED: a command in a control group with a limit, as none can be made here", file=sys.stderr)
            return
        self.addCleanup(group.rmdir)
        inside = f"echo $$ >{group}/cgroup.procs; exec {ETSTREAM} profile --json {self.folder}/out.json -- {sys.executable} -c 'block = bytearray(400 << 20)'"
        done = subprocess.run(["sh", "-c", inside], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, -signal.SIGKILL, done.stderr)
        self.assertRegex(
            done.stderr,
            r"signal 9 \(Killed\) ended the command; the kernel killed 1 process at the limit of the control group, 256\.0 MiB; "
            r"process \d+ had 2\d\d\.\d MiB of anonymous memory when it was seen last: .*bytearray",
        )
        self.assertIn(" resident, of 256.0 MiB that the control group may have; ", done.stderr)
        found = json.loads((self.folder / "out.json").read_text())
        self.assertEqual((found["cgroup_limit"], found["cgroup_kills"]), (256 * MIB, 1))

    def test_no_control_group_is_left_behind(self) -> None:
        group = memory_group(2 << 30)
        if group is None:
            print("*** SKIPPED: the end of a command's control group, as none can be made here", file=sys.stderr)
            return
        self.addCleanup(group.rmdir)
        for command in ("sh -c 'sleep 0.5 &'", "/no/such/program", "sh -c 'kill $PPID; exec sleep 9'", "sleep 0.6"):
            inside = f"echo $$ >{group}/cgroup.procs; exec {ETSTREAM} profile -- {command}"
            subprocess.run(["sh", "-c", inside], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)
            self.assertEqual([each for each in group.iterdir() if each.is_dir()], [], command)

    def test_reports_appear_together_or_not_at_all(self) -> None:
        reports = ["--json", self.folder / "out.json", "--html", self.folder / "no" / "out.html"]
        done = run("profile", *reports, "--", "true")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_no_output_replaces_the_command_or_a_file_that_it_is_given(self) -> None:
        script = self.folder / "cmd.sh"
        script.write_text(f"#!/bin/sh\ntouch {self.folder}/ran\n")
        script.chmod(0o755)
        (self.folder / "link").symlink_to("cmd.sh")
        before = script.read_bytes()
        places = {**os.environ, "PATH": f"/no/such:{self.folder}:{os.environ['PATH']}"}
        for option in ("--json", "--html"):
            for command in (["./cmd.sh"], ["cmd.sh"], ["sh", "cmd.sh"]):
                for output in ("cmd.sh", "link"):
                    with self.subTest(option=option, command=command, output=output):
                        done = run("profile", option, output, "--", *command, cwd=self.folder, env=places)
                        self.assertEqual(done.returncode, 1)
                        self.assertIn(f"the output '{output}' is the input '", done.stderr)
                        self.assertIn("cmd.sh'; give the output another name", done.stderr)
                        self.assertEqual(script.read_bytes(), before)
                        self.assertEqual(sorted(self.folder.iterdir()), [script, self.folder / "link"])
        self.assertEqual(run("profile", "--json", "/dev/null", "--", "test", "-e", "/dev/null").returncode, 0)

    def test_a_browser_shows_the_page(self) -> None:
        if find_browser() is None:
            print("*** SKIPPED: the page of a profile in a browser, as there is no chromium", file=sys.stderr)
            return
        page = self.folder / "out.html"
        done = run("profile", "--html", page, "--", PHASES, "nested")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotRegex(page.read_text(), "(src|href)=|https?://(?!www.w3.org/2000/svg)")
        with browser() as shown:
            for dark in (False, True):
                shown.open(page, dark=dark)
            self.assertEqual(shown.value("document.querySelector('tr.most td').textContent"), "\u00a0\u00a0inner <b> ")
            self.assertGreaterEqual(shown.value("document.querySelectorAll('rect').length"), 6)
            self.assertRegex(shown.value("document.querySelector('polygon').getAttribute('points')"), "^[0-9]")
            shown.value("document.querySelector('.band').focus()")
            self.assertEqual(shown.value("document.querySelector('tr.chosen td').textContent"), "outer")
            self.assertEqual(shown.errors, [])

    def test_no_figure_wraps_on_the_page(self) -> None:
        if find_browser() is None:
            print("*** SKIPPED: long names on the page of a profile, as there is no chromium", file=sys.stderr)
            return
        long = "/home/somebody/" + "a-long-folder/" * 12 + "unity_7_cxx.cxx.o"
        block = "block = bytearray(50 << 20); import time; time.sleep(0.1)"
        command = [ETSTREAM, "profile", "--phase", f"compile {long}", "--", sys.executable, "-c", block, long]
        self.assertEqual(run("profile", "--json", "a.json", "--", *command, cwd=self.folder).returncode, 0)
        page = self.folder / "out.html"
        done = run("profile", "--compare", "a.json", "--html", page, "--fail-above", "1G", "--", *command, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        with browser() as shown:
            for width in (1200, 390):
                shown.open(page, width=width)
                self.assertEqual(shown.value("document.querySelectorAll('section:not([hidden]) table').length"), 3)
                self.assertEqual(shown.wrapped_figures(), [])
                self.assertLessEqual(shown.value("document.documentElement.scrollWidth"), width)
                self.assertIn("limit 1", shown.value("document.querySelector('#curve').textContent"))
                self.assertEqual(shown.value("document.querySelector('td .line').title.length > 100"), True)
            self.assertEqual(shown.errors, [])


if __name__ == "__main__":
    unittest.main()
