# SPDX-License-Identifier: BSD-3-Clause
"""Proves the byte tables of a specification, such as segmented_bundle.md, on a real file.

    python3 check_specification.py SPEC.md FILE

A byte table has the columns `| offset | size | field | meaning |` and belongs to the heading above it, which says the
structure's size: "### Header (64 bytes)". Its rows follow each other from 0 on. A meaning that begins with a literal in
backticks gives the field's only value. FILE is read by the tables alone. A bundle has hashes and parts; a packed file
has a stored piece, a coded one, and one in planes; an update has new bytes, the same ones, differences and sparse
planes, or, made from a checkpoint, new bytes and the same ones. Hashes are not computed.
"""

import mmap
import re
import sys
from pathlib import Path

HEADING = re.compile(r"#+ (.*?)(?: \((\d+) bytes\))?")
ROW = re.compile(r"\| (\d+) \| (4|8|16|\d+(?= \| reserved)) \| ([\w ]+) \| (?:`([^`]+)`)?.* \|")
COLUMNS = ["offset", "size", "field", "meaning"]
ZSTD = (0xFD2FB528).to_bytes(4, "little")
FRAME_START = 8  # the bytes of a skippable frame before those that its size counts


def read_tables(path: Path, problems: list[str]) -> dict:
    """Returns, by structure, its size, and the offset, size and literal of each field."""
    tables, heading, size, in_table = {}, "", "0", False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        cells = [cell.strip() for cell in line.strip("| ").split("|", 3)] if line.startswith("|") else []
        if match := HEADING.fullmatch(line):
            heading, size = match[1], match[2] or "0"
        if cells == COLUMNS:
            tables[heading] = (int(size), {})
        elif in_table and cells and not set(cells[0]) <= set("-:"):
            if row := ROW.fullmatch(line):
                tables[heading][1][row[3]] = (int(row[1]), int(row[2]), row[4])
            else:
                problems.append(f"{path}:{number}: expected an offset, a size of 4, 8 or 16, a field and a meaning")
        in_table = cells == COLUMNS or (in_table and bool(cells))
    for name, (told, fields) in tables.items():
        end = 0
        for field, (offset, length, _) in fields.items():
            problems += [f"{path}: {name}: {field} is at {offset}, expected {end}"] if offset != end else []
            end = offset + length
        problems += [f"{path}: {name}: rows take {end} bytes, expected {told}"] if end != told else []
    return tables


class Checker:
    """A reader of a file by the tables, which keeps the errors."""

    def __init__(self, tables: dict, file: mmap.mmap, problems: list[str]) -> None:
        self.tables, self.file, self.problems = tables, file, problems
        self.sizes = {name: size for name, (size, _) in tables.items()}

    def expect(self, right: bool, what: str) -> None:
        self.problems += [] if right else [f"FILE: expected {what}"]

    def read(self, name: str, at: int) -> dict:
        """Returns the fields of the structure at `at`; those of 16 bytes are hashes and stay bytes."""
        size, fields = self.tables[name]
        if at + size > len(self.file):
            raise ValueError(f"FILE: expected {name} at {at} inside its {len(self.file)} bytes")
        values = {}
        for field, (offset, length, literal) in fields.items():
            raw, where = self.file[at + offset : at + offset + length], f"{name}.{field} at {at + offset}"
            values[field] = raw if length == 16 else int.from_bytes(raw, "little")
            found = str(values[field]) if literal and literal.isdigit() else raw.decode("latin-1")
            self.expect(literal in (None, found), f"{where} to be {literal}, found {found!r}")
            reserved = field.startswith(("reserved", "unused"))
            self.expect(not (reserved and any(raw)), f"{where} to be zero")
            self.expect(reserved or length < 16 or any(raw), f"{where} to be a hash, found zeros")
        return values


class SegmentedBundle(Checker):
    def run(self) -> None:
        sizes = self.sizes
        start, header = self.read("Start", 0), self.read("Header", sizes["Start"])
        at, base = header["directory offset"], header["segment base offset"]
        directory = self.read("Directory header", at)
        segments_at = at + sizes["Directory header"]
        parts_at = segments_at + directory["segment count"] * sizes["Segment entry"]
        end = parts_at + directory["part count"] * sizes["Part entry"]
        self.expect(end == at + header["directory size"] == len(self.file), "a directory that ends the file")
        self.expect(at % 64 == 0, f"the directory at a multiple of 64, found {at}")
        self.expect(directory["flags"] == 1 and directory["part count"] > 0, "a file with hashes and parts")
        self.expect(start["root offset"] < header["metadata size"] <= base, "root, metadata's end, segments in order")
        segments, used, last = [], header["metadata size"], (0, 0)
        for place in range(segments_at, parts_at, sizes["Segment entry"]):
            segment = self.read("Segment entry", place)
            segments.append(segment["size"])
            begin = base + segment["offset"]
            self.expect(used <= begin <= at, f"the segment at {begin} between {used} and {at}")
            self.expect(not any(self.file[used:begin]), f"zeros before the segment at {begin}")
            self.expect(segment["size"] == segment["same size"], "a segment's size twice")
            used = begin + segment["size"]
        self.expect(used == base + header["segment data size"] <= at, f"segments that end at {used}, before {at}")
        self.expect(not any(self.file[used:at]), f"zeros before the directory at {at}")
        for place in range(parts_at, end, sizes["Part entry"]):
            part = self.read("Part entry", place)
            self.expect(last <= (part["segment"], part["offset"]), "parts by segment and offset")
            last = (part["segment"], part["offset"])
            room = segments[last[0]] if last[0] < len(segments) else 0
            self.expect(0 < part["size"] <= room - last[1], f"the part at {place} inside its segment")


