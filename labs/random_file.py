"""Create a file of random bytes for the lab 8 checks."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def random_file(folder: Path, rng: random.Random, size: int) -> Iterator[tuple[bytes, int]]:
    """Write `size` random bytes to a new file. Yield the bytes, and a descriptor of the open file."""
    content = rng.randbytes(size)
    path = folder / "log"
    path.write_bytes(content)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield content, descriptor
    finally:
        os.close(descriptor)
