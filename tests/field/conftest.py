# SPDX-License-Identifier: BSD-3-Clause
"""Provides what these tests share, and records what they found of each writer, for docs/formats.md's table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from command import Etstream
from fixtures import etstream
from prepare import FIELD
from releases import CURRENT, WRITERS, Writer

__all__ = ["etstream"]


@dataclass(frozen=True)
class Files:
    """The files that a writer wrote."""

    folder: Path

    @classmethod
    def of(cls, writer: Writer) -> Files:
        return cls(FIELD / "same" / str(writer))

    def find(self, pattern: str) -> list[Path]:
        """Returns the files of these names, of which there have to be some."""
        found = sorted(file for file in self.folder.glob(pattern) if self.written(file.name))
        assert found, f"{self.folder}: no {pattern}"
        return found

    def written(self, name: str) -> bool:
        """Returns whether the release writes the file; if not, said.json has the release's message."""
        return json.loads((self.folder / "said.json").read_text())[name] is None


@dataclass
class Outputs:
    """The outputs of the command, which is run once for all equal files, as these give equal outputs."""

    etstream: Etstream
    scratch: Path
    _known: dict[tuple[str, ...], bytes] = field(default_factory=dict)

    def pte(self, program: Path, *options: str) -> bytes:
        key = (hashlib.sha256(program.read_bytes()).hexdigest(), *options)
        if key not in self._known:
            self._known[key] = self.etstream.pte(program, self.scratch / "out.pte", *options)
        return self._known[key]


@pytest.fixture(scope="session")
def outputs(etstream: Etstream, tmp_path_factory: pytest.TempPathFactory) -> Outputs:
    return Outputs(etstream, tmp_path_factory.mktemp("outputs"))


@pytest.fixture(params=WRITERS, ids=str)
def writer(request: pytest.FixtureRequest) -> Writer:
    return request.param


@pytest.fixture
def files(writer: Writer) -> Files:
    return Files.of(writer)


@pytest.fixture(scope="session")
def current() -> Files:
    return Files.of(CURRENT)


_RESULTS = pytest.StashKey[dict[str, dict[str, bool]]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_RESULTS] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    aspect = item.get_closest_marker("aspect")
    if aspect is not None and (report.when == "call" or report.failed or report.skipped):
        writer = str(item.callspec.params["writer"])
        cells = item.config.stash[_RESULTS].setdefault(writer, {})
        cells[aspect.args[0]] = cells.get(aspect.args[0], True) and report.passed
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    (FIELD / "results.json").write_text(json.dumps(session.config.stash[_RESULTS], indent=1))
