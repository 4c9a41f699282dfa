# SPDX-License-Identifier: BSD-3-Clause
"""Shows that check_glossary.py finds names that do not exist, words that are explained twice, and nothing else."""

import unittest

from check_glossary import problems_of

CODE = "struct FilePlan { Kind kind; };\nvoid plan();\n"


class CheckGlossary(unittest.TestCase):
    def test_names_that_exist(self) -> None:
        self.assertEqual(problems_of("- **plan**: `FilePlan`, by `plan()`; `FilePlan::Kind`, a `.pte` file", CODE), [])

    def test_a_name_that_does_not(self) -> None:
        self.assertIn("glossary.md:2: ProgramPlan", "".join(problems_of("\n- **plan**: `ProgramPlan`", CODE)))

    def test_a_member_that_does_not(self) -> None:
        self.assertIn("FilePlan::size", "".join(problems_of("`FilePlan::size`", CODE)))

    def test_a_word_that_is_explained_twice(self) -> None:
        self.assertIn("glossary.md:2: 'Plan'", "".join(problems_of("- **plan**: a\n- **Plan**: b", CODE)))


if __name__ == "__main__":
    unittest.main()
