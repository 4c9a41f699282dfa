# SPDX-License-Identifier: BSD-3-Clause
"""Proves that the pages of the command list its options as the command itself does, and that the page beside their
folder leads to each subcommand.

    python3 command_pages.py FOLDER ETSTREAM_DOCUMENTATION [--renew]

A section of a page from `<!-- NAME -->` to `<!-- end -->` is what `etstream_documentation markdown` writes for the
subcommand NAME. --renew writes it into the page. FOLDER.md is the index. A page has at most 350 lines.
"""

import re
import subprocess
import sys
from pathlib import Path

SECTION = re.compile(r"^<!-- (etstream [\w ]+) -->\n.*?^<!-- end -->\n", re.MULTILINE | re.DOTALL)
MOST_LINES = 350


def main() -> int:
    folder, program = Path(sys.argv[1]), sys.argv[2]
    written = subprocess.run([program, "markdown"], capture_output=True, text=True, check=True).stdout
    sections = {match[1]: match[0] for match in SECTION.finditer(written)}
    index = folder.with_suffix(".md").read_text(encoding="utf-8")
    pages = {page: page.read_text(encoding="utf-8") for page in sorted(folder.glob("*.md"))}
    found = [(page, match[1], match[0]) for page, text in pages.items() for match in SECTION.finditer(text)]
    names = [name for _, name, _ in found]
    problems = [f"{folder}: {names.count(name)} sections {name!r}" for name in sections if names.count(name) != 1]
    problems += [f"{page}: the command has no {name!r}" for page, name, _ in found if name not in sections]
    for page, name, _ in found:
        link = f"{folder.name}/{page.name}#{name.replace(' ', '-')}"
        if f"({link})" not in index and name != "etstream common options":
            problems.append(f"{folder}.md: no link to {link}")
    problems += [f"{page}: over {MOST_LINES} lines" for page, text in pages.items() if text.count("\n") > MOST_LINES]
    if not problems and sys.argv[3:] == ["--renew"]:
        for page, text in pages.items():
            page.write_text(SECTION.sub(lambda match: sections[match[1]], text), encoding="utf-8")
        return 0
    problems += [
        f"{page}: section {name!r} is not what the command says; `ninja renew_command_page` renews it"
        for page, name, text in found
        if name in sections and text != sections[name]
    ]
    print("\n".join(problems) or f"{folder}: {len(found)} sections are what the command says")
    return 1 if problems or not sections else 0


if __name__ == "__main__":
    sys.exit(main())
