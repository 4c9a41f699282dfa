# SPDX-License-Identifier: BSD-3-Clause
"""Shows that check_program_names.py finds a name of the program schema where none belongs, and nothing else."""

import tempfile
import unittest
from pathlib import Path

from check_program_names import BOUND, check_file, names_of_schema

SCHEMA = "table NamedData {\n  key:string;\n  segment_index:uint32;\n}\n"


class CheckProgramNames(unittest.TestCase):
    def problems(self, relative: str, content: str) -> str:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.cpp"
            path.write_text(content)
            names = {**dict.fromkeys(BOUND, set()), "program.fbs": names_of_schema(SCHEMA)}
            names["xnnpack_graph.fbs"] = names_of_schema("table XNNGraph {\n  xnodes:[XNode];\n}\n")
            return "\n".join(check_file(path, relative, names))

    def test_tables_and_fields_are_found_with_their_lines(self) -> None:
        for name in ("NamedData", "key", "NamedData.segment_index"):
            self.assertIn(f'src/formats/pte/a.cpp:2: names "{name}"', self.problems("src/formats/pte/a.cpp", f'x;\nread("{name}");\n'))

    def test_other_words_and_comments_may_be_there(self) -> None:
        self.assertEqual(self.problems("src/formats/pte/a.cpp", '/// "key"\nerror("a key");\n'), "")

    def test_reads_by_name_are_found_in_other_folders(self) -> None:
        self.assertIn("src/files/a.cpp:1: reads", self.problems("src/files/a.cpp", 'table.scalar<int>("x");\n'))
        self.assertIn("src/formats/pte/a.cpp:1: reads", self.problems("src/formats/pte/a.cpp", 'root.tables("xnodes");\n'))
        self.assertEqual(self.problems("src/files/a.cpp", 'json["key"] = key;\nstring("the key of a weight");\n'), "")

    def test_names_of_other_schemas_are_found_where_their_files_are_read(self) -> None:
        self.assertIn('names "xnodes"', self.problems("src/runtime_checks/xnnpack_verify.cpp", 'error("xnodes");\n'))
        self.assertEqual(self.problems("src/formats/pte/a.cpp", 'error("xnodes");\n'), "")
        self.assertEqual(self.problems("src/formats/pte/backends/xnnpack_fields.h", 'field("xnodes");\n'), "")


if __name__ == "__main__":
    unittest.main()
