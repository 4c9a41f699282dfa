# SPDX-License-Identifier: BSD-3-Clause
"""Tests what a destination may be, as for sed -i, git and other tools that replace files by rename."""

import os
import stat
import threading

from command_test_case import BUNDLE, CommandTestCase, main


class Destinations(CommandTestCase):
    def test_a_link_stays_a_link_and_its_target_is_replaced(self) -> None:
        elsewhere = self.place.out / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "file").write_bytes(b"old")
        self.place.result.symlink_to("elsewhere/file")
        self.succeeds(*BUNDLE, "out/result")
        self.assertTrue(self.place.result.is_symlink())
        self.assertTrue((elsewhere / "file").read_bytes() == self.complete)
        self.assertEqual(os.listdir(elsewhere), ["file"])

    def test_a_link_to_nothing_has_its_target_made(self) -> None:
        self.place.result.symlink_to("target")
        self.succeeds(*BUNDLE, "out/result")
        self.assertTrue(self.place.result.is_symlink())
        self.assertTrue((self.place.out / "target").read_bytes() == self.complete)

    def test_a_link_into_a_missing_folder_is_an_error(self) -> None:
        self.place.result.symlink_to("missing/target")
        self.fails(*BUNDLE, "out/result", saying="there is no folder 'out/missing/'")
        self.assertTrue(self.place.result.is_symlink())
        self.assertEqual(self.place.others(), [])

    def test_another_name_of_a_file_keeps_the_old_content(self) -> None:
        self.place.result.write_bytes(b"old")
        other = self.place.out / "hard link"
        other.hardlink_to(self.place.result)
        self.succeeds(*BUNDLE, "out/result")
        self.assertEqual(other.read_bytes(), b"old")
        self.assertEqual(self.place.others(), ["hard link"])

    def test_an_input_is_refused_under_whatever_name(self) -> None:
        hard_link = self.place.out / "hard link"
        hard_link.hardlink_to(self.place.inputs / "image_0.npy")
        link = self.place.out / "link"
        link.symlink_to("../in/model.pte")
        try:
            for name in ("in/model.pte", "in/../in/cases.json", "in/image_1.npy", "out/link", "out/hard link"):
                with self.subTest(name):
                    self.fails(*BUNDLE, name, saying=f"the output '{name}' is the input 'in/")
            for piece in ("program", "program/segments/0"):
                self.fails("extract", "in/bundle.bpte", piece, "-o", "in/bundle.bpte", saying="is the input")
            for name, to in (("bundle", "segmented"), ("segmented", "bp08"), ("segmented", "segmented")):
                file = f"in/{name}.bpte"
                self.fails("convert", file, "--to", to, "-o", file, saying=f"the output '{file}' is the input '{file}'")
        finally:
            hard_link.unlink()
            self.place.forget_inputs()

    def test_an_input_that_is_appended_to_is_refused(self) -> None:
        for name in ("-", "/dev/stdout"):
            with open(self.place.inputs / "image_0.npy", "ab") as file:
                self.fails(*BUNDLE, name, saying=f"the output '{name}' is the input 'in/image_0.npy'", stdout=file)

    def test_a_folder_is_refused(self) -> None:
        self.place.result.mkdir()
        for name in ("out/result", "out/result/", "in"):
            self.fails(*BUNDLE, name, saying=f"cannot write '{name}': it is a folder")
        self.assertEqual(os.listdir(self.place.result), [])

    def test_test_cases_go_to_a_new_or_an_empty_folder_only(self) -> None:
        cases = ["extract", "in/bundle.bpte", "--cases"]
        for name in ("in", "in/model.pte", "/dev/null"):
            self.fails(*cases, name, saying=f"cannot write the folder '{name}': it exists, and is not an empty folder")
        self.place.result.mkdir()
        self.succeeds(*cases, "out/result/")
        self.fails(*cases, "out/result", saying="it exists")
        self.assertEqual(self.place.others(), [])

    def test_a_missing_folder_is_an_error(self) -> None:
        self.fails(*BUNDLE, "out/missing/result", saying="there is no folder 'out/missing/'")
        self.fails("extract", "in/bundle.bpte", "--cases", "out/missing/result", saying="there is no folder")
        self.assert_result(None)

    def test_a_fifo_is_written_into(self) -> None:
        os.mkfifo(self.place.result)
        read: list[bytes] = []
        reader = threading.Thread(target=lambda: read.append(self.place.result.read_bytes()))
        reader.start()
        self.succeeds(*BUNDLE, "out/result")
        reader.join()
        self.assertTrue(read == [self.complete])
        self.assertTrue(stat.S_ISFIFO(self.place.result.stat().st_mode))
        self.assertEqual(self.place.others(), [])

    def test_a_device_stays_one(self) -> None:
        self.succeeds(*BUNDLE, "/dev/null")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))

    def test_what_is_open_is_written_where_it_stands(self) -> None:
        for name in ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
            with self.subTest(name), open(self.place.result, "wb", buffering=0) as file:
                inode = self.place.result.stat().st_ino
                file.write(b"before ")
                self.succeeds(*BUNDLE, name, stdout=file)
                file.write(b" after")
                self.assertTrue(self.place.result.read_bytes() == b"before " + self.complete + b" after")
                self.assertEqual(self.place.result.stat().st_ino, inode)
        with open(self.place.result, "ab", buffering=0) as file:
            file.truncate(7)
            self.succeeds(*BUNDLE, f"/dev/fd/{file.fileno()}", pass_fds=[file.fileno()])
        self.assert_result(b"before " + self.complete)


if __name__ == "__main__":
    main()
