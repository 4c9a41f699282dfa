# SPDX-License-Identifier: BSD-3-Clause
"""Shows that check_includes.py finds each kind of wrong include, in small trees that have one."""

import tempfile
import unittest
from pathlib import Path
from unittest import mock

from check_includes import FOLDERS, OUTSIDE, check_components, check_file, check_lists

TREE = {
    "include/etstream/sink.h": "",
    "src/core/io/sink.cpp": "",
    "src/core/io/transfer.h": "",
    "include/etstream/program.h": "",
    "src/formats/pte/program.cpp": "",
    "src/formats/pte/rewrite/editable_program.h": "",
}


class CheckIncludes(unittest.TestCase):
    def problems(self, file: str, line: str) -> str:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder).resolve()
            for path, content in {**TREE, file: line + "\n"}.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(content)
            return "\n".join(check_file(root, root / file))

    def test_a_folder_may_include_those_before_it(self) -> None:
        self.assertEqual(self.problems("src/core/layout/file_plan.cpp", '#include "core/io/transfer.h"'), "")
        self.assertEqual(self.problems("src/core/layout/file_plan.cpp", '#include "etstream/sink.h"'), "")

    def test_a_folder_may_not_include_others(self) -> None:
        self.assertIn("may not include", self.problems("src/core/base/text.h", '#include "core/io/transfer.h"'))
        self.assertIn("may not include", self.problems("src/core/base/text.h", '#include "etstream/sink.h"'))

    def test_a_folder_inside_another_has_a_place_of_its_own(self) -> None:
        include = '#include "formats/pte/rewrite/editable_program.h"'
        self.assertEqual(self.problems("src/formats/checkpoint/checkpoint.cpp", include), "")
        self.assertIn("may not include", self.problems("src/formats/pte/graph.cpp", include))
        self.assertEqual(self.problems("src/formats/pte/rewrite/a.cpp", '#include "etstream/program.h"'), "")
        self.assertIn("may not include", self.problems("src/formats/ptd/a.cpp", '#include "etstream/program.h"'))

    def test_a_component_includes_those_that_it_needs(self) -> None:
        self.assertEqual(self.problems("src/files/a.cpp", '#include "memory/process/command.h"'), "")
        self.assertIn("may not include", self.problems("src/files/a.cpp", '#include "memory/heap/heap_posix.h"'))
        self.assertIn("may not include", self.problems("src/memory/heap/a.cpp", '#include "runtime_checks/call_verify.h"'))

    def test_components_have_their_own_folders_and_headers(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder).resolve()
            for file in ("src/core/io/sink.cpp", "src/files/verify.cpp", "include/etstream/verify.h", "include/etstream/sink.h"):
                (root / file).parent.mkdir(parents=True, exist_ok=True)
                (root / file).touch()
            (root / "src/CMakeLists.txt").write_text(
                "etstream_component(etstream FOLDERS core files)\n"
                "etstream_component(etstream-tools HEADERS none.h\n  FOLDERS files SOURCES ${more})\n"
            )
            wrong = ("files is no part of etstream", "verify.h is a header of etstream-tools", "there is no none.h")
            self.assertEqual(check_components(root), [f"src/CMakeLists.txt: {problem}" for problem in wrong])

    def test_lists_say_what_is_so(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder).resolve()
            source = root / "src/cli/a.cpp"
            source.parent.mkdir(parents=True)
            source.write_text('#include "core/base/text.h"\n')
            with mock.patch.dict(OUTSIDE, {"cli": "core/base/* core/io/sink.h"}, clear=True):
                problems = check_lists(root, [source])
        self.assertIn(f"FOLDERS: there is no src/{FOLDERS[0]}", problems)
        self.assertIn("HEADERS: there is no sink.h", problems)
        self.assertIn("OUTSIDE: src/cli includes no core/io/sink.h", problems)
        self.assertNotIn("OUTSIDE: src/cli includes no core/base/*", problems)

    def test_a_public_header_has_a_folder(self) -> None:
        self.assertIn("HEADERS gives it no folder", self.problems("include/etstream/lonely.h", ""))

    def test_the_command_uses_public_headers(self) -> None:
        self.assertIn("not public", self.problems("src/cli/main.cpp", '#include "core/io/transfer.h"'))
        # The reports are compiled into the command; the library's code that they need is not exported.
        self.assertIn("not public", self.problems("src/cli/main.cpp", '#include "files/pieces.h"'))
        self.assertEqual("", self.problems("src/cli/main.cpp", '#include "present/reports.h"'))

    def test_what_runs_on_executorch_uses_public_headers(self) -> None:
        runner = "src/executorch/run.cpp"
        self.assertIn("not public", self.problems(runner, '#include "core/io/transfer.h"'))
        self.assertEqual(self.problems(runner, '#include "etstream/sink.h"'), "")
        self.assertEqual(self.problems(runner, '#include "etstream/executorch/run.h"'), "")

    def test_executorch_is_named_where_it_belongs(self) -> None:
        line = "#include <executorch/runtime/core/error.h>"
        for file in ("src/executorch/run.cpp", "include/etstream/executorch/run.h"):
            self.assertEqual(self.problems(file, line), "")
        for file in ("src/core/io/sink.cpp", "src/cli/main.cpp", "include/etstream/sink.h"):
            self.assertIn("belongs in src/executorch", self.problems(file, line))
        self.assertIn("may not include", self.problems("src/cli/main.cpp", '#include "etstream/executorch/run.h"'))

    def test_a_public_header_names_no_library(self) -> None:
        self.assertIn("a public header", self.problems("include/etstream/sink.h", "#include <zstd.h>"))
        self.assertIn("a public header", self.problems("include/etstream/sink.h", '#include "core/io/transfer.h"'))

    def test_operating_systems_are_called_in_files_named_after_them(self) -> None:
        for header in ("sys/stat.h", "mach/mach.h", "mach-o/dyld.h", "malloc/malloc.h"):
            self.assertIn("belongs in", self.problems("src/core/io/sink.cpp", f"#include <{header}>"))
            for system in ("posix", "linux", "apple"):
                self.assertEqual(self.problems(f"src/core/io/sink_{system}.cpp", f"#include <{header}>"), "")

    def test_no_map_hashes(self) -> None:
        self.assertIn("take one that sorts", self.problems("src/core/io/sink.cpp", "std::unordered_map<int, int> m;"))

    def test_a_new_folder_needs_a_place(self) -> None:
        self.assertIn("FOLDERS has no", self.problems("src/utils/a.h", ""))


if __name__ == "__main__":
    unittest.main()
