# SPDX-License-Identifier: BSD-3-Clause
"""Puts etstream in the place of ExecuTorch's own serialization."""

from __future__ import annotations

import copy
import logging
import sys
import threading
from contextlib import ExitStack

from etstream.executorch import _bundles, _etrecord, _flatc, _key_names, _programs
from etstream.executorch._patches import FunctionUse, Patch, PatchSet, counted
from etstream.results import Table

_logger = logging.getLogger("etstream")
_uses: dict[str, FunctionUse] = {}
"""The uses of functions, by name, since the first install() that is in force."""


def _patches() -> list[Patch]:
    global _uses
    _uses = {}  # installations keep the dictionary of their time
    modules = (_programs, _bundles, _etrecord, _flatc)
    return [counted(patch, _uses) for module in modules for patch in module.patches()]


_installed = PatchSet("install()", _patches, (*_programs.NEEDS, *_etrecord.NEEDS))
_in_force: list[Installation] = []
"""The installations that have not ended, the latest last."""
_lock = threading.RLock()


class Installation:
    """An installation that install() made. It ends when its outermost block is left, or with an uninstall()."""

    def __init__(self, verbose: bool, names: bool) -> None:
        """Raises ImportError, see install()."""
        self._verbose = verbose
        self._blocks = 0
        with _lock, ExitStack() as installed:
            if names:
                # These come first, so that the patches that count calls and write through etstream wrap them.
                installed.enter_context(_key_names.recording)
                installed.enter_context(_key_names.writing)
            installed.enter_context(_installed)
            self._installed = installed.pop_all()
            self._uses = _uses
            _in_force.append(self)

    def __enter__(self) -> Installation:
        with _lock:
            if self not in _in_force:
                raise RuntimeError("this installation has ended: call install() again")
            self._blocks += 1
        return self

    def __exit__(self, *_: object) -> None:
        with _lock:
            self._blocks -= 1
            if self._blocks <= 0:
                self._end()

    def _end(self) -> None:
        with _lock:
            if self not in _in_force:
                return
            _in_force.remove(self)
            self._installed.close()
        if self._verbose:
            print(self, file=sys.stderr)
        _logger.debug("uninstall(): %s", "in force" if _in_force else "not in force")

    @property
    def functions(self) -> Table[FunctionUse]:
        """The replaced functions, with how often each was called since the first install() in force, in all threads;
        after the last uninstall(), those that were replaced."""
        return Table(copy.deepcopy(list(self._uses.values())))

    def __str__(self) -> str:
        said = [f"  {use}" for use in self.functions]
        return "\n".join([f"etstream stands in for {len(said)} functions:", *said])

    def __repr__(self) -> str:
        state = "in force" if self in _in_force else "not in force"
        return f"<etstream.executorch.Installation of {len(self._uses)} functions, {state}>"


def install(*, verbose: bool = False, names: bool = False) -> Installation:
    """Makes ExecuTorch's own functions save through etstream, in all threads, until uninstall().

    Etstream stands in for serialize_pte_binary, and so for to_executorch(), save() and write_to_file() of an
    ExecutorchProgramManager; for the serialization of tensor data (.ptd), of bundled programs, also back to their
    dataclasses, and of ETRecords; and for flatc, which XNNPACK and others run for each graph, and the Inspector for
    each ETDump. Bytes and types stay the same; payloads are copied only into results that have to be bytes. ExecuTorch
    still does what etstream refuses. If a file can't be written, ExecutorchProgramManager.save() raises NoSuchFileError
    or IoError, while ExecuTorch's own logs the failure and returns.

    May be called again: each call needs an uninstall() of its own, or serves as a context manager::

        with etstream.executorch.install() as installation:
            manager = edge.to_executorch()
        print(installation)

    Args:
        verbose: say on standard error which functions are replaced and, at the end, how often each was called, and how
            often and why it was left to ExecuTorch. In any case the logger "etstream" of the standard library tells of
            each call at the level DEBUG.
        names: make save() and write_to_file() of an ExecutorchProgramManager also write MODEL.names.json beside
            MODEL.pte, which says which parameter became which key of named data; see save_program(). The names are
            noted while the program is lowered, so lower it after install().

    Returns an Installation, which has the same counts in its `functions` and as text.

    Raises:
        ImportError: this ExecuTorch or this torch lacks something to replace, which the message names; nothing is
            replaced then.
    """
    installation = Installation(verbose, names)
    for use in installation.functions:
        _logger.debug("%s: replaced", use.name)
    if verbose:
        print(installation, file=sys.stderr)
    return installation


def uninstall() -> None:
    """Ends the latest install(), if any. With the last one, ExecuTorch's functions are as they were."""
    with _lock:
        if _in_force:
            _in_force[-1]._end()


def is_installed() -> bool:
    """Returns whether an install() is in force."""
    return bool(_in_force)
