"""A simulated disk that fails on demand, and that loses unsynced bytes in a power failure.

`FaultyDisk` replaces the functions of `os` that open, write, sync, rename and remove files. For files outside of one
directory, the replaced functions work as usual. In this directory, `FaultyDisk` injects errors, records syncs and
simulates a power failure:

- `FaultyDisk` counts the calls that can fail with a given error, for example "disk full", and makes some of them fail.
- At each successful sync, `FaultyDisk` stores the content of the file. After a failed sync, the kernel may have
  discarded bytes that a later sync cannot write. If the file is synced again, `FaultyDisk` therefore does not store
  the content, and only adds the file to the list `synced_again`.
- The method `power_cut` writes a copy of the directory as a power failure would leave it. Each file in the copy has the
  content of its last successful sync.

On a real disk, a new file can disappear in a power failure if its directory was not synced. `FaultyDisk` does not
simulate this. The tests in test_durability_order check with strace that the log syncs directories.
"""

from __future__ import annotations

import errno
import io
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

WRITES = ("open", "pwritev", "pwrite", "ftruncate", "mkdir", "fsync", "fdatasync", "posix_fallocate")
KINDS = {
    "disk full": (errno.ENOSPC, WRITES),
    "input/output error": (errno.EIO, (*WRITES, "rename", "unlink", "rmdir")),
    "no descriptor": (errno.EMFILE, ("open",)),
}
SYNCS = ("fsync", "fdatasync")
REAL_OPEN = io.open


@dataclass(frozen=True)
class Fault:
    """Chooses which calls fail, and with which error.

    KINDS lists the functions that can fail with the error `kind`. The calls of these functions are numbered from 1 on.
    The calls `first` to `first + length - 1` fail.
    """

    kind: str
    first: int
    length: int = 1

    def __str__(self) -> str:
        return f"{self.kind}, {self.length} times from call {self.first} on"


class FaultyDisk:
    """The simulated disk for the files below one directory."""

    def __init__(self, directory: Path, fault: Fault) -> None:
        self._root = directory
        self._code, self._calls = KINDS[fault.kind]
        self._fault = fault
        self._lock = threading.Lock()  # guards all attributes below
        self._is_failing = False
        self.count = 0
        self.hit: list[str] = []  # the calls that have failed
        self.synced_again: list[str] = []  # the files that were synced again after a failed sync
        self._durable: dict[int, bytes] = {}  # inode -> content at the last successful sync
        self._lost: set[int] = set()  # inodes whose sync has failed

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Inside the `with` block, count the calls that can fail. The calls that `_fault` selects raise an error."""
        self._is_failing = True
        yield
        self._is_failing = False

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Inside the `with` block, replace the functions of `os` and `io` that open, write, sync or remove files."""
        with ExitStack() as stack:
            for name in (*WRITES, "rename", "unlink", "rmdir"):
                stack.enter_context(patch.object(os, name, self._wrapped(name, getattr(os, name))))
            stack.enter_context(patch.object(io, "open", self._wrapped("open", io.open)))
            yield

    def power_cut(self, target: Path) -> None:
        """Write the files to `target` as they would be after a power failure at this moment."""
        for path in [self._root, *sorted(self._root.rglob("*"))]:
            copy = target / path.relative_to(self._root)
            if path.is_dir():
                copy.mkdir(parents=True)
            else:
                copy.write_bytes(self._durable.get(path.stat().st_ino, b""))

    def _wrapped(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(target: Any, *rest: Any, **options: Any) -> Any:
            path = self._path(target, options)
            if path is None:
                return call(target, *rest, **options)
            is_new = name == "open" and ("w" in rest[:1] or "wb" in rest[:1] or not path.exists())
            self._perhaps_fail(name, path, target, rest)
            result = call(target, *rest, **options)
            with self._lock:
                if is_new and path.is_file():
                    # The inode may have belonged to another file, or the file was truncated.
                    inode = path.stat().st_ino
                    self._lost.discard(inode)
                    self._durable.pop(inode, None)
                elif name in SYNCS and path.is_file():
                    self._note_sync(path)
            return result

        return wrapped

    def _path(self, target: Any, options: dict[str, Any]) -> Path | None:
        """Return the path in a call's first argument. Return None if this path is not below the directory."""
        if options.get("dir_fd") is not None:
            return None
        path = Path(f"/proc/self/fd/{target}").readlink() if isinstance(target, int) else Path(target)
        return path if path.is_relative_to(self._root) else None

    def _perhaps_fail(self, name: str, path: Path, target: Any, rest: tuple[Any, ...]) -> None:
        if not self._is_failing or name not in self._calls:
            return
        if name == "open" and self._code == errno.ENOSPC and path.exists():
            return
        with self._lock:
            self.count += 1
            if not self._fault.first <= self.count < self._fault.first + self._fault.length:
                return
            self.hit.append(f"{name} {path.relative_to(self._root)}")
            if name in SYNCS and path.is_file():
                self._lost.add(path.stat().st_ino)
        if name == "pwritev":  # The failed call may have written some of the bytes.
            data = b"".join(rest[0])
            os.lseek(target, rest[1], os.SEEK_SET)
            os.write(target, data[: len(data) // 2])
        raise OSError(self._code, os.strerror(self._code), str(path))

    def _note_sync(self, path: Path) -> None:
        inode = path.stat().st_ino
        if inode in self._lost:
            self.synced_again.append(str(path))
        else:
            with REAL_OPEN(path, "rb") as file:
                self._durable[inode] = file.read()
