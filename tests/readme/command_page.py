# SPDX-License-Identifier: BSD-3-Clause
"""Proves that a page lists the options of the command as the command itself does.

    python3 command_page.py PAGE.md ETSTREAM_DOCUMENTATION [--renew]

A section of the page from `<!-- NAME -->` to `<!-- end -->` is what `etstream_documentation markdown` writes for the
subcommand NAME. --renew writes it into the page.
"""

import re
import subprocess
import sys
from pathlib import Path

SECTION = re.compile(r"^<!-- (etstream [\w ]+) -->\n.*?^<!-- end -->\n", re.MULTILINE | re.DOTALL)


def main() -> int:
    page, program = Path(sys.argv[1]), sys.argv[2]
    written = subprocess.run([program, "markdown"], capture_output=True, text=True, check=True).stdout
    sections = {match[1]: match[0] for match in SECTION.finditer(written)}
    text = page.read_text(encoding="utf-8")
    found = {match[1]: match[0] for match in SECTION.finditer(text)}
    problems = [f"{page}: no section {name!r}" for name in sections.keys() - found.keys()]
    problems += [f"{page}: the command has no {name!r}" for name in found.keys() - sections.keys()]
    if not problems and sys.argv[3:] == ["--renew"]:
        page.write_text(SECTION.sub(lambda match: sections[match[1]], text), encoding="utf-8")
        return 0
    problems += [
        f"{page}: section {name!r} is not what the command says; `ninja renew_command_page` renews it"
        for name in found
        if name in sections and found[name] != sections[name]
    ]
    print("\n".join(problems) or f"{page.name}: {len(found)} sections are what the command says")
    return 1 if problems or not sections else 0


if __name__ == "__main__":
    sys.exit(main())
