# SPDX-License-Identifier: BSD-3-Clause
"""Decides, call by call, what a fault in each system call has to lead to."""

import enum
import errno
from dataclasses import dataclass


class Outcome(enum.Enum):
    """The ways in which a run with a fault may have to end."""

    GOES_ON = "exit code 0, the new result complete"
    STOPS = "exit code 1 with a message, the destination as it was"
    LATE = "exit code 1 with a message that says so, the new result complete"
    WARNED = "exit code 0 with a warning that says so, the new result complete"


@dataclass(frozen=True)
class Call:
    """A system call as fault_tracer logs it."""

    index: int
    name: str
    about: str
    source: str  # the path that is renamed, or the "fd 3" that a path to remove is relative to
    flags: int
    result: int | None  # None: the process ended in it


@dataclass(frozen=True)
class Rule:
    outcome: Outcome
    why: str
    survives: tuple[int, ...] = ()  # the errors with which it still goes on


CAN_NOT = (errno.EOPNOTSUPP, errno.ENOSYS)
NO_SYNC = (*CAN_NOT, errno.EINVAL, errno.EROFS)
NO_MODE = (*CAN_NOT, errno.EINVAL, errno.EPERM)

RULES = {
    "look for leftovers": Rule(Outcome.GOES_ON, "what a killed run left is only in the way; the next run removes it"),
    "remove a leftover": Rule(Outcome.GOES_ON, "as above"),
    "look into the old folder": Rule(Outcome.STOPS, "only an empty one is replaced"),
    "create": Rule(Outcome.STOPS, "without the temporary file there is nothing to write to"),
    "open the new folder": Rule(Outcome.STOPS, "it could not be synced"),
    "lock": Rule(Outcome.GOES_ON, "not every file system has locks; a second writer is then found at the rename"),
    "keep the mode": Rule(Outcome.STOPS, "a file that was private would become public", NO_MODE),
    "keep the owner": Rule(Outcome.STOPS, "as above; who may not give files away keeps them", NO_MODE),
    "reserve": Rule(Outcome.STOPS, "the disk is full, better told now than later", CAN_NOT),
    "write": Rule(Outcome.STOPS, "bytes are missing"),
    "write back": Rule(
        Outcome.STOPS, "the kernel tells a failed write-back once, here or at fsync", (*CAN_NOT, errno.EINVAL)
    ),
    "forget": Rule(Outcome.GOES_ON, "advice about the page cache"),
    "sync": Rule(Outcome.STOPS, "the bytes may not be on the disk; some mounts have no fsync", NO_SYNC),
    "close before the rename": Rule(Outcome.STOPS, "without fsync it is where network file systems tell what failed"),
    "close": Rule(Outcome.GOES_ON, "all was told before, by fsync or by an earlier close"),
    "rename": Rule(Outcome.STOPS, "the destination is the old file"),
    "open the folder to sync it": Rule(Outcome.LATE, "a power cut may bring the old file back"),
    "sync the folder": Rule(Outcome.LATE, "as above; some file systems have no fsync for folders", NO_SYNC),
    "tell": Rule(Outcome.WARNED, "whoever waits for the report does not get it"),  # stdio does not try again
}

BY_NAME = {
    "mkdir": "create",
    "mkdirat": "create",
    "flock": "lock",
    "fchmod": "keep the mode",
    "fchown": "keep the owner",
    "fallocate": "reserve",
    "write": "write",
    "sync_file_range": "write back",
    "fadvise": "forget",
    "fsync": "sync",
    "syncfs": "sync",
    "rename": "rename",
    "renameat": "rename",
    "renameat2": "rename",
    "unlink": "remove a leftover",
    "unlinkat": "remove a leftover",
    "rmdir": "remove a leftover",
}


def role_of(calls: list[Call], position: int, destination: str) -> str:
    """Returns the key in RULES of one of the calls of a run without faults."""
    call = calls[position]
    before = [c.name for c in calls[:position]]
    done = any(c.name.startswith("rename") and c.about == destination for c in calls[:position])
    if call.about == "fd 1":
        return "tell"
    if call.name == "open for writing":
        return "create"
    if call.name == "open a folder":
        if done:
            return "open the folder to sync it"
        if call.about == destination:
            return "look into the old folder"
        return "open the new folder" if before and before[-1].startswith("mkdir") else "look for leftovers"
    if call.name == "close":
        steps = [name for name in before if name in ("open for writing", "write") or name.startswith("rename")]
        return "close" if steps and steps[-1].startswith("rename") else "close before the rename"
    if call.name == "fsync" and done:
        return "sync the folder"
    return BY_NAME[call.name]  # a call that is not there needs a rule


def expected(calls: list[Call], position: int, error: int, destination: str, and_all_after: bool) -> Outcome:
    """Returns how a run has to end in which the call at `position`, or all calls from there on, fail with `error`."""
    for i in range(position, len(calls) if and_all_after else position + 1):
        rule = RULES[role_of(calls, i, destination)]
        if error == errno.EINTR and rule is not RULES["tell"]:
            continue  # the call is tried again
        if rule.outcome is not Outcome.GOES_ON and error not in rule.survives:
            return rule.outcome
    return Outcome.GOES_ON


def unheard(calls: list[Call]) -> list[str]:
    """Returns the files that are put in place although nobody has asked whether all of them could be written."""
    complaints = []
    asked = True
    for call in calls:
        if call.about != "fd 1" and call.name in ("write", "pwrite", "writev", "copy_file_range", "sendfile"):
            asked = False
        elif call.name in ("fsync", "fdatasync", "syncfs", "close"):
            asked = True
        elif call.name.startswith("rename") and not asked:
            complaints.append(f"{call.about} is put in place before fsync or close have told of failed writes")
    return complaints
