# SPDX-License-Identifier: BSD-3-Clause
"""Shows that check_program_names.py finds a name of the program schema where none belongs, and nothing else."""

import tempfile
import unittest
from pathlib import Path

from check_program_names import check_file, names_of_schema

SCHEMA = "table NamedData {\n  key:string;\n  segment_index:uint32;\n}\n"


class CheckProgramNames(unittest.TestCase):
    def problems(self, relative: str, content: str) -> str:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.cpp"
            path.write_text(content)
            return "\n".join(check_file(path, relative, names_of_schema(SCHEMA)))

    def test_tables_and_fields_are_found_with_their_lines(self) -> None:
        for name in ("NamedData", "key", "NamedData.segment_index"):
            self.assertIn(f'src/pte/a.cpp:2: names "{name}"', self.problems("src/pte/a.cpp", f'x;\nread("{name}");\n'))

    def test_other_words_and_comments_may_be_there(self) -> None:
        self.assertEqual(self.problems("src/pte/a.cpp", '/// "key"\nerror("a key");\n'), "")

    def test_reads_by_name_are_found_in_other_folders(self) -> None:
        self.assertIn("src/report/a.cpp:1: reads", self.problems("src/report/a.cpp", 'table.scalar<int>("x");\n'))
        self.assertEqual(self.problems("src/report/a.cpp", 'json["key"] = key;\n'), "")


if __name__ == "__main__":
    unittest.main()
