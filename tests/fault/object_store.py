# SPDX-License-Identifier: BSD-3-Clause
"""Mounts a FUSE file system that keeps its files in a folder, writes them from front to back only, and lacks calls.

    python3 object_store.py FOLDER MOUNT [CALL...]

A CALL is rename, chmod or fsync. Runs until MOUNT is unmounted. Needs Debian's python3-fusepy, and root.
"""

import errno
import os
import stat
import sys

from fusepy import FUSE, FuseOSError, Operations

FIELDS = ("st_atime", "st_ctime", "st_mtime", "st_gid", "st_uid", "st_mode", "st_nlink", "st_size")


class ObjectStore(Operations):
    def __init__(self, folder: str, lacks: list[str]) -> None:
        self.folder = folder
        self.lacks = lacks

    def __call__(self, call: str, path: str, *arguments: object) -> object:
        if {"chown": "chmod"}.get(call, call) in self.lacks:
            raise FuseOSError(errno.ENOSYS)
        return super().__call__(call, self.folder + path, *arguments)

    def getattr(self, path: str, fh: int | None = None) -> dict[str, float]:
        found = os.lstat(path)
        return {field: getattr(found, field) for field in FIELDS}

    def readdir(self, path: str, fh: int) -> list[str]:
        return [".", "..", *os.listdir(path)]

    def create(self, path: str, mode: int, fi: object = None) -> int:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, stat.S_IMODE(mode))

    def open(self, path: str, flags: int) -> int:
        return os.open(path, flags)

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        return os.pread(fh, size, offset)

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        if offset != os.fstat(fh).st_size:
            raise FuseOSError(errno.EINVAL)
        return os.write(fh, data)

    def truncate(self, path: str, length: int, fh: int | None = None) -> None:
        if length != 0:
            raise FuseOSError(errno.EINVAL)
        os.truncate(path, 0)

    def release(self, path: str, fh: int) -> None:
        os.close(fh)

    def fsync(self, path: str, datasync: int, fh: int) -> None:
        os.fsync(fh)

    def rename(self, old: str, new: str) -> None:
        os.rename(old, self.folder + new)

    def mkdir(self, path: str, mode: int) -> None:
        os.mkdir(path, mode)

    def rmdir(self, path: str) -> None:
        os.rmdir(path)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def chmod(self, path: str, mode: int) -> None:
        os.chmod(path, mode)

    def chown(self, path: str, uid: int, gid: int) -> None:
        os.chown(path, uid, gid)


if __name__ == "__main__":
    FUSE(ObjectStore(sys.argv[1], sys.argv[3:]), sys.argv[2], foreground=True, nothreads=True)