class PackedFile(Checker):
    def run(self) -> None:
        header = self.read("File header", 0)
        at = header["header size"] + FRAME_START
        is_update = header["kind"] > 0
        base_size = self.read("Base", self.sizes["File header"])["size"] if is_update else 0
        is_derived = header["kind"] == 2
        at = self.read_recipe(at, base_size) if is_derived else at
        footer_at = len(self.file) - self.sizes["Footer"]
        footer = self.read("Footer", footer_at)
        table, entry = footer["table offset"], self.sizes["Table entry"]
        entries = table + self.sizes["Table header"]
        size, kinds = 0, set()
        for place in range(entries, entries + footer["piece count"] * entry, entry):
            self.expect(self.read("Table entry", place)["offset"] == at, f"the entry at {place} to be {at}")
            piece = self.read("Piece header", at)
            frames = at + FRAME_START + piece["header size"]
            if is_update:
                kinds |= self.read_runs(at + self.sizes["Piece header"], frames, piece, base_size)
            else:
                kinds.add("stored" if piece["coded size"] > piece["original size"] else "coded")
                kinds |= {"in planes"} if piece["element size"] > 1 else set()
            frame = ZSTD if piece["coded size"] else b""
            self.expect(self.file[frames : frames + len(frame)] == frame, f"a zstd frame at {frames}")
            size += piece["original size"]
            at = frames + piece["coded size"]
        self.expect(at == table, f"pieces up to the table at {table}, found {at}")
        self.expect(self.read("Table header", table)["table size"] == len(self.file) - entries, "the table's size")
        self.expect(entries + footer["piece count"] * entry == footer_at, "a footer after the entries")
        self.expect(size == footer["original size"], f"pieces of {footer['original size']} bytes, found {size}")
        all_kinds = {"new", "same", "differences", "sparse"} if is_update else {"stored", "coded", "in planes"}
        all_kinds = {"new", "same"} if is_derived else all_kinds
        self.expect(kinds == all_kinds, f"{sorted(all_kinds)}, found {sorted(kinds)}")

    def read_recipe(self, at: int, base_size: int) -> int:
        """Reads the recipe at `at`, and returns where it ends."""
        end = at + FRAME_START + self.read("Recipe header", at)["recipe size"]
        at += self.sizes["Recipe header"]

        def number() -> int:
            nonlocal at
            at += 4
            return int.from_bytes(self.file[at - 4 : at], "little")

        def skip_steps(count: int) -> None:
            nonlocal at
            for _ in range(count):
                kind = number()
                self.expect(kind <= 6, f"a known step before {at}, found {kind}")
                at += {0: 4, 1: 4, 2: 4, 3: 24, 4: 24, 5: 32, 6: 8}[kind]
                order = number() if kind == 1 else 0
                at += 4 * order
                for _ in range(number() if kind == 6 else 0):
                    self.expect(number() < tensors, f"a tensor of the recipe before {at}")
                    skip_steps(number())

        tensors = number()
        for _ in range(tensors):
            dimensions = self.read("Recipe tensor", at)["dimension count"]
            at += self.sizes["Recipe tensor"] + 4 * dimensions
            name = number()
            at += 4 * name
        for _ in range(number()):
            part = self.read("Recipe part", at)
            self.expect(part["tensor"] < tensors, f"a tensor of the recipe at {at}")
            base_size -= part["part size"]
            at += self.sizes["Recipe part"]
            skip_steps(part["step count"])
        self.expect(base_size == 0, f"parts of the base's size, found {base_size} bytes left")
        self.expect(at == end, f"a recipe up to {end}, found {at}")
        return end

    def read_runs(self, at: int, end: int, piece: dict, base_size: int) -> set[str]:
        """Returns the kinds of the runs of a piece of an update, from `at` to `end`."""
        kinds = {"sparse"} if self.read("Runs header", at)["sparse planes"] else set()
        size = content = 0
        for place in range(at + self.sizes["Runs header"], end, self.sizes["Run"]):
            run = self.read("Run", place)
            method = {0: "new", 8: "same"}.get(run["method"], "differences")
            kinds.add(method)
            size += run["run size"]
            content += 0 if method == "same" else run["run size"]
            fits = run["base offset"] + run["run size"] <= base_size
            self.expect(run["base offset"] == 0 if method == "new" else fits, f"a place of the run at {place}")
        self.expect(size == piece["original size"], f"runs of the piece's size before {end}, found {size}")
        self.expect((content == 0) == (piece["coded size"] == 0), f"coded bytes for {content} bytes before {end}")
        return kinds


CHECKERS = {"segmented_bundle": SegmentedBundle, "packed_file": PackedFile}


def main() -> int:
    problems: list[str] = []
    specification = Path(sys.argv[1])
    tables = read_tables(specification, problems)
    try:
        with open(sys.argv[2], "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            if not problems:
                CHECKERS[specification.stem](tables, content, problems).run()
    except (KeyError, ValueError) as error:
        problems.append(f"no table or field {error}" if isinstance(error, KeyError) else str(error))
    count = sum(len(fields) for _, fields in tables.values())
    print("\n".join(problems) or f"specification: {len(tables)} tables, {count} fields agree with {sys.argv[2]}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
