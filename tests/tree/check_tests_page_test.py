# SPDX-License-Identifier: BSD-3-Clause
"""Shows that check_tests_page.py finds a source that no test covers, rows that are wrong, and nothing else."""

import tempfile
import unittest
from pathlib import Path

from check_tests_page import check

FILES = (
    "src/core/io/sink.cpp",
    "src/core/io/calls_linux.cpp",
    "src/core/io/calls_apple.cpp",
    "src/cli/main.cpp",
    "tests/cpp/core/io/sink_test.cpp",
    "tests/fault/run",
)
WHOLE = "| `cli/` | `tests/fault` |\n| `python/` | `tests/fault` |\n| `executorch/` | `tests/fault` |\n"
CALLS = "| `core/io/`: `calls` | `core/io/sink_test.cpp`; `tests/fault` |\n"


class CheckTestsPage(unittest.TestCase):
    def problems(self, rows: str, *more: str) -> str:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for file in (*FILES, *more):
                (root / file).parent.mkdir(parents=True, exist_ok=True)
                (root / file).touch()
            (root / "tests/README.md").write_text("| sources | where they are tested |\n|---|---|\n" + rows)
            return "\n".join(check(root))

    def test_a_test_of_its_own_and_a_row_cover_a_source(self) -> None:
        self.assertEqual(self.problems(WHOLE + CALLS), "")
        self.assertEqual(self.problems(WHOLE, "tests/cpp/core/io/calls_test.cpp"), "")

    def test_a_source_that_nothing_covers_is_found_once(self) -> None:
        found = "src/core/io/calls: neither tests/cpp/core/io/calls_test.cpp nor a row of tests/README.md tests it"
        self.assertEqual(self.problems(WHOLE), found)
        self.assertIn(found, self.problems(WHOLE + CALLS.replace("core/io/`:", "core/`:")))

    def test_a_row_names_sources_that_need_it(self) -> None:
        found = self.problems(WHOLE + CALLS.replace("`calls`", "`calls`, `gone`, `sink`"))
        self.assertIn("no source core/io/gone", found)
        self.assertIn("core/io/sink has a test of its own", found)
        self.assertIn("core/io/calls has a test", self.problems(WHOLE + CALLS, "tests/cpp/core/io/calls_test.cpp"))
        self.assertIn("core/io/calls stands in two rows", self.problems(WHOLE + CALLS + CALLS))

    def test_a_row_names_tests_that_are_there(self) -> None:
        self.assertIn("there is no tests/gone", self.problems(WHOLE + CALLS.replace("tests/fault", "tests/gone")))
        self.assertIn("there is no core/io/gone", self.problems(WHOLE + CALLS.replace("/sink_test.cpp", "/gone")))
        self.assertIn("names no test", self.problems(WHOLE + "| `core/io/`: `calls` | by hand |\n"))

    def test_only_some_folders_stand_whole(self) -> None:
        self.assertIn("core/io/ names no sources", self.problems(WHOLE + "| `core/io/` | `tests/fault` |\n"))
        self.assertIn("no row for cli/", self.problems(WHOLE.partition("\n")[2] + CALLS))


if __name__ == "__main__":
    unittest.main()
