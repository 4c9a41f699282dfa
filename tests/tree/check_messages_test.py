# SPDX-License-Identifier: BSD-3-Clause
"""Shows that check_messages.py finds an option of the command in a message, and nothing else."""

import tempfile
import unittest
from pathlib import Path

from check_messages import check_file


class CheckMessages(unittest.TestCase):
    def problems(self, file: str, content: str) -> str:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder).resolve()
            (root / file).write_text(content)
            return "\n".join(check_file(root, root / file))

    def test_an_option_in_a_message_is_found_with_its_line(self) -> None:
        in_cpp = self.problems("a.cpp", 'x;\nreturn "; --opaque does";\n')
        self.assertIn("a.cpp:2: names the command's --opaque", in_cpp)
        in_python = self.problems("a.py", 'x = 1\nraise E(f"{x}: --no-dedup")\n')
        self.assertIn("a.py:2: names the command's --no-dedup", in_python)

    def test_comments_and_documentation_may_have_them(self) -> None:
        self.assertEqual(self.problems("a.cpp", '/// As "ptd --opaque".\nint x = y--;\n'), "")
        self.assertEqual(self.problems("a.py", '"""As ptd --opaque."""\ndef f():\n    """--json"""\n'), "")

    def test_flatcs_are_its_own(self) -> None:
        self.assertEqual(self.problems("a.cpp", 'doc("as flatc --binary gives it");'), "")


if __name__ == "__main__":
    unittest.main()
