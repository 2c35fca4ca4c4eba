"""Keeps blocks of index entries in memory: an optimization of the search in an index (sorted_entries.py).

If you read HMB for the first time, skip this module: it only makes HMB faster. A search in an index needs one block of
the index file. A block of the offset index has at most 4,096 bytes. Without this module, each search would read its
block from the file, and decode about nine keys in Python code. This module keeps the last block in memory. If the next
search needs the same block, it does not read the file.

A consumer that reads a log from its beginning looks up one offset after another. One block covers about 2 MiB of the
log, so many look-ups need the same block. The index therefore keeps the last block that it has read.

The keys of the offset index are int32, so the module stores them in an `array` of C integers. The function
`bisect` searches an `array` quickly, without running Python code. The keys of other indexes have other sizes.
The class `LazyKeys` decodes such a key only when `bisect` reads it.

In an index of 200 entries, a look-up takes 1.6 us with this module, and 4.2 us without it. In a busy broker, the
difference is larger. A thread that reads a file releases Python's interpreter lock. After the read, the thread needs
this lock again, and often has to wait for other threads. A look-up in memory reads no file, so the thread keeps the
lock.

An offset index keeps the block of its last search in memory. A full block has 512 entries, which take 4,096
bytes. The decoded keys of these entries take another 2,048 bytes. For 1,000 indexes, this is about 6 MB.
"""

from __future__ import annotations

import struct
import sys
from array import array
from typing import NamedTuple, Protocol


class Keys(Protocol):
    """A sequence of keys, which `bisect` searches."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int, /) -> int: ...


class Block(NamedTuple):
    """Neighboring entries of an index. With 512 entries in each block, block 2 begins with entry 1024."""

    number: int
    keys: Keys
    data: bytes


NO_BLOCK = Block(-1, (), b"")


def decoded_block(number: int, data: bytes, key: struct.Struct, entry_size: int) -> Block:
    """Return the block with this number. `data` contains its entries, which have `entry_size` bytes each."""
    int32 = array("i")
    if key.size != int32.itemsize:
        return Block(number, LazyKeys(data, key, entry_size), data)
    int32.frombytes(data)
    if sys.byteorder == "little":
        int32.byteswap()
    return Block(number, int32[:: entry_size // int32.itemsize], data)


class LazyKeys:
    """The keys of the entries in `data`. A key is decoded when it is used."""

    def __init__(self, data: bytes, key: struct.Struct, entry_size: int) -> None:
        self._data = data
        self._key = key
        self._entry_size = entry_size

    def __len__(self) -> int:
        return len(self._data) // self._entry_size

    def __getitem__(self, number: int, /) -> int:
        key: int = self._key.unpack_from(self._data, number * self._entry_size)[0]
        return key
