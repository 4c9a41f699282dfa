# SPDX-License-Identifier: BSD-3-Clause
"""Shows how break_lines breaks a line, and that the breaks of equal_breaks.txt are of lines that exist."""

import functools
import unittest
from itertools import chain
from pathlib import Path

from line_breaks import Break, breaks_of, is_listed, listed_breaks

HERE = Path(__file__).resolve().parent


def broken(text: str) -> list[str]:
    """Returns the broken forms of the first line of a text."""
    return [b.after for line in breaks_of("a.cpp", text) for b in line if b.line == 1]


class LineBreaks(unittest.TestCase):
    def test_bounds_and_comparisons(self) -> None:
        self.assertEqual(broken("x = a < b;"), ["x = a <= b;", "x = a > b;"])
        self.assertEqual(broken("x = a >= b;"), ["x = a > b;"])
        self.assertEqual(broken("x = a == b;"), ["x = a != b;"])
        self.assertEqual(broken("x = a && b;"), ["x = a || b;"])
        self.assertEqual(broken("x = std::min(a, b);"), ["x = std::max(a, b);"])

    def test_ones(self) -> None:
        self.assertEqual(broken("x = a + 1;"), ["x = a;", "x = a + 2;", "x = a + 0;"])
        self.assertEqual(broken("x = a[0];"), ["x = a[1];"])
        self.assertEqual(broken("x = 0x1f;"), ["x = 32;", "x = 30;"])
        self.assertEqual(broken("for (int i = 0;;) f(i);"), ["for (int i = 1;;) f(i);"])

    def test_order_and_alignment(self) -> None:
        self.assertEqual(broken("x = f(a, b.c);"), ["x = f(b.c, a);"])
        self.assertEqual(broken("x = f(file_alignment);"), ["x = f(2 * file_alignment);"])
        self.assertEqual(broken("std::uint64_t alignment;"), [])

    def test_conditions(self) -> None:
        self.assertEqual(broken("if (a) x();"), ["if (!(a)) x();"])
        self.assertEqual(broken("if (a) return {};"), ["if (!(a)) return {};", "if (false) return {};"])
        self.assertEqual(broken("if (a) {\n  return b;\n}"), ["if (!(a)) {", "if (false) {"])
        self.assertEqual(broken("if (const auto x = f(); !x) y();"), ["if (const auto x = f(); !(!x)) y();"])
        self.assertEqual(broken("if (const auto x = f()) y();"), [])

    def test_checks(self) -> None:
        self.assertEqual(broken("  ETSTREAM_TRY(check(a));"), ["  ;"])

    def test_words_and_declarations_stay(self) -> None:
        for line in ('f("a < 1");', "// a < 1", "#if A < 1", "std::vector<int> a;", "x = 12'000;", "int a = 0;"):
            self.assertEqual(broken(line), [], line)

    def test_lines_are_counted(self) -> None:
        [[found]] = breaks_of("a.cpp", 'f(R"(\n1\n)");\n\n/* 1\n */ x = a != b;\n')
        self.assertEqual(str(found), "a.cpp:6: */ x = a != b;  ->  */ x = a == b;")

    def test_a_list_has_single_breaks_and_all_of_a_line(self) -> None:
        [[more, fewer]] = breaks_of("a.cpp", "  f(2);\n")
        self.assertEqual(more.listed(), "a.cpp\nf(2);\nf(3);")
        self.assertTrue(is_listed(more, [["b.cpp", "f(2);", "why"], ["a.cpp", "f(2);", "f(3);", "why"]]))
        self.assertFalse(is_listed(fewer, [["a.cpp", "f(2);", "f(3);", "why"]]))
        self.assertTrue(is_listed(fewer, [["a.cpp", "f(2);", "f(3);", "f(1);", "why"]]))
        self.assertTrue(is_listed(fewer, [["a.cpp", "f(2);", "why"]]))

    def test_equal_breaks_are_of_lines_that_there_are(self) -> None:
        @functools.cache
        def breaks_in(file: str) -> list[Break]:
            return list(chain(*breaks_of(file, (HERE.parents[1] / file).read_text(encoding="utf-8"))))

        for block in listed_breaks(HERE / "equal_breaks.txt"):
            found = {b.after.strip() for b in breaks_in(block[0]) if is_listed(b, [block])}
            self.assertTrue(found and found >= set(block[2:-1]), block)
            self.assertGreater(len(block[-1]), 20)


if __name__ == "__main__":
    unittest.main()
