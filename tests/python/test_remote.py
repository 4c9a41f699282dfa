# SPDX-License-Identifier: BSD-3-Clause
"""Reads and writes files that fsspec opens: to and from real servers on loopback, forward only, in bounded memory."""

from __future__ import annotations

import http.server
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

import etstream

MIB = 1 << 20
SIZE = 64 * MIB


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("content") / "content"
    path.write_bytes(os.urandom(MIB) * (SIZE // MIB))
    return path


def rss_anonymous() -> int:
    with open("/proc/self/status", encoding="ascii") as file:
        (line,) = (line for line in file if line.startswith("RssAnon:"))
    return int(line.split()[1]) << 10


class Forward:
    """A file that notes the most memory of the process as it is written."""

    def __init__(self, file: Any) -> None:
        self.file, self.most, self.before = file, 0, rss_anonymous()

    def write(self, piece: memoryview) -> Any:
        taken = self.file.write(piece)
        self.most = max(self.most, rss_anonymous() - self.before)
        return taken

    def seek(self, offset: int, whence: int = 0) -> int:
        raise AssertionError("it is written forward only")


@pytest.fixture
def sftp_port() -> Iterator[int]:
    """Yields the port of an SFTP server that serves this machine's files."""
    script = Path(__file__).with_name("sftp_server.py")
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield int(server.stdout.readline())
        server.terminate()


def test_sftp(sftp_port: int, tmp_path: Path, content: Path) -> None:
    system = fsspec.filesystem("sftp", host="127.0.0.1", port=sftp_port, username="someone", password="secret")
    remote = str(tmp_path / "remote")
    with system.open(remote, "wb") as file:
        file.set_pipelined(True)  # otherwise each 32 KiB waits for the server
        forward = Forward(file)
        etstream.FilePlan.copy(content).write(forward)
    assert Path(remote).read_bytes() == content.read_bytes()
    assert forward.most < 16 * MIB
    with system.open(remote, "rb") as file:
        assert etstream.Source(file)[SIZE - 5 :].read() == content.read_bytes()[-5:]
    system.client.close()


class RangeHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    file: Path
    most = 0

    def do_HEAD(self) -> None:
        self.answer(with_body=False)

    def do_GET(self) -> None:
        self.answer(with_body=True)

    def answer(self, with_body: bool) -> None:
        size = self.file.stat().st_size
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        begin, end = (int(asked[1]), min(int(asked[2]) + 1, size)) if asked else (0, size)
        self.send_response(206 if asked else 200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(end - begin))
        if asked:
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{size}")
        self.end_headers()
        if with_body:
            type(self).most = max(self.most, end - begin)
            with open(self.file, "rb") as file:
                file.seek(begin)
                self.wfile.write(file.read(end - begin))

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def address(content: Path) -> Iterator[str]:
    """Yields the address of a file on an HTTP server."""
    handler = type("Handler", (RangeHandler,), {"file": content})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/content"
        server.shutdown()
        thread.join()
    assert handler.most < 16 * MIB, "it is asked for in pieces"  # type: ignore[attr-defined]


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_http(address: str, tmp_path: Path, content: Path) -> None:
    with fsspec.open(address, "rb", block_size=2 * MIB, cache_type="readahead") as file:
        before = rss_anonymous()
        most = [0]

        def watch(done: int, total: int) -> None:
            most[0] = max(most[0], rss_anonymous() - before)

        etstream.FilePlan.copy(file).write(tmp_path / "copy", progress=watch)
    assert (tmp_path / "copy").read_bytes() == content.read_bytes()
    assert most[0] < 32 * MIB


def test_local_file_system(tmp_path: Path, content: Path, program: Path, cases: Path) -> None:
    system = fsspec.filesystem("file")
    with system.open(str(tmp_path / "copy"), "wb") as file:
        forward = Forward(file)
        etstream.FilePlan.copy(content).write(forward)
    assert (tmp_path / "copy").read_bytes() == content.read_bytes()
    assert forward.most < 4 * MIB
    with system.open(str(tmp_path / "model.bpte"), "wb") as file, system.open(str(program), "rb") as given:
        etstream.bundle(given, cases, file, to="segmented")
    etstream.bundle(program, cases, tmp_path / "expected.bpte", to="segmented")
    assert (tmp_path / "model.bpte").read_bytes() == (tmp_path / "expected.bpte").read_bytes()
