# SPDX-License-Identifier: BSD-3-Clause
"""Tests the page of `etstream inspect --html`: its data, and its appearance in a browser.

    ETSTREAM=PATH EXAMPLES=FOLDER GOLDEN=FOLDER python3 inspect_page_test.py
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from browser import Page, browser, find_browser

ETSTREAM = os.environ["ETSTREAM"]
EXAMPLES = Path(os.environ["EXAMPLES"])
GOLDEN = Path(os.environ["GOLDEN"])
TENSORS = 100_000
MOST_SECONDS = 30  # the time to open the page of so many tensors, on a busy machine
NAMES = ["</script><script>document.title='mine'</script>", "<img src=x onerror=document.title='mine'>", 'a"b\\c\u2028\u202e']


def run(*words: str | Path, code: int = 0) -> str:
    done = subprocess.run([ETSTREAM, *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def write_safetensors(file: Path, tensors: Iterable[tuple[str, str, bytes]]) -> None:
    """Writes tensors of one dimension, each with its name, its type and its bytes."""
    header, data, at = {}, [], 0
    for name, dtype, content in tensors:
        shape = [len(content) // {"F32": 4, "BF16": 2, "U8": 1}[dtype]]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(content)]}
        data.append(content)
        at += len(content)
    text = json.dumps(header).encode()
    with file.open("wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        out.writelines(data)


def normal_bfloat16(count: int) -> bytes:
    """Returns numbers like weights: the upper halves of floats about 0."""
    random.seed(0)
    floats = struct.pack(f"<{count}f", *(random.gauss(0, 0.02) for _ in range(count)))
    return b"".join(floats[i + 2 : i + 4] for i in range(0, len(floats), 4))


def data_of(page: Path) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


def write_files(folder: Path) -> list[Path]:
    """Writes a file of each format."""
    names = ["model.pte", "delegated.pte", "model.bpte", "segmented.bpte", "weights.ptd", "weights.safetensors",
             "model.gguf", "model.ptn", "model.fat"]  # fmt: skip
    files = {name: folder / name for name in names}
    shutil.copy(EXAMPLES / "model.pte", files["model.pte"])
    shutil.copy(GOLDEN / "delegated_program" / "program.pte", files["delegated.pte"])
    shutil.copy(GOLDEN / "gguf" / "expected.gguf", files["model.gguf"])
    shutil.copy(GOLDEN / "native_package" / "expected.ptn", files["model.ptn"])
    run("bundle", files["model.pte"], "--cases", EXAMPLES / "cases.json", "-o", files["model.bpte"])
    run("convert", files["model.bpte"], "--to", "segmented", "-o", files["segmented.bpte"])
    shutil.copy(GOLDEN / "every_dtype" / "tensors.safetensors", files["weights.safetensors"])
    run("ptd", files["model.pte"], "-o", files["weights.ptd"])
    payloads = [f"{name}={file}" for name, file in (("one", files["model.pte"]), ("two", files["delegated.pte"]))]
    run("fat", *payloads, f"three={files['model.bpte']}", "-o", files["model.fat"])
    return list(files.values())


class OfFiles(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def page_of(self, file: Path) -> Path:
        page = file.with_name(file.name + ".html")
        self.assertEqual(run("inspect", file, "--html", page), "")
        return page


class Data(OfFiles):
    def test_what_has_nothing_in_it_is_the_whole_file_of_every_format(self) -> None:
        for file in write_files(self.folder):
            data = data_of(self.page_of(file))
            contents = data["contents"]
            parents = {each[1] for each in contents[1:]}
            at = 0
            for i, each in enumerate(contents):
                if i in parents:
                    continue
                self.assertEqual(each[2], at, (file.name, each))
                at += each[3]
            self.assertEqual(at, file.stat().st_size, file.name)
            self.assertGreater(len(contents), 3, file.name)
            self.assertEqual(data["findings"]["errors"], [], file.name)

    def test_equal_payloads_are_shown_with_what_they_waste(self) -> None:
        file = self.folder / "twice.safetensors"
        write_safetensors(file, [("a", "F32", b"abcd" * 40000), ("b", "F32", b"efgh" * 40000), ("c", "F32", b"abcd" * 40000)])
        data = data_of(self.page_of(file))
        report = json.loads(run("inspect", file, "--duplicates", "--json"))
        self.assertEqual([group["wasted"] for group in data["duplicates"]], [160000])
        self.assertEqual([group["wasted"] for group in report["duplicates"]], [160000])
        names = [data["contents"][i][4] for i in data["duplicates"][0]["contents"]]
        self.assertEqual(names, ["named/a", "named/c"])

    def test_what_lies_in_a_payload_that_is_there_twice_is_counted_once(self) -> None:
        file = self.folder / "two.fat"
        run("fat", f"a={EXAMPLES / 'model.pte'}", f"b={EXAMPLES / 'model.pte'}", "--no-dedup", "-o", file)
        report = json.loads(run("inspect", file, "--duplicates", "--json"))
        self.assertEqual([group["size"] for group in report["duplicates"]], [(EXAMPLES / "model.pte").stat().st_size])

    def test_the_estimate_is_what_a_coder_comes_to(self) -> None:
        """Compares with zlib with Huffman codes alone, on the upper bytes of all elements and on the lower ones."""
        file = self.folder / "weights.safetensors"
        weights, noise = normal_bfloat16(1 << 20), random.Random(1).randbytes(1 << 20)
        write_safetensors(file, [("noise", "U8", noise), ("weights", "BF16", weights)])
        coded = data_of(self.page_of(file))["coded"]
        sizes = {data_of(self.page_of(file))["contents"][i][4]: size for i, size in coded["contents"]}
        made = 0
        for plane in (weights[::2], weights[1::2]):
            coder = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zlib.Z_HUFFMAN_ONLY)
            made += len(coder.compress(plane) + coder.flush())
        self.assertAlmostEqual(sizes["named/weights"] / made, 1, delta=0.03)
        self.assertGreaterEqual(sizes["named/noise"], len(noise) * 0.995)
        self.assertLess(coded["bytes_read"], 1 << 20)

    def test_no_page_appears_of_a_damaged_file_or_where_it_cannot_be(self) -> None:
        whole = EXAMPLES / "model.pte"
        cut = self.folder / "cut.pte"
        cut.write_bytes(whole.read_bytes()[:3000])
        self.assertIn("cut.pte", run("inspect", cut, "--html", self.folder / "out.html", code=1))
        run("inspect", whole, "--html", self.folder / "no" / "out.html", code=1)
        run("inspect", whole, "--html", self.folder / "out.html", "--json", code=2)
        self.assertEqual(list(self.folder.iterdir()), [cut])


@unittest.skipIf(find_browser() is None, "there is no chromium")
class InBrowser(OfFiles):
    def tiles_add_up(self, page: Page, size: int, name: str) -> None:
        """Checks that the tiles of the outermost level add up, in bytes and in pixels."""
        found = json.loads(page.value(
            "JSON.stringify([map.clientWidth * map.clientHeight, [...map.children].map(tile => "
            "[+tile.dataset.size, tile.offsetWidth && parseFloat(tile.style.width) * parseFloat(tile.style.height)])])"))  # fmt: skip
        room, tiles = found
        self.assertEqual(sum(each for each, _ in tiles), size, name)
        self.assertAlmostEqual(sum(pixels for _, pixels in tiles), room, delta=room / 1000, msg=name)
        for each, pixels in tiles:
            self.assertAlmostEqual(pixels, room * each / size, delta=2 + room / 10000, msg=name)

    def test_every_format_is_shown_to_scale(self) -> None:
        with browser() as page:
            for file in write_files(self.folder):
                shown = self.page_of(file)
                self.assertNotRegex(shown.read_text(), "(src|href)=|https?://")
                page.open(shown)
                self.tiles_add_up(page, file.stat().st_size, file.name)
                self.assertEqual(page.value("document.querySelector('h1').textContent"), file.name)
            self.assertEqual(page.errors, [])

    def test_names_stay_names(self) -> None:
        file = self.folder / "names.safetensors"
        write_safetensors(file, [(name, "F32", os.urandom(4096)) for name in NAMES])
        with browser() as page:
            page.open(self.page_of(file))
            self.assertEqual(page.value("document.title"), "names.safetensors \u2013 etstream inspect")
            shown = page.value("[...document.querySelectorAll('#all td:first-child')].map(cell => cell.textContent)")
            paths = {f"named/{name}".replace("\u2028", "%E2%80%A8").replace("\u202e", "%E2%80%AE") for name in NAMES}
            self.assertLessEqual(paths, set(shown))
            self.assertEqual(page.value("document.images.length"), 0)
            self.assertEqual(page.errors, [])

    def test_tiles_have_the_names_that_keys_stand_for(self) -> None:
        file, names = self.folder / "hashes.safetensors", self.folder / "names.json"
        stands_for = {f"{i:064x}": f"layers.{i // 3}.{('up', 'down', 'norm')[i % 3]}" for i in range(12)}
        write_safetensors(file, ((key, "F32", os.urandom(40000)) for key in stands_for))
        names.write_text(json.dumps(stands_for))
        run("inspect", file, "--names", names, "--html", self.folder / "page.html")
        with browser() as page:
            page.open(self.folder / "page.html")
            self.assertEqual(page.value("map.firstElementChild.ariaLabel.split(',')[0]"), "layers")
            page.value("map.firstElementChild.focus()")
            page.press("Enter", "Enter", "Tab")
            self.assertRegex(page.value("about.textContent"), r"^layers\.\d\.(up|down|norm) .* named/0{62}")
            shown = page.value("[...document.querySelectorAll('#all td:first-child')].map(cell => cell.textContent)")
            self.assertLessEqual(set(stands_for.values()), set(shown))
            self.assertEqual(page.errors, [])

    def test_keys_move_go_in_and_out(self) -> None:
        file = self.folder / "layers.safetensors"
        layers = [(f"layers.{i}.{part}", "F32", os.urandom(40000)) for i in range(4) for part in ("up", "down", "norm")]
        write_safetensors(file, [*layers, ("embedding", "F32", os.urandom(400000))])
        path = "[...document.querySelectorAll('#path button')].map(step => step.textContent)"
        active = "document.activeElement.ariaLabel.split(',')[0]"
        with browser() as page:
            page.open(self.page_of(file))
            page.value("map.firstElementChild.focus()")
            self.assertEqual(page.value(active), "layers")
            page.press("ArrowRight")
            self.assertEqual(page.value(active), "named/embedding")
            self.assertIn("embedding", page.value("about.textContent"))
            page.press("ArrowLeft", "Enter")
            self.assertEqual(page.value(path), ["layers.safetensors", "layers"])
            page.press("Tab")
            self.assertEqual(page.value(active), "layers.1")
            page.press("Enter", "Escape")
            self.assertEqual(page.value(path), ["layers.safetensors", "layers"])
            self.assertEqual(page.value(active), "layers.1")
            page.press("Escape")
            self.assertEqual(page.value(path), ["layers.safetensors"])
            page.value("part.focus()")
            page.press("Home", "ArrowRight", "Enter")
            self.assertIn("layers.0.up", page.value("about.textContent"))
            self.assertIn("59 KiB of", page.value("range.textContent"))
            page.press("Escape")
            self.assertIn("bytes 0 to", page.value("range.textContent"))
            self.assertEqual(page.errors, [])

    def test_no_figure_wraps(self) -> None:
        file = self.folder / "long.safetensors"
        long = "model." + "a_rather_long_name_of_a_layer." * 8
        write_safetensors(file, ((f"{long}{i}.weight", "F32", struct.pack("<Q", i // 2) * 40_000) for i in range(12)))
        shown = self.page_of(file)
        with browser() as page:
            for width in (1200, 390):
                page.open(shown, width=width)
                self.assertEqual(page.wrapped_figures(), [])
                self.assertLessEqual(page.value("document.documentElement.scrollWidth"), width)
            self.assertEqual(page.errors, [])

    def test_dark_mode_has_its_own_colors(self) -> None:
        shown = self.page_of(Path(shutil.copy(EXAMPLES / "model.pte", self.folder)))
        background = "getComputedStyle(document.body).backgroundColor"
        with browser() as page:
            page.open(shown)
            light = page.value(background)
            page.open(shown, dark=True)
            self.assertNotEqual(page.value(background), light)
            self.assertEqual(page.value("getComputedStyle(document.documentElement).getPropertyValue('--on-tile')"), "#101216")
            self.assertEqual(page.errors, [])

    def test_a_hundred_thousand_tensors_stay_usable(self) -> None:
        file = self.folder / "many.safetensors"
        kinds = ("gate", "up", "down", "norm", "bias")
        write_safetensors(file, ((f"model.layers.{i // 1000}.experts.{i // 5 % 200}.{kinds[i % 5]}.weight", "F32",
                                  struct.pack("<Q", i) * (8 << i % 5)) for i in range(TENSORS)))  # fmt: skip
        weights = self.folder / "many.ptd"
        run("ptd", file, "-o", weights)
        shown = self.page_of(weights)
        with browser() as page:
            page.open(shown)
            painted, loaded = page.value(
                "[performance.getEntriesByName('first-contentful-paint')[0].startTime,"
                " performance.getEntriesByType('navigation')[0].loadEventEnd]"
            )
            print(f"{TENSORS} tensors: first paint after {painted:.0f} ms, complete after {loaded:.0f} ms", file=sys.stderr)
            self.assertLess(loaded, 1000 * MOST_SECONDS)
            self.assertLess(page.value("document.querySelectorAll('*').length"), 20_000)
            self.tiles_add_up(page, weights.stat().st_size, weights.name)
            page.value("map.firstElementChild.focus()")
            page.press("Enter")
            self.assertEqual(page.value("document.querySelectorAll('#path button').length"), 2)
            self.assertEqual(page.errors, [])


if __name__ == "__main__":
    if find_browser() is None:
        print("*** SKIPPED: pages in a browser, as there is no chromium", file=sys.stderr)
    unittest.main()
