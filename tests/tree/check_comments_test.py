# SPDX-License-Identifier: BSD-3-Clause
"""Shows that check_comments.py finds comments that begin without a noun or a verb, and no others."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from check_comments import __file__ as script
from check_comments import check_file


class CheckComments(unittest.TestCase):
    def problems(self, file: str, content: str) -> str:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder).resolve()
            (root / file).write_text(content)
            problems = check_file(root, root / file)
            return "not checked" if problems is None else "\n".join(problems)

    def test_comments_without_a_head_are_found_with_their_lines(self) -> None:
        self.assertIn("a.cpp:2: Of...: begin with", self.problems("a.cpp", "int a;\n/// Of the file.\nint b;\n"))
        self.assertIn("a.h:1: Whether...: ", self.problems("a.h", "bool x;  // Whether it is there\n"))
        self.assertIn("a.fbs:2: What...: ", self.problems("a.fbs", "namespace a;\n/// What it is.\n"))
        self.assertIn("a.py:2: How...: ", self.problems("a.py", "x = 1\n# How it is done.\n"))
        self.assertIn("a.py:2: What...: ", self.problems("a.py", 'def f():\n    """What it gives."""\n'))
        self.assertIn("a.cmake:1: Which...: ", self.problems("a.cmake", "# Which one.\n"))
        self.assertIn("CMakeLists.txt:2: That...: ", self.problems("CMakeLists.txt", "\nset(a)  # That of b.\n"))
        self.assertIn("run:2: Has...: ", self.problems("run", "#!/usr/bin/env bash\n# Has it run.\n"))
        self.assertIn("run:2: Who...: ", self.problems("run", "#!/usr/bin/env bash\nls 'a b'  # Who asks.\n"))
        self.assertIn("run:2: Of...: ", self.problems("run", "#!/usr/bin/env python3\n# Of all.\n"))

    def test_the_head_of_a_file_comes_after_its_license(self) -> None:
        head = "// SPDX-License-Identifier: BSD-3-Clause\n"
        self.assertIn("a.h:3: What...: ", self.problems("a.h", head + "//\n// What it is.\n"))
        self.assertIn("a.h:2: What...: ", self.problems("a.h", head + "// What it is.\n"))

    def test_words_that_continue_something_may_be_any(self) -> None:
        self.assertEqual(self.problems("a.cpp", "/// The bytes.\n/// Of which some are zero.\nint a;\n"), "")
        self.assertEqual(self.problems("a.cpp", "int x = 0;  // of the file\nint y = 0;  // what it is\n"), "")
        self.assertEqual(self.problems("a.cpp", "int x;  // of the file.\n        // What follows is in it.\n"), "")
        self.assertEqual(self.problems("a.cpp", "/// Whatever comes, Hasher and Office are heads.\n"), "")

    def test_strings_are_no_comments(self) -> None:
        self.assertEqual(self.problems("a.cpp", 'f("// What", R"(\n// What\n)", \'"\', 1\'000);  // a\n'), "")
        self.assertEqual(self.problems("a.py", 'x = """\n# What\n"""\ny = "# What"\n'), "")
        self.assertEqual(self.problems("a.cmake", 'message("\n# What\n")\nset(a [[\n# What\n]])\n'), "")
        self.assertEqual(self.problems("run", "#!/usr/bin/env bash\necho '# What' \"# What\" a#What $#\n"), "")

    def test_other_files_are_not_checked(self) -> None:
        self.assertEqual(self.problems("a.md", "# What it is\n"), "not checked")
        self.assertEqual(self.problems("a", "# What it is\n"), "not checked")

    def test_a_tree_without_files_is_a_problem(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(subprocess.run([sys.executable, script, folder], capture_output=True).returncode, 1)
            (Path(folder) / "CMakeLists.txt").write_text("# A project.\n")
            self.assertEqual(subprocess.run([sys.executable, script, folder], capture_output=True).returncode, 0)


if __name__ == "__main__":
    unittest.main()
