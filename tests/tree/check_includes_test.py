# SPDX-License-Identifier: BSD-3-Clause
"""Shows that check_includes.py finds each kind of wrong include, in small trees that have one."""

import tempfile
import unittest
from pathlib import Path
from unittest import mock

from check_includes import EXCEPTIONS, MAY_INCLUDE, check_file, check_lists

TREE = {
    "include/etstream/sink.h": "",
    "src/io/sink.cpp": "",
    "src/io/transfer.h": "",
    "include/etstream/program.h": "",
    "src/pte/program.cpp": "",
    "src/pte/rewrite/editable_program.h": "",
}


class CheckIncludes(unittest.TestCase):
    def problems(self, file: str, line: str) -> str:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder).resolve()
            for path, content in {**TREE, file: line + "\n"}.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(content)
            return "\n".join(check_file(root, root / file))

    def test_a_folder_may_include_those_that_are_listed(self) -> None:
        self.assertEqual(self.problems("src/layout/file_plan.cpp", '#include "io/transfer.h"'), "")
        self.assertEqual(self.problems("src/layout/file_plan.cpp", '#include "etstream/sink.h"'), "")

    def test_a_folder_may_not_include_others(self) -> None:
        self.assertIn("may not include", self.problems("src/base/text.h", '#include "io/transfer.h"'))
        self.assertIn("may not include", self.problems("src/base/text.h", '#include "etstream/sink.h"'))

    def test_a_folder_inside_another_has_a_list_of_its_own(self) -> None:
        include = '#include "pte/rewrite/editable_program.h"'
        self.assertEqual(self.problems("src/weights/checkpoint.cpp", include), "")
        self.assertIn("may not include", self.problems("src/pte/graph.cpp", include))
        self.assertEqual(self.problems("src/pte/rewrite/a.cpp", '#include "etstream/program.h"'), "")
        self.assertIn("may not include", self.problems("src/heap/a.cpp", '#include "etstream/program.h"'))

    def test_an_exception_is_for_one_folder_and_header(self) -> None:
        with mock.patch.dict(EXCEPTIONS, {"io": "pte/rewrite/editable_program.h"}, clear=True):
            self.assertEqual(self.problems("src/io/a.cpp", '#include "pte/rewrite/editable_program.h"'), "")
            self.assertIn("may not include", self.problems("src/io/a.cpp", '#include "etstream/program.h"'))
            self.assertIn("may not include", self.problems("src/base/a.h", '#include "pte/rewrite/editable_program.h"'))

    def test_lists_say_what_is_so(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder).resolve()
            (root / "src/io").mkdir(parents=True)
            with (
                mock.patch.dict(MAY_INCLUDE, {"io": "base", "base": ""}, clear=True),
                mock.patch.dict(EXCEPTIONS, {"io": "layout/append.h"}, clear=True),
            ):
                problems = "\n".join(check_lists(root, []))
        self.assertIn("there is no src/base", problems)
        self.assertIn("io comes before base", problems)
        self.assertIn("src/io no longer includes layout/append.h", problems)

    def test_a_public_header_belongs_to_one_folder(self) -> None:
        self.assertIn("see HEADER_ONLY", self.problems("include/etstream/lonely.h", ""))

    def test_the_command_uses_public_headers(self) -> None:
        self.assertIn("not public", self.problems("src/cli/main.cpp", '#include "io/transfer.h"'))
        # The reports are compiled into the command; what they stand on is the library's, which does not export it.
        self.assertIn("not public", self.problems("src/cli/main.cpp", '#include "report/any_file.h"'))
        self.assertEqual("", self.problems("src/cli/main.cpp", '#include "report/reports.h"'))

    def test_what_runs_on_executorch_uses_public_headers(self) -> None:
        runner = "src/executorch/run.cpp"
        self.assertIn("not public", self.problems(runner, '#include "io/transfer.h"'))
        self.assertEqual(self.problems(runner, '#include "etstream/sink.h"'), "")
        self.assertEqual(self.problems(runner, '#include "etstream/executorch/run.h"'), "")

    def test_executorch_is_named_where_it_belongs(self) -> None:
        line = "#include <executorch/runtime/core/error.h>"
        for file in ("src/executorch/run.cpp", "include/etstream/executorch/run.h"):
            self.assertEqual(self.problems(file, line), "")
        for file in ("src/io/sink.cpp", "src/cli/main.cpp", "include/etstream/sink.h"):
            self.assertIn("belongs in src/executorch", self.problems(file, line))
        self.assertIn("may not include", self.problems("src/cli/main.cpp", '#include "etstream/executorch/run.h"'))

    def test_a_public_header_names_no_library(self) -> None:
        self.assertIn("a public header", self.problems("include/etstream/sink.h", "#include <zstd.h>"))
        self.assertIn("a public header", self.problems("include/etstream/sink.h", '#include "io/transfer.h"'))

    def test_operating_systems_are_called_in_files_named_after_them(self) -> None:
        for header in ("sys/stat.h", "mach/mach.h", "mach-o/dyld.h", "malloc/malloc.h"):
            self.assertIn("belongs in", self.problems("src/io/sink.cpp", f"#include <{header}>"))
            for system in ("posix", "linux", "apple"):
                self.assertEqual(self.problems(f"src/io/sink_{system}.cpp", f"#include <{header}>"), "")

    def test_a_header_with_a_source_for_each_system_belongs_to_their_folder(self) -> None:
        with mock.patch.dict(TREE, {"src/io/lock_linux.cpp": "", "src/io/lock_apple.cpp": ""}):
            self.assertEqual(self.problems("include/etstream/lock.h", '#include "etstream/sink.h"'), "")

    def test_a_new_folder_needs_a_place(self) -> None:
        self.assertIn("MAY_INCLUDE has no", self.problems("src/utils/a.h", ""))


if __name__ == "__main__":
    unittest.main()
