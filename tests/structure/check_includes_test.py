# SPDX-License-Identifier: BSD-3-Clause
"""Shows that check_includes.py finds each kind of wrong include, in small trees that have one."""

import tempfile
import unittest
from pathlib import Path

from check_includes import check_file

TREE = {
    "include/etstream/sink.h": "",
    "src/io/sink.cpp": "",
    "src/io/transfer.h": "",
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
        self.assertEqual(self.problems("src/layout/layout.cpp", '#include "io/transfer.h"'), "")
        self.assertEqual(self.problems("src/layout/layout.cpp", '#include "etstream/sink.h"'), "")

    def test_a_folder_may_not_include_one_after_it(self) -> None:
        self.assertIn("may not include", self.problems("src/base/text.h", '#include "io/transfer.h"'))
        self.assertIn("may not include", self.problems("src/base/text.h", '#include "etstream/sink.h"'))

    def test_the_command_uses_public_headers(self) -> None:
        self.assertIn("not public", self.problems("src/cli/main.cpp", '#include "io/transfer.h"'))

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

    def test_the_operating_system_is_called_in_posix_files(self) -> None:
        self.assertIn("belongs in", self.problems("src/io/sink.cpp", "#include <sys/stat.h>"))
        self.assertEqual(self.problems("src/io/sink_posix.cpp", "#include <sys/stat.h>"), "")

    def test_a_new_folder_needs_a_place(self) -> None:
        self.assertIn("is not one of", self.problems("src/utils/a.h", ""))


if __name__ == "__main__":
    unittest.main()
